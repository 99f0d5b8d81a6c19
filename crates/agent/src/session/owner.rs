//! Who waits for a run, from the driver's side.

use std::sync::Arc;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::error::SessionError;
use crate::event_log::EventLog;
use crate::run::{Finished, Run, Served};

/// The driver's side of a [`Run`].
#[derive(Debug)]
pub(crate) struct Owner {
    told: watch::Sender<Served>,
    /// Fires when the run is dropped; `None` once that has been acted upon.
    pub(crate) abandoned: Option<CancellationToken>,
}

impl Owner {
    /// The two sides of a run. The host's is to be told why the input was refused, if it was.
    pub(super) fn of_run(log: &Arc<EventLog>) -> (Self, impl FnOnce(Option<SessionError>) -> Run + use<>) {
        let (sender, told) = watch::channel(Served::default());
        let abandoned = CancellationToken::new();
        let owner = Self { told: sender, abandoned: Some(abandoned.clone()) };
        let (log, from) = (Arc::clone(log), log.next_seq());
        (owner, move |refused| Run::new(log, from, told, abandoned.drop_guard(), refused))
    }

    /// Says once that the events from this one on are those of the run.
    pub(crate) fn begins(&self, from: u64) {
        self.told.send_if_modified(|told| {
            let begins = told.from.is_none();
            told.from.get_or_insert(from);
            begins
        });
    }

    /// Says that the run is over.
    pub(crate) fn finished(self, finished: Finished) {
        self.told.send_modify(|told| told.finished = Some(finished));
    }
}
