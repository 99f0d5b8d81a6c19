//! Forks of stored sessions, which refer to the history of their origin.

use std::io;

use pintle_agent::protocol::Start;
use pintle_agent::{Count, Record, RecordHeader, ReplayError, SessionId};
use serde::Serialize;

use super::StoredJournal;
use super::reading::{ReadRecord, read_before_damage};
use crate::error::StoreError;
use crate::store::{SessionStore, Summary};

/// Fork of a stored session.
#[derive(Debug)]
#[non_exhaustive]
pub struct StoredFork {
    /// Start for [`SessionBuilder::start`](pintle_agent::SessionBuilder::start).
    pub start: Start,
    /// Journal for [`SessionBuilder::journal`](pintle_agent::SessionBuilder::journal).
    pub journal: StoredJournal,
}

/// Reason why a stored session cannot be forked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ForkError {
    /// The store cannot read the session, or create the fork.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The record of the session cannot be replayed.
    #[error("the record of the session cannot be replayed")]
    Replay(#[from] ReplayError),
    /// The history has fewer entries.
    #[error("session `{session}` has {}, so it cannot be forked at {asked}", Count(*entries as u64, "entry"))]
    TooShort {
        /// The session.
        session: SessionId,
        /// Number of entries of its history.
        entries: usize,
        /// Number of entries that the fork would have.
        asked: usize,
    },
}

/// Forks a session after the first `entries` entries of its history, or after all of them. `summary` belongs to the fork.
///
/// The fork refers to the lines of the session, which are not copied into its header; see [`SessionStore::fork`]. The
/// session may be running. A damaged session can be forked at an entry before the damage.
///
/// # Errors
///
/// [`ForkError`]; no session is created then.
pub async fn fork(
    store: &dyn SessionStore,
    id: &SessionId,
    entries: Option<usize>,
    summary: Summary,
) -> Result<StoredFork, ForkError> {
    let (read, damage) = read_before_damage(store, id).await?;
    let Some(ReadRecord { record, last }) = read else {
        return Err(damage.unwrap_or_else(|| StoreError::NotFound(id.clone())).into());
    };
    let count = record.replay()?.history.len();
    let start = match (entries, damage) {
        (None, Some(damage)) => return Err(damage.into()),
        (entries, damage) => {
            let asked = entries.unwrap_or(count);
            record.fork(asked)?.ok_or_else(|| match damage {
                Some(damage) => damage.into(),
                None => ForkError::TooShort { session: id.clone(), entries: count, asked },
            })?
        }
    };
    let writer = store.fork(id, last, summary.clone()).await?;
    let mut journal = StoredJournal::new(writer, summary);
    journal.inherited = Some(start.clone());
    Ok(StoredFork { start, journal })
}

/// Header of a fork: the lines before it contain the history, up to the entry that `start.forked_from` names.
#[derive(Serialize)]
pub(super) struct ForkHeader {
    #[serde(flatten)]
    header: RecordHeader,
    /// Always true.
    inherits_history: bool,
}

impl ForkHeader {
    pub(super) fn new(header: &RecordHeader) -> Self {
        let mut header = header.clone();
        header.start.history.clear();
        Self { header, inherits_history: true }
    }

    pub(super) fn json(&self) -> io::Result<String> {
        super::json(self)
    }

    /// Returns the header with the history of `origin`; `None` if the header refers to another history.
    pub(super) fn read(object: &str, origin: &Record) -> Option<RecordHeader> {
        let mut header = RecordHeader::parse(object).ok()?;
        let forked_from = header.start.forked_from.as_ref()?;
        if forked_from.session_id != origin.header.session_id {
            return None;
        }
        header.start.history = origin.fork(forked_from.turns).ok()??.history;
        Some(header)
    }
}
