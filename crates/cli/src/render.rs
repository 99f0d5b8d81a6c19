//! How what happens looks on standard output: pure functions from events to text.

mod agents;
mod draft;
mod drafts;
mod foreign;
mod json;
mod live;
mod prose;
mod question;
mod screen;
mod style;
mod summary;
mod text;
mod waits;
mod width;

use std::path::{Path, PathBuf};
use std::time::Duration;

use pintle_agent::{EventKind, Outcome, SessionEvent, SessionId};
use pintle_llm::Usage;
use serde::Serialize;

pub(crate) use self::agents::mark;
use self::agents::call_key_of;
pub(crate) use self::drafts::Drafts;
pub(crate) use self::sanitize::{diff_lines, sanitize};
pub(crate) use self::json::{failure, line};
use self::live::LiveView;
pub(crate) use self::live::Frame;
pub(crate) use self::prose::WordWrapper;
pub(crate) use self::question::{Section, of_model, question};
pub(crate) use self::screen::TerminalSize;
pub(crate) use self::style::Style;
pub(crate) use self::text::Detail;
use self::text::TextView;
pub(crate) use self::waits::TICK;
use crate::args::OutputFormat;
use crate::exit::Exit;
use crate::failure::Failure;

/// One of the three formats of `--output` for a run.
#[derive(Debug)]
pub(crate) enum View {
    /// For people, at a terminal.
    Live(Box<LiveView>),
    /// For people, later.
    Text(Box<TextView>),
    /// One object at the end.
    Json,
    /// One object per line, as it happens.
    StreamJson,
}

/// What an event changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Update {
    /// What to write.
    pub(crate) text: String,
    /// The [mark()] of the call about which a person can be asked once this is written.
    pub(crate) asks: Option<String>,
}

/// What is known before anything happens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header<'a> {
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
pub(crate) struct Footer<'a> {
    /// The session.
    pub(crate) session_id: &'a SessionId,
    /// How the run ended.
    pub(crate) outcome: &'a Outcome,
    /// How the command will end.
    pub(crate) exit: Exit,
    /// Why, if not well.
    pub(crate) failure: Option<&'a Failure>,
    /// What subagents have done besides, if anybody looked.
    pub(crate) below: Option<&'a SubagentTotals>,
    /// How long the run took.
    pub(crate) duration: Duration,
    /// In US dollars, where known.
    pub(crate) cost: Option<f64>,
    /// What the demonstration found, if it was one.
    pub(crate) demonstration: Option<&'a DemoResult>,
}

/// What all subagents have done, at any depth.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct SubagentTotals {
    /// How many there have been.
    #[serde(rename = "count")]
    pub(crate) subagents: u64,
    /// Answers of their models.
    pub(crate) model_calls: u64,
    /// Calls that they have made.
    pub(crate) tool_calls: u64,
    /// Tokens of the answers.
    pub(crate) usage: Usage,
}

impl SubagentTotals {
    /// Adds what an event tells.
    pub(crate) fn add(&mut self, event: &SessionEvent) {
        if let EventKind::SubagentSpawned { .. } = &event.kind {
            self.subagents += 1;
        } else if event.depth == 0 {
            // That of the session itself is its outcome's.
        } else if let EventKind::ModelResponse { usage, .. } = &event.kind {
            self.model_calls += 1;
            self.usage += usage;
        } else if let EventKind::ToolCallStart { .. } = &event.kind {
            self.tool_calls += 1;
        }
    }
}

/// What the demonstration found when it looked for itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DemoResult {
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
    /// An empty view in this format; the other arguments count for text.
    pub(crate) fn new(format: OutputFormat, detail: Detail, style: Style, drafts: Drafts) -> Self {
        match format {
            OutputFormat::Text if style.terminal => {
                Self::Live(Box::new(LiveView::new(style, detail, drafts)))
            }
            OutputFormat::Text => Self::Text(Box::new(TextView::new(style, detail))),
            OutputFormat::Json => Self::Json,
            OutputFormat::StreamJson => Self::StreamJson,
        }
    }

    /// What to write first.
    ///
    /// # Errors
    ///
    /// Those of [`line()`].
    pub(crate) fn opening(&mut self, opening: &Header<'_>) -> Result<String, Failure> {
        match self {
            Self::Live(live) => Ok(live.opening(opening)),
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
    pub(crate) fn event(&mut self, event: &SessionEvent, frame: Frame) -> Result<Update, Failure> {
        let text = match self {
            Self::Live(live) => return Ok(live.event(event, frame)),
            Self::Text(text) => text.event(event),
            Self::Json => String::new(),
            Self::StreamJson => line(event)?,
        };
        let asks = if let EventKind::ApprovalRequested { call_id, .. } = &event.kind {
            Some(call_key_of(event, call_id))
        } else {
            None
        };
        Ok(Update { text, asks })
    }

    /// Whether something waits on the screen, so that there is something to do every [`TICK`].
    pub(crate) fn waits(&self) -> bool {
        match self {
            Self::Live(live) => live.waits(),
            Self::Text(_) | Self::Json | Self::StreamJson => false,
        }
    }

    /// What to write when time has gone by.
    pub(crate) fn tick(&mut self, frame: Frame) -> String {
        match self {
            Self::Live(live) => live.tick(frame),
            Self::Text(_) | Self::Json | Self::StreamJson => String::new(),
        }
    }

    /// What to write last.
    ///
    /// # Errors
    ///
    /// Those of [`line()`].
    pub(crate) fn closing(&mut self, closing: &Footer<'_>) -> Result<String, Failure> {
        match self {
            Self::Live(live) => Ok(live.closing(closing)),
            Self::Text(text) => Ok(text.closing(closing)),
            Self::Json | Self::StreamJson => json::closing(closing),
        }
    }
}
