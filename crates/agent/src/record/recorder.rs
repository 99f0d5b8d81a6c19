//! Keeps the inputs of a running session.

use std::fmt;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use pintle_llm::Fingerprint;

use super::{Record, RecordEntry, RecordHeader, line};
use crate::turn::Input;

/// The record of a running session; the driver writes it, and anyone may look.
#[derive(Debug)]
pub(crate) struct Recorder {
    header: RecordHeader,
    /// In memory, unless the host wants it elsewhere only.
    entries: Option<Mutex<Vec<Arc<RecordEntry>>>>,
    journal: Mutex<Option<Journal>>,
}

/// Where a host wants the lines of a record.
pub(crate) struct Journal(pub(crate) Box<dyn Write + Send>);

impl Recorder {
    /// Begins a record, in memory and in a journal, as far as they are wanted.
    pub(crate) fn new(header: RecordHeader, keep: bool, mut journal: Option<Journal>) -> io::Result<Self> {
        if let Some(journal) = &mut journal {
            journal.add(&header)?;
        }
        let entries = keep.then(Mutex::default);
        Ok(Self { header, entries, journal: Mutex::new(journal) })
    }

    /// Goes on with a record. The journal gets what is new.
    pub(crate) fn of(record: Record, journal: Option<Journal>) -> Self {
        let entries = Some(Mutex::new(record.entries));
        Self { header: record.header, entries, journal: Mutex::new(journal) }
    }

    /// Adds an input. Once that has failed, the journal gets no more.
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

    /// What has been recorded so far, if it is kept in memory.
    pub(crate) fn record(&self) -> Option<Record> {
        let entries = self.entries.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Some(Record { header: self.header.clone(), entries })
    }

    /// Whether it is kept in memory.
    pub(crate) fn keeps(&self) -> bool {
        self.entries.is_some()
    }
}

impl Journal {
    fn add(&mut self, value: &impl serde::Serialize) -> io::Result<()> {
        // In one piece, so that a line is cut as seldom as can be.
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
