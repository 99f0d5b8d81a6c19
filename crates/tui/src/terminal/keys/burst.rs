//! Text that arrives faster than a user types: output of a program, and pastes from terminals that do not mark them.
//!
//! It is inserted at once. Line ends of long text do not send it: a paste must not be sent line by line.

use super::{Input, Key, KeyCode};

/// Minimum size of a piece that counts as not typed, in bytes.
const UNTYPED: usize = 64;

/// Minimum size of a piece that counts as a paste, in bytes.
const PASTED: usize = 800;

/// Joins keys that arrived at once into text.
pub(crate) fn join_bursts(inputs: Vec<Input>) -> Vec<Input> {
    if inputs.len() < UNTYPED {
        return inputs;
    }
    let mut joined = Vec::new();
    for run in inputs.chunk_by(|one, next| is_any_text(one) == is_any_text(next)) {
        // The keys after a text, such as Enter, keep their effect.
        let length = run.iter().rposition(is_text).map_or(0, |last| last + 1);
        let (text, rest) = run.split_at(length);
        match text_of(text) {
            Some(text) if text.len() >= PASTED => joined.push(Input::Burst(text)),
            _ => join_lines(text, &mut joined),
        }
        joined.extend_from_slice(rest);
    }
    joined
}

/// Joins the text between keys that do something.
fn join_lines(inputs: &[Input], joined: &mut Vec<Input>) {
    for run in inputs.chunk_by(|one, next| is_text(one) == is_text(next)) {
        match text_of(run) {
            Some(text) if text.len() >= UNTYPED && run.first().is_some_and(is_text) => {
                joined.push(Input::Burst(text));
            }
            _ => joined.extend_from_slice(run),
        }
    }
}

/// Returns the character that a key represents in a text.
fn character(input: &Input) -> Option<char> {
    match input {
        Input::Key(Key { code: KeyCode::Char(character), modifiers })
            if !modifiers.ctrl && !modifiers.alt =>
        {
            Some(*character)
        }
        Input::Key(key) if *key == Key::ctrl('j') || *key == Key::plain(KeyCode::Enter) => Some('\n'),
        Input::Key(key) if *key == Key::plain(KeyCode::Tab) => Some('\t'),
        Input::Key(_) | Input::Paste(_) | Input::Burst(_) | Input::Background(_) => None,
    }
}

fn text_of(inputs: &[Input]) -> Option<String> {
    inputs.iter().map(character).collect()
}

fn is_any_text(input: &Input) -> bool {
    character(input).is_some()
}

/// Returns whether a key is text and does nothing else.
fn is_text(input: &Input) -> bool {
    let does_more = [Key::plain(KeyCode::Enter), Key::plain(KeyCode::Tab)];
    is_any_text(input) && !does_more.map(Input::Key).contains(input)
}

#[cfg(test)]
mod tests {
    use super::super::Decoder;
    use super::*;

    /// Returns the inputs with one letter for each kind, and the texts.
    fn joined(bytes: &str) -> (String, Vec<String>) {
        let mut texts = Vec::new();
        let kinds =
            join_bursts(Decoder::default().push(bytes.as_bytes())).into_iter().map(|input| match input {
                Input::Burst(text) => {
                    texts.push(text);
                    'b'
                }
                Input::Key(key) if key == Key::plain(KeyCode::Enter) => 'e',
                Input::Key(_) => 'k',
                Input::Paste(_) | Input::Background(_) => 'p',
            });
        (kinds.collect(), texts)
    }

    #[test]
    fn text_that_nobody_types_is_joined() {
        let line = "x".repeat(UNTYPED);
        let long = "word ".repeat(PASTED / 5);
        let cases = [
            ("hello\r".to_owned(), "kkkkke", vec![]),
            (format!("{line}\r"), "be", vec![line.clone()]),
            (format!("{line}\r{line}\r"), "bebe", vec![line.clone(), line.clone()]),
            (format!("a\r{line}"), "keb", vec![line.clone()]),
            (format!("one\rtwo\t{long}\r"), "be", vec![format!("one\ntwo\t{long}")]),
            (format!("{line}\u{3}{line}\x1b[A"), "bkbk", vec![line.clone(), line.clone()]),
            (format!("{line}\n{line}"), "b", vec![format!("{line}\n{line}")]),
            (format!("\x1b[200~{long}\x1b[201~"), "p", vec![]),
        ];
        for (bytes, kinds, texts) in cases {
            assert_eq!(joined(&bytes), (kinds.to_owned(), texts), "{bytes:?}");
        }
    }
}
