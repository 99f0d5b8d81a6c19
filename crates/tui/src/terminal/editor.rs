//! Editor for the input: text of several lines, in which the cursor moves by grapheme clusters.
//!
//! Large pastes are folded: a fold takes the place of one character, is deleted as one, and is unfolded when the input is
//! taken. Names of images are folded as well.

mod buffer;
mod layout;

use unicode_segmentation::UnicodeSegmentation as _;

use self::buffer::Element;
pub(crate) use self::layout::Layout;
use super::keys::{Key, KeyCode, Modifiers};

/// Minimum number of lines of a folded paste.
const FOLDED_LINES: usize = 8;

/// Minimum size of a folded paste, in bytes.
const FOLDED_BYTES: usize = 800;

/// Maximum size of a fold that grows while text arrives, in bytes.
const MAX_FOLD: usize = 64 << 10;

/// Maximum number of characters shown individually. A longer text is a fold.
const MAX_ELEMENTS: usize = 64 << 10;

/// Maximum number of states that can be undone.
const MAX_UNDO: usize = 200;

/// Maximum number of elements in all of these states together.
const MAX_UNDO_ELEMENTS: usize = 1 << 20;

/// Text with a cursor.
#[derive(Clone, Debug, Default)]
pub(crate) struct Editor {
    elements: Vec<Element>,
    /// Index of the element after the cursor.
    cursor: usize,
    /// Text of the newest cut.
    cut: Vec<Element>,
    undo: Vec<(Vec<Element>, usize)>,
    last: LastEdit,
    /// Column that moves between rows keep.
    column: Option<usize>,
}

/// Kind of the newest edit, if the next edit can belong to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum LastEdit {
    #[default]
    Other,
    /// A character of a word was typed.
    Typed,
    /// Text was cut. The next cut is added to it.
    Cut,
    /// Text arrived too fast to be typed. More may follow.
    Burst,
}

/// Effect of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EditorKeyEffect {
    /// It moved or changed something, or could have.
    Yes,
    /// It moves up beyond the first row.
    Above,
    /// It moves down beyond the last row.
    Below,
    /// The editor does not handle the key.
    No,
}

impl Editor {
    /// Returns whether there is no text.
    pub(crate) fn is_empty(&self) -> bool {
        self.elements.is_empty()
    }

    /// Returns the text with all pastes unfolded.
    pub(crate) fn text(&self) -> String {
        self.elements.iter().map(Element::text).collect()
    }

    /// Returns the text before the cursor, with a placeholder for each fold.
    pub(crate) fn before_cursor(&self) -> String {
        let before = self.elements.get(..self.cursor).unwrap_or_default();
        before.iter().map(|element| if element.is_fold() { "\u{fffc}" } else { element.text() }).collect()
    }

    /// Takes the text with all pastes unfolded, and leaves the editor empty.
    pub(crate) fn take(&mut self) -> String {
        let text = self.text();
        self.clear();
        text
    }

    /// Removes the text. It can be undone.
    pub(crate) fn clear(&mut self) {
        self.remember(LastEdit::Other);
        self.elements.clear();
        self.set_cursor(0);
    }

    /// Replaces the text, and moves the cursor to its end.
    pub(crate) fn set(&mut self, text: &str) {
        self.remember(LastEdit::Other);
        self.elements =
            if text.len() > MAX_ELEMENTS { vec![Element::fold(text)] } else { buffer::elements(text) };
        self.set_cursor(self.elements.len());
    }

    /// Replaces the `length` bytes before the cursor, which belong to typed text.
    pub(crate) fn replace_before_cursor(&mut self, length: usize, text: &str) {
        self.remember(LastEdit::Other);
        let (mut from, mut left) = (self.cursor, length);
        while left > 0 && from > 0 {
            from -= 1;
            left = left.saturating_sub(self.elements.get(from).map_or(0, |element| element.text().len()));
        }
        self.replace(from, self.cursor, buffer::elements(text));
    }

    /// Inserts text as if it were typed.
    pub(crate) fn insert(&mut self, text: &str) {
        let is_word = text.chars().all(char::is_alphanumeric);
        let joins = is_word && self.last == LastEdit::Typed;
        if !joins {
            self.remember(LastEdit::Other);
        }
        self.last = if is_word { LastEdit::Typed } else { LastEdit::Other };
        // A combining character joins the previous one.
        let from = self.cursor.saturating_sub(1);
        let before = self.elements.get(from..self.cursor).unwrap_or_default();
        let (from, joined) = match before {
            [before] if !before.is_fold() => (from, format!("{}{text}", before.text())),
            _ => (self.cursor, text.to_owned()),
        };
        self.replace(from, self.cursor, buffer::elements(&joined));
    }

