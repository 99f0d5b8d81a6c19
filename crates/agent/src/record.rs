//! Record of a session, from which it can be explained, replayed and resumed (design, section 3).

mod journal;
mod recorder;
mod replay;
#[cfg(test)]
mod tests;

use std::io::{self, BufRead, BufWriter, Write};
use std::sync::Arc;

use pintle_llm::Fingerprint;
use serde::{Deserialize, Serialize};

pub use self::journal::{Barrier, Fence, Journal, JsonLines, PostedInputs, SessionStatus, SubagentJournals};
pub(crate) use self::recorder::Recorder;
pub use self::replay::{Divergence, PendingApproval, Replay, ReplayError, RewindError};
use crate::protocol::{
    Action, Checkpoint, CheckpointReason, EventKind, Input, InputConsequences, InputKind, RunId, SegmentId,
    SessionId, Start, SubagentOrigin, Timestamp,
};

/// First version whose entries contain all consequences of the input.
const FIRST_COMPLETE: u32 = 4;

/// First version whose entries record whether a summary was used. Before it, each summary with text was used.
const FIRST_WITH_SUMMARIES: u32 = 6;

/// All inputs of a session, which determine it completely.
///
/// Contains prompts, model responses and tool results, but no keys. Cloning it copies no inputs. Written as JSON lines: a
/// header with the initial state, then one line for each input, so that inputs can be appended to a file.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Record {
    /// Header, with the initial state.
    pub header: RecordHeader,
    /// Inputs, in order.
    pub entries: Vec<Arc<RecordEntry>>,
}

/// First line of a record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RecordHeader {
    /// Version of the format, such as [`Record::VERSION`].
    pub version: u32,
    /// Version of this crate that wrote the record.
    pub made_by: String,
    /// Id of the session.
    pub session_id: SessionId,
    /// Origin, if the session was a subagent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subagent: Option<SubagentOrigin>,
    /// Initial state of the session.
    pub start: Start,
}

/// Input and its consequences.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RecordEntry {
    /// Input.
    #[serde(flatten)]
    pub input: Input,
    /// Fingerprint of the resulting request, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Fingerprint>,
    /// Id of the input, if it was posted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub posted: Option<String>,
    /// Other consequences.
    #[serde(default, skip_serializing_if = "InputConsequences::is_nothing")]
    pub followed: InputConsequences,
}

