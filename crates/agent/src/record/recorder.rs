//! Record of a running session, in memory.

use std::sync::{Arc, Mutex, PoisonError};

use super::{Record, RecordEntry, RecordHeader};

/// Record of a running session. The driver writes it, and handles read it.
#[derive(Debug)]
pub(crate) struct Recorder {
    header: RecordHeader,
    entries: Mutex<Vec<Arc<RecordEntry>>>,
}

impl Recorder {
    /// Starts a record.
    pub(crate) fn new(header: RecordHeader) -> Self {
        Self::from_record(Record::new(header))
    }

    /// Continues a record.
    pub(crate) fn from_record(record: Record) -> Self {
        Self { header: record.header, entries: Mutex::new(record.entries) }
    }

    pub(crate) fn extend(&self, entries: &[Arc<RecordEntry>]) {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(entries);
    }

    /// Returns the record so far.
    pub(crate) fn record(&self) -> Record {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Record { header: self.header.clone(), entries }
    }
}
