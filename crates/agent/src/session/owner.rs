//! Who waits for a run, from the driver's side.

use std::sync::Arc;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::error::SessionError;
use crate::event_log::EventLog;
use crate::run::{Finished, Run};

/// The driver's side of a [`Run`].
#[derive(Debug)]
pub(crate) struct Owner {
    pub(crate) finished: watch::Sender<Option<Finished>>,
    /// Fires when the run is dropped; `None` once that has been acted upon.
    pub(crate) abandoned: Option<CancellationToken>,
}

impl Owner {
    /// The two sides of a run whose events begin now. The host's is to be told why the input was refused, if it was.
    pub(super) fn of_run(log: &Arc<EventLog>) -> (Self, impl FnOnce(Option<SessionError>) -> Run + use<>) {
        let (sender, finished) = watch::channel(None);
        let abandoned = CancellationToken::new();
        let owner = Self { finished: sender, abandoned: Some(abandoned.clone()) };
        let (log, from) = (Arc::clone(log), log.next_seq());
        (owner, move |refused| Run::new(log, from, finished, abandoned.drop_guard(), refused))
    }
}