/// Reason why a record cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// Reading failed.
    #[error("the record cannot be read")]
    Read(#[source] io::Error),
    /// The first line is not a header.
    #[error("the first line is not the header of a record")]
    Header(#[source] serde_json::Error),
    /// The record has another version.
    #[error("the record has version {found}, expected {expected}")]
    Version {
        /// Version of the record.
        found: u64,
        /// Newest version that this crate reads.
        expected: u32,
    },
    /// A line is not an input.
    #[error("line {line} is not an input")]
    Line {
        /// Number of the line, from 1.
        line: usize,
        /// Syntax or data error.
        #[source]
        source: serde_json::Error,
    },
}

impl Record {
    /// Version of the format that this crate writes, and of the decisions that lead from the inputs of a record to its
    /// requests. Entries of a lower version are folded instead of stepped: version 1 has no inputs about the arguments of
    /// calls, in version 2 every result contains its output, version 3 records no consequences besides requests, version 4
    /// ends a run with a response that is cut off or empty, estimates requests without their tools, and sends a summary
    /// without the user's own messages, and version 5 uses summaries that were cut off or refused.
    pub const VERSION: u32 = 6;

    /// Oldest version of the format that this crate reads.
    const OLDEST_VERSION: u32 = 1;

    /// Creates a record without entries.
    #[must_use]
    pub fn new(header: RecordHeader) -> Self {
        Self { header, entries: Vec::new() }
    }

    /// Writes the complete record.
    ///
    /// # Errors
    ///
    /// Errors of `out`, and of reading a spooled output.
    pub fn write(&self, out: impl Write) -> io::Result<()> {
        let mut out = BufWriter::new(out);
        line(&self.header, &mut out)?;
        self.write_from(0, out)
    }

    /// Writes the entries from index `entry` on, to append them to a file.
    ///
    /// # Errors
    ///
    /// As for [`Record::write`].
    pub fn write_from(&self, entry: usize, out: impl Write) -> io::Result<()> {
        let mut out = BufWriter::new(out);
        self.entries.iter().skip(entry).try_for_each(|entry| line(entry.as_ref(), &mut out))?;
        out.flush()
    }

    /// Reads a record. An incomplete last line, as after a crash, is ignored.
    ///
    /// # Errors
    ///
    /// [`RecordError`] if the input is not a record, or has an unknown version.
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
                // An input is written before it has any effect, so an incomplete one has had none.
                Err(_) if !text.ends_with(b"\n") => break,
                Err(source) => return Err(RecordError::Line { line: number, source }),
            }
        }
        Ok(Self { header, entries })
    }

    /// Returns the part before index `entry`.
    #[must_use]
    pub fn before(&self, entry: usize) -> Self {
        let entries = self.entries.iter().take(entry).cloned().collect();
        Self { header: self.header.clone(), entries }
    }

    /// Returns the version that wrote the end of the record, and the number of entries before that version's first entry.
    pub(crate) fn newest_version(&self) -> (u32, usize) {
        let taken_up = self.entries.iter().enumerate().rev().find_map(|(index, entry)| {
            if let InputKind::TakenUp { version } = entry.input.kind { Some((version, index)) } else { None }
        });
        taken_up.unwrap_or((self.header.version, 0))
    }

    /// Returns the number of the next run.
    pub(crate) fn next_run(&self) -> u64 {
        let run = |kind: &InputKind| {
            if let InputKind::Submit { run: RunId(run), .. } = kind { *run + 1 } else { 0 }
        };
        self.entries.iter().map(|entry| run(&entry.input.kind)).max().unwrap_or(0)
    }

    /// Returns the number of the next segment.
    pub(crate) fn next_segment(&self) -> u64 {
        let segment = |kind: &InputKind| {
            if let InputKind::SegmentOpened { segment: SegmentId(segment), .. }
            | InputKind::ArgumentsOpened { segment: SegmentId(segment), .. } = kind
            {
                *segment + 1
            } else {
                0
            }
        };
        self.entries.iter().map(|entry| segment(&entry.input.kind)).max().unwrap_or(0)
    }

    /// Returns the inputs that end the segments which the record leaves open.
    pub(crate) fn ends_of_open_segments(&self) -> Vec<InputKind> {
        let mut open: Vec<(SegmentId, InputKind)> = Vec::new();
        for entry in &self.entries {
            let kind = &entry.input.kind;
            if let InputKind::SegmentOpened { segment, kind } = kind {
                let (segment, kind, text) = (*segment, *kind, String::new());
                let end = InputKind::SegmentClosed { segment, kind, text, interrupted: true };
                open.push((segment, end));
            } else if let InputKind::ArgumentsOpened { segment, call_id, .. } = kind {
                let (segment, call_id) = (*segment, call_id.clone());
                let end = InputKind::ArgumentsClosed { segment, call_id, interrupted: true };
                open.push((segment, end));
            } else if let InputKind::SegmentClosed { segment: closed, .. }
            | InputKind::ArgumentsClosed { segment: closed, .. } = kind
            {
                open.retain(|(segment, _)| segment != closed);
            } else if let InputKind::ModelReplied { .. } | InputKind::ModelFailed { .. } = kind {
                open.clear();
            }
        }
        open.into_iter().map(|(_, end)| end).collect()
    }
}

impl RecordEntry {
    /// Creates the entry of a checkpoint that was taken while no process runs the session, for its journal.
    #[must_use]
    pub fn checkpoint_taken(at: Timestamp, reason: CheckpointReason, checkpoint: Checkpoint) -> Self {
        Self::alone(Input::new(at, InputKind::CheckpointTaken { reason, checkpoint }))
    }

    /// Creates the entry of an input without consequences.
    pub(crate) fn alone(input: Input) -> Self {
        Self { input, request: None, posted: None, followed: InputConsequences::default() }
    }

    /// Creates the entry of an input with its consequences.
    pub(crate) fn from_input(input: Input, posted: Option<String>, actions: &[Action]) -> Self {
        Self {
            input,
            request: request_of(actions),
            posted,
            followed: InputConsequences::from_actions(actions).as_recorded(),
        }
    }

    /// Returns the consequences, as a record of this version contains them.
    pub(crate) fn followed(&self, version: u32) -> InputConsequences {
        let mut followed = self.followed.clone();
        followed.request = self.request.is_some();
        followed.is_complete = version >= FIRST_COMPLETE;
        followed.summarized |= version < FIRST_WITH_SUMMARIES;
        followed
    }
}

impl RecordHeader {
    pub(crate) fn new(session_id: SessionId, subagent: Option<SubagentOrigin>, start: Start) -> Self {
        let made_by = env!("CARGO_PKG_VERSION").to_owned();
        Self { version: Record::VERSION, made_by, session_id, subagent, start }
    }

    /// Parses the first line of a record.
    ///
    /// # Errors
    ///
    /// [`RecordError::Header`] or [`RecordError::Version`].
    pub fn parse(text: &str) -> Result<Self, RecordError> {
        #[derive(Deserialize)]
        struct Version {
            version: u64,
        }
        // The version first, since the other fields depend on it.
        let Version { version } = serde_json::from_str(text).map_err(RecordError::Header)?;
        if !(u64::from(Record::OLDEST_VERSION)..=u64::from(Record::VERSION)).contains(&version) {
            return Err(RecordError::Version { found: version, expected: Record::VERSION });
        }
        serde_json::from_str(text).map_err(RecordError::Header)
    }
}

/// Returns the fingerprint of the request that these actions send.
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
