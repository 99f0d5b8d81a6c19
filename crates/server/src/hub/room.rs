//! Room for sessions: those that do nothing make way, and the others are waited for.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use pintle_agent::SessionId;
use pintle_store::Summary;

use super::waiting::Tenant;
use super::{Hub, Live, has_state, lock};
use crate::problem::{FULL, Problem, UNAVAILABLE};

/// Property of the summaries of sessions with the name of their tenant.
pub(crate) const TENANT: &str = "tenant";

/// Time for which a session that does nothing stays open in any case: a request may be about to use it.
const GRACE: Duration = Duration::from_secs(1);

/// A session that was asked for.
#[derive(Debug)]
pub(crate) enum Asked {
    /// It is open.
    Open,
    /// It is opened once there is room.
    Waits,
}

pub(super) fn tenant_of(summary: &Summary) -> Tenant {
    summary.properties.get(TENANT).cloned()
}

impl Hub {
    /// Returns the place of a session that waits for room, among those of its tenant, from 1.
    pub(crate) fn position(&self, id: &SessionId) -> Option<usize> {
        lock(&self.waiting).position(id)
    }

    /// Returns the number of sessions that wait for room.
    pub(crate) fn waiting(&self) -> usize {
        lock(&self.waiting).len()
    }

    /// Opens a session of the store, or has it wait for room.
    pub(crate) async fn open_or_wait(self: &Arc<Self>, id: &SessionId) -> Result<Asked, Problem> {
        if self.live(id).is_some() {
            return Ok(Asked::Open);
        }
        let tenant = self.tenant(id).await?;
        let _opening = self.opening.lock().await;
        if self.live(id).is_some() {
            return Ok(Asked::Open);
        }
        if self.make_room(&tenant).await? {
            self.open_now(id, tenant).await?;
            return Ok(Asked::Open);
        }
        lock(&self.waiting).add(id.clone(), tenant);
        self.changed(id);
        Ok(Asked::Waits)
    }

    /// Opens the tree of `root`, unless it is open somewhere, so that an input posted to one of its sessions is taken.
    pub(crate) async fn posted(self: &Arc<Self>, id: &SessionId, root: &SessionId) -> Result<(), Problem> {
        // A session that was open when the input came may have taken it, and have ended with it.
        if self.live(root).is_some() || !self.store.has_posted(id).await? {
            return Ok(());
        }
        if self.store.holder(root).await?.is_some() {
            self.posted_elsewhere(root);
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

    /// Returns the problem of a request that would have one more session wait than can.
    pub(super) fn has_room_to_wait(&self) -> Result<(), Problem> {
        let waiting = self.waiting();
        if waiting >= self.limits.waiting {
            return Err(Problem::new(FULL, format!("{waiting} sessions wait for room, which is the limit")));
        }
        Ok(())
    }

    /// Returns the problem of a request that cannot wait for room.
    pub(super) fn full(&self) -> Problem {
        let open = lock(&self.live).len();
        Problem::new(
            FULL,
            format!("{open} sessions are open and work, which is the limit here or of a tenant"),
        )
    }

    /// Returns whether one more session of a tenant may be open, after sessions that do nothing were closed.
    ///
    /// # Errors
    ///
    /// A problem if the server is shutting down.
    pub(super) async fn make_room(self: &Arc<Self>, tenant: &Tenant) -> Result<bool, Problem> {
        loop {
            if self.closing.is_cancelled() {
                return Err(Problem::new(UNAVAILABLE, "the server is shutting down"));
            }
            if self.has_room(tenant) {
                return Ok(true);
            }
            let Some(idle) = self.idlest(tenant) else { return Ok(false) };
            idle.leaving.cancel();
            idle.ended().await;
            // A message may have come while it was being closed. Opening takes a lock that is held here.
            self.spawn(Arc::clone(self).open_if_work(idle.id.clone()));
        }
    }

    fn has_room(&self, tenant: &Tenant) -> bool {
        let live = lock(&self.live);
        let of_tenant = live.values().filter(|live| live.tenant == *tenant).count();
        live.len() < self.limits.sessions && of_tenant < self.limits.sessions_of_tenant
    }

    /// Returns the session that has done nothing for the longest time and whose end would make room. Those who watch it see
    /// nothing of that.
    fn idlest(&self, tenant: &Tenant) -> Option<Arc<Live>> {
        let live = lock(&self.live);
        let is_full = live.len() >= self.limits.sessions;
        let of_tenant = live.values().filter(|live| live.tenant == *tenant).count();
        let is_tenant_full = of_tenant >= self.limits.sessions_of_tenant;
        let helps = |live: &&Arc<Live>| !is_tenant_full || live.tenant == *tenant;
        let idle = live.values().filter(helps).filter(|live| live.is_resting() && live.rested() >= GRACE);
        let idle = idle.max_by_key(|live| live.rested()).cloned();
        idle.filter(|_| is_full || is_tenant_full)
    }

    /// Opens sessions that wait, as far as there is room.
    pub(super) fn serve_waiting(self: &Arc<Self>) {
        let is_needed = !self.closing.is_cancelled() && self.waiting() > 0;
        if is_needed && !self.is_serving.swap(true, Ordering::AcqRel) {
            let hub = Arc::clone(self);
            self.spawn(async move {
                while hub.serve_first().await {}
                hub.is_serving.store(false, Ordering::Release);
            });
        }
    }

    /// Opens the first session of each tenant that waits. Returns whether others have moved up.
    async fn serve_first(self: &Arc<Self>) -> bool {
        let first = lock(&self.waiting).first();
        let mut is_served = false;
        for (id, tenant) in first {
            match self.open_or_wait(&id).await {
                Ok(Asked::Waits) => continue,
                Ok(Asked::Open) => {}
                Err(problem) => {
                    tracing::warn!(session = %id, problem = problem.detail, "a session that waited cannot be opened");
                }
            }
            lock(&self.waiting).remove(&id);
            self.moved_up(&tenant);
            is_served = true;
        }
        is_served
    }

    /// Tells those who watch that the sessions of a tenant have other places.
    fn moved_up(&self, tenant: &Tenant) {
        let waiting = lock(&self.waiting).of(tenant);
        waiting.iter().for_each(|id| self.changed(id));
    }
}
