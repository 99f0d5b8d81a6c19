//! Run of one submitted input: its events and its outcome.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;
use tokio::sync::watch;
use tokio_util::sync::DropGuard;

use crate::error::{RunError, SessionError};
use crate::event_log::{Cursor, EventLog, ReadOutcome};
use crate::protocol::{Outcome, SessionEvent};

/// Progress of a run, as the driver reports it.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunProgress {
    /// Sequence number of the first event, once the run has started. A run that is rejected, or stopped earlier, never
    /// starts.
    pub(crate) from: Option<u64>,
    /// Outcome of the submitted input, without the follow-ups of the run.
    pub(crate) input: Option<Outcome>,
    pub(crate) end: Option<RunEnd>,
}

/// End of a run.
#[derive(Clone, Debug)]
pub(crate) struct RunEnd {
    pub(crate) outcome: Outcome,
    /// Sequence number of the first event after the run.
    pub(crate) end: u64,
}

/// Run of a submitted input: a stream of its events, and a future of its [`Outcome`] or its [`RunError`].
///
/// The first event reports the input. A run that is rejected, or stopped before it started, has no events. Dropping it
/// interrupts its turn and keeps the session; [`Run::detach`] lets it continue without an owner.
///
/// ```
/// use pintle_agent::{EventKind, ProviderProfile, Session};
/// # use pintle_llm::{Client, testing::FakeAdapter};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let client = Client::builder().provider(FakeAdapter::new("anthropic").answer("Hello.")).build()?;
/// # let env = pintle_env::MemoryEnvironment::new("/project");
/// # let session = Session::builder(client, ProviderProfile::anthropic("claude-opus-4-6"), env).build()?;
/// let mut run = session.submit("Say hello.");
/// let mut text = String::new();
/// while let Some(event) = run.next().await {
///     if let EventKind::AssistantTextDelta { delta } = event.kind {
///         text.push_str(&delta);
///     }
/// }
/// // The stream ends with the run. Its end is a value, or an error.
/// let outcome = run.await?;
/// assert_eq!(outcome.text, text);
/// # Ok(())
/// # }
/// ```
#[must_use = "dropping a run interrupts it; await it, read its events or detach it"]
pub struct Run {
    events: Events,
    progress: watch::Receiver<RunProgress>,
    /// Signals to the driver that the run was dropped.
    drop_guard: DropGuard,
    /// Error if the session rejected the input.
    rejected: Option<SessionError>,
}

impl Run {
    pub(crate) fn new(
        log: Arc<EventLog>,
        from: u64,
        progress: watch::Receiver<RunProgress>,
        drop_guard: DropGuard,
        rejected: Option<SessionError>,
    ) -> Self {
        let events = match rejected {
            None => Events::of_run(Cursor::new(log, from), progress.clone()),
            Some(_) => Events { state: EventsState::Done, run: None },
        };
        Self { events, progress, drop_guard, rejected }
    }

    /// Lets the run continue without an owner.
    pub fn detach(self) {
        self.drop_guard.disarm();
    }

    /// Returns the next event; `None` after the last one of this run. Cancel safe.
    pub async fn next(&mut self) -> Option<SessionEvent> {
        std::future::poll_fn(|cx| Pin::new(&mut self.events).poll_next(cx)).await
    }

    /// Waits for the outcome of the submitted input alone. The run continues with queued follow-ups, each of which has
    /// [its own outcome](crate::QueuedInput). Cancel safe.
    ///
    /// # Errors
    ///
    /// As for [`outcome`](Self::outcome).
    pub async fn input_outcome(&mut self) -> Result<Outcome, RunError> {
        if let Some(rejected) = self.rejected.take() {
            return Err(rejected.into());
        }
        let is_known = |progress: &RunProgress| progress.input.is_some() || progress.end.is_some();
        let ended = self.progress.wait_for(is_known).await;
        let outcome = ended.ok().and_then(|progress| {
            let of_run = progress.end.as_ref().map(|end| &end.outcome);
            progress.input.as_ref().or(of_run).cloned()
        });
        outcome.map_or(Err(RunError::Closed { outcome: None }), RunError::check)
    }

    /// Waits for the outcome of the run, with the follow-ups that it handled, and discards the events.
    ///
    /// # Errors
    ///
    /// [`RunError::Failed`] if the run failed, [`RunError::Closed`] if the session was closed or dropped before the end of the
    /// run, and [`RunError::Busy`], [`RunError::Refused`] or [`RunError::Rejected`] if the input started no run. A reached
    /// limit, an interrupt and a refusal of the model are outcomes.
    pub async fn outcome(self) -> Result<Outcome, RunError> {
        let Self { events, mut progress, drop_guard: _drop_guard, rejected } = self;
        // The log need not keep events without a reader.
        drop(events);
        if let Some(rejected) = rejected {
            return Err(rejected.into());
        }
        let ended = progress.wait_for(|progress| progress.end.is_some()).await;
        let outcome = ended.ok().and_then(|progress| Some(progress.end.as_ref()?.outcome.clone()));
        outcome.map_or(Err(RunError::Closed { outcome: None }), RunError::check)
    }
}

