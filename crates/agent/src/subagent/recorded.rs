//! Subagents of a recorded session whose process has ended.

use super::report::Report;
use crate::protocol::{InputKind, SessionId, SubagentSettings, SubagentStatus};
use crate::record::Record;

/// Failure reason of a subagent that was open when its process ended.
pub(super) const LOST: &str = include_str!("../../prompts/subagent/lost.md").trim_ascii_end();

/// Output of a subagent that had ended before its process.
pub(super) const NOT_KEPT: &str = include_str!("../../prompts/subagent/not_kept.md").trim_ascii_end();

/// A subagent as the record of its parent describes it.
#[derive(Clone, Debug)]
pub(crate) struct RecordedSubagent {
    pub(super) name: String,
    pub(super) session_id: SessionId,
    pub(super) task: String,
    pub(super) settings: SubagentSettings,
    /// The call that spawned it.
    pub(super) call_id: Option<String>,
    /// Final report; `None` if it was open at the end of the record.
    ended: Option<Report>,
}

impl RecordedSubagent {
    /// Lists the subagents of a record, in the order in which they were spawned.
    pub(crate) fn all_of(record: &Record) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for entry in &record.entries {
            if let InputKind::ChildSpawned { agent, session, task, call_id, settings } = &entry.input.kind {
                all.push(Self {
                    name: agent.clone(),
                    session_id: session.clone(),
                    task: task.clone(),
                    settings: settings.clone(),
                    call_id: call_id.clone(),
                    ended: None,
                });
            } else if let InputKind::ChildEnded { agent, status, turns_used, output, reason, warning } =
                &entry.input.kind
                && let Some(known) = all.iter_mut().find(|known| known.name == *agent)
            {
                known.ended = Some(Report {
                    status: *status,
                    output: output.clone(),
                    reason: reason.clone(),
                    warning: warning.clone(),
                    turns_used: *turns_used,
                });
            }
        }
        all
    }

    pub(super) fn is_open(&self) -> bool {
        self.ended.is_none()
    }

    /// Returns the final report, with defaults for the parts that the record does not contain.
    pub(super) fn report(&self) -> Report {
        let Some(mut report) = self.ended.clone() else { return Report::failed(LOST, String::new(), 0) };
        // Records of earlier versions contain neither the output nor the reason.
        if report.output.is_empty() {
            NOT_KEPT.clone_into(&mut report.output);
        }
        if report.status != SubagentStatus::Completed {
            report.status = SubagentStatus::Failed;
            report.reason.get_or_insert_with(|| "it failed".to_owned());
        }
        report
    }
}
