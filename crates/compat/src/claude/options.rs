//! Options of the command line.

use std::path::PathBuf;

use serde_json::Value;

use super::mode::{MODES, PermissionMode};
use super::settings::ClaudeSettings;
use super::tool_rule::ToolRule;
use crate::command_line::{
    CommandWord, CommandWords, Flag, OptionError, ParsedOptions, RestrictingNames, invalid, restricting,
    unexpected,
};

/// Supported options of Claude Code's `stream-json`. None is set by default.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct StreamOptions {
    /// Whether `stream_event` lines are written (`--include-partial-messages`).
    pub partial_messages: bool,
    /// Whether messages of the user are repeated in the output (`--replay-user-messages`).
    pub replay_user_messages: bool,
    /// Whether approvals are requested on the control channel (`--permission-prompt-tool stdio`). Otherwise such calls
    /// are denied.
    pub asks_host: bool,
    /// Mode at the start (`--permission-mode`, `--dangerously-skip-permissions`).
    pub permission_mode: Option<PermissionMode>,
    /// Whether the mode may become `bypassPermissions` (`--allow-dangerously-skip-permissions`,
    /// `--permission-mode bypassPermissions`).
    pub may_bypass: bool,
    /// Model (`--model`).
    pub model: Option<String>,
    /// Model that takes over when the first one is overloaded (`--fallback-model`).
    pub fallback_model: Option<String>,
    /// Limit on model calls of a run (`--max-turns`).
    pub max_turns: Option<u32>,
    /// Limit on the cost in US dollars (`--max-budget-usd`).
    pub max_budget_usd: Option<f64>,
    /// Whether and how much the model thinks (`--thinking`, `--max-thinking-tokens`).
    pub thinking: Option<Thinking>,
    /// How much the model thinks (`--effort`).
    pub effort: Option<String>,
    /// Schema of the answer (`--json-schema`).
    pub json_schema: Option<Value>,
    /// Whether the newest session of the directory is resumed (`--continue`).
    pub continues: bool,
    /// Session to resume (`--resume`).
    pub resume: Option<String>,
    /// Whether a resumed session becomes a new one (`--fork-session`).
    pub forks: bool,
    /// Id of the new session (`--session-id`).
    pub session_id: Option<String>,
    /// Whether the session is not kept (`--no-session-persistence`).
    pub ephemeral: bool,
    /// Calls that run without approval (`--allowedTools`).
    pub allowed_tools: Vec<ToolRule>,
    /// Calls that do not run (`--disallowedTools`).
    pub disallowed_tools: Vec<ToolRule>,
    /// Claude's names of the only tools that exist besides MCP tools (`--tools`); all if `None`.
    pub tools: Option<Vec<String>>,
    /// MCP servers (`--mcp-config`): each an object with `mcpServers`, or the path of a file.
    pub mcp_configs: Vec<String>,
    /// Whether no other MCP servers are used (`--strict-mcp-config`).
    pub strict_mcp_config: bool,
    /// Settings (`--settings`) that are a JSON object.
    pub settings: ClaudeSettings,
    /// Path of a settings file (`--settings`), for [`ClaudeSettings::parse`].
    pub settings_file: Option<PathBuf>,
    /// Settings files that are read (`--setting-sources`): `user`, `project`, `local`. All if `None`.
    pub setting_sources: Option<Vec<SettingSource>>,
    /// System prompt that replaces the default one (`--system-prompt`).
    pub system_prompt: Option<String>,
    /// File with that system prompt (`--system-prompt-file`).
    pub system_prompt_file: Option<PathBuf>,
    /// Text at the end of the system prompt (`--append-system-prompt`).
    pub append_system_prompt: Option<String>,
    /// Additional directories (`--add-dir`).
    pub added_directories: Vec<PathBuf>,
    /// Whether the session starts only after the handshake (`--await-initialize`).
    pub awaits_initialize: bool,
}

/// Whether and how much a model thinks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thinking {
    /// Not at all.
    Disabled,
    /// The model decides.
    Adaptive,
    /// Up to this number of tokens.
    Budget(u64),
}

/// Settings file that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingSource {
    /// Settings of the user.
    User,
    /// Settings of the project.
    Project,
    /// Settings of the project for this user only.
    Local,
}

const THINKING: &[(&str, Thinking)] =
    &[("adaptive", Thinking::Adaptive), ("disabled", Thinking::Disabled), ("enabled", Thinking::Adaptive)];

