//! Inputs in the queue of a session.

use std::future::{Future, IntoFuture};
use std::pin::Pin;

use tokio::sync::oneshot;

use crate::error::RunError;
use crate::protocol::Outcome;

/// Input that waits in the queue of a session: a future of the outcome of this input. Dropping it has no effect on the input.
#[derive(Debug)]
pub struct QueuedInput {
    pub(super) outcome: oneshot::Receiver<Outcome>,
}

impl QueuedInput {
    /// Waits for the outcome of the input alone: its text, usage and calls. Inputs wait in the queue while no run is in progress,
    /// and after a limit until the next run.
    ///
    /// # Errors
    ///
    /// [`RunError::Failed`] if the input failed, and [`RunError::Closed`] if the session ended before the end of the input.
    pub async fn outcome(self) -> Result<Outcome, RunError> {
        self.outcome.await.map_or(Err(RunError::Closed { outcome: None }), RunError::check)
    }
}

impl IntoFuture for QueuedInput {
    type Output = Result<Outcome, RunError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.outcome())
    }
}
