//! `pintle demo`.

use std::path::PathBuf;

use clap::Args;
use pintle_host::provider::Provider;

use super::OutputFormat;
use super::parsers::named;

/// `pintle demo`.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Wire dialect, which also selects profile, prompt and tools
    #[arg(long, value_parser = named::<Provider>(), value_name = "NAME", default_value = "openai")]
    pub(crate) dialect: Provider,
    /// New or empty directory for the example project [default: a temporary directory]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Start a conversation with the scripted model instead, to try the terminal without an API key
    #[arg(long, conflicts_with_all = ["output", "dialect"])]
    pub(crate) interactive: bool,
    /// Run a task with two candidates until independent checks pass, with the scripted model
    #[cfg(feature = "task")]
    #[arg(long, conflicts_with_all = ["interactive", "dialect"])]
    pub(crate) task: bool,
    /// Output format
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: OutputFormat,
}