const SOURCES: &[(&str, SettingSource)] =
    &[("user", SettingSource::User), ("project", SettingSource::Project), ("local", SettingSource::Local)];

/// Ignored options, whether they take a value, and why ignoring them is harmless.
const HARMLESS: &[(&str, bool, &str)] = &[
    ("--thinking-display", true, "thinking is shown as the provider sends it"),
    ("--task-budget", true, "it is advice for the model; use --max-budget-usd"),
    ("--betas", true, "the adapter chooses them"),
    ("--debug", false, "use the variables of this program"),
    ("--debug-file", true, "use the variables of this program"),
    ("--debug-to-stderr", false, "use the variables of this program"),
    ("--channels", true, "there are no channels"),
    ("--include-hook-events", false, "runs of hooks have no lines"),
    ("--session-mirror", false, "each session has a journal already"),
    ("--exclude-dynamic-system-prompt-sections", false, "the prompt is byte-stable as it is"),
    ("--name", true, "sessions have no name"),
    ("-n", true, "sessions have no name"),
    ("--ide", false, "there is no such connection"),
    ("--chrome", false, "there is no such connection"),
];

/// Options that restrict a session or select another conversation, and why they are not supported.
const REFUSED: &[(&str, &str)] = &[
    ("--agent", "there are no such agents, and one may limit the tools"),
    ("--agents", "there are no such agents, and one may limit the tools"),
    ("--managed-settings", "managed settings are not supported"),
    ("--managed-settings-in-initialize", "managed settings are not supported"),
    ("--plugin-dir", "plugins are not supported, and one may have hooks"),
    ("--plugin-dir-no-mcp", "plugins are not supported, and one may have hooks"),
    ("--project-config-root", "the configuration of another directory is not read"),
    ("--permission-prompts", "it is unknown"),
    ("--resume-session-at", "sessions resume after their last message"),
    ("--resume-drops-turn", "sessions resume after their last message"),
    ("--bare", "it is unknown"),
    ("--safe-mode", "it is unknown"),
];

/// Options that restrict a session or grant it something, by their spellings, and the values of these options. Other
/// options may also have the values `default`, `auto` and `plan`.
const AUTHORITY: RestrictingNames = RestrictingNames {
    names: &[
        ("--permission-mode", "--permission-mode"),
        ("--permission-prompt-tool", "--permission-prompt-tool"),
        ("--allow-dangerously-skip-permissions", "--allow-dangerously-skip-permissions"),
        ("--dangerously-skip-permissions", "--dangerously-skip-permissions"),
        ("--allowedTools", "--allowedTools"),
        ("--disallowedTools", "--disallowedTools"),
        ("--tools", "--tools"),
        ("--add-dir", "--add-dir"),
        ("--mcp-config", "--mcp-config"),
        ("--strict-mcp-config", "--strict-mcp-config"),
        ("--settings", "--settings"),
        ("--setting-sources", "--setting-sources"),
        ("--managed-settings", "--managed-settings"),
        ("--max-turns", "--max-turns"),
        ("--max-budget-usd", "--max-budget-usd"),
        ("--no-session-persistence", "--no-session-persistence"),
        ("--await-initialize", "--await-initialize"),
        ("--initialize-fields", "--initialize-fields"),
        ("--agents", "--agents"),
        ("--plugin-dir", "--plugin-dir"),
        ("--safe-mode", "--safe-mode"),
    ],
    others: &[
        ("--output-format", "--output-format"),
        ("--input-format", "--input-format"),
        ("--model", "--model"),
        ("--fallback-model", "--fallback-model"),
        ("--thinking", "--thinking"),
        ("--max-thinking-tokens", "--max-thinking-tokens"),
        ("--effort", "--effort"),
        ("--json-schema", "--json-schema"),
        ("--system-prompt", "--system-prompt"),
        ("--system-prompt-file", "--system-prompt-file"),
        ("--append-system-prompt", "--append-system-prompt"),
        ("--resume", "--resume"),
        ("--session-id", "--session-id"),
        ("--continue", "--continue"),
        ("--fork-session", "--fork-session"),
        ("--include-partial-messages", "--include-partial-messages"),
        ("--replay-user-messages", "--replay-user-messages"),
    ],
    values: &[
        ("acceptEdits", "--permission-mode"),
        ("bypassPermissions", "--permission-mode"),
        ("dontAsk", "--permission-mode"),
    ],
    short: &["-r", "-n"],
};

