//! Sessions of a connection by their ids.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::rpc::RpcError;
use crate::turns::Entry;

/// The sessions. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    /// `None` while a session is being opened.
    sessions: Arc<Mutex<HashMap<String, Option<Arc<Entry>>>>>,
}

/// Reservation for a session that is being opened. Dropping it without a session releases it.
#[derive(Debug)]
pub(super) struct Reserved {
    table: Table,
    id: String,
}

impl Table {
    /// Returns an open session.
    ///
    /// # Errors
    ///
    /// The error of the response, if the session is not open on this connection.
    pub(super) fn find(&self, id: &str) -> Result<Arc<Entry>, RpcError> {
        self.get(id).ok_or_else(|| {
            let message = format!("session `{id}` is not open: create, load or resume it first");
            RpcError::new(RpcError::NOT_FOUND, message)
        })
    }

    pub(super) fn get(&self, id: &str) -> Option<Arc<Entry>> {
        self.sessions().get(id).cloned().flatten()
    }

    pub(super) fn entries(&self) -> Vec<Arc<Entry>> {
        self.sessions().values().flatten().cloned().collect()
    }

    /// Reserves the id of a session that is not open.
    ///
    /// # Errors
    ///
    /// The error of the response, if the session is open or being opened.
    pub(super) fn reserve(&self, id: &str) -> Result<Reserved, RpcError> {
        match self.sessions().entry(id.to_owned()) {
            Slot::Occupied(_) => {
                Err(RpcError::new(RpcError::CONFLICT, format!("session `{id}` is open or being opened")))
            }
            Slot::Vacant(place) => {
                place.insert(None);
                Ok(Reserved { table: self.clone(), id: id.to_owned() })
            }
        }
    }

    /// Removes a session. Keeps another session with the same id.
    pub(super) fn remove_entry(&self, entry: &Arc<Entry>) {
        let mut sessions = self.sessions();
        let is_there =
            sessions.get(&entry.id).and_then(Option::as_ref).is_some_and(|one| Arc::ptr_eq(one, entry));
        if is_there {
            sessions.remove(&entry.id);
        }
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<String, Option<Arc<Entry>>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reserved {
    /// Replaces the reservation with the session.
    pub(super) fn put(self, entry: Arc<Entry>) {
        self.table.sessions().insert(self.id.clone(), Some(entry));
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        let mut sessions = self.table.sessions();
        if sessions.get(&self.id).is_some_and(Option::is_none) {
            sessions.remove(&self.id);
        }
    }
}
