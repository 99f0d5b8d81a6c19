//! `pintle approvals`.

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand, ValueEnum};

use super::ListFormat;

/// `pintle approvals`.
#[derive(Debug, Args)]
pub(crate) struct ApprovalsArgs {
    #[command(subcommand)]
    pub(crate) command: ApprovalsCommand,
    /// Output format
    #[arg(long, global = true, value_enum, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: ListFormat,
}

/// Subcommands of `pintle approvals`.
#[derive(Debug, Subcommand)]
pub(crate) enum ApprovalsCommand {
    /// List the pending calls of all sessions
    List,
    /// Show a pending call with all its arguments
    Show(ApprovalArg),
    /// Approve or deny a pending call of any session, also one that another process runs
    Decide(DecideArgs),
}

/// Call that waits for a decision.
#[derive(Debug, Args)]
pub(crate) struct ApprovalArg {
    /// Id of the session, or a unique prefix
    #[arg(value_name = "SESSION", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) session: String,
    /// Id of the call [default: the only pending one]
    #[arg(value_name = "CALL", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) call: Option<String>,
}

/// `pintle approvals decide`.
#[derive(Debug, Args)]
pub(crate) struct DecideArgs {
    /// Decision
    #[arg(value_enum, value_name = "DECISION")]
    pub(crate) decision: DecisionName,
    #[command(flatten)]
    pub(crate) approval: ApprovalArg,
    /// Reason of a denial, for the model
    #[arg(long, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) reason: Option<String>,
    /// Run the call with these arguments, a JSON object; they are checked like the arguments of a new call
    #[arg(long, value_name = "JSON", conflicts_with = "reason", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) arguments: Option<String>,
    /// Run a command that asks to leave the sandbox inside it
    #[arg(long, conflicts_with_all = ["reason", "arguments"])]
    pub(crate) inside: bool,
}

/// Values of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DecisionName {
    /// Run the call once
    #[value(alias = "allow")]
    Approve,
    /// Do not run the call
    Deny,
}
