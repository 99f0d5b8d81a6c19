//! Removes or escapes control and invisible characters in untrusted text.
//!
//! Transcripts omit such characters; diffs and questions escape them, since they matter there. Characters that emoji and
//! scripts need are kept: a joiner between two characters that it can join, and one variation selector after a character
//! that has variants.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde::Serialize;

use crate::failure::{Failure, OrFailure as _};

/// Sanitizes text that arrives in pieces. Whether a character is kept depends on its neighbours.
#[derive(Clone, Debug, Default)]
pub struct Sanitizer {
    mode: Mode,
    /// Last character kept.
    previous: Option<char>,
    /// Joiner or carriage return whose treatment depends on the next character.
    held: Option<char>,
}

/// Treatment of control and invisible characters.
#[derive(Clone, Copy, Debug, Default)]
enum Mode {
    /// Omit them, but convert other line ends to `\n`.
    #[default]
    Omit,
    /// Escape them, as in `\u{200b}`.
    Escape,
}

impl Sanitizer {
    /// Creates a sanitizer that escapes characters. The default one omits them.
    pub fn escaping() -> Self {
        Self { mode: Mode::Escape, ..Self::default() }
    }

    /// Sanitizes the next piece and appends it to `out`.
    pub fn push(&mut self, piece: &str, out: &mut String) {
        out.reserve(piece.len());
        piece.chars().for_each(|character| self.character(character, out));
    }

    /// Ends the text: appends a held character and resets the state.
    pub fn end(&mut self, out: &mut String) {
        if let Some(held) = self.held.take() {
            self.resolve(held, None, out);
        }
        self.previous = None;
    }

    /// Sanitizes the next character and appends it to `out`.
    pub fn character(&mut self, character: char, out: &mut String) {
        if let Some(held) = self.held.take() {
            self.resolve(held, Some(character), out);
        }
        match character {
            '\r' | '\u{200C}' | '\u{200D}' => self.held = Some(character),
            _ if is_variation_selector(character) && self.has_variants(character) => {
                self.keep(character, out)
            }
            _ if is_safe(character) => self.keep(character, out),
            _ => self.replace(character, out),
        }
    }

    /// Keeps or replaces a held character, given the next one or the end of the text.
    fn resolve(&mut self, held: char, next: Option<char>, out: &mut String) {
        match (held, next) {
            ('\r', Some('\n')) => {}
            (_, Some(next)) if self.joins(held, next) => self.keep(held, out),
            _ => self.replace(held, out),
        }
    }

    fn keep(&mut self, character: char, out: &mut String) {
        out.push(character);
        self.previous = Some(character);
    }

    fn replace(&mut self, character: char, out: &mut String) {
        match self.mode {
            // Omitting a line end would join the words around it.
            Mode::Omit if matches!(character, '\r' | '\u{2028}' | '\u{2029}') => self.keep('\n', out),
            Mode::Omit => {}
            Mode::Escape => out.extend(character.escape_default()),
        }
    }

    /// Returns whether a joiner or non-joiner has an effect between the last character and the next.
    fn joins(&self, joiner: char, next: char) -> bool {
        let Some(previous) = self.previous else { return false };
        let is_emoji = joiner == '\u{200D}'
            && (is_pictograph(previous) || previous == '\u{FE0F}')
            && is_pictograph(next);
        is_emoji || joiner != '\r' && is_shaped(previous) && is_shaped(next)
    }

    /// Returns whether the selector selects a variant of the last character.
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

fn sanitized(text: &str, mut sanitizer: Sanitizer) -> Cow<'_, str> {
    if text.chars().all(is_safe) {
        return Cow::Borrowed(text);
    }
    let mut out = String::new();
    sanitizer.push(text, &mut out);
    sanitizer.end(&mut out);
    Cow::Owned(out)
}

/// Omits control and invisible characters. Also used for pipes: output of `tee` or `less` ends up on a terminal.
pub fn sanitize(text: &str) -> Cow<'_, str> {
    sanitized(text, Sanitizer::default())
}

/// Escapes control and invisible characters.
pub fn escape_hidden(line: &str) -> Cow<'_, str> {
    sanitized(line, Sanitizer::escaping())
}

/// Escapes control characters, invisible characters and line ends. For untrusted names that are printed within a line.
pub fn to_single_line(text: &str) -> String {
    escape_hidden(text).replace('\n', "\\n")
}

/// Serialises a value as one line of JSON without control or invisible characters.
///
/// # Errors
///
/// A value that cannot be serialised, for example because a spool file cannot be read back.
pub fn json_line(value: &impl Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string(value).or_failed("cannot serialise an event as JSON")?;
    let mut text = escape_json(&text).into_owned();
    text.push('\n');
    Ok(text)
}

