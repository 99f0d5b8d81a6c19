//! Command lines: their words, what was not understood, and what must not be ignored.

mod authority;

use std::collections::VecDeque;

use thiserror::Error;

use self::authority::attached_value;
pub(crate) use self::authority::{Authority, find_misspelt};

/// Options of a command line, and what was ignored in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Parsed<O> {
    /// The options.
    pub options: O,
    /// Options that are ignored, with the reason: one message each, for standard error.
    pub warnings: Vec<String>,
}

/// Why a command line is refused.
///
/// An option that could restrict a session is never ignored: whoever passed it relies on the restriction.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum OptionError {
    /// The option needs a value.
    #[error("option {option} needs a value")]
    MissingValue {
        /// The option, as it was written.
        option: String,
    },
    /// `resume` names no session.
    #[error("resume needs the id of a session, or --last{}", in_brackets(.ignored))]
    MissingSession {
        /// Warnings of options that are ignored, one of which may be a misspelt `--last`.
        ignored: Vec<String>,
    },
    /// The option has a value that it cannot have.
    #[error("invalid value for {option}: expected {expected}, found `{value}`")]
    InvalidValue {
        /// The option, as it was written.
        option: String,
        /// The value, shortened.
        value: String,
        /// What the option accepts.
        expected: String,
    },
    /// The option takes no value and has one.
    #[error("option {option} takes no value")]
    UnexpectedValue {
        /// The option, as it was written.
        option: String,
    },
    /// The option is known or sounds as if it restricts a session, and is not supported.
    #[error("option {option} is not supported and may restrict the session: {reason}")]
    Restricting {
        /// The option or configuration key, as it was written.
        option: String,
        /// Why it cannot be ignored.
        reason: String,
    },
    /// A word that is neither an option nor its value.
    #[error("unexpected argument `{word}`")]
    UnexpectedWord {
        /// The word, shortened.
        word: String,
    },
    /// Two options contradict each other.
    #[error("options {first} and {second} cannot be combined")]
    Conflict {
        /// The first option.
        first: &'static str,
        /// The second option.
        second: &'static str,
    },
}

fn in_brackets(texts: &[String]) -> String {
    if texts.is_empty() { String::new() } else { format!(" ({})", texts.join("; ")) }
}

/// Longest part of a value in a message, in characters.
const MAX_SHOWN: usize = 120;

/// Returns the start of a text for a message.
pub(crate) fn shortened(text: &str) -> String {
    let mut shown: String = text.chars().take(MAX_SHOWN).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

/// A word of a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    /// `--name`, `--name=value` or `-n`.
    Option(Flag),
    /// Anything else.
    Plain(String),
}

/// An option with the value that is part of the same word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Flag {
    pub(crate) name: String,
    pub(crate) value: Option<String>,
}

/// The words of a command line that have not been read.
#[derive(Debug)]
pub(crate) struct Words {
    rest: VecDeque<String>,
    /// Whether `--` was read, after which no word is an option.
    options_ended: bool,
    pub(crate) warnings: Vec<String>,
}

impl Words {
    pub(crate) fn new<S: AsRef<str>>(arguments: &[S]) -> Self {
        let rest = arguments.iter().map(|argument| argument.as_ref().to_owned()).collect();
        Self { rest, options_ended: false, warnings: Vec::new() }
    }

    /// Reads the next word.
    pub(crate) fn next(&mut self) -> Option<Word> {
        let word = self.rest.pop_front()?;
        if self.options_ended || !is_option(&word) {
            return Some(Word::Plain(word));
        }
        if word == "--" {
            self.options_ended = true;
            return self.next();
        }
        let flag = match word.split_once('=') {
            Some((name, value)) if word.starts_with("--") => {
                Flag { name: name.to_owned(), value: Some(value.to_owned()) }
            }
            _ => Flag { name: word, value: None },
        };
        Some(Word::Option(flag))
    }

    /// Reads the value of an option: the rest of its word, or the next word. An option is no value: it could be one that
    /// restricts.
    pub(crate) fn value(&mut self, flag: Flag) -> Result<String, OptionError> {
        if let Some(value) = flag.value {
            return Ok(value);
        }
        let has_value = self.rest.front().is_some_and(|next| !is_option(next));
        let next = if has_value { self.rest.pop_front() } else { None };
        next.ok_or(OptionError::MissingValue { option: flag.name })
    }

