//! Open sessions of a server.

mod following;
mod live_session;
mod room;
mod slot;
mod state;
mod takeover;
mod waiting_sessions;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;
use pintle_agent::SessionId;
use pintle_llm::Fingerprint;
use pintle_store::{SessionStore, StoreError, StoredJournal, Summary};
use tokio::sync::{Notify, broadcast, oneshot};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::counters::ServerCounters;
use crate::files::{RestoreReport, RestoreRequest};
use crate::host::{HostError, NewSession, OpenSession, SessionHost};
use crate::limits::ServerLimits;
use crate::problem::{CONFLICT, FAILED, Problem};

pub(crate) use self::live_session::{LiveSession, WatchGuard};
pub(crate) use self::room::TENANT;
use self::state::HubState;
pub use self::takeover::Reopened;
use self::waiting_sessions::Tenant;

/// Property of the summaries of sessions that a server resumes.
pub(crate) const SERVER_OWNED: &str = "served";

/// Maximum number of changes that wait for a slow subscriber. Beyond it, the subscriber reads the complete state again.
const CHANGES: usize = 1_024;

/// Open sessions, and the store with all other sessions.
#[derive(Debug)]
pub(crate) struct Hub {
    pub(crate) host: Arc<dyn SessionHost>,
    pub(crate) store: Arc<dyn SessionStore>,
    pub(crate) limits: ServerLimits,
    pub(crate) counters: Arc<ServerCounters>,
    /// Never locked across an await.
    state: Mutex<HubState>,
    /// Notified when a session is closed, and when an opening has ended.
    freed: Notify,
    /// Held while a session starts without room, so that at most one session is open beyond the limits.
    beyond: tokio::sync::Mutex<()>,
    changes: broadcast::Sender<SessionChange>,
    tasks: Mutex<JoinSet<()>>,
    closing: CancellationToken,
    /// Cancelled once the sessions are closed.
    drained: CancellationToken,
}

/// Change that affects lists of sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SessionChange {
    /// A session changed.
    Changed(SessionId),
    /// A session of this tenant was deleted.
    Deleted { id: SessionId, tenant: Option<String> },
}

impl SessionChange {
    /// Returns the id of the session.
    pub(crate) fn id(&self) -> &SessionId {
        match self {
            Self::Changed(id) | Self::Deleted { id, .. } => id,
        }
    }
}

impl Hub {
    pub(crate) fn new(
        host: Arc<dyn SessionHost>,
        store: Arc<dyn SessionStore>,
        limits: ServerLimits,
    ) -> Arc<Self> {
        Arc::new(Self {
            host,
            store,
            limits,
            counters: Arc::default(),
            state: Mutex::default(),
            freed: Notify::new(),
            beyond: tokio::sync::Mutex::default(),
            changes: broadcast::Sender::new(CHANGES),
            tasks: Mutex::default(),
            closing: CancellationToken::new(),
            drained: CancellationToken::new(),
        })
    }

    pub(crate) fn live(&self, id: &SessionId) -> Option<Arc<LiveSession>> {
        lock(&self.state).live.get(id).cloned()
    }

    pub(crate) fn all_live(&self) -> Vec<Arc<LiveSession>> {
        lock(&self.state).live.values().cloned().collect()
    }

    /// Subscribes to the changes of sessions.
    pub(crate) fn changes(&self) -> broadcast::Receiver<SessionChange> {
        self.changes.subscribe()
    }

    /// Returns the token that is cancelled when the server shuts down.
    pub(crate) fn closing(&self) -> &CancellationToken {
        &self.closing
    }

    /// Returns the token that is cancelled when a server that shuts down has closed its sessions. Streams end only then, so
    /// that clients get the events of the last runs.
    pub(crate) fn drained(&self) -> &CancellationToken {
        &self.drained
    }

    pub(crate) fn report_change(&self, id: &SessionId) {
        // Sending fails only without a subscriber.
        let _ = self.changes.send(SessionChange::Changed(id.clone()));
    }

    /// Opens a session like [`open`](Self::open), in a task of the hub. The opening continues if the caller is dropped, as a
    /// safe request is when its client disconnects: other requests may wait for it.
    ///
    /// # Errors
    ///
    /// As for [`open`](Self::open).
    pub(crate) async fn open_detached(self: &Arc<Self>, id: &SessionId) -> Result<Arc<LiveSession>, Problem> {
        if let Some(live) = self.live(id) {
            return Ok(live);
        }
        let (hub, id) = (Arc::clone(self), id.clone());
        let opened = self.carry_out(async move { hub.open(&id).await }).await;
        opened.unwrap_or_else(|| Err(Problem::new(FAILED, "the session cannot be opened")))
    }

