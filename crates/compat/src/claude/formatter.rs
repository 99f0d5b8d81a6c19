//! Lines of the runs of a session.

use std::collections::BTreeMap;

use pintle_agent::{CallKind, EventKind, SessionEvent, SessionId, Timestamp};
use pintle_llm::{ErrorInfo, FinishReason, Usage};
use pintle_tools::ToolErrorKind;
use serde_json::{Value, json};

use super::ids::LineIds;
use super::info::InitInfo;
use super::message::ResponseMessage;
use super::partial::{BlockKind, PartialMessage};
use super::result::{RunCounts, RunEnd, result};
use super::tool_names::claude_tool_name;
use super::usage::stop_reason;
use crate::call::output_text;
use crate::line::Line;

/// Settings of a [`Formatter`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FormatterSettings {
    /// Whether to write `stream_event` lines (`--include-partial-messages`). Default: no.
    pub partial_messages: bool,
    /// Whether to write the text of subagents, not only their calls (`forwardSubagentText`). Default: no.
    pub subagent_text: bool,
    /// Number that differs between the processes that write lines of one session, such as the sequence number of the
    /// first new event. UUIDs of lines depend on it. Default: 0.
    pub epoch: u64,
}

/// Writes the runs of a session as lines of `stream-json`.
///
/// For each run: [`init`](Self::init), then [`event`](Self::event) for each event of the session and its subagents, then
/// [`end`](Self::end). Each line has a `uuid` and the `session_id`.
///
/// | event | lines |
/// |---|---|
/// | model response | one `assistant` line for each block of text and of thinking, at the end of the response |
/// | call that is asked about, or starts | `assistant` with a `tool_use` block |
/// | end of a call | `user` with a `tool_result` block |
/// | deltas | `stream_event`, with [`FormatterSettings::partial_messages`] |
/// | compaction | `system` `status` and `compact_boundary` |
/// | retry | `system` `api_retry` |
/// | warning, repeated calls, error | `system` `informational` |
///
/// Lines of subagents have the id of the call that started the subagent as `parent_tool_use_id`; all others have null.
/// If several calls start subagents at once, the first call gets the subagent that is spawned first. Arguments of a
/// call that arrive as a whole have no `stream_event`.
#[derive(Clone, Debug)]
pub struct Formatter {
    session: SessionId,
    settings: FormatterSettings,
    ids: LineIds,
    model: String,
    /// State of each session, including subagents.
    sessions: BTreeMap<SessionId, SessionView>,
    counts: RunCounts,
    started: Option<Timestamp>,
    latest: Option<Timestamp>,
    /// Start times of model calls.
    request_started: Option<Timestamp>,
}

/// State of one session.
#[derive(Clone, Debug, Default)]
struct SessionView {
    /// The call that started the session.
    parent: Option<String>,
    message: ResponseMessage,
    partial: PartialMessage,
    calls: Vec<ShownCall>,
}

/// A call that has a `tool_use` line and no `tool_result` line yet.
#[derive(Clone, Debug)]
struct ShownCall {
    id: String,
    tool_name: String,
    arguments: Value,
    /// Whether it starts a subagent that is not spawned yet.
    awaits_subagent: bool,
}

impl Formatter {
    /// Creates the formatter of a session.
    #[must_use]
    pub fn new(session: SessionId, model: impl Into<String>, settings: FormatterSettings) -> Self {
        Self {
            ids: LineIds::new(session.clone(), settings.epoch),
            session,
            settings,
            model: model.into(),
            sessions: BTreeMap::new(),
            counts: RunCounts::default(),
            started: None,
            latest: None,
            request_started: None,
        }
    }

    /// Sets the model that later lines contain.
    pub fn set_model(&mut self, model: impl Into<String>) {
        self.model = model.into();
    }

    /// Returns the line at the start of each run.
    pub fn init(&mut self, info: &InitInfo) -> Line {
        self.line(info.to_value())
    }

    /// Returns a line for users that is not an event, for example about an ignored option.
    pub fn notice(&mut self, content: &str) -> Line {
        self.informational(content, "notice")
    }

    /// Returns the line that repeats a message of the user (`--replay-user-messages`). A message without a `uuid` gets
    /// one.
    pub fn replay(&mut self, message: &Value, uuid: Option<&str>) -> Line {
        let mut line = json!({
            "type": "user", "message": message, "parent_tool_use_id": null, "isReplay": true,
        });
        if let (Some(uuid), Some(line)) = (uuid, line.as_object_mut()) {
            line.insert("uuid".to_owned(), uuid.into());
        }
        self.line(line)
    }

