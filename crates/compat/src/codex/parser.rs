//! Parser of the command line of `codex exec`.

use super::config;
use super::options::{APPROVAL_POLICIES, ExecOptions, ResumeTarget, SANDBOX_MODES};
use super::permissions::StatedPermissions;
use super::positionals::Positionals;
use crate::command_line::{
    CommandWord, CommandWords, Flag, OptionError, ParsedOptions, RestrictingNames, choice, find_misspelt,
    restricting,
};

/// Ignored options, whether they take a value, and why ignoring them is harmless.
const HARMLESS: &[(&str, bool, &str)] = &[
    ("--search", false, "use --config web_search"),
    ("--no-alt-screen", false, "there is no screen"),
    ("--progress-cursor", false, "there is no progress display"),
    ("--include-plan-tool", false, "the toolset determines the tools"),
    ("--dangerously-bypass-hook-trust", false, "it is not granted: hooks of a project need `pintle trust`"),
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

/// Options by their spellings, with separate lists of those that restrict a run or grant it something, and of their
/// values.
const AUTHORITY: RestrictingNames = RestrictingNames {
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
        ("--cwd", "--cd"),
        ("--chdir", "--cd"),
        ("--directory", "--cd"),
        ("--workdir", "--cd"),
        ("--working-directory", "--cd"),
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
    others: &[
        ("--model", "--model"),
        ("--image", "--image"),
        ("--json", "--json"),
        ("--experimental-json", "--json"),
        ("--output-format", "--json"),
        ("--output-schema", "--output-schema"),
        ("--schema", "--output-schema"),
        ("--json-schema", "--output-schema"),
        ("--output-last-message", "--output-last-message"),
        ("--output-file", "--output-last-message"),
        ("--last-message", "--output-last-message"),
        ("--skip-git-repo-check", "--skip-git-repo-check"),
        ("--resume", "resume"),
        ("--session-id", "resume"),
        ("--last", "resume --last"),
        ("--continue", "resume --last"),
        ("--help", "--help"),
        ("--version", "--version"),
    ],
    values: &[
        ("read-only", "--sandbox"),
        ("workspace-write", "--sandbox"),
        ("danger-full-access", "--sandbox"),
    ],
    short: &["-s", "-a", "-c", "-C", "-p", "-m", "-o", "-i"],
};

/// Words that are commands, and never the value of an unknown option.
const COMMANDS: &[&str] = &["exec", "e", "resume", "review"];

/// Partially parsed command line.
#[derive(Debug)]
pub(super) struct ExecParser {
    words: CommandWords,
    options: ExecOptions,
    /// Options of the configuration.
    configured: ExecOptions,
    permissions: StatedPermissions,
    positionals: Positionals,
}

impl ExecParser {
    pub(super) fn new<S: AsRef<str>>(arguments: &[S]) -> Self {
        Self {
            words: CommandWords::new(arguments, &AUTHORITY),
            options: ExecOptions::default(),
            configured: ExecOptions::default(),
            permissions: StatedPermissions::default(),
            positionals: Positionals::default(),
        }
    }

    /// Parses all words. Fails as [`ExecOptions::parse`].
    pub(super) fn parse(mut self) -> Result<ParsedOptions<ExecOptions>, OptionError> {
        while let Some(word) = self.words.next() {
            match word {
                CommandWord::Option(flag) => self.flag(flag)?,
                CommandWord::Plain(word) => self.positionals.add(word, &mut self.words),
            }
        }
        let Self { mut words, options, configured, permissions, positionals } = self;
        let mut options = options.over(configured);
        permissions.apply(&mut options, &mut words.warnings)?;
        let is_resume = positionals.is_resume();
        let found = positionals.resolve(options.resume.is_none(), &mut words)?;
        options.prompt = found.prompt;
        options.resume = options.resume.or(found.session.map(ResumeTarget::Id));
        if is_resume && options.resume.is_none() {
            return Err(OptionError::MissingSession { ignored: words.warnings });
        }
        Ok(ParsedOptions { options, warnings: words.warnings })
    }

    fn flag(&mut self, flag: Flag) -> Result<(), OptionError> {
        match flag.name.as_str() {
            "--config" | "-c" => {
                let assignment = self.words.value(flag)?;
                let warnings = &mut self.words.warnings;
                config::apply(&assignment, &mut self.configured, &mut self.permissions, warnings)?;
            }
            "--model" | "-m" => self.options.model = Some(self.words.value(flag)?),
            "--sandbox" | "-s" => {
                let (option, mode) = self.stated(flag, SANDBOX_MODES)?;
                self.permissions.sandbox.state(option, mode);
            }
            "--ask-for-approval" | "-a" => {
                let (option, policy) = self.stated(flag, APPROVAL_POLICIES)?;
                self.permissions.approval.state(option, policy);
            }
            "--cd" | "-C" => self.options.directory = Some(self.words.value(flag)?.into()),
            "--add-dir" => self.options.added_directories.push(self.words.value(flag)?.into()),
            "--output-schema" => self.options.output_schema = Some(self.words.value(flag)?.into()),
            "--output-last-message" | "-o" => {
                self.options.last_message = Some(self.words.value(flag)?.into());
            }
            "--image" | "-i" => self.options.images.push(self.words.value(flag)?.into()),
            _ => return self.switch(flag),
        }
        Ok(())
    }

    fn switch(&mut self, flag: Flag) -> Result<(), OptionError> {
        match flag.name.as_str() {
            "--json" | "--experimental-json" => self.options.json = true,
            "--skip-git-repo-check" => self.options.skip_git_check = true,
            "--ephemeral" => self.options.ephemeral = true,
            "--last" if self.positionals.is_resume() => self.options.resume = Some(ResumeTarget::Last),
            "--full-auto" => self.permissions.is_full_auto = true,
            "--dangerously-bypass-approvals-and-sandbox" | "--yolo" => {
                self.permissions.bypass = Some(flag.name.clone());
            }
            _ => return self.without_meaning(flag),
        }
        CommandWords::no_value(&flag)
    }

    /// Reads the value of an option, which must be one of `known`. Returns the option with its value as text, and the
    /// value.
    fn stated<T: Copy>(&mut self, flag: Flag, known: &[(&str, T)]) -> Result<(String, T), OptionError> {
        let option = flag.name.clone();
        let value = self.words.value(flag)?;
        let meaning = choice(&option, &value, known)?;
        Ok((format!("{option} {value}"), meaning))
    }

    fn without_meaning(&mut self, flag: Flag) -> Result<(), OptionError> {
        if let Some((_, has_value, reason)) = HARMLESS.iter().find(|(name, ..)| *name == flag.name) {
            return self.words.ignore(flag, *has_value, reason);
        }
        if let Some((name, reason)) = RESTRICTING.iter().find(|(name, _)| *name == flag.name) {
            return Err(restricting(name, *reason));
        }
        let Some(next) = self.words.unknown(&flag, COMMANDS)? else {
            self.words.warn_unknown(&flag.name, flag.value.as_deref());
            return Ok(());
        };
        // A misspelt harmless option is as harmless as the known one, and takes a value if that one does.
        let meant = find_misspelt(&flag.name, HARMLESS.iter().map(|(name, ..)| *name));
        let meant = meant.and_then(|meant| HARMLESS.iter().find(|(name, ..)| *name == meant));
        match meant {
            Some((_, true, _)) => self.words.warn_unknown(&flag.name, Some(&next)),
            Some((_, false, _)) => {
                self.words.warn_unknown(&flag.name, None);
                self.positionals.add(next, &mut self.words);
            }
            None => self.positionals.add_after(flag.name, next),
        }
        Ok(())
    }
}
