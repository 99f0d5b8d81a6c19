//! Sessions that wait for room, in the order of their arrival.

use std::collections::{HashSet, VecDeque};

use pintle_agent::SessionId;

/// Tenant of a session. Sessions without a tenant count as one tenant.
pub(crate) type Tenant = Option<String>;

/// Sessions that have work and wait until others are closed.
#[derive(Debug, Default)]
pub(super) struct WaitingSessions(VecDeque<(SessionId, Tenant)>);

impl WaitingSessions {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Adds a session at the end, unless it already waits.
    pub(super) fn add(&mut self, id: SessionId, tenant: Tenant) {
        if !self.0.iter().any(|(known, _)| *known == id) {
            self.0.push_back((id, tenant));
        }
    }

    pub(super) fn remove(&mut self, id: &SessionId) {
        self.0.retain(|(known, _)| known != id);
    }

    /// Returns the first session of each tenant.
    pub(super) fn first(&self) -> Vec<(SessionId, Tenant)> {
        let mut tenants = HashSet::new();
        self.0.iter().filter(|(_, tenant)| tenants.insert(tenant)).cloned().collect()
    }

    /// Returns the position of a session among the waiting sessions of its tenant, from 1. It reveals nothing about other
    /// tenants.
    pub(super) fn position(&self, id: &SessionId) -> Option<usize> {
        let (index, (_, tenant)) = self.0.iter().enumerate().find(|(_, (known, _))| known == id)?;
        Some(self.0.iter().take(index + 1).filter(|(_, other)| other == tenant).count())
    }

    /// Returns the sessions of a tenant.
    pub(super) fn ids_of_tenant(&self, tenant: &Tenant) -> Vec<SessionId> {
        self.0.iter().filter(|(_, other)| other == tenant).map(|(id, _)| id.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(sessions: &[(&str, Option<&str>)]) -> WaitingSessions {
        let mut waiting = WaitingSessions::default();
        for (id, tenant) in sessions {
            waiting.add(SessionId::new(*id), tenant.map(str::to_owned));
        }
        waiting
    }

    #[test]
    fn positions_are_those_among_the_sessions_of_a_tenant() {
        let waiting =
            waiting(&[("a", Some("x")), ("b", Some("y")), ("c", Some("x")), ("d", None), ("a", None)]);
        let positions = ["a", "b", "c", "d", "e"].map(|id| waiting.position(&SessionId::new(id)));
        assert_eq!(positions, [Some(1), Some(1), Some(2), Some(1), None]);
        assert_eq!(waiting.len(), 4, "a session waits once");
    }

    #[test]
    fn a_tenant_without_room_keeps_nobody_else_waiting() {
        let mut waiting = waiting(&[("a", Some("x")), ("b", Some("y")), ("c", Some("y"))]);
        for expected in [&["a", "b"][..], &["a", "c"], &["a"]] {
            let first = waiting.first();
            let ids: Vec<&str> = first.iter().map(|(id, _)| id.as_str()).collect();
            assert_eq!(ids, expected);
            first.iter().skip(1).for_each(|(id, _)| waiting.remove(id));
        }
        assert_eq!(waiting.ids_of_tenant(&Some("x".to_owned())), [SessionId::new("a")]);
        waiting.remove(&SessionId::new("a"));
        assert_eq!(waiting.len(), 0);
    }
}