/// Escapes characters that JSON permits but a terminal should not receive: DEL, C1 controls, bidirectional overrides and
/// invisible characters. They only occur within strings.
fn escape_json(json: &str) -> Cow<'_, str> {
    if json.chars().all(is_safe) {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len() + 16);
    for character in json.chars() {
        if is_safe(character) {
            out.push(character);
        } else {
            for unit in character.encode_utf16(&mut [0; 2]) {
                let _infallible = write!(out, "\\u{unit:04x}");
            }
        }
    }
    Cow::Owned(out)
}

/// Returns the lines of a unified diff. Carriage returns are stripped if every line of content has one; otherwise they are
/// part of the difference.
pub fn diff_lines(diff: &str) -> impl Iterator<Item = &str> {
    let is_content = |line: &&str| {
        line.starts_with(['+', '-', ' ']) && !line.starts_with("+++ ") && !line.starts_with("--- ")
    };
    let is_crlf = diff.split('\n').filter(is_content).all(|line| line.ends_with('\r'));
    let lines = diff.strip_suffix('\n').unwrap_or(diff).split('\n');
    lines.map(move |line| line.strip_suffix('\r').filter(|_| is_crlf).unwrap_or(line))
}

/// Returns whether a character is always kept.
pub fn is_safe(character: char) -> bool {
    !is_control(character) && !is_invisible(character) && !is_variation_selector(character)
}

/// Returns whether a character is a control character other than newline and tab, or a bidirectional override.
pub fn is_control(character: char) -> bool {
    match character {
        '\n' | '\t' => false,
        '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' => true,
        _ => character.is_control(),
    }
}

/// Returns whether a character is invisible, or blank but not a space. Combining accents are not.
fn is_invisible(character: char) -> bool {
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

/// Returns whether a character selects a variant of the character before it.
pub fn is_variation_selector(character: char) -> bool {
    matches!(
        character,
        '\u{180B}'..='\u{180D}' | '\u{180F}' | '\u{FE00}'..='\u{FE0F}' | '\u{E0100}'..='\u{E01EF}'
    )
}

/// Returns whether a character is an emoji, or becomes one with a variation selector.
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

/// Returns whether a character is in a block of symbols with standardised variants, such as mathematical operators.
fn is_symbol(character: char) -> bool {
    matches!(character, '\u{2100}'..='\u{22FF}' | '\u{2460}'..='\u{24FF}' | '\u{2A00}'..='\u{2AFF}')
}

fn is_han(character: char) -> bool {
    matches!(
        character,
        '\u{3001}'..='\u{3002}' | '\u{3400}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}' | '\u{20000}'..='\u{3FFFD}'
    )
}

/// Returns whether a character belongs to a script in which joiners change the shape of their neighbours: Arabic, Syriac,
/// Mongolian and the Brahmic scripts.
fn is_shaped(character: char) -> bool {
    !is_invisible(character)
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
    fn hidden_characters_are_omitted_or_escaped() {
        let cases = [
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
        for (text, omitted, escaped) in cases {
            assert_eq!((sanitize(text), escape_hidden(text)), (omitted.into(), escaped.into()), "{text:?}");
        }
    }

    #[test]
    fn control_characters_are_escaped_losslessly() {
        let text = "a\x1b[2J\u{9b}2J\x7f\u{202e}é\u{200b}\u{e0041}\n";
        let line = json_line(&text).unwrap();
        assert_eq!(line, "\"a\\u001b[2J\\u009b2J\\u007f\\u202eé\\u200b\\udb40\\udc41\\n\"\n");
        assert_eq!(serde_json::from_str::<String>(&line).unwrap(), text);
    }

    #[test]
    fn emoji_and_script_joiners_are_kept() {
        let cases = [
            "👩\u{200d}👩\u{200d}👧 ❤\u{fe0f}\u{200d}🔥 👍🏽 1\u{fe0f}\u{20e3}",
            "می\u{200c}خواهم",
            "क\u{94d}\u{200d}ष",
            "葛\u{e0100} ©\u{fe0f}",
            "e\u{301}\t日本\n",
        ];
        for text in cases {
            assert_eq!((sanitize(text), escape_hidden(text)), (text.into(), text.into()));
        }
    }

    #[test]
    fn sanitizing_does_not_depend_on_chunking() {
        let text = "a\r\nb\rc\u{200b}👩\u{200d}👧\u{200d}x\u{200c}می\u{200c}خ❤\u{fe0f}\u{fe0f}\u{e0041}z";
        let mut sanitizer = Sanitizer::default();
        let mut shown = String::new();
        for character in text.chars() {
            sanitizer.push(character.encode_utf8(&mut [0; 4]), &mut shown);
        }
        sanitizer.end(&mut shown);
        assert_eq!(shown, sanitize(text));
    }
}
