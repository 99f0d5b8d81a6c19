//! Subagents of a recorded session whose process has ended.

use super::report::Report;
use crate::protocol::{InputKind, SessionId, SubagentStatus};
use crate::record::Record;

/// Failure reason of a subagent that was open when its process ended.
const LOST: &str = "the program that ran it ended, and the agent with it; what it had changed is still there";

/// Output of a subagent that had ended before its process did.
const NOT_KEPT: &str =
    "(The program that ran this agent has ended since, and its last message was not kept.)";

/// A subagent as the record of its parent describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecordedSubagent {
    pub(super) name: String,
    pub(super) session_id: SessionId,
    /// Final status and number of model responses; `None` if it was open at the end of the record.
    ended: Option<(SubagentStatus, u64)>,
}

impl RecordedSubagent {
    /// Lists the subagents of a record, in the order in which they were spawned.
    pub(crate) fn all_of(record: &Record) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for entry in &record.entries {
            if let InputKind::ChildSpawned { agent, session, .. } = &entry.input.kind {
                all.push(Self { name: agent.clone(), session_id: session.clone(), ended: None });
            } else if let InputKind::ChildEnded { agent, status, turns_used } = &entry.input.kind
                && let Some(known) = all.iter_mut().find(|known| known.name == *agent)
            {
                known.ended = Some((*status, *turns_used));
            }
        }
        all
    }

    /// Returns the final report, as far as the record has it.
    pub(super) fn report(&self) -> Report {
        match self.ended {
            None => Report::failed(LOST, String::new(), 0),
            Some((SubagentStatus::Completed, turns_used)) => {
                let status = SubagentStatus::Completed;
                Report { status, output: NOT_KEPT.to_owned(), reason: None, turns_used }
            }
            Some((SubagentStatus::Failed | SubagentStatus::Running, turns_used)) => {
                Report::failed("it failed", NOT_KEPT.to_owned(), turns_used)
            }
        }
    }
}
