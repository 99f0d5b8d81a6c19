//! The transcript on a terminal: what waits stands below it and changes, and a question is not written into.

use std::collections::VecDeque;
use std::mem;
use std::time::Duration;

use pintle_agent::{EventKind, SessionEvent};

use super::agents::{SubagentNames, belongs_to_session, call_key_of};
use super::drafts::Drafts;
use super::screen::{LiveRegion, TerminalSize};
use super::style::Style;
use super::text::{Detail, TextView};
use super::waits::Activity;
use super::{Footer, Header, Update};

/// When something is drawn, and on what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    /// Since the run began.
    pub(crate) now: Duration,
    /// The terminal's size by now.
    pub(crate) size: TerminalSize,
}

/// Turns events, ticks and sizes into what a terminal is sent.
#[derive(Debug)]
pub(crate) struct LiveView {
    style: Style,
    text: TextView,
    /// `None` on a terminal whose cursor cannot be moved, and where only the answer is wanted.
    waits: Option<Activity>,
    drafts: Drafts,
    screen: LiveRegion,
    questions: Questions,
    agents: SubagentNames,
    /// What is written when the question is answered.
    held: String,
}

/// The calls that wait for a person, by their marks: one is asked about at a time.
#[derive(Debug, Default)]
struct Questions {
    open: Option<String>,
    next: VecDeque<String>,
}

impl LiveView {
    /// Nothing shown yet.
    pub(super) fn new(style: Style, detail: Detail, drafts: Drafts) -> Self {
        Self {
            style,
            text: TextView::new(style, detail),
            waits: (style.moves && detail != Detail::Quiet).then(Activity::default),
            drafts,
            screen: LiveRegion::default(),
            questions: Questions::default(),
            agents: SubagentNames::default(),
            held: String::new(),
        }
    }

    /// What to write first.
    pub(super) fn opening(&mut self, opening: &Header<'_>) -> String {
        self.text.opening(opening)
    }

    /// What an event changes. While a person is asked, the screen is theirs: everything else waits.
    pub(super) fn event(&mut self, event: &SessionEvent, frame: Frame) -> Update {
        let agent = self.agents.of(event);
        self.text.fit(frame.size);
        self.held.push_str(&self.text.event(event));
        if let Some(waits) = &mut self.waits {
            waits.event(event, agent.as_deref(), frame.now);
        }
        let was_open = self.questions.open.is_some();
        let asks = self.questions.event(event);
        if was_open && asks.is_none() && self.questions.open.is_some() {
            return Update::default();
        }
        let text = mem::take(&mut self.held);
        // What is over at once is not worth a line: the first look of a line is a tick's.
        let lines = if self.screen.is_drawn() { self.lines(frame) } else { Vec::new() };
        Update { text: self.screen.update(&text, lines), asks }
    }

    /// Whether something waits, so that it looks different with time.
    pub(super) fn waits(&self) -> bool {
        let waits = self.waits.as_ref().is_some_and(Activity::any);
        waits && self.questions.open.is_none() && !self.text.is_line_open()
    }

    /// What time changes.
    pub(super) fn tick(&mut self, frame: Frame) -> String {
        let lines = self.lines(frame);
        self.screen.update("", lines)
    }

    /// What to write last.
    pub(super) fn closing(&mut self, closing: &Footer<'_>) -> String {
        let text = mem::take(&mut self.held) + &self.text.closing(closing);
        self.screen.update(&text, Vec::new())
    }

    fn lines(&self, frame: Frame) -> Vec<String> {
        match &self.waits {
            Some(waits) if self.waits() => {
                waits.lines(&self.drafts.lock(), frame.now, frame.size, self.style)
            }
            Some(_) | None => Vec::new(),
        }
    }
}

impl Questions {
    /// Takes in an event and gives the call that is asked about from now on.
    fn event(&mut self, event: &SessionEvent) -> Option<String> {
        let kind = &event.kind;
        if let EventKind::ApprovalRequested { call_id, .. } = kind {
            self.next.push_back(call_key_of(event, call_id));
        } else if let EventKind::ApprovalDecided { call_id, .. } | EventKind::ToolCallEnd { call_id, .. } =
            kind
        {
            let call = call_key_of(event, call_id);
            self.next.retain(|waiting| *waiting != call);
            self.open.take_if(|open| *open == call);
        } else if matches!(kind, EventKind::ProcessingEnd { .. } | EventKind::SessionEnd { .. }) {
            let of_session = |call: &String| belongs_to_session(event, call);
            self.next.retain(|waiting| !of_session(waiting));
            self.open.take_if(|open| of_session(open));
        }
        if self.open.is_some() {
            return None;
        }
        self.open = self.next.pop_front();
        self.open.clone()
    }
}

#[cfg(test)]
mod tests;
