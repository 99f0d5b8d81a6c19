//! Hints for a task that was given without a subcommand or without quotes.

use std::ffi::OsString;

use clap::CommandFactory as _;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::args::Arguments;

/// Longest task that a hint repeats, in characters.
const MAX_TASK: usize = 100;

/// Returns a corrected command line if the parser rejected words that look like a task.
pub(super) fn for_error(error: &clap::Error, args: &[OsString]) -> Option<String> {
    let args: Vec<&str> = args.iter().filter_map(|argument| argument.to_str()).collect();
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(word)) => Some(word.as_str()),
        Some(_) | None => None,
    };
    if error.kind() == ErrorKind::InvalidSubcommand {
        let word = context(ContextKind::InvalidSubcommand)?;
        let is_typo = error.get(ContextKind::SuggestedSubcommand).is_some() || is_anagram_of_command(word);
        let words = args.iter().position(|argument| *argument == word).and_then(|start| args.get(start..))?;
        let is_task = word.contains(char::is_whitespace) || !is_typo;
        return is_task.then(|| format!("to run a task: {}", command_line("run", words)));
    }
    let name = args.get(1).filter(|name| matches!(**name, "run" | "ask"))?;
    let extra = context(ContextKind::InvalidArg).filter(|word| !word.starts_with('-'))?;
    // The prompt is the word before the first surplus one.
    let prompt =
        args.iter().position(|argument| *argument == extra)?.checked_sub(1).filter(|index| *index > 1)?;
    let words = args.get(prompt..)?;
    Some(format!("to give a prompt of several words: {}", command_line(name, words)))
}

/// Returns whether the word is a permutation of a subcommand, which the parser does not count as similar.
fn is_anagram_of_command(word: &str) -> bool {
    let letters = |word: &str| {
        let mut letters: Vec<char> = word.chars().collect();
        letters.sort_unstable();
        letters
    };
    Arguments::command().get_subcommands().any(|command| letters(command.get_name()) == letters(word))
}

/// Returns a command line that gives the words up to the next flag as one quoted prompt.
fn command_line(name: &str, words: &[&str]) -> String {
    let words: Vec<&str> = words.iter().copied().take_while(|word| !word.starts_with('-')).collect();
    let prompt = words.join(" ");
    if prompt.is_empty() || prompt.chars().count() > MAX_TASK || prompt.contains(char::is_control) {
        return format!("pintle {name} \"PROMPT\"");
    }
    // Shells expand these within double quotes.
    if prompt.contains(['"', '$', '`', '\\', '!']) {
        return format!("pintle {name} '{}'", prompt.replace('\'', r"'\''"));
    }
    format!("pintle {name} \"{prompt}\"")
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    fn hint_for(arguments: &[&str]) -> Option<String> {
        let args: Vec<OsString> = ["pintle"].iter().chain(arguments).map(OsString::from).collect();
        for_error(&Arguments::try_parse_from(&args).unwrap_err(), &args)
    }

    #[test]
    fn hints_quote_the_task_and_name_the_subcommand() {
        let cases: [(&[&str], Option<&str>); 10] = [
            (&["fix it"], Some(r#"to run a task: pintle run "fix it""#)),
            (&["fix", "the", "bug", "--dir", "x"], Some(r#"to run a task: pintle run "fix the bug""#)),
            (&["run it"], Some(r#"to run a task: pintle run "run it""#)),
            (&["say \"$HOME\" isn't it"], Some(r#"to run a task: pintle run 'say "$HOME" isn'\''t it'"#)),
            (&["fix\x1b it"], Some(r#"to run a task: pintle run "PROMPT""#)),
            (&["rnu"], None),
            (&["--nonsense", "fix it"], None),
            (
                &["run", "fix", "it", "now"],
                Some(r#"to give a prompt of several words: pintle run "fix it now""#),
            ),
            (&["ask", "why", "not"], Some(r#"to give a prompt of several words: pintle ask "why not""#)),
            (&["run", "fix", "--nonsense"], None),
        ];
        for (arguments, expected) in cases {
            assert_eq!(hint_for(arguments).as_deref(), expected, "{arguments:?}");
        }
        assert_eq!(hint_for(&[&"fix it ".repeat(100)]).unwrap(), r#"to run a task: pintle run "PROMPT""#);
    }
}
