//! Options of `codex exec`.

use std::path::PathBuf;

use super::parser::ExecParser;
use crate::command_line::{OptionError, ParsedOptions, invalid};

/// Supported options of `codex exec`. None is set by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExecOptions {
    /// Whether the output is a stream of lines (`--json`, `--experimental-json`).
    pub json: bool,
    /// Model (`--model`).
    pub model: Option<String>,
    /// Sandbox mode (`--sandbox`).
    pub sandbox: Option<SandboxMode>,
    /// Whether commands may use the network (`sandbox_workspace_write.network_access`). The key applies to
    /// [`SandboxMode::WorkspaceWrite`]. If it is given with another mode, [`SandboxMode::ReadOnly`] has no network, and
    /// [`SandboxMode::DangerFullAccess`] is not restricted (`None`).
    pub network: Option<bool>,
    /// Condition under which a call needs an approval (`approval_policy`).
    pub approval: Option<ApprovalPolicy>,
    /// Working directory (`--cd`).
    pub directory: Option<PathBuf>,
    /// Additional directories that may be written to (`--add-dir`, `sandbox_workspace_write.writable_roots`).
    pub added_directories: Vec<PathBuf>,
    /// Whether the working directory may be outside of a Git repository (`--skip-git-repo-check`).
    pub skip_git_check: bool,
    /// File with the JSON schema of the final message (`--output-schema`).
    pub output_schema: Option<PathBuf>,
    /// File that receives the last message (`--output-last-message`).
    pub last_message: Option<PathBuf>,
    /// Images of the prompt (`--image`).
    pub images: Vec<PathBuf>,
    /// Whether the session is not kept (`--ephemeral`).
    pub ephemeral: bool,
    /// Session to resume (`resume`).
    pub resume: Option<ResumeTarget>,
    /// Prompt on the command line; `None` if it is on standard input.
    pub prompt: Option<String>,
    /// How much the model thinks (`model_reasoning_effort`).
    pub reasoning_effort: Option<String>,
    /// Base URL of the provider (`openai_base_url`).
    pub base_url: Option<String>,
    /// Whether and how the model searches the web (`web_search`).
    pub web_search: Option<WebSearchMode>,
}

/// Session to resume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResumeTarget {
    /// The session with this id.
    Id(String),
    /// The newest session.
    Last,
}

/// Sandbox mode of commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SandboxMode {
    /// Read-only access to files.
    ReadOnly,
    /// Write access to the working directory and the added directories.
    WorkspaceWrite,
    /// Full access, without a sandbox.
    DangerFullAccess,
}

/// Condition under which a call needs an approval. `codex exec` has no user to ask, so such calls are denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApprovalPolicy {
    /// Before every command that is not known to be harmless.
    Untrusted,
    /// When a command fails in the sandbox.
    OnFailure,
    /// When the model asks for it.
    OnRequest,
    /// Never: calls that the sandbox forbids fail.
    Never,
}

/// Whether and how the model searches the web.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WebSearchMode {
    /// No search.
    Disabled,
    /// Search of the provider's cache.
    Cached,
    /// Search of the web.
    Live,
}

pub(super) const SANDBOX_MODES: &[(&str, SandboxMode)] = &[
    ("read-only", SandboxMode::ReadOnly),
    ("workspace-write", SandboxMode::WorkspaceWrite),
    ("danger-full-access", SandboxMode::DangerFullAccess),
];

pub(super) const APPROVAL_POLICIES: &[(&str, ApprovalPolicy)] = &[
    ("untrusted", ApprovalPolicy::Untrusted),
    ("on-failure", ApprovalPolicy::OnFailure),
    ("on-request", ApprovalPolicy::OnRequest),
    ("never", ApprovalPolicy::Never),
];

pub(super) const WEB_SEARCH_MODES: &[(&str, WebSearchMode)] = &[
    ("disabled", WebSearchMode::Disabled),
    ("cached", WebSearchMode::Cached),
    ("live", WebSearchMode::Live),
];

impl ExecOptions {
    /// Parses the arguments of the command, with or without the leading `exec`.
    ///
    /// Harmless options are ignored with a warning. Standard output belongs to the stream, so warnings go to standard
    /// error. A word after an unknown option is its value, unless there is no other prompt or session to resume.
    ///
    /// Options take precedence over the configuration, and later ones over earlier ones. An option cannot override
    /// another one that permits less: together, they are an error. `--full-auto` only sets defaults, at any position.
    ///
    /// ```
    /// use pintle_compat::codex::{ExecOptions, SandboxMode};
    ///
    /// let arguments = ["exec", "--experimental-json", "--sandbox", "read-only", "--color", "never"];
    /// let parsed = ExecOptions::parse(&arguments)?;
    /// assert_eq!(parsed.options.sandbox, Some(SandboxMode::ReadOnly));
    /// assert_eq!(parsed.warnings.len(), 1);
    /// assert!(ExecOptions::parse(&["exec", "--json", "--deny-tools", "shell"]).is_err());
    /// # Ok::<(), pintle_compat::OptionError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`OptionError`] for an unsupported option that could restrict the run, for an unknown option that is close to a
    /// known one, for an option that permits less than the one that takes precedence, and for invalid arguments.
    pub fn parse<S: AsRef<str>>(arguments: &[S]) -> Result<ParsedOptions<Self>, OptionError> {
        let arguments = match arguments.split_first() {
            Some((first, rest)) if first.as_ref() == "exec" => rest,
            _ => arguments,
        };
        ExecParser::new(arguments).parse()
    }

    /// Returns these options, completed by the options of the configuration.
    pub(super) fn over(self, configured: Self) -> Self {
        let mut added_directories = configured.added_directories;
        added_directories.extend(self.added_directories);
        Self {
            model: self.model.or(configured.model),
            reasoning_effort: configured.reasoning_effort,
            base_url: configured.base_url,
            added_directories,
            ..self
        }
    }
}

/// Returns the error for a value of the configuration.
pub(super) fn invalid_config(key: &str, value: &toml::Value, expected: &str) -> OptionError {
    let shown = value.as_str().unwrap_or_else(|| value.type_str());
    invalid(&format!("--config {key}"), shown, expected)
}
