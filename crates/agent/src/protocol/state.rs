//! Observable state of a session.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// State of a session (loop specification, section 2.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum SessionState {
    /// Waiting for input.
    #[default]
    Idle,
    /// Running the loop.
    Processing,
    /// Waiting for the answer to a question of the model; the next input is the answer.
    AwaitingInput,
    /// Closed for good.
    Closed,
}

/// Texts of the messages that wait in the queues of a session, the oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct QueuedMessages {
    /// Steering messages, for the next request.
    pub steering: Vec<String>,
    /// Follow-ups, each a separate input after the current one.
    pub follow_ups: Vec<String>,
}

impl QueuedMessages {
    /// Returns whether both queues are empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.steering.is_empty() && self.follow_ups.is_empty()
    }
}