    /// Returns the lines of an event.
    pub fn event(&mut self, event: &SessionEvent) -> Vec<Line> {
        let is_root = event.session_id == self.session;
        if is_root {
            self.count(event);
        } else if !self.sessions.contains_key(&event.session_id) {
            // Neither this session nor a subagent that it spawned.
            return Vec::new();
        }
        self.lines_of(&event.session_id.clone(), &event.kind)
    }

    /// Returns the lines at the end of a run: the remaining blocks of its last response, and the `result`.
    pub fn end(&mut self, end: &RunEnd<'_>) -> Vec<Line> {
        let session = self.session.clone();
        let mut lines = self.flush(&session);
        lines.extend(self.abandon_partial(&session));
        let mut counts = std::mem::take(&mut self.counts);
        if let (Some(started), Some(latest)) = (self.started.take(), self.latest) {
            counts.duration_ms = millis(started, latest);
        }
        lines.push(self.line(result(end, &counts)));
        self.view(&session).message.discard();
        lines
    }

    /// Counts the totals of the run's result.
    #[expect(clippy::wildcard_enum_match_arm, reason = "no other event is counted")]
    fn count(&mut self, event: &SessionEvent) {
        self.latest = Some(event.timestamp);
        match &event.kind {
            EventKind::UserInput { .. } => {
                self.started.get_or_insert(event.timestamp);
            }
            EventKind::RequestPrepared { .. } => self.request_started = Some(event.timestamp),
            EventKind::ModelResponse { model, usage, finish_reason, .. } => {
                *self.counts.models.entry(model.clone()).or_default() += usage;
                self.counts.stop_reason = stop_reason(finish_reason);
                self.request_ended(event.timestamp);
            }
            EventKind::Error { .. } => self.request_ended(event.timestamp),
            _ => {}
        }
    }

