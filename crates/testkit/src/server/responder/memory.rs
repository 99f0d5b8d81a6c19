//! What the server remembers between requests: little, and bounded.

use std::collections::{HashMap, HashSet, VecDeque};

use crate::dialect::Dialect;
use crate::prefix::Prefix;
use crate::server::recorded::Record;

/// Tells one conversation from another: by its dialect and the hash of its first user message.
///
/// Two sessions that begin with the same words are one conversation here; only failures and cache counts know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct ConversationId {
    pub(super) dialect: Dialect,
    pub(super) first_message: u64,
}

/// One conversation.
#[derive(Debug, Default)]
struct Conversation {
    /// Failures given so far, by turn.
    failed: HashMap<usize, usize>,
    /// Model and prefix of the last request that was answered.
    prefix: Option<(String, Prefix)>,
}

/// Conversations, requests, and which turns were given.
#[derive(Debug, Default)]
pub(super) struct Memory {
    pub(super) record: Record,
    conversations: HashMap<ConversationId, Conversation>,
    /// Conversations in the order in which they began.
    order: VecDeque<ConversationId>,
    given: HashSet<(Dialect, usize)>,
    most: usize,
}

impl Memory {
    pub(super) fn new(most: usize) -> Self {
        Self { most, ..Self::default() }
    }

    /// The index of the failure that this attempt meets, or nothing once all of them were given.
    pub(super) fn attempt(&mut self, id: ConversationId, turn: usize, failures: usize) -> Option<usize> {
        if failures == 0 {
            return None;
        }
        let failed = self.conversation(id).failed.entry(turn).or_default();
        let attempt = *failed;
        *failed = (attempt + 1).min(failures);
        (attempt < failures).then_some(attempt)
    }

    /// Keeps a prefix and returns the one before, if the same model read it.
    pub(super) fn replace_prefix(
        &mut self,
        id: ConversationId,
        model: &str,
        prefix: Prefix,
    ) -> Option<Prefix> {
        let before = self.conversation(id).prefix.replace((model.to_owned(), prefix));
        before.filter(|(reader, _)| reader == model).map(|(_, prefix)| prefix)
    }

    pub(super) fn give(&mut self, dialect: Dialect, turn: usize) {
        self.given.insert((dialect, turn));
    }

    pub(super) fn was_given(&self, dialect: Dialect, turn: usize) -> bool {
        self.given.contains(&(dialect, turn))
    }

    fn conversation(&mut self, id: ConversationId) -> &mut Conversation {
        if !self.conversations.contains_key(&id) {
            if self.order.len() >= self.most.max(1) {
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
        let mut memory = Memory::new(8);
        let attempts = |memory: &mut Memory, conversation, turn| -> Vec<Option<usize>> {
            (0..4).map(|_| memory.attempt(id(conversation), turn, 2)).collect()
        };
        for (conversation, turn) in [(1, 0), (1, 1), (2, 0)] {
            assert_eq!(attempts(&mut memory, conversation, turn), [Some(0), Some(1), None, None]);
        }
    }

    #[test]
    fn oldest_conversation_is_evicted_first() {
        let mut memory = Memory::new(2);
        for conversation in [1, 2, 3] {
            memory.attempt(id(conversation), 0, 1);
        }
        assert_eq!(memory.conversations.len(), 2);
        assert_eq!(memory.attempt(id(3), 0, 1), None, "3 is remembered");
        assert_eq!(memory.attempt(id(1), 0, 1), Some(0), "1 was forgotten");
    }

    #[test]
    fn prefixes_are_kept_per_model() {
        let mut memory = Memory::new(2);
        let prefix = Prefix::read(Dialect::Gemini, br#"{"contents": [1]}"#);
        assert_eq!(memory.replace_prefix(id(1), "a", prefix.clone()), None);
        assert_eq!(memory.replace_prefix(id(1), "a", prefix.clone()), Some(prefix.clone()));
        assert_eq!(memory.replace_prefix(id(1), "b", prefix), None);
    }
}
