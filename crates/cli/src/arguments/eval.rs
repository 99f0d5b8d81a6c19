//! `pintle eval`.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand, ValueEnum};
use pintle_eval::AgentKind;
use pintle_host::timeout;

use super::{ConfigurationArgs, ModelArgs};

/// `pintle eval`.
#[derive(Debug, Args)]
pub(crate) struct EvalArgs {
    #[command(subcommand)]
    pub(crate) command: EvalCommand,
}

/// Subcommands of `pintle eval`.
#[derive(Debug, Subcommand)]
pub(crate) enum EvalCommand {
    /// Run an agent on a suite, or continue such a run
    Run(Box<RunEvalArgs>),
    /// Report the results of a run
    Report(ReportEvalArgs),
    /// Check that the tests of a suite fail before its gold changes and pass with them
    Verify(VerifyEvalArgs),
    /// Export a run for other programs
    Export(ExportEvalArgs),
}

/// Suite, and the tasks that are used.
#[derive(Debug, Args)]
pub(crate) struct SuiteArgs {
    /// Directory with suite.toml, such a file, or a directory of cases with case.toml
    #[arg(value_name = "SUITE")]
    pub(crate) suite: PathBuf,
    /// Only use tasks whose names match this glob
    #[arg(long, value_name = "GLOB", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) tasks: Option<String>,
    /// Number of concurrent tasks
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) jobs: u16,
    /// Run tests and agents with all permissions of the user
    #[arg(long)]
    pub(crate) no_sandbox: bool,
}

/// `pintle eval run`.
#[derive(Debug, Args)]
pub(crate) struct RunEvalArgs {
    #[command(flatten)]
    pub(crate) suite: SuiteArgs,
    /// Agent: session (`pintle run`), task (`pintle task run`), mini (a loop with one tool), or a command that gets the prompt and
    /// the directory as its last two arguments
    #[arg(long, value_name = "AGENT", default_value = "task", value_parser = agent)]
    pub(crate) agent: AgentKind,
    /// Number of attempts of each task
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) attempts: u32,
    /// Directory of the run, which other processes may share
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Stop an attempt after this time (e.g. 90s, 15m, 1h)
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = timeout::parse)]
    pub(crate) time_limit: Duration,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    #[command(flatten)]
    pub(crate) configuration: ConfigurationArgs,
    /// Flags for the agents session and task, after `--`
    #[arg(last = true, value_name = "FLAG")]
    pub(crate) flags: Vec<String>,
}

/// `pintle eval report`.
#[derive(Debug, Args)]
pub(crate) struct ReportEvalArgs {
    /// Directory of the run
    #[arg(value_name = "DIR")]
    pub(crate) run: PathBuf,
    /// Compare with the run in this directory, paired by task
    #[arg(long, value_name = "DIR")]
    pub(crate) against: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: EvalReportFormat,
}

/// Formats of `pintle eval report`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EvalReportFormat {
    /// Human-readable text
    Text,
    /// One JSON object
    Json,
    /// One self-contained HTML page
    Html,
}

/// `pintle eval verify`.
#[derive(Debug, Args)]
pub(crate) struct VerifyEvalArgs {
    #[command(flatten)]
    pub(crate) suite: SuiteArgs,
}

/// `pintle eval export`.
#[derive(Debug, Args)]
pub(crate) struct ExportEvalArgs {
    /// Directory of the run
    #[arg(value_name = "DIR")]
    pub(crate) run: PathBuf,
    /// Format
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) format: EvalExportFormat,
}

/// Formats of `pintle eval export`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EvalExportFormat {
    /// Predictions for SWE-bench, one JSON object per line
    Predictions,
    /// JUnit XML
    Junit,
}

fn agent(text: &str) -> Result<AgentKind, String> {
    text.parse()
}
