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
    /// Reason why the output of a success may be incomplete; see [`Outcome::warning`](crate::Outcome::warning).
    pub warning: Option<String>,
}

/// Status of a subagent, with its result once it is not running.
#[derive(Clone, Debug)]
pub(super) struct Report {
    pub(super) status: SubagentStatus,
    /// Final text, or the last text before a failure.
    pub(super) output: String,
    /// Failure reason.
    pub(super) reason: Option<String>,
    /// Reason why the output of a success may be incomplete.
    pub(super) warning: Option<String>,
    /// Model responses so far.
    pub(super) turns_used: u64,
}

impl Report {
    pub(super) fn running() -> Self {
        let status = SubagentStatus::Running;
        Self { status, output: String::new(), reason: None, warning: None, turns_used: 0 }
    }

    /// Creates the report of a finished run. A failure has `last_text`, the agent's last text, as its output.
    pub(super) fn from_outcome(outcome: Outcome, last_text: String, turns_used: u64) -> Self {
        let Some(reason) = failure(&outcome) else {
            let status = SubagentStatus::Completed;
            let Outcome { text, warning, .. } = outcome;
            return Self { status, output: text, reason: None, warning, turns_used };
        };
        Self::failed(reason, last_text, turns_used)
    }

    pub(super) fn failed(reason: impl Into<String>, last_text: String, turns_used: u64) -> Self {
        let (status, reason) = (SubagentStatus::Failed, Some(reason.into()));
        Self { status, output: last_text, reason, warning: None, turns_used }
    }

    /// Returns the input that reports the end to the parent.
    pub(super) fn as_end_of(&self, agent: &str) -> InputKind {
        InputKind::ChildEnded {
            agent: agent.to_owned(),
            status: self.status,
            turns_used: self.turns_used,
            output: self.output.clone(),
            reason: self.reason.clone(),
            warning: self.warning.clone(),
        }
    }

    /// Returns the specification's result record, for the embedding application.
    pub(super) fn result(&self) -> SubagentResult {
        SubagentResult {
            output: self.output.clone(),
            success: self.status == SubagentStatus::Completed,
            turns_used: self.turns_used,
            reason: self.reason.clone(),
            warning: self.warning.clone(),
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
        if let Some(warning) = &self.warning {
            text.push_str(&format!("warning: {warning}\n"));
        }
        text.push_str("output:\n");
        text.push_str(self.text());
        text
    }

    /// Returns the output, or a placeholder for a blank one, with the warning before it.
    pub(super) fn text_with_warning(&self) -> String {
        match &self.warning {
            Some(warning) => format!("Warning: {warning}.\n{}", self.text()),
            None => self.text().to_owned(),
        }
    }

    /// Returns the output, or a placeholder for a blank one.
    pub(super) fn text(&self) -> &str {
        if self.output.trim().is_empty() { "(no text)" } else { &self.output }
    }
}

/// Returns the reason why a run failed; `None` if it was answered.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_reaches_the_parent() {
        let mut outcome = Outcome::new(OutcomeStatus::Completed);
        let plain = Report::from_outcome(outcome.clone(), String::new(), 2);
        assert_eq!(plain.for_model(), "success: true\nturns_used: 2\noutput:\n(no text)");
        assert_eq!(plain.text_with_warning(), "(no text)");
        outcome.warning = Some("the final response is empty".to_owned());
        let warned = Report::from_outcome(outcome, String::new(), 2);
        assert_eq!(
            warned.for_model(),
            "success: true\nturns_used: 2\nwarning: the final response is empty\noutput:\n(no text)"
        );
        assert_eq!(warned.text_with_warning(), "Warning: the final response is empty.\n(no text)");
        assert_eq!(warned.result().warning.as_deref(), Some("the final response is empty"));
        let InputKind::ChildEnded { warning, .. } = warned.as_end_of("scout") else {
            panic!("another input")
        };
        assert_eq!(warning.as_deref(), Some("the final response is empty"));
    }
}
