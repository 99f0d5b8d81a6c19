//! What a run waits for, in lines that change.

use std::time::Duration;

use pintle_agent::{EventKind, SessionEvent, SessionId};
use pintle_llm::Finish;

use super::draft::{Draft, Sign};
use super::screen::Size;
use super::style::{Ink, Style};
use super::{summary, width};

/// The shortest time between two looks of a line.
pub(crate) const TICK: Duration = Duration::from_millis(100);

/// What turns while something waits, a picture for each tick.
pub(super) const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// Lines of the diffs of one call.
const DIFF_LINES: usize = 8;

/// Lines of the diff of each call, if there are several.
const SHARED_DIFF_LINES: usize = 3;

/// The most lines that change.
const MOST_LINES: usize = 16;

/// What is on its way.
#[derive(Debug, Default)]
pub(super) struct Waits {
    model: Option<Answer>,
    calls: Vec<Call>,
    /// Whether text is being written: it is seen to grow, and nothing stands below it.
    is_writing: bool,
}

/// An answer of the model.
#[derive(Clone, Copy, Debug)]
struct Answer {
    since: Duration,
    is_reasoning: bool,
}

/// A tool call that runs.
#[derive(Debug)]
struct Call {
    session: SessionId,
    /// Whose it is, if a subagent's.
    agent: Option<String>,
    call_id: String,
    tool_name: String,
    subject: String,
    since: Duration,
}

/// A line before it is cut: parts in their colours, and an end that is shown where it leaves room for them.
struct Line {
    parts: Vec<(Option<Ink>, String)>,
    end: String,
}

impl Waits {
    /// Takes in an event, which came at `now`, of the session itself or of a subagent.
    pub(super) fn event(&mut self, event: &SessionEvent, agent: Option<&str>, now: Duration) {
        match agent {
            None => self.own(event, now),
            Some(agent) => self.of_agent(agent, event, now),
        }
    }

    /// Of a subagent only the calls that run are shown: who waits for it sees that it waits.
    fn of_agent(&mut self, agent: &str, event: &SessionEvent, now: Duration) {
        if let EventKind::ToolCallStart { .. } = &event.kind {
            self.start(event, Some(agent), now);
        } else if let EventKind::ToolCallEnd { call_id, .. } = &event.kind {
            self.end(event, call_id);
        } else if let EventKind::ProcessingEnd { .. } | EventKind::SessionEnd { .. } = &event.kind {
            self.calls.retain(|call| call.session != event.session_id);
        }
    }

    fn start(&mut self, event: &SessionEvent, agent: Option<&str>, now: Duration) {
        if let EventKind::ToolCallStart { call_id, tool_name, arguments, .. } = &event.kind {
            self.calls.push(Call {
                session: event.session_id.clone(),
                agent: agent.map(|agent| summary::one_line(agent, summary::LONGEST)),
                call_id: call_id.clone(),
                tool_name: summary::one_line(tool_name, summary::LONGEST),
                subject: summary::of_arguments(arguments),
                since: now,
            });
        }
    }

    fn end(&mut self, event: &SessionEvent, call_id: &str) {
        self.calls.retain(|call| call.call_id != call_id || call.session != event.session_id);
    }

    fn own(&mut self, event: &SessionEvent, now: Duration) {
        match &event.kind {
            EventKind::UserInput { .. } | EventKind::RequestPrepared { .. } => {
                self.model = Some(Answer { since: now, is_reasoning: false });
            }
            EventKind::ReasoningStart {} => self.reasons(true),
            EventKind::ReasoningEnd { .. } => self.reasons(false),
            EventKind::AssistantTextStart {} => self.is_writing = true,
            EventKind::AssistantTextEnd { .. } => self.is_writing = false,
            // Calls that are complete are looked at before they run, so there is still something to wait for.
            EventKind::ModelResponse { finish_reason, .. } if finish_reason.reason == Finish::ToolCalls => {}
            EventKind::ModelResponse { .. } => self.model = None,
            EventKind::ToolCallStart { .. } => {
                self.model = None;
                self.start(event, None, now);
            }
            EventKind::ToolCallEnd { call_id, .. } => self.end(event, call_id),
            // Subagents may work on.
            EventKind::ProcessingEnd { .. } => {
                (self.model, self.is_writing) = (None, false);
                self.calls.retain(|call| call.agent.is_some());
            }
            EventKind::SessionEnd { .. } => *self = Self::default(),
            EventKind::SessionStart { .. }
            | EventKind::ProjectLoaded(_)
            | EventKind::AssistantTextDelta { .. }
            | EventKind::ReasoningDelta { .. }
            | EventKind::ToolCallRepaired { .. }
            | EventKind::ToolCallOutputDelta { .. }
            | EventKind::ApprovalRequested { .. }
            | EventKind::ApprovalDecided { .. }
            | EventKind::SteeringInjected { .. }
            | EventKind::TurnLimit { .. }
            | EventKind::LoopDetection { .. }
            | EventKind::HistoryRepaired { .. }
            | EventKind::Warning { .. }
            | EventKind::Error { .. }
            | EventKind::Gap { .. }
            | _ => {}
        }
    }

