//! Command lines: their words, the ignored options, and the options that must not be ignored.

mod authority;

use std::collections::VecDeque;

use thiserror::Error;

use self::authority::attached_value;
pub(crate) use self::authority::{RestrictingNames, find_misspelt};

/// Options of a command line, and warnings about the ignored ones.
#[derive(Clone, Debug, PartialEq)]
pub struct ParsedOptions<O> {
    /// The options.
    pub options: O,
    /// Ignored options with the reason: one message each, for standard error.
    pub warnings: Vec<String>,
}

/// Reason why a command line is refused.
///
/// An option that could restrict a session is never ignored, since the caller relies on the restriction.
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
        /// Warnings of ignored options. One of them may be a misspelt `--last`.
        ignored: Vec<String>,
    },
    /// The option does not accept this value.
    #[error("invalid value for {option}: expected {expected}, found `{value}`")]
    InvalidValue {
        /// The option, as it was written.
        option: String,
        /// The value, shortened.
        value: String,
        /// Values that the option accepts.
        expected: String,
    },
    /// The option takes no value, but was given one.
    #[error("option {option} takes no value")]
    UnexpectedValue {
        /// The option, as it was written.
        option: String,
    },
    /// The option is known, or its name sounds as if it restricts a session, and it is not supported.
    #[error("option {option} is not supported and may restrict the session: {reason}")]
    Restricting {
        /// The option or configuration key, as it was written.
        option: String,
        /// Reason why it cannot be ignored.
        reason: String,
    },
    /// A word that is neither an option nor its value.
    #[error("unexpected argument `{word}`")]
    UnexpectedWord {
        /// The word, shortened.
        word: String,
    },
    /// The option is unknown, and its name is close to a known one that neither restricts nor grants.
    #[error("option {option} is unknown; did you mean {meant}?")]
    Misspelt {
        /// The option or configuration key, as it was written.
        option: String,
        /// The option or configuration key that was probably meant.
        meant: &'static str,
    },
    /// One option permits something that another one does not.
    #[error("option {wider} permits more than {narrower}: pass only one of them")]
    Contradiction {
        /// The option that permits more, with its value.
        wider: String,
        /// The option that permits less, with its value.
        narrower: String,
    },
    /// Two options cannot be combined.
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
pub(crate) fn shorten(text: &str) -> String {
    let mut shown: String = text.chars().take(MAX_SHOWN).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

/// A word of a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CommandWord {
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

/// The unread words of a command line.
#[derive(Debug)]
pub(crate) struct CommandWords {
    rest: VecDeque<String>,
    /// Whether `--` was read. Later words are not options.
    options_ended: bool,
    authority: &'static RestrictingNames,
    pub(crate) warnings: Vec<String>,
}

impl CommandWords {
    pub(crate) fn new<S: AsRef<str>>(arguments: &[S], authority: &'static RestrictingNames) -> Self {
        let rest = arguments.iter().map(|argument| argument.as_ref().to_owned()).collect();
        Self { rest, options_ended: false, authority, warnings: Vec::new() }
    }

    /// Reads the next word.
    pub(crate) fn next(&mut self) -> Option<CommandWord> {
        let word = self.rest.pop_front()?;
        if self.options_ended || !is_option(&word) {
            return Some(CommandWord::Plain(word));
        }
        if word == "--" {
            self.options_ended = true;
            return self.next();
        }
        let flag = match self.authority.split_short(&word).or_else(|| word.split_once('=')) {
            Some((name, value)) => Flag { name: name.to_owned(), value: Some(value.to_owned()) },
            None => Flag { name: word, value: None },
        };
        Some(CommandWord::Option(flag))
    }

    /// Reads the value of an option: the rest of its word, or the next word. An option is not accepted as a value,
    /// since it could be one that restricts.
    pub(crate) fn value(&mut self, flag: Flag) -> Result<String, OptionError> {
        if let Some(value) = flag.value {
            return Ok(value);
        }
        let has_value = self.rest.front().is_some_and(|next| !is_option(next));
        let next = if has_value { self.rest.pop_front() } else { None };
        next.ok_or(OptionError::MissingValue { option: flag.name })
    }

    /// Reads the value of an option, which must be one of `known`.
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

    /// Ignores an option that is known to be harmless. `has_value` is whether it takes a value.
    pub(crate) fn ignore(&mut self, flag: Flag, has_value: bool, reason: &str) -> Result<(), OptionError> {
        let name = flag.name.clone();
        if has_value {
            self.value(flag)?;
        }
        self.warnings.push(format!("option {name} is ignored: {reason}"));
        Ok(())
    }

    /// Checks an unknown option, then removes and returns the next word if it may be its value: a word that is neither
    /// an option nor one of `commands`.
    ///
    /// An error if the name is close to a known option or contains a restricting word, or if the value belongs to an
    /// option that restricts or grants.
    pub(crate) fn unknown(&mut self, flag: &Flag, commands: &[&str]) -> Result<Option<String>, OptionError> {
        let authority = self.authority;
        let is_value = |next: &str| flag.value.is_none() && !is_option(next) && !commands.contains(&next);
        let next = self.rest.front().map(String::as_str).filter(|next| is_value(next));
        let values = [flag.value.as_deref(), next, attached_value(&flag.name)];
        let objection = authority.objection("it", &flag.name, None).or_else(|| {
            values.into_iter().flatten().find_map(|value| authority.objection("it", &flag.name, Some(value)))
        });
        if let Some(reason) = objection {
            return Err(restricting(&flag.name, reason));
        }
        if let Some(meant) = authority.find_other(&flag.name) {
            return Err(OptionError::Misspelt { option: flag.name.clone(), meant });
        }
        let has_next = next.is_some();
        Ok(if has_next { self.rest.pop_front() } else { None })
    }

    /// Warns that an unknown option is ignored with its value, if it has one.
    pub(crate) fn warn_unknown(&mut self, option: &str, value: Option<&str>) {
        let value = value.map(|value| format!(" with its value `{}`", shorten(value))).unwrap_or_default();
        self.warnings.push(format!("option {option} is ignored{value}: it is unknown"));
    }

    /// Warns that an unknown option is ignored, and that the next word is not its value.
    pub(crate) fn warn_without_value(&mut self, option: &str, next: &str) {
        let next = shorten(next);
        self.warnings
            .push(format!("option {option} is ignored: it is unknown, and `{next}` is not its value"));
    }
}

fn is_option(word: &str) -> bool {
    word.len() > 1 && word.starts_with('-')
}

/// Returns the value that a text means.
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
    OptionError::InvalidValue { option: option.to_owned(), value: shorten(value), expected: expected.into() }
}

