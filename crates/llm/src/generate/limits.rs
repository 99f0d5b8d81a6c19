//! Time limits and cancellation of a generation (client specification, section 4.7).

use std::future::Future;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::error::{Error, ErrorKind};

/// Time limits of a generation. Default: none besides the adapter's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TimeoutConfig {
    /// All model calls, waits between attempts and tools, including the time of a stream's consumer. Instead of a wait that
    /// would exceed the limit, the generation fails at once with the error of the last attempt.
    pub total: Option<Duration>,
    /// Each attempt at a model call, including waits in the client's middleware but not those between attempts.
    pub per_step: Option<Duration>,
}

impl TimeoutConfig {
    /// Sets the limit on the whole generation.
    #[must_use]
    pub fn with_total(mut self, limit: Duration) -> Self {
        self.total = Some(limit);
        self
    }

    /// Sets the limit on each model call.
    #[must_use]
    pub fn with_per_step(mut self, limit: Duration) -> Self {
        self.per_step = Some(limit);
        self
    }
}

/// A plain duration limits the whole generation.
impl From<Duration> for TimeoutConfig {
    fn from(total: Duration) -> Self {
        Self::default().with_total(total)
    }
}

/// Limits and abort signal of a running generation. The total limit counts from [`Limits::start`].
#[derive(Clone, Debug)]
pub(super) struct Limits {
    config: TimeoutConfig,
    deadline: Option<Instant>,
    abort: CancellationToken,
}

impl Limits {
    pub(super) fn start(config: TimeoutConfig, abort: CancellationToken) -> Self {
        Self { config, deadline: deadline_after(config.total), abort }
    }

    /// Deadline of the generation.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    pub(super) fn abort_signal(&self) -> &CancellationToken {
        &self.abort
    }

    /// Deadline of a model call that starts now.
    pub(super) fn step_deadline(&self) -> Option<Instant> {
        deadline_after(self.config.per_step)
    }

    /// Runs `work`, and drops it on abort or when the total limit expires.
    pub(super) async fn within_total<T>(
        &self,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let work = self.abort.run_until_cancelled(work);
        let Some(outcome) = until(self.deadline, work).await else {
            return Err(timed_out("the generation", self.config.total));
        };
        outcome.unwrap_or_else(|| Err(Error::new(ErrorKind::Abort, "aborted by the abort signal")))
    }

    /// Runs the work of one model call until its deadline.
    pub(super) async fn within_step<T>(
        &self,
        deadline: Option<Instant>,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        until(deadline, work).await.unwrap_or_else(|| Err(timed_out("a model call", self.config.per_step)))
    }
}

/// A limit beyond the range of [`Instant`] is no limit.
fn deadline_after(limit: Option<Duration>) -> Option<Instant> {
    limit.and_then(|limit| Instant::now().checked_add(limit))
}

async fn until<F: Future>(deadline: Option<Instant>, work: F) -> Option<F::Output> {
    match deadline {
        Some(deadline) => timeout_at(deadline, work).await.ok(),
        None => Some(work.await),
    }
}

fn timed_out(what: &str, limit: Option<Duration>) -> Error {
    let limit = limit.unwrap_or_default();
    Error::new(ErrorKind::RequestTimeout, format!("{what} exceeded its limit of {limit:?}"))
}
