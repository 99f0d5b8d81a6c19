//! Breaks text into rows.
//!
//! Complete lines are broken at words or between characters. Text that is written to a terminal while it arrives is broken
//! by the same [`Rows`], word by word.

use std::mem;

use unicode_segmentation::UnicodeSegmentation as _;

use super::line::{Face, Span, StyledLine};
use super::width;

/// Columns between two tab stops of expanded text.
const TAB: usize = 4;

/// Columns between two tab stops of a terminal.
const TERMINAL_TAB: usize = 8;

/// Minimum number of columns beside a margin. With less room, rows have no margin.
const MIN_ROOM: usize = 4;

/// Prefixes of the rows of a line.
#[derive(Clone, Debug, Default)]
pub(crate) struct Margins {
    /// Prefix of the first row.
    pub(crate) first: StyledLine,
    /// Prefix of every row but the first.
    pub(crate) rest: StyledLine,
}

impl Margins {
    /// Returns margins of blanks.
    pub(crate) fn blank(columns: usize) -> Self {
        let blank = StyledLine::plain(" ".repeat(columns));
        Self { first: blank.clone(), rest: blank }
    }
}

/// Breaks a line at words. Words that are wider than a row are broken between characters. Every row has at least one
/// character, so that no text is lost if it does not fit.
pub(crate) fn wrap(line: &StyledLine, columns: usize, margins: &Margins) -> Vec<StyledLine> {
    if let Some(whole) = without_room(line, columns, margins) {
        return wrap(&whole, columns, &Margins::default());
    }
    let mut rows = Rows::new(columns, margins);
    for word in words(line) {
        rows.push(word);
    }
    rows.finish()
}

/// Breaks a line between characters, as for code.
pub(crate) fn break_anywhere(line: &StyledLine, columns: usize, margins: &Margins) -> Vec<StyledLine> {
    if let Some(whole) = without_room(line, columns, margins) {
        return break_anywhere(&whole, columns, &Margins::default());
    }
    let mut rows = Rows::new(columns, margins);
    for word in words(line) {
        rows.fill(word);
    }
    rows.finish()
}

/// Returns the line with its margin as a part of it, if there is no room for a margin.
fn without_room(line: &StyledLine, columns: usize, margins: &Margins) -> Option<StyledLine> {
    if margins.first.is_empty() || margins.first.columns() + MIN_ROOM <= columns {
        return None;
    }
    let is_blank = margins.first.text().trim().is_empty();
    let mut whole = if is_blank { StyledLine::default() } else { margins.first.clone() };
    whole.append(line.clone());
    Some(whole)
}

/// Rows under construction.
#[derive(Debug)]
pub(super) struct Rows {
    columns: usize,
    /// Prefix of every row but the first.
    margin: StyledLine,
    /// Whether words that are wider than a row are broken. Otherwise the terminal breaks them.
    breaks_words: bool,
    rows: Vec<StyledLine>,
    row: StyledLine,
    used: usize,
    /// Blanks that are dropped if the row ends here.
    gap: Vec<Span>,
    is_row_empty: bool,
}

impl Rows {
    fn new(columns: usize, margins: &Margins) -> Self {
        Self {
            columns: columns.max(1),
            margin: margins.rest.clone(),
            breaks_words: true,
            rows: Vec::new(),
            row: margins.first.clone(),
            used: margins.first.columns(),
            gap: Vec::new(),
            is_row_empty: true,
        }
    }

    /// Returns the rows of a line that is written while it arrives. It starts with blanks, in a row whose first columns
    /// are already used.
    pub(super) fn streamed(columns: usize, used: usize, blanks: &str, margin: StyledLine) -> Self {
        Self {
            columns,
            margin,
            breaks_words: false,
            rows: Vec::new(),
            row: StyledLine::plain(blanks),
            used: blanks.chars().fold(used, advance),
            gap: Vec::new(),
            is_row_empty: true,
        }
    }

    /// Sets the width of the current row and of future rows.
    pub(super) fn resize(&mut self, columns: usize) {
        self.columns = columns;
    }

