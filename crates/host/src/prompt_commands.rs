//! Prompts of MCP servers as commands: `/mcp__SERVER__PROMPT` with the arguments of the prompt, in its order.

use std::collections::BTreeMap;

use pintle_llm::ImageData;
use serde::{Deserialize, Serialize};

use crate::sanitize::sanitize;

/// Longest meaning in a list, in characters.
const MAX_MEANING: usize = 80;

/// Prompt that a server has listed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptCommand {
    /// Name of the server.
    pub server: String,
    /// Name that the server gives it.
    pub name: String,
    /// Name of the command, without the slash.
    pub command: String,
    /// Description by the server.
    pub description: String,
    /// Arguments in the order of the prompt.
    pub arguments: Vec<PromptArgument>,
}

/// Argument of a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptArgument {
    /// Name of the argument.
    pub name: String,
    /// Whether the prompt needs it.
    pub is_required: bool,
}

/// Prompt with its arguments, as the user called it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptCall {
    /// Name of the server.
    pub server: String,
    /// Name that the server gives the prompt.
    pub name: String,
    /// Values by the names of their arguments.
    pub arguments: BTreeMap<String, String>,
    /// Line of the user.
    pub written: String,
}

/// User message that a prompt expands to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PromptText {
    /// Text of the message.
    pub text: String,
    /// Images of the message.
    pub images: Vec<ImageData>,
}

impl PromptCommand {
    /// Returns the meaning for lists, with the arguments before it.
    pub fn meaning(&self) -> String {
        let usage = self.usage();
        let gap = if usage.is_empty() || self.description.is_empty() { "" } else { ": " };
        let description = self.description.lines().next().unwrap_or_default();
        sanitize(&format!("{usage}{gap}{description}")).chars().take(MAX_MEANING).collect()
    }

    /// Returns the arguments, with optional ones in brackets.
    pub fn usage(&self) -> String {
        let shown = self.arguments.iter().map(|argument| match argument.is_required {
            true => argument.name.clone(),
            false => format!("[{}]", argument.name),
        });
        shown.collect::<Vec<_>>().join(" ")
    }

    /// Reads a line that calls it, with these values; `None` if a quotation in it does not end.
    ///
    /// The error is a message with the expected arguments.
    pub fn call(&self, line: &str, values: Option<Vec<String>>) -> Result<PromptCall, String> {
        let problem = |what: &str| {
            let usage = self.usage();
            let expected = if usage.is_empty() { "no arguments" } else { usage.as_str() };
            sanitize(&format!("/{}: {what}; expected {expected}", self.command)).into_owned()
        };
        let values = values.ok_or_else(|| problem("a quotation does not end"))?;
        if values.len() > self.arguments.len() {
            return Err(problem("too many arguments (quote a value that has blanks)"));
        }
        let missing = self.arguments.iter().skip(values.len()).find(|argument| argument.is_required);
        if let Some(missing) = missing {
            return Err(problem(&format!("`{}` is missing", missing.name)));
        }
        let names = self.arguments.iter().map(|argument| argument.name.clone());
        Ok(PromptCall {
            server: self.server.clone(),
            name: self.name.clone(),
            arguments: names.zip(values).collect(),
            written: line.to_owned(),
        })
    }
}

/// Splits a line into words as a shell would; `None` if a quotation does not end.
pub fn words(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match character {
            '\'' | '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match characters.next()? {
                        end if end == character => break,
                        '\\' if character == '"' => word.push(characters.next()?),
                        other => word.push(other),
                    }
                }
            }
            '\\' => word.get_or_insert_default().push(characters.next()?),
            blank if blank.is_whitespace() => words.extend(word.take()),
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt(arguments: &[(&str, bool)]) -> PromptCommand {
        let argument = |(name, is_required): &(&str, bool)| PromptArgument {
            name: (*name).to_owned(),
            is_required: *is_required,
        };
        PromptCommand {
            server: "s".into(),
            name: "re view".into(),
            command: "mcp__s__re_view".into(),
            description: "Reviews.\nMore.".into(),
            arguments: arguments.iter().map(argument).collect(),
        }
    }

    #[test]
    fn arguments_are_positional_and_checked() {
        let review = prompt(&[("file", true), ("tone", false)]);
        let called = |values: Option<Vec<String>>| {
            review
                .call("line", values)
                .map(|called| called.arguments.into_values().collect::<Vec<_>>().join("|"))
        };
        let command = "/mcp__s__re_view";
        for (values, expected) in [
            (Some(&["a.rs"][..]), Ok("a.rs")),
            (Some(&["a b.rs", "kind"]), Ok("a b.rs|kind")),
            (Some(&[]), Err("`file` is missing; expected file [tone]")),
            (
                Some(&["a", "b", "c"]),
                Err("too many arguments (quote a value that has blanks); expected file [tone]"),
            ),
            (None, Err("a quotation does not end; expected file [tone]")),
        ] {
            let expected = expected.map(str::to_owned).map_err(|problem| format!("{command}: {problem}"));
            let given = values.map(|values| values.iter().map(|value| (*value).to_owned()).collect());
            assert_eq!(called(given), expected, "{values:?}");
        }
        let problem = prompt(&[]).call("line", Some(vec!["x".to_owned()])).unwrap_err();
        assert!(problem.ends_with("; expected no arguments"), "{problem}");
    }

    #[test]
    fn meanings_cannot_steer_the_terminal() {
        assert_eq!(prompt(&[("file", true), ("tone", false)]).meaning(), "file [tone]: Reviews.");
        assert_eq!(prompt(&[]).meaning(), "Reviews.");
        let odd = PromptCommand { description: "a\u{1b}[2J".into(), ..prompt(&[("b\u{9b}c", true)]) };
        for text in [odd.meaning(), odd.call("/x", Some(Vec::new())).unwrap_err()] {
            assert!(!text.contains(char::is_control), "{text:?}");
        }
    }
}
