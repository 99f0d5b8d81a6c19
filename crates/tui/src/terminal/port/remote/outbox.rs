//! Messages on their way into the conversation on a server. The response to a request and the event of its message arrive
//! in any order.

/// Texts of messages that are not part of the conversation yet.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    /// Texts whose requests are pending.
    pending: Vec<String>,
    /// Texts that the server has accepted.
    accepted: Vec<String>,
    /// Texts that are part of the conversation although their requests are pending.
    early: Vec<String>,
}

impl Outbox {
    /// Returns the accepted messages that are not part of the conversation.
    pub(super) fn queued(&self) -> &[String] {
        &self.accepted
    }

    /// Records the start of a request.
    pub(super) fn start(&mut self, text: &str) {
        self.pending.push(text.to_owned());
    }

    /// Records the response to a request.
    pub(super) fn answered(&mut self, text: String, is_accepted: bool) {
        remove(&mut self.pending, &text);
        if !remove(&mut self.early, &text) && is_accepted {
            self.accepted.push(text);
        }
    }

    /// Records that a message became part of the conversation.
    pub(super) fn arrived(&mut self, text: &str) {
        let count = |texts: &[String]| texts.iter().filter(|known| *known == text).count();
        if !remove(&mut self.accepted, text) && count(&self.pending) > count(&self.early) {
            self.early.push(text.to_owned());
        }
    }
}

/// Removes one of several equal texts, and returns whether there was one.
fn remove(texts: &mut Vec<String>, text: &str) -> bool {
    let found = texts.iter().position(|known| known == text);
    found.map(|index| texts.remove(index)).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_queued_from_the_answer_to_the_event_in_any_order() {
        let mut outbox = Outbox::default();
        for text in ["a", "a", "b", "c"] {
            outbox.start(text);
        }
        assert_eq!(outbox.queued().len(), 0);
        outbox.answered("a".to_owned(), true);
        assert_eq!(outbox.queued().len(), 1);
        outbox.arrived("b");
        outbox.answered("b".to_owned(), true);
        assert_eq!(outbox.queued().len(), 1, "its event came first");
        outbox.arrived("a");
        assert_eq!(outbox.queued().len(), 0);
        outbox.answered("c".to_owned(), false);
        outbox.arrived("another user's");
        outbox.answered("a".to_owned(), true);
        assert_eq!(outbox.queued().len(), 1, "one of two with the same text");
        outbox.arrived("a");
        assert_eq!(outbox.queued().len(), 0);
        outbox.start("b");
        outbox.answered("b".to_owned(), true);
        assert_eq!(outbox.queued().len(), 1, "an event counts once");
    }
}