    /// Appends a word or the blanks between two words.
    pub(super) fn push(&mut self, word: Word) {
        let is_first = self.rows.is_empty() && self.is_row_empty;
        if !is_first && word.is_blank() {
            self.gap.extend(word.pieces);
            return;
        }
        let start = self.gap.iter().flat_map(|span| span.text.chars()).fold(self.used, advance);
        if !self.is_row_empty && start + word.columns > self.columns {
            self.gap.clear();
            self.next_row();
        } else {
            self.used = start;
        }
        for Span { text, face } in mem::take(&mut self.gap) {
            self.row.push(text, face);
        }
        self.fill(word);
    }

    fn fill(&mut self, word: Word) {
        if !self.breaks_words {
            for Span { text, face } in word.pieces {
                self.row.push(text, face);
            }
            self.used += word.columns;
            if self.used > self.columns {
                // The terminal breaks the word at its last column.
                self.used %= self.columns + 1;
            }
            self.is_row_empty = false;
            return;
        }
        for Span { text, face } in &word.pieces {
            for grapheme in text.graphemes(true) {
                let wide = width::columns(grapheme);
                if !self.is_row_empty && self.used + wide > self.columns {
                    self.next_row();
                }
                self.row.push(grapheme, *face);
                self.used += wide;
                self.is_row_empty = false;
            }
        }
    }

    fn next_row(&mut self) {
        let mut next = self.margin.clone();
        self.used = next.columns();
        if self.used + MIN_ROOM > self.columns {
            (self.used, next) = (0, StyledLine::default());
        }
        self.rows.push(mem::replace(&mut self.row, next));
        self.is_row_empty = true;
    }

    /// Takes the text of the rows. It continues the text taken before.
    pub(super) fn take_text(&mut self) -> String {
        let complete = self.rows.drain(..).map(|row| row.text() + "\n");
        complete.chain([mem::take(&mut self.row).text()]).collect()
    }

    fn finish(mut self) -> Vec<StyledLine> {
        self.rows.push(self.row);
        self.rows
    }
}

/// Piece of a line that is not broken if it fits a row.
#[derive(Debug, Default)]
pub(super) struct Word {
    pieces: Vec<Span>,
    columns: usize,
}

impl Word {
    /// Returns a word in the default face.
    pub(super) fn plain(text: String) -> Self {
        Self { columns: width::columns(&text), pieces: vec![Span { text, face: Face::PLAIN }] }
    }

    fn push(&mut self, character: char, face: Face) {
        self.columns += width::char_columns(character);
        match self.pieces.last_mut() {
            Some(last) if last.face == face => last.text.push(character),
            Some(_) | None => self.pieces.push(Span { text: character.to_string(), face }),
        }
    }

    fn is_blank(&self) -> bool {
        self.pieces.iter().all(|piece| piece.text.chars().all(is_blank))
    }
}

/// Splits a line into blanks and words.
fn words(line: &StyledLine) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    let mut breaks = Breaks::default();
    for Span { text, face } in line.spans() {
        for character in text.chars() {
            let starts_word = breaks.may_break_before(character) || words.is_empty();
            if starts_word {
                words.push(Word::default());
            }
            if let Some(word) = words.last_mut() {
                word.push(character, *face);
            }
        }
    }
    words
}

/// Finds where a row may end, character by character.
#[derive(Debug, Default)]
pub(super) struct Breaks {
    last: Option<char>,
    /// Whether the last character that joins no other takes two columns.
    is_wide: bool,
}

impl Breaks {
    /// Returns whether a row may end between the last character and this one: between blanks and words, and in scripts
    /// without blanks between characters, but not before closing punctuation or within a joined sequence.
    pub(super) fn may_break_before(&mut self, character: char) -> bool {
        let columns = width::char_columns(character);
        let last = self.last.replace(character);
        let is_joined = last == Some('\u{200D}')
            || columns == 0
            || matches!(character, '\u{FE0F}' | '\u{1F3FB}'..='\u{1F3FF}');
        if is_joined {
            return false;
        }
        let was_wide = mem::replace(&mut self.is_wide, columns == 2);
        let Some(last) = last else { return false };
        let is_closing = "、。，．）」』】〉》！？：；".contains(character);
        is_blank(last) != is_blank(character) || (was_wide || self.is_wide) && !is_closing
    }
}

