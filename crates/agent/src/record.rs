//! What happened to a session, kept so that it can be explained, repeated and gone on with (design, section 3).

mod recorder;
mod replay;
#[cfg(test)]
mod tests;

use std::io::{self, BufRead, BufWriter, Write};
use std::sync::Arc;

use pintle_llm::Fingerprint;
use serde::{Deserialize, Serialize};

pub(crate) use self::recorder::{Journal, Recorder};
pub use self::replay::{Divergence, Replay, ReplayError};
use crate::event::EventKind;
use crate::id::{RunId, SegmentId, SessionId};
use crate::subagent_info::SubagentOrigin;
use crate::turn::{Action, Input, InputKind, SegmentKind, Start};

/// The inputs of a session, from the first on: the whole truth about it.
///
/// It holds prompts, answers and what tools gave, and no key. Cloning it copies no input. Written as JSON lines, one
/// for what the session began with and one for each input, so that a file of it can be appended to.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Record {
    /// Where it comes from.
    pub header: RecordHeader,
    /// What happened, in order.
    pub entries: Vec<Arc<RecordEntry>>,
}

/// The first line of a record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RecordHeader {
    /// The version of the format: [`Record::VERSION`].
    pub version: u32,
    /// The version of this crate that made it.
    pub made_by: String,
    /// The session.
    pub session_id: SessionId,
    /// Whose subagent it was, if it was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subagent: Option<SubagentOrigin>,
    /// What the session began with.
    pub start: Start,
}

/// One input and, if it led to one, the request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RecordEntry {
    /// What happened.
    #[serde(flatten)]
    pub input: Input,
    /// What tells the request that followed from every other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Fingerprint>,
}

/// Why a text is no record.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// It could not be read.
    #[error("the record cannot be read")]
    Read(#[source] io::Error),
    /// It does not begin as records do.
    #[error("the first line is not that of a record")]
    Header(#[source] serde_json::Error),
    /// It has another version.
    #[error("the record has version {found}, expected {expected}")]
    Version {
        /// Its version.
        found: u64,
        /// The one that this crate reads.
        expected: u32,
    },
    /// A line is not one of a record.
    #[error("line {line} is not an input")]
    Line {
        /// Which, from 1.
        line: usize,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
}

impl Record {
    /// The version of the format that this crate writes and reads.
    pub const VERSION: u32 = 1;

    /// Writes all of it.
    ///
    /// # Errors
    ///
    /// Those of `out`, and of reading a spooled output.
    pub fn write(&self, out: impl Write) -> io::Result<()> {
        let mut out = BufWriter::new(out);
        line(&self.header, &mut out)?;
        self.write_from(0, out)
    }

    /// Writes the entries from this one on, to append them to what was written before.
    ///
    /// # Errors
    ///
    /// As for [`Record::write`].
    pub fn write_from(&self, entry: usize, out: impl Write) -> io::Result<()> {
        let mut out = BufWriter::new(out);
        self.entries.iter().skip(entry).try_for_each(|entry| line(entry.as_ref(), &mut out))?;
        out.flush()
    }

    /// Reads what [`Record::write`] wrote. A last line that was cut off, as by a crash, is left out.
    ///
    /// # Errors
    ///
    /// Where it is not a record of this version, and why.
    pub fn read(mut input: impl BufRead) -> Result<Self, RecordError> {
        let mut text = String::new();
        input.read_line(&mut text).map_err(RecordError::Read)?;
        let header = RecordHeader::parse(&text)?;
        let mut entries = Vec::new();
        for number in 2.. {
            let mut text = Vec::new();
            if input.read_until(b'\n', &mut text).map_err(RecordError::Read)? == 0 {
                break;
            }
            match serde_json::from_slice(&text) {
                Ok(entry) => entries.push(Arc::new(entry)),
                // An input is written before anything follows from it, so that one that is cut has had no effect.
                Err(_) if !text.ends_with(b"\n") => break,
                Err(source) => return Err(RecordError::Line { line: number, source }),
            }
        }
        Ok(Self { header, entries })
    }

    /// The part before this entry.
    #[must_use]
    pub fn before(&self, entry: usize) -> Self {
        let entries = self.entries.iter().take(entry).cloned().collect();
        Self { header: self.header.clone(), entries }
    }

    /// The number of the next run.
    pub(crate) fn next_run(&self) -> u64 {
        let run = |kind: &InputKind| {
            if let InputKind::Submit { run: RunId(run), .. } = kind { *run + 1 } else { 0 }
        };
        self.entries.iter().map(|entry| run(&entry.input.kind)).max().unwrap_or(0)
    }

    /// The number of the next segment.
    pub(crate) fn next_segment(&self) -> u64 {
        let segment = |kind: &InputKind| {
            if let InputKind::SegmentOpened { segment: SegmentId(segment), .. } = kind {
                *segment + 1
            } else {
                0
            }
        };
        self.entries.iter().map(|entry| segment(&entry.input.kind)).max().unwrap_or(0)
    }

    /// The segments that have begun and not ended.
    pub(crate) fn open_segments(&self) -> Vec<(SegmentId, SegmentKind)> {
        let mut open = Vec::new();
        for entry in &self.entries {
            if let InputKind::SegmentOpened { segment, kind } = &entry.input.kind {
                open.push((*segment, *kind));
            } else if let InputKind::SegmentClosed { segment: closed, .. } = &entry.input.kind {
                open.retain(|(segment, _)| segment != closed);
            } else if let InputKind::ModelReplied { .. } | InputKind::ModelFailed { .. } = &entry.input.kind {
                open.clear();
            }
        }
        open
    }
}

impl RecordHeader {
    pub(crate) fn new(session_id: SessionId, subagent: Option<SubagentOrigin>, start: Start) -> Self {
        let made_by = env!("CARGO_PKG_VERSION").to_owned();
        Self { version: Record::VERSION, made_by, session_id, subagent, start }
    }

    fn parse(text: &str) -> Result<Self, RecordError> {
        #[derive(Deserialize)]
        struct Version {
            version: u64,
        }
        // The version first, since what else is there depends on it.
        let Version { version } = serde_json::from_str(text).map_err(RecordError::Header)?;
        if version != u64::from(Record::VERSION) {
            return Err(RecordError::Version { found: version, expected: Record::VERSION });
        }
        serde_json::from_str(text).map_err(RecordError::Header)
    }
}

/// What tells the request apart that these actions send.
pub(crate) fn request_of(actions: &[Action]) -> Option<Fingerprint> {
    actions.iter().find_map(|action| {
        let Action::Emit(event) = action else { return None };
        let EventKind::RequestPrepared { fingerprint, .. } = event.as_ref() else { return None };
        Some(*fingerprint)
    })
}

fn line(value: &impl Serialize, out: &mut impl Write) -> io::Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    out.write_all(b"\n")
}
