//! `pintle task`.

use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand, ValueEnum};

use super::hosted::hide_refused_beside_prompt;
use super::parsers::parse_text;
use super::{ListFormat, PromptArgs, RunArgs};

/// `pintle task`.
#[derive(Debug, Args)]
pub(crate) struct TaskArgs {
    #[command(subcommand)]
    pub(crate) command: TaskCommand,
}

/// Subcommands of `pintle task`.
#[derive(Debug, Subcommand)]
pub(crate) enum TaskCommand {
    /// Start or resume a task, and wait until it ends
    Run(Box<RunTaskArgs>),
    /// Queue tasks for `pintle worker`
    Add(Box<AddTaskArgs>),
    /// List tasks
    List(ListTasksArgs),
    /// Show the status of a task
    Show(ShowTaskArgs),
    /// Print the report of a running or finished task
    Report(ReportTaskArgs),
    /// Print the output of the commands that judge a task
    Logs(LogsTaskArgs),
    /// Print the plan of a task, or edit its remaining steps
    Plan(PlanTaskArgs),
    /// Send a message to the candidates of a task
    Steer(SteerTaskArgs),
    /// Approve or refuse the pending decision of a task
    Decide(DecideTaskArgs),
    /// Cancel a task permanently
    Cancel(CancelTaskArgs),
    /// Apply the change of a candidate
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
#[command(mut_args(hide_refused_beside_prompt(&["wait_approval"])))]
pub(crate) struct RunTaskArgs {
    /// Resume this task, given by its id or a unique prefix
    #[arg(long, value_name = "ID", conflicts_with_all = ["contract", "check", "candidates", "changes", "models", "prompt", "prompt_file"], value_parser = NonEmptyStringValueParser::new())]
    pub(crate) task: Option<String>,
    #[command(flatten)]
    pub(crate) terms: ContractArgs,
    /// Accept the contract that a model drafts from the goal without asking
    #[arg(long, conflicts_with_all = ["contract", "check", "task"])]
    pub(crate) yes: bool,
    /// Exit once the task waits for a decision, without an outcome
    #[arg(long)]
    pub(crate) no_wait: bool,
    /// Submit the task to Restate at this address, such as http://127.0.0.1:8080; its workers run it with their own flags [env: PINTLE_RESTATE]
    #[cfg(feature = "restate")]
    #[arg(long, value_name = "URL", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) restate: Option<String>,
    #[command(flatten)]
    pub(crate) run: RunArgs,
}

/// Flags that define the contract of a new task.
#[derive(Debug, Args)]
pub(crate) struct ContractArgs {
    /// Contract in TOML: goal, checks, scope, budget, candidates
    #[arg(long, value_name = "FILE", conflicts_with_all = ["check", "candidates", "prompt", "prompt_file"])]
    pub(crate) contract: Option<PathBuf>,
    /// Command that must pass in a clean clone with the change; may be repeated
    #[arg(long, value_name = "COMMAND", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) check: Vec<String>,
    /// Number of candidates that work on the goal concurrently
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=16))]
    pub(crate) candidates: Option<u8>,
    /// Models in TOML: a table [models] with the model and effort of draft, plan, anchor, work and review
    #[arg(long, value_name = "FILE", conflicts_with = "contract")]
    pub(crate) models: Option<PathBuf>,
    /// Start from the files with their local changes instead of from the checked-out commit
    #[arg(long)]
    pub(crate) changes: bool,
}

/// `pintle task add`.
#[derive(Debug, Args)]
pub(crate) struct AddTaskArgs {
    #[command(flatten)]
    pub(crate) prompt: PromptArgs,
    #[command(flatten)]
    pub(crate) terms: ContractArgs,
    /// Queue a task for each goal (`*.md`) and contract (`*.toml`) in a directory, or for each line of a file with contracts as
    /// JSON Lines. `--check` and `--candidates` apply to those without their own
    #[arg(long, value_name = "DIR|FILE", conflicts_with_all = ["contract", "prompt", "prompt_file"])]
    pub(crate) from: Option<PathBuf>,
    /// Model of candidates whose contract names none [default: the model of the worker]
    #[arg(long, value_name = "MODEL", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) model: Option<String>,
    /// Directory in the repository of the tasks [default: the current directory]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Submit the tasks to Restate at this address, such as http://127.0.0.1:8080 [env: PINTLE_RESTATE]
    #[cfg(feature = "restate")]
    #[arg(long, value_name = "URL", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) restate: Option<String>,
    /// Output format
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: ListFormat,
}

