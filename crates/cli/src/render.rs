//! Formats events for standard output. Pure: turns events into text and performs no I/O.

mod activity;
mod asked;
mod call;
#[cfg(feature = "compat")]
mod codex;
mod diff;
mod draft;
mod drafts;
mod image;
mod json;
mod line;
mod live;
mod live_region;
mod markdown;
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

use std::path::{Path, PathBuf};
use std::time::Duration;

use pintle_agent::{EventKind, Outcome, SessionEvent, SessionId};
use pintle_host::sanitize;
pub(crate) use pintle_host::sanitize::{Sanitizer, diff_lines, escape_hidden, in_one_line, sanitize};
use pintle_llm::Usage;
use serde::Serialize;

pub(crate) use self::activity::{Activity, TICK};
pub(crate) use self::diff::diff;
pub(crate) use self::image::{image_data_label, image_label};
pub(crate) use self::json::{failure_line, json_line};
pub(crate) use self::line::{Colour, Depth, Face, Line};
pub(crate) use self::live::Frame;
use self::live::LiveView;
pub(crate) use self::live_region::{TerminalSize, erase_live_region};
pub(crate) use self::markdown::Markdown;
pub(crate) use self::note::note;
pub(crate) use self::question::{Section, model_question, question};
pub(crate) use self::style::Style;
pub(crate) use self::subagent_names::call_key;
use self::subagent_names::call_key_of;
pub(crate) use self::summary::{amount_of_budget, count, one_line, parse_amount, plural, was_or_were};
pub(crate) use self::text::Detail;
use self::text::TextView;
pub(crate) use self::transcript::{Transcript, UNWRAPPED_COLUMNS};
pub(crate) use self::word_wrap::WordWrapper;
pub(crate) use self::wrap::{Margins, break_anywhere, expand_tabs, wrap};
use crate::exit::Exit;
use crate::failure::Failure;

/// Formatter for one of the output formats of a run.
#[derive(Debug)]
pub(crate) enum View {
    /// Text for a terminal, with a live region.
    Live(Box<LiveView>),
    /// Text for a file or a pipe.
    Text(Box<TextView>),
    /// One object at the end.
    Json,
    /// One object per line, streamed.
    StreamJson,
    /// The lines of `codex exec --json`. The formatter follows the header.
    #[cfg(feature = "compat")]
    Codex(Option<Box<pintle_compat::codex::Formatter>>),
}

/// Output for an event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Update {
    /// Text to write.
    pub(crate) text: String,
    /// [Key](call_key) of the call whose approval can be requested once the text is written.
    pub(crate) approval: Option<String>,
}

/// Data for the header of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header<'a> {
    pub(crate) session_id: &'a SessionId,
    pub(crate) provider: &'a str,
    pub(crate) model: &'a str,
    /// Working directory of the tools.
    pub(crate) directory: &'a Path,
}

/// Data for the footer of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Footer<'a> {
    pub(crate) session_id: &'a SessionId,
    /// Whether the session can be resumed after this process exits.
    pub(crate) is_kept: bool,
    pub(crate) outcome: &'a Outcome,
    /// The final response, if it had to match a schema and does.
    pub(crate) answer: Option<&'a serde_json::Value>,
    /// Exit status of the command.
    pub(crate) exit: Exit,
    pub(crate) failure: Option<&'a Failure>,
    pub(crate) subagents: Option<&'a SubagentTotals>,
    pub(crate) duration: Duration,
    /// Cost in US dollars, if known.
    pub(crate) cost: Option<f64>,
    /// Result of the demo, if the run was a demo.
    pub(crate) demo: Option<&'a DemoResult>,
}

/// Totals over all subagents, at any depth.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct SubagentTotals {
    /// Number of subagents.
    pub(crate) count: u64,
    pub(crate) model_calls: u64,
    pub(crate) tool_calls: u64,
    pub(crate) usage: Usage,
}

impl SubagentTotals {
    /// Adds an event.
    pub(crate) fn add(&mut self, event: &SessionEvent) {
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
pub(crate) struct DemoResult {
    /// Directory of the project, which is kept.
    pub(crate) directory: PathBuf,
    /// Whether the final test run passed.
    pub(crate) passed: bool,
    /// Output of the final test run.
    pub(crate) test_output: String,
    /// Unified diff of all changes to the project.
    pub(crate) diff: String,
}

impl View {
    /// Creates a view for text.
    pub(crate) fn text(detail: Detail, style: Style) -> Self {
        if style.terminal {
            Self::Live(Box::new(LiveView::new(style, detail)))
        } else {
            Self::Text(Box::new(TextView::new(style, detail)))
        }
    }

    /// Returns the header.
    pub(crate) fn header(&mut self, header: &Header<'_>) -> Result<String, Failure> {
        match self {
            Self::Live(live) => Ok(live.header(header)),
            Self::Text(text) => Ok(text.header(header)),
            Self::Json => Ok(String::new()),
            Self::StreamJson => json::header(header),
            #[cfg(feature = "compat")]
            Self::Codex(formatter) => Ok(codex::header(formatter, header)),
        }
    }

    /// Returns the output for an event.
    pub(crate) fn event(&mut self, event: &SessionEvent, frame: Frame) -> Result<Update, Failure> {
        let text = match self {
            Self::Live(live) => return Ok(live.event(event, frame)),
            Self::Text(text) => text.event(event),
            Self::Json => String::new(),
            Self::StreamJson => json_line(event)?,
            #[cfg(feature = "compat")]
            Self::Codex(formatter) => codex::event(formatter, event),
        };
        let approval = if let EventKind::ApprovalRequested { call_id, .. } = &event.kind {
            Some(call_key_of(event, call_id))
        } else {
            None
        };
        Ok(Update { text, approval })
    }

    /// Returns whether [`View::tick`] must be called every [`TICK`].
    pub(crate) fn is_animated(&self) -> bool {
        match self {
            Self::Live(live) => live.is_animated(),
            Self::Text(_) | Self::Json | Self::StreamJson => false,
            #[cfg(feature = "compat")]
            Self::Codex(_) => false,
        }
    }

    /// Returns the output for the passage of time.
    pub(crate) fn tick(&mut self, frame: Frame) -> String {
        match self {
            Self::Live(live) => live.tick(frame),
            Self::Text(_) | Self::Json | Self::StreamJson => String::new(),
            #[cfg(feature = "compat")]
            Self::Codex(_) => String::new(),
        }
    }

    /// Returns the footer.
    pub(crate) fn footer(&mut self, footer: &Footer<'_>) -> Result<String, Failure> {
        match self {
            Self::Live(live) => Ok(live.footer(footer)),
            Self::Text(text) => Ok(text.footer(footer)),
            Self::Json | Self::StreamJson => json::footer(footer),
            #[cfg(feature = "compat")]
            Self::Codex(formatter) => Ok(codex::footer(formatter, footer)),
        }
    }

    /// Returns whether the output is text for a human reader.
    pub(crate) fn is_text(&self) -> bool {
        matches!(self, Self::Live(_) | Self::Text(_))
    }

    /// Returns whether denied calls make the run fail. In the format of another program, they are ordinary results.
    pub(crate) fn tells_denials(&self) -> bool {
        #[cfg(feature = "compat")]
        if let Self::Codex(_) = self {
            return false;
        }
        true
    }
}
