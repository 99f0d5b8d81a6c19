//! Front matter of a `SKILL.md`, in the subset of YAML that names and descriptions need.
//!
//! The parser reads scalars of top-level keys: plain, quoted, and in blocks (`>` and `|`). The values of all other keys
//! are ignored. Anchors, tags and flow collections are not supported.

use crate::sanitize::single_line;

/// Maximum length of a name, in characters (Agent Skills format).
const MAX_NAME: usize = 64;

/// Maximum length of a description, in characters (Agent Skills format). Longer ones are truncated.
const MAX_DESCRIPTION: usize = 1024;

/// Name and description of a skill.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FrontMatter {
    pub(super) name: String,
    pub(super) description: String,
}

/// Reason why a file is not a skill.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum FrontMatterError {
    #[error("it does not begin with front matter: its first line is not `---`")]
    Missing,
    #[error("its front matter has no end: no later line of the first 16 KiB is `---`")]
    Open,
    #[error("its front matter has no `{0}`")]
    NoKey(&'static str),
    #[error("its name {0:?} is not 1 to 64 letters, digits, `-` and `_`")]
    Name(String),
}

impl FrontMatter {
    /// Parses the front matter at the start of `text`.
    ///
    /// # Errors
    ///
    /// The first part that is missing or invalid, as a clause about the file.
    pub(super) fn parse(text: &str) -> Result<Self, FrontMatterError> {
        let mut lines = text.strip_prefix('\u{feff}').unwrap_or(text).lines();
        if lines.next().is_none_or(|line| line.trim_end() != "---") {
            return Err(FrontMatterError::Missing);
        }
        let mut content = Vec::new();
        loop {
            match lines.next() {
                None => return Err(FrontMatterError::Open),
                Some(line) if line.trim_end() == "---" => break,
                Some(line) => content.push(line.trim_end()),
            }
        }
        let value = |key| value_of(&content, key).ok_or(FrontMatterError::NoKey(key));
        let (name, description) = (value("name")?, value("description")?);
        let is_valid = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if name.len() > MAX_NAME || !name.chars().all(is_valid) {
            return Err(FrontMatterError::Name(single_line(&name, MAX_NAME)));
        }
        Ok(Self { name, description: single_line(&description, MAX_DESCRIPTION) })
    }
}

/// Returns the scalar of a top-level key, its lines joined by spaces; `None` if it is missing or empty.
fn value_of(lines: &[&str], key: &str) -> Option<String> {
    let (at, first) = lines.iter().enumerate().find_map(|(at, line)| Some((at, after_key(line, key)?)))?;
    let is_continuation = |line: &&&str| line.is_empty() || line.starts_with([' ', '\t']);
    let rest: Vec<&str> =
        lines.iter().skip(at + 1).take_while(is_continuation).map(|line| line.trim()).collect();
    let scalar = match first.as_bytes() {
        [b'>' | b'|', ..] if is_block_header(first) => joined(&rest),
        [b'"', ..] => double_quoted(&joined(&[&[first], rest.as_slice()].concat())),
        [b'\'', ..] => single_quoted(&joined(&[&[first], rest.as_slice()].concat())),
        [b'#', ..] => joined(&rest),
        _ => joined(&[&[uncommented(first)], rest.as_slice()].concat()),
    };
    let scalar = scalar.trim();
    (!scalar.is_empty()).then(|| scalar.to_owned())
}

/// Returns the text after `key:` at the start of a line.
fn after_key<'l>(line: &'l str, key: &str) -> Option<&'l str> {
    let rest = line.strip_prefix(key)?.trim_start().strip_prefix(':')?;
    (rest.is_empty() || rest.starts_with([' ', '\t'])).then(|| rest.trim())
}

/// Returns whether `text` is `>` or `|`, with optional indentation and chomping indicators, which have no effect here.
fn is_block_header(text: &str) -> bool {
    uncommented(text).chars().skip(1).all(|c| c.is_ascii_digit() || matches!(c, '+' | '-'))
}

fn joined(lines: &[&str]) -> String {
    lines.iter().filter(|line| !line.is_empty()).copied().collect::<Vec<_>>().join(" ")
}

/// Removes a trailing comment from a plain scalar.
fn uncommented(text: &str) -> &str {
    text.split_once(" #").map_or(text, |(before, _)| before).trim_end()
}

