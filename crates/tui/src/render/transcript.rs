//! The events of a session as lines: messages, one line per tool call, its output and its changes.
//!
//! A conversation takes complete lines and previews incomplete text. A run takes text, which may end within a line.

use std::collections::HashMap;
use std::mem;

use pintle_agent::{EventKind, ImageSummary, SessionEvent};
use pintle_host::sanitize::sanitize;
use pintle_tools::FileChange;

use super::call::{CompletedCall, MAX_LINE_CHARS};
use super::image::image_labels;
use super::line::{Colour, Depth, Face, StyledLine};
use super::markdown::Markdown;
use super::plan::{self, Plan};
use super::subagent_names::{SubagentNames, call_key_of, qualified_name};
use super::word_wrap::WordWrapper;
use super::wrap::{self, Margins, expand_tabs};
use super::{diff, model_questions, note, summary};

/// Columns before the output of a call.
const INDENT: usize = 4;

/// Maximum number of diff lines shown in a conversation. The pager shows the rest.
const DIFF_LINES: usize = 40;

/// Maximum number of diff lines shown in a run, which has no pager.
pub(super) const RUN_DIFF_LINES: usize = 120;

/// Maximum number of input rows shown. The user knows the rest.
const INPUT_ROWS: usize = 20;

/// Width of lines that are not wrapped. No displayed line is longer.
pub(crate) const UNWRAPPED_COLUMNS: usize = 1 << 20;

/// Prefix of reasoning text.
const REASONING: &str = "[reasoning] ";

/// Formats the events of a session and its subagents.
#[derive(Debug)]
pub(crate) struct Transcript {
    columns: usize,
    medium: TranscriptMedium,
    /// Whether calls have marks instead of words.
    has_marks: bool,
    /// Whether reasoning, requests and token counts are shown.
    is_verbose: bool,
    /// Formatter for text in rows.
    markdown: Markdown,
    /// Formatter for text that is shown as written.
    wrapper: WordWrapper,
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
    lines: Vec<StyledLine>,
    /// Incomplete line of text that is shown as written. In a run, without the part that was taken.
    open: String,
}

/// Medium of a transcript.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TranscriptMedium {
    /// Conversation in rows of a window.
    Rows,
    /// Conversation in lines, for screen readers and other programs. Text is shown as written, and lines are not wrapped.
    Plain,
    /// Output of a run, for a terminal, a file or a pipe. Text is shown as written while it arrives, and wrapped at words if
    /// a width is known. The other lines are not wrapped, and keep their tabs. Inputs and plans are not shown.
    Run,
}

/// Last part of the transcript. Parts are separated by a blank line, except between lines about calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Block {
    Start,
    Input,
    /// Text of the model that has not ended.
    Text,
    /// Reasoning of the model that has not ended.
    Reasoning,
    /// Text or reasoning that has ended, or the footer.
    Ended,
    Lines,
}

impl Transcript {
    /// Creates an empty transcript of this width.
    pub(crate) fn new(columns: usize) -> Self {
        Self { has_marks: true, ..Self::for_medium(columns, TranscriptMedium::Rows) }
    }

    /// Creates an empty transcript whose lines are not wrapped and have words instead of marks.
    pub(crate) fn plain() -> Self {
        Self::for_medium(UNWRAPPED_COLUMNS, TranscriptMedium::Plain)
    }

    /// Creates an empty transcript of a run.
    pub(super) fn for_run(has_marks: bool, is_verbose: bool) -> Self {
        Self { has_marks, is_verbose, ..Self::for_medium(UNWRAPPED_COLUMNS, TranscriptMedium::Run) }
    }

    fn for_medium(columns: usize, medium: TranscriptMedium) -> Self {
        Self {
            columns,
            medium,
            has_marks: false,
            is_verbose: false,
            markdown: Markdown::default(),
            wrapper: WordWrapper::default(),
            calls: HashMap::new(),
            questions: HashMap::new(),
            subagents: SubagentNames::default(),
            deferred: Vec::new(),
            plan: None,
            last: Block::Start,
            lines: Vec::new(),
            open: String::new(),
        }
    }

    /// Sets the width of future lines. In a run, only text has this width.
    pub(crate) fn resize(&mut self, columns: usize) {
        match self.medium {
            TranscriptMedium::Rows => self.columns = columns,
            TranscriptMedium::Plain => {}
            TranscriptMedium::Run => self.wrapper.set_columns(Some(columns)),
        }
    }

