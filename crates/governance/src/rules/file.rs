//! Rules files.

use std::path::Path;

use pintle_tools::gate::Permission;
use serde::Deserialize;
use toml::Spanned;

use super::Rules;
use super::rule::{Rule, RuleError};
use crate::network::HostScope;

/// Form of a rules file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    allow: Vec<Spanned<String>>,
    #[serde(default)]
    ask: Vec<Spanned<String>>,
    #[serde(default)]
    deny: Vec<Spanned<String>>,
    #[serde(default)]
    network: Option<HostScope>,
}

/// Reason why a text is not a rules file. It names the file and the line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RulesError {
    /// The text is not TOML, or has other keys.
    #[error("{source_name}: line {line}: {message}")]
    Form {
        /// Name of the file.
        source_name: String,
        /// Number of the line.
        line: usize,
        /// The problem, with the key that may be meant.
        message: String,
    },
    /// A rule is wrong.
    #[error("{source_name}: line {line}: {error}")]
    Rule {
        /// Name of the file.
        source_name: String,
        /// Number of the line.
        line: usize,
        /// The problem.
        error: RuleError,
    },
}

const KEYS: [&str; 4] = ["allow", "ask", "deny", "network"];

impl Rules {
    /// Parses a rules file: TOML with the lists `allow`, `ask` and `deny` of [rules](Rule), and the table `network` with a
    /// [limit to some hosts](HostScope). `source_name` is the name of
    /// the file, for messages. `workspace` is the base of relative paths: an absolute path with all links resolved.
    ///
    /// # Errors
    ///
    /// [`RulesError`] for the first mistake. A file with a mistake is rejected as a whole, since an invalid rule could be
    /// one that denies.
    pub fn parse(source_name: &str, text: &str, workspace: &Path) -> Result<Self, RulesError> {
        let line_of = |offset: usize| text.get(..offset).unwrap_or_default().matches('\n').count() + 1;
        let file: File = toml::from_str(text).map_err(|error| {
            let (line, message) = form_error(&error, text, &KEYS);
            RulesError::Form { source_name: source_name.to_owned(), line, message }
        })?;
        let mut rules = Self::new();
        rules.network = file.network;
        let lists =
            [(Permission::Allow, file.allow), (Permission::Ask, file.ask), (Permission::Deny, file.deny)];
        for (permission, list) in lists {
            for entry in list {
                let line = line_of(entry.span().start);
                let rule = Rule::parse(entry.get_ref(), workspace).map_err(|error| RulesError::Rule {
                    source_name: source_name.to_owned(),
                    line,
                    error,
                })?;
                rules.add(permission, rule, format!("{source_name}:{line}"));
            }
        }
        Ok(rules)
    }
}

/// Returns the line of a mistake in a TOML file and its description, with the key that may be meant.
pub(crate) fn form_error(error: &toml::de::Error, text: &str, keys: &[&str]) -> (usize, String) {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    let message = error.message().trim().to_owned();
    let wrong = error.span().and_then(|span| text.get(span)).unwrap_or_default();
    let meant = pintle_tools::most_similar(wrong, keys.iter().copied());
    match meant.first() {
        Some(key) if message.starts_with("unknown field") => {
            (line, format!("{message}; did you mean `{key}`?"))
        }
        Some(_) | None => (line, message),
    }
}
