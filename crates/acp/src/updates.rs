//! Events of a session as updates for its client. No I/O: the same events always give the same updates.

use std::collections::HashMap;
use std::path::PathBuf;

use pintle_agent::{CallKind, EventKind, SessionEvent, SessionId, Timestamp};
use pintle_env::Output;
use pintle_tools::{FileChange, ToolErrorKind};
use serde_json::{Value, json};

use crate::calls;
use crate::client::ClientFeatures;
use crate::wire::{CallContent, CallStatus, CallUpdate, ContentBlock, SessionUpdate};

/// Maximum bytes in updates about a running tool's output, from the end of the output.
const LIVE_OUTPUT: usize = 8 << 10;

/// Minimum interval between these updates, in milliseconds.
const LIVE_INTERVAL: i64 = 200;

/// Maps the events of a session and of its subagents.
#[derive(Debug)]
pub(crate) struct UpdateMapper {
    root: SessionId,
    directory: PathBuf,
    features: ClientFeatures,
    text: StreamedText,
    reasoning: StreamedText,
    calls: HashMap<(SessionId, String), ShownCall>,
    /// Names of subagents by their sessions.
    agents: HashMap<SessionId, String>,
    /// Inputs that the client sent, and therefore shows already.
    own_inputs: usize,
    window: u64,
    compactions: u64,
}

/// Text that the model writes.
#[derive(Debug, Default)]
struct StreamedText {
    message_id: String,
    /// Bytes sent so far. After a gap, no more are sent before the end of the segment.
    shown: usize,
}

/// Call of a tool.
#[derive(Debug, Default)]
struct ShownCall {
    /// A model may reuse an id. The client gets a different id for each later call.
    uses: usize,
    is_open: bool,
    is_plan: bool,
    terminal: Option<String>,
    command: Option<String>,
    output: String,
    shown_at: Option<Timestamp>,
}

impl UpdateMapper {
    pub(crate) fn new(root: SessionId, directory: PathBuf, features: ClientFeatures) -> Self {
        Self {
            root,
            directory,
            features,
            text: StreamedText::default(),
            reasoning: StreamedText::default(),
            calls: HashMap::new(),
            agents: HashMap::new(),
            own_inputs: 0,
            window: 0,
            compactions: 0,
        }
    }

    /// Sets the context window, in tokens.
    pub(crate) fn set_window(&mut self, window: u64) {
        self.window = window;
    }

    /// Expects the next input to come from the client.
    pub(crate) fn expect_input(&mut self) {
        self.own_inputs += 1;
    }

    /// Expects no more inputs of the client. An input that was stopped earlier has no event.
    pub(crate) fn settle(&mut self) {
        self.own_inputs = 0;
    }

    /// Returns the id by which the client knows a call.
    pub(crate) fn call_id(&self, session: &SessionId, call_id: &str) -> String {
        let uses = self.calls.get(&(session.clone(), call_id.to_owned())).map_or(1, |call| call.uses);
        let id = if uses > 1 { format!("{call_id}#{uses}") } else { call_id.to_owned() };
        if *session == self.root { id } else { format!("{session}/{id}") }
    }

