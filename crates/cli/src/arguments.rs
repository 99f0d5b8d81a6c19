//! Definition of the command line.

mod approvals;
#[cfg(feature = "client")]
mod attach;
mod audit;
mod budget;
mod choices;
pub(crate) mod command_line;
mod config;
mod confinement;
mod conversation;
mod demo;
mod error_format;
#[cfg(feature = "eval")]
mod eval;
mod first_contact;
mod grants;
#[cfg(any(feature = "acp", feature = "server", feature = "task"))]
mod hosted;
mod layer;
#[cfg(feature = "mcp")]
mod mcp;
mod mock;
mod parsers;
mod patch;
mod policy;
#[cfg(feature = "server")]
mod serve;
mod session;
#[cfg(feature = "task")]
mod task;
#[cfg(feature = "server")]
mod tokens;
#[cfg(feature = "task")]
mod worker;

use std::collections::BTreeSet;
#[cfg(feature = "compat")]
use std::ffi::OsString;
use std::path::PathBuf;
#[cfg(feature = "compat")]
use std::sync::Arc;
use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use pintle_agent::CompactionPolicy;
use pintle_host::env_spec::EnvSpec;
use pintle_host::provider::{Provider, ProviderName};
use pintle_host::timeout;

pub(crate) use self::approvals::{ApprovalArg, ApprovalsArgs, ApprovalsCommand, DecideArgs, DecisionName};
#[cfg(feature = "client")]
pub(crate) use self::attach::AttachArgs;
pub(crate) use self::audit::AuditArgs;
pub(crate) use self::budget::BudgetArgs;
pub(crate) use self::choices::ToolsetName;
pub(crate) use self::config::{ConfigArgs, ConfigCommand, ConfigurationArgs, EditConfigArgs, ListConfigArgs};
pub(crate) use self::confinement::ConfinementArgs;
pub(crate) use self::conversation::ConversationArgs;
pub(crate) use self::demo::DemoArgs;
pub(crate) use self::error_format::ErrorFormat;
#[cfg(feature = "eval")]
pub(crate) use self::eval::{
    EvalArgs, EvalCommand, EvalExportFormat, EvalReportFormat, ExportEvalArgs, ReportEvalArgs, RunEvalArgs,
    VerifyEvalArgs,
};
pub(crate) use self::first_contact::{DoctorArgs, LoginArgs, LogoutArgs, ManArgs};
pub(crate) use self::grants::{GrantsArgs, GrantsCommand, RevokeArgs, SignGrantArgs, VerifyGrantArgs};
#[cfg(any(feature = "restate", feature = "server"))]
pub(crate) use self::hosted::sandbox_remedy;
pub(crate) use self::layer::profile_file;
#[cfg(feature = "mcp")]
pub(crate) use self::mcp::{
    AddServerArgs, McpArgs, McpCommand, ServeToolsArgs, ServerArg, ServerArgs, ServerToolsArgs, ServersArgs,
};
pub(crate) use self::mock::{MockArgs, MockCommand, ServeArgs};
use self::parsers::{EnvSpecParser, named};
pub(crate) use self::patch::{PatchArgs, PatchCommand, PatchInput};
pub(crate) use self::policy::{CheckRulesArgs, PolicyArgs, RulesArgs, RulesCommand, RulesScope, TrustArgs};
#[cfg(feature = "server")]
pub(crate) use self::serve::ServeSessionsArgs;
#[cfg(feature = "client")]
pub(crate) use self::session::ExportFormat;
pub(crate) use self::session::{
    DeleteArgs, DiffArgs, ExportArgs, ListSessionsArgs, PruneArgs, RewindArgs, SessionArg, SessionArgs,
    SessionsArgs, SessionsCommand, VerifyArgs, WorktreeArgs, WorktreeCommand,
};
#[cfg(feature = "task")]
pub(crate) use self::task::{
    AddTaskArgs, ApplyTaskArgs, CancelTaskArgs, ContractArgs, DecideTaskArgs, ListTasksArgs, LogsTaskArgs,
    PlanTaskArgs, ReportTaskArgs, RunTaskArgs, ShowTaskArgs, SteerTaskArgs, TaskArgs, TaskCommand,
    TaskDecision, TaskReportFormat,
};
#[cfg(feature = "server")]
pub(crate) use self::tokens::{AddTokenArgs, TokensArgs, TokensCommand};
#[cfg(feature = "task")]
pub(crate) use self::worker::WorkerArgs;
use crate::exit;

