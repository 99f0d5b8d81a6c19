//! Reasoning in the content of a response.
//!
//! Without a reasoning parser, a server sends the model's own text: `<think>`, the reasoning, `</think>`, the answer. If the
//! chat template contains the opening tag, the response has the closing one only.

mod decoder;

use memchr::memmem;
use pintle_llm::{ContentPart, Response, TextData, ThinkingData};

pub(crate) use self::decoder::ThinkDecoder;

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// Line breaks beside a tag separate it from the text.
const LINE_BREAKS: [char; 2] = ['\n', '\r'];

/// A part of the content.
#[derive(Debug, PartialEq, Eq)]
enum ThinkPiece {
    Reasoning(String),
    Text(String),
}

/// Separator of reasoning and answer, for content in pieces of any length.
///
/// Reasoning is recognised at the start of the content only, so an answer that contains the tags is unchanged.
#[derive(Debug)]
struct ThinkSplitter {
    state: SplitterState,
    /// Whether the chat template contains the opening tag.
    opened: bool,
    /// Content that cannot be classified yet.
    held: String,
    /// Number of held bytes without a closing tag, in [`SplitterState::Opened`].
    searched: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SplitterState {
    /// Only white space and a part of the opening tag have been received.
    Start,
    /// There is no opening tag, but its reasoning may end with a closing tag. All content is held.
    Opened,
    /// After the opening tag and line breaks.
    ReasoningStart,
    Reasoning,
    /// After the closing tag and line breaks.
    AnswerStart,
    Answer,
}

impl ThinkSplitter {
    /// Creates a splitter. If `opened`, content up to a closing tag is reasoning without an opening tag.
    fn new(opened: bool) -> Self {
        Self { state: SplitterState::Start, opened, held: String::new(), searched: 0 }
    }

    /// Returns whether all further content is part of the answer.
    fn is_in_answer(&self) -> bool {
        self.state == SplitterState::Answer
    }

    /// Adds content and returns the pieces that can be classified.
    fn push(&mut self, content: &str) -> Vec<ThinkPiece> {
        self.held.push_str(content);
        let mut pieces = Vec::new();
        loop {
            let before = self.state;
            pieces.extend(self.step());
            if self.state == before {
                return pieces;
            }
        }
    }

    /// Returns the held content. Further content is part of the answer.
    fn finish(&mut self) -> Option<ThinkPiece> {
        let held = std::mem::take(&mut self.held);
        let state = std::mem::replace(&mut self.state, SplitterState::Answer);
        if held.is_empty() {
            return None;
        }
        Some(match state {
            SplitterState::Start
            | SplitterState::Opened
            | SplitterState::AnswerStart
            | SplitterState::Answer => ThinkPiece::Text(held),
            SplitterState::ReasoningStart | SplitterState::Reasoning => ThinkPiece::Reasoning(held),
        })
    }

    /// Classifies held content in the current state, and changes the state at most once.
    fn step(&mut self) -> Option<ThinkPiece> {
        match self.state {
            SplitterState::Start => {
                let start = self.held.trim_start();
                if let Some(rest) = start.strip_prefix(OPEN) {
                    self.held = rest.to_owned();
                    self.state = SplitterState::ReasoningStart;
                } else if !OPEN.starts_with(start) {
                    self.state = if self.opened { SplitterState::Opened } else { SplitterState::Answer };
                }
                None
            }
            SplitterState::Opened => {
                let end = self.find_close()?;
                // As after an opening tag.
                let breaks = self.held.len() - self.held.trim_start_matches(LINE_BREAKS).len();
                self.held.replace_range(..breaks, "");
                self.end_reasoning(end - breaks)
            }
            SplitterState::ReasoningStart => {
                self.skip_line_breaks(SplitterState::Reasoning);
                None
            }
            SplitterState::Reasoning => match self.held.find(CLOSE) {
                Some(end) => self.end_reasoning(end),
                None => {
                    let partial = partial_tag(&self.held, CLOSE);
                    let held = self.held.split_off(self.held.len() - partial);
                    let reasoning = std::mem::replace(&mut self.held, held);
                    (!reasoning.is_empty()).then_some(ThinkPiece::Reasoning(reasoning))
                }
            },
            SplitterState::AnswerStart => {
                self.skip_line_breaks(SplitterState::Answer);
                None
            }
            SplitterState::Answer => {
                let answer = std::mem::take(&mut self.held);
                (!answer.is_empty()).then_some(ThinkPiece::Text(answer))
            }
        }
    }

