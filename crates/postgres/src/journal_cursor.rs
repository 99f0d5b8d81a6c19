//! Walks over the lines of a journal, in bounded memory, and verifies them.

use std::collections::VecDeque;
use std::sync::Arc;

use pintle_store::format::{HashChain, RawLine, SegmentHeader, VERSION};
use pintle_store::{Hash, Line, LineId, Position, SessionId, StoreError};
use tokio_postgres::Row;

use crate::database::{Database, integer, number};
use crate::origins::ForkOrigins;
use crate::reconnecting_client::parameters;
use crate::statement_error::unreadable_row;

/// Lines per query. A line has at most about 64 KiB.
const BATCH: i64 = 100;

const READ: &str = "SELECT sessions.epoch, head_seq, line.seq, line.epoch, line.line FROM sessions LEFT JOIN LATERAL \
     (SELECT seq, epoch, line FROM lines WHERE session = key AND seq >= $2 ORDER BY seq LIMIT $3) AS line ON true \
     WHERE key = $1 ORDER BY line.seq";

const FIRST_LATER: &str = "SELECT min(seq) FROM lines WHERE session = $1 AND epoch > $2";

const READ_ACTION: &str = "read the journal of a session";

/// A line as it is stored.
struct StoredLine {
    seq: u64,
    epoch: u64,
    line: Vec<u8>,
}

/// Walks over a journal that grows.
pub(crate) struct JournalCursor {
    database: Arc<Database>,
    id: SessionId,
    key: i64,
    origins: ForkOrigins,
    /// Line before the next one. Its hash is unknown until the line has been read.
    last: LastLine,
    /// Highest `synced` mark of a verified line.
    synced: u64,
    stored: VecDeque<StoredLine>,
}

#[derive(Clone, Copy)]
struct LastLine {
    seq: u64,
    /// Writer of the line, if a reader has returned it. The reader is reset if the line has another writer now.
    epoch: Option<u64>,
    hash: Option<Hash>,
}

impl JournalCursor {
    /// Starts at line `next`. `last` is the line before, if a reader has returned it.
    pub(crate) fn new(
        database: Arc<Database>,
        id: SessionId,
        key: i64,
        origins: ForkOrigins,
        next: u64,
        last: Option<LineId>,
    ) -> Self {
        let seq = next.max(1) - 1;
        let last =
            LastLine { seq, epoch: last.map(|last| last.epoch), hash: (seq == 0).then_some(Hash::START) };
        Self { database, id, key, origins, last, synced: 0, stored: VecDeque::new() }
    }

    /// Returns the position of the last verified line.
    pub(crate) fn head(&self) -> Position {
        Position::new(self.last.epoch.unwrap_or(0), self.last.seq, self.last.hash.unwrap_or(Hash::START))
    }

    pub(crate) fn synced(&self) -> u64 {
        self.synced
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.stored.is_empty()
    }

    /// Returns the next line, or `None` while there is no further one. Cancel safe.
    pub(crate) async fn next(&mut self) -> Result<Option<Line>, StoreError> {
        if self.stored.is_empty() && !self.read().await? {
            return Ok(None);
        }
        let Some(stored) = self.stored.front() else { return Ok(None) };
        let (line, hash, synced) = match self.verify(stored) {
            Ok(verified) => verified,
            Err(error) => {
                // The next call reads it again.
                self.stored.clear();
                return Err(error);
            }
        };
        self.stored.pop_front();
        self.last = LastLine { seq: line.seq, epoch: Some(line.epoch), hash: Some(hash) };
        self.synced = self.synced.max(synced);
        Ok(Some(line))
    }

    /// Returns the line with its hash and its `synced` mark, if it follows the last one.
    fn verify(&self, stored: &StoredLine) -> Result<(Line, Hash, u64), StoreError> {
        let (seq, before) = (self.last.seq + 1, self.last.hash.unwrap_or(Hash::START));
        if stored.seq != seq {
            return Err(self.damaged(seq, "it is missing"));
        }
        let chain = HashChain::new(self.origins.session_of(seq, &self.id));
        let raw = RawLine::parse(&stored.line)
            .filter(|raw| raw.seq == seq && raw.synced < seq && chain.verifies(raw, &before));
        let Some((raw, object)) = raw.and_then(|raw| Some((raw, raw.object()?))) else {
            return Err(self.damaged(seq, "it is not the line that was written"));
        };
        // The number of the writer is stored beside the line. The first line of each writer confirms it.
        if self.last.epoch != Some(stored.epoch) {
            self.check_header(stored, &object, &before)?;
        }
        let id = LineId { epoch: stored.epoch, seq };
        Ok((Line::new(id, object), raw.hash, raw.synced))
    }

