//! What has become of a subagent (loop specification, section 7.3).

use crate::protocol::{Outcome, OutcomeStatus, SubagentStatus};

/// Why an agent failed that was stopped.
pub(super) const INTERRUPTED: &str = "it was interrupted";

/// How things stand with one subagent; with its result once it does not run any more.
#[derive(Clone, Debug)]
pub(super) struct Report {
    pub(super) status: SubagentStatus,
    /// Its final text, or what it had said by the time it failed.
    pub(super) output: String,
    /// Why it failed.
    pub(super) reason: Option<String>,
    /// Its answers so far.
    pub(super) turns_used: u64,
}

impl Report {
    pub(super) fn running() -> Self {
        Self { status: SubagentStatus::Running, output: String::new(), reason: None, turns_used: 0 }
    }

    /// What a run came to, during which the agent said `said` last.
    pub(super) fn of(outcome: Outcome, said: String, turns_used: u64) -> Self {
        let Some(reason) = failure(&outcome) else {
            let status = SubagentStatus::Completed;
            return Self { status, output: outcome.text, reason: None, turns_used };
        };
        Self::failed(reason, said, turns_used)
    }

    pub(super) fn failed(reason: impl Into<String>, said: String, turns_used: u64) -> Self {
        Self { status: SubagentStatus::Failed, output: said, reason: Some(reason.into()), turns_used }
    }

    /// The specification's record, as the model reads it.
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

    /// What it said, or that it said nothing.
    pub(super) fn text(&self) -> &str {
        if self.output.trim().is_empty() { "(no text)" } else { &self.output }
    }
}

/// Why a run did not come to its end; `None` if it did.
fn failure(outcome: &Outcome) -> Option<String> {
    let reason = match outcome.status {
        OutcomeStatus::Completed | OutcomeStatus::AwaitingInput => return None,
        OutcomeStatus::Refused => "the model refused",
        OutcomeStatus::RoundLimit => "its limit of tool rounds is reached",
        OutcomeStatus::TurnLimit => "its limit of turns is reached",
        OutcomeStatus::Budget => "its budget is spent",
        OutcomeStatus::ContextFull => "its context window is full",
        OutcomeStatus::Interrupted => INTERRUPTED,
        OutcomeStatus::Aborted => "it was closed",
        OutcomeStatus::Failed => "it failed",
    };
    Some(match &outcome.error {
        Some(error) => format!("{reason}: {error}"),
        None => reason.to_owned(),
    })
}