/// A coding agent in the terminal.
///
/// API keys are read from OPENAI_API_KEY, ANTHROPIC_API_KEY and GEMINI_API_KEY (or GOOGLE_API_KEY), base URLs from
/// OPENAI_BASE_URL, ANTHROPIC_BASE_URL and GEMINI_BASE_URL. `pintle login` stores a key. `pintle demo` needs neither a key
/// nor a network, but cargo in PATH.
#[derive(Debug, Parser)]
#[command(name = "pintle", version = env!("PINTLE_VERSION"), after_help = after_help())]
pub(crate) struct Arguments {
    /// Subcommand with its arguments.
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Names of the flags of the subcommand that were typed, without dashes.
    #[arg(skip)]
    pub(crate) typed: BTreeSet<String>,
}

/// Returns the text below the help of the command.
fn after_help() -> String {
    let compatible = if cfg!(feature = "compat") {
        "\n\n`pintle exec` accepts the options of `codex exec`, for programs that start it: see `pintle help exec`."
    } else {
        ""
    };
    format!("{}{compatible}", exit::TABLE)
}

/// Subcommands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start an interactive conversation, like `pintle [PROMPT]`
    #[command(after_help = exit::TABLE)]
    Chat(Box<RunArgs>),
    /// Run a task in a directory, with tools
    #[command(after_help = exit::TABLE)]
    Run(Box<RunArgs>),
    /// Ask a model a question, without tools
    #[command(after_help = exit::TABLE)]
    Ask(Box<AskArgs>),
    /// Watch the agent fix a bug offline, with a scripted model and real tools
    #[command(after_help = exit::TABLE)]
    Demo(DemoArgs),
    /// List, show, export, verify, rewind and delete sessions
    Sessions(SessionsArgs),
    /// Report requests, approvals, calls, changes and costs of a session from its verified record
    Audit(AuditArgs),
    /// List, merge and drop worktrees of sessions
    Worktree(WorktreeArgs),
    /// List, show, approve or deny pending tool calls
    Approvals(ApprovalsArgs),
    /// List permission rules, or show the decision for a call
    Rules(RulesArgs),
    /// Sign, verify and revoke grants
    Grants(GrantsArgs),
    /// Trust the rules, hooks and servers of a project, or list trusted projects
    Trust(TrustArgs),
    /// Store a provider's API key, or list the sources of keys
    Login(LoginArgs),
    /// Remove a stored API key
    Logout(LogoutArgs),
    /// Show or edit the configuration
    Config(ConfigArgs),
    /// List the tools offered to a model, or check the manifest of a tool
    Tools(ToolsArgs),
    /// List known models with their limits, features and prices
    Models(ModelsArgs),
    /// Print the system prompt
    Prompt(ShowPromptArgs),
    /// Apply or check a v4a patch, without a model
    Patch(PatchArgs),
    /// Serve a scripted model
    Mock(MockArgs),
    /// Generate a shell completion script
    Completions(CompletionsArgs),
    /// Print a manual page, or write all of them to a directory
    Man(ManArgs),
    /// Check keys, network, programs, sandbox, terminal and directories
    Doctor(DoctorArgs),
    /// Run as an ACP agent on stdio, for an editor
    #[cfg(feature = "acp")]
    #[command(after_help = exit::TABLE, mut_args(hosted::hide_refused(&["env", "dir"])))]
    Acp(Box<RunArgs>),
    /// Serve sessions over HTTP to browsers and programs
    #[cfg(feature = "server")]
    #[command(after_help = exit::TABLE)]
    Serve(Box<ServeSessionsArgs>),
    /// Connect to a session on a server
    #[cfg(feature = "client")]
    #[command(after_help = exit::TABLE)]
    Attach(AttachArgs),
    /// Create, list and revoke tokens for `pintle serve`
    #[cfg(feature = "server")]
    Tokens(TokensArgs),
    /// Manage MCP servers, or run as one
    #[cfg(feature = "mcp")]
    Mcp(McpArgs),
    /// Run a task until independent checks pass
    #[cfg(feature = "task")]
    #[command(after_help = exit::TABLE)]
    Task(TaskArgs),
    /// Run a task worker
    #[cfg(feature = "task")]
    #[command(after_help = exit::TABLE)]
    Worker(Box<WorkerArgs>),
    /// Measure agents on suites with hidden tests
    #[cfg(feature = "eval")]
    #[command(after_help = exit::TABLE)]
    Eval(EvalArgs),
}

