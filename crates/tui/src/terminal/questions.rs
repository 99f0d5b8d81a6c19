//! Questions of MCP servers that wait for an answer.

use super::editor::{Editor, EditorKeyEffect};
use super::keys::{Key, KeyCode};
use crate::approve::Question;
use crate::render::{Colour, Face, Margins, StyledLine, expand_tabs, wrap};

/// Columns before details and the answer.
const INDENT: usize = 4;

/// Word before an answer in plain mode.
const ANSWER: &str = "answer";

/// Hint about the form of an answer in plain mode.
const IN_LINES: &str = "`answer VALUE` answers, `answer !` refuses";

/// Pending questions, in order.
#[derive(Debug, Default)]
pub(crate) struct Questions {
    pending: Vec<Question>,
    /// Index of the question that is shown.
    selected: usize,
    /// Whether keys answer. Otherwise they go to the input editor.
    is_focused: bool,
    answer: Editor,
}

impl Questions {
    /// Adds a question. If no question was pending before, it gets the keys unless the user is writing.
    pub(crate) fn add(&mut self, question: Question, is_writing: bool) {
        if self.pending.is_empty() {
            self.is_focused = !is_writing;
        }
        self.pending.push(question);
    }

    /// Removes the questions that no server waits for any more.
    pub(crate) fn remove_withdrawn(&mut self) {
        while let Some(index) = self.pending.iter().position(Question::is_withdrawn) {
            self.remove(index);
        }
    }

    /// Returns the number of pending questions.
    pub(crate) fn len(&self) -> usize {
        self.pending.len()
    }

    /// Returns whether no question is pending.
    pub(crate) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// Returns whether keys answer.
    pub(crate) fn is_focused(&self) -> bool {
        self.is_focused
    }

    /// Returns whether an answer is being written.
    pub(crate) fn is_writing(&self) -> bool {
        self.is_focused && !self.answer.is_empty()
    }

    /// Gives the keys to the pending questions, if any, or to the input editor.
    pub(crate) fn focus(&mut self, is_focused: bool) {
        self.is_focused = is_focused && !self.pending.is_empty();
    }

    /// Inserts pasted text.
    pub(crate) fn paste(&mut self, text: &str) {
        self.answer.insert(text);
    }

    /// Handles a key. Enter answers the question that is shown, Escape refuses it. Returns a line about that for the
    /// transcript.
    pub(crate) fn key(&mut self, key: Key, columns: usize) -> Option<StyledLine> {
        if key.code == KeyCode::Escape {
            let question = self.remove(self.selected)?;
            let told = transcript_line(&question, "refused");
            question.refuse();
            return Some(told);
        }
        if key.code == KeyCode::Enter {
            let answer = self.answer.take();
            let question = self.remove(self.selected)?;
            let told = transcript_line(&question, "answered");
            question.answer(answer);
            return Some(told);
        }
        // With a text, the arrow keys move in the text.
        if key.code == KeyCode::Up && self.answer.is_empty() {
            self.selected = self.selected.saturating_sub(1);
        } else if key.code == KeyCode::Down && self.answer.is_empty() {
            self.selected = (self.selected + 1).min(self.pending.len().saturating_sub(1));
        } else {
            match self.answer.key(key, columns) {
                EditorKeyEffect::Yes
                | EditorKeyEffect::Above
                | EditorKeyEffect::Below
                | EditorKeyEffect::No => {}
            }
        }
        None
    }

    /// Handles a line in plain mode as an answer to the first question. Returns a line about that for the transcript, or
    /// `None` if the line is not an answer.
    pub(crate) fn line(&mut self, line: &str) -> Option<StyledLine> {
        let answer = line.trim().strip_prefix(ANSWER)?;
        if !answer.is_empty() && !answer.starts_with(char::is_whitespace) {
            return None;
        }
        let question = self.remove(0)?;
        let told = transcript_line(&question, "answered");
        question.answer(answer.trim());
        Some(told)
    }