    /// Opens a session of the store, unless it is open. Dropping the future cancels the opening: call it in a task of the
    /// hub, as [`carry_out`](Self::carry_out) does.
    ///
    /// # Errors
    ///
    /// A problem, for instance if there is no room, because the request needs the session now.
    pub(crate) async fn open(self: &Arc<Self>, id: &SessionId) -> Result<Arc<LiveSession>, Problem> {
        if let Some(live) = self.live(id) {
            return Ok(live);
        }
        let tenant = self.tenant(id).await?;
        let _slot = self.slot(id).await;
        if let Some(live) = self.live(id) {
            return Ok(live);
        }
        let Some(_reservation) = self.make_room(id, &tenant).await? else {
            return Err(self.full());
        };
        self.open_now(id, tenant).await
    }

    /// Opens a session. The caller holds its slot and a reservation.
    async fn open_now(self: &Arc<Self>, id: &SessionId, tenant: Tenant) -> Result<Arc<LiveSession>, Problem> {
        let summary = self.store.summary(id).await?;
        let asks =
            summary.is_some_and(|summary| summary.properties.contains_key(StoredJournal::PENDING_APPROVALS));
        let opened = self.host.open(id).await?;
        lock(&self.state).waiting.remove(id);
        Ok(self.add(opened, tenant, asks))
    }

    /// Creates a session, unless an earlier request has created it. Returns its id and whether it is new.
    pub(crate) async fn create(
        self: &Arc<Self>,
        id: SessionId,
        request: NewSession,
    ) -> Result<(SessionId, bool), Problem> {
        let tenant = request.properties.get(TENANT).cloned();
        let create = || self.host.create(id.clone(), request);
        self.begin(id.clone(), tenant, create).await
    }

    /// Creates a fork of a session in the tree of `root`, unless an earlier request has created it. The tree is not opened,
    /// restored or deleted meanwhile.
    pub(crate) async fn fork(
        self: &Arc<Self>,
        origin: &SessionId,
        root: &SessionId,
        turns: usize,
        fork: SessionId,
    ) -> Result<(SessionId, bool), Problem> {
        // The id of a fork is derived from the id of its origin, so that two forks never wait for each other.
        let _tree = self.slot(root).await;
        let tenant = self.tenant(origin).await?;
        self.begin(fork.clone(), tenant, || self.host.fork(origin, turns, fork.clone())).await
    }

    /// Starts a session. If there is no room for it, closes it at once, and inputs posted to it wait.
    async fn begin<F>(
        self: &Arc<Self>,
        id: SessionId,
        tenant: Tenant,
        begin: impl FnOnce() -> F,
    ) -> Result<(SessionId, bool), Problem>
    where
        F: Future<Output = Result<OpenSession, HostError>>,
    {
        let _slot = self.slot(&id).await;
        if self.store.summary(&id).await?.is_some() {
            return Ok((id, false));
        }
        let reservation = self.make_room(&id, &tenant).await?;
        let _beyond = match &reservation {
            Some(_) => None,
            None => {
                self.has_room_to_wait()?;
                Some(self.beyond.lock().await)
            }
        };
        match begin().await {
            // The client could not find the session under the id in the response.
            Ok(opened) if opened.session.id() != &id => {
                let other = opened.session.id().clone();
                opened.controls.close(opened.session).await;
                Err(Problem::new(FAILED, format!("the host started session `{other}` instead of `{id}`")))
            }
            Ok(opened) => {
                self.add(opened, tenant, false);
                if reservation.is_none() {
                    self.release(&id).await;
                }
                Ok((id, true))
            }
            // Another server got the same request: the id is derived from the request's key.
            Err(HostError::Exists(_)) => Ok((id, false)),
            Err(error) => Err(error.into()),
        }
    }

    /// Restores files of a session. Closes the session first, unless the request is a dry run.
    pub(crate) async fn restore(
        self: &Arc<Self>,
        id: &SessionId,
        request: RestoreRequest,
    ) -> Result<RestoreReport, Problem> {
        let is_busy = || self.live(id).is_some_and(|live| !live.is_resting());
        let busy = || Problem::new(CONFLICT, "the session works: interrupt it first");
        if is_busy() {
            return Err(busy());
        }
        let plan = self.host.restore(id, &RestoreRequest { dry_run: true, ..request.clone() }).await?;
        if request.dry_run {
            return Ok(plan);
        }
        if !plan.changed_by_others.is_empty() && !request.force {
            let detail = format!(
                "another user or process may have changed {}: nothing was restored, and `force` restores these as well",
                plan.changed_by_others.join(", ")
            );
            return Err(Problem::new(CONFLICT, detail));
        }
        // Held until the end, so that no request opens the session meanwhile.
        let _slot = self.slot(id).await;
        if is_busy() {
            return Err(busy());
        }
        self.release(id).await;
        let restored = self.host.restore(id, &request).await;
        self.spawn(Arc::clone(self).open_if_work(id.clone()));
        Ok(restored?)
    }

