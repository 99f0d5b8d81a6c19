//! Consequences of an input.

use pintle_llm::{Finish, Response};
use pintle_tools::ToolErrorKind;
use serde::{Deserialize, Serialize};

use super::{Action, BudgetUsage, EventKind, OutcomeStatus};

/// Consequences of an input besides the fingerprint of a request, in a record: the decisions that another version needs
/// to reconstruct runs and conversations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct InputConsequences {
    /// Number of history entries to summarise, if the request was for a summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compaction: Option<u64>,
    /// Whether a summary replaced the beginning of the conversation.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub summarized: bool,
    /// Reservation for each attempt of the request, under a limit on tokens or cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reserved: Option<BudgetUsage>,
    /// Whether a model call was cancelled.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cancelled: bool,
    /// Ids of the calls that were answered as cancelled or not run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub answered: Vec<String>,
    /// Number of steering messages that were delivered.
    #[serde(skip_serializing_if = "is_zero")]
    pub steered: u64,
    /// Number of user inputs that started before a run ended: the submitted input, or a follow-up.
    #[serde(skip_serializing_if = "is_zero")]
    pub begun: u64,
    /// Ends of runs: of the current run, and possibly of a run that waited for this end and could not start.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ended: Vec<OutcomeStatus>,
    /// Whether a request was sent. The entry of the record contains its fingerprint.
    #[serde(skip)]
    pub(crate) request: bool,
    /// Whether the record contains all of this. Before version 4, it only contains whether a request was sent.
    #[serde(skip)]
    pub(crate) is_complete: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl InputConsequences {
    /// Returns the consequences that these actions contain.
    pub(crate) fn from_actions(actions: &[Action]) -> Self {
        let mut followed = Self { is_complete: true, ..Self::default() };
        let mut rests = false;
        for action in actions {
            if let Action::Emit(event) = action {
                if let EventKind::CompactionStart { through } = event.as_ref() {
                    followed.compaction = Some(*through);
                } else if let EventKind::CompactionEnd { .. } = event.as_ref() {
                    followed.summarized = true;
                } else if let EventKind::ProcessingEnd { .. } = event.as_ref() {
                    rests = true;
                } else if let EventKind::SteeringInjected { .. } = event.as_ref() {
                    followed.steered += 1;
                } else if let EventKind::ToolCallEnd {
                    call_id, error: Some(ToolErrorKind::Cancelled), ..
                } = event.as_ref()
                {
                    followed.answered.push(call_id.clone());
                } else if let EventKind::UserInput { .. } = event.as_ref()
                    && followed.ended.is_empty()
                {
                    followed.begun += 1;
                }
            } else if let Action::CallModel { reserved, .. } = action {
                followed.request = true;
                followed.reserved = reserved.as_deref().copied();
            } else if let Action::CancelModel = action {
                followed.cancelled = true;
            } else if let Action::Finish { outcome, .. } = action
                && rests
            {
                // The outcome of a rejected run has no such event before it.
                rests = false;
                followed.ended.push(outcome.status);
            }
        }
        followed
    }

    /// Returns the next recorded end of a run, after the ends in these actions.
    pub(crate) fn next_end(&self, actions: &[Action]) -> Option<OutcomeStatus> {
        let is_end = |action: &&Action| matches!(action, Action::Emit(event) if matches!(event.as_ref(), EventKind::ProcessingEnd { .. }));
        self.ended.get(actions.iter().filter(is_end).count()).copied()
    }

    /// Returns whether neither the run nor the input ended.
    pub(crate) fn asks_again(&self) -> bool {
        self.ended.is_empty() && self.begun == 0
    }

    /// Returns whether the model was asked to continue this response, which was cut off. A limit may have ended the run
    /// before the request.
    pub(crate) fn continues(&self, response: &Response) -> bool {
        let is_cut_off =
            response.finish_reason.reason == Finish::Length && !response.text().trim().is_empty();
        let is_before_a_request = match self.ended.first() {
            None => self.begun == 0,
            Some(status) => matches!(
                status,
                OutcomeStatus::RoundLimit
                    | OutcomeStatus::TurnLimit
                    | OutcomeStatus::Budget
                    | OutcomeStatus::ContextFull
                    | OutcomeStatus::Failed
            ),
        };
        self.is_complete && is_cut_off && is_before_a_request
    }

    /// Returns the part that a record contains.
    pub(crate) fn as_recorded(&self) -> Self {
        Self { request: false, is_complete: false, ..self.clone() }
    }

    /// Returns whether the part that a record contains is empty.
    pub(crate) fn is_nothing(&self) -> bool {
        self.as_recorded() == Self::default()
    }
}
