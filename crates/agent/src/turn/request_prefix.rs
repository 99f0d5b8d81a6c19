//! Beginning of the requests, which stays the same from one request to the next, so that it is encoded and hashed once.

use pintle_llm::{Fingerprint, HistoryItem, MessageList, PrefixChain, Request, Segment};
use serde::{Deserialize, Serialize};

use crate::protocol::Turn;

/// Messages and hashes of the newest request, from which the next one continues.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct RequestPrefix {
    /// System prompt and beginning of the history, as in the newest request.
    #[serde(skip)]
    messages: MessageList,
    last_chain: Option<PrefixChain>,
    /// Whether the history has only grown since the last request, so that its chain can be extended.
    #[serde(default, rename = "chain_goes_on")]
    chain_is_current: bool,
}

impl RequestPrefix {
    /// Returns the number of messages; 0 before the first request, and after a reset.
    pub(super) fn len(&self) -> usize {
        self.messages.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Starts with other messages, since the system prompt or the history has changed.
    pub(super) fn reset(&mut self) {
        self.messages = MessageList::default();
        self.chain_is_current = false;
    }

    /// Hashes the complete next request, whose tools may have changed.
    pub(super) fn break_chain(&mut self) {
        self.chain_is_current = false;
    }

    /// Returns the system prompt, the summary of the first `through` entries of the history, and the other entries. The
    /// list grows with the history and so keeps the encodings that earlier requests cached for its beginning.
    pub(super) fn extend(
        &mut self,
        system: Option<&HistoryItem>,
        through: usize,
        summary: Option<impl FnOnce() -> HistoryItem>,
        history: &[Turn],
    ) -> MessageList {
        if self.messages.is_empty() {
            self.messages.extend(system.cloned());
        }
        let before = usize::from(system.is_some()) + usize::from(summary.is_some());
        if let Some(summary) = summary.filter(|_| self.messages.len() < before) {
            self.messages.extend([summary()]);
        }
        let known = through + self.messages.len() - before;
        let new = history.get(known..).unwrap_or_default();
        self.messages.extend(new.iter().map(|turn| turn.item.clone()));
        self.messages.clone()
    }

    /// Updates the chain to this request and returns the first segment that moved since the previous one. If only new
    /// messages can differ, only they are hashed.
    pub(super) fn update_chain(&mut self, request: &Request) -> Option<Segment> {
        if self.chain_is_current
            && let Some(last) = &mut self.last_chain
            && let Some(new) = request.messages.get(last.messages()..)
            && last.extend(new)
        {
            return None;
        }
        let chain = request.prefix_chain();
        let moved = self.first_moved(&chain);
        self.last_chain = Some(chain);
        self.chain_is_current = true;
        moved
    }

    /// Returns the first segment of `chain` that moved since the newest request.
    pub(super) fn first_moved(&self, chain: &PrefixChain) -> Option<Segment> {
        self.last_chain.as_ref().and_then(|last| last.first_moved(chain))
    }

    /// Returns the fingerprint of the newest request.
    pub(super) fn fingerprint(&self) -> Option<Fingerprint> {
        self.last_chain.as_ref().and_then(PrefixChain::last)
    }
}

#[cfg(test)]
mod tests {
    use pintle_llm::Message;

    use super::*;
    use crate::protocol::Timestamp;

    fn turn(text: &str) -> Turn {
        Turn::user(text, Timestamp::from_millis(0))
    }

    fn texts(messages: &MessageList) -> Vec<String> {
        messages.iter().map(|item| item.text()).collect()
    }

    #[test]
    fn the_messages_grow_with_the_history_until_a_reset() {
        let mut prefix = RequestPrefix::default();
        let system = HistoryItem::from(Message::system("s"));
        let none = None::<fn() -> HistoryItem>;
        let mut history = vec![turn("a"), turn("b")];
        assert_eq!(texts(&prefix.extend(Some(&system), 0, none, &history)), ["s", "a", "b"]);
        history.push(turn("c"));
        assert_eq!(texts(&prefix.extend(Some(&system), 0, none, &history)), ["s", "a", "b", "c"]);
        prefix.reset();
        assert_eq!(prefix.len(), 0);
        let summary = || HistoryItem::from(Message::user("summary"));
        assert_eq!(texts(&prefix.extend(Some(&system), 2, Some(summary), &history)), ["s", "summary", "c"]);
        history.push(turn("d"));
        let again = prefix.extend(Some(&system), 2, Some(summary), &history);
        assert_eq!(texts(&again), ["s", "summary", "c", "d"]);
    }

    #[test]
    fn the_chain_reports_the_first_segment_that_moved() {
        let mut prefix = RequestPrefix::default();
        let request = |texts: &[&str]| {
            Request::new("m", texts.iter().map(|text| HistoryItem::from(Message::user(*text))))
        };
        assert_eq!(prefix.update_chain(&request(&["a"])), None, "there is no earlier request");
        let first = prefix.fingerprint();
        assert_eq!(prefix.update_chain(&request(&["a", "b"])), None);
        assert_ne!(prefix.fingerprint(), first);
        assert_eq!(prefix.first_moved(&request(&["c", "b"]).prefix_chain()), Some(Segment::Message(0)));
        prefix.break_chain();
        assert_eq!(prefix.update_chain(&request(&["a", "c"])), Some(Segment::Message(1)));
    }
}
