//! Current activity of a run, formatted for the live region.

mod agents;

use std::time::Duration;

use pintle_agent::{EventKind, SessionEvent, SessionId};
use pintle_llm::{ErrorInfo, ErrorKind, Finish};

use self::agents::Agents;
use super::draft::Draft;
use super::drafts::Drafts;
use super::line::{Face, StyledLine};
use super::live_region::TerminalSize;
use super::plan::{self, Plan};
use super::{summary, width};

/// Time between two redraws.
pub const TICK: Duration = Duration::from_millis(100);

/// Frames of the spinner, one per tick.
pub(super) const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// Diff lines shown for a single draft.
const DIFF_LINES: usize = 8;

/// Diff lines shown for each of several drafts.
const SHARED_DIFF_LINES: usize = 3;

/// Maximum height of the live region.
pub(super) const MAX_LINES: usize = 16;

/// Maximum number of plan steps shown.
const PLAN_LINES: usize = 6;

/// Pending response and running calls.
#[derive(Debug, Default)]
pub(crate) struct Activity {
    response: Option<PendingResponse>,
    calls: Vec<RunningCall>,
    /// Calls of the current response, with the arguments streamed so far.
    drafts: Drafts,
    /// Whether the model is streaming text, which the transcript already shows.
    is_streaming_text: bool,
    agents: Agents,
    /// Plan of the session, unless it is complete.
    plan: Option<Plan>,
    /// Whether a turn is running.
    is_in_turn: bool,
    summary: Summary,
}

/// Progress of a compaction, which emits no `ModelResponse` event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Summary {
    /// No compaction is running.
    #[default]
    Absent,
    /// The next request asks for the summary.
    Due,
    /// The model writes the summary.
    Requested,
}

/// Response that the model has not completed.
#[derive(Clone, Debug)]
struct PendingResponse {
    since: Duration,
    is_reasoning: bool,
    retry: Option<PendingRetry>,
}

/// Pending retry of a model call.
#[derive(Clone, Debug)]
struct PendingRetry {
    attempt: u32,
    reason: &'static str,
    /// Time at which the retry starts.
    at: Duration,
}

/// Running tool call.
#[derive(Debug)]
struct RunningCall {
    session: SessionId,
    /// Name of the subagent that made the call, if any.
    agent: Option<String>,
    call_id: String,
    tool_name: String,
    subject: String,
    since: Duration,
}

/// Line before truncation, and a suffix that is shown if it leaves room for it.
struct ActivityLine {
    line: StyledLine,
    suffix: String,
}

impl Activity {
    /// Processes an event of the session, or of a subagent with this name.
    pub(crate) fn event(&mut self, event: &SessionEvent, agent: Option<&str>, now: Duration) {
        self.agents.event(event, now);
        if let EventKind::SubagentEnded { child, .. } = &event.kind {
            self.calls.retain(|call| call.session != *child);
        }
        match agent {
            None => self.session_event(event, now),
            Some(agent) => self.subagent_event(agent, event, now),
        }
    }

    /// Tracks only the running calls of subagents. The wait for a subagent is visible as a call of its parent.
    fn subagent_event(&mut self, agent: &str, event: &SessionEvent, now: Duration) {
        if let EventKind::ToolCallStart { .. } = &event.kind {
            self.start_call(event, Some(agent), now);
        } else if let EventKind::ToolCallEnd { call_id, .. } = &event.kind {
            self.end_call(event, call_id);
        } else if let EventKind::ProcessingEnd { .. } | EventKind::SessionEnd { .. } = &event.kind {
            self.calls.retain(|call| call.session != event.session_id);
        }
    }

    fn start_call(&mut self, event: &SessionEvent, agent: Option<&str>, now: Duration) {
        if let EventKind::ToolCallStart { call_id, tool_name, arguments, .. } = &event.kind {
            self.calls.push(RunningCall {
                session: event.session_id.clone(),
                agent: agent.map(|agent| summary::one_line(agent, summary::MAX_CHARS)),
                call_id: call_id.clone(),
                tool_name: summary::one_line(tool_name, summary::MAX_CHARS),
                subject: plan::subject(tool_name, arguments),
                since: now,
            });
        }
    }

    fn end_call(&mut self, event: &SessionEvent, call_id: &str) {
        self.calls.retain(|call| call.call_id != call_id || call.session != event.session_id);
    }

