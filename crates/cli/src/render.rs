//! How what happens looks on standard output: pure functions from events to text.

mod json;
mod style;
mod summary;
mod text;

use std::path::{Path, PathBuf};
use std::time::Duration;

use pintle_agent::{Outcome, SessionEvent, SessionId};

pub(crate) use self::json::line;
pub(crate) use self::style::{Style, harmless, steers};
pub(crate) use self::text::{Detail, TextView};
use crate::args::OutputFormat;
use crate::exit::Exit;
use crate::failure::Failure;

/// One of the three formats of `--output` for a run.
#[derive(Debug)]
pub(crate) enum View {
    /// For people.
    Text(TextView),
    /// One object at the end.
    Json,
    /// One object per line, as it happens.
    StreamJson,
}

/// What is known before anything happens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opening<'a> {
    /// The session.
    pub(crate) session_id: &'a SessionId,
    /// Whose model.
    pub(crate) provider: &'a str,
    /// Which one.
    pub(crate) model: &'a str,
    /// Where the tools run.
    pub(crate) directory: &'a Path,
}

/// What is known when everything is over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Closing<'a> {
    /// The session.
    pub(crate) session_id: &'a SessionId,
    /// How the run ended.
    pub(crate) outcome: &'a Outcome,
    /// How the command will end.
    pub(crate) exit: Exit,
    /// How long the run took.
    pub(crate) duration: Duration,
    /// In US dollars, where known.
    pub(crate) cost: Option<f64>,
    /// What the demonstration found, if it was one.
    pub(crate) demonstration: Option<&'a Demonstration>,
}

/// What the demonstration found when it looked for itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Demonstration {
    /// The folder, which is kept.
    pub(crate) folder: PathBuf,
    /// Whether `cargo test`, run by the command itself, passed.
    pub(crate) passed: bool,
    /// What the test run said.
    pub(crate) test_output: String,
    /// All changes to the example, as a unified diff.
    pub(crate) diff: String,
}

impl View {
    /// An empty view in this format; the other two arguments count for text.
    pub(crate) fn new(format: OutputFormat, detail: Detail, style: Style) -> Self {
        match format {
            OutputFormat::Text => Self::Text(TextView::new(style, detail)),
            OutputFormat::Json => Self::Json,
            OutputFormat::StreamJson => Self::StreamJson,
        }
    }

    /// What to write first.
    ///
    /// # Errors
    ///
    /// Those of [`line()`].
    pub(crate) fn opening(&mut self, opening: &Opening<'_>) -> Result<String, Failure> {
        match self {
            Self::Text(text) => Ok(text.opening(opening)),
            Self::Json => Ok(String::new()),
            Self::StreamJson => json::opening(opening),
        }
    }

    /// What to write for an event.
    ///
    /// # Errors
    ///
    /// Those of [`line()`].
    pub(crate) fn event(&mut self, event: &SessionEvent) -> Result<String, Failure> {
        match self {
            Self::Text(text) => Ok(text.event(event)),
            Self::Json => Ok(String::new()),
            Self::StreamJson => line(event),
        }
    }

    /// What to write last.
    ///
    /// # Errors
    ///
    /// Those of [`line()`].
    pub(crate) fn closing(&mut self, closing: &Closing<'_>) -> Result<String, Failure> {
        match self {
            Self::Text(text) => Ok(text.closing(closing)),
            Self::Json | Self::StreamJson => json::closing(closing),
        }
    }
}
