//! Formats events for standard output. Pure: turns events into text and performs no I/O.

mod activity;
mod call;
mod diff;
mod draft;
mod drafts;
mod image;
mod json;
mod line;
mod live;
mod live_region;
mod markdown;
mod model_questions;
mod note;
mod plan;
mod question;
mod style;
mod subagent_names;
mod summary;
mod text;
mod transcript;
pub(crate) mod width;
mod word_wrap;
mod wrap;

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pintle_agent::{EventKind, Money, Outcome, SessionEvent, SessionId};
use pintle_host::failure::Failure;
use pintle_host::sanitize::json_line;
use pintle_llm::Usage;
use serde::Serialize;
use serde_json::Value;

pub(crate) use self::activity::Activity;
pub use self::activity::TICK;
pub(crate) use self::diff::diff;
pub(crate) use self::image::image_data_label;
pub use self::json::failure_line;
pub use self::line::{Colour, Depth, Face, Span, StyledLine};
pub use self::live::Frame;
use self::live::LiveView;
pub use self::live_region::TerminalSize;
pub(crate) use self::live_region::erase_live_region;
pub(crate) use self::markdown::Markdown;
use self::note::note;
pub use self::question::Section;
pub(crate) use self::question::{model_question, question};
pub use self::style::Style;
pub(crate) use self::subagent_names::call_key;
use self::subagent_names::call_key_of;
pub(crate) use self::summary::{amount_of_budget, count, one_line, parse_amount};
pub use self::summary::{arguments as summarize_arguments, plural};
pub use self::text::Detail;
use self::text::TextView;
pub(crate) use self::transcript::{Transcript, UNWRAPPED_COLUMNS};
pub use self::word_wrap::WordWrapper;
pub(crate) use self::wrap::{Margins, break_anywhere, expand_tabs, wrap};

/// Formatter for one of the output formats of a run.
#[derive(Debug)]
pub enum View {
    /// Text for a terminal, with a live region.
    Live(Box<LiveView>),
    /// Text for a file or a pipe.
    Text(Box<TextView>),
    /// One object at the end.
    Json,
    /// One object per line, streamed.
    StreamJson,
    /// The format of another program.
    Other(Box<dyn EventFormat>),
}

/// Formatter for the output of another program.
pub trait EventFormat: fmt::Debug + Send + Sync {
    /// Returns the output at the start of a run.
    fn header(&mut self, header: &Header<'_>) -> String;

    /// Returns the output for an event.
    fn event(&mut self, event: &SessionEvent) -> String;

    /// Returns the output at the end of a run.
    fn footer(&mut self, footer: &Footer<'_>) -> String;
}

/// Output for an event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Update {
    /// Text to write.
    pub text: String,
    /// Key of the call whose approval can be requested once the text is written.
    pub approval: Option<String>,
}

/// Data for the header of a run.
#[derive(Clone, Copy, Debug)]
pub struct Header<'a> {
    /// Session of the run.
    pub session_id: &'a SessionId,
    /// Provider of the model.
    pub provider: &'a str,
    /// Model of the session.
    pub model: &'a str,
    /// Working directory of the tools.
    pub directory: &'a Path,
}

/// Data for the footer of a run.
#[derive(Clone, Debug)]
pub struct Footer<'a> {
    /// Session of the run.
    pub session_id: &'a SessionId,
    /// Whether the session can be resumed after this process exits.
    pub is_stored: bool,
    /// Outcome of the run.
    pub outcome: &'a Outcome,
    /// The final response, if it had to match a schema and does.
    pub answer: Option<&'a Value>,
    /// Exit code of the command.
    pub exit_code: u8,
    /// Failure of the run, if any.
    pub failure: Option<&'a Failure>,
    /// The failure as an object of JSON output.
    pub error: Option<Value>,
    /// Totals of the subagents, if known.
    pub subagents: Option<&'a SubagentTotals>,
    /// Duration of the run.
    pub duration: Duration,
    /// Cost, if known.
    pub cost: Option<Money>,
    /// Result of the demo, if the run was a demo.
    pub demo: Option<&'a DemoResult>,
}

