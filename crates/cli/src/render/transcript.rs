//! The conversation as lines: messages, one line per tool call, its output and its changes.
//!
//! Returned lines are final. Incomplete text can be previewed.

use std::collections::HashMap;

use pintle_agent::{EventKind, ImageSummary, SessionEvent};
use pintle_tools::FileChange;

use super::call::{CompletedCall, MAX_LINE_CHARS};
use super::image::image_labels;
use super::line::{Colour, Face, Line};
use super::markdown::Markdown;
use super::plan::{self, Plan};
use super::subagent_names::{SubagentNames, call_key_of, qualified_name};
use super::wrap::{self, Margins, expand_tabs};
use super::{asked, diff, note, sanitize, summary};

/// Columns before the output of a call.
const INDENT: usize = 4;

/// Maximum number of diff lines shown. The pager shows the rest.
const DIFF_LINES: usize = 40;

/// Maximum number of input rows shown. The user knows the rest.
const INPUT_ROWS: usize = 20;

/// Width of a plain transcript. No displayed line is longer.
const PLAIN_COLUMNS: usize = 1 << 20;

/// Formats the events of a session and its subagents.
#[derive(Debug)]
pub(crate) struct Transcript {
    columns: usize,
    /// Whether screen readers or other programs read the lines. They are not wrapped, and have words instead of marks.
    is_plain: bool,
    markdown: Markdown,
    /// Subjects of the running calls by call key.
    calls: HashMap<String, String>,
    /// Questions of the running calls that ask the user, by call key.
    questions: HashMap<String, Vec<String>>,
    subagents: SubagentNames,
    /// Events of subagents that wait until the text ends, with the name of the subagent.
    deferred: Vec<(String, SessionEvent)>,
    /// Newest plan of the session, until it is shown.
    plan: Option<Plan>,
    last: Block,
    lines: Vec<Line>,
}

/// Last part of the transcript. Parts are separated by a blank line, except between lines about calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Block {
    Start,
    Input,
    /// Text of the model that has not ended.
    Text,
    Ended,
    Lines,
}

impl Transcript {
    /// Creates an empty transcript of this width.
    pub(crate) fn new(columns: usize) -> Self {
        Self::with(columns, false, Markdown::default())
    }

    /// Creates an empty transcript whose lines are not wrapped and have words instead of marks.
    pub(crate) fn plain() -> Self {
        Self::with(PLAIN_COLUMNS, true, Markdown::raw())
    }

    fn with(columns: usize, is_plain: bool, markdown: Markdown) -> Self {
        Self {
            columns,
            is_plain,
            markdown,
            calls: HashMap::new(),
            questions: HashMap::new(),
            subagents: SubagentNames::default(),
            deferred: Vec::new(),
            plan: None,
            last: Block::Start,
            lines: Vec::new(),
        }
    }

    /// Sets the width of future lines.
    pub(crate) fn resize(&mut self, columns: usize) {
        if !self.is_plain {
            self.columns = columns;
        }
    }

