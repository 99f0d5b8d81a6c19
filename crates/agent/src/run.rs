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

/// What the driver leaves when a run is over.
#[derive(Clone, Debug)]
pub(crate) struct Finished {
    pub(crate) outcome: Outcome,
    /// The number of the first event that is not part of the run.
    pub(crate) end: u64,
}

/// An input that is being handled: a stream of its events, and a future of its [`Outcome`].
///
/// Dropping it interrupts its turn and keeps the session; [`Run::detach`] lets it go on.
#[must_use = "dropping a run interrupts it; await it, read its events or detach it"]
pub struct Run {
    events: Events,
    finished: watch::Receiver<Option<Finished>>,
    /// Tells the driver that nobody waits any more.
    abandoned: DropGuard,
    /// Why the session never took the input.
    refused: Option<SessionError>,
}

impl Run {
    pub(crate) fn new(
        log: Arc<EventLog>,
        from: u64,
        finished: watch::Receiver<Option<Finished>>,
        abandoned: DropGuard,
        refused: Option<SessionError>,
    ) -> Self {
        let events = match refused {
            None => Events::until(Cursor::new(log, from), finished.clone()),
            Some(_) => Events { state: State::Done, end: None },
        };
        Self { events, finished, abandoned, refused }
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
    pub async fn outcome(mut self) -> Result<Outcome, SessionError> {
        if let Some(refused) = self.refused.take() {
            return Err(refused);
        }
        let waited = self.finished.wait_for(Option::is_some).await;
        let finished = waited.ok().and_then(|value| value.as_ref().map(|finished| finished.outcome.clone()));
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
        f.debug_struct("Run").field("finished", &self.finished.borrow().is_some()).finish_non_exhaustive()
    }
}

/// A subscriber's events, in order.
///
/// It ends after the session's last event. It never holds the session up: who reads slowly gets fewer and larger
/// deltas.
pub struct Events {
    state: State,
    end: Option<watch::Receiver<Option<Finished>>>,
}

enum State {
    Ready(Cursor),
    Waiting(Pin<Box<dyn Future<Output = Cursor> + Send>>),
    Done,
}

impl Events {
    pub(crate) fn of_session(cursor: Cursor) -> Self {
        Self { state: State::Ready(cursor), end: None }
    }

    fn until(cursor: Cursor, end: watch::Receiver<Option<Finished>>) -> Self {
        Self { state: State::Ready(cursor), end: Some(end) }
    }

    /// Whether every event of the run has been read.
    fn is_past_end(&self, cursor: &Cursor) -> bool {
        let Some(end) = &self.end else { return false };
        let finished = end.borrow().as_ref().map(|finished| finished.end);
        finished.is_some_and(|end| cursor.position() >= end)
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
                State::Ready(mut cursor) => {
                    if self.is_past_end(&cursor) {
                        return Poll::Ready(None);
                    }
                    match cursor.find() {
                        Found::Event(event) => {
                            self.state = State::Ready(cursor);
                            return Poll::Ready(Some(*event));
                        }
                        Found::End => return Poll::Ready(None),
                        Found::Nothing => {
                            let mut end = self.end.clone();
                            self.state = State::Waiting(Box::pin(async move {
                                wait(&mut cursor, end.as_mut()).await;
                                cursor
                            }));
                        }
                    }
                }
                State::Waiting(mut future) => match future.as_mut().poll(cx) {
                    Poll::Ready(cursor) => self.state = State::Ready(cursor),
                    Poll::Pending => {
                        self.state = State::Waiting(future);
                        return Poll::Pending;
                    }
                },
            }
        }
    }
}

/// Waits until there may be something to read, or nothing any more.
async fn wait(cursor: &mut Cursor, end: Option<&mut watch::Receiver<Option<Finished>>>) {
    let Some(end) = end else { return cursor.changed().await };
    tokio::select! {
        () = cursor.changed() => {}
        gone = async { end.wait_for(Option::is_some).await.is_err() } => {
            if gone {
                // The driver went without an end of the run; the log is closed next.
                cursor.changed().await;
            }
        }
    }
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
        let (sender, mut end) = watch::channel(None);
        assert!(matches!(cursor.find(), Found::Nothing));
        let outcome = Outcome::new(OutcomeStatus::Completed);
        sender.send(Some(Finished { outcome, end: 0 })).unwrap();
        tokio::time::timeout(Duration::from_secs(10), wait(&mut cursor, Some(&mut end))).await.unwrap();
    }
}
