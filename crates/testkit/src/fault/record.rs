//! What became of the connections of a fault server.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What became of one connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FaultRecord {
    /// Steps of the script that were done.
    pub steps: usize,
    /// Bytes that the system took for the client. The client need not have read them.
    pub written: u64,
    /// Whether every step was done; else the client left before, or has not come to the end yet.
    pub completed: bool,
}

/// The records of all connections, in the order in which they came. Clones are the same records.
#[derive(Debug, Clone, Default)]
pub(super) struct Records {
    all: Arc<Mutex<Vec<FaultRecord>>>,
}

impl Records {
    /// Opens the record of one more connection.
    pub(super) fn begin(&self) -> Recorder {
        let mut all = lock(&self.all);
        all.push(FaultRecord::default());
        Recorder { index: all.len() - 1, all: Arc::clone(&self.all) }
    }

    pub(super) fn all(&self) -> Vec<FaultRecord> {
        lock(&self.all).clone()
    }
}

/// Writes the record of one connection.
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

/// The records stay whole even if somebody panicked while holding them.
fn lock(all: &Mutex<Vec<FaultRecord>>) -> MutexGuard<'_, Vec<FaultRecord>> {
    all.lock().unwrap_or_else(PoisonError::into_inner)
}
