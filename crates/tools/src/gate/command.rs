//! Commands in the arguments of calls, and patterns of commands.

mod computed;
mod connections;
mod line;
mod mention;
mod pattern;
mod programs;
mod scanner;
mod scripts;

use serde_json::Value;

pub use self::line::CommandLine;
pub use self::mention::CommandMention;
pub use self::pattern::{CommandPattern, PatternError, matches_wildcard};

impl CommandLine {
    /// Finds the commands in the arguments of a call: in `command` or `cmd`, as a string or a list of words. If neither
    /// or both are given, every string is searched, and the result is not [plain](Self::is_plain).
    #[must_use]
    pub fn of_arguments(arguments: &Value) -> Self {
        match (arguments.get("command"), arguments.get("cmd")) {
            (Some(Value::String(line)), None) | (None, Some(Value::String(line))) => CommandLine::parse(line),
            (Some(Value::Array(words)), None) | (None, Some(Value::Array(words)))
                if words.iter().all(Value::is_string) =>
            {
                CommandLine::of_words(words.iter().filter_map(Value::as_str).map(str::to_owned).collect())
            }
            (Some(_) | None, Some(_) | None) => {
                let mut texts = Vec::new();
                collect_texts(arguments, &mut texts);
                CommandLine::parse_unreliable(&texts.join("\n"))
            }
        }
    }
}

fn collect_texts<'a>(value: &'a Value, texts: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => texts.push(text),
        Value::Array(values) => values.iter().for_each(|value| collect_texts(value, texts)),
        Value::Object(fields) => fields.values().for_each(|value| collect_texts(value, texts)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests;
