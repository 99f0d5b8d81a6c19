//! Transcript on a terminal, with a live region below it. Output is deferred while a question is open.

use std::collections::VecDeque;
use std::mem;
use std::time::Duration;

use pintle_agent::{EventKind, SessionEvent};

use super::activity::{Activity, MAX_LINES};
use super::live_region::{LiveRegion, TerminalSize};
use super::style::Style;
use super::subagent_names::{SubagentNames, belongs_to_session, call_key_of};
use super::text::{Detail, TextView};
use super::{Footer, Header, Update};

/// Time and terminal size for an update.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// Time since the run started.
    pub now: Duration,
    /// Current size of the terminal.
    pub size: TerminalSize,
}

/// Converts events and ticks into terminal output.
#[derive(Debug)]
pub struct LiveView {
    style: Style,
    text: TextView,
    /// `None` if the cursor cannot be moved or only the final response is shown.
    activity: Option<Activity>,
    region: LiveRegion,
    approvals: ApprovalQueue,
    subagents: SubagentNames,
    /// Output deferred until the open question is answered.
    deferred: String,
}

/// Keys of the calls that wait for approval. The user is asked about one call after the other.
#[derive(Debug, Default)]
struct ApprovalQueue {
    current: Option<String>,
    queued: VecDeque<String>,
}

impl LiveView {
    /// Creates an empty view.
    pub(super) fn new(style: Style, detail: Detail) -> Self {
        Self {
            style,
            text: TextView::new(style, detail),
            activity: (style.moves && detail != Detail::Quiet).then(Activity::default),
            region: LiveRegion::default(),
            approvals: ApprovalQueue::default(),
            subagents: SubagentNames::default(),
            deferred: String::new(),
        }
    }

    /// Returns the header.
    pub(super) fn header(&mut self, header: &Header<'_>) -> String {
        self.text.header(header)
    }

    /// Returns the output for an event, or defers it while a question is open.
    pub(super) fn event(&mut self, event: &SessionEvent, frame: Frame) -> Update {
        let subagent = self.subagents.name_of(event);
        self.text.resize(frame.size);
        self.deferred.push_str(&self.text.event(event));
        if let Some(activity) = &mut self.activity {
            activity.event(event, subagent.as_deref(), frame.now);
        }
        if let EventKind::ToolCallArgumentsDelta { .. } = &event.kind {
            // Deltas are too frequent to redraw for each. The next tick shows them.
            return Update::default();
        }
        let was_asking = self.approvals.current.is_some();
        let approval = self.approvals.event(event);
        if was_asking && approval.is_none() && self.approvals.current.is_some() {
            return Update::default();
        }
        let text = mem::take(&mut self.deferred);
        // Only a tick draws the region for the first time: activity that ends before it is not worth a line.
        let lines = if self.region.is_drawn() { self.lines(frame) } else { Vec::new() };
        Update { text: self.region.update(&text, lines), approval }
    }

    /// Returns whether the live region changes with time.
    pub(super) fn is_animated(&self) -> bool {
        let is_busy = self.activity.as_ref().is_some_and(Activity::is_busy);
        is_busy && self.approvals.current.is_none() && !self.text.is_line_open()
    }

    /// Returns the output for the passage of time.
    pub(super) fn tick(&mut self, frame: Frame) -> String {
        let lines = self.lines(frame);
        self.region.update("", lines)
    }

    /// Returns the footer, after any deferred output.
    pub(super) fn footer(&mut self, footer: &Footer<'_>) -> String {
        let text = mem::take(&mut self.deferred) + &self.text.footer(footer);
        self.region.update(&text, Vec::new())
    }

    fn lines(&self, frame: Frame) -> Vec<String> {
        match &self.activity {
            Some(activity) if self.is_animated() => {
                let columns = frame.size.columns.saturating_sub(1);
                let mut lines = activity.lines(frame.now, frame.size);
                // One row is left for the transcript.
                let rows = frame.size.rows.saturating_sub(1).min(MAX_LINES);
                let room = rows.saturating_sub(lines.len());
                lines.extend(activity.plan_lines(room).into_iter().map(|line| line.truncated(columns)));
                lines.iter().map(|line| line.to_terminal(self.style.depth())).collect()
            }
            Some(_) | None => Vec::new(),
        }
    }
}

impl ApprovalQueue {
    /// Processes an event and returns the key of the call to ask about next, if any.
    fn event(&mut self, event: &SessionEvent) -> Option<String> {
        let kind = &event.kind;
        if let EventKind::ApprovalRequested { call_id, .. } = kind {
            self.queued.push_back(call_key_of(event, call_id));
        } else if let EventKind::ApprovalDecided { call_id, .. } | EventKind::ToolCallEnd { call_id, .. } =
            kind
        {
            let call = call_key_of(event, call_id);
            self.queued.retain(|queued| *queued != call);
            self.current.take_if(|current| *current == call);
        } else if matches!(kind, EventKind::ProcessingEnd { .. } | EventKind::SessionEnd { .. }) {
            self.queued.retain(|call| !belongs_to_session(event, call));
            self.current.take_if(|call| belongs_to_session(event, call));
        }
        if self.current.is_some() {
            return None;
        }
        self.current = self.queued.pop_front();
        self.current.clone()
    }
}

#[cfg(test)]
mod tests;