/// Totals over all subagents, at any depth.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SubagentTotals {
    /// Number of subagents.
    pub count: u64,
    /// Number of model calls.
    pub model_calls: u64,
    /// Number of tool calls.
    pub tool_calls: u64,
    /// Tokens of the model calls.
    pub usage: Usage,
}

impl SubagentTotals {
    /// Adds an event.
    pub fn add(&mut self, event: &SessionEvent) {
        if let EventKind::SubagentSpawned { .. } = &event.kind {
            self.count += 1;
        } else if event.depth == 0 {
            // The outcome has the totals of the session itself.
        } else if let EventKind::ModelResponse { usage, .. } = &event.kind {
            self.model_calls += 1;
            self.usage += usage;
        } else if let EventKind::ToolCallStart { .. } = &event.kind {
            self.tool_calls += 1;
        }
    }
}

/// Independently verified result of the demo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DemoResult {
    /// Directory of the project, which is kept.
    pub directory: PathBuf,
    /// Whether the final test run passed.
    pub passed: bool,
    /// Output of the final test run.
    pub test_output: String,
    /// Unified diff of all changes to the project.
    pub diff: String,
}

impl View {
    /// Creates a view for text.
    pub fn text(detail: Detail, style: Style) -> Self {
        if style.terminal {
            Self::Live(Box::new(LiveView::new(style, detail)))
        } else {
            Self::Text(Box::new(TextView::new(style, detail)))
        }
    }

    /// Returns the header.
    ///
    /// Fails if it cannot be serialised.
    pub fn header(&mut self, header: &Header<'_>) -> Result<String, Failure> {
        match self {
            Self::Live(live) => Ok(live.header(header)),
            Self::Text(text) => Ok(text.header(header)),
            Self::Json => Ok(String::new()),
            Self::StreamJson => json::header(header),
            Self::Other(format) => Ok(format.header(header)),
        }
    }

    /// Returns the output for an event.
    ///
    /// Fails if the event cannot be serialised.
    pub fn event(&mut self, event: &SessionEvent, frame: Frame) -> Result<Update, Failure> {
        let text = match self {
            Self::Live(live) => return Ok(live.event(event, frame)),
            Self::Text(text) => text.event(event),
            Self::Json => String::new(),
            Self::StreamJson => json_line(event)?,
            Self::Other(format) => format.event(event),
        };
        let approval = if let EventKind::ApprovalRequested { call_id, .. } = &event.kind {
            Some(call_key_of(event, call_id))
        } else {
            None
        };
        Ok(Update { text, approval })
    }

    /// Returns whether [`View::tick`] must be called every [`TICK`].
    pub fn is_animated(&self) -> bool {
        match self {
            Self::Live(live) => live.is_animated(),
            Self::Text(_) | Self::Json | Self::StreamJson | Self::Other(_) => false,
        }
    }

    /// Returns the output for the passage of time.
    pub fn tick(&mut self, frame: Frame) -> String {
        match self {
            Self::Live(live) => live.tick(frame),
            Self::Text(_) | Self::Json | Self::StreamJson | Self::Other(_) => String::new(),
        }
    }

    /// Returns the footer.
    ///
    /// Fails if it cannot be serialised.
    pub fn footer(&mut self, footer: &Footer<'_>) -> Result<String, Failure> {
        match self {
            Self::Live(live) => Ok(live.footer(footer)),
            Self::Text(text) => Ok(text.footer(footer)),
            Self::Json | Self::StreamJson => json::footer(footer),
            Self::Other(format) => Ok(format.footer(footer)),
        }
    }

    /// Returns whether the output is text for a human reader.
    pub fn is_text(&self) -> bool {
        matches!(self, Self::Live(_) | Self::Text(_))
    }

    /// Returns whether denied calls make the run fail. In the format of another program, they are ordinary results.
    pub fn tells_denials(&self) -> bool {
        !matches!(self, Self::Other(_))
    }
}