    /// Returns whether the transcript is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.last == Block::Start
    }

    /// Takes the final lines.
    pub(crate) fn take(&mut self) -> Vec<StyledLine> {
        mem::take(&mut self.lines)
    }

    /// Takes the output of a run. It continues the output taken before, and may end within a line.
    pub(super) fn take_text(&mut self, depth: Depth) -> String {
        let mut text: String = self.take().iter().map(|line| line.to_terminal(depth) + "\n").collect();
        text.push_str(&mem::take(&mut self.open));
        text
    }

    /// Returns whether the output of a run ends within a line, even if only by a held-back word.
    pub(super) fn is_line_open(&self) -> bool {
        self.wrapper.is_line_open()
    }

    /// Returns a preview of the rows of incomplete text.
    pub(crate) fn preview(&self) -> Vec<StyledLine> {
        self.markdown.preview(self.columns)
    }

    /// Returns the name of the subagent that emitted the event, or `None` for the session itself.
    pub(crate) fn subagent_of(&mut self, event: &SessionEvent) -> Option<String> {
        self.subagents.name_of(event)
    }

    /// Processes an event of the session, or of a subagent with this name.
    pub(crate) fn event(&mut self, event: &SessionEvent, subagent: Option<&str>) {
        // A question cannot be deferred, and its request must precede it.
        let is_question = matches!(event.kind, EventKind::ApprovalRequested { .. });
        match subagent {
            Some(agent) if self.is_in_text() && !is_question => {
                self.deferred.push((agent.to_owned(), event.clone()));
            }
            Some(agent) => self.subagent_event(agent, event),
            None => {
                self.session_event(event);
                self.flush_deferred();
            }
        }
    }

    /// Appends the lines of deferred events, unless text has not ended.
    fn flush_deferred(&mut self) {
        if !self.is_in_text() {
            for (agent, event) in mem::take(&mut self.deferred) {
                self.subagent_event(&agent, &event);
            }
        }
    }

    /// Appends the line about the result of a run, after a blank line.
    pub(super) fn footer(&mut self, line: StyledLine) {
        self.flush_deferred();
        self.separate(Block::Ended);
        self.lines.push(line);
    }

    /// Appends a labelled line, such as `[warning] …`.
    pub(crate) fn note(&mut self, label: &str, text: &str) {
        let label = summary::one_line(label, MAX_LINE_CHARS);
        let text = format!("[{label}] {}", summary::one_line(text, 4 * MAX_LINE_CHARS));
        self.line(&StyledLine::new(text, Face::DIM));
    }

    /// Appends a line about a failure.
    pub(crate) fn failure(&mut self, message: &str) {
        if !self.has_marks {
            return self.note("failed", message);
        }
        let message = summary::one_line(message, 4 * MAX_LINE_CHARS);
        self.line(&StyledLine::new("✗ ", Face::FAILURE).and(message, Face::PLAIN));
    }

    /// Appends a line, wrapped at words.
    pub(crate) fn line(&mut self, line: &StyledLine) {
        self.separate(Block::Lines);
        let margins = Margins { first: StyledLine::default(), rest: StyledLine::plain("  ") };
        self.lines.extend(wrap::wrap(line, self.columns, &margins));
    }

    /// Appends rows that already fit the width.
    pub(crate) fn rows(&mut self, rows: Vec<StyledLine>) {
        self.separate(Block::Lines);
        self.lines.extend(rows);
    }

    /// Appends lines that belong to the previous line, broken between characters.
    pub(crate) fn below(&mut self, lines: impl IntoIterator<Item = StyledLine>) {
        for line in lines {
            let margins = if line.is_empty() { Margins::default() } else { Margins::blank(INDENT) };
            self.lines.extend(wrap::break_anywhere(&line, self.columns, &margins));
        }
    }

    fn session_event(&mut self, event: &SessionEvent) {
        let is_run = self.medium == TranscriptMedium::Run;
        match &event.kind {
            EventKind::UserInput { content, images, .. } if !is_run => {
                self.input(content, images, Face::BOLD)
            }
            EventKind::SteeringInjected { content, images, .. } if !is_run => {
                self.input(content, images, Face::PLAIN);
            }
            EventKind::AssistantTextDelta { delta } => self.text(Block::Text, delta),
            EventKind::AssistantTextEnd { interrupted, .. } => self.end_of_text(*interrupted),
            EventKind::ToolCallStart { .. } => self.start_call(event),
            EventKind::ToolCallEnd { .. } => self.end_call(event, None),
            EventKind::ProcessingEnd { .. } => self.plan(),
            EventKind::SubagentSpawned { .. } | EventKind::SubagentEnded { .. } => {
                self.subagent_lifecycle(None, &event.kind);
            }
            // The footer of a run contains the limit.
            EventKind::TurnLimit { round, .. } if !is_run => {
                let limit = if round.is_some() { "tool round limit reached" } else { "turn limit reached" };
                self.note("limit", limit);
            }
            // In a conversation, a request is shown as a question.
            EventKind::ApprovalRequested { .. } if !is_run => {}
            kind @ (EventKind::SessionStart { .. } | _) => match note(kind) {
                Some((label, text)) => self.note(label, &text),
                None => self.verbose(kind, None),
            },
        }
    }

    fn subagent_event(&mut self, agent: &str, event: &SessionEvent) {
        match &event.kind {
            EventKind::ToolCallStart { .. } => self.start_call(event),
            EventKind::ToolCallEnd { .. } => self.end_call(event, Some(agent)),
            EventKind::AssistantTextEnd { text, .. } if !text.trim().is_empty() => self.note(agent, text),
            EventKind::Error { error } => self.note(agent, &format!("error: {error}")),
            EventKind::SubagentSpawned { .. } | EventKind::SubagentEnded { .. } => {
                self.subagent_lifecycle(Some(agent), &event.kind);
            }
            EventKind::ApprovalRequested { .. } => {
                if let Some((_, text)) = note(&event.kind).filter(|_| self.medium == TranscriptMedium::Run) {
                    self.note(agent, &text);
                }
            }
            kind @ (EventKind::SessionStart { .. } | _) => match note(kind) {
                Some((label, text)) => self.note(agent, &format!("{label}: {text}")),
                None => self.verbose(kind, Some(agent)),
            },
        }
    }

    /// Appends what only a verbose transcript shows of the session, or of a subagent.
    fn verbose(&mut self, kind: &EventKind, agent: Option<&str>) {
        if !self.is_verbose {
            return;
        }
        if let EventKind::ModelResponse { model, usage, .. } = kind {
            let label = agent.map_or_else(|| "response".to_owned(), |agent| format!("{agent} response"));
            self.note(&label, &format!("{model}: {}", summary::tokens(usage)));
        } else if agent.is_some() {
            // Subagents stream at the same time.
        } else if let EventKind::ReasoningDelta { delta } = kind {
            self.text(Block::Reasoning, delta);
        } else if let EventKind::ReasoningEnd { interrupted, .. } = kind {
            self.end_of_text(*interrupted);
        } else if let EventKind::RequestPrepared { messages, moved, .. } = kind {
            let moved = moved.as_ref().map(|segment| format!(", changed from {segment} on"));
            let messages = summary::plural(*messages as u64, "message");
            self.note("request", &format!("{messages}{}", moved.unwrap_or_default()));
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
        let margins = Margins {
            first: StyledLine::new("› ", Face::coloured(Colour::Cyan)),
            rest: StyledLine::plain("  "),
        };
        let lines = sanitize(content);
        let mut rows = Vec::new();
        for (index, line) in lines.trim_end().split('\n').enumerate() {
            let line = StyledLine::new(expand_tabs(line), face);
            let margins = if index == 0 { margins.clone() } else { Margins::blank(2) };
            rows.extend(wrap::wrap(&line, self.columns, &margins));
        }
        let more = rows.len().saturating_sub(INPUT_ROWS);
        if more > 1 {
            rows.truncate(INPUT_ROWS);
            let more = summary::plural(more as u64, "more line");
            rows.push(StyledLine::plain("  ").and(format!("… {more}"), Face::DIM));
        }
        self.lines.extend(rows);
        self.images(images);
    }

    /// Appends labels for the images of an input.
    pub(crate) fn images(&mut self, images: &[ImageSummary]) {
        self.below(image_labels(images).into_iter().map(|label| StyledLine::new(label, Face::DIM)));
    }

    fn is_in_text(&self) -> bool {
        matches!(self.last, Block::Text | Block::Reasoning)
    }

    /// Appends streamed text or reasoning.
    fn text(&mut self, block: Block, delta: &str) {
        let is_new = self.last != block;
        if is_new && delta.trim().is_empty() {
            return;
        }
        self.separate(block);
        if self.medium == TranscriptMedium::Rows {
            let rows = self.markdown.push(delta, self.columns);
            self.lines.extend(rows);
            return;
        }
        if is_new && block == Block::Reasoning {
            self.open.push_str(REASONING);
            self.wrapper.indent(REASONING.len());
        }
        let text = self.wrapper.push(delta);
        self.continue_line(&text);
    }

    /// Appends text to the incomplete line.
    fn continue_line(&mut self, text: &str) {
        let mut lines = text.split('\n');
        self.open.push_str(lines.next().unwrap_or_default());
        for line in lines {
            self.end_line();
            self.open.push_str(line);
        }
    }

    fn end_line(&mut self) {
        let line = mem::take(&mut self.open);
        self.lines.push(StyledLine::plain(self.medium.with_tabs(&line)));
    }

    fn end_of_text(&mut self, interrupted: bool) {
        if self.medium == TranscriptMedium::Rows {
            let mut rows = self.markdown.end(self.columns);
            while rows.last().is_some_and(StyledLine::is_empty) {
                rows.pop();
            }
            self.lines.extend(rows);
        } else {
            let is_open = self.wrapper.is_line_open();
            let text = self.wrapper.end();
            self.continue_line(&text);
            if is_open {
                self.end_line();
            }
        }
        if self.is_in_text() {
            self.last = Block::Ended;
        }
        if interrupted {
            self.note("interrupted", "response cut off");
        }
    }

    fn start_call(&mut self, event: &SessionEvent) {
        let EventKind::ToolCallStart { call_id, tool_name, arguments, .. } = &event.kind else { return };
        let key = call_key_of(event, call_id);
        if event.depth == 0 && self.medium != TranscriptMedium::Run {
            self.plan = Plan::from_arguments(tool_name, arguments).or(self.plan.take());
            let questions = model_questions::questions(tool_name, arguments);
            if !questions.is_empty() {
                // The questions are shown below the call.
                self.questions.insert(key, questions);
                return;
            }
        }
        self.calls.insert(key, plan::subject(tool_name, arguments));
    }

    fn end_call(&mut self, event: &SessionEvent, agent: Option<&str>) {
        let EventKind::ToolCallEnd { call_id, error, .. } = &event.kind else { return };
        let key = call_key_of(event, call_id);
        let subject = self.calls.remove(&key).unwrap_or_default();
        self.call(agent, &subject, &event.kind);
        let questions = self.questions.remove(&key).filter(|_| error.is_none());
        self.below(questions.unwrap_or_default().into_iter().map(StyledLine::plain));
        if agent.is_none() && self.plan.as_ref().is_some_and(Plan::is_complete) {
            self.plan();
        }
    }

    fn call(&mut self, agent: Option<&str>, subject: &str, end: &EventKind) {
        let Some(call) = CompletedCall::from_end(end, subject) else { return };
        let mut head = StyledLine::default();
        if let Some(agent) = agent {
            head.push(format!("[{}] ", summary::one_line(agent, MAX_LINE_CHARS)), Face::DIM);
        }
        head.append(call.head(self.has_marks));
        self.separate(Block::Lines);
        self.lines.push(head.truncated(self.columns));
        let medium = self.medium;
        self.below(call.output_lines().iter().map(|line| StyledLine::new(medium.with_tabs(line), Face::DIM)));
        for change in call.changes {
            self.change(change);
        }
    }

    fn change(&mut self, change: &FileChange) {
        let medium = self.medium;
        let mut lines = diff::lines(&change.diff, |text| medium.with_tabs(text));
        let most = if medium == TranscriptMedium::Run { RUN_DIFF_LINES } else { DIFF_LINES };
        let more = lines.len().saturating_sub(most);
        if more > 1 {
            lines.truncate(most);
            let more = summary::plural(more as u64, "more line");
            lines.push(StyledLine::new(format!("… {more}"), Face::DIM));
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
        if self.is_in_text() && block != self.last {
            self.end_of_text(false);
        }
        let joins = matches!(
            (self.last, block),
            (Block::Start, _)
                | (Block::Lines, Block::Lines)
                | (Block::Text, Block::Text)
                | (Block::Reasoning, Block::Reasoning)
        );
        if !joins {
            self.lines.push(StyledLine::default());
        }
        self.last = block;
    }
}

impl TranscriptMedium {
    /// Returns a text with its tabs as the medium shows them.
    fn with_tabs(self, text: &str) -> String {
        if self == Self::Run { text.to_owned() } else { expand_tabs(text) }
    }
}
