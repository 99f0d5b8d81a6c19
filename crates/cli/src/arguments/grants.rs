//! `pintle grants`.

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand};

use super::ListFormat;

/// `pintle grants`.
#[derive(Debug, Args)]
pub(crate) struct GrantsArgs {
    #[command(subcommand)]
    pub(crate) command: GrantsCommand,
}

/// Subcommands of `pintle grants`.
#[derive(Debug, Subcommand)]
pub(crate) enum GrantsCommand {
    /// Revoke grants: their sessions can neither call tools nor be resumed
    Revoke(RevokeArgs),
    /// List revoked grants
    List {
        /// Output format
        #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
        output: ListFormat,
    },
}

/// `pintle grants revoke`.
#[derive(Debug, Args)]
pub(crate) struct RevokeArgs {
    /// Id of the grant; the grants of its subagents are revoked as well
    #[arg(value_name = "ID", value_parser = NonEmptyStringValueParser::new(), required_unless_present = "before")]
    pub(crate) ids: Vec<String>,
    /// Revoke all grants with a lower `epoch`
    #[arg(long, value_name = "EPOCH")]
    pub(crate) before: Option<u64>,
}