    /// Whether there is anything to show.
    pub(super) fn any(&self) -> bool {
        !self.is_writing && (self.model.is_some() || !self.calls.is_empty())
    }

    /// What it looks like at `now`, cut to the size of the terminal.
    pub(super) fn lines(&self, drafts: &[Draft], now: Duration, size: Size, style: Style) -> Vec<String> {
        // The last column stays free, where terminals differ, and so does a line for the transcript.
        let (columns, rows) = (size.columns.saturating_sub(1), size.rows.saturating_sub(1).min(MOST_LINES));
        if !self.any() || columns == 0 {
            return Vec::new();
        }
        let mut lines = Vec::new();
        let shared = if drafts.len() > 1 { SHARED_DIFF_LINES } else { DIFF_LINES };
        if let Some(answer) = self.model {
            if drafts.is_empty() {
                let what = if answer.is_reasoning { "thinking" } else { "waiting for the model" };
                lines.push(Line::new(now, answer.since, [(Some(Ink::Faint), what.to_owned())]));
            }
            for draft in drafts {
                lines.push(Line::of_draft(draft, now, answer.since));
                lines.extend(draft.newest(shared).map(Line::of_diff));
            }
        }
        for call in &self.calls {
            lines.push(Line::of_call(call, now));
            let draft = drafts.iter().find(|draft| call.agent.is_none() && draft.call_id == call.call_id);
            lines.extend(draft.iter().flat_map(|draft| draft.newest(shared)).map(Line::of_diff));
        }
        let more = lines.len().saturating_sub(rows);
        if more > 0 {
            lines.truncate(rows.saturating_sub(1));
            lines.push(Line {
                parts: vec![(Some(Ink::Faint), format!("… {} more lines", more + 1))],
                end: String::new(),
            });
            lines.truncate(rows);
        }
        lines.iter().map(|line| line.shown(columns, style)).collect()
    }

    fn reasons(&mut self, is_reasoning: bool) {
        if let Some(answer) = &mut self.model {
            answer.is_reasoning = is_reasoning;
        }
    }
}

impl Line {
    /// A spinner, parts with a space between them, and the time since something began.
    fn new(now: Duration, since: Duration, parts: impl IntoIterator<Item = (Option<Ink>, String)>) -> Self {
        let turn = now.as_millis() / TICK.as_millis();
        let picture = usize::try_from(turn).ok().and_then(|turn| SPINNER.get(turn % SPINNER.len()));
        let mut shown = vec![(Some(Ink::Place), picture.copied().unwrap_or("*").to_owned())];
        for (ink, part) in parts.into_iter().filter(|(_, part)| !part.is_empty()) {
            shown.push((None, " ".to_owned()));
            shown.push((ink, width::measurable(&part)));
        }
        let seconds = now.saturating_sub(since).as_secs();
        let end = match seconds {
            0 => String::new(),
            seconds => format!(" {}", summary::of_seconds(seconds)),
        };
        Self { parts: shown, end }
    }

    fn of_call(call: &Call, now: Duration) -> Self {
        let agent = (Some(Ink::Faint), call.agent.clone().unwrap_or_default());
        let name = (Some(Ink::Strong), call.tool_name.clone());
        Self::new(now, call.since, [agent, name, (None, call.subject.clone())])
    }

    /// A call that is being written, with what will be counted of its diff.
    fn of_draft(draft: &Draft, now: Duration, since: Duration) -> Self {
        let name = (Some(Ink::Strong), summary::one_line(&draft.tool_name, summary::LONGEST));
        let counts = match draft.counts() {
            (0, 0) => String::new(),
            (added, removed) => format!("+{} -{}", summary::of_count(added), summary::of_count(removed)),
        };
        Self::new(now, since, [name, (None, draft.subject()), (Some(Ink::Faint), counts)])
    }

    fn of_diff(line: super::draft::DiffLine) -> Self {
        let sign: Sign = line.sign;
        Self { parts: vec![(None, "    ".to_owned()), (sign.ink(), line.text)], end: String::new() }
    }

    /// In its colours, and no wider than so many columns.
    fn shown(&self, columns: usize, style: Style) -> String {
        let end = Some(self.end.as_str()).filter(|end| 3 * width::of(end) <= columns).unwrap_or_default();
        let mut room = columns.saturating_sub(width::of(end));
        let mut shown = String::new();
        for (ink, part) in &self.parts {
            let cut = width::cut(part, room);
            room = room.saturating_sub(width::of(&cut));
            match ink {
                Some(ink) => shown.push_str(&style.ink(*ink, &cut)),
                None => shown.push_str(&cut),
            }
            if cut != *part {
                break;
            }
        }
        shown.push_str(&style.ink(Ink::Faint, end));
        shown
    }
}