pub(crate) fn restricting(option: &str, reason: impl Into<String>) -> OptionError {
    OptionError::Restricting { option: option.to_owned(), reason: reason.into() }
}

pub(crate) fn unexpected(word: &str) -> OptionError {
    OptionError::UnexpectedWord { word: shorten(word) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AUTHORITY: RestrictingNames = RestrictingNames {
        names: &[("--sandbox", "--sandbox"), ("--cd", "--cd")],
        others: &[("--model", "--model")],
        values: &[("read-only", "--sandbox")],
        short: &["-s", "-C", "-m"],
    };

    #[test]
    fn unknown_option_may_have_the_next_word_but_no_command() {
        let mut words = CommandWords::new(
            &["--color", "always", "--fancy", "resume", "--x=1", "rest", "--y", "--z"],
            &AUTHORITY,
        );
        let mut found = Vec::new();
        while let Some(word) = words.next() {
            match word {
                CommandWord::Option(flag) => {
                    let next = words.unknown(&flag, &["resume"]).expect("harmless");
                    found.push((flag.name, next.or(flag.value)));
                }
                CommandWord::Plain(word) => found.push((word, None)),
            }
        }
        let expected = [
            ("--color", Some("always")),
            ("--fancy", None),
            ("resume", None),
            ("--x", Some("1")),
            ("rest", None),
            ("--y", None),
            ("--z", None),
        ];
        let found: Vec<_> = found.iter().map(|(word, value)| (word.as_str(), value.as_deref())).collect();
        assert_eq!(found, expected);
        words.warn_unknown("--color", Some("always"));
        words.warn_unknown("--fancy", None);
        assert_eq!(
            words.warnings,
            [
                "option --color is ignored with its value `always`: it is unknown",
                "option --fancy is ignored: it is unknown"
            ]
        );
    }

    #[test]
    fn a_short_option_may_have_its_value_in_the_same_word() {
        for (word, name, value) in [
            ("-sread-only", "-s", Some("read-only")),
            ("-s=read-only", "-s", Some("read-only")),
            ("-s", "-s", None),
            ("-C../p2", "-C", Some("../p2")),
            ("-Cd", "-C", Some("d")),
            ("-ma=b", "-m", Some("a=b")),
            ("--sandbox=x", "--sandbox", Some("x")),
            // Not a directory, a model or a sandbox mode.
            ("-cd", "-cd", None),
            ("-cd=../p2", "-cd", Some("../p2")),
            ("-model", "-model", None),
            ("-sandbox=read-only", "-sandbox", Some("read-only")),
            ("-x=1", "-x", Some("1")),
            ("-xyz", "-xyz", None),
            ("-é", "-é", None),
        ] {
            let flag = Flag { name: name.to_owned(), value: value.map(str::to_owned) };
            assert_eq!(
                CommandWords::new(&[word], &AUTHORITY).next(),
                Some(CommandWord::Option(flag)),
                "{word}"
            );
        }
    }

    #[test]
    fn a_misspelt_option_is_refused_whatever_it_decides() {
        for (word, meant) in [
            ("--cdd", "--cd"),
            ("-cd=../p2", "--cd"),
            ("--sandbx", "--sandbox"),
            ("--modle", "--model"),
            ("-model=m", "--model"),
            ("--m", "-m"),
            ("-x=read-only", "--sandbox"),
        ] {
            let mut words = CommandWords::new(&[word], &AUTHORITY);
            let Some(CommandWord::Option(flag)) = words.next() else { panic!("{word} is an option") };
            let error = words.unknown(&flag, &[]).expect_err(word).to_string();
            assert!(error.ends_with(&format!("did you mean {meant}?")), "{word}: {error}");
        }
    }
}
