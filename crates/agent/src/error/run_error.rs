//! Errors of runs.

use pintle_llm::{Error, ErrorKind, UnmatchedAnswer};

use super::SessionError;
use crate::protocol::{Outcome, OutcomeStatus, Rejection};

/// Reason why a run failed or did not start.
///
/// ```
/// # use pintle_agent::{Outcome, RunError, Session};
/// # async fn run(session: Session) -> Result<Outcome, RunError> {
/// match session.submit("Fix the tests.").await {
///     Err(RunError::Failed { source, outcome }) if source.is_retryable() => {
///         eprintln!("failed after {} model calls, trying again: {source}", outcome.model_calls);
///         session.submit("Continue.").await
///     }
///     ended => ended,
/// }
/// # }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// Another run is in progress. Steer it, queue a follow-up or wait for its end.
    #[error("the session is busy with another run")]
    Busy {
        /// Outcome as events and replays report it.
        outcome: Box<Outcome>,
    },
    /// The session was closed or dropped, before the input arrived or during the run.
    #[error("the session is closed")]
    Closed {
        /// Text and usage up to the end; `None` if the session ended without reporting them.
        outcome: Option<Box<Outcome>>,
    },
    /// The session rejected the command that submits the input, for instance because its queue is full.
    #[error("the session rejected the input")]
    Rejected(#[source] SessionError),
    /// The input is empty or has the path of an image, or a hook refused it.
    #[error("the input was refused")]
    Refused {
        /// The reason.
        source: Error,
        /// Outcome as events and replays report it.
        outcome: Box<Outcome>,
    },
    /// The run failed, for instance because the provider cannot be reached. The session stays usable unless its record or
    /// its environment is lost.
    #[error("the run failed")]
    Failed {
        /// The error that ended the run.
        source: Error,
        /// Text and usage up to the failure.
        outcome: Box<Outcome>,
    },
    /// A [typed run](crate::Session::run_typed) ended without an answer: at a limit, by an interrupt or with a refusal.
    #[error("the run ended without an answer: {}", describe(.outcome))]
    NoAnswer {
        /// Outcome of the run.
        outcome: Box<Outcome>,
    },
    /// The answer of a [typed run](crate::Session::run_typed) does not match the type, after all repairs.
    #[error("the answer does not match the type")]
    Unmatched {
        /// The mismatch of the last answer.
        source: UnmatchedAnswer,
        /// Outcome of the run, with the last answer as its text.
        outcome: Box<Outcome>,
    },
    /// The type of a [typed run](crate::Session::run_typed) has no usable schema.
    #[error("the type of the answer has no usable schema")]
    Schema(#[source] Error),
}

impl RunError {
    /// Returns the result of a run with this outcome.
    pub(crate) fn check(outcome: Outcome) -> Result<Outcome, Self> {
        match (outcome.rejection, outcome.status) {
            (Some(Rejection::Busy), _) => Err(Self::Busy { outcome: Box::new(outcome) }),
            (Some(Rejection::Closed), _) | (None, OutcomeStatus::Aborted) => {
                Err(Self::Closed { outcome: Some(Box::new(outcome)) })
            }
            (Some(Rejection::Input), _) => {
                Err(Self::Refused { source: cause(&outcome), outcome: Box::new(outcome) })
            }
            (None, OutcomeStatus::Failed) => {
                Err(Self::Failed { source: cause(&outcome), outcome: Box::new(outcome) })
            }
            (None, _) => Ok(outcome),
        }
    }

    /// Returns the outcome of the run with its text and usage up to the error, as events and replays report it; `None` if the
    /// session ended without reporting it.
    #[must_use]
    pub fn outcome(&self) -> Option<&Outcome> {
        match self {
            Self::Busy { outcome }
            | Self::Refused { outcome, .. }
            | Self::Failed { outcome, .. }
            | Self::NoAnswer { outcome }
            | Self::Unmatched { outcome, .. } => Some(outcome),
            Self::Closed { outcome } => outcome.as_deref(),
            Self::Rejected(_) | Self::Schema(_) => None,
        }
    }

    /// Returns the [outcome](Self::outcome), for a program that reports failed runs like others.
    ///
    /// ```
    /// # use pintle_agent::{RunError, Session};
    /// # async fn report(session: Session) -> Result<(), RunError> {
    /// let outcome = session.submit("Fix the tests.").await.or_else(RunError::into_outcome)?;
    /// println!("{:?} after {} model calls", outcome.status, outcome.model_calls);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// This error, if it has no outcome.
    pub fn into_outcome(self) -> Result<Outcome, Self> {
        match self {
            Self::Busy { outcome }
            | Self::Closed { outcome: Some(outcome) }
            | Self::Refused { outcome, .. }
            | Self::Failed { outcome, .. }
            | Self::NoAnswer { outcome }
            | Self::Unmatched { outcome, .. } => Ok(*outcome),
            Self::Closed { outcome: None } | Self::Rejected(_) | Self::Schema(_) => Err(self),
        }
    }
}

impl From<SessionError> for RunError {
    fn from(error: SessionError) -> Self {
        if let SessionError::Closed = error {
            return Self::Closed { outcome: None };
        }
        Self::Rejected(error)
    }
}

/// Returns the error that ended a run. Records of earlier versions may have none.
fn cause(outcome: &Outcome) -> Error {
    let unknown = || Error::new(ErrorKind::Abort, "the cause was not recorded");
    outcome.error.clone().map_or_else(unknown, Error::from)
}

fn describe(outcome: &Outcome) -> &'static str {
    #[expect(clippy::wildcard_enum_match_arm, reason = "the others are answers or errors")]
    match outcome.status {
        OutcomeStatus::Refused => "the model refused",
        OutcomeStatus::RoundLimit => "the limit of tool rounds is reached",
        OutcomeStatus::TurnLimit => "the limit of turns is reached",
        OutcomeStatus::Budget => "the budget is exhausted",
        OutcomeStatus::ContextFull => "the context window is full",
        OutcomeStatus::OutputLimit => "the output limit cut off the response",
        OutcomeStatus::Interrupted => "it was interrupted",
        _ => "it ended early",
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;

    fn ended(status: OutcomeStatus, rejection: Option<Rejection>) -> Outcome {
        let mut outcome = Outcome::new(status);
        outcome.rejection = rejection;
        if status == OutcomeStatus::Failed {
            outcome.error = Some(Error::new(ErrorKind::Network, "no connection").info().clone());
        }
        outcome
    }

    #[test]
    fn only_failures_are_errors() {
        let outcomes = [
            OutcomeStatus::Completed,
            OutcomeStatus::AwaitingInput,
            OutcomeStatus::Refused,
            OutcomeStatus::RoundLimit,
            OutcomeStatus::TurnLimit,
            OutcomeStatus::Budget,
            OutcomeStatus::ContextFull,
            OutcomeStatus::OutputLimit,
            OutcomeStatus::Interrupted,
        ];
        for status in outcomes {
            assert_eq!(RunError::check(ended(status, None)).unwrap().status, status);
        }
        let failed = OutcomeStatus::Failed;
        let cases = [
            (ended(failed, None), "the run failed", true),
            (ended(OutcomeStatus::Aborted, None), "the session is closed", false),
            (ended(failed, Some(Rejection::Busy)), "the session is busy with another run", false),
            (ended(failed, Some(Rejection::Closed)), "the session is closed", false),
            (ended(failed, Some(Rejection::Input)), "the input was refused", true),
        ];
        for (outcome, message, has_source) in cases {
            let error = RunError::check(outcome.clone()).unwrap_err();
            assert_eq!((error.to_string().as_str(), error.source().is_some()), (message, has_source));
            assert_eq!(error.outcome(), Some(&outcome), "{message}");
            assert_eq!(error.into_outcome().unwrap(), outcome, "{message}");
        }
    }

    #[test]
    fn a_failure_without_a_recorded_error_has_a_source() {
        let error = RunError::check(Outcome::new(OutcomeStatus::Failed)).unwrap_err();
        assert_eq!(error.source().unwrap().to_string(), "cancelled: the cause was not recorded");
    }

    #[test]
    fn errors_of_the_session_have_no_outcome() {
        let closed = RunError::from(SessionError::Closed);
        assert!(matches!(closed, RunError::Closed { outcome: None }));
        assert!(matches!(closed.into_outcome(), Err(RunError::Closed { .. })));
        let full = RunError::from(SessionError::Full(7));
        assert_eq!(
            full.source().unwrap().to_string(),
            "the session has 7 pending commands and accepts no more"
        );
        assert!(full.outcome().is_none());
    }

    #[test]
    fn a_run_without_an_answer_names_its_end() {
        let error = RunError::NoAnswer { outcome: Box::new(Outcome::new(OutcomeStatus::RoundLimit)) };
        assert_eq!(error.to_string(), "the run ended without an answer: the limit of tool rounds is reached");
    }
}
