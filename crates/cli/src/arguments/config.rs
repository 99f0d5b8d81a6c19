//! Flags and subcommands about the configuration.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::ListFormat;

/// Treatment of the configuration by a command that uses it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Args)]
pub(crate) struct ConfigurationArgs {
    /// Ignore invalid parts of the configuration, and report them as notices
    #[arg(long)]
    pub(crate) ignore_config_errors: bool,
}

/// `pintle config`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    pub(crate) command: Option<ConfigCommand>,
    #[command(flatten)]
    pub(crate) list: ListConfigArgs,
}

/// Subcommands of `pintle config`.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// List the value of each key in this directory with its source (default)
    List(ListConfigArgs),
    /// Edit the configuration file with $VISUAL or $EDITOR, then validate it
    Edit(EditConfigArgs),
    /// Print the paths of the configuration files
    Path,
    /// Print the JSON Schema of the configuration files
    Schema,
}

/// `pintle config list`.
#[derive(Debug, Args)]
pub(crate) struct ListConfigArgs {
    /// Profile of the configuration to apply
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: ListFormat,
    #[command(flatten)]
    pub(crate) configuration: ConfigurationArgs,
}

/// `pintle config edit`.
#[derive(Debug, Args)]
pub(crate) struct EditConfigArgs {
    /// Edit the project's file instead of your own
    #[arg(long)]
    pub(crate) project: bool,
}