impl Command {
    /// Returns the flags of a session, for the commands that have one.
    pub(crate) fn session(&self) -> Option<&RunArgs> {
        match self {
            Self::Chat(args) | Self::Run(args) => Some(args),
            #[cfg(feature = "acp")]
            Self::Acp(args) => Some(args),
            #[cfg(feature = "server")]
            Self::Serve(args) => Some(&args.run),
            #[cfg(feature = "task")]
            Self::Task(args) => args.command.session(),
            #[cfg(feature = "task")]
            Self::Worker(args) => Some(&args.run),
            _ => None,
        }
    }

    /// Returns whether the SDK of codex, or a program like it, has started this process.
    #[cfg(feature = "compat")]
    pub(crate) fn is_codex_stream(&self) -> bool {
        matches!(self, Self::Run(args) if args.codex_stream)
    }

    /// As [`session`](Self::session), to change them.
    pub(crate) fn session_mut(&mut self) -> Option<&mut RunArgs> {
        match self {
            Self::Chat(args) | Self::Run(args) => Some(args),
            #[cfg(feature = "acp")]
            Self::Acp(args) => Some(args),
            #[cfg(feature = "server")]
            Self::Serve(args) => Some(&mut args.run),
            #[cfg(feature = "task")]
            Self::Task(args) => args.command.session_mut(),
            #[cfg(feature = "task")]
            Self::Worker(args) => Some(&mut args.run),
            _ => None,
        }
    }
}

/// Flags that select a model and its endpoint.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ModelArgs {
    /// Model provider [default: the provider of a known --model, else the first of openai, anthropic, gemini with a key]
    #[arg(long, value_parser = named::<ProviderName>(), value_name = "NAME")]
    pub(crate) provider: Option<ProviderName>,
    /// Model name [default: the provider's best model]
    #[arg(long, value_name = "MODEL", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) model: Option<String>,
    /// Base URL of the provider's API, ending in /v1 for openai and openai-compatible
    #[arg(long, value_name = "URL", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) base_url: Option<String>,
    /// Script for `--provider scripted`
    #[arg(long, value_name = "FILE")]
    pub(crate) script: Option<PathBuf>,
    /// Wire dialect for `--provider scripted` [default: the script's, or openai]
    #[arg(long, value_parser = named::<Provider>(), value_name = "NAME")]
    pub(crate) dialect: Option<Provider>,
    /// Profile of the configuration by name, or a TOML file with provider and model and, for `run`, prompt, tools and limits
    /// (see docs/reference/profiles.md)
    #[arg(long, value_name = "NAME|FILE")]
    pub(crate) profile: Option<PathBuf>,
    /// Reasoning effort: low, medium, high, or a provider-specific value
    #[arg(long, value_name = "EFFORT", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) reasoning_effort: Option<String>,
    /// Abort a model call that yields no text, reasoning or tool call for this long (e.g. 90s, 15m; a bare number is
    /// seconds). Also replaces the limits of 60s for response headers and 5m between bytes [default: 15m]
    #[arg(long, value_name = "TIME", value_parser = timeout::parse)]
    pub(crate) timeout: Option<Duration>,
    #[command(flatten)]
    pub(crate) catalog: CatalogArgs,
}

/// Flags that select the model catalog.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct CatalogArgs {
    /// File of models and prices that overrides the built-in catalog [env: PINTLE_CATALOG]
    #[arg(long, value_name = "FILE")]
    pub(crate) catalog: Option<PathBuf>,
}

