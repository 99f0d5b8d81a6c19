//! Conversation of a session (loop specification, section 2.4).

use pintle_llm::{HistoryItem, Message, ToolResult, Usage};
use serde::{Deserialize, Serialize};

use super::{Principal, Timestamp, UserMessage};

/// Entry of a session's history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Turn {
    /// Kind of entry.
    pub kind: TurnKind,
    /// Whether this is the text so far of a response that was stopped. It does not count as an assistant turn.
    #[serde(default, skip_serializing_if = "is_false")]
    pub interrupted: bool,
    /// Time of creation.
    pub timestamp: Timestamp,
    /// Message in requests.
    pub item: HistoryItem,
    /// Usage of the model call of an assistant turn. Boxed, since most entries have none and sessions publish copies of
    /// their history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Box<Usage>>,
    /// Provider's id of an assistant turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_id: Option<String>,
    /// Author of an input or injected message, if the application names one. It is not part of requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<Principal>,
    /// Whether an injected message is a notice of the loop or of a hook, and not the user's own.
    #[serde(default, skip_serializing_if = "is_false")]
    pub notice: bool,
}

/// Kind of a history entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TurnKind {
    /// Input of the user.
    User,
    /// Response of the model, with its tool calls and reasoning.
    Assistant,
    /// Results of all calls of the preceding response.
    ToolResults,
    /// Instructions of the embedding application.
    System,
    /// Message injected between rounds; a user message for the model.
    Steering,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(flag: &bool) -> bool {
    !*flag
}

impl Turn {
    /// Creates an entry for an input of the user.
    #[must_use]
    pub fn user(message: impl Into<UserMessage>, at: Timestamp) -> Self {
        Self::from_message(TurnKind::User, message.into(), at)
    }

    /// Creates an entry for an injected message.
    #[must_use]
    pub fn steering(message: impl Into<UserMessage>, at: Timestamp) -> Self {
        Self::from_message(TurnKind::Steering, message.into(), at)
    }

    /// Creates an entry for the results of a round.
    #[must_use]
    pub fn tool_results(results: Vec<ToolResult>, at: Timestamp) -> Self {
        Self::new(TurnKind::ToolResults, Message::tool_results(results), at)
    }

    /// Creates an entry for a model response.
    #[must_use]
    pub fn assistant(message: Message, at: Timestamp) -> Self {
        Self::new(TurnKind::Assistant, message, at)
    }

    /// Creates an entry for the text so far of a response that was stopped.
    #[must_use]
    pub fn interrupted(text: impl Into<String>, at: Timestamp) -> Self {
        Self { interrupted: true, ..Self::assistant(Message::assistant(text), at) }
    }

    fn from_message(kind: TurnKind, message: UserMessage, at: Timestamp) -> Self {
        let (author, notice) = (message.author.clone(), message.notice);
        Self { author, notice, ..Self::new(kind, message.into(), at) }
    }

    fn new(kind: TurnKind, message: Message, timestamp: Timestamp) -> Self {
        Self {
            kind,
            interrupted: false,
            timestamp,
            item: message.into(),
            usage: None,
            response_id: None,
            author: None,
            notice: false,
        }
    }

    /// Returns whether this is a complete response of the model.
    pub(crate) fn is_complete_response(&self) -> bool {
        self.kind == TurnKind::Assistant && !self.interrupted
    }

    /// Returns the text of the entry.
    #[must_use]
    pub fn content(&self) -> String {
        self.item.text()
    }

    /// Returns the approximate size in characters that a tokenizer sees: text, reasoning, arguments and results.
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
