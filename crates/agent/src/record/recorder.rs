//! Recorder of a running session.

use std::fmt;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use pintle_llm::Fingerprint;

use super::{Record, RecordEntry, RecordHeader, line};
use crate::protocol::Input;

/// Record of a running session. The driver writes it, and handles read it.
#[derive(Debug)]
pub(crate) struct Recorder {
    header: RecordHeader,
    /// `None` if the record is only written to a journal.
    entries: Option<Mutex<Vec<Arc<RecordEntry>>>>,
    journal: Mutex<Option<Journal>>,
}

/// Writer that receives the lines of a record.
pub(crate) struct Journal(pub(crate) Box<dyn Write + Send>);

impl Recorder {
    /// Starts a record: in memory if `keep` is set, and in the journal if there is one.
    pub(crate) fn new(header: RecordHeader, keep: bool, mut journal: Option<Journal>) -> io::Result<Self> {
        if let Some(journal) = &mut journal {
            journal.add(&header)?;
        }
        let entries = keep.then(Mutex::default);
        Ok(Self { header, entries, journal: Mutex::new(journal) })
    }

    /// Continues a record. The journal gets new entries only.
    pub(crate) fn of(record: Record, journal: Option<Journal>) -> Self {
        let entries = Some(Mutex::new(record.entries));
        Self { header: record.header, entries, journal: Mutex::new(journal) }
    }

    /// Adds an input. After an error of the journal, nothing more is written to it.
    pub(crate) fn push(&self, input: Input, request: Option<Fingerprint>) -> io::Result<()> {
        let entry = Arc::new(RecordEntry { input, request });
        let mut journal = self.journal.lock().unwrap_or_else(PoisonError::into_inner);
        let written = journal.as_mut().map_or(Ok(()), |journal| journal.add(entry.as_ref()));
        if written.is_err() {
            *journal = None;
        }
        if let Some(entries) = &self.entries {
            entries.lock().unwrap_or_else(PoisonError::into_inner).push(entry);
        }
        written
    }

    /// Returns the record so far, if it is kept in memory.
    pub(crate) fn record(&self) -> Option<Record> {
        let entries = self.entries.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Some(Record { header: self.header.clone(), entries })
    }

    /// Returns whether the record is kept in memory.
    pub(crate) fn keeps(&self) -> bool {
        self.entries.is_some()
    }
}

impl Journal {
    fn add(&mut self, value: &impl serde::Serialize) -> io::Result<()> {
        // In one write, so that incomplete lines are rare.
        let mut text = Vec::new();
        line(value, &mut text)?;
        self.0.write_all(&text)?;
        self.0.flush()
    }
}

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Journal")
    }
}
