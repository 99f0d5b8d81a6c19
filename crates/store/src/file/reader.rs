//! Reads a journal, and follows it across segments while it is written.

use std::io::{self, SeekFrom};
use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use tokio::task::JoinHandle;

use super::journal::{JournalFiles, JournalWalk};
use super::{blocking, finished, io_error};
use crate::error::StoreError;
use crate::hash::Hash;
use crate::store::{Line, LineId, Reader};

/// Size of the lines that a reader reads ahead, in bytes.
const READ_AHEAD: usize = 256 << 10;

/// Interval at which the size of the newest segment is checked. Kernel notifications are not used, since they do not
/// report writes of other hosts.
const POLL: Duration = Duration::from_millis(200);

/// Number and size of the newest segment. Every write changes one of them.
type SegmentExtent = (u64, u64);

/// Reads ahead in another thread.
pub(super) struct FileReader {
    journal: JournalFiles,
    /// `None` while another thread reads.
    follower: Option<JournalFollower>,
    /// Kept after a cancelled call, so that its lines are not lost.
    work: Option<JoinHandle<LineBatch>>,
    lines: std::vec::IntoIter<Line>,
    /// Returned after these lines.
    error: Option<StoreError>,
    /// Extent before the last read; `None` if it is unknown.
    seen: Option<SegmentExtent>,
}

struct LineBatch {
    follower: JournalFollower,
    lines: Vec<Line>,
    error: Option<StoreError>,
    seen: Option<SegmentExtent>,
}

impl FileReader {
    /// Starts at line `next`, after the line `last` that an earlier reader returned. Blocks.
    pub(super) fn open(journal: JournalFiles, next: u64, last: Option<LineId>) -> Result<Self, StoreError> {
        let mut follower =
            JournalFollower { journal: journal.clone(), walk: None, next: next.max(1), last, hash: None };
        // A reset is reported by the first call of `next`.
        let error = match follower.start() {
            Err(error @ StoreError::Reset { .. }) => Some(error),
            started => started.map(|()| None)?,
        };
        let lines = Vec::new().into_iter();
        Ok(Self { journal, follower: Some(follower), work: None, lines, error, seen: None })
    }
}

#[async_trait]
impl Reader for FileReader {
    async fn next(&mut self) -> Result<Option<Line>, StoreError> {
        if let Some(line) = self.lines.next() {
            return Ok(Some(line));
        }
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        if let Some(follower) = self.follower.take() {
            self.work = Some(tokio::task::spawn_blocking(move || follower.read()));
        }
        let joined = match &mut self.work {
            Some(work) => work.await,
            None => return Err(runtime_lost()),
        };
        self.work = None;
        let batch = finished(joined)?;
        self.follower = Some(batch.follower);
        self.lines = batch.lines.into_iter();
        self.error = batch.error;
        self.seen = batch.seen;
        match self.lines.next() {
            Some(line) => Ok(Some(line)),
            None => self.error.take().map_or(Ok(None), Err),
        }
    }

    async fn wait(&mut self) {
        while self.work.is_none() && self.lines.len() == 0 && self.error.is_none() {
            let journal = self.journal.clone();
            let now = blocking(move || extent(&journal)).await;
            // `next` reports the error.
            if now.is_err() || now.ok() != self.seen {
                return;
            }
            tokio::time::sleep(POLL).await;
        }
    }
}

/// Returns the error of a reader whose work was lost when its runtime shut down.
fn runtime_lost() -> StoreError {
    io_error("continue", Path::new("the journal"))(io::Error::other("its runtime has shut down"))
}

fn extent(journal: &JournalFiles) -> Result<SegmentExtent, StoreError> {
    let epoch = journal.newest_epoch()?;
    let path = journal.files.segment(epoch);
    let size = journal.disk.open(&path).and_then(|mut file| file.seek(SeekFrom::End(0)));
    Ok((epoch, size.map_err(io_error("look at", &path))?))
}

/// Walks over a growing journal.
struct JournalFollower {
    journal: JournalFiles,
    /// `None` after an error, and after the end of a segment that is no longer the newest.
    walk: Option<JournalWalk>,
    /// Number of the line to return next.
    next: u64,
    /// Line that was returned last.
    last: Option<LineId>,
    /// Its hash, unless an earlier reader returned it.
    hash: Option<Hash>,
}

impl JournalFollower {
    /// Reads the next lines. Blocks.
    fn read(mut self) -> LineBatch {
        // Read first: lines that are written from now on change the extent.
        let seen = extent(&self.journal).ok();
        let (mut lines, mut size, mut error) = (Vec::new(), 0, None);
        while size < READ_AHEAD {
            match self.next() {
                Ok(Some(line)) => {
                    size += line.object.len();
                    lines.push(line);
                }
                Ok(None) => break,
                Err(found) => {
                    // The walk may have read a part of a line.
                    self.walk = None;
                    error = Some(found);
                    break;
                }
            }
        }
        LineBatch { follower: self, lines, error, seen }
    }

    fn next(&mut self) -> Result<Option<Line>, StoreError> {
        loop {
            let Some(walk) = &mut self.walk else {
                self.start()?;
                continue;
            };
            let Some(line) = walk.next()? else {
                if !self.is_taken_over()? {
                    return Ok(None);
                }
                self.walk = None;
                continue;
            };
            let hash = walk.head().hash;
            if line.seq < self.next {
                self.check(line.seq, &hash)?;
                continue;
            }
            (self.next, self.last, self.hash) = (line.seq + 1, Some(line.id()), Some(hash));
            return Ok(Some(line));
        }
    }

    /// Starts a walk at the segment that contains the next line.
    fn start(&mut self) -> Result<(), StoreError> {
        let spans = self.journal.spans()?;
        if let Some(last) = self.last
            && let Some(later) = spans.spans.iter().find(|span| span.epoch > last.epoch)
            && later.follows.seq < last.seq
        {
            let seq = later.follows.seq + 1;
            (self.next, self.last, self.hash) = (seq, None, None);
            return Err(StoreError::Reset { session: self.journal.id.clone(), seq });
        }
        let walk = self.journal.walk_over(spans, self.next);
        self.check(walk.head().seq, &walk.head().hash)?;
        self.walk = Some(walk);
        Ok(())
    }

    /// Checks that the journal still has the line that was returned last.
    fn check(&self, seq: u64, hash: &Hash) -> Result<(), StoreError> {
        let is_last = self.last.is_some_and(|last| last.seq == seq);
        if is_last && self.hash.is_some_and(|last| last != *hash) {
            return Err(self.journal.damaged(seq, "it is not the line that was read before"));
        }
        Ok(())
    }

    /// Returns whether there is a newer segment than the finished one.
    fn is_taken_over(&self) -> Result<bool, StoreError> {
        let at = self.walk.as_ref().map_or(0, JournalWalk::newest_epoch);
        // Only then are the first lines of all segments read. A segment without a first line is not in use yet.
        Ok(self.journal.newest_epoch()? > at
            && self.journal.spans()?.spans.last().is_some_and(|span| span.epoch > at))
    }
}
