//! The command line.

mod confinement;
mod form;
mod spending;
mod task;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use clap::error::ErrorKind;
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use pintle_agent::Toolset;

pub(crate) use self::confinement::{ConfinementArgs, SandboxName};
use self::form::Form;
pub(crate) use self::spending::SpendingArgs;
use crate::console;
use crate::environment::Place;
use crate::exit::{self, Exit};
use crate::failure::Failure;
use crate::provider::Provider;
use crate::render;
use crate::timeout;

/// A coding agent in the terminal.
///
/// Keys come from OPENAI_API_KEY, ANTHROPIC_API_KEY and GEMINI_API_KEY (or GOOGLE_API_KEY), base URLs from
/// OPENAI_BASE_URL, ANTHROPIC_BASE_URL and GEMINI_BASE_URL. `pintle demo` needs neither key nor network.
#[derive(Debug, Parser)]
#[command(name = "pintle", version, after_help = exit::TABLE)]
pub(crate) struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What the command can do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Do a task in a directory, with tools
    #[command(after_help = exit::TABLE)]
    Run(Box<RunArgs>),
    /// Get one answer of a model, without tools
    #[command(after_help = exit::TABLE)]
    Ask(Box<AskArgs>),
    /// Watch the agent fix a real bug, offline, with a scripted model and real tools
    #[command(after_help = exit::TABLE)]
    Demo(DemoArgs),
    /// Show the tools that a model is given
    Tools(ToolsArgs),
    /// Show what is known of models: limits, abilities, prices
    Models(ModelsArgs),
    /// Show the system prompt as it would be sent
    Prompt(ShowPromptArgs),
    /// Apply a patch in the v4a format to files, or check it, without a model
    Patch(PatchArgs),
    /// A model server that follows a script
    Mock(MockArgs),
    /// Write a completion script for a shell
    Completions(CompletionsArgs),
}

/// Which model, and how it is reached.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ModelArgs {
    /// Whose model; by default the first whose key is in the environment: openai, anthropic, gemini
    #[arg(long, value_enum, value_name = "NAME")]
    pub(crate) provider: Option<ProviderName>,
    /// Which model; by default the provider's best
    #[arg(long, value_name = "MODEL", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) model: Option<String>,
    /// Where the provider's API is: with /v1 for openai and openai-compatible, without a version else
    #[arg(long, value_name = "URL", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) base_url: Option<String>,
    /// The script that `--provider scripted` follows
    #[arg(long, value_name = "FILE")]
    pub(crate) script: Option<PathBuf>,
    /// The wire dialect that `--provider scripted` speaks; by default the script's own, else openai
    #[arg(long, value_enum, value_name = "NAME")]
    pub(crate) dialect: Option<Provider>,
    /// A profile of your own, in TOML: provider and model, and for `run` prompt, tools and limits (docs/profiles.md)
    #[arg(long, value_name = "FILE")]
    pub(crate) profile: Option<PathBuf>,
    /// How much the model reasons: low, medium, high, or a word that only this provider knows
    #[arg(long, value_name = "EFFORT", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) reasoning_effort: Option<String>,
    /// Give up a model call that brings no text, reasoning or tool call for this long: 90s, 15m, or seconds; by default
    /// 15m, of which 60s for the headers of the response and 5m without a byte; a given time replaces all three
    #[arg(long, value_name = "TIME", value_parser = timeout::parse)]
    pub(crate) timeout: Option<Duration>,
    #[command(flatten)]
    pub(crate) catalog: CatalogArgs,
}

/// What is known of models.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct CatalogArgs {
    /// A file of models and prices to lay over the shipped catalog; by default the one that PINTLE_CATALOG names
    #[arg(long, value_name = "FILE")]
    pub(crate) catalog: Option<PathBuf>,
}

/// Where the prompt comes from.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct PromptArgs {
    /// The task or question; `-`, or none at all when standard input is no terminal, reads standard input. What is piped
    /// in beside a prompt follows it as context
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: Option<String>,
    /// Read the prompt from a file
    #[arg(long, value_name = "FILE", conflicts_with = "prompt")]
    pub(crate) prompt_file: Option<PathBuf>,
}

/// Where the agent works.
#[derive(Clone, Debug, Args)]
pub(crate) struct PlaceArgs {
    /// Where files are and commands run.
    // Brackets are links in a comment for rustdoc, so the help stands here.
    #[arg(
        long,
        value_name = "PLACE",
        default_value = "local",
        help = "Where files are and commands run: local, docker:CONTAINER (one that runs), or ssh:[USER@]HOST[:PORT]"
    )]
    pub(crate) env: Place,
    /// The directory to work in, at that place; by default the current one, the container's own, or where a login begins
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

