//! Output of a run as text: a transcript and a footer.

mod footer;

use pintle_agent::SessionEvent;

use super::line::{Face, StyledLine};
use super::live_region::TerminalSize;
use super::style::Style;
use super::transcript::Transcript;
use super::{Footer, Header, width};

/// Level of detail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Final response only.
    Quiet,
    /// Transcript.
    Normal,
    /// Transcript with reasoning, requests and token counts.
    Verbose,
}

/// Formats events as the output of a run.
#[derive(Debug)]
pub struct TextView {
    style: Style,
    detail: Detail,
    transcript: Transcript,
    /// Width at which text is wrapped, if any.
    columns: Option<usize>,
}

impl TextView {
    /// Creates an empty output.
    pub(crate) fn new(style: Style, detail: Detail) -> Self {
        let transcript = Transcript::for_run(style.moves, detail == Detail::Verbose);
        Self { style, detail, transcript, columns: None }
    }

    /// Wraps text at the width of a terminal of this size from now on.
    pub(super) fn resize(&mut self, size: TerminalSize) {
        // Terminals differ in how they treat the last column.
        let columns = size.columns.saturating_sub(1);
        self.columns = Some(columns);
        self.transcript.resize(columns);
    }

    /// Returns whether the last line is incomplete.
    pub(super) fn is_line_open(&self) -> bool {
        self.transcript.is_line_open()
    }

    /// Returns the header in verbose mode.
    pub(super) fn header(&mut self, header: &Header<'_>) -> String {
        if self.detail == Detail::Verbose {
            let Header { session_id, provider, model, directory } = header;
            let line = format!("[session] {session_id}: {provider} {model} in {}", directory.display());
            self.transcript.line(&StyledLine::new(width::single_line(&line), Face::DIM));
        }
        self.take()
    }

    /// Returns the output for an event.
    pub(super) fn event(&mut self, event: &SessionEvent) -> String {
        let subagent = self.transcript.subagent_of(event);
        if self.detail != Detail::Quiet {
            self.transcript.event(event, subagent.as_deref());
        }
        self.take()
    }

    fn take(&mut self) -> String {
        self.transcript.take_text(self.style.depth())
    }
}

#[cfg(test)]
mod tests;
