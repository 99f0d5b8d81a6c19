//! Flags of a run that its session remembers.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::LazyLock;

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

/// Flag of a run.
struct RunFlag {
    /// Id of the argument.
    id: String,
    /// Name without dashes.
    name: String,
    takes_value: bool,
}

/// All flags of a run, which other commands with a session have as well.
static FLAGS: LazyLock<Vec<RunFlag>> = LazyLock::new(|| {
    let command = Arguments::command();
    let run = command.find_subcommand("run").into_iter();
    let flags = run.flat_map(|run| run.get_arguments()).filter_map(|argument| {
        let name = argument.get_long()?.to_owned();
        let takes_value = argument.get_action().takes_values();
        Some(RunFlag { id: argument.get_id().to_string(), name, takes_value })
    });
    flags.collect()
});

/// Returns the flags on the command line.
fn on_command_line(matches: &ArgMatches) -> impl Iterator<Item = &'static RunFlag> {
    FLAGS.iter().filter(|flag| matches.value_source(&flag.id) == Some(ValueSource::CommandLine))
}

/// Returns the names of the flags on the command line.
pub(super) fn typed(matches: &ArgMatches) -> BTreeSet<String> {
    on_command_line(matches).map(|flag| flag.name.clone()).collect()
}

/// Returns the flags on the command line that a session remembers.
pub(super) fn remember(matches: &ArgMatches) -> Flags {
    let given = on_command_line(matches).filter(|flag| REMEMBERED.contains(&flag.name.as_str()));
    let given = given.map(|flag| {
        let values = matches.get_raw(&flag.id).filter(|_| flag.takes_value).into_iter().flatten();
        let value = |value: &std::ffi::OsStr| {
            // A relative path means another file in another directory.
            let is_path = PATHS.contains(&flag.name.as_str());
            let path = is_path.then(|| std::path::absolute(Path::new(value)).ok()).flatten();
            path.map_or_else(|| value.to_string_lossy().into_owned(), |path| path.display().to_string())
        };
        (flag.name.clone(), values.map(value).collect())
    });
    given.collect()
}

/// Returns the rules among the flags that a session remembers.
pub(crate) fn session_rules(remembered: &[String]) -> Flags {
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
