//! `pintle task`.

use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand, ValueEnum};

use super::{ListFormat, RunArgs};

/// `pintle task`.
#[derive(Debug, Args)]
pub(crate) struct TaskArgs {
    #[command(subcommand)]
    pub(crate) command: TaskCommand,
}

/// Subcommands of `pintle task`.
#[derive(Debug, Subcommand)]
pub(crate) enum TaskCommand {
    /// Start or resume a task, and wait until it has ended
    Run(Box<RunTaskArgs>),
    /// List tasks
    List(ListTasksArgs),
    /// Show where a task is now, in a few lines
    Show(ShowTaskArgs),
    /// Report on a task, ended or not
    Report(ReportTaskArgs),
    /// Say something to the candidates of a task
    Steer(SteerTaskArgs),
    /// Answer a task that waits for a person
    Decide(DecideTaskArgs),
    /// Stop a task for good
    Cancel(CancelTaskArgs),
    /// Take over the change of a candidate
    Apply(ApplyTaskArgs),
}

impl TaskCommand {
    /// Returns the flags of the task's sessions, for the subcommand that has them.
    pub(crate) fn session(&self) -> Option<&RunArgs> {
        if let Self::Run(args) = self { Some(&args.run) } else { None }
    }

    /// As [`session`](Self::session), to change them.
    pub(crate) fn session_mut(&mut self) -> Option<&mut RunArgs> {
        if let Self::Run(args) = self { Some(&mut args.run) } else { None }
    }
}

/// `pintle task run`.
#[derive(Debug, Args)]
pub(crate) struct RunTaskArgs {
    /// Go on with this task, named by its id or the beginning of it
    #[arg(long, value_name = "ID", conflicts_with_all = ["contract", "check", "candidates", "changes", "prompt", "prompt_file"], value_parser = NonEmptyStringValueParser::new())]
    pub(crate) task: Option<String>,
    /// Contract in TOML: goal, checks, scope, budget, candidates
    #[arg(long, value_name = "FILE", conflicts_with_all = ["check", "candidates", "prompt", "prompt_file"])]
    pub(crate) contract: Option<PathBuf>,
    /// Command that has to pass in a clean clone with the change; may be repeated
    #[arg(long, value_name = "COMMAND", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) check: Vec<String>,
    /// Number of candidates that work on the goal side by side
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=16))]
    pub(crate) candidates: Option<u8>,
    /// Take the contract that a model drafts from the goal without asking
    #[arg(long, conflicts_with_all = ["contract", "check", "task"])]
    pub(crate) yes: bool,
    /// Start from the files as they are now, instead of from the commit that is checked out
    #[arg(long)]
    pub(crate) changes: bool,
    /// Hand the task over to Restate at this address, such as http://127.0.0.1:8080; its workers carry it out with their own flags [env: PINTLE_RESTATE]
    #[cfg(feature = "restate")]
    #[arg(long, value_name = "URL", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) restate: Option<String>,
    #[command(flatten)]
    pub(crate) run: RunArgs,
}

/// `pintle task list`.
#[derive(Debug, Args)]
pub(crate) struct ListTasksArgs {
    /// Output format
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: ListFormat,
}

/// Task of a subcommand.
#[derive(Debug, Args)]
pub(crate) struct TaskArg {
    /// Id of the task, or the beginning of it
    #[arg(value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) id: String,
}

/// `pintle task show`.
#[derive(Debug, Args)]
pub(crate) struct ShowTaskArgs {
    #[command(flatten)]
    pub(crate) task: TaskArg,
    /// Output format
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: ListFormat,
}

/// `pintle task report`.
#[derive(Debug, Args)]
pub(crate) struct ReportTaskArgs {
    #[command(flatten)]
    pub(crate) task: TaskArg,
    /// Output format
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "markdown")]
    pub(crate) output: TaskReportFormat,
    /// Name of the instance in a prediction [default: the id of the task]
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) instance: Option<String>,
}

/// Formats of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TaskReportFormat {
    /// Text in Markdown
    Markdown,
    /// One page of HTML that loads nothing, with the diff, the timeline and the bill
    Html,
    /// One JSON object
    Json,
    /// The line of a prediction for SWE-bench
    Prediction,
}

/// `pintle task steer`.
#[derive(Debug, Args)]
pub(crate) struct SteerTaskArgs {
    #[command(flatten)]
    pub(crate) task: TaskArg,
    /// Words
    #[arg(value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) text: String,
    /// Number of the candidate, from 0 [default: all of them]
    #[arg(long, value_name = "N")]
    pub(crate) candidate: Option<usize>,
}

/// `pintle task decide`.
#[derive(Debug, Args)]
pub(crate) struct DecideTaskArgs {
    #[command(flatten)]
    pub(crate) task: TaskArg,
    /// Decision
    #[arg(value_enum, value_name = "DECISION")]
    pub(crate) decision: TaskDecision,
    /// Required changes: the task continues with them, instead of ending
    #[arg(long, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) words: Option<String>,
}

/// Decisions about a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TaskDecision {
    /// It continues
    #[value(alias = "allow")]
    Approve,
    /// It does not, or not like this
    Refuse,
}

/// `pintle task cancel`.
#[derive(Debug, Args)]
pub(crate) struct CancelTaskArgs {
    #[command(flatten)]
    pub(crate) task: TaskArg,
    /// Reason, for the report
    #[arg(long, value_name = "TEXT", default_value = "a person cancelled it", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) reason: String,
}

/// `pintle task apply`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("target").required(true).args(["branch", "patch", "files"]))]
pub(crate) struct ApplyTaskArgs {
    #[command(flatten)]
    pub(crate) task: TaskArg,
    /// Commit the change to this new branch
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) branch: Option<String>,
    /// Make a worktree of git for the branch in this directory
    #[arg(long, value_name = "DIR", requires = "branch")]
    pub(crate) worktree: Option<PathBuf>,
    /// Print the change as a patch
    #[arg(long)]
    pub(crate) patch: bool,
    /// Apply the change to the files of the working tree
    #[arg(long)]
    pub(crate) files: bool,
    /// Number of the candidate [default: the one that reached the goal]
    #[arg(long, value_name = "N")]
    pub(crate) candidate: Option<usize>,
}
