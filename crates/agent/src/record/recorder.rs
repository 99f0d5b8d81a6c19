//! Keeps the inputs of a running session.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pintle_llm::Fingerprint;

use super::{Record, RecordEntry, RecordHeader};
use crate::turn::Input;

/// The record of a running session; the driver writes it, and anyone may look.
#[derive(Debug)]
pub(crate) struct Recorder {
    header: RecordHeader,
    entries: Mutex<Vec<Arc<RecordEntry>>>,
}

impl Recorder {
    pub(crate) fn new(header: RecordHeader) -> Self {
        Self { header, entries: Mutex::default() }
    }

    /// Goes on with a record.
    pub(crate) fn of(record: Record) -> Self {
        Self { header: record.header, entries: Mutex::new(record.entries) }
    }

    pub(crate) fn push(&self, input: Input, request: Option<Fingerprint>) {
        self.lock().push(Arc::new(RecordEntry { input, request }));
    }

    /// What has been recorded so far.
    pub(crate) fn record(&self) -> Record {
        Record { header: self.header.clone(), entries: self.lock().clone() }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<RecordEntry>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