    /// Inserts pasted text, folded if it is long.
    pub(crate) fn paste(&mut self, text: &str) {
        self.remember(LastEdit::Other);
        let lines = text.lines().count();
        let elements = if lines >= FOLDED_LINES || text.len() >= FOLDED_BYTES {
            vec![Element::fold(text)]
        } else {
            buffer::elements(text)
        };
        self.replace(self.cursor, self.cursor, elements);
    }

    /// Inserts text that is shown as a label, such as the name of an image. Blanks separate it from the text around it.
    pub(crate) fn insert_labelled(&mut self, text: &str, label: String) {
        self.remember(LastEdit::Other);
        let before = self.elements.get(..self.cursor).unwrap_or_default().last();
        let gap = if before.is_none_or(Element::is_blank) { "" } else { " " };
        let mut elements = buffer::elements(gap);
        elements.push(Element::labelled(text, label));
        elements.extend(buffer::elements(" "));
        self.replace(self.cursor, self.cursor, elements);
    }

    /// Inserts text that arrives too fast to be typed, in pieces. Consecutive long pieces form one fold.
    pub(crate) fn burst(&mut self, text: &str) {
        let before = self.cursor.checked_sub(1).and_then(|before| self.elements.get(before));
        let is_more = |fold: &&Element| fold.is_fold() && fold.text().len() + text.len() <= MAX_FOLD;
        match before.filter(|_| self.last == LastEdit::Burst).filter(is_more) {
            Some(fold) => {
                let fold = Element::fold(&format!("{}{text}", fold.text()));
                self.replace(self.cursor - 1, self.cursor, vec![fold]);
            }
            None => self.paste(text),
        }
        self.last = LastEdit::Burst;
    }

    /// Returns the bytes of the text.
    pub(crate) fn bytes(&self) -> usize {
        self.elements.iter().map(|element| element.text().len()).sum()
    }

    /// Returns whether no more text can be typed.
    pub(crate) fn is_full(&self) -> bool {
        self.elements.len() >= MAX_ELEMENTS
    }

    /// Returns the rows that show the text, and the cursor position.
    pub(crate) fn layout(&self, columns: usize) -> Layout {
        Layout::new(&self.elements, self.cursor, columns)
    }

    /// As [`layout`](Self::layout), with blanks before each row.
    pub(crate) fn indented_layout(&self, columns: usize, indent: usize) -> Layout {
        // The cursor may be after a full row.
        self.layout(columns.saturating_sub(indent + 1)).indented(indent)
    }

    /// Handles a key. `columns` is the width in which the text is shown.
    pub(crate) fn key(&mut self, key: Key, columns: usize) -> EditorKeyEffect {
        let Key { code, modifiers } = key;
        let Modifiers { shift, alt, ctrl } = modifiers;
        match (code, ctrl, alt) {
            (KeyCode::Up, false, false) => return self.move_rows(columns, false),
            (KeyCode::Down, false, false) => return self.move_rows(columns, true),
            _ => {}
        }
        match (code, ctrl, alt) {
            (KeyCode::Char(character), false, false) => self.insert(character.encode_utf8(&mut [0; 4])),
            (KeyCode::Enter, false, false) if shift => self.insert("\n"),
            (KeyCode::Char('j'), true, false) => self.insert("\n"),
            (KeyCode::Left, false, false) | (KeyCode::Char('b'), true, false) => self.move_by(-1),
            (KeyCode::Right, false, false) | (KeyCode::Char('f'), true, false) => self.move_by(1),
            (KeyCode::Left, _, _) | (KeyCode::Char('b'), false, true) => self.set_cursor(self.word_before()),
            (KeyCode::Right, _, _) | (KeyCode::Char('f'), false, true) => self.set_cursor(self.word_after()),
            (KeyCode::Home, true, _) => self.set_cursor(0),
            (KeyCode::End, true, _) => self.set_cursor(self.elements.len()),
            (KeyCode::Home, ..) | (KeyCode::Char('a'), true, false) => self.set_cursor(self.line_start()),
            (KeyCode::End, ..) | (KeyCode::Char('e'), true, false) => self.set_cursor(self.line_end()),
            (KeyCode::Backspace, false, false) | (KeyCode::Char('h'), true, false) => self.delete(-1),
            (KeyCode::Delete, false, false) | (KeyCode::Char('d'), true, false) => self.delete(1),
            (KeyCode::Backspace, ..) | (KeyCode::Char('w'), true, false) => self.cut(self.word_before()),
            (KeyCode::Delete, ..) | (KeyCode::Char('d'), false, true) => self.cut(self.word_after()),
            (KeyCode::Char('u'), true, false) => self.cut(self.line_start()),
            (KeyCode::Char('k'), true, false) => self.cut_to_line_end(),
            (KeyCode::Char('y'), true, false) => self.yank(),
            (KeyCode::Char('_' | '/'), true, false) => self.undo(),
            _ => return EditorKeyEffect::No,
        }
        EditorKeyEffect::Yes
    }