    /// Returns the updates about an event.
    #[expect(clippy::wildcard_enum_match_arm, reason = "clients are shown few kinds of events")]
    pub(crate) fn map(&mut self, event: &SessionEvent) -> Vec<SessionUpdate> {
        match &event.kind {
            EventKind::SubagentSpawned { agent_id, child, .. } => {
                self.agents.insert(child.clone(), agent_id.clone());
                Vec::new()
            }
            EventKind::ToolCallArgumentsStart { call_id, tool_name, call_kind } => {
                self.on_call_written(event, call_id, tool_name, *call_kind)
            }
            EventKind::ToolCallStart { call_id, tool_name, call_kind, arguments } => {
                self.on_call_started(event, call_id, tool_name, *call_kind, arguments, CallStatus::InProgress)
            }
            EventKind::ApprovalRequested { call_id, tool_name, call_kind, arguments, .. } => {
                self.on_call_started(event, call_id, tool_name, *call_kind, arguments, CallStatus::Pending)
            }
            EventKind::ToolCallOutputDelta { call_id, delta } => self.on_call_output(event, call_id, delta),
            EventKind::ToolCallEnd { call_id, output, error, exit_code, changes, .. } => self.on_call_ended(
                event,
                call_id,
                &CallEnd { output, error: *error, exit_code: *exit_code, changes },
            ),
            // Clients see only the calls of subagents.
            _ if event.depth > 0 => Vec::new(),
            EventKind::UserInput { content, .. } => self.input(event, content),
            EventKind::SteeringInjected { content, .. } => vec![user_chunk(event, content)],
            EventKind::AssistantTextStart {} => {
                self.text = StreamedText::starting_at(event);
                Vec::new()
            }
            EventKind::AssistantTextDelta { delta } => {
                let piece = self.text.delta(event, delta);
                piece.map(|piece| self.text.message(piece)).into_iter().collect()
            }
            EventKind::AssistantTextEnd { text, .. } => {
                let rest = self.text.rest(text);
                rest.map(|rest| self.text.message(rest)).into_iter().collect()
            }
            EventKind::ReasoningStart {} => {
                self.reasoning = StreamedText::starting_at(event);
                Vec::new()
            }
            EventKind::ReasoningDelta { delta } => {
                let piece = self.reasoning.delta(event, delta);
                piece.map(|piece| self.reasoning.thought(piece)).into_iter().collect()
            }
            EventKind::ReasoningEnd { text, .. } => {
                let rest = self.reasoning.rest(text);
                rest.map(|rest| self.reasoning.thought(rest)).into_iter().collect()
            }
            EventKind::ModelResponse { usage, .. } => {
                self.usage(usage.input_tokens.saturating_add(usage.output_tokens))
            }
            EventKind::ContextUsage { window, used, .. } => {
                self.window = *window;
                self.usage(*used)
            }
            EventKind::CompactionStart { .. } => {
                self.compactions += 1;
                self.compaction("in_progress")
            }
            EventKind::CompactionEnd { .. } => self.compaction("completed"),
            other => self.remarks(event, other),
        }
    }

    /// Returns the message about an event for the user: as a notice, or as a thought if the client does not support notices
    /// and the message is important.
    #[expect(clippy::wildcard_enum_match_arm, reason = "clients are told about few kinds of events")]
    fn remarks(&self, event: &SessionEvent, kind: &EventKind) -> Vec<SessionUpdate> {
        let (severity, text, matters) = match kind {
            EventKind::Warning { message } | EventKind::LoopDetection { message } => {
                ("warning", message.clone(), false)
            }
            EventKind::BudgetReached { budget, limit, .. } => {
                ("warning", format!("The spending limit {} of {limit} is reached.", json!(budget)), true)
            }
            EventKind::ContextFull { context_window, .. } => (
                "warning",
                format!("The conversation does not fit into {context_window} tokens any more."),
                true,
            ),
            EventKind::HistoryRepaired { message } => ("warning", message.clone(), true),
            EventKind::TurnLimit { .. } => ("warning", "The limit on turns is reached.".to_owned(), true),
            _ => return Vec::new(),
        };
        if matters || self.features.notices {
            vec![self.remark(severity, &text, &format!("n{}", event.seq))]
        } else {
            Vec::new()
        }
    }

    /// Returns a remark of the agent, which is not text of the model.
    pub(crate) fn remark(&self, severity: &'static str, text: &str, message_id: &str) -> SessionUpdate {
        if self.features.notices {
            SessionUpdate::Notice { severity, title: text.to_owned() }
        } else {
            let content = ContentBlock::text(format!("{text}\n"));
            SessionUpdate::AgentThoughtChunk { content, message_id: message_id.to_owned() }
        }
    }

    fn input(&mut self, event: &SessionEvent, content: &str) -> Vec<SessionUpdate> {
        if self.own_inputs > 0 {
            self.own_inputs -= 1;
            return Vec::new();
        }
        vec![user_chunk(event, content)]
    }

    fn usage(&self, used: u64) -> Vec<SessionUpdate> {
        let is_known = self.window > 0;
        is_known
            .then_some(SessionUpdate::UsageUpdate { used, size: self.window, cost: None })
            .into_iter()
            .collect()
    }