/// Source of the prompt.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct PromptArgs {
    /// Task or question; `-` reads standard input, which is also the default unless it is a terminal. Input that is piped
    /// in addition to a prompt is appended as context
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: Option<String>,
    /// Read the prompt from a file
    #[arg(long, value_name = "FILE", conflicts_with = "prompt")]
    pub(crate) prompt_file: Option<PathBuf>,
}

impl PromptArgs {
    /// Returns whether no prompt was given on the command line.
    pub(crate) fn is_absent(&self) -> bool {
        self.prompt.is_none() && self.prompt_file.is_none()
    }
}

/// Execution environment of the tools.
#[derive(Clone, Debug, Args)]
pub(crate) struct EnvArgs {
    /// Execution environment.
    // Rustdoc would read the brackets in a doc comment as links.
    #[arg(
        long,
        value_name = "ENV",
        value_parser = EnvSpecParser,
        default_value = "local",
        help = "Execution environment: local, docker:CONTAINER or ssh:[USER@]HOST[:PORT]; the container must be running. For tasks: local or docker:IMAGE"
    )]
    pub(crate) env: EnvSpec,
    /// Working directory in the environment [default: the current directory, the container's, or the login directory]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

/// `pintle run`.
#[derive(Clone, Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) prompt: PromptArgs,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    #[command(flatten)]
    pub(crate) session: SessionArgs,
    #[command(flatten)]
    pub(crate) environment: EnvArgs,
    /// Toolset offered to the model
    #[arg(long, value_enum, value_name = "NAME", default_value = "native")]
    pub(crate) toolset: ToolsetName,
    #[command(flatten)]
    pub(crate) policy: PolicyArgs,
    /// Limit the run to the grant in this JSON file; no rule, mode or approval can exceed it
    #[arg(long, value_name = "FILE", value_parser = clap::value_parser!(PathBuf))]
    pub(crate) grant: Option<PathBuf>,
    /// Without a terminal, wait up to 24 hours for decisions by `pintle approvals` instead of denying calls
    #[arg(long, conflicts_with = "no_session")]
    pub(crate) wait_approval: bool,
    #[command(flatten)]
    pub(crate) confinement: ConfinementArgs,
    #[cfg(feature = "mcp")]
    #[command(flatten)]
    pub(crate) servers: ServerArgs,
    /// Stop after this many model responses (0 = no limit)
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) max_turns: u64,
    /// Summarize the older part of the conversation when it fills this percentage of the context window (0 = never)
    #[arg(long, value_name = "PERCENT", default_value_t = CompactionPolicy::AUTOMATIC, value_parser = clap::value_parser!(u8).range(0..=100))]
    pub(crate) compact_at: u8,
    /// Stop after this many rounds of tool calls (0 = no limit)
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) max_tool_rounds: u64,
    #[command(flatten)]
    pub(crate) budget: BudgetArgs,
    /// Output format
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: OutputFormat,
    /// Require a final response that is JSON and matches the JSON Schema in this file. The model gets
    /// the mismatch up to three times; exit code 6 reports that no response matched
    #[arg(long, value_name = "FILE")]
    pub(crate) output_schema: Option<PathBuf>,
    /// Attach this image to the prompt; may be repeated
    #[arg(long, value_name = "FILE")]
    pub(crate) image: Vec<PathBuf>,
    /// Write the lines of `codex exec --json`; `pintle exec` sets it.
    #[cfg(feature = "compat")]
    #[arg(long, hide = true, conflicts_with_all = ["output", "quiet", "verbose"])]
    pub(crate) codex_stream: bool,
    /// Write the final response to this file, as `codex exec --output-last-message` does.
    #[cfg(feature = "compat")]
    #[arg(long, hide = true, value_name = "FILE")]
    pub(crate) output_last_message: Option<PathBuf>,
    /// Converse as Claude Code does with `--input-format stream-json`, whose options set it.
    #[cfg(feature = "compat")]
    #[arg(long, hide = true, conflicts_with_all = ["codex_stream", "output", "quiet", "verbose", "prompt", "prompt_file"])]
    pub(crate) claude_stream: bool,
    /// Print only the final response (text output)
    #[arg(long, short, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Also print reasoning, requests and token counts (text output)
    #[arg(long, short)]
    pub(crate) verbose: bool,
    #[command(flatten)]
    pub(crate) conversation: ConversationArgs,
    #[command(flatten)]
    pub(crate) configuration: ConfigurationArgs,
    /// Arguments of the process, which contain the options of Claude Code.
    #[cfg(feature = "compat")]
    #[arg(skip)]
    pub(crate) passed: Arc<[OsString]>,
    /// Names of the flags that were typed, without dashes.
    #[arg(skip)]
    pub(crate) typed: BTreeSet<String>,
}

