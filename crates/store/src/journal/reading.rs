//! Records from the lines of a journal.

use std::sync::Arc;

use pintle_agent::{Record, RecordHeader, SessionId};
use serde::Deserialize;

use super::fork::ForkHeader;
use crate::blob::move_from_blobs;
use crate::error::StoreError;
use crate::store::SessionStore;

/// Reads the record of a session, with its large values. The record of a fork has the whole history.
///
/// # Errors
///
/// [`StoreError::NotFound`] if there is no such session or nothing of its record was written,
/// [`StoreError::Damaged`], [`StoreError::MissingBlob`] and the like.
pub async fn read_record(store: &dyn SessionStore, id: &SessionId) -> Result<Record, StoreError> {
    Ok(read_to_end(store, id).await?.record)
}

/// Reads all lines of a journal, with their large values: that of something else than a session of the agent.
///
/// # Errors
///
/// [`StoreError::NotFound`] if there is no such session, [`StoreError::Damaged`], [`StoreError::MissingBlob`] and the like.
pub async fn read_objects(store: &dyn SessionStore, id: &SessionId) -> Result<Vec<String>, StoreError> {
    let (mut reader, blobs) = (store.read(id, 1).await?, store.blobs(id));
    let mut objects = Vec::new();
    while let Some(line) = reader.next().await? {
        objects.push(move_from_blobs(line.object, blobs.as_ref()).await?);
    }
    Ok(objects)
}

/// Record, and the number of its last line.
pub(super) struct Read {
    pub(super) record: Record,
    pub(super) last: u64,
}

pub(super) async fn read_to_end(store: &dyn SessionStore, id: &SessionId) -> Result<Read, StoreError> {
    let mut reader = store.read(id, 1).await?;
    let blobs = store.blobs(id);
    let mut read: Option<Read> = None;
    // Whether the record so far is that of the origin of a fork.
    let mut is_inherited = false;
    while let Some(line) = reader.next().await? {
        let seq = line.seq;
        let object = move_from_blobs(line.object, blobs.as_ref()).await?;
        let damaged = |problem| StoreError::Damaged { session: id.clone(), seq, problem };
        let unreadable = || damaged("it is not an entry of a record");
        match Kind::of(&object).ok_or_else(unreadable)? {
            Kind::Entry => {
                let entry = serde_json::from_str(&object).map_err(|_| unreadable())?;
                let read = read.as_mut().ok_or_else(unreadable)?;
                read.record.entries.push(Arc::new(entry));
                read.last = seq;
            }
            Kind::Header => {
                let header = RecordHeader::parse(&object).map_err(|_| unreadable())?;
                read = Some(Read { record: Record::new(header), last: seq });
                is_inherited = false;
            }
            Kind::ForkHeader => {
                let origin = read.take().ok_or_else(unreadable)?.record;
                let header = ForkHeader::read(&object, &origin);
                let header = header.ok_or_else(|| damaged("the history that it refers to cannot be read"))?;
                read = Some(Read { record: Record::new(header), last: seq });
                is_inherited = false;
            }
            Kind::Fork => is_inherited = true,
            Kind::Other => {}
        }
    }
    read.filter(|_| !is_inherited).ok_or_else(|| StoreError::NotFound(id.clone()))
}

/// Kind of a line.
enum Kind {
    Header,
    /// Header without the history, which the lines before have.
    ForkHeader,
    Entry,
    /// First line of the store in a fork.
    Fork,
    /// Another line of the store, or of a later version; it is kept and skipped.
    Other,
}

impl Kind {
    fn of(object: &str) -> Option<Self> {
        #[derive(Deserialize)]
        struct Members {
            input: Option<serde::de::IgnoredAny>,
            session_id: Option<serde::de::IgnoredAny>,
            inherits_history: Option<serde::de::IgnoredAny>,
            forked_from: Option<serde::de::IgnoredAny>,
        }
        let members: Members = serde_json::from_str(object).ok()?;
        Some(match members {
            Members { input: Some(_), .. } => Self::Entry,
            Members { inherits_history: Some(_), .. } => Self::ForkHeader,
            Members { session_id: Some(_), .. } => Self::Header,
            Members { forked_from: Some(_), .. } => Self::Fork,
            Members { .. } => Self::Other,
        })
    }
}