    fn compaction(&self, status: &'static str) -> Vec<SessionUpdate> {
        let compaction_id = format!("c{}", self.compactions);
        let update = SessionUpdate::CompactionUpdate { compaction_id, status };
        self.features.compactions.then_some(update).into_iter().collect()
    }

    fn call(&mut self, event: &SessionEvent, call_id: &str) -> &mut ShownCall {
        self.calls.entry((event.session_id.clone(), call_id.to_owned())).or_default()
    }

    /// Opens the call, if it is not open. Returns whether the call is new to the client.
    fn open(&mut self, event: &SessionEvent, call_id: &str) -> bool {
        let call = self.call(event, call_id);
        if call.is_open {
            return false;
        }
        *call = ShownCall { uses: call.uses + 1, is_open: true, ..ShownCall::default() };
        true
    }

    fn title_with_agent(&self, event: &SessionEvent, title: String) -> String {
        match self.agents.get(&event.session_id) {
            Some(agent) => format!("{agent}: {title}"),
            None => title,
        }
    }

    fn on_call_written(
        &mut self,
        event: &SessionEvent,
        call_id: &str,
        tool: &str,
        kind: CallKind,
    ) -> Vec<SessionUpdate> {
        self.open(event, call_id);
        if calls::is_plan_tool(tool) {
            self.call(event, call_id).is_plan = true;
            return Vec::new();
        }
        vec![SessionUpdate::ToolCall(CallUpdate {
            title: Some(self.title_with_agent(event, tool.to_owned())),
            name: Some(tool.to_owned()),
            kind: Some(calls::kind(kind)),
            status: Some(CallStatus::Pending),
            ..CallUpdate::new(self.call_id(&event.session_id, call_id))
        })]
    }

    fn on_call_started(
        &mut self,
        event: &SessionEvent,
        call_id: &str,
        tool: &str,
        kind: CallKind,
        arguments: &Value,
        status: CallStatus,
    ) -> Vec<SessionUpdate> {
        let is_new = self.open(event, call_id);
        if calls::is_plan_tool(tool) {
            self.call(event, call_id).is_plan = true;
            let entries = calls::plan(tool, arguments);
            let is_shown = status == CallStatus::InProgress && event.depth == 0;
            return entries
                .filter(|_| is_shown)
                .map(|entries| SessionUpdate::Plan { entries })
                .into_iter()
                .collect();
        }
        let command = ["command", "cmd"].iter().find_map(|field| arguments.get(field)?.as_str());
        self.call(event, call_id).command = command.map(str::to_owned);
        let locations = calls::locations(arguments, &self.directory);
        let update = CallUpdate {
            title: Some(self.title_with_agent(event, calls::title(tool, kind, arguments))),
            name: is_new.then(|| tool.to_owned()),
            kind: Some(calls::kind(kind)),
            status: Some(status),
            locations: (!locations.is_empty()).then_some(locations),
            raw_input: Some(arguments.clone()),
            ..CallUpdate::new(self.call_id(&event.session_id, call_id))
        };
        vec![if is_new { SessionUpdate::ToolCall(update) } else { SessionUpdate::ToolCallUpdate(update) }]
    }

    fn on_call_output(&mut self, event: &SessionEvent, call_id: &str, delta: &str) -> Vec<SessionUpdate> {
        let call = self.call(event, call_id);
        if call.is_plan || !call.is_open || call.terminal.is_some() {
            return Vec::new();
        }
        call.output.push_str(delta);
        let excess = call.output.len().saturating_sub(LIVE_OUTPUT);
        let from = (excess..call.output.len()).find(|at| call.output.is_char_boundary(*at));
        call.output.drain(..from.unwrap_or_default());
        let now = event.timestamp;
        if call.shown_at.is_some_and(|at| now.as_millis().saturating_sub(at.as_millis()) < LIVE_INTERVAL) {
            return Vec::new();
        }
        call.shown_at = Some(now);
        let content = vec![CallContent::text(calls::fenced(&call.output))];
        let id = self.call_id(&event.session_id, call_id);
        vec![SessionUpdate::ToolCallUpdate(CallUpdate { content: Some(content), ..CallUpdate::new(id) })]
    }

