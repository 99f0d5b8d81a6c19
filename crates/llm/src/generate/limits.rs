//! How long a generation may take, and who may stop it (client specification, section 4.7).

use std::future::Future;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::error::{Error, ErrorKind};

/// The time limits of one generation; by default there are none beside the adapter's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TimeoutConfig {
    /// For everything: all model calls, the waits between attempts and the tools. A stream's consumer uses up this time
    /// too. A wait that would outlast it is not begun: then the error is that of the attempt before, at once.
    pub total: Option<Duration>,
    /// For each model call, each attempt of its own; waits between attempts do not count, waits inside the client's
    /// middleware do.
    pub per_step: Option<Duration>,
}

impl TimeoutConfig {
    /// With a limit for everything.
    #[must_use]
    pub fn with_total(mut self, limit: Duration) -> Self {
        self.total = Some(limit);
        self
    }

    /// With a limit for each model call.
    #[must_use]
    pub fn with_per_step(mut self, limit: Duration) -> Self {
        self.per_step = Some(limit);
        self
    }
}

/// A plain duration is the limit for everything.
impl From<Duration> for TimeoutConfig {
    fn from(total: Duration) -> Self {
        Self::default().with_total(total)
    }
}

/// Both limits and the abort signal, at work: the clock of the whole runs from [`Limits::start`].
#[derive(Clone, Debug)]
pub(super) struct Limits {
    config: TimeoutConfig,
    end: Option<Instant>,
    abort: CancellationToken,
}

impl Limits {
    pub(super) fn start(config: TimeoutConfig, abort: CancellationToken) -> Self {
        Self { config, end: deadline(config.total), abort }
    }

    /// When everything must be over.
    pub(super) fn end(&self) -> Option<Instant> {
        self.end
    }

    pub(super) fn abort_signal(&self) -> &CancellationToken {
        &self.abort
    }

    /// When a model call that begins now must be over.
    pub(super) fn step_end(&self) -> Option<Instant> {
        deadline(self.config.per_step)
    }

    /// The work, unless the signal or the limit for everything comes first: then the work is dropped.
    pub(super) async fn whole<T>(&self, work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        let work = self.abort.run_until_cancelled(work);
        let Some(outcome) = until(self.end, work).await else {
            return Err(timed_out("the generation", self.config.total));
        };
        outcome.unwrap_or_else(|| Err(Error::new(ErrorKind::Abort, "the abort signal was given")))
    }

    /// The work of one model call, unless the call's limit comes first.
    pub(super) async fn step<T>(
        &self,
        end: Option<Instant>,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        until(end, work).await.unwrap_or_else(|| Err(timed_out("a model call", self.config.per_step)))
    }
}

/// A limit too far away to be told as a time is none.
fn deadline(limit: Option<Duration>) -> Option<Instant> {
    limit.and_then(|limit| Instant::now().checked_add(limit))
}

async fn until<F: Future>(end: Option<Instant>, work: F) -> Option<F::Output> {
    match end {
        Some(end) => timeout_at(end, work).await.ok(),
        None => Some(work.await),
    }
}

fn timed_out(what: &str, limit: Option<Duration>) -> Error {
    let limit = limit.unwrap_or_default();
    Error::new(ErrorKind::RequestTimeout, format!("{what} took longer than its limit of {limit:?}"))
}
