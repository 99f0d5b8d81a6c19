//! One submitted input: its events and its outcome.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;
use tokio::sync::watch;
use tokio_util::sync::DropGuard;

use crate::error::SessionError;
use crate::event::SessionEvent;
use crate::event_log::{Cursor, EventLog, Found};
use crate::turn::Outcome;

/// What the driver tells of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Served {
    /// The number of its first event, once it has begun. One that is refused, or stopped before, never has.
    pub(crate) from: Option<u64>,
    pub(crate) finished: Option<Finished>,
}

/// What the driver leaves when a run is over.
#[derive(Clone, Debug)]
pub(crate) struct Finished {
    pub(crate) outcome: Outcome,
    /// The number of the first event that is not part of the run.
    pub(crate) end: u64,
}

/// An input that is being handled: a stream of its events, and a future of its [`Outcome`].
///
/// The first of its events is that of the input; an input that is refused, or stopped before it began, has none.
/// Dropping it interrupts its turn and keeps the session; [`Run::detach`] lets it go on.
#[must_use = "dropping a run interrupts it; await it, read its events or detach it"]
pub struct Run {
    events: Events,
    served: watch::Receiver<Served>,
    /// Tells the driver that nobody waits any more.
    abandoned: DropGuard,
    /// Why the session never took the input.
    refused: Option<SessionError>,
}

impl Run {
    pub(crate) fn new(
        log: Arc<EventLog>,
        from: u64,
        served: watch::Receiver<Served>,
        abandoned: DropGuard,
        refused: Option<SessionError>,
    ) -> Self {
        let events = match refused {
            None => Events::of_run(Cursor::new(log, from), served.clone()),
            Some(_) => Events { state: State::Done, run: None },
        };
        Self { events, served, abandoned, refused }
    }

    /// Lets the run go on without anyone who waits for it.
    pub fn detach(self) {
        self.abandoned.disarm();
    }

    /// The next event; `None` after the last one of this run. Cancel safe.
    pub async fn next(&mut self) -> Option<SessionEvent> {
        std::future::poll_fn(|cx| Pin::new(&mut self.events).poll_next(cx)).await
    }

    /// Waits for the end, without the events.
    ///
    /// # Errors
    ///
    /// [`SessionError::Full`] if the session never took the input, [`SessionError::Closed`] if it was closed before,
    /// or dropped before the run ended.
    pub async fn outcome(self) -> Result<Outcome, SessionError> {
        let Self { events, mut served, abandoned: _abandoned, refused } = self;
        // Nobody reads them any more, so that the log need not keep them.
        drop(events);
        if let Some(refused) = refused {
            return Err(refused);
        }
        let waited = served.wait_for(|served| served.finished.is_some()).await;
        let finished = waited.ok().and_then(|served| Some(served.finished.as_ref()?.outcome.clone()));
        finished.ok_or(SessionError::Closed)
    }
}

impl Stream for Run {
    type Item = SessionEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<SessionEvent>> {
        Pin::new(&mut self.events).poll_next(cx)
    }
}

impl IntoFuture for Run {
    type Output = Result<Outcome, SessionError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.outcome())
    }
}

impl std::fmt::Debug for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let is_finished = self.served.borrow().finished.is_some();
        f.debug_struct("Run").field("finished", &is_finished).finish_non_exhaustive()
    }
}

/// A subscriber's events, in order.
///
/// It ends after the session's last event. It never holds the session up: who reads slowly gets fewer and larger
/// deltas.
pub struct Events {
    state: State,
    /// The run whose events they are, if they are those of one only.
    run: Option<watch::Receiver<Served>>,
}

enum State {
    Ready(Cursor),
    /// Gives the cursor back, unless nothing follows.
    Waiting(Pin<Box<dyn Future<Output = Option<Cursor>> + Send>>),
    Done,
}

impl Events {
    pub(crate) fn of_session(cursor: Cursor) -> Self {
        Self { state: State::Ready(cursor), run: None }
    }

    fn of_run(cursor: Cursor, run: watch::Receiver<Served>) -> Self {
        Self { state: State::Ready(cursor), run: Some(run) }
    }

    /// What is next, of the events that are meant.
    fn find(&self, cursor: &mut Cursor) -> Found {
        let Some(run) = &self.run else { return cursor.find() };
        let (from, has_ended) = {
            let served = run.borrow();
            (served.from, served.finished.is_some())
        };
        match from {
            Some(from) => {
                cursor.skip_to(from);
                let at = cursor.position();
                let found = cursor.find();
                // Asked after the look into the log: the end is told before another run's first event is there.
                let end = run.borrow().finished.as_ref().map(|finished| finished.end);
                if end.is_some_and(|end| at >= end) { Found::End } else { found }
            }
            // It ended before it began.
            None if has_ended => Found::End,
            None => Found::Nothing,
        }
    }

    /// The next event; `None` after the last one. Cancel safe.
    pub async fn next(&mut self) -> Option<SessionEvent> {
        std::future::poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }
}

impl Stream for Events {
    type Item = SessionEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<SessionEvent>> {
        loop {
            match std::mem::replace(&mut self.state, State::Done) {
                State::Done => return Poll::Ready(None),
                State::Ready(mut cursor) => match self.find(&mut cursor) {
                    Found::Event(event) => {
                        self.state = State::Ready(cursor);
                        return Poll::Ready(Some(*event));
                    }
                    Found::End => return Poll::Ready(None),
                    Found::Nothing => {
                        let mut run = self.run.clone();
                        self.state = State::Waiting(Box::pin(async move {
                            wait(&mut cursor, run.as_mut()).await.then_some(cursor)
                        }));
                    }
                },
                State::Waiting(mut future) => match future.as_mut().poll(cx) {
                    Poll::Ready(Some(cursor)) => self.state = State::Ready(cursor),
                    Poll::Ready(None) => return Poll::Ready(None),
                    Poll::Pending => {
                        self.state = State::Waiting(future);
                        return Poll::Pending;
                    }
                },
            }
        }
    }
}

/// Waits until there may be something to read, or nothing any more. Says whether anything may follow.
async fn wait(cursor: &mut Cursor, run: Option<&mut watch::Receiver<Served>>) -> bool {
    let Some(run) = run else {
        cursor.changed().await;
        return true;
    };
    let has_begun = run.borrow().from.is_some();
    if !has_begun {
        // What comes meanwhile is not about this run. Without a driver it never begins.
        return run.wait_for(|served| served.from.is_some() || served.finished.is_some()).await.is_ok();
    }
    tokio::select! {
        () = cursor.changed() => {}
        gone = async { run.wait_for(|served| served.finished.is_some()).await.is_err() } => {
            if gone {
                // The driver went without an end of the run; the log is closed next.
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
    use crate::id::SessionId;
    use crate::turn::OutcomeStatus;

    /// The driver may end a run just when its last event has been read.
    #[tokio::test]
    async fn the_end_of_a_run_that_comes_before_the_waiting_is_not_missed() {
        let identity = Identity { session_id: SessionId::new("s"), depth: 0, parent: None };
        let mut cursor = Cursor::new(Arc::new(EventLog::new(identity)), 0);
        let (sender, mut run) = watch::channel(Served { from: Some(0), finished: None });
        assert!(matches!(cursor.find(), Found::Nothing));
        let outcome = Outcome::new(OutcomeStatus::Completed);
        sender.send(Served { from: Some(0), finished: Some(Finished { outcome, end: 0 }) }).unwrap();
        tokio::time::timeout(Duration::from_secs(10), wait(&mut cursor, Some(&mut run))).await.unwrap();
    }
}
