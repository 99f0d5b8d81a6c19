//! Questions that belong to no call and are shown in a conversation.

use pintle_host::attendant::REFUSAL;
use tokio::sync::oneshot;

/// Pending question.
#[derive(Debug)]
pub struct Question {
    /// Text without control characters other than line ends.
    pub(crate) text: String,
    /// Further lines for the user, in the same form.
    pub(crate) details: Vec<String>,
    /// Label of the answer.
    pub(crate) prompt: String,
    answer: oneshot::Sender<String>,
}

impl Question {
    /// Returns a question and the receiver of its answer.
    pub(crate) fn new(
        text: impl Into<String>,
        details: Vec<String>,
        prompt: impl Into<String>,
    ) -> (Self, oneshot::Receiver<String>) {
        let (answer, answered) = oneshot::channel();
        (Self { text: text.into(), details, prompt: prompt.into(), answer }, answered)
    }

    /// Returns whether the asker no longer waits for the answer.
    pub(crate) fn is_withdrawn(&self) -> bool {
        self.answer.is_closed()
    }

    /// Answers the question.
    pub(crate) fn answer(self, text: impl Into<String>) {
        // Fails only if it was withdrawn.
        let _ = self.answer.send(text.into());
    }

    /// Refuses the question.
    pub(crate) fn refuse(self) {
        self.answer(REFUSAL);
    }
}