    /// Moves the cursor one row up or down.
    fn move_rows(&mut self, columns: usize, down: bool) -> EditorKeyEffect {
        let layout = self.layout(columns);
        let column = self.column.unwrap_or(layout.cursor.1);
        match layout.cursor_in_next_row(down, column) {
            Some(cursor) => {
                self.set_cursor(cursor);
                self.column = Some(column);
                EditorKeyEffect::Yes
            }
            None if down => EditorKeyEffect::Below,
            None => EditorKeyEffect::Above,
        }
    }

    fn set_cursor(&mut self, cursor: usize) {
        self.cursor = cursor.min(self.elements.len());
        self.column = None;
        if self.last != LastEdit::Typed {
            self.last = LastEdit::Other;
        }
    }

    fn move_by(&mut self, distance: isize) {
        self.last = LastEdit::Other;
        self.set_cursor(self.cursor.saturating_add_signed(distance));
    }

    fn is_line_end(&self, index: usize) -> bool {
        self.elements.get(index).is_none_or(Element::is_line_end)
    }

    fn is_word(&self, index: usize) -> bool {
        self.elements.get(index).is_some_and(Element::is_word)
    }

    fn line_start(&self) -> usize {
        (0..self.cursor).rev().find(|index| self.is_line_end(*index)).map_or(0, |index| index + 1)
    }

    fn line_end(&self) -> usize {
        (self.cursor..self.elements.len())
            .find(|index| self.is_line_end(*index))
            .unwrap_or(self.elements.len())
    }

    fn word_before(&self) -> usize {
        let end = (0..self.cursor).rev().find(|index| self.is_word(*index)).map_or(0, |index| index + 1);
        (0..end).rev().find(|index| !self.is_word(*index)).map_or(0, |index| index + 1)
    }

    fn word_after(&self) -> usize {
        let length = self.elements.len();
        let start = (self.cursor..length).find(|index| self.is_word(*index)).unwrap_or(length);
        (start..length).find(|index| !self.is_word(*index)).unwrap_or(length)
    }

    /// Deletes the element before or after the cursor.
    fn delete(&mut self, distance: isize) {
        let other = self.cursor.saturating_add_signed(distance).min(self.elements.len());
        if other != self.cursor {
            self.remember(LastEdit::Other);
            self.replace(other.min(self.cursor), other.max(self.cursor), Vec::new());
        }
    }

    /// Cuts the text between the cursor and another position.
    fn cut(&mut self, other: usize) {
        if other == self.cursor {
            return;
        }
        let (from, to) = (other.min(self.cursor), other.max(self.cursor));
        let is_first = self.last != LastEdit::Cut;
        let taken = self.elements.get(from..to).unwrap_or_default().to_vec();
        let before = if is_first { Vec::new() } else { std::mem::take(&mut self.cut) };
        self.cut = if other < self.cursor { [taken, before].concat() } else { [before, taken].concat() };
        self.remember(LastEdit::Cut);
        self.replace(from, to, Vec::new());
        self.last = LastEdit::Cut;
    }

    /// Cuts to the end of the line, or the line end itself.
    fn cut_to_line_end(&mut self) {
        let end = self.line_end();
        self.cut(if end == self.cursor { end + 1 } else { end }.min(self.elements.len()));
    }

    /// Inserts the text of the newest cut.
    fn yank(&mut self) {
        self.remember(LastEdit::Other);
        self.replace(self.cursor, self.cursor, self.cut.clone());
    }

    fn undo(&mut self) {
        if let Some((elements, cursor)) = self.undo.pop() {
            self.elements = elements;
            self.set_cursor(cursor);
            self.last = LastEdit::Other;
        }
    }

    /// Keeps the state for undo.
    fn remember(&mut self, edit: LastEdit) {
        if self.undo.len() == MAX_UNDO {
            self.undo.remove(0);
        }
        self.undo.push((self.elements.clone(), self.cursor));
        let mut kept: usize = self.undo.iter().map(|(elements, _)| elements.len()).sum();
        while kept > MAX_UNDO_ELEMENTS {
            kept -= self.undo.remove(0).0.len();
        }
        self.last = edit;
    }

    /// Replaces a range, and moves the cursor after the replacement.
    fn replace(&mut self, from: usize, to: usize, elements: Vec<Element>) {
        let to = to.min(self.elements.len());
        let cursor = from.min(to) + elements.len();
        self.elements.splice(from.min(to)..to, elements);
        let last = self.last;
        self.set_cursor(cursor);
        self.last = last;
    }
}

/// Returns the grapheme clusters of a text.
fn graphemes(text: &str) -> impl Iterator<Item = &str> {
    text.graphemes(true)
}

#[cfg(test)]
mod tests;