impl StreamOptions {
    /// Parses the arguments.
    ///
    /// Each harmless option that is ignored gets a warning, for standard error.
    ///
    /// ```
    /// use pintle_compat::claude::StreamOptions;
    ///
    /// let arguments = ["--output-format", "stream-json", "--verbose", "--disallowedTools=Bash(rm *)", "--betas=x"];
    /// let parsed = StreamOptions::parse(&arguments)?;
    /// assert_eq!(parsed.options.disallowed_tools[0].to_string(), "Bash(rm *)");
    /// assert_eq!(parsed.warnings.len(), 1);
    /// assert!(StreamOptions::parse(&["--managed-settings", "{}"]).is_err());
    /// # Ok::<(), pintle_compat::OptionError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`OptionError`] for an unsupported option that could restrict the session, and for invalid arguments.
    pub fn parse<S: AsRef<str>>(arguments: &[S]) -> Result<ParsedOptions<Self>, OptionError> {
        let mut options = Self::default();
        let mut words = CommandWords::new(arguments, &AUTHORITY);
        while let Some(word) = words.next() {
            match word {
                CommandWord::Option(flag) => options.flag(flag, &mut words)?,
                // Prompts are lines of standard input.
                CommandWord::Plain(word) => return Err(unexpected(&word)),
            }
        }
        if options.forks && !options.continues && options.resume.is_none() {
            return Err(OptionError::MissingValue { option: "--fork-session without --resume".to_owned() });
        }
        if options.continues && options.resume.is_some() {
            return Err(OptionError::Conflict { first: "--continue", second: "--resume" });
        }
        if options.session_id.is_some() && (options.continues || options.resume.is_some()) && !options.forks {
            return Err(OptionError::Conflict { first: "--session-id", second: "--resume" });
        }
        Ok(ParsedOptions { options, warnings: words.warnings })
    }

    fn flag(&mut self, flag: Flag, words: &mut CommandWords) -> Result<(), OptionError> {
        match flag.name.as_str() {
            "--output-format" => {
                words.choice(flag, &[("stream-json", ())])?;
            }
            "--input-format" => {
                words.choice(flag, &[("stream-json", ())])?;
            }
            "--model" => self.model = Some(words.value(flag)?),
            "--fallback-model" => self.fallback_model = Some(words.value(flag)?),
            "--max-turns" => self.max_turns = Some(number(flag, words)?),
            "--max-budget-usd" => self.max_budget_usd = Some(dollars(flag, words)?),
            "--thinking" => self.thinking = Some(words.choice(flag, THINKING)?),
            "--max-thinking-tokens" => {
                let tokens = number(flag, words)?;
                self.thinking = Some(if tokens == 0 { Thinking::Disabled } else { Thinking::Budget(tokens) });
            }
            "--effort" => self.effort = Some(words.value(flag)?),
            "--json-schema" => self.json_schema = Some(schema(flag, words)?),
            "--system-prompt" => self.system_prompt = Some(words.value(flag)?),
            "--system-prompt-file" => self.system_prompt_file = Some(words.value(flag)?.into()),
            "--append-system-prompt" => self.append_system_prompt = Some(words.value(flag)?),
            _ => return self.session_flag(flag, words),
        }
        Ok(())
    }

    fn session_flag(&mut self, flag: Flag, words: &mut CommandWords) -> Result<(), OptionError> {
        match flag.name.as_str() {
            "--resume" | "-r" => self.resume = Some(words.value(flag)?),
            "--session-id" => self.session_id = Some(words.value(flag)?),
            "--add-dir" => self.added_directories.push(words.value(flag)?.into()),
            "--mcp-config" => self.mcp_configs.push(words.value(flag)?),
            "--setting-sources" => self.setting_sources = Some(sources(flag, words)?),
            "--settings" => self.take_settings(flag, words)?,
            "--initialize-fields" => {
                let fields = &[("settings", ()), ("disallowedTools", ())];
                let (option, value) = (flag.name.clone(), words.value(flag)?);
                for field in value.split(',') {
                    crate::command_line::choice(&option, field, fields)?;
                }
            }
            _ => return self.permission_flag(flag, words),
        }
        Ok(())
    }