/// `pintle run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) prompt: PromptArgs,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    /// The tools' names and parameters
    #[arg(long, value_enum, value_name = "NAME", default_value = "native")]
    pub(crate) toolset: ToolsetName,
    /// Ask before these calls, and with all but `never` before changes below `.git`; without a terminal to ask at,
    /// what would be asked about is denied
    #[arg(long, value_enum, value_name = "WHAT", default_value = "never")]
    pub(crate) approve: ApproveName,
    #[command(flatten)]
    pub(crate) confinement: ConfinementArgs,
    /// Stop after this many answers of the model; 0 sets no limit
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) max_turns: u64,
    /// Stop after this many rounds of tool calls; 0 sets no limit
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) max_tool_rounds: u64,
    #[command(flatten)]
    pub(crate) spending: SpendingArgs,
    /// What to write to standard output
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: OutputFormat,
    /// Of text output, only the final answer
    #[arg(long, short, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// In text output, also reasoning, requests and token counts
    #[arg(long, short)]
    pub(crate) verbose: bool,
}

/// `pintle ask`.
#[derive(Debug, Args)]
pub(crate) struct AskArgs {
    #[command(flatten)]
    pub(crate) prompt: PromptArgs,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// A system prompt
    #[arg(long, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) system: Option<String>,
    /// What to write to standard output
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: OutputFormat,
}

/// `pintle demo`.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// The wire dialect, and with it the profile, its prompt and its tools
    #[arg(long, value_enum, value_name = "NAME", default_value = "openai")]
    pub(crate) dialect: Provider,
    /// Where to put the example: a new or an empty directory; by default a fresh one for temporary files
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// What to write to standard output
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: OutputFormat,
}

/// `pintle tools`.
#[derive(Debug, Args)]
pub(crate) struct ToolsArgs {
    /// Whose models they are for; by default the first whose key is in the environment, else openai
    #[arg(long, value_enum, value_name = "NAME")]
    pub(crate) provider: Option<Provider>,
    /// Which of the provider's tools
    #[arg(long, value_enum, value_name = "NAME", default_value = "native")]
    pub(crate) toolset: ToolsetName,
    /// What to write to standard output
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: ListFormat,
}

/// `pintle models`.
#[derive(Debug, Args)]
pub(crate) struct ModelsArgs {
    /// Whose models; by default all
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) provider: Option<String>,
    #[command(flatten)]
    pub(crate) catalog: CatalogArgs,
    /// What to write to standard output
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: ListFormat,
}

/// `pintle completions`.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// Which shell
    #[arg(value_enum, value_name = "SHELL")]
    pub(crate) shell: Shell,
}

/// `pintle prompt`.
#[derive(Debug, Args)]
pub(crate) struct ShowPromptArgs {
    /// Whose model it is for; by default the first whose key is in the environment, else openai
    #[arg(long, value_enum, value_name = "NAME")]
    pub(crate) provider: Option<Provider>,
    /// Which model; by default the provider's best
    #[arg(long, value_name = "MODEL", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) model: Option<String>,
    /// A profile of your own, in TOML, in the place of the provider's (docs/profiles.md)
    #[arg(long, value_name = "FILE", conflicts_with = "provider")]
    pub(crate) profile: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    /// Which of the provider's tools it speaks of
    #[arg(long, value_enum, value_name = "NAME", default_value = "native")]
    pub(crate) toolset: ToolsetName,
    /// What to write to standard output
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: PromptFormat,
}

/// `pintle patch`.
#[derive(Debug, Args)]
pub(crate) struct PatchArgs {
    #[command(subcommand)]
    pub(crate) command: PatchCommand,
}

/// What can be done with a patch.
#[derive(Debug, Subcommand)]
pub(crate) enum PatchCommand {
    /// Change the files: all of them, or none
    #[command(after_help = exit::TABLE)]
    Apply(ApplyArgs),
    /// Say what would happen, and change nothing
    #[command(after_help = exit::TABLE)]
    Check(PatchInput),
}

