//! Plain mode: the conversation in lines, for screen readers and for terminals whose cursor cannot be moved.

use std::sync::Arc;
use std::time::Duration;

use pintle_agent::{ApprovalRequest, EventKind};

use super::{Conversation, Effect, HINT_TIME};
use crate::render::TerminalSize;
use crate::render::{StyledLine, Transcript};
use crate::terminal::approvals::{self, Answer};
use crate::terminal::history::History;
use crate::terminal::memory::MemoryFile;
use crate::terminal::status::StatusLine;

/// Printed when the conversation is ready for input.
const READY: &str = "— ready";

/// Width of the status line.
const STATUS_COLUMNS: usize = 1_000;

/// State of plain mode.
#[derive(Debug, Default)]
pub(super) struct Plain {
    /// Call that the user was asked about.
    asked: Option<Arc<ApprovalRequest>>,
    /// Messages that the user has typed and therefore seen, until they become inputs.
    said: Vec<String>,
}

impl Conversation {
    /// Creates a conversation in plain mode.
    pub(crate) fn in_lines(size: TerminalSize, history: History, status: StatusLine) -> Self {
        let mut conversation = Self::new(size, history, status);
        conversation.transcript = Transcript::plain();
        conversation.plain = Some(Plain::default());
        let status = conversation.status.line(STATUS_COLUMNS).text();
        conversation.transcript.note("pintle", &format!("{status}; /help lists commands"));
        conversation
    }

    /// Returns whether the conversation is in plain mode.
    pub(crate) fn is_plain(&self) -> bool {
        self.plain.is_some()
    }

    /// Handles a line of the user: an answer, a command or a message.
    pub(crate) fn line(&mut self, text: &str, now: Duration) -> Vec<Effect> {
        self.leaving = None;
        if let Some(line) = self.memory.take() {
            let Some(file) = MemoryFile::by_name(text.trim()) else {
                self.hint("nothing was added", now);
                return Vec::new();
            };
            return vec![Effect::Memorize(file, line)];
        }
        match self.approvals.answer(text) {
            Answer::Decided(decided) => return vec![Effect::Decide(*decided)],
            Answer::Unfit(reason) => {
                self.hint(reason, now);
                return Vec::new();
            }
            Answer::Other if text.trim().is_empty() => return Vec::new(),
            Answer::Other => {}
        }
        if let Some(told) = self.questions.line(text) {
            self.transcript.line(&told);
            return Vec::new();
        }
        self.editor.set(text);
        let effects = self.enter(now);
        // Rejected input stays on the screen, not in the editor.
        self.editor.clear();
        if self.memory.is_some() {
            self.hint("add to: project or user? Any other line adds to neither", now);
        }
        for effect in &effects {
            if let (Effect::Say(said), Some(plain)) = (effect, &mut self.plain) {
                plain.said.push(said.text.clone());
                if !self.approvals.is_empty() {
                    self.transcript.note("message", &said.text);
                    // The message is no answer, so the call still waits.
                    plain.asked = None;
                }
            }
        }
        self.ask();
        effects
    }

    /// Handles Ctrl+C: interrupts a running turn. A second Ctrl+C leaves.
    pub(crate) fn interrupt_or_leave(&mut self, now: Duration) -> Vec<Effect> {
        if self.leaving.is_some_and(|until| now <= until) {
            return vec![Effect::Leave];
        }
        let interrupts = self.can_interrupt();
        self.leaving = Some(now + HINT_TIME);
        self.hint("press Ctrl+C again to leave", now);
        self.interrupt_unreported |= self.is_running;
        if interrupts { vec![Effect::Interrupt] } else { Vec::new() }
    }

    /// Returns whether an event repeats a message that the user has typed.
    pub(super) fn is_known(&mut self, kind: &EventKind) -> bool {
        let (EventKind::UserInput { content, images, .. }
        | EventKind::SteeringInjected { content, images, .. }) = kind
        else {
            return false;
        };
        let Some(plain) = &mut self.plain else { return false };
        let Some(known) = plain.said.iter().position(|said| said == content) else { return false };
        plain.said.remove(known);
        self.transcript.images(images);
        true
    }

    /// Forgets a message that could not be sent. It is still on the screen.
    pub(super) fn forget(&mut self, text: &str) {
        if let Some(plain) = &mut self.plain {
            plain.said.retain(|said| said != text);
        }
    }

    /// Asks about the next pending call, once.
    pub(super) fn ask(&mut self) {
        let Some(plain) = &mut self.plain else { return };
        let next = self.approvals.selected_request();
        let is_asked = match (&plain.asked, next) {
            (Some(asked), Some(next)) => approvals::is_same(asked, next),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        if is_asked {
            return;
        }
        plain.asked = next.cloned();
        let question = self.approvals.question();
        if !question.is_empty() {
            self.transcript.rows(question);
        }
    }

    /// In plain mode, prints that the conversation is ready for input.
    pub(crate) fn say_ready(&mut self) {
        if self.is_plain() {
            self.transcript.line(&StyledLine::plain(READY));
        }
    }
}
