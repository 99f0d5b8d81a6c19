//! Breaks lines into rows.

use unicode_segmentation::UnicodeSegmentation as _;

use super::line::{Face, Line, Span};
use crate::render::width;

/// Columns between two tab stops.
const TAB: usize = 4;

/// Minimum number of columns beside a margin. With less room, rows have no margin.
const MIN_ROOM: usize = 4;

/// Prefixes of the rows of a line.
#[derive(Clone, Debug, Default)]
pub(crate) struct Margins {
    pub(crate) first: Line,
    /// Prefix of every row but the first.
    pub(crate) rest: Line,
}

/// Piece of a line that is not broken if it fits a row.
struct Word {
    pieces: Vec<Span>,
    columns: usize,
}

impl Margins {
    /// Returns margins of blanks.
    pub(crate) fn blank(columns: usize) -> Self {
        let blank = Line::plain(" ".repeat(columns));
        Self { first: blank.clone(), rest: blank }
    }
}

/// Breaks a line at words. Words that are wider than a row are broken between characters. Every row has at least one
/// character, so that no text is lost if it does not fit.
pub(crate) fn wrap(line: &Line, columns: usize, margins: &Margins) -> Vec<Line> {
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
pub(crate) fn break_anywhere(line: &Line, columns: usize, margins: &Margins) -> Vec<Line> {
    if let Some(whole) = without_room(line, columns, margins) {
        return break_anywhere(&whole, columns, &Margins::default());
    }
    let mut rows = Rows::new(columns, margins);
    for word in words(line) {
        rows.fill(&word);
    }
    rows.finish()
}

/// Returns the line with its margin as a part of it, if there is no room for a margin.
fn without_room(line: &Line, columns: usize, margins: &Margins) -> Option<Line> {
    if margins.first.is_empty() || margins.first.columns() + MIN_ROOM <= columns {
        return None;
    }
    let is_blank = margins.first.text().trim().is_empty();
    let mut whole = if is_blank { Line::default() } else { margins.first.clone() };
    whole.append(line.clone());
    Some(whole)
}

/// Rows under construction.
struct Rows<'a> {
    columns: usize,
    margins: &'a Margins,
    rows: Vec<Line>,
    row: Line,
    used: usize,
    /// Blanks that are dropped if the row ends here.
    gap: Vec<Span>,
    is_row_empty: bool,
}

impl<'a> Rows<'a> {
    fn new(columns: usize, margins: &'a Margins) -> Self {
        let (row, used) = (margins.first.clone(), margins.first.columns());
        Self {
            columns: columns.max(1),
            margins,
            rows: Vec::new(),
            row,
            used,
            gap: Vec::new(),
            is_row_empty: true,
        }
    }

    fn push(&mut self, word: Word) {
        let is_first = self.rows.is_empty() && self.is_row_empty;
        if !is_first && word.pieces.iter().all(|piece| piece.text.trim().is_empty()) {
            self.gap.extend(word.pieces);
            return;
        }
        let gap: usize = self.gap.iter().map(|span| width::columns(&span.text)).sum();
        if !self.is_row_empty && self.used + gap + word.columns > self.columns {
            self.gap.clear();
            self.next_row();
        }
        let gap = std::mem::take(&mut self.gap);
        for Span { text, face } in gap.into_iter().filter(|_| !self.is_row_empty) {
            self.used += width::columns(&text);
            self.row.push(text, face);
        }
        self.fill(&word);
    }

    fn fill(&mut self, word: &Word) {
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
        let next = self.margins.rest.clone();
        self.used = next.columns();
        let next = if self.used + MIN_ROOM > self.columns {
            self.used = 0;
            Line::default()
        } else {
            next
        };
        self.rows.push(std::mem::replace(&mut self.row, next));
        self.is_row_empty = true;
    }

    fn finish(mut self) -> Vec<Line> {
        self.rows.push(self.row);
        self.rows
    }
}

/// Splits a line into blanks and words. Scripts without blanks may be broken between characters.
fn words(line: &Line) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    let mut last = None;
    for Span { text, face } in line.spans() {
        for grapheme in text.graphemes(true) {
            let columns = width::columns(grapheme);
            let kind = (grapheme == " ", columns == 2 && !is_closing(grapheme));
            let joins = last.is_some_and(|last: (bool, bool)| {
                last.0 == kind.0 && !kind.1 && (!last.1 || is_closing(grapheme))
            });
            match words.last_mut().filter(|_| joins) {
                Some(word) => word.push(grapheme, *face, columns),
                None => {
                    let mut word = Word { pieces: Vec::new(), columns: 0 };
                    word.push(grapheme, *face, columns);
                    words.push(word);
                }
            }
            last = Some(kind);
        }
    }
    words
}

impl Word {
    fn push(&mut self, grapheme: &str, face: Face, columns: usize) {
        self.columns += columns;
        match self.pieces.last_mut() {
            Some(last) if last.face == face => last.text.push_str(grapheme),
            Some(_) | None => self.pieces.push(Span { text: grapheme.to_owned(), face }),
        }
    }
}

/// Returns whether a row must not start with this grapheme.
fn is_closing(grapheme: &str) -> bool {
    grapheme.chars().all(|character| "、。，．）」』】〉》！？：；".contains(character))
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
        let margins = Margins { first: Line::default(), rest: Line::plain(" ".repeat(margin)) };
        wrap(&Line::plain(text), columns, &margins).iter().map(Line::text).collect()
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
            ("", 4, 0, &[""]),
            ("x y z", 3, 5, &["x y", "z"]),
        ];
        for (text, columns, margin, expected) in cases {
            assert_eq!(rows(text, *columns, *margin), *expected, "{text:?} in {columns}");
        }
    }

    #[test]
    fn code_is_broken_between_characters() {
        let line = Line::plain("let x =  1;");
        let rows = break_anywhere(&line, 4, &Margins::default());
        assert_eq!(rows.iter().map(Line::text).collect::<Vec<_>>(), ["let ", "x = ", " 1;"]);
    }

    #[test]
    fn tabs_reach_the_next_stop() {
        assert_eq!(expand_tabs("\ta\tb日\tc"), "    a   b日 c");
    }

    proptest! {
        #[test]
        fn rows_fit_and_keep_all_words(text in "[ a-z日。👍é]{0,60}", columns in 2_usize..20) {
            let wrapped = wrap(&Line::plain(text.clone()), columns, &Margins::default());
            for row in &wrapped {
                prop_assert!(row.columns() <= columns, "{:?}", row.text());
            }
            let kept: String = wrapped.iter().flat_map(|row| row.text().chars().collect::<Vec<_>>()).collect();
            let without_blanks = |text: &str| text.chars().filter(|character| *character != ' ').collect::<String>();
            prop_assert_eq!(without_blanks(&kept), without_blanks(&text));
            let broken = break_anywhere(&Line::plain(text.clone()), columns, &Margins::default());
            let kept: String = broken.iter().map(Line::text).collect();
            prop_assert_eq!(kept, text);
        }
    }
}
