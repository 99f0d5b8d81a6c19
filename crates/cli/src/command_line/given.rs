//! Flags of a run that its session remembers.

use std::path::Path;

use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory as _};

use crate::args::Arguments;
use crate::sessions::Flags;

/// They select environment, model and tools.
const REMEMBERED: &[&str] = &[
    "env",
    "dir",
    "provider",
    "model",
    "base-url",
    "script",
    "dialect",
    "profile",
    "reasoning-effort",
    "catalog",
    "toolset",
    "mode",
    "after-plan",
    "wait-approval",
    "sandbox",
    "no-sandbox",
    "network",
    "confine",
    "read-before-write",
    "mcp-config",
    "no-mcp",
];

/// Flags with rules that a client of a server sets for a session. The rules of a command line apply to one run.
const SESSION_RULES: &[&str] = &["allow", "deny"];

/// Flags whose value is the path of a file.
const PATHS: &[&str] = &["script", "profile", "catalog", "mcp-config"];

/// Returns the flags on the command line that a session remembers.
pub(super) fn remember(matches: &ArgMatches) -> Flags {
    let command = Arguments::command();
    let Some(run) = command.find_subcommand("run") else { return Flags::new() };
    let given = run.get_arguments().filter_map(|argument| {
        let (id, long) = (argument.get_id().as_str(), argument.get_long()?);
        let is_given = matches.value_source(id) == Some(ValueSource::CommandLine);
        if !is_given || !REMEMBERED.contains(&long) {
            return None;
        }
        let takes_value = argument.get_action().takes_values();
        let values = matches.get_raw(id).filter(|_| takes_value).into_iter().flatten();
        let value = |value: &std::ffi::OsStr| {
            // A relative path means another file in another directory.
            let path = PATHS.contains(&long).then(|| std::path::absolute(Path::new(value)).ok()).flatten();
            path.map_or_else(|| value.to_string_lossy().into_owned(), |path| path.display().to_string())
        };
        Some((long.to_owned(), values.map(value).collect()))
    });
    given.collect()
}

/// Returns the rules among the flags that a session remembers.
pub(super) fn session_rules(remembered: &[String]) -> Flags {
    let mut rules = Flags::new();
    for word in remembered {
        let flag = word.strip_prefix("--").and_then(|word| word.split_once('='));
        if let Some((name, rule)) = flag.filter(|(name, _)| SESSION_RULES.contains(name)) {
            rules.entry(name.to_owned()).or_default().push(rule.to_owned());
        }
    }
    rules
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_of_a_session_are_found_among_its_flags() {
        let words = ["--mode=plan", "--deny=shell", "--allow=shell(a=b)", "--deny=@write", "--no-sandbox"];
        let rules = session_rules(&words.map(str::to_owned));
        let expected = [("allow", &["shell(a=b)"][..]), ("deny", &["shell", "@write"])];
        let expected: Flags = expected
            .into_iter()
            .map(|(name, rules)| (name.to_owned(), rules.iter().map(|rule| (*rule).to_owned()).collect()))
            .collect();
        assert_eq!(rules, expected);
    }
}
