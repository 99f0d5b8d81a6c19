//! Exit codes, which scripts rely on.

pub(crate) mod command_failure;

use std::process::ExitCode;

use pintle_host::failure::FailureKind;
use pintle_tui::interrupt::EXIT_CODE as INTERRUPTED;

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
            Self::Interrupted => INTERRUPTED,
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
}

impl From<FailureKind> for Exit {
    fn from(kind: FailureKind) -> Self {
        match kind {
            FailureKind::Usage => Self::Usage,
            FailureKind::Credentials => Self::Authentication,
            FailureKind::LimitReached => Self::LimitReached,
            FailureKind::Denied => Self::Denied,
            FailureKind::UnmatchedAnswer => Self::Unmatched,
            FailureKind::Interrupted => Self::Interrupted,
            FailureKind::Other => Self::Failed,
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
    use super::*;

    #[test]
    fn every_failure_kind_has_an_exit_code_and_a_name() {
        let table = [
            (FailureKind::Other, 1, "failed"),
            (FailureKind::Usage, 2, "usage"),
            (FailureKind::LimitReached, 3, "limit_reached"),
            (FailureKind::Credentials, 4, "authentication"),
            (FailureKind::Denied, 5, "denied"),
            (FailureKind::UnmatchedAnswer, 6, "unmatched"),
            (FailureKind::Interrupted, 130, "interrupted"),
        ];
        // A new kind does not compile without a row.
        let row = |kind| match kind {
            FailureKind::Other => 0,
            FailureKind::Usage => 1,
            FailureKind::LimitReached => 2,
            FailureKind::Credentials => 3,
            FailureKind::Denied => 4,
            FailureKind::UnmatchedAnswer => 5,
            FailureKind::Interrupted => 6,
        };
        for (index, (kind, code, name)) in table.into_iter().enumerate() {
            assert_eq!(row(kind), index, "{kind:?}");
            let exit = Exit::from(kind);
            assert_eq!((exit.code(), exit.name()), (code, name), "{kind:?}");
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
            Exit::Unmatched,
            Exit::Interrupted,
        ];
        for exit in exits {
            let line = format!("\n  {:<5}", exit.code());
            assert!(TABLE.contains(&line), "{exit:?}");
        }
    }
}
