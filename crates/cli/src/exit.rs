//! Exit codes, which scripts rely on.

use std::process::ExitCode;

use pintle_agent::{Outcome, OutcomeStatus};
use pintle_llm::ErrorKind;

/// Table of exit codes shown by `--help`.
pub(crate) const TABLE: &str = "\
Exit codes:
  0    success, including a run that ends with a question from the model
  1    failure, or the model refused
  2    usage error: an invalid command line, or a file that it names
  3    limit reached: turns, tool rounds, tokens, cost, time, context window or response length
  4    no API key, or a key that the provider rejects
  5    success, but a call was denied because it needed approval and no terminal was available
  6    no final response matched the schema of --output-schema
  130  interrupted: Ctrl-C, SIGTERM, or standard output was closed";

/// Exit status of the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Success.
    Done,
    /// Failure.
    Failed,
    /// The command line, or a file that it names, is invalid.
    Usage,
    /// A limit stopped the run.
    LimitReached,
    /// No API key, or one that the provider rejects.
    Authentication,
    /// A call needed approval and no terminal was available.
    Denied,
    /// No answer matched the schema that it had to match.
    Unmatched,
    /// A signal or a closed pipe stopped the command.
    Interrupted,
}

impl Exit {
    /// Returns the process exit code.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::LimitReached => 3,
            Self::Authentication => 4,
            Self::Denied => 5,
            Self::Unmatched => 6,
            Self::Interrupted => 130,
        }
    }

    /// Returns the name used in JSON output.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Usage => "usage",
            Self::LimitReached => "limit_reached",
            Self::Authentication => "authentication",
            Self::Denied => "denied",
            Self::Unmatched => "unmatched",
            Self::Interrupted => "interrupted",
        }
    }

    /// Returns the exit status for the outcome of a run.
    pub(crate) fn from_outcome(outcome: &Outcome) -> Self {
        match outcome.status {
            OutcomeStatus::Completed | OutcomeStatus::AwaitingInput => Self::Done,
            OutcomeStatus::RoundLimit
            | OutcomeStatus::TurnLimit
            | OutcomeStatus::Budget
            | OutcomeStatus::ContextFull
            | OutcomeStatus::OutputLimit => Self::LimitReached,
            OutcomeStatus::Interrupted | OutcomeStatus::Aborted => Self::Interrupted,
            OutcomeStatus::Failed => {
                outcome.error.as_ref().map_or(Self::Failed, |error| Self::from_error(error.kind))
            }
            // Treat a status unknown to this version as a failure.
            OutcomeStatus::Refused | _ => Self::Failed,
        }
    }

    /// Returns the exit status for a failed model call.
    pub(crate) fn from_error(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::Authentication | ErrorKind::AccessDenied => Self::Authentication,
            ErrorKind::Abort => Self::Interrupted,
            ErrorKind::ContextLength => Self::LimitReached,
            ErrorKind::NotFound
            | ErrorKind::InvalidRequest
            | ErrorKind::RateLimit
            | ErrorKind::Server
            | ErrorKind::ContentFilter
            | ErrorKind::QuotaExceeded
            | ErrorKind::RequestTimeout
            | ErrorKind::Network
            | ErrorKind::Stream
            | ErrorKind::InvalidToolCall
            | ErrorKind::UnsupportedToolChoice
            | ErrorKind::NoObjectGenerated
            | ErrorKind::Configuration
            | _ => Self::Failed,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        exit.code().into()
    }
}

#[cfg(test)]
mod tests {
    use pintle_llm::Error;

    use super::*;

    #[test]
    fn every_outcome_has_an_exit_code() {
        let cases = [
            (OutcomeStatus::Completed, 0),
            (OutcomeStatus::AwaitingInput, 0),
            (OutcomeStatus::Refused, 1),
            (OutcomeStatus::RoundLimit, 3),
            (OutcomeStatus::TurnLimit, 3),
            (OutcomeStatus::Budget, 3),
            (OutcomeStatus::ContextFull, 3),
            (OutcomeStatus::OutputLimit, 3),
            (OutcomeStatus::Interrupted, 130),
            (OutcomeStatus::Aborted, 130),
            (OutcomeStatus::Failed, 1),
        ];
        for (status, code) in cases {
            assert_eq!(Exit::from_outcome(&Outcome::new(status)).code(), code, "{status:?}");
        }
    }

    #[test]
    fn failed_run_exits_by_error_kind() {
        let cases = [
            (ErrorKind::Authentication, 4),
            (ErrorKind::AccessDenied, 4),
            (ErrorKind::Abort, 130),
            (ErrorKind::ContextLength, 3),
            (ErrorKind::Network, 1),
            (ErrorKind::InvalidRequest, 1),
            (ErrorKind::Configuration, 1),
        ];
        for (kind, code) in cases {
            let mut outcome = Outcome::new(OutcomeStatus::Failed);
            outcome.error = Some(Error::new(kind, "x").info().clone());
            assert_eq!(Exit::from_outcome(&outcome).code(), code, "{kind:?}");
        }
    }

    #[test]
    fn help_table_lists_every_code() {
        let exits = [
            Exit::Done,
            Exit::Failed,
            Exit::Usage,
            Exit::LimitReached,
            Exit::Authentication,
            Exit::Denied,
            Exit::Interrupted,
        ];
        for exit in exits {
            let line = format!("\n  {:<5}", exit.code());
            assert!(TABLE.contains(&line), "{exit:?}");
        }
    }
}
