//! Flags that select the session of a run, and `pintle sessions`.

use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand};
use pintle_host::sessions::{RememberedFlags, SessionChoice};
use pintle_host::{WorktreeBase, timeout};

use super::ListFormat;
use super::parsers::named;

/// Session of a run.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct SessionArgs {
    /// Continue the newest session of this directory; without a prompt, resume its unfinished run
    #[arg(long = "continue", short = 'c', conflicts_with_all = ["resume", "fork", "no_session"])]
    pub(crate) continues: bool,
    /// Continue this session, given by its id or a unique prefix
    #[arg(long, value_name = "ID", conflicts_with_all = ["fork", "no_session"], value_parser = NonEmptyStringValueParser::new())]
    pub(crate) resume: Option<String>,
    /// Start a new session with the history of this one, or with its first N entries
    #[arg(long, value_name = "ID[@N]", conflicts_with = "no_session", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) fork: Option<String>,
    /// Do not store the session; only tools write files
    #[arg(long)]
    pub(crate) no_session: bool,
    /// Work in a new git worktree of the session, created from HEAD, or from HEAD with the local changes (`=changes`)
    #[arg(
        long,
        value_parser = named::<WorktreeBase>(),
        value_name = "BASE",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "head",
        conflicts_with_all = ["continues", "resume", "no_session"]
    )]
    pub(crate) worktree: Option<WorktreeBase>,
    /// Flags of the run that a session remembers, by name, with their values.
    #[arg(skip)]
    pub(crate) given: RememberedFlags,
}

impl SessionArgs {
    /// Returns whether the run continues a session, and therefore needs no prompt.
    pub(crate) fn is_continuation(&self) -> bool {
        self.continues || self.resume.is_some()
    }
}

impl From<&SessionArgs> for SessionChoice {
    fn from(args: &SessionArgs) -> Self {
        match (&args.fork, &args.resume, args.continues) {
            (Some(fork), ..) => Self::Fork(fork.clone()),
            (None, Some(resume), _) => Self::Resume(resume.clone()),
            (None, None, true) => Self::Newest,
            (None, None, false) => Self::New,
        }
    }
}

/// `pintle sessions`.
#[derive(Debug, Args)]
pub(crate) struct SessionsArgs {
    #[command(subcommand)]
    pub(crate) command: SessionsCommand,
}

/// Subcommands of `pintle sessions`.
#[derive(Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    /// List sessions, newest first
    List(ListSessionsArgs),
    /// Show the conversation of a session
    Show(ShowArgs),
    /// Export a session as JSON lines, Markdown or HTML
    Export(ExportArgs),
    /// Verify that the record of a session was not changed
    Verify(VerifyArgs),
    /// Show the file changes of a session since its start, or since an entry of its history
    Diff(DiffArgs),
    /// Rewind the conversation, the files or both to an entry of the history
    Rewind(RewindArgs),
    /// Delete sessions
    Delete(DeleteArgs),
    /// Delete old sessions of this directory, or of all directories
    Prune(PruneArgs),
}

/// `pintle sessions list`.
#[derive(Debug, Args)]
pub(crate) struct ListSessionsArgs {
    /// List the sessions of all directories, including sessions without a message
    #[arg(long, short)]
    pub(crate) all: bool,
    /// Maximum number of sessions
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: u32,
    /// List the sessions of all directories on this server: the URL that `pintle serve` prints, or `unix:FILE`; the token may be in PINTLE_TOKEN
    #[cfg(feature = "client")]
    #[arg(long, value_name = "URL", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) server: Option<String>,
    /// Output format
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: ListFormat,
}

/// `pintle sessions show`.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    pub(crate) session: SessionArg,
    /// Show a session on this server: the URL that `pintle serve` prints, or `unix:FILE`; the token may be in PINTLE_TOKEN
    #[cfg(feature = "client")]
    #[arg(long, value_name = "URL", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) server: Option<String>,
}

/// A session, and how to show it.
#[derive(Debug, Args)]
pub(crate) struct SessionArg {
    /// Id of the session, or a unique prefix
    #[arg(value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) id: String,
    /// Output format
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: ListFormat,
}

