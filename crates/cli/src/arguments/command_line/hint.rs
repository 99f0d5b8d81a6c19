//! Hints for a prompt that was given without quotes, and for options of other agents.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue};

use super::definition;

/// Longest task that a hint repeats, in characters.
const MAX_TASK: usize = 100;

/// How to continue sessions.
const CONTINUING: &str = "`pintle --continue` continues the newest session, `pintle --resume ID` another one";

/// Options of other agents, and their equivalents here.
const FOREIGN_OPTIONS: &[(&str, &str)] = &[
    ("-p", "`pintle run \"PROMPT\"` does a task without a conversation"),
    ("--print", "`pintle run \"PROMPT\"` does a task without a conversation"),
    ("--cd", "`--dir DIR` selects the working directory"),
    ("-C", "`--dir DIR` selects the working directory"),
    ("--last", CONTINUING),
    ("--full-auto", "`--mode auto` runs everything in the sandbox"),
];

/// Returns the command line that prints the help of the subcommand that a command line names.
pub(super) fn help_command(args: &[OsString]) -> String {
    let (mut command, mut line) = (definition::complete(), "pintle".to_owned());
    for word in args.iter().skip(1).map_while(|word| word.to_str()) {
        let Some(subcommand) = command.find_subcommand(word).cloned() else { break };
        line = format!("{line} {word}");
        command = subcommand;
    }
    line + " --help"
}

fn context(error: &clap::Error, kind: ContextKind) -> Option<&str> {
    match error.get(kind) {
        Some(ContextValue::String(word)) => Some(word.as_str()),
        Some(_) | None => None,
    }
}

/// Returns the hint for an option of another agent that the parser rejected.
fn for_option_of_others(error: &clap::Error) -> Option<&'static str> {
    let found = context(error, ContextKind::InvalidArg)?;
    FOREIGN_OPTIONS.iter().find(|(option, _)| *option == found).map(|(_, hint)| *hint)
}

/// Returns whether the parser's tips do not help: for options of other agents, and if they name a hidden flag.
pub(super) fn misleads(error: &clap::Error) -> bool {
    let suggests_hidden = |suggested: &str| {
        let command = definition::complete();
        let mut arguments = command.get_subcommands().flat_map(clap::Command::get_arguments);
        arguments.any(|argument| {
            argument.is_hide_set()
                && argument.get_long().is_some_and(|long| suggested.strip_prefix("--") == Some(long))
        })
    };
    for_option_of_others(error).is_some()
        || context(error, ContextKind::SuggestedArg).is_some_and(suggests_hidden)
}

/// Returns a hint if the parser rejected an option of another agent, or arguments that look like a prompt.
pub(super) fn for_error(error: &clap::Error, args: &[OsString]) -> Option<String> {
    if let Some(hint) = for_option_of_others(error) {
        return Some(hint.to_owned());
    }
    let args: Vec<&str> = args.iter().filter_map(|argument| argument.to_str()).collect();
    if let ["chat", "resume", _, ..] = args.get(1..)? {
        return Some(CONTINUING.to_owned());
    }
    let context = |kind| context(error, kind);
    let name = args.get(1).filter(|name| matches!(**name, "ask" | "chat" | "run"))?;
    let extra = context(ContextKind::InvalidArg).filter(|word| !word.starts_with('-'))?;
    // The prompt is the word before the first surplus one.
    let prompt =
        args.iter().position(|argument| *argument == extra)?.checked_sub(1).filter(|index| *index > 1)?;
    let words = args.get(prompt..)?;
    Some(format!("to give a prompt of several words: {}", command_line(name, words)))
}

/// Returns a command line that gives the words up to the next flag as one quoted prompt.
fn command_line(name: &str, words: &[&str]) -> String {
    let words: Vec<&str> = words.iter().copied().take_while(|word| !word.starts_with('-')).collect();
    let prompt = words.join(" ");
    // A conversation needs no name.
    let pintle = if name == "chat" { "pintle".to_owned() } else { format!("pintle {name}") };
    if prompt.is_empty() || prompt.chars().count() > MAX_TASK || prompt.contains(char::is_control) {
        return format!("{pintle} \"PROMPT\"");
    }
    // Shells expand these within double quotes.
    if prompt.contains(['"', '$', '`', '\\', '!']) {
        return format!("{pintle} '{}'", prompt.replace('\'', r"'\''"));
    }
    format!("{pintle} \"{prompt}\"")
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::arguments::Arguments;

    fn hint_for(arguments: &[&str]) -> Option<String> {
        let args: Vec<OsString> = ["pintle"].iter().chain(arguments).map(OsString::from).collect();
        for_error(&Arguments::try_parse_from(&args).unwrap_err(), &args)
    }

    #[test]
    fn hints_quote_the_prompt() {
        let cases: [(&[&str], Option<&str>); 7] = [
            (&["chat", "fix", "the", "bug", "--dir", "x"], Some(r#"pintle "fix the bug""#)),
            (&["run", "fix", "it", "now"], Some(r#"pintle run "fix it now""#)),
            (&["ask", "why", "not"], Some(r#"pintle ask "why not""#)),
            (&["run", "say \"$HOME\"", "isn't", "it"], Some(r#"pintle run 'say "$HOME" isn'\''t it'"#)),
            (&["run", "fix\x1b", "it"], Some(r#"pintle run "PROMPT""#)),
            (&["rnu"], None),
            (&["run", "fix", "--nonsense"], None),
        ];
        for (arguments, expected) in cases {
            let expected = expected.map(|line| format!("to give a prompt of several words: {line}"));
            assert_eq!(hint_for(arguments), expected, "{arguments:?}");
        }
        let long = "fix it ".repeat(100);
        assert!(hint_for(&["run", &long, "x"]).unwrap().ends_with(r#"pintle run "PROMPT""#));
    }

    #[test]
    fn options_of_other_agents_have_a_hint_and_no_tip() {
        let cases: [(&[&str], &str); 6] = [
            (&["chat", "-p", "hello"], "pintle run"),
            (&["chat", "--print", "hello"], "pintle run"),
            (&["run", "--cd", "/tmp", "x"], "--dir DIR"),
            (&["chat", "-C", "/tmp"], "--dir DIR"),
            (&["chat", "resume", "--last"], "pintle --continue"),
            (&["chat", "resume", "01a"], "pintle --resume ID"),
        ];
        for (arguments, expected) in cases {
            let args: Vec<OsString> = ["pintle"].iter().chain(arguments).map(OsString::from).collect();
            let error = Arguments::try_parse_from(&args).unwrap_err();
            let hint = for_error(&error, &args).unwrap();
            assert!(hint.contains(expected), "{arguments:?}: {hint}");
            let message = super::super::usage_failure(&error, &args).message();
            assert!(!message.contains("tip:"), "{arguments:?}: {message}");
        }
        if cfg!(feature = "compat") {
            let error = Arguments::try_parse_from(["pintle", "run", "--codex-strem", "x"]).unwrap_err();
            assert!(misleads(&error), "hidden flags are not suggested");
        }
        let error = Arguments::try_parse_from(["pintle", "run", "--modell", "m"]).unwrap_err();
        assert!(!misleads(&error));
    }
}
