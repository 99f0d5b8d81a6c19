//! Answers to a subagent's requests for more of its parent's budget.

use tokio::sync::watch;

use crate::protocol::{InputKind, Limits};

/// Answer to one request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grant {
    /// Number of the request.
    pub(super) ask: u64,
    /// Budget of the subagent from its first call on.
    pub(super) slice: Limits,
}

/// Receiver of the answers. A newer answer replaces an unread answer, since only the newest request waits.
#[derive(Clone, Debug, Default)]
pub(crate) struct Grants(Option<watch::Receiver<Option<Grant>>>);

impl Grants {
    pub(super) fn new(receiver: watch::Receiver<Option<Grant>>) -> Self {
        Self(Some(receiver))
    }

    /// Waits for the next answer, as an input of the turn machine. Cancel safe.
    pub(crate) async fn next(&mut self) -> InputKind {
        if let Some(receiver) = &mut self.0 {
            while receiver.changed().await.is_ok() {
                if let Some(Grant { ask, slice }) = *receiver.borrow_and_update() {
                    return InputKind::BudgetGranted { ask, slice, short: None, failure: None };
                }
            }
        }
        // There is no parent, or it has ended and closes this session.
        std::future::pending().await
    }
}