    fn check_header(&self, stored: &StoredLine, object: &str, before: &Hash) -> Result<(), StoreError> {
        let header: Option<SegmentHeader> = serde_json::from_str(object).ok();
        if let Some(found) = header.as_ref().map(|header| header.journal).filter(|found| *found > VERSION) {
            return Err(StoreError::Version { session: self.id.clone(), found, expected: VERSION });
        }
        let session = self.origins.session_of(stored.seq, &self.id);
        let origin = self.origins.session_of(stored.seq.saturating_sub(1), &self.id);
        let fits = header.is_some_and(|header| {
            header.session == *session
                && header.forked_from.as_ref() == Some(origin).filter(|origin| *origin != session)
                && header.epoch == stored.epoch
                && header.follows.seq + 1 == stored.seq
                && header.follows.hash == *before
                && header.follows.epoch < stored.epoch
        });
        if fits { Ok(()) } else { Err(self.damaged(stored.seq, "it is not the first line of its writer")) }
    }

    /// Reads the next lines. Returns whether there are any.
    async fn read(&mut self) -> Result<bool, StoreError> {
        let LastLine { seq, epoch, hash } = self.last;
        // Includes the line before, which may have been replaced since.
        let rows = self
            .database
            .main
            .query_repeatable(READ_ACTION, READ, parameters![self.key, integer(seq.max(1)), BATCH])
            .await?;
        let Some(first) = rows.first() else { return Err(StoreError::NotFound(self.id.clone())) };
        let newest_epoch = number(cell(first, 0)?);
        let head = number(cell(first, 1)?);
        let mut stored =
            rows.iter().filter_map(|row| parse_line(row).transpose()).collect::<Result<VecDeque<_>, _>>()?;
        if seq > 0 {
            match stored.pop_front() {
                Some(before) if before.seq != seq => return Err(self.damaged(seq, "it is missing")),
                Some(before) => {
                    if epoch.is_some_and(|epoch| epoch != before.epoch) {
                        return self.reset().await;
                    }
                    let found = RawLine::parse(&before.line).filter(|raw| raw.seq == seq);
                    let Some(found) = found.filter(|raw| hash.is_none_or(|hash| hash == raw.hash)) else {
                        return Err(self.damaged(seq, "it is not the line that was read before"));
                    };
                    self.last = LastLine { seq, epoch: Some(before.epoch), hash: Some(found.hash) };
                }
                // The line was lost. This happens in a crash of the server if the line was not synced.
                None if epoch.is_some_and(|epoch| epoch < newest_epoch) => return self.reset().await,
                None if head >= seq => return Err(self.damaged(seq, "it is missing")),
                None => return Ok(false),
            }
        }
        if stored.is_empty() && head > seq {
            return Err(self.damaged(seq + 1, "it is missing"));
        }
        self.stored = stored;
        Ok(!self.stored.is_empty())
    }

    /// Goes back to the first line that a later writer wrote in place of one that was read, and reports its number.
    async fn reset(&mut self) -> Result<bool, StoreError> {
        let epoch = integer(self.last.epoch.unwrap_or(0));
        let rows = self
            .database
            .main
            .query_repeatable(READ_ACTION, FIRST_LATER, parameters![self.key, epoch])
            .await?;
        let first: Option<i64> = rows.first().map_or(Ok(None), |row| cell(row, 0))?;
        let seq = first.map_or(self.last.seq, number).clamp(1, self.last.seq);
        self.last = LastLine { seq: seq - 1, epoch: None, hash: (seq == 1).then_some(Hash::START) };
        Err(StoreError::Reset { session: self.id.clone(), seq })
    }

    fn damaged(&self, seq: u64, problem: &'static str) -> StoreError {
        StoreError::Damaged { session: self.id.clone(), seq, problem }
    }
}

/// Returns the line of a row, if it has one.
fn parse_line(row: &Row) -> Result<Option<StoredLine>, StoreError> {
    let Some(seq) = cell::<Option<i64>>(row, 2)? else { return Ok(None) };
    Ok(Some(StoredLine { seq: number(seq), epoch: number(cell(row, 3)?), line: cell(row, 4)? }))
}

fn cell<'a, T: tokio_postgres::types::FromSql<'a>>(row: &'a Row, index: usize) -> Result<T, StoreError> {
    row.try_get(index).map_err(|error| unreadable_row(READ_ACTION, &error))
}
