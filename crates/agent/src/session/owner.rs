//! The driver's side of a run.

use std::sync::Arc;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::error::SessionError;
use crate::event_log::EventLog;
use crate::protocol::Outcome;
use crate::run::{Run, RunEnd, RunProgress};

/// The driver's side of a [`Run`].
#[derive(Debug)]
pub(crate) struct RunOwner {
    progress: watch::Sender<RunProgress>,
    /// Fires when the run is dropped; `None` once that has been handled.
    pub(crate) dropped: Option<CancellationToken>,
}

impl RunOwner {
    /// Creates both sides of a run. The run itself is created with the error of its submission, if it was rejected.
    pub(crate) fn new(log: &Arc<EventLog>) -> (Self, impl FnOnce(Option<SessionError>) -> Run + use<>) {
        let (sender, progress) = watch::channel(RunProgress::default());
        let dropped = CancellationToken::new();
        let owner = Self { progress: sender, dropped: Some(dropped.clone()) };
        let (log, from) = (Arc::clone(log), log.next_seq());
        (owner, move |rejected| Run::new(log, from, progress, dropped.drop_guard(), rejected))
    }

    /// Reports the start of the run, with the sequence number of its first event. Only the first report counts.
    pub(crate) fn started(&self, from: u64) {
        self.progress.send_if_modified(|progress| {
            let is_first = progress.from.is_none();
            progress.from.get_or_insert(from);
            is_first
        });
    }

    /// Reports the outcome of an input of the run. Only the first report counts: the others are follow-ups.
    pub(crate) fn input_finished(&self, outcome: Outcome) {
        self.progress.send_if_modified(|progress| {
            let is_first = progress.input.is_none();
            progress.input.get_or_insert(outcome);
            is_first
        });
    }

    /// Reports the end of the run.
    pub(crate) fn finished(self, end: RunEnd) {
        self.progress.send_modify(|progress| progress.end = Some(end));
    }
}