    fn on_call_ended(
        &mut self,
        event: &SessionEvent,
        call_id: &str,
        ending: &CallEnd<'_>,
    ) -> Vec<SessionUpdate> {
        let call = self.call(event, call_id);
        (call.is_open, call.output) = (false, String::new());
        if call.is_plan {
            return Vec::new();
        }
        let terminal = call.terminal.take();
        let CallEnd { output, error, exit_code, changes } = ending;
        let mut content = calls::diffs(changes, &self.directory);
        // The client itself shows the output of its terminal.
        content.extend(terminal.clone().map(|terminal_id| CallContent::Terminal { terminal_id }));
        if (content.is_empty() && terminal.is_none()) || error.is_some() {
            content.extend(calls::output(output));
        }
        let locations = calls::changed_locations(changes, &self.directory);
        let status = if error.is_some() { CallStatus::Failed } else { CallStatus::Completed };
        let raw_output = match (error, exit_code) {
            (Some(error), _) => Some(json!({"error": error})),
            (None, Some(exit_code)) => Some(json!({"exitCode": exit_code})),
            (None, None) => None,
        };
        vec![SessionUpdate::ToolCallUpdate(CallUpdate {
            status: Some(status),
            content: Some(content),
            locations: (!locations.is_empty()).then_some(locations),
            raw_output,
            ..CallUpdate::new(self.call_id(&event.session_id, call_id))
        })]
    }

    /// Returns whether an open call runs the command. The session itself runs other commands.
    pub(crate) fn runs(&self, command: &str) -> bool {
        self.calls.values().any(|call| call.runs(command))
    }

    /// Returns the update that shows a command's terminal, if an open call runs the command.
    pub(crate) fn terminal(&mut self, terminal_id: &str, command: &str) -> Option<SessionUpdate> {
        let ((session, call_id), call) = self.calls.iter_mut().find(|(_, call)| call.runs(command))?;
        call.terminal = Some(terminal_id.to_owned());
        let (session, call_id) = (session.clone(), call_id.clone());
        let content = vec![CallContent::Terminal { terminal_id: terminal_id.to_owned() }];
        let id = self.call_id(&session, &call_id);
        Some(SessionUpdate::ToolCallUpdate(CallUpdate { content: Some(content), ..CallUpdate::new(id) }))
    }
}

impl ShownCall {
    /// Returns whether the call is open, has no terminal yet, and runs this command. Tools may wrap the command.
    fn runs(&self, command: &str) -> bool {
        let is_within = |line: &str| !line.trim().is_empty() && command.contains(line);
        self.is_open && self.terminal.is_none() && self.command.as_deref().is_some_and(is_within)
    }
}

/// End of a call.
struct CallEnd<'a> {
    output: &'a Output,
    error: Option<ToolErrorKind>,
    exit_code: Option<i32>,
    changes: &'a [FileChange],
}

impl StreamedText {
    fn starting_at(event: &SessionEvent) -> Self {
        Self { message_id: message_id(event), shown: 0 }
    }

    /// Returns the delta, unless an earlier delta is missing.
    fn delta(&mut self, event: &SessionEvent, delta: &str) -> Option<String> {
        let offset = event.offset.and_then(|offset| usize::try_from(offset).ok());
        if offset.is_some_and(|offset| offset != self.shown) {
            return None;
        }
        self.shown += delta.len();
        Some(delta.to_owned())
    }

    /// Returns the part of the complete text that was not sent.
    fn rest(&mut self, text: &str) -> Option<String> {
        let rest = text.get(self.shown..).unwrap_or_default();
        self.shown = text.len();
        (!rest.is_empty()).then(|| rest.to_owned())
    }

    fn message(&self, text: String) -> SessionUpdate {
        SessionUpdate::AgentMessageChunk {
            content: ContentBlock::Text { text },
            message_id: self.message_id.clone(),
        }
    }

    fn thought(&self, text: String) -> SessionUpdate {
        SessionUpdate::AgentThoughtChunk {
            content: ContentBlock::Text { text },
            message_id: self.message_id.clone(),
        }
    }
}

fn user_chunk(event: &SessionEvent, content: &str) -> SessionUpdate {
    SessionUpdate::UserMessageChunk { content: ContentBlock::text(content), message_id: message_id(event) }
}

/// Returns the id of the message that starts with this event.
fn message_id(event: &SessionEvent) -> String {
    format!("m{}", event.seq)
}

#[cfg(test)]
mod tests;