/// `pintle task list`.
#[derive(Debug, Args)]
pub(crate) struct ListTasksArgs {
    /// List the tasks of `pintle eval` as well
    #[arg(long)]
    pub(crate) all: bool,
    /// Output format
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: ListFormat,
}

/// Task of a subcommand.
#[derive(Debug, Args)]
pub(crate) struct TaskArg {
    /// Id of the task, or a unique prefix
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

/// `pintle task logs`.
#[derive(Debug, Args)]
pub(crate) struct LogsTaskArgs {
    #[command(flatten)]
    pub(crate) task: TaskArg,
    /// Step whose output is printed completely, such as evidence-0-1 [default: the last lines of all steps]
    #[arg(value_name = "STEP", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) step: Option<String>,
    /// Output format
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: ListFormat,
}

/// `pintle task plan`.
#[derive(Debug, Args)]
pub(crate) struct PlanTaskArgs {
    #[command(flatten)]
    pub(crate) task: TaskArg,
    /// Edit the remaining steps in the editor of VISUAL or EDITOR
    #[arg(long)]
    pub(crate) edit: bool,
    /// Output format
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text", conflicts_with = "edit")]
    pub(crate) output: ListFormat,
}

/// Formats of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TaskReportFormat {
    /// Markdown
    Markdown,
    /// One self-contained HTML page with the diff, the timeline and the costs
    Html,
    /// One JSON object
    Json,
    /// Prediction for SWE-bench, as one line of JSON
    Prediction,
}

/// `pintle task steer`.
#[derive(Debug, Args)]
pub(crate) struct SteerTaskArgs {
    #[command(flatten)]
    pub(crate) task: TaskArg,
    /// Text of the message
    #[arg(value_name = "TEXT", value_parser = parse_text)]
    pub(crate) text: String,
    /// Number of the candidate, from 0 [default: all candidates]
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
    /// Changes to make: the task continues with them instead of ending
    #[arg(long, value_name = "TEXT", value_parser = parse_text)]
    pub(crate) words: Option<String>,
}

/// Decisions about a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TaskDecision {
    /// Continue the task
    #[value(alias = "allow")]
    Approve,
    /// End the task, or continue it with the changes of --words
    Refuse,
}

/// `pintle task cancel`.
#[derive(Debug, Args)]
pub(crate) struct CancelTaskArgs {
    #[command(flatten)]
    pub(crate) task: TaskArg,
    /// Reason, for the report
    #[arg(long, value_name = "TEXT", default_value = "a user cancelled it", value_parser = parse_text)]
    pub(crate) reason: String,
}

/// `pintle task apply`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("target").required(true).multiple(true).args(["branch", "push", "patch", "files"]))]
pub(crate) struct ApplyTaskArgs {
    #[command(flatten)]
    pub(crate) task: TaskArg,
    /// Commit the change to this new branch [default with --push: pintle/ID]
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) branch: Option<String>,
    /// Create a git worktree for the branch in this directory
    #[arg(long, value_name = "DIR", requires = "branch")]
    pub(crate) worktree: Option<PathBuf>,
    /// Push the branch with `git push`
    #[arg(long)]
    pub(crate) push: bool,
    /// Open a pull request for the pushed branch with the GitHub CLI `gh`
    #[arg(long, requires = "push")]
    pub(crate) pr: bool,
    /// Remote to push to [default: the only one, or origin]
    #[arg(long, value_name = "NAME", requires = "push", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) remote: Option<String>,
    /// Print the change as a patch
    #[arg(long, conflicts_with_all = ["branch", "push", "files", "worktree", "pr", "remote"])]
    pub(crate) patch: bool,
    /// Apply the change to the files of the working tree
    #[arg(long, conflicts_with_all = ["branch", "push", "worktree", "pr", "remote"])]
    pub(crate) files: bool,
    /// Number of the candidate [default: the one that reached the goal]
    #[arg(long, value_name = "N")]
    pub(crate) candidate: Option<usize>,
}
