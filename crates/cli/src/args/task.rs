//! A task that was given without its command, or without quotes.

use std::ffi::OsString;

use clap::CommandFactory as _;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::Arguments;

/// The longest task that a hint repeats, in characters.
const LONGEST: usize = 100;

/// Returns how to give the task that the parser took for something else, if it looks like one.
pub(super) fn hint(error: &clap::Error, given: &[OsString]) -> Option<String> {
    let given: Vec<&str> = given.iter().filter_map(|argument| argument.to_str()).collect();
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(word)) => Some(word.as_str()),
        Some(_) | None => None,
    };
    if error.kind() == ErrorKind::InvalidSubcommand {
        let word = context(ContextKind::InvalidSubcommand)?;
        let is_near_miss = error.get(ContextKind::SuggestedSubcommand).is_some() || is_jumbled(word);
        let words = given.iter().position(|argument| *argument == word).and_then(|from| given.get(from..))?;
        let is_task = word.contains(char::is_whitespace) || !is_near_miss;
        return is_task.then(|| format!("to give a task: {}", command("run", words)));
    }
    let name = given.get(1).filter(|name| matches!(**name, "run" | "ask"))?;
    let word = context(ContextKind::InvalidArg).filter(|word| !word.starts_with('-'))?;
    // The prompt is the word before the first that is too many.
    let before =
        given.iter().position(|argument| *argument == word)?.checked_sub(1).filter(|before| *before > 1)?;
    let words = given.get(before..)?;
    Some(format!("to give a prompt of several words: {}", command(name, words)))
}

/// Whether the word has the letters of a command in another order, which the parser does not take for similar.
fn is_jumbled(word: &str) -> bool {
    let letters = |word: &str| {
        let mut letters: Vec<char> = word.chars().collect();
        letters.sort_unstable();
        letters
    };
    Arguments::command().get_subcommands().any(|command| letters(command.get_name()) == letters(word))
}

/// The command line that gives the words up to the next flag as one prompt.
fn command(name: &str, words: &[&str]) -> String {
    let words: Vec<&str> = words.iter().copied().take_while(|word| !word.starts_with('-')).collect();
    let prompt = words.join(" ");
    if prompt.is_empty() || prompt.chars().count() > LONGEST || prompt.contains(char::is_control) {
        return format!("pintle {name} \"PROMPT\"");
    }
    // Within double quotes a shell reads these.
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
        let given: Vec<OsString> = ["pintle"].iter().chain(arguments).map(OsString::from).collect();
        hint(&Arguments::try_parse_from(&given).unwrap_err(), &given)
    }

    #[test]
    fn a_task_without_its_command_gets_the_command() {
        let rows: [(&[&str], Option<&str>); 10] = [
            (&["fix it"], Some(r#"to give a task: pintle run "fix it""#)),
            (&["fix", "the", "bug", "--dir", "x"], Some(r#"to give a task: pintle run "fix the bug""#)),
            (&["run it"], Some(r#"to give a task: pintle run "run it""#)),
            (&["say \"$HOME\" isn't it"], Some(r#"to give a task: pintle run 'say "$HOME" isn'\''t it'"#)),
            (&["fix\x1b it"], Some(r#"to give a task: pintle run "PROMPT""#)),
            (&["rnu"], None),
            (&["--nonsense", "fix it"], None),
            (
                &["run", "fix", "it", "now"],
                Some(r#"to give a prompt of several words: pintle run "fix it now""#),
            ),
            (&["ask", "why", "not"], Some(r#"to give a prompt of several words: pintle ask "why not""#)),
            (&["run", "fix", "--nonsense"], None),
        ];
        for (arguments, expected) in rows {
            assert_eq!(hint_for(arguments).as_deref(), expected, "{arguments:?}");
        }
        assert_eq!(hint_for(&[&"fix it ".repeat(100)]).unwrap(), r#"to give a task: pintle run "PROMPT""#);
    }
}
