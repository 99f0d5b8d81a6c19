//! Words of a command line with placeholders for arguments.

use serde_json::{Map, Value};

/// Placeholder for the directory of the manifest.
pub(super) const DIRECTORY: &str = "manifest_dir";

/// A word with placeholders such as `{file}`. `{{` and `}}` are braces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Template {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Argument(String),
}

/// One word of a command line, or words that belong together: all are left out if an argument of one is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WordGroup(pub(super) Vec<Template>);

impl Template {
    /// Parses a word. The error is the expectation.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (mut parts, mut plain) = (Vec::new(), String::new());
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            let (before, from) = rest.split_at(at);
            plain.push_str(before);
            if let Some(after) = from.strip_prefix("{{") {
                plain.push('{');
                rest = after;
            } else if let Some(after) = from.strip_prefix("}}") {
                plain.push('}');
                rest = after;
            } else {
                let named = from.strip_prefix('{').and_then(|from| from.split_once('}'));
                let Some((name, after)) = named.filter(|(name, _)| is_argument_name(name)) else {
                    return Err(format!(
                        "found `{text}`, expected the name of an argument in braces, such as {{file}}; `{{{{` and \
                         `}}}}` are braces"
                    ));
                };
                if !plain.is_empty() {
                    parts.push(Part::Text(std::mem::take(&mut plain)));
                }
                parts.push(Part::Argument(name.to_owned()));
                rest = after;
            }
        }
        plain.push_str(rest);
        if !plain.is_empty() || parts.is_empty() {
            parts.push(Part::Text(plain));
        }
        Ok(Self { parts })
    }

    /// Creates a word without placeholders.
    pub(super) fn from_text(text: String) -> Self {
        Self { parts: vec![Part::Text(text)] }
    }

    /// Returns the names of the placeholders.
    pub(super) fn arguments(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Argument(name) => Some(name.as_str()),
            Part::Text(_) => None,
        })
    }

    /// Returns the text of a word without placeholders.
    pub(super) fn as_text(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [Part::Text(text)] => Some(text),
            [] | [_] | [_, _, ..] => None,
        }
    }

    /// Returns this word with a value for a placeholder.
    pub(super) fn with_value(&self, name: &str, value: &str) -> Self {
        let mut parts: Vec<Part> = Vec::new();
        for part in &self.parts {
            let text: &str = match part {
                Part::Argument(argument) if argument == name => value,
                Part::Text(text) => text,
                Part::Argument(_) => {
                    parts.push(part.clone());
                    continue;
                }
            };
            match parts.last_mut() {
                Some(Part::Text(before)) => before.push_str(text),
                Some(Part::Argument(_)) | None => parts.push(Part::Text(text.to_owned())),
            }
        }
        Self { parts }
    }

    /// Returns the words for these arguments: several for a placeholder alone whose argument is an array, and `None` if an
    /// argument is missing or null.
    pub(super) fn expand(&self, arguments: &Map<String, Value>) -> Option<Vec<String>> {
        let value_of = |name: &str| arguments.get(name).filter(|value| !value.is_null());
        if let [Part::Argument(name)] = self.parts.as_slice()
            && let Value::Array(values) = value_of(name)?
        {
            return Some(values.iter().map(text_of).collect());
        }
        let mut word = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => word.push_str(text),
                Part::Argument(name) => word.push_str(&text_of(value_of(name)?)),
            }
        }
        Some(vec![word])
    }

    /// Returns whether the word begins with the value of an argument.
    fn begins_with_argument(&self) -> bool {
        matches!(self.parts.first(), Some(Part::Argument(_)))
    }
}

