//! Records from the lines of a journal.

use std::sync::Arc;

use pintle_agent::{Record, RecordHeader, SessionId};
use serde::Deserialize;

use super::fork::ForkHeader;
use crate::blob::{Blobs, move_from_blobs};
use crate::error::StoreError;
use crate::store::{Reader, SessionStore};

/// Reads the record of a session, including its large values. The record of a fork has the whole history.
///
/// # Errors
///
/// [`StoreError::NotFound`] if there is no such session or no line of its record was written, [`StoreError::Damaged`],
/// [`StoreError::MissingBlob`] and the like.
pub async fn read_record(store: &dyn SessionStore, id: &SessionId) -> Result<Record, StoreError> {
    Ok(read_to_end(store, id).await?.record)
}

/// Reads the record of a session up to the first damaged line. Later lines cannot be trusted: the hash chain only
/// proves the lines before the damage.
///
/// # Errors
///
/// As for [`read_record`]; damage is an error only if no part of the record is intact.
pub async fn read_intact(store: &dyn SessionStore, id: &SessionId) -> Result<IntactRecord, StoreError> {
    let (read, damage) = read_before_damage(store, id).await?;
    match (read, damage) {
        (Some(ReadRecord { record, .. }), damage) => Ok(IntactRecord { record, damage }),
        (None, damage) => Err(damage.unwrap_or_else(|| StoreError::NotFound(id.clone()))),
    }
}

/// Intact part of a record.
#[derive(Debug)]
#[non_exhaustive]
pub struct IntactRecord {
    /// The record, up to the first damaged line.
    pub record: Record,
    /// The damage; `None` if the record is complete.
    pub damage: Option<StoreError>,
}

/// Reads all lines of a journal that does not belong to a session of the agent, including their large values.
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
pub(super) struct ReadRecord {
    pub(super) record: Record,
    pub(super) last: u64,
}

pub(super) async fn read_to_end(store: &dyn SessionStore, id: &SessionId) -> Result<ReadRecord, StoreError> {
    match read_before_damage(store, id).await? {
        (_, Some(damage)) => Err(damage),
        (read, None) => read.ok_or_else(|| StoreError::NotFound(id.clone())),
    }
}

/// Reads a record up to the first damage, and returns that damage. Errors other than damage are returned as errors.
pub(super) async fn read_before_damage(
    store: &dyn SessionStore,
    id: &SessionId,
) -> Result<(Option<ReadRecord>, Option<StoreError>), StoreError> {
    let mut lines = RecordLines {
        id,
        reader: store.read(id, 1).await?,
        blobs: store.blobs(id),
        read: None,
        is_inherited: false,
    };
    let damage = loop {
        match lines.read_line().await {
            Ok(true) => {}
            Ok(false) => break None,
            Err(error) if error.is_damage() => break Some(error),
            Err(error) => return Err(error),
        }
    };
    Ok((lines.read.filter(|_| !lines.is_inherited), damage))
}

/// Record that is being read.
struct RecordLines<'a> {
    id: &'a SessionId,
    reader: Box<dyn Reader>,
    blobs: Box<dyn Blobs>,
    read: Option<ReadRecord>,
    /// Whether the record so far belongs to the origin of a fork.
    is_inherited: bool,
}

impl RecordLines<'_> {
    /// Adds the next line to the record. Returns `false` at the end.
    async fn read_line(&mut self) -> Result<bool, StoreError> {
        let Some(line) = self.reader.next().await? else { return Ok(false) };
        let seq = line.seq;
        let object = move_from_blobs(line.object, self.blobs.as_ref()).await?;
        let damaged = |problem| StoreError::Damaged { session: self.id.clone(), seq, problem };
        let unreadable = || damaged("it is not an entry of a record");
        match LineKind::parse(&object).ok_or_else(unreadable)? {
            LineKind::Entry => {
                let entry = serde_json::from_str(&object).map_err(|_| unreadable())?;
                let read = self.read.as_mut().ok_or_else(unreadable)?;
                read.record.entries.push(Arc::new(entry));
                read.last = seq;
            }
            LineKind::Header => {
                let header = RecordHeader::parse(&object).map_err(|_| unreadable())?;
                self.read = Some(ReadRecord { record: Record::new(header), last: seq });
                self.is_inherited = false;
            }
            LineKind::ForkHeader => {
                let origin = self.read.take().ok_or_else(unreadable)?.record;
                let header = ForkHeader::read(&object, &origin);
                let header = header.ok_or_else(|| damaged("the history that it refers to cannot be read"))?;
                self.read = Some(ReadRecord { record: Record::new(header), last: seq });
                self.is_inherited = false;
            }
            LineKind::Fork => self.is_inherited = true,
            LineKind::Other => {}
        }
        Ok(true)
    }
}

/// Kind of a line.
enum LineKind {
    Header,
    /// Header without the history, which is in the preceding lines.
    ForkHeader,
    Entry,
    /// First line that the store writes in a fork.
    Fork,
    /// Another line of the store, or of a later version. It is kept and skipped.
    Other,
}

impl LineKind {
    fn parse(object: &str) -> Option<Self> {
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
