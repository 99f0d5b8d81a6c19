//! User messages for sessions whose workspace is not ready yet.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::session_runner::SteeringMessage;

/// Messages by session. Only sessions with a [`PendingSession`] accept messages.
#[derive(Debug, Default)]
pub(super) struct PendingMessages(Mutex<BTreeMap<String, Vec<SteeringMessage>>>);

/// Session that accepts messages until this is dropped.
#[derive(Debug)]
pub(super) struct PendingSession<'a> {
    messages: &'a PendingMessages,
    session: String,
}

impl PendingMessages {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Vec<SteeringMessage>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Accepts messages for a session.
    pub(super) fn accept(&self, session: &str) -> PendingSession<'_> {
        self.lock().insert(session.to_owned(), Vec::new());
        PendingSession { messages: self, session: session.to_owned() }
    }

    /// Keeps a message for a session. Returns the message if the session accepts none.
    pub(super) fn push(&self, session: &str, message: SteeringMessage) -> Option<SteeringMessage> {
        match self.lock().get_mut(session) {
            Some(messages) => messages.push(message),
            None => return Some(message),
        }
        None
    }
}

impl PendingSession<'_> {
    /// Ends the acceptance, and returns the messages.
    pub(super) fn take(self) -> Vec<SteeringMessage> {
        self.messages.lock().remove(&self.session).unwrap_or_default()
    }
}

impl Drop for PendingSession<'_> {
    fn drop(&mut self) {
        self.messages.lock().remove(&self.session);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_accepts_messages_until_it_is_taken_or_dropped() {
        let message = |text: &str| SteeringMessage { text: text.to_owned(), author: None };
        let messages = PendingMessages::default();
        assert_eq!(messages.push("s", message("early")), Some(message("early")));
        let session = messages.accept("s");
        assert_eq!(messages.push("s", message("a")), None);
        assert_eq!(messages.push("other", message("b")), Some(message("b")));
        assert_eq!(session.take(), [message("a")]);
        assert_eq!(messages.push("s", message("late")), Some(message("late")));
        drop(messages.accept("s"));
        assert_eq!(messages.push("s", message("late")), Some(message("late")));
    }
}
