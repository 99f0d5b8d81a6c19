//! Result of a subagent's work (loop specification, section 7.3).

use crate::protocol::{InputKind, Outcome, OutcomeStatus, SubagentStatus};

/// Failure reason of a subagent that was interrupted.
pub(super) const INTERRUPTED: &str = "it was interrupted";

/// Result of a subagent's last message (loop specification, section 7.3).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SubagentResult {
    /// Final text, or the last text before a failure.
    pub output: String,
    /// Whether the last message was answered.
    pub success: bool,
    /// Model responses so far, over all messages.
    pub turns_used: u64,
    /// Failure reason; `None` on success.
    pub reason: Option<String>,
}

/// Status of a subagent, with its result once it is not running.
#[derive(Clone, Debug)]
pub(super) struct Report {
    pub(super) status: SubagentStatus,
    /// Final text, or the last text before a failure.
    pub(super) output: String,
    /// Failure reason.
    pub(super) reason: Option<String>,
    /// Model responses so far.
    pub(super) turns_used: u64,
}

impl Report {
    pub(super) fn running() -> Self {
        Self { status: SubagentStatus::Running, output: String::new(), reason: None, turns_used: 0 }
    }

    /// Creates the report of a finished run. A failure has `last_text`, the agent's last text, as its output.
    pub(super) fn of(outcome: Outcome, last_text: String, turns_used: u64) -> Self {
        let Some(reason) = failure(&outcome) else {
            let status = SubagentStatus::Completed;
            return Self { status, output: outcome.text, reason: None, turns_used };
        };
        Self::failed(reason, last_text, turns_used)
    }

    pub(super) fn failed(reason: impl Into<String>, last_text: String, turns_used: u64) -> Self {
        Self { status: SubagentStatus::Failed, output: last_text, reason: Some(reason.into()), turns_used }
    }

    /// Returns the input that tells the parent of the end.
    pub(super) fn as_end_of(&self, agent: &str) -> InputKind {
        InputKind::ChildEnded {
            agent: agent.to_owned(),
            status: self.status,
            turns_used: self.turns_used,
            output: self.output.clone(),
            reason: self.reason.clone(),
        }
    }

    /// Returns the specification's result record, for the embedding application.
    pub(super) fn result(&self) -> SubagentResult {
        SubagentResult {
            output: self.output.clone(),
            success: self.status == SubagentStatus::Completed,
            turns_used: self.turns_used,
            reason: self.reason.clone(),
        }
    }

    /// Formats the specification's result record as text for the model.
    pub(super) fn for_model(&self) -> String {
        let mut text = format!(
            "success: {}\nturns_used: {}\n",
            self.status == SubagentStatus::Completed,
            self.turns_used
        );
        if let Some(reason) = &self.reason {
            text.push_str(&format!("reason: {reason}\n"));
        }
        text.push_str("output:\n");
        text.push_str(self.text());
        text
    }

    /// Returns the output, or a placeholder for a blank one.
    pub(super) fn text(&self) -> &str {
        if self.output.trim().is_empty() { "(no text)" } else { &self.output }
    }
}

/// Returns why a run failed; `None` if it was answered.
fn failure(outcome: &Outcome) -> Option<String> {
    let reason = match outcome.status {
        OutcomeStatus::Completed | OutcomeStatus::AwaitingInput => return None,
        OutcomeStatus::Refused => "the model refused",
        OutcomeStatus::RoundLimit => "its limit of tool rounds is reached",
        OutcomeStatus::TurnLimit => "its limit of turns is reached",
        OutcomeStatus::Budget => "its budget is spent",
        OutcomeStatus::ContextFull => "its context window is full",
        OutcomeStatus::OutputLimit => "its response was cut off by the output limit",
        OutcomeStatus::Interrupted => INTERRUPTED,
        OutcomeStatus::Aborted => "it was closed",
        OutcomeStatus::Failed => "it failed",
    };
    Some(match &outcome.error {
        Some(error) => format!("{reason}: {error}"),
        None => reason.to_owned(),
    })
}
