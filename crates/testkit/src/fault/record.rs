//! Records of the connections of a fault server.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Record of one connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FaultRecord {
    /// Number of completed steps.
    pub steps: usize,
    /// Number of bytes passed to the system. The client may not have read them.
    pub written: u64,
    /// Whether all steps are completed. Otherwise the client has disconnected, or the script is still running.
    pub completed: bool,
}

/// Records of all connections, in order. Clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct Records {
    all: Arc<Mutex<Vec<FaultRecord>>>,
}

impl Records {
    /// Adds the record of a connection.
    pub(super) fn begin(&self) -> Recorder {
        let mut all = lock(&self.all);
        all.push(FaultRecord::default());
        Recorder { index: all.len() - 1, all: Arc::clone(&self.all) }
    }

    pub(super) fn all(&self) -> Vec<FaultRecord> {
        lock(&self.all).clone()
    }
}

/// Handle to the record of one connection.
#[derive(Debug)]
pub(super) struct Recorder {
    all: Arc<Mutex<Vec<FaultRecord>>>,
    index: usize,
}

impl Recorder {
    pub(super) fn update(&self, change: impl FnOnce(&mut FaultRecord)) {
        if let Some(record) = lock(&self.all).get_mut(self.index) {
            change(record);
        }
    }
}

/// Locks the records. A poisoned lock is usable, because updates do not panic.
fn lock(all: &Mutex<Vec<FaultRecord>>) -> MutexGuard<'_, Vec<FaultRecord>> {
    all.lock().unwrap_or_else(PoisonError::into_inner)
}
