//! Why a turn ended, in the words of the protocol. Pure functions.

use pintle_agent::{Outcome, OutcomeStatus};
use pintle_llm::Finish;
use serde_json::json;

use crate::rpc::RpcError;
use crate::wire::StopReason;

/// Returns the stop reason of a run. `finish` is why the model stopped last.
///
/// # Errors
///
/// The error that ended the run, if one did.
pub(crate) fn reason(outcome: &Outcome, finish: Option<Finish>) -> Result<StopReason, RpcError> {
    match outcome.status {
        OutcomeStatus::Completed if finish == Some(Finish::Length) => Ok(StopReason::MaxTokens),
        // The question is shown; the next prompt answers it.
        OutcomeStatus::Completed | OutcomeStatus::AwaitingInput => Ok(StopReason::EndTurn),
        OutcomeStatus::Refused => Ok(StopReason::Refusal),
        OutcomeStatus::RoundLimit | OutcomeStatus::TurnLimit => Ok(StopReason::MaxTurnRequests),
        OutcomeStatus::Budget | OutcomeStatus::ContextFull => Ok(StopReason::MaxTokens),
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
            (OutcomeStatus::Completed, Some(Finish::Stop), Some(StopReason::EndTurn)),
            (OutcomeStatus::Completed, Some(Finish::Length), Some(StopReason::MaxTokens)),
            (OutcomeStatus::AwaitingInput, Some(Finish::ToolCalls), Some(StopReason::EndTurn)),
            (OutcomeStatus::Refused, Some(Finish::ContentFilter), Some(StopReason::Refusal)),
            (OutcomeStatus::RoundLimit, None, Some(StopReason::MaxTurnRequests)),
            (OutcomeStatus::TurnLimit, None, Some(StopReason::MaxTurnRequests)),
            (OutcomeStatus::Budget, None, Some(StopReason::MaxTokens)),
            (OutcomeStatus::ContextFull, None, Some(StopReason::MaxTokens)),
            (OutcomeStatus::Interrupted, None, Some(StopReason::Cancelled)),
            (OutcomeStatus::Aborted, None, Some(StopReason::Cancelled)),
            (OutcomeStatus::Failed, None, None),
        ];
        for (status, finish, expected) in cases {
            assert_eq!(reason(&Outcome::new(status), finish).ok(), expected, "{status:?}");
        }
    }
}