/// `pintle patch apply`.
#[derive(Debug, Args)]
pub(crate) struct ApplyArgs {
    #[command(flatten)]
    pub(crate) input: PatchInput,
    /// Change nothing, as `check` does
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// Which patch, and how it is read.
#[derive(Debug, Args)]
pub(crate) struct PatchInput {
    /// The patch; `-`, or none at all when standard input is no terminal, reads standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Where the paths of the patch begin, and what they must not leave; by default the current directory
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Where implementations of the format differ, do as the reference does
    #[arg(long)]
    pub(crate) reference: bool,
    /// What to write to standard output
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: ReportFormat,
}

/// `pintle mock`.
#[derive(Debug, Args)]
pub(crate) struct MockArgs {
    #[command(subcommand)]
    pub(crate) command: MockCommand,
}

/// What the scripted server can do.
#[derive(Debug, Subcommand)]
pub(crate) enum MockCommand {
    /// Serve all four dialects until Ctrl-C; the base URLs are the first lines of the output
    Serve(ServeArgs),
}

/// `pintle mock serve`.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// The script to follow
    #[arg(long, value_name = "FILE")]
    pub(crate) script: PathBuf,
    /// The address to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub(crate) listen: SocketAddr,
    /// The only key that is accepted; by default any
    #[arg(long, value_name = "KEY", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) api_key: Option<String>,
}

/// The values of `--provider` where a model is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProviderName {
    /// A real one.
    Of(Provider),
    /// A script, served in this process.
    Scripted,
}

impl ValueEnum for ProviderName {
    fn value_variants<'a>() -> &'a [Self] {
        const ALL: [ProviderName; 5] = [
            ProviderName::Of(Provider::OpenAi),
            ProviderName::Of(Provider::Anthropic),
            ProviderName::Of(Provider::Gemini),
            ProviderName::Of(Provider::OpenAiCompatible),
            ProviderName::Scripted,
        ];
        &ALL
    }

    fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
        match self {
            Self::Of(provider) => provider.to_possible_value(),
            Self::Scripted => {
                let value = clap::builder::PossibleValue::new("scripted");
                Some(value.help("A script, served in this process"))
            }
        }
    }
}

/// The values of `--approve`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ApproveName {
    /// Nothing: what the model calls is run.
    Never,
    /// Tools that change files. Commands may change files, too, and are not asked about.
    Writes,
    /// Commands.
    Commands,
    /// Everything but reading: changes, commands, and what reaches other machines.
    All,
}

/// The values of `--toolset`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ToolsetName {
    /// Those of the family's own agent, on which its models were trained.
    Native,
    /// Those of the loop specification.
    Spec,
}

impl From<ToolsetName> for Toolset {
    fn from(name: ToolsetName) -> Self {
        match name {
            ToolsetName::Native => Self::Native,
            ToolsetName::Spec => Self::Spec,
        }
    }
}

/// The values of `--output` where something happens over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// For people.
    Text,
    /// One JSON object at the end.
    Json,
    /// One JSON object per line, as it happens.
    StreamJson,
}

/// The values of `--output` where something is listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListFormat {
    /// For people.
    Text,
    /// One JSON array.
    Json,
}

/// The values of `--output` of `pintle prompt`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PromptFormat {
    /// For people: each layer under a line that names it and its size.
    Text,
    /// One JSON object with the layers, their sizes, and what was loaded.
    Json,
    /// The prompt alone, as it would be sent, and a line end.
    Plain,
}

/// The values of `--output` where something is done once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// For people.
    Text,
    /// One JSON object.
    Json,
}

impl Arguments {
    /// Those of this process. Help goes to standard output, what is wrong in one line to standard error.
    ///
    /// # Errors
    ///
    /// How the command ends if there is nothing left to do.
    pub(crate) fn of_process() -> Result<Self, Exit> {
        let given: Vec<OsString> = std::env::args_os().collect();
        Self::try_parse_from(&given).map_err(|error| {
            let kind = error.kind();
            let is_answer = matches!(kind, ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
            if !is_answer && kind != ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
                let failure = refused(&error);
                let failure = match task::hint(&error, &given) {
                    Some(hint) => failure.advise(&hint),
                    None => failure,
                };
                if let Some(form) = Form::of_refused(&given)
                    && let Ok(line) = render::failure(form.error_type, &failure)
                {
                    console::object(&line);
                }
                failure.report();
                return failure.exit();
            }
            // If nobody can read the help there is nobody left to tell.
            let _ = error.print();
            if is_answer { Exit::Done } else { Exit::Usage }
        })
    }
}

/// The parser's complaint in one line: what is wrong, and what is possible.
fn refused(error: &clap::Error) -> Failure {
    let text = error.render().to_string();
    let paragraphs = text.split("\n\n").map(|paragraph| {
        let words = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
        words.strip_prefix("error: ").unwrap_or(&words).to_owned()
    });
    let told = paragraphs.take_while(|paragraph| !paragraph.starts_with("Usage:"));
    let told: Vec<String> = told.filter(|paragraph| !paragraph.starts_with("For more information")).collect();
    Failure::usage(told.join("; ")).advise("see `pintle --help`")
}

#[cfg(test)]
mod tests;
