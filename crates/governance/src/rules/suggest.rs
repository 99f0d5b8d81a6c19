//! Suggestions of rules for a call.

use std::path::Path;

use pintle_tools::{Effect, ToolKind};

use super::{Address, CallFacts, Rule};

/// Maximum number of commands in a line for which rules are suggested.
const MAX_COMMANDS: usize = 32;

impl CallFacts {
    /// Returns rules that together name exactly calls like this one: one for each command of a line, each file, each
    /// host. An approver of the call may accept, widen or narrow them. Empty if rules cannot name it exactly, as for a
    /// line with substitutions, or if the line has more than 32 commands.
    #[must_use]
    pub fn suggested_rules(&self, workspace: &Path) -> Vec<String> {
        let rules = self.rules(workspace).unwrap_or_default();
        // A suggestion must be a valid rule and name this call.
        let names_call = |rule: &String| {
            Rule::parse(rule, workspace).is_ok_and(|rule| rule.touches(self, &self.judged_paths()))
        };
        if rules.iter().all(names_call) { rules } else { Vec::new() }
    }

    fn rules(&self, workspace: &Path) -> Option<Vec<String>> {
        if self.undecided.is_some() {
            return None;
        }
        if self.is_of_server() {
            // The arguments of an MCP tool do not show which narrower rule would suffice.
            return Some(vec![self.tool.clone()]);
        }
        if let Some(line) = &self.command {
            let is_exact = |word: &String| {
                !word.is_empty() && !word.contains(char::is_whitespace) && !word.contains('*')
            };
            let command =
                |words: &[String]| words.iter().all(is_exact).then(|| self.rule("command", &words.join(" ")));
            let is_short = line.commands().take(MAX_COMMANDS + 1).count() <= MAX_COMMANDS;
            return if line.is_plain() && is_short { line.commands().map(command).collect() } else { None };
        }
        if !self.addresses.is_empty() {
            let host = |address: &Address| match address {
                Address::Host(host) => Some(self.rule("host", host)),
                Address::Unreadable => None,
            };
            return self.addresses.iter().map(host).collect();
        }
        let read = self.reads.iter().filter(|path| !self.writes.contains(path));
        let mut paths = self.writes.iter().chain(read).peekable();
        if paths.peek().is_none() {
            return (self.effect == Effect::Read).then(|| vec![self.name().to_owned()]);
        }
        let path = |path: &std::path::PathBuf| {
            let shown = path.strip_prefix(workspace).unwrap_or(path).to_str()?;
            let shown = if shown.is_empty() { path.to_str()? } else { shown };
            let is_plain = !shown.contains(['*', '?', '[', ']', '{', '}', '\\', '(', ')']);
            is_plain.then(|| self.rule("path", shown))
        };
        paths.map(path).collect()
    }

    /// Returns the name by which rules know the tool.
    fn name(&self) -> &str {
        if ToolKind::from_name(&self.kind).is_some() { &self.kind } else { &self.tool }
    }

    fn rule(&self, target: &str, text: &str) -> String {
        match ToolKind::from_name(&self.kind) {
            Some(_) => format!("{}({text})", self.kind),
            None => format!("{}({target}:{text})", self.tool),
        }
    }
}
