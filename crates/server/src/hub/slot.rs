//! Slots of sessions. They serialise requests that open, create, restore or delete the same session. Requests for
//! different sessions run concurrently.

use std::collections::BTreeMap;
use std::sync::Arc;

use pintle_agent::SessionId;
use tokio::sync::{Mutex, OwnedMutexGuard};

use super::{Hub, lock};

/// Slots that requests hold or wait for.
#[derive(Debug, Default)]
pub(super) struct SessionSlots(BTreeMap<SessionId, SharedSlot>);

#[derive(Debug, Default)]
struct SharedSlot {
    mutex: Arc<Mutex<()>>,
    /// Number of requests that hold the slot or wait for it.
    users: usize,
}

impl SessionSlots {
    fn enter(&mut self, id: &SessionId) -> Arc<Mutex<()>> {
        let slot = self.0.entry(id.clone()).or_default();
        slot.users += 1;
        Arc::clone(&slot.mutex)
    }

    /// Removes the slot with its last user.
    fn leave(&mut self, id: &SessionId) {
        if let Some(slot) = self.0.get_mut(id) {
            slot.users -= 1;
            if slot.users == 0 {
                self.0.remove(id);
            }
        }
    }
}

/// Exclusive use of the slot of a session, until it is dropped.
#[derive(Debug)]
pub(super) struct SessionSlot {
    // Dropped first: a slot that has been removed is not locked.
    _guard: OwnedMutexGuard<()>,
    _user: SlotUser,
}

/// Counts as a user of a slot until it is dropped.
#[derive(Debug)]
struct SlotUser {
    hub: Arc<Hub>,
    id: SessionId,
}

impl Drop for SlotUser {
    fn drop(&mut self) {
        lock(&self.hub.state).slots.leave(&self.id);
    }
}

impl Hub {
    /// Waits for the slot of a session, in the order of the requests. Cancel safe.
    pub(super) async fn slot(self: &Arc<Self>, id: &SessionId) -> SessionSlot {
        let mutex = lock(&self.state).slots.enter(id);
        let user = SlotUser { hub: Arc::clone(self), id: id.clone() };
        SessionSlot { _guard: mutex.lock_owned().await, _user: user }
    }

    /// Returns the number of requests that hold the slot of a session or wait for it.
    #[cfg(test)]
    pub(crate) fn slot_users(&self, id: &SessionId) -> usize {
        lock(&self.state).slots.0.get(id).map_or(0, |slot| slot.users)
    }
}