/// `pintle sessions export`.
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// Id of the session, or a unique prefix
    #[arg(value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) id: String,
    /// Format: the record as JSON lines, or the conversation as Markdown or as a self-contained HTML page
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "jsonl")]
    pub(crate) format: ExportFormat,
    /// Export a session on this server: the URL that `pintle serve` prints, or `unix:FILE`; the token may be in PINTLE_TOKEN
    #[cfg(feature = "client")]
    #[arg(long, value_name = "URL", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) server: Option<String>,
}

/// Values of `--format` of `pintle sessions export`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ExportFormat {
    Jsonl,
    Markdown,
    Html,
}

impl From<ExportFormat> for pintle_host::sessions::export::ExportFormat {
    fn from(format: ExportFormat) -> Self {
        match format {
            ExportFormat::Jsonl => Self::Jsonl,
            ExportFormat::Markdown => Self::Markdown,
            ExportFormat::Html => Self::Html,
        }
    }
}

/// `pintle sessions verify`.
#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    pub(crate) session: SessionArg,
    /// Head from an earlier verification, as `EPOCH:LINE:HASH`, that the record must contain
    #[arg(long, value_name = "HEAD", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) head: Option<String>,
}

/// `pintle sessions diff`.
#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// Id of the session, or a unique prefix; with N, only changes after the first N entries of its history
    #[arg(value_name = "ID[@N]", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) id: String,
    /// Compare with this checkpoint
    #[arg(long, value_name = "CHECKPOINT", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) checkpoint: Option<String>,
    /// Output format
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: ListFormat,
}

/// `pintle sessions rewind`.
#[derive(Debug, Args)]
pub(crate) struct RewindArgs {
    /// Id of the session, or a unique prefix, and the number of entries of its history to keep
    #[arg(value_name = "ID@N", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) id: String,
    /// Restore the files of this checkpoint, such as the one that undoes a rewind; the conversation stays
    #[arg(long, value_name = "CHECKPOINT", conflicts_with = "conversation", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) checkpoint: Option<String>,
    /// Restore the files only
    #[arg(long, conflicts_with = "conversation")]
    pub(crate) files: bool,
    /// Rewind the conversation only
    #[arg(long)]
    pub(crate) conversation: bool,
    /// Also restore files that another process may have changed
    #[arg(long)]
    pub(crate) force: bool,
    /// Show the changes without making them
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Output format
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: ListFormat,
}

/// `pintle sessions delete`.
#[derive(Debug, Args)]
pub(crate) struct DeleteArgs {
    /// Ids of the sessions, or unique prefixes
    #[arg(value_name = "ID", required = true, value_parser = NonEmptyStringValueParser::new())]
    pub(crate) ids: Vec<String>,
    /// Output format
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: ListFormat,
}

/// `pintle sessions prune`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("condition").required(true).multiple(true).args(["older_than", "keep"]))]
pub(crate) struct PruneArgs {
    /// Delete sessions of all directories
    #[arg(long, short)]
    pub(crate) all: bool,
    /// Delete sessions that have not been used for this time, such as 12h, 30d or 8w
    #[arg(long, value_name = "AGE", value_parser = timeout::parse_age)]
    pub(crate) older_than: Option<Duration>,
    /// Delete all but this many of the newest sessions of this directory, or with --all of all directories
    #[arg(long, value_name = "N")]
    pub(crate) keep: Option<usize>,
    /// List the sessions without deleting them
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Output format
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: ListFormat,
}

/// `pintle worktree`.
#[derive(Debug, Args)]
pub(crate) struct WorktreeArgs {
    #[command(subcommand)]
    pub(crate) command: WorktreeCommand,
    /// Output format
    #[arg(long, global = true, value_enum, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: ListFormat,
}

/// Subcommands of `pintle worktree`.
#[derive(Debug, Subcommand)]
pub(crate) enum WorktreeCommand {
    /// List the worktrees of sessions with their changes
    List,
    /// Show the changes of a session in its worktree
    Diff {
        /// Id of the session, or a unique prefix
        #[arg(value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
        id: String,
    },
    /// Apply the changes of a session to the repository's working tree, all or none, and remove the worktree
    Merge {
        /// Id of the session, or a unique prefix
        #[arg(value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
        id: String,
    },
    /// Remove a worktree
    Drop {
        /// Id of the session, or a unique prefix
        #[arg(value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
        id: String,
        /// Remove it even if it has unmerged changes
        #[arg(long)]
        force: bool,
    },
}
