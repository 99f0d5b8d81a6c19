//! The journal of one session: its segments in order.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pintle_agent::SessionId;

use super::disk::Disk;
use super::io_error;
use super::layout::{SessionFiles, epoch_of};
use super::segment::{
    FirstLine, START, ScannedLine, SegmentRest, SegmentScan, is_lost_start, read_first_line,
};
use crate::blob;
use crate::error::StoreError;
use crate::hash::Hash;
use crate::line::{HashChain, VERSION};
use crate::store::{Line, Position, TornTail};

/// Files of one journal.
#[derive(Clone, Debug)]
pub(super) struct JournalFiles {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) id: SessionId,
    pub(super) files: SessionFiles,
}

/// Part of a segment that belongs to the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SegmentSpan {
    /// Session whose writer wrote it: this one, or one that it was forked from.
    pub(super) session: SessionId,
    pub(super) epoch: u64,
    /// Line before the first one.
    pub(super) follows: Position,
    /// Last line, which the next segment names; `None` in the newest segment.
    pub(super) end: Option<Position>,
}

/// Parts of the segments that form a journal, the oldest first. There is at least one.
#[derive(Debug)]
pub(super) struct JournalSpans {
    pub(super) spans: Vec<SegmentSpan>,
    /// Reason why later segments cannot be read; `None` if these are all segments.
    damage: Option<StoreError>,
}

/// Beginning of a journal, for a fork.
#[derive(Debug)]
pub(super) struct JournalPrefix {
    pub(super) spans: Vec<SegmentSpan>,
    /// Its last line.
    pub(super) head: Position,
    /// Values that its lines refer to.
    pub(super) values: BTreeSet<Hash>,
}

/// Segments that follow each other.
enum SegmentChain {
    Whole(Vec<SegmentSpan>),
    /// A segment is missing that a later one follows; `seq` is the number of its last line.
    Missing {
        epoch: u64,
        seq: u64,
    },
}

/// Predecessor of a segment, as named by its first line.
#[derive(Clone)]
struct SegmentOrigin {
    follows: Position,
    forked_from: Option<SessionId>,
}

/// Result of reading a whole journal.
#[derive(Clone, Debug)]
pub(super) struct JournalExtent {
    pub(super) head: Position,
    pub(super) torn: Option<TornTail>,
    /// Highest line that a later one claims to be on disk; 0 if no writer is known to have passed a barrier.
    pub(super) synced: u64,
    /// Highest number of a segment, whether it belongs to the journal or not.
    pub(super) newest_epoch: u64,
}

/// Iterates over the lines of a journal.
pub(super) struct JournalWalk {
    journal: JournalFiles,
    spans: std::vec::IntoIter<SegmentSpan>,
    /// Number of the last span.
    newest_epoch: u64,
    current: Option<(SegmentSpan, SegmentScan)>,
    head: Position,
    synced: u64,
    /// Returned after the lines of all spans.
    damage: Option<StoreError>,
    /// Set at the end of the newest segment.
    rest: Option<SegmentRest>,
}

impl JournalFiles {
    pub(super) fn damaged(&self, seq: u64, problem: &'static str) -> StoreError {
        StoreError::Damaged { session: self.id.clone(), seq, problem }
    }