    /// Reads the value of an option, which is one of `known`.
    pub(crate) fn choice<T: Copy>(&mut self, flag: Flag, known: &[(&str, T)]) -> Result<T, OptionError> {
        let option = flag.name.clone();
        let value = self.value(flag)?;
        choice(&option, &value, known)
    }

    /// Checks that an option has no value.
    pub(crate) fn no_value(flag: &Flag) -> Result<(), OptionError> {
        match flag.value {
            Some(_) => Err(OptionError::UnexpectedValue { option: flag.name.clone() }),
            None => Ok(()),
        }
    }

    /// Ignores an option that is known to be harmless. `has_value` tells whether it takes one.
    pub(crate) fn ignore(&mut self, flag: Flag, has_value: bool, reason: &str) -> Result<(), OptionError> {
        let name = flag.name.clone();
        if has_value {
            self.value(flag)?;
        }
        self.warnings.push(format!("option {name} is ignored: {reason}"));
        Ok(())
    }

    /// Ignores an unknown option with its value, unless its name is close to an option that restricts or grants, or its value
    /// is one of such an option. The next word counts as its value unless it is an option or one of `commands`.
    pub(crate) fn unknown(
        &mut self,
        flag: &Flag,
        commands: &[&str],
        authority: &Authority,
    ) -> Result<(), OptionError> {
        let takes_next = flag.value.is_none()
            && self.rest.front().is_some_and(|next| !is_option(next) && !commands.contains(&next.as_str()));
        let next = self.rest.front().filter(|_| takes_next);
        let values = [flag.value.as_deref(), next.map(String::as_str), attached_value(&flag.name)];
        let objection = authority.objection("it", &flag.name, None).or_else(|| {
            values.into_iter().flatten().find_map(|value| authority.objection("it", &flag.name, Some(value)))
        });
        if let Some(reason) = objection {
            return Err(restricting(&flag.name, reason));
        }
        // The word may have been meant as the prompt.
        let value = if takes_next { self.rest.pop_front() } else { None };
        let value = value.map(|value| format!(" with its value `{}`", shortened(&value))).unwrap_or_default();
        self.warnings.push(format!("option {} is ignored{value}: it is unknown", flag.name));
        Ok(())
    }
}

fn is_option(word: &str) -> bool {
    word.len() > 1 && word.starts_with('-')
}

/// Returns the meaning of a value.
pub(crate) fn choice<T: Copy>(option: &str, value: &str, known: &[(&str, T)]) -> Result<T, OptionError> {
    match known.iter().find(|(name, _)| *name == value) {
        Some((_, meaning)) => Ok(*meaning),
        None => {
            let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
            Err(invalid(option, value, names.join(", ")))
        }
    }
}

pub(crate) fn invalid(option: &str, value: &str, expected: impl Into<String>) -> OptionError {
    OptionError::InvalidValue {
        option: option.to_owned(),
        value: shortened(value),
        expected: expected.into(),
    }
}

pub(crate) fn restricting(option: &str, reason: impl Into<String>) -> OptionError {
    OptionError::Restricting { option: option.to_owned(), reason: reason.into() }
}

pub(crate) fn unexpected(word: &str) -> OptionError {
    OptionError::UnexpectedWord { word: shortened(word) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_option_takes_its_value_but_no_command() {
        let authority = Authority { names: &[], values: &[], short: &[] };
        let mut words = Words::new(&["--color", "always", "--fancy", "resume", "--x=1", "rest"]);
        while let Some(Word::Option(flag)) = words.next() {
            words.unknown(&flag, &["resume"], &authority).expect("harmless");
            if words.rest.front().is_some_and(|word| word == "resume") {
                break;
            }
        }
        assert_eq!(
            words.warnings,
            [
                "option --color is ignored with its value `always`: it is unknown",
                "option --fancy is ignored: it is unknown"
            ]
        );
        assert_eq!(words.next(), Some(Word::Plain("resume".to_owned())));
    }
}
