//! Text of models, tools and files, without what could steer a terminal and what a terminal would not show.
//!
//! A transcript leaves such characters out; diffs and questions write them out, since there they matter. What emoji and
//! scripts need is kept by rule: a joiner between two characters that it can join, one variation selector after a
//! character that has variants.

use std::borrow::Cow;

/// Filters text that may come in pieces: whether a character is kept depends on its neighbours.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sanitizer {
    instead: Instead,
    /// The last character that was passed on.
    previous: Option<char>,
    /// A joiner or a carriage return, which the next character decides on.
    held: Option<char>,
}

/// How a character appears that is not shown as it is.
#[derive(Clone, Copy, Debug, Default)]
enum Instead {
    /// Not at all, but a line end that is no `\n` becomes one.
    #[default]
    Nothing,
    /// Written out, as in `\u{200b}`.
    Escape,
}

impl Sanitizer {
    /// One that writes out what it does not pass on. The default leaves it out.
    pub(crate) fn escaping() -> Self {
        Self { instead: Instead::Escape, ..Self::default() }
    }

    /// Adds the next piece of a text, as it may be shown.
    pub(crate) fn push(&mut self, piece: &str, shown: &mut String) {
        shown.reserve(piece.len());
        piece.chars().for_each(|character| self.character(character, shown));
    }

    /// Adds what was held back for a character that does not come, and forgets the text.
    pub(crate) fn end(&mut self, shown: &mut String) {
        if let Some(held) = self.held.take() {
            self.decide(held, None, shown);
        }
        self.previous = None;
    }

    /// Adds the next character.
    pub(crate) fn character(&mut self, character: char, shown: &mut String) {
        if let Some(held) = self.held.take() {
            self.decide(held, Some(character), shown);
        }
        match character {
            '\r' | '\u{200C}' | '\u{200D}' => self.held = Some(character),
            _ if is_selector(character) && self.has_variants(character) => self.keep(character, shown),
            _ if is_plain(character) => self.keep(character, shown),
            _ => self.leave(character, shown),
        }
    }

    /// Decides on a held character before `next`; at the end of the text before nothing.
    fn decide(&mut self, held: char, next: Option<char>, shown: &mut String) {
        match (held, next) {
            ('\r', Some('\n')) => {}
            (_, Some(next)) if self.joins(held, next) => self.keep(held, shown),
            _ => self.leave(held, shown),
        }
    }

    fn keep(&mut self, character: char, shown: &mut String) {
        shown.push(character);
        self.previous = Some(character);
    }

    fn leave(&mut self, character: char, shown: &mut String) {
        match self.instead {
            // Without a line end the words around it would be one.
            Instead::Nothing if matches!(character, '\r' | '\u{2028}' | '\u{2029}') => self.keep('\n', shown),
            Instead::Nothing => {}
            Instead::Escape => shown.extend(character.escape_default()),
        }
    }

    /// Whether a joiner or non-joiner does anything between the last character and the next.
    fn joins(&self, joiner: char, next: char) -> bool {
        let Some(previous) = self.previous else { return false };
        let is_emoji = joiner == '\u{200D}'
            && (is_pictograph(previous) || previous == '\u{FE0F}')
            && is_pictograph(next);
        is_emoji || joiner != '\r' && is_shaped(previous) && is_shaped(next)
    }

    /// Whether the last character has variants that this selector can choose from.
    fn has_variants(&self, selector: char) -> bool {
        let Some(previous) = self.previous else { return false };
        match selector {
            '\u{FE0E}'..='\u{FE0F}' if matches!(previous, '0'..='9' | '#' | '*') => true,
            '\u{FE00}'..='\u{FE0F}' => is_pictograph(previous) || is_symbol(previous) || is_han(previous),
            '\u{180B}'..='\u{180D}' | '\u{180F}' => matches!(previous, '\u{1820}'..='\u{18AA}'),
            _ => is_han(previous),
        }
    }
}

fn filtered(text: &str, mut filter: Sanitizer) -> Cow<'_, str> {
    if text.chars().all(is_plain) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::new();
    filter.push(text, &mut shown);
    filter.end(&mut shown);
    Cow::Owned(shown)
}

/// The text without what could steer a terminal and what would not be seen. A transcript is for people, and what is
/// piped through `tee` or `less` ends on a terminal all the same.
pub(crate) fn sanitize(text: &str) -> Cow<'_, str> {
    filtered(text, Sanitizer::default())
}

/// A line in which the same characters are written out.
pub(crate) fn visible(line: &str) -> Cow<'_, str> {
    filtered(line, Sanitizer::escaping())
}

/// The lines of a unified diff without their line ends. Where only some lines end in a carriage return, it is a
/// difference, and stays.
pub(crate) fn diff_lines(diff: &str) -> impl Iterator<Item = &str> {
    let is_content = |line: &&str| {
        line.starts_with(['+', '-', ' ']) && !line.starts_with("+++ ") && !line.starts_with("--- ")
    };
    let has_return = diff.split('\n').filter(is_content).all(|line| line.ends_with('\r'));
    let lines = diff.strip_suffix('\n').unwrap_or(diff).split('\n');
    lines.map(move |line| line.strip_suffix('\r').filter(|_| has_return).unwrap_or(line))
}

/// Whether nothing is ever done about a character.
pub(crate) fn is_plain(character: char) -> bool {
    !steers(character) && !hides(character) && !is_selector(character)
}

/// Control characters but for line ends and tabs, and those that turn the direction of text around.
pub(crate) fn steers(character: char) -> bool {
    match character {
        '\n' | '\t' => false,
        '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' => true,
        _ => character.is_control(),
    }
}