    fn session_event(&mut self, event: &SessionEvent, now: Duration) {
        self.drafts.event(event);
        match &event.kind {
            EventKind::UserInput { .. } => {
                self.is_in_turn = true;
                self.wait_for_response(now);
            }
            EventKind::RequestPrepared { .. } => {
                // A compaction between runs belongs to no turn.
                self.summary = match self.summary {
                    Summary::Due => Summary::Requested,
                    Summary::Absent | Summary::Requested => {
                        self.is_in_turn = true;
                        Summary::Absent
                    }
                };
                self.wait_for_response(now);
            }
            EventKind::CompactionStart { .. } => self.summary = Summary::Due,
            EventKind::CompactionEnd { .. } => self.end_compaction(),
            // A compaction that fails or is cancelled ends with a warning. Another compaction follows any other warning.
            EventKind::Warning { .. } if self.is_compacting() => self.end_compaction(),
            EventKind::ModelRetrying { attempt, delay_ms, error } => {
                let at = now.saturating_add(Duration::from_millis(*delay_ms));
                let retry = PendingRetry { attempt: *attempt, reason: reason(error), at };
                self.response = Some(PendingResponse { since: at, is_reasoning: false, retry: Some(retry) });
            }
            EventKind::ReasoningStart {} => self.set_reasoning(true),
            EventKind::ReasoningEnd { .. } => self.set_reasoning(false),
            EventKind::AssistantTextStart {} => self.is_streaming_text = true,
            EventKind::AssistantTextEnd { .. } => self.is_streaming_text = false,
            // Calls are checked before they run, so the wait continues.
            EventKind::ModelResponse { finish_reason, .. } if finish_reason.reason == Finish::ToolCalls => {}
            EventKind::ModelResponse { .. } => self.response = None,
            EventKind::ToolCallStart { tool_name, arguments, .. } => {
                self.response = None;
                if let Some(plan) = Plan::from_arguments(tool_name, arguments) {
                    self.plan = Some(plan).filter(|plan| !plan.is_complete());
                }
                self.start_call(event, None, now);
            }
            EventKind::ToolCallEnd { call_id, .. } => self.end_call(event, call_id),
            // Subagents may still be running.
            EventKind::ProcessingEnd { .. } => {
                (self.response, self.is_streaming_text, self.is_in_turn) = (None, false, false);
                self.summary = Summary::Absent;
                self.calls.retain(|call| call.agent.is_some());
            }
            EventKind::SessionEnd { .. } => *self = Self::default(),
            EventKind::SessionStart { .. }
            | EventKind::ProjectLoaded(_)
            | EventKind::AssistantTextDelta { .. }
            | EventKind::ReasoningDelta { .. }
            | EventKind::ToolCallRepaired { .. }
            | EventKind::CallJudged { .. }
            | EventKind::ToolCallOutputDelta { .. }
            | EventKind::ApprovalRequested { .. }
            | EventKind::ApprovalDecided { .. }
            | EventKind::PolicyChanged(_)
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

    fn wait_for_response(&mut self, now: Duration) {
        self.response = Some(PendingResponse { since: now, is_reasoning: false, retry: None });
    }

    /// Ends the compaction. In a turn, another request follows.
    fn end_compaction(&mut self) {
        self.summary = Summary::Absent;
        if !self.is_in_turn {
            self.response = None;
        }
    }

    /// Returns whether the model writes a summary that belongs to no turn.
    pub(crate) fn is_compacting_between_turns(&self) -> bool {
        self.summary == Summary::Requested && !self.is_in_turn
    }

    fn is_compacting(&self) -> bool {
        self.summary != Summary::Absent
    }

    /// Stops showing a compaction from the record of an earlier process. It has ended, or was lost with that process.
    pub(crate) fn forget_compaction(&mut self) {
        if self.summary == Summary::Requested {
            self.end_compaction();
        }
    }

    /// Returns whether there is activity to show.
    pub(crate) fn is_busy(&self) -> bool {
        let is_busy = self.response.is_some() || !self.calls.is_empty() || self.agents.is_busy();
        is_busy && !self.is_streaming_text
    }

    /// Returns the plan steps around the next one, while a turn is running.
    pub(crate) fn plan_lines(&self, most: usize) -> Vec<StyledLine> {
        let plan = self.plan.as_ref().filter(|_| self.is_in_turn);
        plan.map(|plan| plan.lines_around_next(most.min(PLAN_LINES))).unwrap_or_default()
    }

    /// Formats the activity at `now`, truncated to the size of the terminal.
    pub(crate) fn lines(&self, now: Duration, size: TerminalSize) -> Vec<StyledLine> {
        // Terminals differ in how they treat the last column; one row is left for the transcript.
        let (columns, rows) = (size.columns.saturating_sub(1), size.rows.saturating_sub(1).min(MAX_LINES));
        if !self.is_busy() || columns == 0 {
            return Vec::new();
        }
        let mut lines = Vec::new();
        let drafts = self.drafts.calls();
        let diff_lines = if drafts.len() > 1 { SHARED_DIFF_LINES } else { DIFF_LINES };
        if let Some(response) = &self.response {
            if drafts.is_empty() {
                lines.push(ActivityLine::for_response(response, now));
            }
            for draft in drafts {
                lines.push(ActivityLine::for_draft(draft, now, response.since));
                lines.extend(draft.last_lines(diff_lines).map(ActivityLine::for_diff));
            }
        }
        for call in self.calls.iter().filter(|call| !self.agents.contains(&call.session)) {
            lines.push(ActivityLine::for_call(call, now));
            let draft = drafts.iter().find(|draft| call.agent.is_none() && draft.call_id == call.call_id);
            lines.extend(
                draft.iter().flat_map(|draft| draft.last_lines(diff_lines)).map(ActivityLine::for_diff),
            );
        }
        lines.extend(self.agents.lines(&self.calls, now));
        let more = lines.len().saturating_sub(rows);
        if more > 0 {
            lines.truncate(rows.saturating_sub(1));
            lines.push(ActivityLine::separated([(Face::DIM, format!("… {} more lines", more + 1))]));
            lines.truncate(rows);
        }
        lines.into_iter().map(|line| line.into_line(columns)).collect()
    }

    fn set_reasoning(&mut self, is_reasoning: bool) {
        if let Some(response) = &mut self.response {
            response.is_reasoning = is_reasoning;
        }
    }
}

/// Returns the reason for the retry of a model call.
fn reason(error: &ErrorInfo) -> &'static str {
    if error.kind == ErrorKind::RateLimit { "rate limit reached" } else { "model call failed" }
}

impl ActivityLine {
    /// Creates a line with a spinner, parts separated by spaces, and the elapsed time.
    fn new(now: Duration, since: Duration, parts: impl IntoIterator<Item = (Face, String)>) -> Self {
        let turn = now.as_millis() / TICK.as_millis();
        let frame = usize::try_from(turn).ok().and_then(|turn| SPINNER.get(turn % SPINNER.len()));
        let spinner = (Face::LOCATION, frame.copied().unwrap_or("*").to_owned());
        let suffix = match now.saturating_sub(since).as_secs() {
            0 => String::new(),
            seconds => format!(" {}", summary::seconds(seconds)),
        };
        Self { suffix, ..Self::separated([spinner].into_iter().chain(parts)) }
    }

