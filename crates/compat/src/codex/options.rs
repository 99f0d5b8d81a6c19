//! Options of `codex exec`.

use std::path::PathBuf;

use super::config;
use crate::command_line::{
    Authority, Flag, OptionError, Parsed, Word, Words, invalid, restricting, unexpected,
};

/// Options of `codex exec`, as far as they have a meaning here. None is set by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExecOptions {
    /// Whether the output is a stream of lines (`--json`, `--experimental-json`).
    pub json: bool,
    /// Model (`--model`).
    pub model: Option<String>,
    /// Sandbox mode (`--sandbox`).
    pub sandbox: Option<SandboxMode>,
    /// Whether commands may use the network (`sandbox_workspace_write.network_access`).
    pub network: Option<bool>,
    /// When a person is asked about a call (`approval_policy`).
    pub approval: Option<ApprovalPolicy>,
    /// Working directory (`--cd`).
    pub directory: Option<PathBuf>,
    /// Further directories that may be written to (`--add-dir`, `sandbox_workspace_write.writable_roots`).
    pub added_directories: Vec<PathBuf>,
    /// Whether the working directory may be outside of a Git repository (`--skip-git-repo-check`).
    pub skip_git_check: bool,
    /// File with the JSON schema of the final message (`--output-schema`).
    pub output_schema: Option<PathBuf>,
    /// File that receives the last message (`--output-last-message`).
    pub last_message: Option<PathBuf>,
    /// Images that go with the prompt (`--image`).
    pub images: Vec<PathBuf>,
    /// Whether the session is not kept (`--ephemeral`).
    pub ephemeral: bool,
    /// Session that goes on (`resume`).
    pub resume: Option<Resume>,
    /// Prompt on the command line; `None` if it is on standard input.
    pub prompt: Option<String>,
    /// How much the model thinks (`model_reasoning_effort`).
    pub reasoning_effort: Option<String>,
    /// Base URL of the provider (`openai_base_url`).
    pub base_url: Option<String>,
    /// Whether and how the model searches the web (`web_search`).
    pub web_search: Option<WebSearchMode>,
}

/// Session that goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resume {
    /// The session with this id.
    Id(String),
    /// The newest session.
    Last,
}

/// Sandbox mode of commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SandboxMode {
    /// Read files.
    ReadOnly,
    /// Write in the working directory and the added directories.
    WorkspaceWrite,
    /// Everything; there is no sandbox.
    DangerFullAccess,
}

/// When a person is asked about a call. `codex exec` has nobody to ask: what would be asked about is denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApprovalPolicy {
    /// Before every command that is not known to be harmless.
    Untrusted,
    /// When a command fails in the sandbox.
    OnFailure,
    /// When the model asks for it.
    OnRequest,
    /// Never: what the sandbox does not allow fails.
    Never,
}

/// Whether and how the model searches the web.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WebSearchMode {
    /// Not at all.
    Disabled,
    /// In the provider's cache.
    Cached,
    /// In the web.
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

/// Options without a meaning here, whether they take a value, and why ignoring them is harmless.
const HARMLESS: &[(&str, bool, &str)] = &[
    ("--color", true, "the lines of the stream have no colours"),
    ("--thread-source", true, "sessions have no such label"),
    ("--cyber-access-program", true, "it concerns OpenAI's servers alone"),
    ("--enable", true, "there are no such features"),
    ("--oss", false, "use the provider of the configuration"),
    ("--local-provider", true, "use the provider of the configuration"),
    ("--ignore-user-config", false, "codex's own configuration is never read"),
    ("--ignore-rules", false, "codex's own rules are never read"),
];

/// Options that restrict, and why they are not supported.
const RESTRICTING: &[(&str, &str)] = &[
    ("--profile", "profiles of codex's configuration are not read"),
    ("-p", "profiles of codex's configuration are not read"),
    ("--disable", "there are no such features to disable"),
    ("--strict-config", "not every key of codex's configuration is known"),
];

/// Options that restrict a run or grant it something, by their spellings, and the values of these options.
const AUTHORITY: Authority = Authority {
    names: &[
        ("--sandbox", "--sandbox"),
        ("--sandbox-mode", "--sandbox"),
        ("--ask-for-approval", "--ask-for-approval"),
        ("--approval", "--ask-for-approval"),
        ("--approval-policy", "--ask-for-approval"),
        ("--approval-mode", "--ask-for-approval"),
        ("--add-dir", "--add-dir"),
        ("--writable-roots", "--add-dir"),
        ("--cd", "--cd"),
        ("--config", "--config"),
        ("--network-access", "--config sandbox_workspace_write.network_access"),
        ("--full-auto", "--full-auto"),
        ("--dangerously-bypass-approvals-and-sandbox", "--dangerously-bypass-approvals-and-sandbox"),
        ("--yolo", "--yolo"),
        ("--ephemeral", "--ephemeral"),
        ("--profile", "--profile"),
        ("--disable", "--disable"),
        ("--strict-config", "--strict-config"),
    ],
    values: &[
        ("read-only", "--sandbox"),
        ("workspace-write", "--sandbox"),
        ("danger-full-access", "--sandbox"),
        ("untrusted", "--ask-for-approval"),
        ("on-failure", "--ask-for-approval"),
        ("on-request", "--ask-for-approval"),
        ("never", "--ask-for-approval"),
    ],
    short: &["-s", "-a", "-c", "-C", "-p"],
};