    /// Returns the rows about the newest question, for the transcript. In plain mode they show how to answer.
    pub(crate) fn newest(&self, columns: usize, is_in_lines: bool) -> Vec<StyledLine> {
        let Some(question) = self.pending.last() else { return Vec::new() };
        let mut rows = head(question, None, columns);
        rows.extend(details(question, columns));
        if is_in_lines {
            rows.push(StyledLine::new(format!("  {}", question.prompt.trim_end()), Face::PLAIN));
            rows.push(StyledLine::new(format!("  {IN_LINES}"), Face::BOLD));
        }
        rows
    }

    /// Returns the number of rows that the details of the newest question need.
    pub(crate) fn newest_details(&self, columns: usize) -> usize {
        self.pending.last().map_or(0, |question| details(question, columns).len())
    }

    /// Returns at most `height` rows about the question that is shown, and the cursor position.
    pub(crate) fn rows(&self, columns: usize, height: usize) -> (Vec<StyledLine>, Option<(usize, usize)>) {
        let Some(question) = self.pending.get(self.selected) else { return (Vec::new(), None) };
        // If there is little room, the rest was printed above.
        let (mut keys, cursor) = self.keys(question, columns);
        keys.truncate(height);
        let count = self.pending.len();
        let mut rows = head(question, (count > 1).then_some((self.selected + 1, count)), columns);
        rows.extend(details(question, columns));
        rows.truncate(height - keys.len());
        let cursor = cursor.map(|(row, column)| (rows.len() + row, column));
        rows.extend(keys);
        (rows, cursor)
    }

    fn keys(&self, question: &Question, columns: usize) -> (Vec<StyledLine>, Option<(usize, usize)>) {
        if !self.is_focused {
            return (vec![StyledLine::new("  Alt+A answers", Face::BOLD)], None);
        }
        let label = StyledLine::new(format!("{} · Esc refuses", question.prompt.trim_end()), Face::BOLD);
        let mut rows = wrap(&label, columns, &Margins::blank(2));
        let layout = self.answer.indented_layout(columns, INDENT);
        let first = rows.len();
        rows.extend(layout.rows);
        (rows, Some((first + layout.cursor.0, layout.cursor.1)))
    }

    /// Removes a question. The text being written belongs to the question that is shown, and is removed with it.
    fn remove(&mut self, index: usize) -> Option<Question> {
        if index >= self.pending.len() {
            return None;
        }
        if index == self.selected {
            self.answer.take();
        } else if index < self.selected {
            self.selected -= 1;
        }
        let question = self.pending.remove(index);
        self.selected = self.selected.min(self.pending.len().saturating_sub(1));
        self.is_focused &= !self.pending.is_empty();
        Some(question)
    }
}

fn head(question: &Question, position: Option<(usize, usize)>, columns: usize) -> Vec<StyledLine> {
    let mut rows = Vec::new();
    for (index, text) in question.text.lines().enumerate() {
        let mut line = match index {
            0 => StyledLine::new("? ", Face::coloured(Colour::Yellow)),
            _ => StyledLine::plain("  "),
        };
        line.push(expand_tabs(text), Face::BOLD);
        if let (0, Some((number, count))) = (index, position) {
            line.push(format!(" [{number} of {count}]"), Face::DIM);
        }
        rows.extend(wrap(&line, columns, &Margins::default()));
    }
    rows
}

fn details(question: &Question, columns: usize) -> Vec<StyledLine> {
    let lines = question.details.iter().flat_map(|text| text.lines());
    lines
        .flat_map(|line| wrap(&StyledLine::plain(expand_tabs(line)), columns, &Margins::blank(INDENT)))
        .collect()
}