    /// Returns the position of the closing tag. Each byte is searched once.
    fn find_close(&mut self) -> Option<usize> {
        let from = self.searched;
        let found = memmem::find(self.held.as_bytes().get(from..)?, CLOSE.as_bytes());
        self.searched = (self.held.len() + 1).saturating_sub(CLOSE.len()).max(from);
        found.map(|position| from + position)
    }

    /// Ends the reasoning at a closing tag.
    fn end_reasoning(&mut self, end: usize) -> Option<ThinkPiece> {
        let answer = self.held.get(end + CLOSE.len()..).unwrap_or_default().to_owned();
        let mut reasoning = std::mem::replace(&mut self.held, answer);
        reasoning.truncate(end);
        self.state = SplitterState::AnswerStart;
        (!reasoning.is_empty()).then_some(ThinkPiece::Reasoning(reasoning))
    }

    /// Drops line breaks beside a tag, and enters the next state at anything else.
    fn skip_line_breaks(&mut self, next: SplitterState) {
        self.held = self.held.trim_start_matches(LINE_BREAKS).to_owned();
        if !self.held.is_empty() {
            self.state = next;
        }
    }
}

/// Separates the reasoning at the start of a complete response, as [`ThinkDecoder`] does in a stream.
pub(crate) fn split_response(mut response: Response, opened: bool) -> Response {
    let Some(ContentPart::Text(data)) = response.message.content.first() else { return response };
    if !opened && !data.text.trim_start().starts_with(OPEN) {
        return response;
    }
    let (reasoning, text) = split(&data.text, opened);
    let signature = data.signature.clone();
    let mut parts: Vec<ContentPart> = Vec::new();
    if !reasoning.is_empty() {
        parts.push(ThinkingData::new(reasoning).into());
    }
    if parts.is_empty() || !text.is_empty() || signature.is_some() {
        parts.push(ContentPart::Text(TextData { text, signature }));
    }
    drop(response.message.content.splice(..1, parts));
    response
}

/// Returns the reasoning and the answer of complete content.
fn split(content: &str, opened: bool) -> (String, String) {
    let mut splitter = ThinkSplitter::new(opened);
    let mut pieces = splitter.push(content);
    pieces.extend(splitter.finish());
    let (mut reasoning, mut answer) = (String::new(), String::new());
    for piece in pieces {
        match piece {
            ThinkPiece::Reasoning(text) => reasoning.push_str(&text),
            ThinkPiece::Text(text) => answer.push_str(&text),
        }
    }
    (reasoning, answer)
}

/// Returns the length of the longest end of `text` that is the beginning of `tag`.
fn partial_tag(text: &str, tag: &str) -> usize {
    let is_end = |length: &usize| tag.get(..*length).is_some_and(|start| text.ends_with(start));
    (1..tag.len()).rev().find(is_end).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    #[cfg(all(feature = "anthropic", feature = "compatible", feature = "gemini", feature = "openai"))]
    mod dialects;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reasoning_at_the_start_is_separated() {
        let cases = [
            ("<think>Hm.</think>So.", "Hm.", "So."),
            ("<think>\nHm.\n</think>\n\nSo.\n", "Hm.\n", "So.\n"),
            (" \n<think>Hm.</think>So.", "Hm.", "So."),
            ("<think>\n\n</think>\n\nSo.", "", "So."),
            ("<think>a < b </thin </think>\r\n  So.", "a < b </thin ", "  So."),
            ("<think>Hm.</think>Write <think>x</think> here.", "Hm.", "Write <think>x</think> here."),
            ("<think>Hm", "Hm", ""),
            ("<think>Hm.</thi", "Hm.</thi", ""),
            ("<think>", "", ""),
            ("<think>Hm.</think>", "Hm.", ""),
            ("", "", ""),
        ];
        for opened in [false, true] {
            for (content, reasoning, answer) in cases {
                assert_eq!(split(content, opened), (reasoning.to_owned(), answer.to_owned()), "{content:?}");
            }
        }
    }

    #[test]
    fn answers_about_the_tags_are_unchanged() {
        for content in [
            "The tag <think> opens it, and </think> closes it.",
            "`<think>` opens it.",
            "</think>",
            "Hm.\n</think>\n\nSo.",
            "<thinking>Hm.</thinking>",
            "<thin",
            "<",
            " \n",
            "\nSo.",
        ] {
            assert_eq!(split(content, false), (String::new(), content.to_owned()), "{content:?}");
        }
    }

    #[test]
    fn a_template_may_contain_the_opening_tag() {
        let cases = [
            ("Hm.\n</think>\n\nSo.", "Hm.\n", "So."),
            ("</think>So.", "", "So."),
            ("\n\n</think>\n\nSo.", "", "So."),
            ("Hm. <think> is a tag.</think>So, </think>.", "Hm. <think> is a tag.", "So, </think>."),
            ("No reasoning.", "", "No reasoning."),
            ("<thinking>", "", "<thinking>"),
        ];
        for (content, reasoning, answer) in cases {
            assert_eq!(split(content, true), (reasoning.to_owned(), answer.to_owned()), "{content:?}");
        }
    }

    #[test]
    fn content_is_held_only_while_it_is_ambiguous() {
        let mut splitter = ThinkSplitter::new(false);
        assert!(splitter.push("\n<th").is_empty());
        assert!(splitter.push("ink>\n").is_empty());
        assert_eq!(splitter.push("Hm. <"), [ThinkPiece::Reasoning("Hm. ".into())]);
        assert_eq!(splitter.push("b </"), [ThinkPiece::Reasoning("<b ".into())]);
        assert!(splitter.push("think>\n").is_empty());
        assert_eq!(splitter.push("\nSo <"), [ThinkPiece::Text("So <".into())]);
        assert!(splitter.is_in_answer() && splitter.finish().is_none());
        let mut splitter = ThinkSplitter::new(false);
        assert_eq!(splitter.push("So"), [ThinkPiece::Text("So".into())]);
    }

    fn contents() -> impl Strategy<Value = String> {
        let words = ["<think>", "</think>", "<", "</", "think>", "<th", "ink", "a", "é", "\n", " "];
        prop::collection::vec(prop::sample::select(words.to_vec()), 0..12).prop_map(|words| words.concat())
    }

    proptest! {
        #[test]
        fn pieces_of_any_length_give_the_same_result(
            content in contents(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6), opened in any::<bool>(),
        ) {
            let characters: Vec<char> = content.chars().collect();
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(characters.len() + 1)).collect();
            cuts.extend([0, characters.len()]);
            cuts.sort_unstable();
            let mut splitter = ThinkSplitter::new(opened);
            let (mut reasoning, mut answer) = (String::new(), String::new());
            let mut add = |piece: ThinkPiece| match piece {
                ThinkPiece::Reasoning(text) => reasoning.push_str(&text),
                ThinkPiece::Text(text) => answer.push_str(&text),
            };
            for range in cuts.windows(2) {
                let piece: String = characters[range[0]..range[1]].iter().collect();
                splitter.push(&piece).into_iter().for_each(&mut add);
            }
            splitter.finish().into_iter().for_each(&mut add);
            prop_assert_eq!((reasoning, answer), split(&content, opened));
        }

        #[test]
        fn content_without_a_tag_at_its_start_is_the_answer(content in contents()) {
            prop_assume!(!content.trim_start().starts_with(OPEN));
            prop_assert_eq!(split(&content, false), (String::new(), content.clone()));
        }
    }
}