impl Stream for Run {
    type Item = SessionEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<SessionEvent>> {
        Pin::new(&mut self.events).poll_next(cx)
    }
}

impl IntoFuture for Run {
    type Output = Result<Outcome, RunError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.outcome())
    }
}

impl std::fmt::Debug for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let is_finished = self.progress.borrow().end.is_some();
        f.debug_struct("Run").field("finished", &is_finished).finish_non_exhaustive()
    }
}

/// Stream of the events of a session or a run, in order.
///
/// Ends after the last event. A slow subscriber never delays the session: it gets fewer and larger deltas.
pub struct Events {
    state: EventsState,
    /// Set if the stream has the events of one run only.
    run: Option<watch::Receiver<RunProgress>>,
}

enum EventsState {
    Ready(Cursor),
    /// Returns the cursor, unless no more events follow.
    Waiting(Pin<Box<dyn Future<Output = Option<Cursor>> + Send>>),
    Done,
}

impl Events {
    pub(crate) fn of_session(cursor: Cursor) -> Self {
        Self { state: EventsState::Ready(cursor), run: None }
    }

    fn of_run(cursor: Cursor, run: watch::Receiver<RunProgress>) -> Self {
        Self { state: EventsState::Ready(cursor), run: Some(run) }
    }

    /// Returns the next event of the session or the run.
    fn find(&self, cursor: &mut Cursor) -> ReadOutcome {
        let Some(run) = &self.run else { return cursor.find() };
        let (from, has_ended) = {
            let progress = run.borrow();
            (progress.from, progress.end.is_some())
        };
        match from {
            Some(from) => {
                cursor.skip_to(from);
                let at = cursor.position();
                let found = cursor.find();
                // Must be read after the log: the end is reported before the first event of another run.
                let end = run.borrow().end.as_ref().map(|end| end.end);
                if end.is_some_and(|end| at >= end) { ReadOutcome::End } else { found }
            }
            // The run ended before it started.
            None if has_ended => ReadOutcome::End,
            None => ReadOutcome::Nothing,
        }
    }

    /// Returns the next event; `None` after the last one. Cancel safe.
    pub async fn next(&mut self) -> Option<SessionEvent> {
        std::future::poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }
}

impl Stream for Events {
    type Item = SessionEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<SessionEvent>> {
        loop {
            match std::mem::replace(&mut self.state, EventsState::Done) {
                EventsState::Done => return Poll::Ready(None),
                EventsState::Ready(mut cursor) => match self.find(&mut cursor) {
                    ReadOutcome::Event(event) => {
                        self.state = EventsState::Ready(cursor);
                        return Poll::Ready(Some(*event));
                    }
                    ReadOutcome::End => return Poll::Ready(None),
                    ReadOutcome::Nothing => {
                        let mut run = self.run.clone();
                        self.state = EventsState::Waiting(Box::pin(async move {
                            wait(&mut cursor, run.as_mut()).await.then_some(cursor)
                        }));
                    }
                },
                EventsState::Waiting(mut future) => match future.as_mut().poll(cx) {
                    Poll::Ready(Some(cursor)) => self.state = EventsState::Ready(cursor),
                    Poll::Ready(None) => return Poll::Ready(None),
                    Poll::Pending => {
                        self.state = EventsState::Waiting(future);
                        return Poll::Pending;
                    }
                },
            }
        }
    }
}

/// Waits until there may be an event to read. Returns whether any may follow.
async fn wait(cursor: &mut Cursor, run: Option<&mut watch::Receiver<RunProgress>>) -> bool {
    let Some(run) = run else {
        cursor.changed().await;
        return true;
    };
    let has_started = run.borrow().from.is_some();
    if !has_started {
        // Events until then belong to other runs. If the driver is gone, the run never starts.
        return run.wait_for(|progress| progress.from.is_some() || progress.end.is_some()).await.is_ok();
    }
    tokio::select! {
        () = cursor.changed() => {}
        is_gone = async { run.wait_for(|progress| progress.end.is_some()).await.is_err() } => {
            if is_gone {
                // The driver is gone without an end of the run; it closes the log next.
                cursor.changed().await;
            }
        }
    }
    true
}

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Events").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::event_log::Identity;
    use crate::protocol::{OutcomeStatus, SessionId};

    /// The driver may end a run just after its last event was read.
    #[tokio::test]
    async fn end_before_waiting_is_not_missed() {
        let identity = Identity { session_id: SessionId::new("s"), depth: 0, parent: None };
        let mut cursor = Cursor::new(Arc::new(EventLog::new(identity)), 0);
        let (sender, mut run) = watch::channel(RunProgress { from: Some(0), ..RunProgress::default() });
        assert!(matches!(cursor.find(), ReadOutcome::Nothing));
        let outcome = Outcome::new(OutcomeStatus::Completed);
        let end = Some(RunEnd { outcome, end: 0 });
        sender.send(RunProgress { from: Some(0), input: None, end }).unwrap();
        tokio::time::timeout(Duration::from_secs(10), wait(&mut cursor, Some(&mut run))).await.unwrap();
    }
}