/// Words that are commands and never the value of an unknown option.
const COMMANDS: &[&str] = &["exec", "e", "resume", "review"];

impl ExecOptions {
    /// Parses the arguments of the command, with or without the leading `exec`.
    ///
    /// Options that are harmless to ignore are warnings. Standard output belongs to the stream, so warnings go to standard
    /// error.
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
    /// [`OptionError`] for an option that could restrict and is not supported, and for what cannot be understood.
    pub fn parse<S: AsRef<str>>(arguments: &[S]) -> Result<Parsed<Self>, OptionError> {
        let arguments = match arguments.split_first() {
            Some((first, rest)) if first.as_ref() == "exec" => rest,
            _ => arguments,
        };
        let mut options = Self::default();
        let mut words = Words::new(arguments);
        // In codex, what is written later wins, and the flags win over the configuration.
        let mut configured = Self::default();
        let mut is_resume = false;
        while let Some(word) = words.next() {
            match word {
                Word::Option(flag) => options.flag(flag, &mut configured, is_resume, &mut words)?,
                Word::Plain(word) if word == "resume" && !is_resume && options.prompt.is_none() => {
                    is_resume = true
                }
                Word::Plain(word) => options.plain(word, is_resume)?,
            }
        }
        if is_resume && options.resume.is_none() {
            return Err(OptionError::MissingSession { ignored: words.warnings });
        }
        Ok(Parsed { options: options.over(configured), warnings: words.warnings })
    }

    fn plain(&mut self, word: String, is_resume: bool) -> Result<(), OptionError> {
        if is_resume && self.resume.is_none() {
            self.resume = Some(Resume::Id(word));
        } else if self.prompt.is_some() {
            return Err(unexpected(&word));
        } else if word != "-" {
            self.prompt = Some(word);
        }
        Ok(())
    }

    fn flag(
        &mut self,
        flag: Flag,
        configured: &mut Self,
        is_resume: bool,
        words: &mut Words,
    ) -> Result<(), OptionError> {
        match flag.name.as_str() {
            "--config" | "-c" => {
                let value = words.value(flag)?;
                return config::apply(&value, configured, &mut words.warnings);
            }
            "--model" | "-m" => self.model = Some(words.value(flag)?),
            "--sandbox" | "-s" => self.sandbox = Some(words.choice(flag, SANDBOX_MODES)?),
            "--ask-for-approval" | "-a" => self.approval = Some(words.choice(flag, APPROVAL_POLICIES)?),
            "--cd" | "-C" => self.directory = Some(words.value(flag)?.into()),
            "--add-dir" => self.added_directories.push(words.value(flag)?.into()),
            "--output-schema" => self.output_schema = Some(words.value(flag)?.into()),
            "--output-last-message" | "-o" => self.last_message = Some(words.value(flag)?.into()),
            "--image" | "-i" => self.images.push(words.value(flag)?.into()),
            _ => return self.switch(flag, is_resume, words),
        }
        Ok(())
    }

    fn switch(&mut self, flag: Flag, is_resume: bool, words: &mut Words) -> Result<(), OptionError> {
        match flag.name.as_str() {
            "--json" | "--experimental-json" => self.json = true,
            "--skip-git-repo-check" => self.skip_git_check = true,
            "--ephemeral" => self.ephemeral = true,
            "--last" if is_resume => self.resume = Some(Resume::Last),
            "--full-auto" => {
                self.sandbox.get_or_insert(SandboxMode::WorkspaceWrite);
                self.approval.get_or_insert(ApprovalPolicy::OnRequest);
            }
            "--dangerously-bypass-approvals-and-sandbox" | "--yolo" => {
                self.sandbox = Some(SandboxMode::DangerFullAccess);
                self.approval = Some(ApprovalPolicy::Never);
            }
            _ => return without_meaning(flag, words),
        }
        Words::no_value(&flag)
    }

    /// Returns these options, completed by those of the configuration.
    fn over(self, configured: Self) -> Self {
        let mut added_directories = configured.added_directories;
        added_directories.extend(self.added_directories);
        Self {
            model: self.model.or(configured.model),
            sandbox: self.sandbox.or(configured.sandbox),
            approval: self.approval.or(configured.approval),
            network: configured.network,
            reasoning_effort: configured.reasoning_effort,
            base_url: configured.base_url,
            web_search: configured.web_search,
            added_directories,
            ..self
        }
    }
}

fn without_meaning(flag: Flag, words: &mut Words) -> Result<(), OptionError> {
    if let Some((_, has_value, reason)) = HARMLESS.iter().find(|(name, ..)| *name == flag.name) {
        return words.ignore(flag, *has_value, reason);
    }
    if let Some((name, reason)) = RESTRICTING.iter().find(|(name, _)| *name == flag.name) {
        return Err(restricting(name, *reason));
    }
    words.unknown(&flag, COMMANDS, &AUTHORITY)
}

/// Returns the error for a value of the configuration.
pub(super) fn invalid_config(key: &str, value: &toml::Value, expected: &str) -> OptionError {
    let shown = value.as_str().unwrap_or_else(|| value.type_str());
    invalid(&format!("--config {key}"), shown, expected)
}
