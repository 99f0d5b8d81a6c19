//! Messages that wait for the current turn.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::protocol::{RunId, UserMessage};

/// Messages that wait for the next request, for the end of the current input, or for the end of the current run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct QueuedMessages {
    steering: VecDeque<UserMessage>,
    follow_ups: VecDeque<UserMessage>,
    /// Input submitted while a turn was being interrupted; it starts when the turn has ended.
    waiting: Option<(RunId, UserMessage)>,
}

impl QueuedMessages {
    /// Adds a message for the next request.
    pub(super) fn steer(&mut self, message: UserMessage) {
        self.steering.push_back(message);
    }

    /// Adds a message for the end of the current input.
    pub(super) fn follow_up(&mut self, message: UserMessage) {
        self.follow_ups.push_back(message);
    }

    /// Sets the input that starts a run when the current one has ended.
    pub(super) fn set_next_run(&mut self, run: RunId, message: UserMessage) {
        self.waiting = Some((run, message));
    }

    pub(super) fn take_steering(&mut self) -> Option<UserMessage> {
        self.steering.pop_front()
    }

    pub(super) fn take_follow_up(&mut self) -> Option<UserMessage> {
        self.follow_ups.pop_front()
    }

    pub(super) fn take_next_run(&mut self) -> Option<(RunId, UserMessage)> {
        self.waiting.take()
    }

    pub(super) fn has_steering(&self) -> bool {
        !self.steering.is_empty()
    }

    /// Returns whether a steering message or a follow-up waits.
    pub(super) fn has_messages(&self) -> bool {
        self.has_steering() || !self.follow_ups.is_empty()
    }

    pub(super) fn has_next_run(&self) -> bool {
        self.waiting.is_some()
    }

    /// Returns the texts of the steering messages, the oldest first.
    pub(super) fn steering(&self) -> impl ExactSizeIterator<Item = &str> {
        texts(&self.steering)
    }

    /// Returns the texts of the follow-ups, the oldest first.
    pub(super) fn follow_ups(&self) -> impl ExactSizeIterator<Item = &str> {
        texts(&self.follow_ups)
    }

    /// Returns why this steering message cannot be queued; `None` if it can.
    pub(super) fn steering_problem(&self, message: &UserMessage, max_queued: usize) -> Option<String> {
        queue_problem(&self.steering, message, max_queued)
    }

    /// Returns why this follow-up cannot be queued; `None` if it can.
    pub(super) fn follow_up_problem(&self, message: &UserMessage, max_queued: usize) -> Option<String> {
        queue_problem(&self.follow_ups, message, max_queued)
    }
}

fn texts(queue: &VecDeque<UserMessage>) -> impl ExactSizeIterator<Item = &str> {
    queue.iter().map(|message| message.text.as_str())
}

fn queue_problem(queue: &VecDeque<UserMessage>, message: &UserMessage, max: usize) -> Option<String> {
    if queue.len() >= max {
        Some(format!("{max} messages are waiting already"))
    } else {
        message.problem().map(|problem| format!("it {problem}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_queue_has_its_own_order_and_limit() {
        let mut queued = QueuedMessages::default();
        for text in ["one", "two"] {
            assert_eq!(queued.steering_problem(&text.into(), 2), None);
            queued.steer(text.into());
        }
        queued.follow_up("three".into());
        let problem = queued.steering_problem(&"more".into(), 2);
        assert_eq!(problem.as_deref(), Some("2 messages are waiting already"));
        assert_eq!(queued.follow_up_problem(&"more".into(), 2), None);
        let problem = queued.follow_up_problem(&" ".into(), 2);
        assert_eq!(problem.as_deref(), Some("it is empty: expected some text or an image"));

        assert_eq!(queued.steering().collect::<Vec<_>>(), ["one", "two"]);
        assert_eq!(queued.follow_ups().collect::<Vec<_>>(), ["three"]);
        assert_eq!(queued.take_steering(), Some(UserMessage::from("one")));
        assert_eq!(queued.take_steering(), Some(UserMessage::from("two")));
        assert!(!queued.has_steering() && queued.has_messages());
        assert_eq!(queued.take_follow_up(), Some(UserMessage::from("three")));
        assert!(!queued.has_messages());
    }

    #[test]
    fn the_next_run_starts_once() {
        let mut queued = QueuedMessages::default();
        queued.set_next_run(RunId(2), "next".into());
        assert!(queued.has_next_run());
        assert_eq!(queued.take_next_run(), Some((RunId(2), UserMessage::from("next"))));
        assert_eq!(queued.take_next_run(), None);
    }
}
