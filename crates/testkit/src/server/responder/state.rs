//! State of the server between requests, of bounded size.

use std::collections::{HashMap, HashSet, VecDeque};

use crate::dialect::Dialect;
use crate::prefix::Prefix;
use crate::server::request_log::RequestLog;

/// Identity of a conversation: its dialect and the hash of its first user message.
///
/// Two sessions with the same first message share a conversation, which affects only failures and cache counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct ConversationId {
    pub(super) dialect: Dialect,
    pub(super) first_message: u64,
}

/// State of one conversation.
#[derive(Debug, Default)]
struct Conversation {
    /// Number of failures so far, by turn.
    failed: HashMap<usize, usize>,
    /// Model and prefix of the last successful request.
    prefix: Option<(String, Prefix)>,
}

/// Conversations, requests and served turns.
#[derive(Debug, Default)]
pub(super) struct ServerState {
    pub(super) log: RequestLog,
    conversations: HashMap<ConversationId, Conversation>,
    /// Conversations in order of their start.
    order: VecDeque<ConversationId>,
    served: HashSet<(Dialect, usize)>,
    max_conversations: usize,
}

impl ServerState {
    pub(super) fn new(max_conversations: usize) -> Self {
        Self { max_conversations, ..Self::default() }
    }

    /// Returns the index of the failure for this attempt; `None` after the last one.
    pub(super) fn attempt(&mut self, id: ConversationId, turn: usize, failures: usize) -> Option<usize> {
        if failures == 0 {
            return None;
        }
        let failed = self.conversation(id).failed.entry(turn).or_default();
        let attempt = *failed;
        *failed = (attempt + 1).min(failures);
        (attempt < failures).then_some(attempt)
    }

    /// Stores a prefix and returns the previous one, if it was for the same model.
    pub(super) fn replace_prefix(
        &mut self,
        id: ConversationId,
        model: &str,
        prefix: Prefix,
    ) -> Option<Prefix> {
        let previous = self.conversation(id).prefix.replace((model.to_owned(), prefix));
        previous.filter(|(previous_model, _)| previous_model == model).map(|(_, prefix)| prefix)
    }

    pub(super) fn mark_served(&mut self, dialect: Dialect, turn: usize) {
        self.served.insert((dialect, turn));
    }

    pub(super) fn was_served(&self, dialect: Dialect, turn: usize) -> bool {
        self.served.contains(&(dialect, turn))
    }

    fn conversation(&mut self, id: ConversationId) -> &mut Conversation {
        if !self.conversations.contains_key(&id) {
            if self.order.len() >= self.max_conversations.max(1) {
                let oldest = self.order.pop_front();
                oldest.and_then(|oldest| self.conversations.remove(&oldest));
            }
            self.order.push_back(id);
        }
        self.conversations.entry(id).or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(first_message: u64) -> ConversationId {
        ConversationId { dialect: Dialect::Gemini, first_message }
    }

    #[test]
    fn failures_are_consumed_per_conversation_and_turn() {
        let mut state = ServerState::new(8);
        let attempts = |state: &mut ServerState, conversation, turn| -> Vec<Option<usize>> {
            (0..4).map(|_| state.attempt(id(conversation), turn, 2)).collect()
        };
        for (conversation, turn) in [(1, 0), (1, 1), (2, 0)] {
            assert_eq!(attempts(&mut state, conversation, turn), [Some(0), Some(1), None, None]);
        }
    }

    #[test]
    fn oldest_conversation_is_evicted_first() {
        let mut state = ServerState::new(2);
        for conversation in [1, 2, 3] {
            state.attempt(id(conversation), 0, 1);
        }
        assert_eq!(state.conversations.len(), 2);
        assert_eq!(state.attempt(id(3), 0, 1), None, "3 is kept");
        assert_eq!(state.attempt(id(1), 0, 1), Some(0), "1 was evicted");
    }

    #[test]
    fn prefixes_are_kept_per_model() {
        let mut state = ServerState::new(2);
        let prefix = Prefix::read(Dialect::Gemini, br#"{"contents": [1]}"#);
        assert_eq!(state.replace_prefix(id(1), "a", prefix.clone()), None);
        assert_eq!(state.replace_prefix(id(1), "a", prefix.clone()), Some(prefix.clone()));
        assert_eq!(state.replace_prefix(id(1), "b", prefix), None);
    }
}