    /// Closes and deletes a session of the tree of `root`. `before` reads the session's record once it is closed.
    pub(crate) async fn delete<F>(
        self: &Arc<Self>,
        id: &SessionId,
        root: &SessionId,
        tenant: Option<String>,
        before: impl FnOnce() -> F,
    ) -> Result<(), Problem>
    where
        F: Future<Output = ()>,
    {
        // Held until the end, so that no request opens the tree meanwhile.
        let _slot = self.slot(root).await;
        self.release(id).await;
        before().await;
        lock(&self.state).waiting.remove(id);
        self.host.delete(id).await?;
        // Sending fails only without a subscriber.
        let _ = self.changes.send(SessionChange::Deleted { id: id.clone(), tenant });
        Ok(())
    }

    fn add(
        self: &Arc<Self>,
        opened: OpenSession,
        tenant: Tenant,
        has_unasked_calls: bool,
    ) -> Arc<LiveSession> {
        let live = Arc::new(LiveSession::new(opened, tenant, has_unasked_calls));
        lock(&self.state).add(Arc::clone(&live));
        self.spawn(Arc::clone(self).follow_and_close(Arc::clone(&live)));
        self.report_change(&live.id);
        live
    }

    /// Opens a closed session if it has work.
    fn open_if_work(self: Arc<Self>, id: SessionId) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let Ok(Some(summary)) = self.store.summary(&id).await else { return };
            if !self.has_work(&summary).await.unwrap_or(false) {
                return;
            }
            if let Err(problem) = self.open_or_wait(&id).await {
                tracing::warn!(session = %id, problem = problem.detail, "the session cannot be opened again");
            }
        })
    }

    /// Returns whether a session that is not open has work: an unfinished run or a posted input.
    async fn has_work(&self, summary: &Summary) -> Result<bool, StoreError> {
        // The inbox of a session that has ended is never read again.
        Ok(summary.is_session()
            && !has_state(summary, "CLOSED")
            && (is_unfinished(summary) || self.store.has_posted(&summary.id).await?))
    }

    /// Returns whether a request is the first on this server that decides on a call, or a repetition of the first.
    pub(crate) fn decides_first(
        &self,
        id: &SessionId,
        call: &str,
        ticket: Fingerprint,
        request: &str,
    ) -> bool {
        let mut state = lock(&self.state);
        let first =
            state.decided.entry((id.clone(), call.to_owned(), ticket)).or_insert_with(|| request.to_owned());
        first == request
    }

    /// Withdraws a request's decision on a gate, which could not be posted. Decisions on calls are removed with their
    /// session.
    #[cfg(feature = "tasks")]
    pub(crate) fn withdraw_decision(&self, id: &SessionId, call: &str, ticket: Fingerprint, request: &str) {
        let key = (id.clone(), call.to_owned(), ticket);
        let mut state = lock(&self.state);
        if state.decided.get(&key).is_some_and(|first| first == request) {
            state.decided.remove(&key);
        }
    }

    /// Closes a session in this process, so that another process or the host can use it.
    async fn release(&self, id: &SessionId) {
        if let Some(live) = self.live(id) {
            live.leaving.cancel();
            live.wait_until_ended().await;
        }
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = lock(&self.tasks);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
    }

    /// Runs a request to completion, even if its client disconnects. Returns `None` if it panics.
    pub(crate) async fn carry_out<T: Send + 'static>(
        &self,
        request: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let (done, answer) = oneshot::channel();
        self.spawn(async move {
            // Fails if the client has disconnected.
            let _ = done.send(request.await);
        });
        answer.await.ok()
    }

    /// Closes all sessions. Runs that exceed the drain time are left to the next server.
    pub(crate) async fn shut_down(&self) {
        self.closing.cancel();
        loop {
            let next = std::mem::take(&mut *lock(&self.tasks));
            if next.is_empty() {
                break;
            }
            next.join_all().await;
        }
        self.drained.cancel();
    }
}

fn is_unfinished(summary: &Summary) -> bool {
    has_state(summary, "PROCESSING") || summary.properties.contains_key(StoredJournal::PENDING_APPROVALS)
}

fn has_state(summary: &Summary, state: &str) -> bool {
    summary.properties.get(StoredJournal::STATE).is_some_and(|found| found == state)
}

/// Locks a mutex. Its value stays valid after a panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