/// Returns the text between single quotes; `''` is an escaped quote.
fn single_quoted(text: &str) -> String {
    let mut value = String::new();
    let mut rest = text.chars().skip(1).peekable();
    while let Some(c) = rest.next() {
        if c == '\'' && rest.next_if_eq(&'\'').is_none() {
            break;
        }
        value.push(c);
    }
    value
}

/// Returns the text between double quotes, with the common escapes resolved.
fn double_quoted(text: &str) -> String {
    let mut value = String::new();
    let mut rest = text.chars().skip(1);
    while let Some(c) = rest.next() {
        match c {
            '"' => break,
            '\\' => match rest.next() {
                Some('n' | 't' | 'r') => value.push(' '),
                Some(escaped) => value.push(escaped),
                None => {}
            },
            other => value.push(other),
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn description(yaml: &str) -> Result<String, FrontMatterError> {
        let read = FrontMatter::parse(&format!("---\nname: x\n{yaml}\n---\nBody.\n"));
        read.map(|front| front.description)
    }

    #[test]
    fn all_styles_of_scalars_are_read() {
        for (yaml, expected) in [
            ("description: Fill in forms.", "Fill in forms."),
            ("description:   Fill in forms. # for PDF", "Fill in forms."),
            ("description: Use for C# and a#b.", "Use for C# and a#b."),
            ("description: See: this, and \"that\".", "See: this, and \"that\"."),
            ("description: \"Fill \\\"in\\\" forms: # all\" # really", "Fill \"in\" forms: # all"),
            ("description: 'It''s for forms' # really", "It's for forms"),
            ("description: >-\n  Fill in\n  forms.\n\n  All.\nlicense: MIT", "Fill in forms. All."),
            ("description: |2+\n  Fill in\n  forms.", "Fill in forms."),
            ("description:\n  Fill in\n  forms.", "Fill in forms."),
            ("description: Fill in\n  forms.", "Fill in forms."),
            ("description: > is a sign", "> is a sign"),
            ("metadata:\n  description: not this\ndescription: this", "this"),
            ("descriptions: not this\ndescription : this", "this"),
            ("description: tab\tand \u{1b}[31mcolour\u{202e}", "tab and [31mcolour"),
            ("description: d\r", "d"),
        ] {
            assert_eq!(description(yaml).as_deref(), Ok(expected), "{yaml:?}");
        }
        let long = description(&format!("description: {}", "é".repeat(2000))).unwrap();
        assert_eq!(long, format!("{}…", "é".repeat(1024)));
    }

    #[test]
    fn invalid_front_matter_is_reported() {
        let no_description = "its front matter has no `description`";
        for (text, expected) in [
            ("", "it does not begin with front matter: its first line is not `---`"),
            ("# Title\n", "it does not begin with front matter: its first line is not `---`"),
            ("---\nname: x\n", "its front matter has no end: no later line of the first 16 KiB is `---`"),
            ("---\ndescription: d\n---\n", "its front matter has no `name`"),
            ("---\nname: x\n---\ndescription: d\n", no_description),
            ("---\nname: x\ndescription:\n---\n", no_description),
            ("---\nname: x\ndescription: ''\n---\n", no_description),
            (
                "---\nname: a b\ndescription: d\n---\n",
                "its name \"a b\" is not 1 to 64 letters, digits, `-` and `_`",
            ),
            (
                "---\nname: ../x\ndescription: d\n---\n",
                "its name \"../x\" is not 1 to 64 letters, digits, `-` and `_`",
            ),
        ] {
            assert_eq!(FrontMatter::parse(text).unwrap_err().to_string(), expected, "{text:?}");
        }
        let long = format!("---\nname: {}\ndescription: d\n---\n", "x".repeat(65));
        assert!(matches!(FrontMatter::parse(&long), Err(FrontMatterError::Name(_))));
    }

    proptest! {
        #[test]
        fn no_text_panics_and_descriptions_are_single_lines(text in "(---|name|description|[:>|'\"# \\\\\n\r\tx€-]){0,60}") {
            for text in [text.clone(), format!("---\nname: n\n{text}\n---\n"), format!("---\nname: n\ndescription: {text}\n---\n")] {
                if let Ok(front) = FrontMatter::parse(&text) {
                    prop_assert!(!front.name.is_empty() && front.name.len() <= MAX_NAME);
                    prop_assert!(front.description.lines().count() == 1);
                }
            }
        }
    }
}