    /// Returns the numbers of all segments, in ascending order.
    pub(super) fn epochs(&self) -> Result<Vec<u64>, StoreError> {
        let names = match self.disk.list(&self.files.directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(StoreError::NotFound(self.id.clone()));
            }
            names => names.map_err(io_error("list", &self.files.directory))?,
        };
        let mut epochs: Vec<u64> = names.iter().filter_map(|name| epoch_of(name)).collect();
        epochs.sort_unstable();
        Ok(epochs)
    }

    /// Returns the highest number of a segment; 0 without segments.
    pub(super) fn newest_epoch(&self) -> Result<u64, StoreError> {
        Ok(self.epochs()?.last().copied().unwrap_or(0))
    }

    /// Returns the parts of the segments that form the journal, up to the first segment that cannot be read.
    ///
    /// # Errors
    ///
    /// The damage, if no segment can be read.
    pub(super) fn spans(&self) -> Result<JournalSpans, StoreError> {
        let (mut own, mut damage) = (BTreeMap::new(), None);
        let epochs = self.epochs()?;
        for epoch in &epochs {
            match self.first_line(&self.id, *epoch, own.is_empty()) {
                Ok(origin) => own.extend(origin.map(|origin| (*epoch, origin))),
                Err(error) if error.is_damage() => {
                    damage = Some(error);
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        loop {
            match self.chain(&own)? {
                SegmentChain::Whole(spans) if spans.is_empty() => {
                    return Err(damage.unwrap_or_else(|| StoreError::NotFound(self.id.clone())));
                }
                SegmentChain::Whole(spans) => return Ok(JournalSpans { spans, damage }),
                SegmentChain::Missing { epoch, seq } => {
                    damage = Some(self.damaged(seq, "its segment is missing"));
                    own.split_off(&epoch);
                }
            }
        }
    }

    /// Follows the segments back from the newest of `own`, the segments of this session.
    fn chain(&self, own: &BTreeMap<u64, SegmentOrigin>) -> Result<SegmentChain, StoreError> {
        let mut spans = Vec::new();
        let mut session = self.id.clone();
        let mut next = own.last_key_value().map(|(epoch, _)| *epoch);
        let mut end = None;
        while let Some(epoch) = next {
            let origin = if session == self.id {
                own.get(&epoch).cloned()
            } else {
                self.first_line(&session, epoch, false)?
            };
            let Some(SegmentOrigin { follows, forked_from }) = origin else {
                return Ok(SegmentChain::Missing { epoch, seq: end.map_or(1, |end: Position| end.seq) });
            };
            spans.push(SegmentSpan { session: session.clone(), epoch, follows, end });
            next = (follows.epoch > 0).then_some(follows.epoch);
            end = Some(follows);
            session = forked_from.unwrap_or(session);
        }
        spans.reverse();
        Ok(SegmentChain::Whole(spans))
    }

    /// Returns the file of a segment that was written by a writer of this session, or of a session that it was forked
    /// from.
    pub(super) fn segment(&self, session: &SessionId, epoch: u64) -> PathBuf {
        if *session == self.id { self.files.segment(epoch) } else { self.files.inherited_segment(epoch) }
    }

    /// Returns the predecessor of a segment; `None` if the segment is missing, or its writer crashed before it was in
    /// use. `is_oldest` is set if no earlier segment of the session is in use.
    fn first_line(
        &self,
        session: &SessionId,
        epoch: u64,
        is_oldest: bool,
    ) -> Result<Option<SegmentOrigin>, StoreError> {
        let path = self.segment(session, epoch);
        let input = match self.disk.open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            input => input.map_err(io_error("open", &path))?,
        };
        let first = read_first_line(input, &HashChain::new(session)).map_err(io_error("read", &path))?;
        let header = match first {
            FirstLine::Header(header) => header,
            FirstLine::Damaged { .. } | FirstLine::Foreign if is_oldest && self.is_lost(&path)? => {
                return Ok(None);
            }
            FirstLine::Damaged { seq } => {
                let seq = if is_oldest { 1 } else { seq };
                return Err(self.damaged(seq, "it is not the line that was written"));
            }
            FirstLine::Incomplete => return Ok(None),
            FirstLine::Foreign => return Err(StoreError::NotAJournal(path)),
        };
        if header.journal > VERSION {
            let (session, found) = (self.id.clone(), header.journal);
            return Err(StoreError::Version { session, found, expected: VERSION });
        }
        // A segment follows a segment of an older writer, so the walk back ends.
        if header.session != *session || header.epoch != epoch || header.follows.epoch >= epoch {
            return Err(StoreError::NotAJournal(path));
        }
        Ok(Some(SegmentOrigin { follows: header.follows, forked_from: header.forked_from }))
    }

    /// Returns whether the machine crashed before the first lines of the oldest segment were on disk.
    fn is_lost(&self, path: &Path) -> Result<bool, StoreError> {
        let input = self.disk.open(path).map_err(io_error("open", path))?;
        is_lost_start(input).map_err(io_error("read", path))
    }

    /// Verifies the journal up to line `at`.
    pub(super) fn prefix(&self, at: u64) -> Result<JournalPrefix, StoreError> {
        let JournalSpans { mut spans, .. } = self.spans()?;
        let mut walk = self.walk_over(JournalSpans { spans: spans.clone(), damage: None }, 1);
        let mut values = BTreeSet::new();
        while walk.head.seq < at {
            let Some(line) = walk.next()? else { break };
            values.extend(blob::hashes(&line.object));
        }
        if at == 0 || walk.head.seq != at {
            return Err(StoreError::NoSuchLine { session: self.id.clone(), seq: at });
        }
        spans.retain(|span| span.follows.seq < at);
        Ok(JournalPrefix { spans, head: walk.head, values })
    }

    /// Walks over the lines, starting with the segment that contains line `from`.
    pub(super) fn walk(&self, from: u64) -> Result<JournalWalk, StoreError> {
        Ok(self.walk_over(self.spans()?, from))
    }

    /// Walks over the lines of these spans, starting with the span that contains line `from`.
    pub(super) fn walk_over(&self, spans: JournalSpans, from: u64) -> JournalWalk {
        let JournalSpans { spans, damage } = spans;
        let newest_epoch = spans.last().map_or(0, |span| span.epoch);
        let first = spans.iter().rposition(|span| span.follows.seq < from.max(1)).unwrap_or(0);
        let spans: Vec<SegmentSpan> = spans.into_iter().skip(first).collect();
        let head = spans.first().map_or(START, |span| span.follows);
        let spans = spans.into_iter();
        JournalWalk {
            journal: self.clone(),
            spans,
            newest_epoch,
            current: None,
            head,
            synced: 0,
            damage,
            rest: None,
        }
    }

    /// Verifies the whole journal.
    pub(super) fn extent(&self) -> Result<JournalExtent, StoreError> {
        let newest_epoch = self.newest_epoch()?;
        let mut walk = self.walk(1)?;
        while walk.next()?.is_some() {}
        Ok(JournalExtent { head: walk.head, torn: walk.torn(), synced: walk.synced, newest_epoch })
    }

    /// Makes the names of the session and of its segments survive a crash of the machine.
    pub(super) fn sync_names(&self) -> Result<(), StoreError> {
        let own = self.files.directory.as_path();
        // The names in it come first: a session without a segment does not exist.
        for directory in [Some(own), own.parent()].into_iter().flatten() {
            self.disk.sync_dir(directory).map_err(io_error("sync", directory))?;
        }
        Ok(())
    }

    /// Makes a session survive a crash of the machine, unless a line claims that it does. Its writer may not have passed a
    /// barrier yet.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`] if there is no such session. Damage after the first lines is left to a later reader.
    pub(super) fn sync_if_unsynced(&self) -> Result<(), StoreError> {
        let mut walk = self.walk(1)?;
        while let Ok(Some(_)) = walk.next() {
            if walk.synced() > 0 {
                return Ok(());
            }
        }
        let newest = self.files.segment(walk.newest_epoch());
        self.disk.sync_file(&newest).map_err(io_error("sync", &newest))?;
        self.sync_names()
    }
}

impl JournalWalk {
    /// Returns the next line; `None` at the end. After the end of the newest segment it may be called again, and
    /// returns the lines that were written meanwhile.
    pub(super) fn next(&mut self) -> Result<Option<Line>, StoreError> {
        loop {
            let Some((span, scan)) = &mut self.current else {
                match self.spans.next() {
                    Some(span) => self.current = Some(self.enter(span)?),
                    None => return Ok(None),
                }
                continue;
            };
            let path = self.journal.segment(&span.session, span.epoch);
            if span.end.is_some_and(|end| end.seq == scan.head().seq) {
                if span.end.is_some_and(|end| end.hash != scan.head().hash) {
                    return Err(self
                        .journal
                        .damaged(scan.head().seq, "the next segment follows another line"));
                }
                self.current = None;
                continue;
            }
            match scan.next().map_err(io_error("read", &path))? {
                ScannedLine::Line(line) => {
                    self.head = scan.head();
                    self.synced = self.synced.max(scan.synced());
                    return Ok(Some(line));
                }
                ScannedLine::End | ScannedLine::Misfit => {}
            }
            let wrong = scan.head().seq + 1;
            if span.end.is_some() {
                return Err(self.journal.damaged(wrong, "it is not the line that was written"));
            }
            if let Some(damage) = self.damage.take() {
                return Err(damage);
            }
            let rest = scan.rest().map_err(io_error("read", &path))?;
            if rest.synced >= wrong {
                // The line may have been completed, and later ones written, after it was found to be incomplete.
                if let ScannedLine::Line(line) = scan.next().map_err(io_error("read", &path))? {
                    self.head = scan.head();
                    self.synced = self.synced.max(scan.synced());
                    return Ok(Some(line));
                }
                return Err(self.journal.damaged(wrong, "it is not the line that was written"));
            }
            self.rest = Some(rest);
            return Ok(None);
        }
    }

    fn enter(&self, span: SegmentSpan) -> Result<(SegmentSpan, SegmentScan), StoreError> {
        let path = self.journal.segment(&span.session, span.epoch);
        let input = self.journal.disk.open(&path).map_err(io_error("open", &path))?;
        let scan = SegmentScan::new(input, span.epoch, HashChain::new(&span.session), &span.follows);
        Ok((span, scan))
    }

    pub(super) fn head(&self) -> Position {
        self.head
    }

    pub(super) fn synced(&self) -> u64 {
        self.synced
    }

    /// Returns the number of the last segment of the walk.
    pub(super) fn newest_epoch(&self) -> u64 {
        self.newest_epoch
    }

    /// Returns the torn end of the journal, once the walk has reached it.
    pub(super) fn torn(&self) -> Option<TornTail> {
        let rest = self.rest.filter(|rest| rest.bytes > 0)?;
        Some(TornTail { seq: self.head.seq + 1, bytes: rest.bytes })
    }
}