/// Returns the line about a question for the transcript, without the answer, which may be a secret.
fn transcript_line(question: &Question, what: &str) -> StyledLine {
    let first = question.text.lines().next().unwrap_or_default();
    StyledLine::new(format!("{what}: "), Face::BOLD).and(expand_tabs(first), Face::DIM)
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;
    use tokio::sync::oneshot::error::TryRecvError;

    use super::*;

    fn asked(questions: &mut Questions, text: &str, is_writing: bool) -> oneshot::Receiver<String> {
        let (question, answer) = Question::new(text, vec!["name".to_owned()], "Value: ");
        questions.add(question, is_writing);
        answer
    }

    fn types(questions: &mut Questions, text: &str) {
        for character in text.chars() {
            questions.key(Key::plain(KeyCode::Char(character)), 40);
        }
    }

    fn shown(questions: &Questions) -> Vec<String> {
        questions.rows(40, 10).0.iter().map(StyledLine::text).collect()
    }

    #[test]
    fn questions_wait_in_a_list_and_are_answered_or_refused() {
        let mut questions = Questions::default();
        let mut first = asked(&mut questions, "server `a` asks: Who?", false);
        let mut second = asked(&mut questions, "server `b` asks: Where?", true);
        let rows = ["? server `a` asks: Who? [1 of 2]", "    name", "  Value: · Esc refuses", "    "];
        assert_eq!(shown(&questions), rows);
        questions.key(Key::plain(KeyCode::Down), 40);
        assert_eq!(shown(&questions)[0], "? server `b` asks: Where? [2 of 2]");
        types(&mut questions, "here");
        questions.key(Key::plain(KeyCode::Up), 40);
        let told = questions.key(Key::plain(KeyCode::Enter), 40).unwrap();
        assert_eq!(told.text(), "answered: server `b` asks: Where?");
        assert_eq!(second.try_recv(), Ok("here".to_owned()));
        assert_eq!(shown(&questions)[0], "? server `a` asks: Who?");
        types(&mut questions, "half");
        let told = questions.key(Key::plain(KeyCode::Escape), 40).unwrap();
        assert_eq!(told.text(), "refused: server `a` asks: Who?");
        assert_eq!(first.try_recv(), Ok("!".to_owned()));
        assert!(questions.is_empty() && !questions.is_focused());
    }

    #[test]
    fn a_question_that_comes_while_something_is_written_takes_no_keys() {
        let mut questions = Questions::default();
        let mut answer = asked(&mut questions, "Who?", true);
        assert!(!questions.is_focused());
        assert_eq!(shown(&questions), ["? Who?", "    name", "  Alt+A answers"]);
        questions.focus(true);
        types(&mut questions, "Ann");
        assert_eq!(answer.try_recv(), Err(TryRecvError::Empty));
        questions.key(Key::plain(KeyCode::Enter), 40);
        assert_eq!(answer.try_recv(), Ok("Ann".to_owned()));
    }

    #[test]
    fn withdrawn_questions_go_away_with_what_was_written_for_them() {
        let mut questions = Questions::default();
        let first = asked(&mut questions, "Who?", false);
        let mut second = asked(&mut questions, "Where?", false);
        types(&mut questions, "Ann");
        drop(first);
        questions.remove_withdrawn();
        assert_eq!(shown(&questions), ["? Where?", "    name", "  Value: · Esc refuses", "    "]);
        questions.key(Key::plain(KeyCode::Enter), 40);
        assert_eq!(second.try_recv(), Ok(String::new()));
    }

    #[test]
    fn lines_answer_with_a_word_before_the_value() {
        let mut questions = Questions::default();
        assert!(questions.line("answer x").is_none(), "nobody asks");
        let mut first = asked(&mut questions, "Who?", false);
        let mut second = asked(&mut questions, "Where?", false);
        for line in ["Ann", "answers", "the answer"] {
            assert!(questions.line(line).is_none(), "{line}");
        }
        assert!(questions.line(" answer  Ann Lee ").is_some());
        assert_eq!(first.try_recv(), Ok("Ann Lee".to_owned()));
        assert!(questions.line("answer !").is_some());
        assert_eq!(second.try_recv(), Ok("!".to_owned()));
    }
}
