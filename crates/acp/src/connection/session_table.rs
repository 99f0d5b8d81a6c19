//! Sessions of a connection by their ids.

use std::collections::hash_map::Entry as Slot;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::rpc::RpcError;
use crate::session_entry::{SessionEntry, session_ended};

/// The sessions. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(super) struct SessionTable {
    sessions: Arc<Mutex<TableState>>,
}

#[derive(Debug, Default)]
struct TableState {
    /// `None` while a session is being opened.
    open: HashMap<String, Option<Arc<SessionEntry>>>,
    /// Sessions that have ended for good since they were opened on this connection.
    ended: HashSet<String>,
}

/// Reservation for a session that is being opened. Dropping it without a session releases it.
#[derive(Debug)]
pub(super) struct SessionReservation {
    table: SessionTable,
    id: String,
}

impl SessionTable {
    /// Returns an open session.
    ///
    /// # Errors
    ///
    /// The error of the response, if the session has ended or is not open on this connection.
    pub(super) fn find(&self, id: &str) -> Result<Arc<SessionEntry>, RpcError> {
        let sessions = self.sessions();
        sessions.open.get(id).cloned().flatten().ok_or_else(|| {
            if sessions.ended.contains(id) {
                return session_ended(id);
            }
            let message = format!("session `{id}` is not open: create, load or resume it first");
            RpcError::new(RpcError::NOT_FOUND, message)
        })
    }

    pub(super) fn get(&self, id: &str) -> Option<Arc<SessionEntry>> {
        self.sessions().open.get(id).cloned().flatten()
    }

    pub(super) fn entries(&self) -> Vec<Arc<SessionEntry>> {
        self.sessions().open.values().flatten().cloned().collect()
    }

    /// Reserves the id of a session that is not open.
    ///
    /// # Errors
    ///
    /// The error of the response, if the session is open or being opened.
    pub(super) fn reserve(&self, id: &str) -> Result<SessionReservation, RpcError> {
        match self.sessions().open.entry(id.to_owned()) {
            Slot::Occupied(_) => {
                Err(RpcError::new(RpcError::CONFLICT, format!("session `{id}` is open or being opened")))
            }
            Slot::Vacant(place) => {
                place.insert(None);
                Ok(SessionReservation { table: self.clone(), id: id.to_owned() })
            }
        }
    }

    /// Removes a session, and remembers that it has ended if it has. Keeps another session with the same id.
    pub(super) fn remove_entry(&self, entry: &Arc<SessionEntry>) {
        let mut sessions = self.sessions();
        let found = sessions.open.get(&entry.id).and_then(Option::as_ref);
        if found.is_some_and(|one| Arc::ptr_eq(one, entry)) {
            sessions.open.remove(&entry.id);
            if entry.has_ended() {
                sessions.ended.insert(entry.id.clone());
            }
        }
    }

    /// Forgets that a session has ended, because it was deleted.
    pub(super) fn forget_ended(&self, id: &str) {
        self.sessions().ended.remove(id);
    }

    fn sessions(&self) -> MutexGuard<'_, TableState> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SessionReservation {
    /// Replaces the reservation with the session.
    pub(super) fn put(self, entry: Arc<SessionEntry>) {
        let mut sessions = self.table.sessions();
        sessions.ended.remove(&self.id);
        sessions.open.insert(self.id.clone(), Some(entry));
        // The end of the reservation takes the lock again.
        drop(sessions);
    }
}

impl Drop for SessionReservation {
    fn drop(&mut self) {
        let mut sessions = self.table.sessions();
        if sessions.open.get(&self.id).is_some_and(Option::is_none) {
            sessions.open.remove(&self.id);
        }
    }
}