/// Characters that take no room, or look like a blank, and are none. Accents are not among them.
pub(crate) fn hides(character: char) -> bool {
    matches!(
        character,
        '\u{AD}'
            | '\u{34F}'
            | '\u{61C}'
            | '\u{115F}'..='\u{1160}'
            | '\u{17B4}'..='\u{17B5}'
            | '\u{180B}'..='\u{180F}'
            | '\u{200B}'..='\u{200F}'
            | '\u{2028}'..='\u{2029}'
            | '\u{2060}'..='\u{206F}'
            | '\u{3164}'
            | '\u{FEFF}'
            | '\u{FFA0}'
            | '\u{FFF0}'..='\u{FFFB}'
            | '\u{1BCA0}'..='\u{1BCA3}'
            | '\u{1D173}'..='\u{1D17A}'
            | '\u{E0000}'..='\u{E0FFF}'
    )
}

fn is_selector(character: char) -> bool {
    matches!(
        character,
        '\u{180B}'..='\u{180D}' | '\u{180F}' | '\u{FE00}'..='\u{FE0F}' | '\u{E0100}'..='\u{E01EF}'
    )
}

/// Emoji and what is made an emoji by a selector.
fn is_pictograph(character: char) -> bool {
    matches!(
        character,
        '\u{A9}' | '\u{AE}'
            | '\u{203C}' | '\u{2049}'
            | '\u{2190}'..='\u{21FF}'
            | '\u{2300}'..='\u{23FF}'
            | '\u{25A0}'..='\u{27BF}'
            | '\u{2900}'..='\u{297F}'
            | '\u{2B00}'..='\u{2BFF}'
            | '\u{3030}' | '\u{303D}' | '\u{3297}' | '\u{3299}'
            | '\u{1F000}'..='\u{1FAFF}'
    )
}

/// Symbols with standardised variants, such as those of mathematics.
fn is_symbol(character: char) -> bool {
    matches!(character, '\u{2100}'..='\u{22FF}' | '\u{2460}'..='\u{24FF}' | '\u{2A00}'..='\u{2AFF}')
}

fn is_han(character: char) -> bool {
    matches!(
        character,
        '\u{3001}'..='\u{3002}' | '\u{3400}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}' | '\u{20000}'..='\u{3FFFD}'
    )
}

/// Letters and signs of scripts in which a joiner or non-joiner changes the shape of its neighbours: Arabic, Syriac,
/// Mongolian, and those that descend from Brahmi.
fn is_shaped(character: char) -> bool {
    !hides(character)
        && matches!(
            character,
            '\u{600}'..='\u{DFF}'
                | '\u{F00}'..='\u{109F}'
                | '\u{1780}'..='\u{18AF}'
                | '\u{1A20}'..='\u{1C4F}'
                | '\u{A840}'..='\u{A8FF}'
                | '\u{A980}'..='\u{AA7F}'
                | '\u{ABC0}'..='\u{ABFF}'
                | '\u{FB50}'..='\u{FDFF}'
                | '\u{FE70}'..='\u{FEFC}'
                | '\u{11000}'..='\u{11FFF}'
                | '\u{1E900}'..='\u{1E95F}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_hides_is_left_out_or_written_out() {
        let rows = [
            ("a\u{200b}b\u{feff}c", "abc", "a\\u{200b}b\\u{feff}c"),
            ("pass\u{2060}word\u{ad}", "password", "pass\\u{2060}word\\u{ad}"),
            ("\u{e0041}\u{e007f}x", "x", "\\u{e0041}\\u{e007f}x"),
            ("a\u{202e}b\u{2066}c\u{200f}", "abc", "a\\u{202e}b\\u{2066}c\\u{200f}"),
            ("a\u{fe0f}b\u{e0100}", "ab", "a\\u{fe0f}b\\u{e0100}"),
            ("❤\u{fe0f}\u{fe01}\u{fe02}", "❤\u{fe0f}", "❤\u{fe0f}\\u{fe01}\\u{fe02}"),
            ("a\u{200d}b\u{200c}", "ab", "a\\u{200d}b\\u{200c}"),
            ("one\rtwo\r\nthree\r", "one\ntwo\nthree\n", "one\\rtwo\nthree\\r"),
            ("a\u{2028}b", "a\nb", "a\\u{2028}b"),
            ("a\x1b[2J\u{9b}\x07", "a[2J", "a\\u{1b}[2J\\u{9b}\\u{7}"),
        ];
        for (text, left_out, written_out) in rows {
            assert_eq!((sanitize(text), visible(text)), (left_out.into(), written_out.into()), "{text:?}");
        }
    }

    #[test]
    fn what_emoji_and_scripts_need_is_kept() {
        let rows = [
            "👩\u{200d}👩\u{200d}👧 ❤\u{fe0f}\u{200d}🔥 👍🏽 1\u{fe0f}\u{20e3}",
            "می\u{200c}خواهم",
            "क\u{94d}\u{200d}ष",
            "葛\u{e0100} ©\u{fe0f}",
            "e\u{301}\t日本\n",
        ];
        for text in rows {
            assert_eq!((sanitize(text), visible(text)), (text.into(), text.into()));
        }
    }

    #[test]
    fn pieces_give_what_the_whole_gives() {
        let text = "a\r\nb\rc\u{200b}👩\u{200d}👧\u{200d}x\u{200c}می\u{200c}خ❤\u{fe0f}\u{fe0f}\u{e0041}z";
        let mut filter = Sanitizer::default();
        let mut shown = String::new();
        for character in text.chars() {
            filter.push(character.encode_utf8(&mut [0; 4]), &mut shown);
        }
        filter.end(&mut shown);
        assert_eq!(shown, sanitize(text));
    }
}