    /// Returns whether the transcript is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.last == Block::Start
    }

    /// Takes the final lines.
    pub(crate) fn take(&mut self) -> Vec<Line> {
        std::mem::take(&mut self.lines)
    }

    /// Returns a preview of the rows of incomplete text.
    pub(crate) fn preview(&self) -> Vec<Line> {
        self.markdown.preview(self.columns)
    }

    /// Returns the name of the subagent that emitted the event, or `None` for the session itself.
    pub(crate) fn subagent_of(&mut self, event: &SessionEvent) -> Option<String> {
        self.subagents.name_of(event)
    }

    /// Processes an event of the session, or of a subagent with this name.
    pub(crate) fn event(&mut self, event: &SessionEvent, subagent: Option<&str>) {
        match subagent {
            Some(agent) if self.last == Block::Text => self.deferred.push((agent.to_owned(), event.clone())),
            Some(agent) => self.subagent_event(agent, event),
            None => {
                self.session_event(event);
                if self.last != Block::Text {
                    for (agent, event) in std::mem::take(&mut self.deferred) {
                        self.subagent_event(&agent, &event);
                    }
                }
            }
        }
    }

    /// Appends a labelled line, such as `[warning] …`.
    pub(crate) fn note(&mut self, label: &str, text: &str) {
        let label = summary::one_line(label, MAX_LINE_CHARS);
        let text = format!("[{label}] {}", summary::one_line(text, 4 * MAX_LINE_CHARS));
        self.line(&Line::new(text, Face::DIM));
    }

    /// Appends a line about a failure.
    pub(crate) fn failure(&mut self, message: &str) {
        if self.is_plain {
            return self.note("failed", message);
        }
        let message = summary::one_line(message, 4 * MAX_LINE_CHARS);
        self.line(&Line::new("✗ ", Face::FAILURE).and(message, Face::PLAIN));
    }

    /// Appends a line, wrapped at words.
    pub(crate) fn line(&mut self, line: &Line) {
        self.separate(Block::Lines);
        let margins = Margins { first: Line::default(), rest: Line::plain("  ") };
        self.lines.extend(wrap::wrap(line, self.columns, &margins));
    }

    /// Appends rows that already fit the width.
    pub(crate) fn rows(&mut self, rows: Vec<Line>) {
        self.separate(Block::Lines);
        self.lines.extend(rows);
    }

    /// Appends lines that belong to the previous line, broken between characters.
    pub(crate) fn below(&mut self, lines: impl IntoIterator<Item = Line>) {
        for line in lines {
            let margins = if line.is_empty() { Margins::default() } else { Margins::blank(INDENT) };
            self.lines.extend(wrap::break_anywhere(&line, self.columns, &margins));
        }
    }

    fn session_event(&mut self, event: &SessionEvent) {
        match &event.kind {
            EventKind::UserInput { content, images, .. } => self.input(content, images, Face::BOLD),
            EventKind::SteeringInjected { content, images, .. } => self.input(content, images, Face::PLAIN),
            EventKind::AssistantTextDelta { delta } => self.text(delta),
            EventKind::AssistantTextEnd { interrupted, .. } => self.end_of_text(*interrupted),
            EventKind::ToolCallStart { call_id, tool_name, arguments, .. } => {
                self.plan = Plan::of(tool_name, arguments).or(self.plan.take());
                let key = call_key_of(event, call_id);
                let questions = asked::questions(tool_name, arguments);
                // The questions are shown below the call.
                let is_asking = !questions.is_empty();
                let subject = if is_asking { String::new() } else { plan::subject(tool_name, arguments) };
                if is_asking {
                    self.questions.insert(key.clone(), questions);
                }
                self.calls.insert(key, subject);
            }
            EventKind::ToolCallEnd { call_id, error, .. } => {
                let key = call_key_of(event, call_id);
                let subject = self.calls.remove(&key).unwrap_or_default();
                self.call(None, &subject, &event.kind);
                let questions = self.questions.remove(&key).filter(|_| error.is_none());
                self.below(questions.unwrap_or_default().into_iter().map(Line::plain));
                if self.plan.as_ref().is_some_and(Plan::is_complete) {
                    self.plan();
                }
            }
            EventKind::ProcessingEnd { .. } => self.plan(),
            EventKind::SubagentSpawned { .. } | EventKind::SubagentEnded { .. } => {
                self.subagent_lifecycle(None, &event.kind);
            }
            EventKind::TurnLimit { round, .. } => {
                let limit = if round.is_some() { "tool round limit reached" } else { "turn limit reached" };
                self.note("limit", limit);
            }
            // A request is shown as a question, and an error as a failure.
            EventKind::ApprovalRequested { .. } | EventKind::Error { .. } => {}
            kind @ (EventKind::SessionStart { .. } | _) => {
                if let Some((label, text)) = note(kind) {
                    self.note(label, &text);
                }
            }
        }
    }

    fn subagent_event(&mut self, agent: &str, event: &SessionEvent) {
        match &event.kind {
            EventKind::ToolCallStart { call_id, tool_name, arguments, .. } => {
                self.calls.insert(call_key_of(event, call_id), plan::subject(tool_name, arguments));
            }
            EventKind::ToolCallEnd { call_id, .. } => {
                let subject = self.calls.remove(&call_key_of(event, call_id)).unwrap_or_default();
                self.call(Some(agent), &subject, &event.kind);
            }
            EventKind::AssistantTextEnd { text, .. } if !text.trim().is_empty() => self.note(agent, text),
            EventKind::Error { error } => self.note(agent, &format!("error: {error}")),
            EventKind::SubagentSpawned { .. } | EventKind::SubagentEnded { .. } => {
                self.subagent_lifecycle(Some(agent), &event.kind);
            }
            EventKind::ApprovalRequested { .. } => {}
            kind @ (EventKind::SessionStart { .. } | _) => {
                if let Some((label, text)) = note(kind) {
                    self.note(agent, &format!("{label}: {text}"));
                }
            }
        }
    }

    fn subagent_lifecycle(&mut self, parent: Option<&str>, kind: &EventKind) {
        if let EventKind::SubagentSpawned { agent_id, task, .. } = kind {
            self.note(&qualified_name(parent, agent_id), &format!("started: {task}"));
        } else if let EventKind::SubagentEnded { agent_id, status, turns_used, .. } = kind {
            let responses = summary::plural(*turns_used, "response");
            self.note(&qualified_name(parent, agent_id), &format!("{status}, {responses}"));
        }
    }

    /// Appends an input of the user.
    fn input(&mut self, content: &str, images: &[ImageSummary], face: Face) {
        self.separate(Block::Input);
        let margins =
            Margins { first: Line::new("› ", Face::coloured(Colour::Cyan)), rest: Line::plain("  ") };
        let lines = sanitize(content);
        let mut rows = Vec::new();
        for (index, line) in lines.trim_end().split('\n').enumerate() {
            let line = Line::new(expand_tabs(line), face);
            let margins = if index == 0 { margins.clone() } else { Margins::blank(2) };
            rows.extend(wrap::wrap(&line, self.columns, &margins));
        }
        let more = rows.len().saturating_sub(INPUT_ROWS);
        if more > 1 {
            rows.truncate(INPUT_ROWS);
            let more = summary::plural(more as u64, "more line");
            rows.push(Line::plain("  ").and(format!("… {more}"), Face::DIM));
        }
        self.lines.extend(rows);
        self.images(images);
    }

    /// Appends labels for the images of an input.
    pub(crate) fn images(&mut self, images: &[ImageSummary]) {
        self.below(image_labels(images).into_iter().map(|label| Line::new(label, Face::DIM)));
    }

    fn text(&mut self, delta: &str) {
        if self.last != Block::Text && delta.trim().is_empty() {
            return;
        }
        self.separate(Block::Text);
        let rows = self.markdown.push(delta, self.columns);
        self.lines.extend(rows);
    }

    fn end_of_text(&mut self, interrupted: bool) {
        let mut rows = self.markdown.end(self.columns);
        while rows.last().is_some_and(Line::is_empty) {
            rows.pop();
        }
        self.lines.extend(rows);
        if self.last == Block::Text {
            self.last = Block::Ended;
        }
        if interrupted {
            self.note("interrupted", "response cut off");
        }
    }

    fn call(&mut self, agent: Option<&str>, subject: &str, end: &EventKind) {
        let Some(call) = CompletedCall::of(end, subject) else { return };
        let mut head = Line::default();
        if let Some(agent) = agent {
            head.push(format!("[{}] ", summary::one_line(agent, MAX_LINE_CHARS)), Face::DIM);
        }
        head.append(call.head(!self.is_plain));
        self.separate(Block::Lines);
        self.lines.push(head.truncated(self.columns));
        self.below(call.output_lines().iter().map(|line| Line::new(expand_tabs(line), Face::DIM)));
        for change in call.changes {
            self.change(change);
        }
    }

    fn change(&mut self, change: &FileChange) {
        let mut lines = diff::diff(&change.diff);
        let more = lines.len().saturating_sub(DIFF_LINES);
        if more > 1 {
            lines.truncate(DIFF_LINES);
            let more = summary::plural(more as u64, "more line");
            lines.push(Line::new(format!("… {more}"), Face::DIM));
        }
        self.below(lines);
    }

    /// Appends the newest plan, unless it was shown.
    fn plan(&mut self) {
        let Some(plan) = self.plan.take() else { return };
        self.separate(Block::Lines);
        self.below(plan.lines());
    }

    /// Adds a blank line if the next part needs one.
    fn separate(&mut self, block: Block) {
        if self.last == Block::Text && block != Block::Text {
            self.end_of_text(false);
        }
        let joins = matches!(
            (self.last, block),
            (Block::Start, _) | (Block::Lines, Block::Lines) | (Block::Text, Block::Text)
        );
        if !joins {
            self.lines.push(Line::default());
        }
        self.last = block;
    }
}
