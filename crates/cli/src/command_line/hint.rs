//! Hints for a prompt that was given without quotes.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue};

/// Longest task that a hint repeats, in characters.
const MAX_TASK: usize = 100;

/// Returns a corrected command line if the parser rejected words that look like a prompt.
pub(super) fn for_error(error: &clap::Error, args: &[OsString]) -> Option<String> {
    let args: Vec<&str> = args.iter().filter_map(|argument| argument.to_str()).collect();
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(word)) => Some(word.as_str()),
        Some(_) | None => None,
    };
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
    use crate::args::Arguments;

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
}
