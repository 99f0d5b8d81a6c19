//! Stop reasons of the protocol for the outcomes of turns. Pure functions.

use pintle_agent::{Outcome, OutcomeStatus};
use serde_json::json;

use crate::rpc::RpcError;
use crate::wire::StopReason;

/// Returns the stop reason of a run.
///
/// # Errors
///
/// The error of a failed run.
pub(crate) fn reason(outcome: &Outcome) -> Result<StopReason, RpcError> {
    match outcome.status {
        // The question is shown; the next prompt answers it.
        OutcomeStatus::Completed | OutcomeStatus::AwaitingInput => Ok(StopReason::EndTurn),
        OutcomeStatus::Refused => Ok(StopReason::Refusal),
        OutcomeStatus::RoundLimit | OutcomeStatus::TurnLimit => Ok(StopReason::MaxTurnRequests),
        OutcomeStatus::Budget | OutcomeStatus::ContextFull | OutcomeStatus::OutputLimit => {
            Ok(StopReason::MaxTokens)
        }
        OutcomeStatus::Interrupted | OutcomeStatus::Aborted => Ok(StopReason::Cancelled),
        OutcomeStatus::Failed | _ => Err(failure(outcome)),
    }
}

fn failure(outcome: &Outcome) -> RpcError {
    let Some(error) = &outcome.error else { return RpcError::new(RpcError::INTERNAL, "the turn failed") };
    let message = format!("the turn failed: {}", error.message);
    RpcError::new(RpcError::INTERNAL, message).with_data(json!({"reason": "turn_failed", "kind": error.kind}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_has_a_stop_reason_or_is_an_error() {
        let cases = [
            (OutcomeStatus::Completed, Some(StopReason::EndTurn)),
            (OutcomeStatus::AwaitingInput, Some(StopReason::EndTurn)),
            (OutcomeStatus::Refused, Some(StopReason::Refusal)),
            (OutcomeStatus::RoundLimit, Some(StopReason::MaxTurnRequests)),
            (OutcomeStatus::TurnLimit, Some(StopReason::MaxTurnRequests)),
            (OutcomeStatus::Budget, Some(StopReason::MaxTokens)),
            (OutcomeStatus::ContextFull, Some(StopReason::MaxTokens)),
            (OutcomeStatus::OutputLimit, Some(StopReason::MaxTokens)),
            (OutcomeStatus::Interrupted, Some(StopReason::Cancelled)),
            (OutcomeStatus::Aborted, Some(StopReason::Cancelled)),
            (OutcomeStatus::Failed, None),
        ];
        for (status, expected) in cases {
            assert_eq!(reason(&Outcome::new(status)).ok(), expected, "{status:?}");
        }
    }
}
