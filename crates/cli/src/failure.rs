//! Why the command stops: one sentence for a person, one exit code for a script.

use std::error::Error;

use pintle_llm::ErrorInfo;
use serde_json::{Map, Value, json};

use crate::console;
use crate::exit::Exit;

/// Ends the command.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Failure {
    exit: Exit,
    /// Empty if there is nobody to tell, or nothing that was not said before.
    sentence: String,
    /// The remedy, if one is known.
    hint: Option<String>,
    /// The facts of the error of a model call, if it is one.
    info: Option<Box<ErrorInfo>>,
    /// Whether standard output has an object that tells of it, or the answer that it is about.
    is_in_output: bool,
    /// What follows the sentence on lines of its own, each with its end.
    details: String,
}

impl Failure {
    /// With this exit code and this sentence, which begins in lower case and has no dot at its end.
    pub(crate) fn new(exit: Exit, sentence: impl Into<String>) -> Self {
        let sentence = sentence.into();
        Self { exit, sentence, hint: None, info: None, is_in_output: false, details: String::new() }
    }

    /// With this exit code and a text whose first line is the sentence.
    pub(crate) fn in_lines(exit: Exit, text: &str) -> Self {
        let mut lines = text.lines();
        let sentence = lines.next().unwrap_or_default();
        let details = lines.flat_map(|line| [line, "\n"]).collect();
        Self { details, ..Self::new(exit, sentence) }
    }

    /// The work failed.
    pub(crate) fn failed(sentence: impl Into<String>) -> Self {
        Self::new(Exit::Failed, sentence)
    }

    /// The command line is wrong, or a file that it names.
    pub(crate) fn usage(sentence: impl Into<String>) -> Self {
        Self::new(Exit::Usage, sentence)
    }

    /// Without a word.
    pub(crate) fn silent(exit: Exit) -> Self {
        Self::new(exit, "")
    }

    /// With the cause, and the causes below it, after the sentence.
    pub(crate) fn because(mut self, error: &dyn Error) -> Self {
        self.sentence = format!("{}: {}", self.sentence, chain(error));
        self
    }

    /// With what to do about it, after what was advised before.
    pub(crate) fn advise(mut self, advice: &str) -> Self {
        self.hint = Some(self.hint.map_or_else(|| advice.to_owned(), |hint| format!("{hint}; {advice}")));
        self
    }

    /// With the facts of the error of a model call.
    pub(crate) fn about(mut self, info: &ErrorInfo) -> Self {
        self.info = Some(Box::new(info.clone()));
        self
    }

    /// Not to be told on standard output any more.
    pub(crate) fn in_output(mut self) -> Self {
        self.is_in_output = true;
        self
    }

    /// Whether standard output tells of it already.
    pub(crate) fn is_in_output(&self) -> bool {
        self.is_in_output
    }

    /// The same as an interruption, without a word.
    pub(crate) fn interrupted(self) -> Self {
        Self { is_in_output: self.is_in_output, ..Self::silent(Exit::Interrupted) }
    }

    /// The failure for programs: `kind`, `message`, `exit_code`, `hint` if there is one, and the other facts of a failed
    /// model call.
    pub(crate) fn object(&self) -> Value {
        let facts = self.info.as_ref().and_then(|info| serde_json::to_value(info).ok());
        let mut object = match facts {
            Some(Value::Object(facts)) => facts,
            Some(_) | None => {
                let message =
                    if self.sentence.is_empty() { self.exit.word() } else { self.sentence.as_str() };
                let mut object = Map::new();
                object.insert("kind".to_owned(), json!(self.exit.word()));
                object.insert("message".to_owned(), json!(message));
                object
            }
        };
        if let Some(hint) = &self.hint {
            object.insert("hint".to_owned(), json!(hint));
        }
        let details = self.details.trim_end();
        if !details.is_empty() {
            object.insert("details".to_owned(), json!(details));
        }
        object.insert("exit_code".to_owned(), json!(self.exit.code()));
        Value::Object(object)
    }

    /// How the command ends.
    pub(crate) fn exit(&self) -> Exit {
        self.exit
    }

    /// Tells a person, on standard error, in one line and the details.
    pub(crate) fn report(&self) {
        let sentence = self.sentence();
        if !sentence.is_empty() {
            console::notice(&sentence);
        }
        console::details(&self.details);
    }

    /// The failure and its remedy.
    pub(crate) fn sentence(&self) -> String {
        let parts = [Some(self.sentence.as_str()), self.hint.as_deref()];
        parts.into_iter().flatten().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ")
    }
}

/// An error and its causes in one line. A cause that the line tells already is left out.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let words = cause.to_string();
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        next = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use pintle_llm::{Error, ErrorKind};

    use super::*;

    #[test]
    fn a_sentence_holds_cause_and_advice() {
        let refused = std::io::Error::new(std::io::ErrorKind::ConnectionRefused, "refused");
        let error = Error::new(ErrorKind::Network, "no connection").with_source(refused);
        let failure = Failure::failed("cannot ask").because(&error).advise("try again");
        assert_eq!(failure.sentence(), "cannot ask: network failure: no connection: refused; try again");
        let twice =
            Error::new(ErrorKind::Network, "no: refused").with_source(std::io::Error::other("refused"));
        assert_eq!(Failure::silent(Exit::Failed).advise("look there").sentence(), "look there");
        assert_eq!(chain(&twice), "network failure: no: refused");
    }

    #[test]
    fn a_failure_is_an_object_for_programs() {
        let error = Error::new(ErrorKind::NotFound, "no such model").with_status(404);
        let of_model = Failure::failed("not found: no such model").about(error.info());
        let rows = [
            (
                Failure::usage("--dir x: is not a directory").advise("do this").advise("or that"),
                json!({"kind": "usage", "message": "--dir x: is not a directory", "hint": "do this; or that",
                    "exit_code": 2}),
            ),
            (
                Failure::in_lines(Exit::Failed, "it does not apply\nline 1\nline 2"),
                json!({"kind": "failed", "message": "it does not apply", "details": "line 1\nline 2",
                    "exit_code": 1}),
            ),
            (
                of_model.advise("check the model"),
                json!({"kind": "not_found", "message": "no such model", "retry": "never", "status": 404,
                    "hint": "check the model", "exit_code": 1}),
            ),
            (
                Failure::failed("x").in_output().interrupted(),
                json!({"kind": "interrupted", "message": "interrupted", "exit_code": 130}),
            ),
        ];
        for (failure, expected) in rows {
            assert_eq!(failure.object(), expected);
        }
    }
}
