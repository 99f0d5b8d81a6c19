//! An open session.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use pintle_agent::{Events, Session, SessionHandle, SessionId, SessionState, TreeEvents};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::lock;
use super::waiting::Tenant;
use crate::host::{OpenSession, SessionControls};

/// An open session.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) id: SessionId,
    pub(crate) handle: SessionHandle,
    pub(crate) controls: Arc<dyn SessionControls>,
    /// Held while settings are compared and changed.
    pub(crate) changing: tokio::sync::Mutex<()>,
    pub(super) tenant: Tenant,
    /// When it did something last.
    active: Mutex<Instant>,
    /// `None` once it is being closed.
    pub(super) session: RwLock<Option<Session>>,
    /// Cloned by everybody who watches.
    watched: Arc<()>,
    /// Whether calls that waited when it was opened are prepared again, and not asked about yet.
    pub(super) asks_anew: AtomicBool,
    pub(super) leaving: CancellationToken,
    pub(super) ended: CancellationToken,
}

/// Marks a session as watched until it is dropped.
#[derive(Debug)]
pub(crate) struct Watching(#[expect(dead_code, reason = "its count is what matters")] Arc<()>);

impl Live {
    pub(super) fn new(opened: OpenSession, tenant: Tenant, asks_anew: bool) -> Self {
        let OpenSession { mut session, controls } = opened;
        // Dropping it would interrupt its run.
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
            watched: Arc::default(),
            asks_anew: AtomicBool::new(asks_anew),
            leaving: CancellationToken::new(),
            ended: CancellationToken::new(),
        }
    }

    /// Reads from the session; `None` once it is being closed.
    pub(crate) fn with<T>(&self, read: impl FnOnce(&Session) -> T) -> Option<T> {
        self.session.read().unwrap_or_else(PoisonError::into_inner).as_ref().map(read)
    }

    /// Returns the events of the session from `seq` on.
    pub(crate) fn events_from(&self, seq: u64) -> Option<Events> {
        self.with(|session| session.events_from(seq))
    }

    /// Returns the events of the session and of its subagents.
    pub(crate) fn tree_events(&self) -> Option<TreeEvents> {
        self.with(Session::tree_events)
    }

    /// Returns whether its record has calls that wait, about which it has not asked since it was opened.
    pub(crate) fn asks_anew(&self) -> bool {
        self.asks_anew.load(Ordering::Relaxed)
    }

    pub(crate) fn watch(&self) -> Watching {
        Watching(Arc::clone(&self.watched))
    }

    /// Completes when the session is not open any more.
    pub(crate) async fn ended(&self) {
        self.ended.cancelled().await;
    }

    /// Returns whether nothing runs, and nothing waits.
    pub(super) fn is_resting(&self) -> bool {
        let is_resting = self.with(|session| {
            session.state() != SessionState::Processing && session.background_commands().is_empty()
        });
        is_resting.unwrap_or(true) && self.handle.queued().is_empty()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.is_resting() && Arc::strong_count(&self.watched) == 1
    }

    /// Returns for how long it has done nothing.
    pub(super) fn rested(&self) -> Duration {
        lock(&self.active).elapsed()
    }

    pub(super) fn is_active(&self) {
        *lock(&self.active) = Instant::now();
    }
}
