//! Reason why an operation failed: a kind for programs, a message with hints for users.

use std::error::Error;
use std::fmt;

use pintle_llm::{ErrorInfo, error_chain};

/// Category of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// An argument, or a file that an argument or the configuration names, is invalid.
    Usage,
    /// There are no credentials for the provider, or the provider rejects them.
    Credentials,
    /// A limit was reached: turns, tool rounds, tokens, cost, time, context window or response length.
    LimitReached,
    /// A call needed approval, and no user was available to approve it.
    Denied,
    /// No final response matched the schema that it had to match.
    UnmatchedAnswer,
    /// A signal, the user, or a reader that closed the output stopped the operation.
    Interrupted,
    /// Any other failure.
    Other,
}

/// Failure of an operation.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    kind: FailureKind,
    /// Empty if the user was already notified.
    message: String,
    /// Suggested remedy.
    hint: Option<String>,
    /// What failed, for programs. Boxed, since few failures have it.
    context: Option<Box<FailureContext>>,
    /// Further lines after the message, each with its line end.
    details: String,
    /// Lines of the hint after the details, each with its line end; empty if the hint follows the message.
    hint_lines: String,
}

/// Subject of a failure.
#[derive(Clone, Debug, Default, PartialEq)]
struct FailureContext {
    /// Error of the model call, if one caused the failure.
    info: Option<ErrorInfo>,
    /// Path of the setting whose value is invalid.
    setting: Option<&'static str>,
}

/// Conversion of any error into the cause of a failure.
pub trait OrFailure<T> {
    /// Converts the error into a [`Failure::failed`] with this message.
    fn or_failed(self, message: &str) -> Result<T, Failure>;

    /// Converts the error into a [`Failure::usage`] with this message.
    fn or_usage(self, message: &str) -> Result<T, Failure>;
}

impl<T, E: Error> OrFailure<T> for Result<T, E> {
    fn or_failed(self, message: &str) -> Result<T, Failure> {
        self.map_err(|error| Failure::failed(message).caused_by(&error))
    }

    fn or_usage(self, message: &str) -> Result<T, Failure> {
        self.map_err(|error| Failure::usage(message).caused_by(&error))
    }
}

impl Failure {
    /// Creates a failure. The message starts in lower case and has no final period.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { kind, message, hint: None, context: None, details: String::new(), hint_lines: String::new() }
    }

    /// Creates a failure from a text whose first line is the message and whose other lines are details.
    pub fn multi_line(kind: FailureKind, text: &str) -> Self {
        let mut lines = text.lines();
        let message = lines.next().unwrap_or_default();
        let details = lines.flat_map(|line| [line, "\n"]).collect();
        Self { details, ..Self::new(kind, message) }
    }

    /// Creates a failure of the kind [`FailureKind::Other`].
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Other, message)
    }

    /// Creates a usage failure.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Usage, message)
    }

    /// Creates a failure without a message: the user was already notified.
    pub fn silent(kind: FailureKind) -> Self {
        Self::new(kind, "")
    }

    /// Appends the error and its sources to the message.
    pub fn caused_by(mut self, error: &dyn Error) -> Self {
        self.message = format!("{}: {}", self.message, error_chain(error));
        self
    }

    /// Names the setting whose value is invalid, by its path. A program can add the name that its users know.
    pub fn with_setting(mut self, path: &'static str) -> Self {
        self.context.get_or_insert_default().setting = Some(path);
        self
    }

    /// Adds a hint after any earlier ones.
    pub fn with_hint(mut self, hint: &str) -> Self {
        if !self.hint_lines.is_empty() {
            self.hint_lines.push_str(&hint_line(hint));
        }
        self.hint = Some(self.hint.map_or_else(|| hint.to_owned(), |earlier| format!("{earlier}; {hint}")));
        self
    }

    /// Adds hints, each on a separate line below the message, its details and any earlier hints.
    pub fn with_hints_below(mut self, hints: &[&str]) -> Self {
        for hint in hints {
            if self.hint_lines.is_empty() {
                self.hint_lines = self.hint.as_deref().map(hint_line).unwrap_or_default();
            }
            let lines = std::mem::take(&mut self.hint_lines) + &hint_line(hint);
            self = Self { hint_lines: lines, ..self.with_hint(hint) };
        }
        self
    }

    /// Replaces the kind.
    pub fn with_kind(self, kind: FailureKind) -> Self {
        Self { kind, ..self }
    }

    /// Attaches the error of a model call.
    pub fn with_info(mut self, info: &ErrorInfo) -> Self {
        self.context.get_or_insert_default().info = Some(info.clone());
        self
    }

    /// Returns the kind.
    pub fn kind(&self) -> FailureKind {
        self.kind
    }

    /// Returns the error of the model call that caused the failure.
    pub fn info(&self) -> Option<&ErrorInfo> {
        self.context.as_ref()?.info.as_ref()
    }

    /// Returns the message without the hint, which may contain flags and commands of the command line.
    pub fn message_without_hint(&self) -> &str {
        &self.message
    }

    /// Returns the path of the setting whose value is invalid.
    pub fn setting(&self) -> Option<&'static str> {
        self.context.as_ref()?.setting
    }

    /// Returns the hint.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// Returns the lines after the message: details, then hints.
    pub fn details(&self) -> String {
        format!("{}{}", self.details, self.hint_lines)
    }

    /// Returns the details after the message, without the hints.
    pub fn details_without_hints(&self) -> &str {
        &self.details
    }

    /// Returns the message followed by the hint, unless the hint is below the message. After a question, the hint is a
    /// separate sentence.
    pub fn message(&self) -> String {
        let hint = self.hint.as_deref().filter(|hint| !hint.is_empty() && self.hint_lines.is_empty());
        match hint {
            None => self.message.clone(),
            Some(hint) if self.message.is_empty() => hint.to_owned(),
            Some(hint) if self.message.ends_with('?') => format!("{} {}", self.message, capitalized(hint)),
            Some(hint) => format!("{}; {hint}", self.message),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message())
    }
}

