//! Callers that wait for the end of a compaction.

use tokio::sync::oneshot;

use crate::protocol::{CompactionReport, EventKind};

/// Callers that wait, and the report for them.
#[derive(Debug, Default)]
pub(super) struct CompactionCallers {
    waiting: Vec<oneshot::Sender<CompactionReport>>,
    report: CompactionReport,
}

impl CompactionCallers {
    pub(super) fn add(&mut self, caller: oneshot::Sender<CompactionReport>) {
        self.waiting.push(caller);
    }

    /// Adds events about the result of a compaction to the report, if a caller waits for it.
    pub(super) fn add_results(&mut self, results: Vec<EventKind>) {
        if !self.waiting.is_empty() {
            self.report.events.extend(results);
        }
    }

    /// Answers the callers after the end of the compaction.
    pub(super) fn answer(&mut self, is_deferred: bool) {
        let report = CompactionReport { is_deferred, ..std::mem::take(&mut self.report) };
        for caller in self.waiting.drain(..) {
            // A caller that has stopped waiting needs no answer.
            let _ = caller.send(report.clone());
        }
    }

    /// Drops the callers of a session that is closed.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}
