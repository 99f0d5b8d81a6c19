//! Commands that run at the events of a session.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::event::{HookEvent, HookEventExt as _};
use super::programs;
use crate::pattern::Pattern;
use crate::tool_names;

/// Time-out of a command that does not set one.
pub(super) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// Longest time-out of a command.
pub(super) const MAX_TIMEOUT: Duration = Duration::from_secs(600);

/// Commands of hooks, in the order in which they were read. Their answers are merged in that order.
///
/// ```
/// use pintle_governance::HookCommands;
///
/// let commands = HookCommands::parse(
///     "hooks.toml",
///     r#"
///     [[PreToolUse]]
///     matcher = "shell|edit_file"
///     command = "./check.sh"
///     timeout = "10s"
///     required = true
///
///     [[Stop]]
///     command = "cargo test"
///     "#,
/// )?;
/// assert_eq!(commands.len(), 2);
/// # Ok::<(), pintle_governance::HooksError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct HookCommands {
    commands: Vec<HookCommand>,
    warnings: Vec<String>,
}

/// Command that runs at an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookCommand {
    pub(super) event: HookEvent,
    /// Patterns, one of which must match; all calls if `None`.
    pub(super) matcher: Option<Vec<Pattern>>,
    pub(super) command: String,
    pub(super) timeout: Duration,
    pub(super) is_required: bool,
    pub(super) source: String,
}

impl HookCommand {
    /// Creates a command for all calls, with a time-out of 60 seconds. `command` is a shell line; `source` is its origin,
    /// for records and messages.
    #[must_use]
    pub fn new(event: HookEvent, command: impl Into<String>, source: impl Into<String>) -> Self {
        Self {
            event,
            matcher: None,
            command: command.into(),
            timeout: DEFAULT_TIMEOUT,
            is_required: false,
            source: source.into(),
        }
    }

    /// Limits it to tools whose name or kind matches one of the patterns. For [`SessionStart`](HookEvent::SessionStart),
    /// the patterns are sources. Other events ignore them.
    ///
    /// The name of a built-in tool in another toolset, such as `Bash`, matches all tools of its kind.
    #[must_use]
    pub fn with_matcher(mut self, patterns: impl IntoIterator<Item = Pattern>) -> Self {
        self.matcher = Some(patterns.into_iter().collect());
        self
    }

    /// Sets the time-out, at most ten minutes.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout.min(MAX_TIMEOUT);
        self
    }

    /// Denies a call if the command fails to answer. Only for [`PreToolUse`](HookEvent::PreToolUse).
    #[must_use]
    pub fn required(mut self) -> Self {
        self.is_required = true;
        self
    }

    /// Returns the event.
    #[must_use]
    pub fn event(&self) -> HookEvent {
        self.event
    }

    /// Returns the shell line.
    #[must_use]
    pub fn command(&self) -> &str {
        &self.command
    }

    /// Returns the time-out.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Returns whether a call is denied if the command fails to answer.
    #[must_use]
    pub fn is_required(&self) -> bool {
        self.is_required
    }

    /// Returns the origin of the command, such as `hooks.toml:3`.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Returns the files below `workspace` that the words of the command may name, so that trust in the command can cover
    /// their contents. Missing files are included, since they could be created later.
    ///
    /// Scripts that a script starts are not listed. Neither are paths with variables other than the project's directory
    /// (`PINTLE_PROJECT_DIR`, `CLAUDE_PROJECT_DIR`) and `PWD`.
    #[must_use]
    pub fn programs(&self, workspace: &Path) -> BTreeSet<PathBuf> {
        programs::find_paths(&self.command, workspace)
    }

    fn is_for(&self, event: HookEvent, subjects: &[&str]) -> bool {
        self.event == event
            && match &self.matcher {
                Some(patterns) if event.has_matcher() => {
                    patterns.iter().any(|pattern| tool_names::is_named(pattern, subjects))
                }
                Some(_) | None => true,
            }
    }
}

impl HookCommands {
    /// Creates an empty set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a command.
    pub fn add(&mut self, command: HookCommand) {
        self.commands.push(command);
    }

    /// Adds the commands and warnings of another set.
    pub fn extend(&mut self, other: Self) {
        self.commands.extend(other.commands);
        self.warnings.extend(other.warnings);
    }

    pub(super) fn warn(&mut self, warning: String) {
        self.warnings.push(warning);
    }

    /// Returns the number of commands.
    #[must_use]
    pub fn len(&self) -> usize {
        self.commands.len()
    }

    /// Returns whether there are no commands.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    /// Returns the commands in order.
    pub fn iter(&self) -> impl Iterator<Item = &HookCommand> {
        self.commands.iter()
    }

    /// Returns warnings about parts that were left out when the files were read, such as unknown events. Each names the
    /// file.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Returns the [programs](HookCommand::programs) of all commands.
    #[must_use]
    pub fn programs(&self, workspace: &Path) -> BTreeSet<PathBuf> {
        self.commands.iter().flat_map(|command| command.programs(workspace)).collect()
    }

    /// Returns the first unknown tool in a matcher, with its command, which never runs for that tool. Names with `*` are
    /// patterns and need not match a tool. `is_known` receives a name; names of built-in tools in all toolsets are known.
    #[must_use]
    pub fn unknown_tool(&self, is_known: impl Fn(&str) -> bool) -> Option<(&str, &HookCommand)> {
        self.commands.iter().filter(|command| command.event.is_about_calls()).find_map(|command| {
            let mut names = command.matcher.iter().flatten().filter(|pattern| !pattern.has_wildcard());
            let unknown = names
                .find(|pattern| !tool_names::is_built_in(pattern.as_str()) && !is_known(pattern.as_str()))?;
            Some((unknown.as_str(), command))
        })
    }

    /// Returns the commands that run at an event. Matchers are compared with `subjects`.
    pub(super) fn for_event(&self, event: HookEvent, subjects: &[&str]) -> Vec<&HookCommand> {
        self.commands.iter().filter(|command| command.is_for(event, subjects)).collect()
    }
}
