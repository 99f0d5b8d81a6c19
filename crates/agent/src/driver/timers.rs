//! Timers that the machine requested.

use std::collections::HashMap;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::{Driver, Report};
use crate::protocol::Timer;

/// Active timers. Cancelling one also discards its report if it has fired and the driver has not received it yet.
#[derive(Debug, Default)]
pub(super) struct Timers {
    active: HashMap<Timer, CancellationToken>,
}

impl Timers {
    /// Adds a timer, which replaces an earlier one with the same subject. Returns the token that cancels it.
    fn add(&mut self, timer: Timer) -> CancellationToken {
        let cancel = CancellationToken::new();
        if let Some(earlier) = self.active.insert(timer, cancel.clone()) {
            earlier.cancel();
        }
        cancel
    }

    /// Cancels a timer.
    pub(super) fn cancel(&mut self, timer: Timer) {
        if let Some(cancel) = self.active.remove(&timer) {
            cancel.cancel();
        }
    }

    /// Cancels the timers of approvals.
    pub(super) fn cancel_approvals(&mut self) {
        self.active.retain(|timer, cancel| {
            let is_of_run = matches!(timer, Timer::Run(_));
            if !is_of_run {
                cancel.cancel();
            }
            is_of_run
        });
    }
}

impl Driver {
    pub(super) fn set_timer(&mut self, timer: Timer, after: Duration) {
        let cancelled = self.timers.add(timer);
        let reports = self.reports.clone();
        self.spawn(async move {
            tokio::select! {
                () = cancelled.cancelled() => {}
                () = tokio::time::sleep(after) => {
                    // If the driver is gone, the report is no longer needed.
                    let _ = reports.send(Report::TimerFired { timer, cancelled }).await;
                }
            }
        });
    }
}