    fn request_ended(&mut self, now: Timestamp) {
        if let Some(started) = self.request_started.take() {
            self.counts.api_duration_ms = self.counts.api_duration_ms.saturating_add(millis(started, now));
        }
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "all other events have no lines, or concern the session"
    )]
    fn lines_of(&mut self, session: &SessionId, kind: &EventKind) -> Vec<Line> {
        match kind {
            EventKind::AssistantTextStart {} => {
                self.begin_block(session, BlockKind::Text, &json!({"type": "text", "text": ""}))
            }
            EventKind::AssistantTextDelta { delta } => self.block_delta(session, &BlockKind::Text, delta),
            EventKind::AssistantTextEnd { text, .. } => self.text_ended(session, &BlockKind::Text, text),
            EventKind::ReasoningStart {} => {
                let content = json!({"type": "thinking", "thinking": "", "signature": ""});
                self.begin_block(session, BlockKind::Thinking, &content)
            }
            EventKind::ReasoningDelta { delta } => self.block_delta(session, &BlockKind::Thinking, delta),
            EventKind::ReasoningEnd { text, .. } => self.text_ended(session, &BlockKind::Thinking, text),
            EventKind::ToolCallArgumentsStart { call_id, tool_name, .. } => {
                let name = claude_tool_name(tool_name);
                let content = json!({"type": "tool_use", "id": call_id, "name": name, "input": {}});
                self.begin_block(session, BlockKind::Call(call_id.clone()), &content)
            }
            EventKind::ToolCallArgumentsDelta { call_id, delta } => {
                self.block_delta(session, &BlockKind::Call(call_id.clone()), delta)
            }
            EventKind::ToolCallArgumentsEnd { call_id, .. } => {
                self.end_block(session, &BlockKind::Call(call_id.clone()))
            }
            EventKind::RequestPrepared { .. } => self.request_prepared(session),
            EventKind::ModelResponse { finish_reason, usage, .. } => {
                self.response_ended(session, finish_reason, usage)
            }
            EventKind::ModelRetrying { attempt, delay_ms, error } => {
                self.retrying(session, *attempt, *delay_ms, error)
            }
            EventKind::ApprovalRequested { call_id, tool_name, call_kind, arguments, .. } => {
                self.call_shown(session, call_id, tool_name, *call_kind, arguments)
            }
            EventKind::ToolCallStart { call_id, tool_name, call_kind, arguments } => {
                self.call_shown(session, call_id, tool_name, *call_kind, arguments)
            }
            EventKind::ToolCallEnd { call_id, tool_name, output, error, .. } => {
                self.call_ended(session, call_id, tool_name, &output_text(output), *error)
            }
            EventKind::SubagentSpawned { child, .. } => {
                self.spawned(session, child);
                Vec::new()
            }
            kind => self.about_session(kind, *session == self.session),
        }
    }

    fn text_ended(&mut self, session: &SessionId, block: &BlockKind, text: &str) -> Vec<Line> {
        let lines = self.end_block(session, block);
        let is_shown = *session == self.session || self.settings.subagent_text;
        if !text.is_empty() && is_shown {
            let content = match block {
                BlockKind::Thinking => json!({"type": "thinking", "thinking": text, "signature": ""}),
                BlockKind::Text | BlockKind::Call(_) => json!({"type": "text", "text": text}),
            };
            self.add_block(session, content);
        }
        lines
    }

    fn request_prepared(&mut self, session: &SessionId) -> Vec<Line> {
        let mut lines = self.flush(session);
        lines.extend(self.abandon_partial(session));
        self.view(session).message.discard();
        lines
    }

    fn response_ended(&mut self, session: &SessionId, reason: &FinishReason, usage: &Usage) -> Vec<Line> {
        self.view(session).message.end(reason, usage);
        let mut lines = self.flush(session);
        let events = self.view(session).partial.complete(reason, usage);
        lines.extend(self.stream_events(session, events));
        lines
    }

    fn retrying(&mut self, session: &SessionId, attempt: u32, delay_ms: u64, error: &ErrorInfo) -> Vec<Line> {
        let mut lines = self.abandon_partial(session);
        self.view(session).message.discard();
        lines.push(self.line(json!({
            "type": "system", "subtype": "api_retry", "attempt": attempt, "max_retries": attempt,
            "retry_delay_ms": delay_ms, "error_status": error.status, "error": "unknown",
            "pintle_error": error.message,
        })));
        lines
    }

    /// Writes a call when its approval is requested or when it starts, whichever comes first.
    fn call_shown(
        &mut self,
        session: &SessionId,
        call_id: &str,
        tool_name: &str,
        kind: CallKind,
        arguments: &Value,
    ) -> Vec<Line> {
        if self.view(session).calls.iter().any(|call| call.id == call_id) {
            return Vec::new();
        }
        let call = ShownCall {
            id: call_id.to_owned(),
            tool_name: tool_name.to_owned(),
            arguments: arguments.clone(),
            awaits_subagent: kind == CallKind::Agent,
        };
        self.view(session).calls.push(call);
        let name = claude_tool_name(tool_name);
        self.add_block(
            session,
            json!({"type": "tool_use", "id": call_id, "name": name, "input": object(arguments)}),
        );
        self.flush(session)
    }

    fn call_ended(
        &mut self,
        session: &SessionId,
        call_id: &str,
        tool_name: &str,
        output: &str,
        error: Option<ToolErrorKind>,
    ) -> Vec<Line> {
        let mut lines = Vec::new();
        if !self.view(session).calls.iter().any(|call| call.id == call_id) {
            // A result without its call would be an invalid conversation.
            lines = self.call_shown(session, call_id, tool_name, CallKind::Other, &json!({}));
        }
        let calls = &mut self.view(session).calls;
        let at = calls.iter().position(|call| call.id == call_id);
        let call = at.map(|at| calls.remove(at));
        if let Some(call) = call.filter(|_| error == Some(ToolErrorKind::Denied)) {
            self.counts.denials.push(json!({
                "tool_name": claude_tool_name(&call.tool_name),
                "tool_use_id": call.id,
                "tool_input": object(&call.arguments),
            }));
        }
        let result = json!({
            "type": "tool_result", "tool_use_id": call_id, "content": output, "is_error": error.is_some(),
        });
        let parent = self.parent(session);
        lines.push(self.line(json!({
            "type": "user",
            "message": {"role": "user", "content": [result]},
            "parent_tool_use_id": parent,
        })));
        lines
    }

    fn spawned(&mut self, session: &SessionId, child: &SessionId) {
        let waiting = self.view(session).calls.iter_mut().find(|call| call.awaits_subagent);
        let parent = waiting.map(|call| {
            call.awaits_subagent = false;
            call.id.clone()
        });
        self.view(child).parent = parent;
    }

    /// Writes events about the session as a whole. Such events of subagents have no lines.
    #[expect(clippy::wildcard_enum_match_arm, reason = "all other events have no lines")]
    fn about_session(&mut self, kind: &EventKind, is_root: bool) -> Vec<Line> {
        if !is_root {
            return Vec::new();
        }
        match kind {
            EventKind::CompactionStart { .. } => {
                vec![self.line(json!({"type": "system", "subtype": "status", "status": "compacting"}))]
            }
            EventKind::CompactionEnd { tokens_before, tokens_after, .. } => vec![
                self.line(json!({"type": "system", "subtype": "status", "status": null})),
                self.line(json!({
                    "type": "system", "subtype": "compact_boundary",
                    "compact_metadata": {
                        "trigger": "auto", "pre_tokens": tokens_before, "post_tokens": tokens_after,
                    },
                })),
            ],
            EventKind::Warning { message }
            | EventKind::LoopDetection { message }
            | EventKind::HistoryRepaired { message } => vec![self.informational(message, "warning")],
            EventKind::Error { error } => vec![self.informational(&error.message, "warning")],
            _ => Vec::new(),
        }
    }

    fn informational(&mut self, content: &str, level: &str) -> Line {
        self.line(json!({"type": "system", "subtype": "informational", "content": content, "level": level}))
    }

    fn view(&mut self, session: &SessionId) -> &mut SessionView {
        self.sessions.entry(session.clone()).or_default()
    }

    fn parent(&mut self, session: &SessionId) -> Option<String> {
        self.view(session).parent.clone()
    }

    fn message_id(&mut self, session: &SessionId) -> String {
        let ids = &mut self.ids;
        let view = self.sessions.entry(session.clone()).or_default();
        view.message.id(|| ids.message()).to_owned()
    }

    /// Adds a block to the response of a session.
    fn add_block(&mut self, session: &SessionId, block: Value) {
        self.message_id(session);
        self.view(session).message.add(block);
    }

    /// Writes the waiting blocks.
    fn flush(&mut self, session: &SessionId) -> Vec<Line> {
        let blocks = self.view(session).message.take();
        let parent = self.parent(session);
        let mut lines = Vec::new();
        for block in &blocks {
            let message = self.view(session).message.clone().to_value(block, &self.model);
            lines.push(self.line(json!({
                "type": "assistant", "message": message, "parent_tool_use_id": parent,
            })));
        }
        lines
    }

    fn begin_block(&mut self, session: &SessionId, block: BlockKind, content: &Value) -> Vec<Line> {
        if !self.settings.partial_messages {
            return Vec::new();
        }
        let (id, model) = (self.message_id(session), self.model.clone());
        let events = self.view(session).partial.begin(block, content, &id, &model);
        self.stream_events(session, events)
    }

    fn block_delta(&mut self, session: &SessionId, block: &BlockKind, delta: &str) -> Vec<Line> {
        let event = self.view(session).partial.delta(block, delta);
        self.stream_events(session, event)
    }

    fn end_block(&mut self, session: &SessionId, block: &BlockKind) -> Vec<Line> {
        let event = self.view(session).partial.end(block);
        self.stream_events(session, event)
    }

    fn abandon_partial(&mut self, session: &SessionId) -> Vec<Line> {
        let events = self.view(session).partial.abandon();
        self.stream_events(session, events)
    }

    fn stream_events(&mut self, session: &SessionId, events: impl IntoIterator<Item = Value>) -> Vec<Line> {
        let parent = self.parent(session);
        let line = |event| json!({"type": "stream_event", "event": event, "parent_tool_use_id": parent});
        events.into_iter().map(line).map(|line| self.line(line)).collect()
    }

    /// Completes a line.
    fn line(&mut self, mut line: Value) -> Line {
        if let Some(fields) = line.as_object_mut() {
            fields.insert("session_id".to_owned(), self.session.as_str().into());
            fields.entry("uuid").or_insert_with(|| self.ids.uuid().into());
        }
        Line::new(line)
    }
}

/// Returns arguments as an object. Claude's arguments are always objects.
fn object(arguments: &Value) -> Value {
    if arguments.is_object() { arguments.clone() } else { json!({"input": arguments}) }
}

fn millis(from: Timestamp, to: Timestamp) -> u64 {
    u64::try_from(to.since(from).as_millis()).unwrap_or(u64::MAX)
}
