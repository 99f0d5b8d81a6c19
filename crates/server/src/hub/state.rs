//! State of a hub: open sessions, openings, and waiting sessions.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use pintle_agent::SessionId;
use pintle_llm::Fingerprint;

use super::LiveSession;
use super::slot::SessionSlots;
use super::waiting_sessions::{Tenant, WaitingSessions};
use crate::limits::ServerLimits;

/// State of a hub.
#[derive(Debug, Default)]
pub(super) struct HubState {
    /// Open sessions.
    pub(super) live: BTreeMap<SessionId, Arc<LiveSession>>,
    /// Sessions that are being opened and have a reservation, with their tenants. The limits count them as open.
    pub(super) opening: BTreeMap<SessionId, Tenant>,
    pub(super) slots: SessionSlots,
    pub(super) waiting: WaitingSessions,
    /// Whether a task opens the waiting sessions.
    pub(super) is_serving: bool,
    /// Sessions that another process has open, with an input posted by this process.
    pub(super) elsewhere: HashSet<SessionId>,
    /// Decisions on calls of open sessions, with the requests that made them.
    pub(super) decided: HashMap<(SessionId, String, Fingerprint), String>,
}

/// Sessions that leave no room for another session.
#[derive(Debug)]
pub(super) struct NoRoom {
    /// Open sessions, each of which would make room if it were closed.
    pub(super) open: Vec<Arc<LiveSession>>,
    /// Whether a session is being opened whose failure would make room.
    pub(super) is_opening: bool,
}

impl HubState {
    /// Adds an open session, in place of its reservation if it has one.
    pub(super) fn add(&mut self, live: Arc<LiveSession>) {
        self.opening.remove(&live.id);
        self.live.insert(live.id.clone(), live);
    }

    /// Removes a session that was closed.
    pub(super) fn remove(&mut self, id: &SessionId) {
        self.live.remove(id);
        self.decided.retain(|(session, ..), _| session != id);
    }

    /// Reserves room for a session that is not open.
    ///
    /// # Errors
    ///
    /// The sessions that leave no room if a limit is reached.
    pub(super) fn reserve(
        &mut self,
        id: &SessionId,
        tenant: &Tenant,
        limits: &ServerLimits,
    ) -> Result<(), NoRoom> {
        if self.has_room(tenant, limits) {
            self.opening.insert(id.clone(), tenant.clone());
            return Ok(());
        }
        let is_tenant_full = self.is_tenant_full(tenant, limits);
        let would_make_room = |live: &&Arc<LiveSession>| !is_tenant_full || live.tenant == *tenant;
        let open = self.live.values().filter(would_make_room).cloned().collect();
        Err(NoRoom { open, is_opening: self.is_opening_for(tenant, limits) })
    }

    /// Adds a session to the queue if open sessions leave no room. Returns whether it waits there. Closing an open session
    /// serves the queue; a failed opening does not.
    pub(super) fn enqueue(&mut self, id: &SessionId, tenant: &Tenant, limits: &ServerLimits) -> bool {
        let waits = !self.has_room(tenant, limits) && !self.is_opening_for(tenant, limits);
        if waits {
            self.waiting.add(id.clone(), tenant.clone());
        }
        waits
    }

    /// Returns whether the caller must open the waiting sessions: there are some, and no other task opens them.
    pub(super) fn starts_serving(&mut self) -> bool {
        let is_needed = !self.is_serving && self.waiting.len() > 0;
        self.is_serving |= is_needed;
        is_needed
    }

    fn has_room(&self, tenant: &Tenant, limits: &ServerLimits) -> bool {
        self.live.len() + self.opening.len() < limits.sessions && !self.is_tenant_full(tenant, limits)
    }

    /// Returns whether a session is being opened whose failure would make room for a session of this tenant.
    fn is_opening_for(&self, tenant: &Tenant, limits: &ServerLimits) -> bool {
        let is_tenant_full = self.is_tenant_full(tenant, limits);
        self.opening.values().any(|other| !is_tenant_full || other == tenant)
    }

    fn is_tenant_full(&self, tenant: &Tenant, limits: &ServerLimits) -> bool {
        let tenants = self.live.values().map(|live| &live.tenant).chain(self.opening.values());
        tenants.filter(|other| *other == tenant).count() >= limits.sessions_of_tenant
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reservations_count_as_open_sessions() {
        let limits = ServerLimits::default().with_sessions(3).with_sessions_of_tenant(2);
        let mut state = HubState::default();
        let mut reserve =
            |id: &str, tenant: &str| state.reserve(&SessionId::new(id), &Some(tenant.to_owned()), &limits);
        for (id, tenant, is_reserved) in
            [("a", "x", true), ("b", "x", true), ("c", "x", false), ("d", "y", true), ("e", "y", false)]
        {
            match reserve(id, tenant) {
                Ok(()) => assert!(is_reserved, "{id}"),
                Err(NoRoom { open, is_opening }) => {
                    assert!(!is_reserved && is_opening && open.is_empty(), "{id}");
                }
            }
        }
        state.opening.remove(&SessionId::new("a"));
        let mut reserve =
            |id: &str, tenant: &str| state.reserve(&SessionId::new(id), &Some(tenant.to_owned()), &limits);
        assert!(reserve("e", "y").is_ok());
        assert!(reserve("c", "x").is_err(), "all places are taken");
    }

    #[test]
    fn an_opening_of_another_tenant_is_not_waited_for_at_the_limit_of_a_tenant() {
        let (mut state, tenant) = (HubState::default(), Some("x".to_owned()));
        let limits = ServerLimits::default();
        assert!(state.reserve(&SessionId::new("a"), &Some("y".to_owned()), &limits).is_ok());
        let refused = state.reserve(&SessionId::new("b"), &tenant, &limits.with_sessions_of_tenant(0));
        assert!(!refused.unwrap_err().is_opening);
    }

    #[test]
    fn a_session_is_queued_only_if_no_opening_can_make_room() {
        let (mut state, id) = (HubState::default(), SessionId::new("a"));
        let limits = ServerLimits::default().with_sessions(1);
        assert!(!state.enqueue(&id, &None, &limits), "there is room");
        state.reserve(&SessionId::new("b"), &None, &limits).unwrap();
        assert!(!state.enqueue(&id, &None, &limits), "the opening may fail");
        assert_eq!(state.waiting.len(), 0);
        let tenant = Some("x".to_owned());
        assert!(
            state.enqueue(&id, &tenant, &limits.with_sessions_of_tenant(0)),
            "the opening is of another tenant"
        );
        assert_eq!(state.waiting.len(), 1);
    }

    #[test]
    fn sessions_that_wait_are_opened_by_one_task() {
        let (mut state, id) = (HubState::default(), SessionId::new("a"));
        assert!(!state.starts_serving(), "the queue is empty");
        assert!(state.enqueue(&id, &None, &ServerLimits::default().with_sessions(0)));
        assert!(state.starts_serving());
        assert!(!state.starts_serving());
        state.is_serving = false;
        assert!(state.starts_serving());
    }
}
