//! An open session.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use pintle_agent::{Events, Session, SessionHandle, SessionId, SessionState, TreeEvents};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::lock;
use super::waiting_sessions::Tenant;
use crate::host::{OpenSession, SessionControls};

/// An open session.
#[derive(Debug)]
pub(crate) struct LiveSession {
    pub(crate) id: SessionId,
    pub(crate) handle: SessionHandle,
    pub(crate) controls: Arc<dyn SessionControls>,
    /// Held while settings are compared and changed.
    pub(crate) changing: tokio::sync::Mutex<()>,
    pub(super) tenant: Tenant,
    /// Time of the last activity.
    active: Mutex<Instant>,
    /// `None` once the session is being closed.
    pub(super) session: RwLock<Option<Session>>,
    watchers: WatcherCount,
    /// Whether calls that waited when the session was opened are being prepared again, and it has not asked about them yet.
    pub(super) has_unasked_calls: AtomicBool,
    pub(super) leaving: CancellationToken,
    pub(super) ended: CancellationToken,
}

/// Number of streams that follow a session.
#[derive(Debug, Default)]
struct WatcherCount(Arc<AtomicUsize>);

impl WatcherCount {
    fn add(&self) -> WatchGuard {
        self.0.fetch_add(1, Ordering::Relaxed);
        WatchGuard(Arc::clone(&self.0))
    }

    fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// Marks a session as watched until it is dropped.
#[derive(Debug)]
pub(crate) struct WatchGuard(Arc<AtomicUsize>);

impl Drop for WatchGuard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl LiveSession {
    pub(super) fn new(opened: OpenSession, tenant: Tenant, has_unasked_calls: bool) -> Self {
        let OpenSession { mut session, controls } = opened;
        // Dropping the run would interrupt it.
        if let Some(run) = session.resumed() {
            run.detach();
        }
        // Earlier events are read from the record.
        session.forget_events(session.first_new_event());
        Self {
            id: session.id().clone(),
            handle: session.handle(),
            controls,
            changing: tokio::sync::Mutex::default(),
            tenant,
            active: Mutex::new(Instant::now()),
            session: RwLock::new(Some(session)),
            watchers: WatcherCount::default(),
            has_unasked_calls: AtomicBool::new(has_unasked_calls),
            leaving: CancellationToken::new(),
            ended: CancellationToken::new(),
        }
    }

    /// Reads from the session; `None` once it is being closed.
    pub(crate) fn with_session<T>(&self, read: impl FnOnce(&Session) -> T) -> Option<T> {
        self.session.read().unwrap_or_else(PoisonError::into_inner).as_ref().map(read)
    }

    /// Returns the events of the session, starting with `seq`.
    pub(crate) fn events_from(&self, seq: u64) -> Option<Events> {
        self.with_session(|session| session.events_from(seq))
    }

    /// Returns the events of the session and of its subagents.
    pub(crate) fn tree_events(&self) -> Option<TreeEvents> {
        self.with_session(Session::tree_events)
    }

    /// Returns whether the record has waiting calls about which the session has not asked since it was opened.
    pub(crate) fn has_unasked_calls(&self) -> bool {
        self.has_unasked_calls.load(Ordering::Relaxed)
    }

    pub(crate) fn watch(&self) -> WatchGuard {
        self.watchers.add()
    }

    /// Completes when the session is no longer open.
    pub(crate) async fn wait_until_ended(&self) {
        self.ended.cancelled().await;
    }

    /// Returns whether the session has no run, no background command and no queued message.
    pub(super) fn is_resting(&self) -> bool {
        let is_resting = self.with_session(|session| {
            session.state() != SessionState::Processing && session.background_commands().is_empty()
        });
        is_resting.unwrap_or(true) && self.handle.queued().is_empty()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.is_resting() && self.watchers.count() == 0
    }

    /// Returns how long the session has been inactive.
    pub(super) fn idle_time(&self) -> Duration {
        lock(&self.active).elapsed()
    }

    /// Records activity of the session.
    pub(super) fn touch(&self) {
        *lock(&self.active) = Instant::now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watchers_are_counted_until_they_are_dropped() {
        let watchers = WatcherCount::default();
        assert_eq!(watchers.count(), 0);
        let (first, second) = (watchers.add(), watchers.add());
        assert_eq!(watchers.count(), 2);
        drop(first);
        assert_eq!(watchers.count(), 1);
        drop(second);
        assert_eq!(watchers.count(), 0);
    }
}
