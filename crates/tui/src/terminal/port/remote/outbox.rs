//! Messages on their way into the conversation on a server. The response to a request and the event of its message arrive
//! in any order.

/// Texts of messages that are not part of the conversation yet.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    /// Texts whose requests are pending.
    under_way: Vec<String>,
    /// Texts that the server has accepted.
    taken: Vec<String>,
    /// Texts whose requests are pending, but that are already part of the conversation.
    early: Vec<String>,
}

impl Outbox {
    /// Returns the number of accepted messages that are not part of the conversation.
    pub(super) fn queued(&self) -> usize {
        self.taken.len()
    }

    /// Records the start of a request.
    pub(super) fn begin(&mut self, text: &str) {
        self.under_way.push(text.to_owned());
    }

    /// Records the response to a request.
    pub(super) fn answered(&mut self, text: String, is_taken: bool) {
        remove(&mut self.under_way, &text);
        if !remove(&mut self.early, &text) && is_taken {
            self.taken.push(text);
        }
    }

    /// Records that a message became part of the conversation.
    pub(super) fn arrived(&mut self, text: &str) {
        let count = |texts: &[String]| texts.iter().filter(|known| *known == text).count();
        if !remove(&mut self.taken, text) && count(&self.under_way) > count(&self.early) {
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
            outbox.begin(text);
        }
        assert_eq!(outbox.queued(), 0);
        outbox.answered("a".to_owned(), true);
        assert_eq!(outbox.queued(), 1);
        outbox.arrived("b");
        outbox.answered("b".to_owned(), true);
        assert_eq!(outbox.queued(), 1, "its event came first");
        outbox.arrived("a");
        assert_eq!(outbox.queued(), 0);
        outbox.answered("c".to_owned(), false);
        outbox.arrived("somebody else's");
        outbox.answered("a".to_owned(), true);
        assert_eq!(outbox.queued(), 1, "one of two with the same text");
        outbox.arrived("a");
        assert_eq!(outbox.queued(), 0);
        outbox.begin("b");
        outbox.answered("b".to_owned(), true);
        assert_eq!(outbox.queued(), 1, "an event counts once");
    }
}