/// Returns the words of a command line after its program.
///
/// The error names a value that would be read as an option, or that no command line can have.
pub(super) fn expand_all(
    groups: &[WordGroup],
    arguments: &Map<String, Value>,
) -> Result<Vec<String>, String> {
    let (mut words, mut ends_options) = (Vec::new(), false);
    for WordGroup(templates) in groups {
        let expanded: Option<Vec<Vec<String>>> =
            templates.iter().map(|template| template.expand(arguments)).collect();
        let Some(expanded) = expanded else { continue };
        for (template, of_template) in templates.iter().zip(expanded) {
            for word in of_template {
                if word.contains('\0') {
                    return Err("found a zero byte in an argument, expected text".to_owned());
                }
                let is_option = template.begins_with_argument() && word.starts_with('-');
                if is_option && !ends_options {
                    return Err(format!(
                        "found the value `{word}`, expected one that does not begin with `-`, since the program would \
                         read it as an option; for a file, `./` before the name helps"
                    ));
                }
                words.push(word);
            }
            ends_options |= template.as_text() == Some("--");
        }
    }
    Ok(words)
}

/// Returns a value as part of a word: a string as it is, and any other value as JSON.
fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            value.to_string()
        }
    }
}

fn is_argument_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '$'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Words of an argument template, in groups that are left out together.
    type Words<'a> = &'a [&'a [&'a str]];

    fn expand(groups: Words<'_>, arguments: &Value) -> Result<Vec<String>, String> {
        let parse =
            |words: &&[&str]| WordGroup(words.iter().map(|word| Template::parse(word).unwrap()).collect());
        let groups: Vec<WordGroup> = groups.iter().map(parse).collect();
        expand_all(&groups, arguments.as_object().unwrap())
    }

    #[test]
    fn words_are_expanded_and_never_split() {
        let cases: [(Words<'_>, Value, &[&str]); 10] = [
            (&[&["{file}"]], json!({"file": "a b; rm $HOME 'x'"}), &["a b; rm $HOME 'x'"]),
            (&[&["--depth={depth}"]], json!({"depth": -3}), &["--depth=-3"]),
            (&[&["{files}"]], json!({"files": ["a", "b c"]}), &["a", "b c"]),
            (&[&["--all={files}"]], json!({"files": ["a"]}), &["--all=[\"a\"]"]),
            (&[&["x"], &["--depth", "{depth}"], &["y"]], json!({}), &["x", "y"]),
            (&[&["--depth", "{depth}"]], json!({"depth": 2}), &["--depth", "2"]),
            (&[&["{file}"]], json!({"file": null}), &[]),
            (&[&["--"], &["{file}"]], json!({"file": "-n"}), &["--", "-n"]),
            (&[&["{{{on}}}"]], json!({"on": true}), &["{true}"]),
            (&[&[""]], json!({}), &[""]),
        ];
        for (groups, arguments, expected) in cases {
            assert_eq!(expand(groups, &arguments).unwrap(), expected, "{groups:?} {arguments}");
        }
    }

    #[test]
    fn values_that_would_be_options_are_refused() {
        let cases: [(Words<'_>, Value); 5] = [
            (&[&["{file}"]], json!({"file": "--output=/etc/passwd"})),
            (&[&["{files}"]], json!({"files": ["a", "-x"]})),
            (&[&["--file", "{file}"]], json!({"file": "-x"})),
            (&[&["{file}"], &["--"]], json!({"file": "-x"})),
            (&[&["{depth}"]], json!({"depth": -3})),
        ];
        for (groups, arguments) in cases {
            let refused = expand(groups, &arguments).unwrap_err();
            assert!(refused.contains("expected one that does not begin with `-`"), "{arguments}: {refused}");
        }
        assert!(expand(&[&["{file}"]], &json!({"file": "a\0b"})).unwrap_err().contains("zero byte"));
        // An argument cannot end the options.
        let ended = expand(&[&["{first}"], &["{second}"]], &json!({"first": "--", "second": "-x"}));
        assert!(ended.is_err(), "{ended:?}");
    }

    #[test]
    fn wrong_placeholders_are_refused() {
        for text in ["{", "}", "a{b", "{}", "{a b}", "{a{b}}", "x}"] {
            assert!(
                Template::parse(text).unwrap_err().contains("expected the name of an argument"),
                "{text}"
            );
        }
    }
}
