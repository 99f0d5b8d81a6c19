//! Reason for which the command stops: a message for users, an exit code for scripts.

use std::error::Error;

use pintle_llm::{ErrorInfo, error_chain};
use serde_json::{Map, Value, json};

use crate::exit::Exit;

/// Failure that ends the command.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Failure {
    exit: Exit,
    /// Empty if the failure is not to be reported.
    message: String,
    /// Suggested remedy.
    hint: Option<String>,
    /// Error of the model call, if one caused the failure.
    info: Option<Box<ErrorInfo>>,
    /// Whether standard output already reports the failure.
    is_in_output: bool,
    /// Further lines to print after the message, each with its line end.
    details: String,
    /// Whether these lines are the hint.
    is_hint_below: bool,
}

/// Conversion of any error into the cause of a failure.
pub(crate) trait OrFailure<T> {
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
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        let message = message.into();
        Self {
            exit,
            message,
            hint: None,
            info: None,
            is_in_output: false,
            details: String::new(),
            is_hint_below: false,
        }
    }

    /// Creates a failure from a text whose first line is the message and whose other lines are details.
    pub(crate) fn multi_line(exit: Exit, text: &str) -> Self {
        let mut lines = text.lines();
        let message = lines.next().unwrap_or_default();
        let details = lines.flat_map(|line| [line, "\n"]).collect();
        Self { details, ..Self::new(exit, message) }
    }

    /// Creates a failure with exit code 1.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::new(Exit::Failed, message)
    }

    /// Creates a usage failure.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    /// Creates a failure without a message.
    pub(crate) fn silent(exit: Exit) -> Self {
        Self::new(exit, "")
    }

    /// Appends the error and its sources to the message.
    pub(crate) fn caused_by(mut self, error: &dyn Error) -> Self {
        self.message = format!("{}: {}", self.message, error_chain(error));
        self
    }

    /// Adds a hint after any earlier ones.
    pub(crate) fn with_hint(mut self, hint: &str) -> Self {
        self.hint = Some(self.hint.map_or_else(|| hint.to_owned(), |earlier| format!("{earlier}; {hint}")));
        self
    }

    /// Adds hints, each printed on a separate line below the message.
    pub(crate) fn with_hints_below(self, hints: &[&str]) -> Self {
        let details = hints.iter().map(|hint| format!("  {hint}\n")).collect();
        Self {
            details,
            is_hint_below: true,
            ..hints.iter().fold(self, |failure, hint| failure.with_hint(hint))
        }
    }

    /// Replaces the exit status.
    pub(crate) fn with_exit(self, exit: Exit) -> Self {
        Self { exit, ..self }
    }

    /// Attaches the error of a model call.
    pub(crate) fn with_info(mut self, info: &ErrorInfo) -> Self {
        self.info = Some(Box::new(info.clone()));
        self
    }

    /// Marks the failure as reported on standard output.
    pub(crate) fn already_in_output(mut self) -> Self {
        self.is_in_output = true;
        self
    }

    /// Returns whether standard output already reports the failure.
    pub(crate) fn is_in_output(&self) -> bool {
        self.is_in_output
    }

    /// Converts the failure into an interruption without a message.
    pub(crate) fn into_interruption(self) -> Self {
        Self { is_in_output: self.is_in_output, ..Self::silent(Exit::Interrupted) }
    }

    /// Returns the failure as JSON: `kind`, `message`, `exit_code`, `hint` and `details` if present, and the fields of a
    /// failed model call.
    pub(crate) fn to_json(&self) -> Value {
        let info = self.info.as_ref().and_then(|info| serde_json::to_value(info).ok());
        let mut object = match info {
            Some(Value::Object(fields)) => fields,
            Some(_) | None => {
                let message = if self.message.is_empty() { self.exit.name() } else { self.message.as_str() };
                let mut object = Map::new();
                object.insert("kind".to_owned(), json!(self.exit.name()));
                object.insert("message".to_owned(), json!(message));
                object
            }
        };
        if let Some(hint) = &self.hint {
            object.insert("hint".to_owned(), json!(hint));
        }
        let details = self.details.trim_end();
        if !details.is_empty() && !self.is_hint_below {
            object.insert("details".to_owned(), json!(details));
        }
        object.insert("exit_code".to_owned(), json!(self.exit.code()));
        Value::Object(object)
    }

    /// Returns the exit status.
    pub(crate) fn exit(&self) -> Exit {
        self.exit
    }

    /// Returns the message without the hint, for a reader who does not use the command line.
    #[cfg(feature = "server")]
    pub(crate) fn message_without_hint(&self) -> &str {
        &self.message
    }

    /// Returns the hint.
    #[cfg(feature = "server")]
    pub(crate) fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// Returns the lines to print after the message.
    pub(crate) fn details(&self) -> &str {
        &self.details
    }

    /// Returns the message followed by the hint, unless that is below it. After a question, the hint is
    /// a separate sentence.
    pub(crate) fn message(&self) -> String {
        let hint = self.hint.as_deref().filter(|hint| !hint.is_empty() && !self.is_hint_below);
        match hint {
            None => self.message.clone(),
            Some(hint) if self.message.is_empty() => hint.to_owned(),
            Some(hint) if self.message.ends_with('?') => format!("{} {}", self.message, capitalized(hint)),
            Some(hint) => format!("{}; {hint}", self.message),
        }
    }
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
        let twice =
            Error::new(ErrorKind::Network, "no: refused").with_source(std::io::Error::other("refused"));
        assert_eq!(Failure::silent(Exit::Failed).with_hint("look there").message(), "look there");
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
    fn failures_convert_to_json() {
        let error = Error::new(ErrorKind::NotFound, "no such model").with_status(404);
        let of_model = Failure::failed("not found: no such model").with_info(error.info());
        let cases = [
            (
                Failure::usage("--dir x: is not a directory").with_hint("do this").with_hint("or that"),
                json!({"kind": "usage", "message": "--dir x: is not a directory", "hint": "do this; or that",
                    "exit_code": 2}),
            ),
            (
                Failure::multi_line(Exit::Failed, "it does not apply\nline 1\nline 2"),
                json!({"kind": "failed", "message": "it does not apply", "details": "line 1\nline 2",
                    "exit_code": 1}),
            ),
            (
                of_model.with_hint("check the model"),
                json!({"kind": "not_found", "message": "no such model", "retry": "never", "status": 404,
                    "hint": "check the model", "exit_code": 1}),
            ),
            (
                Failure::failed("no key").with_hints_below(&["set one", "or do without"]),
                json!({"kind": "failed", "message": "no key", "hint": "set one; or do without", "exit_code": 1}),
            ),
            (
                Failure::failed("x").already_in_output().into_interruption(),
                json!({"kind": "interrupted", "message": "interrupted", "exit_code": 130}),
            ),
        ];
        for (failure, expected) in cases {
            assert_eq!(failure.to_json(), expected);
        }
    }
}
