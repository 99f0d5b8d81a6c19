//! The journal of one session: its segments, in the order in which they follow each other.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use pintle_agent::SessionId;

use super::disk::Disk;
use super::io_error;
use super::layout::{SessionFiles, epoch_of};
use super::segment::{FirstLine, Rest, START, Scanned, SegmentScan, read_first_line};
use crate::error::StoreError;
use crate::line::{Chain, VERSION};
use crate::store::{Line, Position, TornTail};

/// Files of one journal.
#[derive(Clone, Debug)]
pub(super) struct JournalFiles {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) id: SessionId,
    pub(super) files: SessionFiles,
}

/// Part of a segment that belongs to the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) epoch: u64,
    /// Line before the first one.
    pub(super) follows: Position,
    /// Last line, which the next segment names; `None` in the newest segment.
    pub(super) end: Option<Position>,
}

/// What a complete reading of a journal found.
#[derive(Clone, Debug)]
pub(super) struct Extent {
    pub(super) head: Position,
    pub(super) torn: Option<TornTail>,
    /// Highest number of a segment, whether it belongs to the journal or not.
    pub(super) newest_epoch: u64,
}

/// Walks over the lines of a journal.
pub(super) struct Walk {
    journal: JournalFiles,
    spans: std::vec::IntoIter<Span>,
    /// Number of the last span.
    newest_epoch: u64,
    current: Option<(Span, SegmentScan)>,
    head: Position,
    synced: u64,
    /// Set at the end of the newest segment.
    rest: Option<Rest>,
}

impl JournalFiles {
    pub(super) fn damaged(&self, seq: u64, problem: &'static str) -> StoreError {
        StoreError::Damaged { session: self.id.clone(), seq, problem }
    }

    pub(super) fn chain(&self) -> Chain {
        Chain::new(&self.id)
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

    /// Returns the highest number of a segment; 0 if there is none.
    pub(super) fn newest_epoch(&self) -> Result<u64, StoreError> {
        Ok(self.epochs()?.last().copied().unwrap_or(0))
    }

    /// Returns the parts of the segments that form the journal, the oldest first.
    pub(super) fn spans(&self) -> Result<Vec<Span>, StoreError> {
        let mut follows = BTreeMap::new();
        let epochs = self.epochs()?;
        for epoch in &epochs {
            let is_oldest = epochs.first() == Some(epoch);
            follows.extend(self.first_line(*epoch, is_oldest)?.map(|before| (*epoch, before)));
        }
        let mut spans = Vec::new();
        let mut next = follows.last_key_value().map(|(epoch, _)| *epoch);
        let mut end = None;
        while let Some(epoch) = next {
            let Some(before) = follows.remove(&epoch) else {
                let seq = end.map_or(1, |end: Position| end.seq);
                return Err(self.damaged(seq, "its segment is missing"));
            };
            spans.push(Span { epoch, follows: before, end });
            next = (before.epoch > 0).then_some(before.epoch);
            end = Some(before);
        }
        if spans.is_empty() {
            return Err(StoreError::NotFound(self.id.clone()));
        }
        spans.reverse();
        Ok(spans)
    }

    /// Returns the position that a segment follows; `None` if its writer died before it was in use.
    fn first_line(&self, epoch: u64, is_oldest: bool) -> Result<Option<Position>, StoreError> {
        let path = self.files.segment(epoch);
        let input = self.disk.open(&path).map_err(io_error("open", &path))?;
        let header = match read_first_line(input, &self.chain()).map_err(io_error("read", &path))? {
            FirstLine::Header(header) => header,
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
        // A segment follows one of an older writer, so the walk back ends.
        if header.session != self.id || header.epoch != epoch || header.follows.epoch >= epoch {
            return Err(StoreError::NotAJournal(path));
        }
        Ok(Some(header.follows))
    }

    /// Walks over the lines from the segment on that has line `from`.
    pub(super) fn walk(&self, from: u64) -> Result<Walk, StoreError> {
        Ok(self.walk_over(self.spans()?, from))
    }

    /// Walks over the lines of these spans from the one on that has line `from`.
    pub(super) fn walk_over(&self, spans: Vec<Span>, from: u64) -> Walk {
        let newest_epoch = spans.last().map_or(0, |span| span.epoch);
        let first = spans.iter().rposition(|span| span.follows.seq < from.max(1)).unwrap_or(0);
        let spans: Vec<Span> = spans.into_iter().skip(first).collect();
        let head = spans.first().map_or(START, |span| span.follows);
        let spans = spans.into_iter();
        Walk { journal: self.clone(), spans, newest_epoch, current: None, head, synced: 0, rest: None }
    }

    /// Verifies the whole journal.
    pub(super) fn extent(&self) -> Result<Extent, StoreError> {
        let newest_epoch = self.newest_epoch()?;
        let mut walk = self.walk(1)?;
        while walk.next()?.is_some() {}
        Ok(Extent { head: walk.head, torn: walk.torn(), newest_epoch })
    }
}

impl Walk {
    /// Returns the next line; `None` at the end. After the end of the newest segment it may be called again, and returns
    /// the lines that were written meanwhile.
    pub(super) fn next(&mut self) -> Result<Option<Line>, StoreError> {
        loop {
            let Some((span, scan)) = &mut self.current else {
                match self.spans.next() {
                    Some(span) => self.current = Some(self.enter(span)?),
                    None => return Ok(None),
                }
                continue;
            };
            let path = self.journal.files.segment(span.epoch);
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
                Scanned::Line(line) => {
                    self.head = scan.head();
                    self.synced = self.synced.max(scan.synced());
                    return Ok(Some(line));
                }
                Scanned::End | Scanned::Misfit => {}
            }
            let wrong = scan.head().seq + 1;
            if span.end.is_some() {
                return Err(self.journal.damaged(wrong, "it is not the line that was written"));
            }
            let rest = scan.rest().map_err(io_error("read", &path))?;
            if rest.synced >= wrong {
                // The line may have been completed, and later ones written, since it was found to be incomplete.
                if let Scanned::Line(line) = scan.next().map_err(io_error("read", &path))? {
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

    fn enter(&self, span: Span) -> Result<(Span, SegmentScan), StoreError> {
        let path = self.journal.files.segment(span.epoch);
        let input = self.journal.disk.open(&path).map_err(io_error("open", &path))?;
        Ok((span, SegmentScan::new(input, span.epoch, self.journal.chain(), &span.follows)))
    }

    pub(super) fn head(&self) -> Position {
        self.head
    }

    pub(super) fn synced(&self) -> u64 {
        self.synced
    }

    /// Returns the number of the segment at whose end the walk ends.
    pub(super) fn newest_epoch(&self) -> u64 {
        self.newest_epoch
    }

    /// Returns the end of the journal that does not fit; only after the end was reached.
    pub(super) fn torn(&self) -> Option<TornTail> {
        let rest = self.rest.filter(|rest| rest.bytes > 0)?;
        Some(TornTail { seq: self.head.seq + 1, bytes: rest.bytes })
    }
}
