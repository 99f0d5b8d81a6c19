//! One submitted input: its events and its outcome.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;
use tokio::sync::watch;

use crate::error::SessionError;
use crate::event::SessionEvent;
use crate::event_log::{Cursor, EventLog, Found};
use crate::session::SessionHandle;
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
/// Dropping it interrupts the turn and keeps the session; [`Run::detach`] lets it go on.
#[must_use = "dropping a run interrupts it; await it, read its events or detach it"]
pub struct Run {
    events: Events,
    finished: watch::Receiver<Option<Finished>>,
    /// Interrupts when the run is dropped before its end.
    handle: Option<SessionHandle>,
}

impl Run {
    pub(crate) fn new(
        log: Arc<EventLog>,
        from: u64,
        finished: watch::Receiver<Option<Finished>>,
        handle: SessionHandle,
    ) -> Self {
        let events = Events::until(Cursor::new(log, from), Some(finished.clone()));
        Self { events, finished, handle: Some(handle) }
    }

    /// Lets the run go on without anyone who waits for it.
    pub fn detach(mut self) {
        self.handle = None;
    }

    /// The next event; `None` after the last one of this run. Cancel safe.
    pub async fn next(&mut self) -> Option<SessionEvent> {
        std::future::poll_fn(|cx| Pin::new(&mut self.events).poll_next(cx)).await
    }

    /// Waits for the end, without the events.
    ///
    /// # Errors
    ///
    /// [`SessionError::Closed`] if the session was dropped before the run ended.
    pub async fn outcome(mut self) -> Result<Outcome, SessionError> {
        let waited = self.finished.wait_for(Option::is_some).await;
        let finished = waited.ok().and_then(|value| value.as_ref().map(|finished| finished.outcome.clone()));
        self.handle = None;
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

impl Drop for Run {
    fn drop(&mut self) {
        if let Some(handle) = &self.handle
            && self.finished.borrow().is_none()
        {
            // A session that takes no command any more has nothing left to interrupt.
            let _ = handle.interrupt();
        }
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

    fn until(cursor: Cursor, end: Option<watch::Receiver<Option<Finished>>>) -> Self {
        Self { state: State::Ready(cursor), end }
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

async fn wait(cursor: &mut Cursor, end: Option<&mut watch::Receiver<Option<Finished>>>) {
    match end {
        None => cursor.changed().await,
        Some(end) => {
            // A run that is over changes no more; only the log's events are left to read then.
            let over = end.borrow().is_some();
            if over {
                cursor.changed().await;
            } else {
                tokio::select! {
                    () = cursor.changed() => {}
                    changed = end.changed() => {
                        if changed.is_err() {
                            cursor.changed().await;
                        }
                    }
                }
            }
        }
    }
}

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Events").finish_non_exhaustive()
    }
}
