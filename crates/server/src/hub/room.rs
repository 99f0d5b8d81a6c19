//! Room for sessions: inactive sessions are closed to make room, and new sessions wait for active ones.

use std::sync::Arc;
use std::time::Duration;

use pintle_agent::SessionId;
use pintle_store::Summary;

use super::state::NoRoom;
use super::waiting_sessions::Tenant;
use super::{Hub, LiveSession, has_state, lock};
use crate::problem::{FULL, Problem, UNAVAILABLE};

/// Property of the summaries of sessions with the name of their tenant.
pub(crate) const TENANT: &str = "tenant";

/// Minimum time for which an inactive session stays open, because a request may be about to use it.
const GRACE: Duration = Duration::from_secs(1);

/// Result of a request to open a session.
#[derive(Debug)]
pub(crate) enum OpenOutcome {
    /// The session is open.
    Open,
    /// The session is opened once there is room.
    Queued,
}

/// Room for a session that is being opened, until it is dropped. An open session counts without a reservation.
#[derive(Debug)]
pub(super) struct Reservation {
    hub: Arc<Hub>,
    id: SessionId,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        lock(&self.hub.state).opening.remove(&self.id);
        self.hub.freed.notify_waiters();
    }
}

fn tenant_of(summary: &Summary) -> Tenant {
    summary.properties.get(TENANT).cloned()
}

impl Hub {
    /// Returns the position of a session among the sessions of its tenant that wait for room, from 1.
    pub(crate) fn position(&self, id: &SessionId) -> Option<usize> {
        lock(&self.state).waiting.position(id)
    }

    /// Returns the number of sessions that wait for room.
    pub(crate) fn waiting(&self) -> usize {
        lock(&self.state).waiting.len()
    }

    /// Opens a session of the store, or queues it until there is room.
    pub(crate) async fn open_or_wait(self: &Arc<Self>, id: &SessionId) -> Result<OpenOutcome, Problem> {
        if self.live(id).is_some() {
            return Ok(OpenOutcome::Open);
        }
        let tenant = self.tenant(id).await?;
        let _slot = self.slot(id).await;
        if self.live(id).is_some() {
            return Ok(OpenOutcome::Open);
        }
        loop {
            if let Some(_reservation) = self.make_room(id, &tenant).await? {
                self.open_now(id, tenant).await?;
                return Ok(OpenOutcome::Open);
            }
            let waits = lock(&self.state).enqueue(id, &tenant, &self.limits);
            if waits {
                self.report_change(id);
                return Ok(OpenOutcome::Queued);
            }
        }
    }

    /// Opens the tree of `root`, unless a process has it open, so that an input posted to one of its sessions is applied.
    pub(crate) async fn open_after_post(
        self: &Arc<Self>,
        id: &SessionId,
        root: &SessionId,
    ) -> Result<(), Problem> {
        // A session that was open when the input arrived may have applied it and ended.
        if self.live(root).is_some() || !self.store.has_posted(id).await? {
            return Ok(());
        }
        if self.store.holder(root).await?.is_some() {
            self.remember_posted(root);
            return Ok(());
        }
        let summary = self.store.summary(root).await?;
        if summary.is_some_and(|summary| has_state(&summary, "CLOSED")) {
            return Err(Problem::session_ended(root));
        }
        self.open_or_wait(root).await.map(drop)
    }

    pub(super) async fn tenant(&self, id: &SessionId) -> Result<Tenant, Problem> {
        Ok(self.store.summary(id).await?.as_ref().and_then(tenant_of))
    }

    /// Checks that another session can wait for room. Returns the problem of the request otherwise.
    pub(super) fn has_room_to_wait(&self) -> Result<(), Problem> {
        let waiting = self.waiting();
        if waiting >= self.limits.waiting {
            return Err(Problem::new(FULL, format!("{waiting} sessions wait for room, which is the limit")));
        }
        Ok(())
    }

    /// Returns the problem of a request that cannot wait for room.
    pub(super) fn full(&self) -> Problem {
        let open = lock(&self.state).live.len();
        Problem::new(
            FULL,
            format!("{open} sessions are open and work, which is the limit here or of a tenant"),
        )
    }

    /// Reserves room for a session of a tenant, and closes inactive sessions for it. Waits while other openings hold the
    /// last places, because they may fail. Returns `None` if there is no room. The caller holds the slot of the session,
    /// and waits for no other slot while it has the reservation. Cancel safe.
    ///
    /// # Errors
    ///
    /// A problem if the server is shutting down.
    pub(super) async fn make_room(
        self: &Arc<Self>,
        id: &SessionId,
        tenant: &Tenant,
    ) -> Result<Option<Reservation>, Problem> {
        loop {
            if self.closing.is_cancelled() {
                return Err(Problem::new(UNAVAILABLE, "the server is shutting down"));
            }
            // Created before the limits are compared, so that it also completes if room becomes free before it is polled.
            let freed = self.freed.notified();
            let reserved = lock(&self.state).reserve(id, tenant, &self.limits);
            let Err(NoRoom { open, is_opening }) = reserved else {
                return Ok(Some(Reservation { hub: Arc::clone(self), id: id.clone() }));
            };
            if let Some(idle) = idlest(open) {
                idle.leaving.cancel();
                idle.wait_until_ended().await;
                // A message may have arrived while the session was being closed.
                self.spawn(Arc::clone(self).open_if_work(idle.id.clone()));
            } else if is_opening {
                freed.await;
            } else {
                return Ok(None);
            }
        }
    }

    /// Opens waiting sessions as far as there is room.
    pub(super) fn serve_waiting(self: &Arc<Self>) {
        if !self.closing.is_cancelled() && lock(&self.state).starts_serving() {
            let hub = Arc::clone(self);
            self.spawn(async move {
                while hub.serve_first().await {}
                lock(&hub.state).is_serving = false;
            });
        }
    }

    /// Opens the first waiting session of each tenant. Returns whether others have moved up.
    async fn serve_first(self: &Arc<Self>) -> bool {
        let first = lock(&self.state).waiting.first();
        let mut is_served = false;
        for (id, tenant) in first {
            match self.open_or_wait(&id).await {
                Ok(OpenOutcome::Queued) => continue,
                Ok(OpenOutcome::Open) => {}
                Err(problem) => {
                    tracing::warn!(session = %id, problem = problem.detail, "a session that waited cannot be opened");
                }
            }
            lock(&self.state).waiting.remove(&id);
            self.report_positions(&tenant);
            is_served = true;
        }
        is_served
    }

    /// Reports to subscribers that the positions of a tenant's waiting sessions have changed.
    fn report_positions(&self, tenant: &Tenant) {
        let waiting = lock(&self.state).waiting.ids_of_tenant(tenant);
        waiting.iter().for_each(|id| self.report_change(id));
    }
}

/// Returns the session that has been inactive for the longest time. Clients that watch it do not notice when it is closed.
fn idlest(open: Vec<Arc<LiveSession>>) -> Option<Arc<LiveSession>> {
    let resting = open.into_iter().filter(|live| live.is_resting() && live.idle_time() >= GRACE);
    resting.max_by_key(|live| live.idle_time())
}