/// `pintle ask`.
#[derive(Debug, Args)]
pub(crate) struct AskArgs {
    #[command(flatten)]
    pub(crate) prompt: PromptArgs,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// System prompt
    #[arg(long, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) system: Option<String>,
    /// Output format
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: OutputFormat,
    #[command(flatten)]
    pub(crate) configuration: ConfigurationArgs,
}

/// `pintle tools`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ToolsArgs {
    #[command(subcommand)]
    pub(crate) command: Option<ToolsCommand>,
    /// Provider to list tools for [default: the first with a key, or openai]
    #[arg(long, value_parser = named::<Provider>(), value_name = "NAME")]
    pub(crate) provider: Option<Provider>,
    /// Toolset to list
    #[arg(long, value_enum, value_name = "NAME", default_value = "native")]
    pub(crate) toolset: ToolsetName,
    /// Output format
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: ListFormat,
    #[command(flatten)]
    pub(crate) configuration: ConfigurationArgs,
}

/// Subcommands of `pintle tools`.
#[derive(Debug, Subcommand)]
pub(crate) enum ToolsCommand {
    /// Check the manifest of a tool, without running the tool
    Check {
        /// Manifest, in TOML
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
}

/// `pintle models`.
#[derive(Debug, Args)]
pub(crate) struct ModelsArgs {
    /// Only list models of this provider
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) provider: Option<String>,
    #[command(flatten)]
    pub(crate) catalog: CatalogArgs,
    /// Output format
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: ListFormat,
    #[command(flatten)]
    pub(crate) configuration: ConfigurationArgs,
}

/// `pintle completions`.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// Shell to generate for
    #[arg(value_enum, value_name = "SHELL")]
    pub(crate) shell: Shell,
}

/// `pintle prompt`.
#[derive(Debug, Args)]
pub(crate) struct ShowPromptArgs {
    /// Provider to print the prompt for [default: the provider of a known --model, else the first with a key, or openai]
    #[arg(long, value_parser = named::<Provider>(), value_name = "NAME")]
    pub(crate) provider: Option<Provider>,
    /// Model name [default: the provider's best model]
    #[arg(long, value_name = "MODEL", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) model: Option<String>,
    /// Profile of the configuration by name, or a TOML profile to use instead of the provider's (see
    /// docs/reference/profiles.md)
    #[arg(long, value_name = "NAME|FILE", conflicts_with = "provider")]
    pub(crate) profile: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) environment: EnvArgs,
    /// Toolset that the prompt describes
    #[arg(long, value_enum, value_name = "NAME", default_value = "native")]
    pub(crate) toolset: ToolsetName,
    /// Output format
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: PromptFormat,
    #[command(flatten)]
    pub(crate) configuration: ConfigurationArgs,
}

/// Values of `--output` for commands that run over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// Human-readable text
    Text,
    /// One JSON object at the end
    Json,
    /// One JSON object per line, streamed
    StreamJson,
}

/// Values of `--output` for commands that list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListFormat {
    /// Human-readable text
    Text,
    /// One JSON array
    Json,
}

/// Values of `--output` for `pintle prompt`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PromptFormat {
    /// Each layer under a heading with its name and size
    Text,
    /// One JSON object with the layers, their sizes and the loaded project files
    Json,
    /// Only the prompt as sent, with a final newline
    Plain,
}

/// Values of `--output` for commands that report once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// Human-readable text
    Text,
    /// One JSON object
    Json,
}

#[cfg(test)]
mod tests;