    /// Creates a line of parts separated by spaces.
    fn separated(parts: impl IntoIterator<Item = (Face, String)>) -> Self {
        let mut line = StyledLine::default();
        for (face, part) in parts.into_iter().filter(|(_, part)| !part.is_empty()) {
            if !line.is_empty() {
                line.push(" ", Face::PLAIN);
            }
            line.push(width::single_line(&part), face);
        }
        Self { line, suffix: String::new() }
    }

    /// Puts blanks before the line.
    fn indented(self, blanks: &str) -> Self {
        let mut line = StyledLine::plain(blanks);
        line.append(self.line);
        Self { line, suffix: self.suffix }
    }

    /// Creates a line for a pending response or a pending retry.
    fn for_response(response: &PendingResponse, now: Duration) -> Self {
        let retry = response.retry.as_ref().filter(|retry| now < retry.at);
        let label = match retry {
            Some(PendingRetry { attempt, reason, at }) => {
                let left =
                    summary::seconds((*at - now).as_millis().div_ceil(1_000).try_into().unwrap_or(u64::MAX));
                format!("{reason}, retry {attempt} in {left}")
            }
            None if response.is_reasoning => "thinking".to_owned(),
            None => "waiting for the model".to_owned(),
        };
        Self::new(now, response.since, [(Face::DIM, label)])
    }

    fn for_call(call: &RunningCall, now: Duration) -> Self {
        let agent = (Face::DIM, call.agent.clone().unwrap_or_default());
        let name = (Face::BOLD, call.tool_name.clone());
        Self::new(now, call.since, [agent, name, (Face::PLAIN, call.subject.clone())])
    }

    /// Creates a line for a draft with the size of its diff.
    fn for_draft(draft: &Draft, now: Duration, since: Duration) -> Self {
        let name = (Face::BOLD, summary::one_line(&draft.tool_name, summary::MAX_CHARS));
        let counts = match draft.counts() {
            (0, 0) => String::new(),
            (added, removed) => format!("+{} -{}", summary::count(added), summary::count(removed)),
        };
        Self::new(now, since, [name, (Face::PLAIN, draft.subject()), (Face::DIM, counts)])
    }

    fn for_diff(line: StyledLine) -> Self {
        Self { line, suffix: String::new() }.indented("    ")
    }

    /// Returns the line, truncated to a width.
    fn into_line(self, columns: usize) -> StyledLine {
        let suffix = Some(self.suffix.as_str())
            .filter(|suffix| 3 * width::columns(suffix) <= columns)
            .unwrap_or_default();
        let available = columns.saturating_sub(width::columns(suffix));
        self.line.truncated(available).and(suffix, Face::DIM)
    }
}
