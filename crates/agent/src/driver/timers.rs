//! The times that the machine wants to be told of.

use std::collections::HashMap;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::{Driver, Report};
use crate::turn::Timer;

/// The timers that run. One that has fired and is stopped before the driver hears of it has not fired.
#[derive(Debug, Default)]
pub(super) struct Timers {
    running: HashMap<Timer, CancellationToken>,
}

impl Timers {
    /// Begins one, in the place of an earlier one of the same name. Gives what stops it.
    fn begin(&mut self, timer: Timer) -> CancellationToken {
        let cancel = CancellationToken::new();
        if let Some(earlier) = self.running.insert(timer, cancel.clone()) {
            earlier.cancel();
        }
        cancel
    }

    /// Stops one.
    pub(super) fn forget(&mut self, timer: Timer) {
        if let Some(cancel) = self.running.remove(&timer) {
            cancel.cancel();
        }
    }

    /// Stops those that are about calls.
    pub(super) fn forget_calls(&mut self) {
        self.running.retain(|timer, cancel| {
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
        let cancel = self.timers.begin(timer);
        let reports = self.reports.clone();
        self.spawn(async move {
            tokio::select! {
                () = cancel.cancelled() => {}
                () = tokio::time::sleep(after) => {
                    // Without a driver there is nothing to time.
                    let _ = reports.send(Report::TimerFired { timer, stopped: cancel }).await;
                }
            }
        });
    }
}