    fn permission_flag(&mut self, flag: Flag, words: &mut CommandWords) -> Result<(), OptionError> {
        match flag.name.as_str() {
            "--permission-mode" => {
                let mode = words.choice(flag, MODES)?;
                // As in Claude Code, the command line is the consent. Not every SDK has an option for the other flag.
                self.may_bypass |= mode == PermissionMode::BypassPermissions;
                self.permission_mode = Some(mode);
            }
            "--permission-prompt-tool" => {
                words.choice(flag, &[("stdio", ())])?;
                self.asks_host = true;
            }
            "--allowedTools" | "--allowed-tools" => self.allowed_tools.extend(rules(flag, words)?),
            "--disallowedTools" | "--disallowed-tools" => self.disallowed_tools.extend(rules(flag, words)?),
            "--tools" => {
                let value = words.value(flag)?;
                let names = || value.split([',', ' ']).filter(|name| !name.is_empty()).map(str::to_owned);
                self.tools = if value == "default" { None } else { Some(names().collect()) };
            }
            _ => return self.switch(flag, words),
        }
        Ok(())
    }

    fn switch(&mut self, flag: Flag, words: &mut CommandWords) -> Result<(), OptionError> {
        match flag.name.as_str() {
            // The output is always the complete stream.
            "--verbose" | "--print" | "-p" => {}
            "--include-partial-messages" => self.partial_messages = true,
            "--replay-user-messages" => self.replay_user_messages = true,
            "--continue" | "-c" => self.continues = true,
            "--fork-session" => self.forks = true,
            "--no-session-persistence" => self.ephemeral = true,
            "--strict-mcp-config" => self.strict_mcp_config = true,
            "--await-initialize" => self.awaits_initialize = true,
            "--allow-dangerously-skip-permissions" => self.may_bypass = true,
            "--dangerously-skip-permissions" => {
                self.may_bypass = true;
                self.permission_mode = Some(PermissionMode::BypassPermissions);
            }
            _ => return without_meaning(flag, words),
        }
        CommandWords::no_value(&flag)
    }

    fn take_settings(&mut self, flag: Flag, words: &mut CommandWords) -> Result<(), OptionError> {
        let value = words.value(flag)?;
        if value.trim_start().starts_with('{') {
            self.settings = ClaudeSettings::parse(&value, &mut words.warnings)?;
        } else {
            self.settings_file = Some(value.into());
        }
        Ok(())
    }
}

fn without_meaning(flag: Flag, words: &mut CommandWords) -> Result<(), OptionError> {
    if let Some((_, has_value, reason)) = HARMLESS.iter().find(|(name, ..)| *name == flag.name) {
        return words.ignore(flag, *has_value, reason);
    }
    if let Some((name, reason)) = REFUSED.iter().find(|(name, _)| *name == flag.name) {
        return Err(restricting(name, *reason));
    }
    // Prompts are lines of standard input, so a word after an option is its value.
    let next = words.unknown(&flag, &[])?;
    words.warn_unknown(&flag.name, next.or(flag.value).as_deref());
    Ok(())
}

fn number<T: std::str::FromStr>(flag: Flag, words: &mut CommandWords) -> Result<T, OptionError> {
    let (option, value) = (flag.name.clone(), words.value(flag)?);
    value.parse().map_err(|_| invalid(&option, &value, "a whole number"))
}

fn dollars(flag: Flag, words: &mut CommandWords) -> Result<f64, OptionError> {
    let (option, value) = (flag.name.clone(), words.value(flag)?);
    let amount = value.parse().ok().filter(|amount: &f64| amount.is_finite() && *amount >= 0.0);
    amount.ok_or_else(|| invalid(&option, &value, "an amount in US dollars"))
}

fn schema(flag: Flag, words: &mut CommandWords) -> Result<Value, OptionError> {
    let (option, value) = (flag.name.clone(), words.value(flag)?);
    let schema = serde_json::from_str(&value).ok().filter(Value::is_object);
    schema.ok_or_else(|| invalid(&option, &value, "a JSON schema"))
}

fn sources(flag: Flag, words: &mut CommandWords) -> Result<Vec<SettingSource>, OptionError> {
    let (option, value) = (flag.name.clone(), words.value(flag)?);
    let names = value.split(',').map(str::trim).filter(|name| !name.is_empty());
    names.map(|name| crate::command_line::choice(&option, name, SOURCES)).collect()
}

fn rules(flag: Flag, words: &mut CommandWords) -> Result<Vec<ToolRule>, OptionError> {
    let (option, value) = (flag.name.clone(), words.value(flag)?);
    ToolRule::parse_list(&value).map_err(|error| invalid(&option, &error.0, "rules on tools"))
}