/// Returns whether words are separated by this character.
pub(super) fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t')
}

/// Returns the column after a character on a terminal, which expands tabs.
pub(super) fn advance(column: usize, character: char) -> usize {
    if character == '\t' {
        column + TERMINAL_TAB - column % TERMINAL_TAB
    } else {
        column + width::char_columns(character)
    }
}

/// Returns a text with tabs replaced by blanks.
pub(crate) fn expand_tabs(text: &str) -> String {
    let mut expanded = String::with_capacity(text.len());
    let mut column = 0;
    for character in text.chars() {
        if character == '\t' {
            let blanks = TAB - column % TAB;
            expanded.push_str(&" ".repeat(blanks));
            column += blanks;
        } else {
            expanded.push(character);
            column += width::char_columns(character);
        }
    }
    expanded
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rows(text: &str, columns: usize, margin: usize) -> Vec<String> {
        let margins = Margins { first: StyledLine::default(), rest: StyledLine::plain(" ".repeat(margin)) };
        wrap(&StyledLine::plain(text), columns, &margins).iter().map(StyledLine::text).collect()
    }

    #[test]
    fn lines_are_broken_at_words() {
        let cases: &[(&str, usize, usize, &[&str])] = &[
            ("one two three", 20, 0, &["one two three"]),
            ("one two three", 8, 0, &["one two", "three"]),
            ("one two three", 8, 2, &["one two", "  three"]),
            ("one two three", 9, 2, &["one two", "  three"]),
            ("abcdefghij", 4, 0, &["abcd", "efgh", "ij"]),
            ("to abcdefghij", 4, 0, &["to", "abcd", "efgh", "ij"]),
            ("one   two", 4, 0, &["one", "two"]),
            ("  one two", 6, 0, &["  one", "two"]),
            ("日本語です。", 6, 0, &["日本語", "です。"]),
            ("日本語。です", 6, 0, &["日本", "語。で", "す"]),
            ("日本。ab cd", 6, 0, &["日本。", "ab cd"]),
            ("ab👍🏽👩\u{200d}👧 c", 6, 0, &["ab👍🏽", "👩\u{200d}👧 c"]),
            ("", 4, 0, &[""]),
            ("x y z", 3, 5, &["x y", "z"]),
        ];
        for (text, columns, margin, expected) in cases {
            assert_eq!(rows(text, *columns, *margin), *expected, "{text:?} in {columns}");
        }
    }

    #[test]
    fn code_is_broken_between_characters() {
        let line = StyledLine::plain("let x =  1;");
        let rows = break_anywhere(&line, 4, &Margins::default());
        assert_eq!(rows.iter().map(StyledLine::text).collect::<Vec<_>>(), ["let ", "x = ", " 1;"]);
    }

    #[test]
    fn tabs_reach_the_next_stop() {
        assert_eq!(expand_tabs("\ta\tb日\tc"), "    a   b日 c");
    }

    proptest! {
        #[test]
        fn rows_fit_and_keep_all_words(text in "[ a-z日。👍é]{0,60}", columns in 2_usize..20) {
            let wrapped = wrap(&StyledLine::plain(text.clone()), columns, &Margins::default());
            for row in &wrapped {
                prop_assert!(row.columns() <= columns, "{:?}", row.text());
            }
            let kept: String = wrapped.iter().flat_map(|row| row.text().chars().collect::<Vec<_>>()).collect();
            let without_blanks = |text: &str| text.chars().filter(|character| *character != ' ').collect::<String>();
            prop_assert_eq!(without_blanks(&kept), without_blanks(&text));
            let broken = break_anywhere(&StyledLine::plain(text.clone()), columns, &Margins::default());
            let kept: String = broken.iter().map(StyledLine::text).collect();
            prop_assert_eq!(kept, text);
        }
    }
}
