//! Limits on arguments.

use std::collections::BTreeSet;

use pintle_tools::gate::CommandLine;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Grant;
use crate::pattern::Pattern;

/// Arguments from which the command of a call is read.
const COMMANDS: [&str; 2] = ["/command", "/cmd"];

/// Limit on an argument of some tools.
///
/// Arguments are compared as text. For the command line of a tool that runs commands, a pattern with `*` allows one command
/// only, without anything that the shell would expand, substitute or redirect: `ls*` does not allow `ls; rm x`. A pattern
/// without `*` allows exactly that line, and `*` alone every line.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ArgumentScope {
    /// Names or kinds of the tools: `shell` limits the tools for commands of all models.
    pub tool: Pattern,
    /// JSON pointer of the argument, such as `/url`. `/command` and `/cmd` are the same argument.
    pub pointer: String,
    /// Values that the argument may have: a text as it is, another value as JSON. A missing argument is nothing of it.
    pub allowed: BTreeSet<Pattern>,
}

impl ArgumentScope {
    /// Creates a limit.
    #[must_use]
    pub fn new(
        tool: Pattern,
        pointer: impl Into<String>,
        allowed: impl IntoIterator<Item = Pattern>,
    ) -> Self {
        Self { tool, pointer: pointer.into(), allowed: allowed.into_iter().collect() }
    }

    /// Returns whether a grant has a limit that is at least as strict as this one.
    pub(super) fn is_kept_by(&self, child: &Grant) -> bool {
        let limits = |scope: &Self| {
            scope.pointer == self.pointer
                && scope.tool.covers(&self.tool)
                && scope.allowed.iter().all(|pattern| self.covers(pattern))
        };
        child.arguments.iter().any(limits)
    }

    fn covers(&self, narrow: &Pattern) -> bool {
        let lets_through = |wide: &Pattern| {
            let is_same_kind = narrow.has_wildcard() || is_one_command(&CommandLine::parse(narrow.as_str()));
            wide.covers(narrow) && (!self.is_command() || is_any_line(wide) || is_same_kind)
        };
        self.allowed.iter().any(lets_through)
    }

    fn allows(&self, arguments: &Value, runs_commands: bool) -> bool {
        let pointers = if self.is_command() { &COMMANDS[..] } else { &[self.pointer.as_str()] };
        // A call may have both.
        let values: Vec<&Value> = pointers.iter().filter_map(|pointer| arguments.pointer(pointer)).collect();
        let is_command = runs_commands && self.is_command();
        let fits = |pattern: &Pattern| {
            !is_command || is_any_line(pattern) || is_one_command(&CommandLine::of_arguments(arguments))
        };
        let is_allowed = |value: &&Value| {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            self.allowed.iter().any(|pattern| pattern.matches(&text) && fits(pattern))
        };
        !values.is_empty() && values.iter().all(is_allowed)
    }

    fn is_command(&self) -> bool {
        COMMANDS.contains(&self.pointer.as_str())
    }
}

/// Returns whether a pattern matches one exact line, or every line.
fn is_any_line(pattern: &Pattern) -> bool {
    !pattern.has_wildcard() || pattern.covers(&Pattern::any())
}

fn is_one_command(line: &CommandLine) -> bool {
    line.is_plain() && line.commands().count() == 1
}

impl Grant {
    /// Returns why it does not allow these arguments; `None` if it does.
    pub(crate) fn argument_objection(
        &self,
        (tool, kind): (&str, &str),
        arguments: &Value,
        runs_commands: bool,
    ) -> Option<String> {
        let is_limited = |scope: &&ArgumentScope| scope.tool.matches(tool) || scope.tool.matches(kind);
        let wrong =
            self.arguments.iter().filter(is_limited).find(|scope| !scope.allows(arguments, runs_commands))?;
        let name = wrong.pointer.trim_start_matches('/');
        let allowed: Vec<String> = wrong.allowed.iter().map(|pattern| format!("`{pattern}`")).collect();
        let single = if runs_commands
            && wrong.is_command()
            && wrong.allowed.iter().any(|pattern| !is_any_line(pattern))
        {
            ", as one command without expansions and redirections"
        } else {
            ""
        };
        Some(match allowed.as_slice() {
            [] => format!("it allows no value of `{name}`"),
            allowed => format!("of `{name}` it allows only {}{single}", allowed.join(", ")),
        })
    }
}
