//! The exit codes, which scripts rely on.

use std::process::ExitCode;

use pintle_agent::{Outcome, OutcomeStatus};
use pintle_llm::ErrorKind;

/// The table that `--help` shows.
pub(crate) const TABLE: &str = "\
Exit codes:
  0    done; also when the model asks something back
  1    failed, or refused by the model
  2    the command line is wrong, or a file that it names
  3    a limit was reached: turns, tool rounds, tokens, cost, time, the context window, or the length of an answer
  4    no key, or a key that the provider does not accept
  5    done, but a call was denied because it needed approval and nobody could be asked
  130  interrupted: Ctrl-C, SIGTERM, or nobody reads the output any more";

/// How the command ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// What was asked for is done.
    Done,
    /// It could not be done.
    Failed,
    /// The command line, or a file that it names, is wrong.
    Usage,
    /// A limit stopped it.
    LimitReached,
    /// There is no key, or the provider does not accept it.
    Authentication,
    /// Something needed approval, and nobody could be asked.
    Denied,
    /// A signal, or a closed pipe, stopped it.
    Interrupted,
}

impl Exit {
    /// The number for the shell.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::LimitReached => 3,
            Self::Authentication => 4,
            Self::Denied => 5,
            Self::Interrupted => 130,
        }
    }

    /// Its name for programs.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Usage => "usage",
            Self::LimitReached => "limit_reached",
            Self::Authentication => "authentication",
            Self::Denied => "denied",
            Self::Interrupted => "interrupted",
        }
    }

    /// How a run of the agent ends the command.
    pub(crate) fn of_outcome(outcome: &Outcome) -> Self {
        match outcome.status {
            OutcomeStatus::Completed | OutcomeStatus::AwaitingInput => Self::Done,
            OutcomeStatus::RoundLimit
            | OutcomeStatus::TurnLimit
            | OutcomeStatus::Budget
            | OutcomeStatus::ContextFull => Self::LimitReached,
            OutcomeStatus::Interrupted | OutcomeStatus::Aborted => Self::Interrupted,
            OutcomeStatus::Failed => {
                outcome.error.as_ref().map_or(Self::Failed, |error| Self::of_error(error.kind))
            }
            // A status that this version does not know is no success.
            OutcomeStatus::Refused | _ => Self::Failed,
        }
    }

    /// How a failed call of a model ends the command.
    pub(crate) fn of_error(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::Authentication | ErrorKind::AccessDenied => Self::Authentication,
            ErrorKind::Abort => Self::Interrupted,
            ErrorKind::NotFound
            | ErrorKind::InvalidRequest
            | ErrorKind::RateLimit
            | ErrorKind::Server
            | ErrorKind::ContentFilter
            | ErrorKind::ContextLength
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
    fn every_outcome_has_its_code() {
        let rows = [
            (OutcomeStatus::Completed, 0),
            (OutcomeStatus::AwaitingInput, 0),
            (OutcomeStatus::Refused, 1),
            (OutcomeStatus::RoundLimit, 3),
            (OutcomeStatus::TurnLimit, 3),
            (OutcomeStatus::Budget, 3),
            (OutcomeStatus::ContextFull, 3),
            (OutcomeStatus::Interrupted, 130),
            (OutcomeStatus::Aborted, 130),
            (OutcomeStatus::Failed, 1),
        ];
        for (status, code) in rows {
            assert_eq!(Exit::of_outcome(&Outcome::new(status)).code(), code, "{status:?}");
        }
    }

    #[test]
    fn the_kind_of_error_decides_over_a_failed_run() {
        let rows = [
            (ErrorKind::Authentication, 4),
            (ErrorKind::AccessDenied, 4),
            (ErrorKind::Abort, 130),
            (ErrorKind::Network, 1),
            (ErrorKind::InvalidRequest, 1),
            (ErrorKind::Configuration, 1),
        ];
        for (kind, code) in rows {
            let mut outcome = Outcome::new(OutcomeStatus::Failed);
            outcome.error = Some(Error::new(kind, "x").info().clone());
            assert_eq!(Exit::of_outcome(&outcome).code(), code, "{kind:?}");
        }
    }

    #[test]
    fn the_table_names_every_code() {
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
