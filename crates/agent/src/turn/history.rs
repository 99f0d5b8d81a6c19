//! The conversation as a session keeps it (loop specification, section 2.4).

use pintle_llm::{HistoryItem, Message, ToolResult, Usage};
use serde::{Deserialize, Serialize};

use crate::timestamp::Timestamp;

/// One entry of a session's history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Turn {
    /// What kind of entry.
    pub kind: TurnKind,
    /// The text so far of an answer that was stopped. It stands for no answer where answers are counted.
    #[serde(default, skip_serializing_if = "is_false")]
    pub interrupted: bool,
    /// When it was made.
    pub timestamp: Timestamp,
    /// The message that requests carry for it.
    pub item: HistoryItem,
    /// Tokens of an assistant turn's call. Boxed, since most entries have none, and a session shows its history as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Box<Usage>>,
    /// The provider's id of an assistant turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_id: Option<String>,
}

/// The kinds of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnKind {
    /// The user's input.
    User,
    /// The model's answer, with its tool calls and reasoning.
    Assistant,
    /// The results of all calls of the answer before.
    ToolResults,
    /// Instructions of the host.
    System,
    /// A message injected between rounds; a user message for the model.
    Steering,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_false(flag: &bool) -> bool {
    !*flag
}

impl Turn {
    /// A user's input.
    #[must_use]
    pub fn user(text: impl Into<String>, at: Timestamp) -> Self {
        Self::new(TurnKind::User, Message::user(text), at)
    }

    /// An injected message.
    #[must_use]
    pub fn steering(text: impl Into<String>, at: Timestamp) -> Self {
        Self::new(TurnKind::Steering, Message::user(text), at)
    }

    /// The results of a round.
    #[must_use]
    pub fn tool_results(results: Vec<ToolResult>, at: Timestamp) -> Self {
        Self::new(TurnKind::ToolResults, Message::tool_results(results), at)
    }

    /// An answer.
    #[must_use]
    pub fn assistant(message: Message, at: Timestamp) -> Self {
        Self::new(TurnKind::Assistant, message, at)
    }

    /// What an answer had said when it was stopped.
    #[must_use]
    pub fn interrupted(text: impl Into<String>, at: Timestamp) -> Self {
        Self { interrupted: true, ..Self::assistant(Message::assistant(text), at) }
    }

    fn new(kind: TurnKind, message: Message, timestamp: Timestamp) -> Self {
        Self { kind, interrupted: false, timestamp, item: message.into(), usage: None, response_id: None }
    }

    /// Whether it is an answer of the model, and a whole one.
    pub(super) fn is_answer(&self) -> bool {
        self.kind == TurnKind::Assistant && !self.interrupted
    }

    /// The text of the entry.
    #[must_use]
    pub fn content(&self) -> String {
        self.item.text()
    }

    /// The size of the entry in characters, roughly as a tokenizer meets it: text, arguments and results.
    #[must_use]
    pub fn chars(&self) -> u64 {
        let text = self.item.text().chars().count();
        let calls: usize =
            self.item.tool_calls().map(|call| call.name.len() + call.arguments_text().chars().count()).sum();
        let results: usize = self.item.results().map(|result| result.text().chars().count()).sum();
        let reasoning = self.item.reasoning().map_or(0, |text| text.chars().count());
        u64::try_from(text + calls + results + reasoning).unwrap_or(u64::MAX)
    }
}
