//! `pintle tokens`.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand, ValueEnum};
use pintle_host::timeout;
use pintle_server::TokenScope;

use super::ListFormat;

/// `pintle tokens`.
#[derive(Debug, Args)]
pub(crate) struct TokensArgs {
    #[command(subcommand)]
    pub(crate) command: TokensCommand,
    /// Token file [default: tokens.json in the configuration directory]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) tokens: Option<PathBuf>,
}

/// Subcommands of `pintle tokens`.
#[derive(Debug, Subcommand)]
pub(crate) enum TokensCommand {
    /// Create a token and show it once
    Add(AddTokenArgs),
    /// List tokens by name
    List {
        /// Output format
        #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
        output: ListFormat,
    },
    /// Revoke tokens, also for a running server
    Revoke {
        /// Names of the tokens
        #[arg(value_name = "NAME", required = true, value_parser = NonEmptyStringValueParser::new())]
        names: Vec<String>,
    },
}

/// `pintle tokens add`.
#[derive(Debug, Args)]
pub(crate) struct AddTokenArgs {
    /// Name of the user; messages and decisions are recorded under it
    #[arg(value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) name: String,
    /// Permissions of the token
    #[arg(long, value_enum, value_name = "SCOPE", value_delimiter = ',', default_value = "read")]
    pub(crate) scope: Vec<ScopeName>,
    /// Time until the token expires, such as 12h or 30d [default: never]
    #[arg(long, value_name = "AGE", value_parser = timeout::parse_age)]
    pub(crate) expires: Option<Duration>,
    /// Tenant whose sessions the token gives access to; other sessions are invisible
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) tenant: Option<String>,
}

/// Values of `--scope`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScopeName {
    /// List and read sessions
    Read,
    /// Create sessions, send messages, and stop work
    Run,
    /// Approve or deny calls
    Approve,
    /// Delete sessions and read measurements
    Admin,
}

impl From<ScopeName> for TokenScope {
    fn from(name: ScopeName) -> Self {
        match name {
            ScopeName::Read => Self::Read,
            ScopeName::Run => Self::Run,
            ScopeName::Approve => Self::Approve,
            ScopeName::Admin => Self::Admin,
        }
    }
}