impl Error for Failure {}

/// Returns the line of a hint below a message.
fn hint_line(hint: &str) -> String {
    format!("  {hint}\n")
}

/// Returns a text with an upper-case first letter.
fn capitalized(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().map_or_else(String::new, |first| first.to_uppercase().chain(rest).collect())
}

#[cfg(test)]
mod tests {
    use pintle_llm::{Error, ErrorKind};

    use super::*;

    #[test]
    fn message_includes_sources_and_hints() {
        let refused = std::io::Error::new(std::io::ErrorKind::ConnectionRefused, "refused");
        let error = Error::new(ErrorKind::Network, "no connection").with_source(refused);
        let failure = Failure::failed("cannot ask").caused_by(&error).with_hint("try again");
        assert_eq!(failure.message(), "cannot ask: network failure: no connection: refused; try again");
        assert_eq!(failure.to_string(), failure.message());
        let twice =
            Error::new(ErrorKind::Network, "no: refused").with_source(std::io::Error::other("refused"));
        assert_eq!(Failure::silent(FailureKind::Other).with_hint("look there").message(), "look there");
        assert_eq!(error_chain(&twice), "network failure: no: refused");
    }

    #[test]
    fn a_hint_after_a_question_is_a_separate_sentence() {
        for (message, hint, expected) in [
            (
                "--x is unknown; did you mean --y?",
                "see `pintle --help`",
                "--x is unknown; did you mean --y? See `pintle --help`",
            ),
            ("did you mean a?", "`pintle models` lists them", "did you mean a? `pintle models` lists them"),
            ("no key", "set one", "no key; set one"),
            ("did you mean a?", "", "did you mean a?"),
        ] {
            assert_eq!(Failure::usage(message).with_hint(hint).message(), expected);
        }
        let below = Failure::usage("did you mean a?").with_hints_below(&["see b"]);
        assert_eq!(below.message(), "did you mean a?");
    }

    #[test]
    fn hints_below_follow_the_details_and_earlier_hints() {
        let failure = Failure::multi_line(FailureKind::Usage, "two mistakes\nline 1\nline 2");
        for (failure, details, hint) in [
            (failure.clone(), "line 1\nline 2\n", None),
            (failure.clone().with_hint("a"), "line 1\nline 2\n", Some("a")),
            (failure.clone().with_hints_below(&[]), "line 1\nline 2\n", None),
            (failure.clone().with_hints_below(&["a", "b"]), "line 1\nline 2\n  a\n  b\n", Some("a; b")),
            (
                failure.with_hint("a").with_hints_below(&["b"]).with_hint("c"),
                "line 1\nline 2\n  a\n  b\n  c\n",
                Some("a; b; c"),
            ),
        ] {
            assert_eq!((failure.details().as_str(), failure.hint()), (details, hint));
            assert_eq!(failure.details_without_hints(), "line 1\nline 2\n");
            let is_beside = hint.is_some() && failure.details() == failure.details_without_hints();
            assert_eq!(failure.message() == "two mistakes", !is_beside, "{failure:?}");
        }
    }
}
