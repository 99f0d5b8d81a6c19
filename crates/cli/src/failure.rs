//! Why the command stops: one sentence for a person, one exit code for a script.

use std::error::Error;

use crate::console;
use crate::exit::Exit;

/// Ends the command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    exit: Exit,
    /// Empty if there is nobody to tell, or nothing that was not said before.
    sentence: String,
    /// What follows the sentence on lines of its own, each with its end.
    details: String,
}

impl Failure {
    /// With this exit code and this sentence, which begins in lower case and has no dot at its end.
    pub(crate) fn new(exit: Exit, sentence: impl Into<String>) -> Self {
        Self { exit, sentence: sentence.into(), details: String::new() }
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

    /// With what to do about it.
    pub(crate) fn advise(mut self, advice: &str) -> Self {
        let gap = if self.sentence.is_empty() { "" } else { "; " };
        self.sentence = format!("{}{gap}{advice}", self.sentence);
        self
    }

    /// How the command ends.
    pub(crate) fn exit(&self) -> Exit {
        self.exit
    }

    /// Tells a person, on standard error, in one line and the details.
    pub(crate) fn report(&self) {
        if !self.sentence.is_empty() {
            console::notice(&self.sentence);
        }
        console::details(&self.details);
    }

    #[cfg(test)]
    pub(crate) fn sentence(&self) -> &str {
        &self.sentence
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
}
