//! Subcommands for the first steps: keys, checks and manual pages.

use std::path::PathBuf;

use clap::Args;
use pintle_host::provider::Provider;

use super::parsers::named;
use super::{ListFormat, ReportFormat};

/// `pintle login`.
#[derive(Debug, Args)]
#[command(after_help = "\
Keys are stored in credentials.toml in the configuration directory, with mode 0600. An environment variable takes \
precedence over them, and so does a command in config.toml:

  [key_command]
  anthropic = [\"pass\", \"show\", \"anthropic\"]

Vendor subscriptions, such as ChatGPT or Claude, are not supported; use an API key.")]
pub(crate) struct LoginArgs {
    /// Provider of the key [default: prompts for it]
    #[arg(value_parser = named::<Provider>(), value_name = "PROVIDER", required_if_eq("stdin", "true"))]
    pub(crate) provider: Option<Provider>,
    /// Read the key from standard input instead of the terminal
    #[arg(long)]
    pub(crate) stdin: bool,
    /// List the providers with the source of each key, without the keys
    #[arg(long, conflicts_with_all = ["provider", "stdin"])]
    pub(crate) list: bool,
    /// Output format of --list
    #[arg(long, requires = "list", value_enum, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: ListFormat,
}

/// `pintle logout`.
#[derive(Debug, Args)]
#[command(after_help = "Vendor subscriptions are not supported; use an API key.")]
pub(crate) struct LogoutArgs {
    /// Provider of the key
    #[arg(value_parser = named::<Provider>(), value_name = "PROVIDER")]
    pub(crate) provider: Provider,
}

/// `pintle man`.
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Subcommand, such as `sessions rewind` [default: the command itself]
    #[arg(value_name = "SUBCOMMAND")]
    pub(crate) subcommand: Vec<String>,
    /// Write the pages of the command and all its subcommands to this directory
    #[arg(long, value_name = "DIR", conflicts_with = "subcommand")]
    pub(crate) dir: Option<PathBuf>,
}

/// `pintle doctor`.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Make no network connections
    #[arg(long)]
    pub(crate) offline: bool,
    /// Output format
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: ReportFormat,
}
