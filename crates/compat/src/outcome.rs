//! Outcomes of runs as text.

use pintle_agent::{Outcome, OutcomeStatus};

/// Returns the reason why a run did not succeed.
pub(crate) fn failure_message(outcome: &Outcome) -> String {
    if let Some(error) = &outcome.error {
        return error.message.clone();
    }
    let message = match outcome.status {
        OutcomeStatus::Completed => "the run completed",
        OutcomeStatus::AwaitingInput => "the model asked a question",
        OutcomeStatus::Refused => "the model refused",
        OutcomeStatus::RoundLimit => "the limit on tool rounds was reached",
        OutcomeStatus::TurnLimit => "the limit on turns of the session was reached",
        OutcomeStatus::Budget => "a spending limit was reached",
        OutcomeStatus::ContextFull => "the conversation does not fit the model's context window",
        OutcomeStatus::OutputLimit => "the response was cut off by the output limit",
        OutcomeStatus::Interrupted => "the run was interrupted",
        OutcomeStatus::Aborted => "the run was aborted",
        OutcomeStatus::Failed => "the run failed",
        _ => "the run did not complete",
    };
    message.to_owned()
}
