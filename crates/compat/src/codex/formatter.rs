//! Lines of a run.

use pintle_agent::{EventKind, Outcome, OutcomeStatus, SessionEvent, SessionId};
use pintle_llm::Usage;
use serde_json::{Value, json};

use super::item::{CallResult, ItemKind, StartedCall};
use crate::call::{output_text, plan_steps};
use crate::line::Line;
use crate::outcome::failure_message;

/// Writes one run of a session as the stream of `codex exec --json`.
///
/// The order is [`begin`](Self::begin), [`event`](Self::event) for each event of the run, and one of [`end`](Self::end)
/// and [`fail`](Self::fail). Ids of items start at `item_0` in each run.
///
/// | event | lines |
/// |---|---|
/// | text of the model | `item.completed` with an `agent_message` |
/// | reasoning | `item.completed` with a `reasoning` |
/// | call that runs a command | `item.started` and `item.completed` with a `command_execution` |
/// | call that changes files | `item.completed` with a `file_change` |
/// | plan | `item.started`, `item.updated`, and at the end of the run `item.completed`, with a `todo_list` |
/// | web search | `item.started` and `item.completed` with a `web_search` |
/// | tool of an MCP server | `item.started` and `item.completed` with an `mcp_tool_call` |
/// | any other call | the same, with the server `pintle` |
/// | warning, repeated calls | `item.completed` with an `error` |
/// | error that stops the run | `error`, and `turn.failed` at the end |
///
/// Output is shown when its call ends. Events of subagents have no lines, but the call that started the subagent does.
#[derive(Clone, Debug)]
pub struct Formatter {
    session: SessionId,
    next_item: u64,
    /// Running calls with their ids.
    calls: Vec<(String, StartedCall)>,
    /// The item of the plan.
    plan: Option<(String, Value)>,
    /// Ids of the running calls that wrote the plan.
    plan_calls: Vec<String>,
    /// Text of a failed or stopped stream. It does not become a message if the model call is repeated.
    cut_text: Option<String>,
    last_message: Option<String>,
    /// Whether the answer of the run was checked against a schema.
    is_answer_checked: bool,
}

impl Formatter {
    /// Creates the formatter for a run of this session.
    #[must_use]
    pub fn new(session: SessionId) -> Self {
        Self {
            session,
            next_item: 0,
            calls: Vec::new(),
            plan: None,
            plan_calls: Vec::new(),
            cut_text: None,
            last_message: None,
            is_answer_checked: false,
        }
    }

    /// Returns the first lines.
    #[must_use]
    pub fn begin(&self) -> Vec<Line> {
        vec![
            Line::new(json!({"type": "thread.started", "thread_id": self.session.as_str()})),
            Line::new(json!({"type": "turn.started"})),
        ]
    }

    /// Returns the lines of an event.
    #[expect(clippy::wildcard_enum_match_arm, reason = "all other events have no lines")]
    pub fn event(&mut self, event: &SessionEvent) -> Vec<Line> {
        if event.session_id != self.session {
            return Vec::new();
        }
        match &event.kind {
            EventKind::AssistantTextEnd { text, interrupted } => self.text(text, *interrupted),
            EventKind::ReasoningEnd { text, interrupted: false } if !text.is_empty() => {
                vec![self.item("reasoning", "text", text)]
            }
            EventKind::ModelRetrying { .. } => {
                self.cut_text = None;
                Vec::new()
            }
            EventKind::ToolCallStart { call_id, tool_name, call_kind, arguments } => {
                match plan_steps(tool_name, arguments) {
                    Some(steps) => vec![self.plan(call_id, &steps)],
                    None => self.call_started(call_id, ItemKind::from_call(tool_name, *call_kind, arguments)),
                }
            }
            EventKind::ToolCallEnd { call_id, output, error, exit_code, changes, .. } => {
                let result = CallResult {
                    output: output_text(output),
                    is_error: error.is_some(),
                    exit_code: *exit_code,
                    changes,
                };
                self.call_ended(call_id, &result)
            }
            EventKind::Warning { message }
            | EventKind::LoopDetection { message }
            | EventKind::HistoryRepaired { message } => vec![self.item("error", "message", message)],
            EventKind::Error { error } => {
                vec![Line::new(json!({"type": "error", "message": error.message}))]
            }
            _ => Vec::new(),
        }
    }

    /// Returns the line of an answer that was checked against a schema, unless it equals the last message.
    ///
    /// Readers of the stream use the last message of a run as its answer, and a model may wrap its JSON in Markdown.
    pub fn answer(&mut self, value: &Value) -> Vec<Line> {
        self.is_answer_checked = true;
        let text = value.to_string();
        let is_known = self.last_message.as_deref().is_some_and(|last| last.trim() == text);
        if is_known { Vec::new() } else { vec![self.message(&text)] }
    }

    /// Returns the last lines of a run.
    pub fn end(&mut self, outcome: &Outcome) -> Vec<Line> {
        let mut lines = self.close();
        match outcome.status {
            OutcomeStatus::Completed | OutcomeStatus::AwaitingInput => {
                lines.extend(self.final_message(outcome));
                lines.push(Line::new(json!({"type": "turn.completed", "usage": usage(&outcome.usage)})));
            }
            OutcomeStatus::Refused
            | OutcomeStatus::RoundLimit
            | OutcomeStatus::TurnLimit
            | OutcomeStatus::Budget
            | OutcomeStatus::ContextFull
            | OutcomeStatus::OutputLimit
            | OutcomeStatus::Interrupted
            | OutcomeStatus::Aborted
            | OutcomeStatus::Failed
            | _ => lines.push(failed(&failure_message(outcome))),
        }
        lines
    }

    /// Returns the line with the whole text of the run, unless it is the last message. Readers use the last message as
    /// the final response, but after a continuation it is only the last part. A question is the answer of the run.
    fn final_message(&mut self, outcome: &Outcome) -> Option<Line> {
        let asks = outcome.status == OutcomeStatus::AwaitingInput;
        let is_answered = self.is_answer_checked || outcome.text.trim().is_empty();
        let is_known = self.last_message.as_ref() == Some(&outcome.text);
        (!is_known && (asks || !is_answered)).then(|| self.message(&outcome.text))
    }

    /// Returns the last lines of a run that ended without an outcome, or whose answer was not accepted.
    pub fn fail(&mut self, message: &str) -> Vec<Line> {
        let mut lines = self.close();
        lines.push(failed(message));
        lines
    }

    /// Ends all open items.
    fn close(&mut self) -> Vec<Line> {
        let mut lines = Vec::new();
        if let Some(text) = self.cut_text.take() {
            lines.push(self.message(&text));
        }
        let stopped = CallResult {
            output: "the call was stopped".to_owned(),
            is_error: true,
            exit_code: None,
            changes: &[],
        };
        for (_, call) in self.calls.drain(..) {
            lines.push(item_line("item.completed", &call.completed(&stopped)));
        }
        if let Some((_, item)) = self.plan.take() {
            lines.push(item_line("item.completed", &item));
        }
        self.plan_calls.clear();
        lines
    }

    fn text(&mut self, text: &str, is_cut: bool) -> Vec<Line> {
        if text.is_empty() {
            Vec::new()
        } else if is_cut {
            self.cut_text = Some(text.to_owned());
            Vec::new()
        } else {
            vec![self.message(text)]
        }
    }

    fn message(&mut self, text: &str) -> Line {
        self.last_message = Some(text.to_owned());
        self.item("agent_message", "text", text)
    }

    fn plan(&mut self, call_id: &str, steps: &[(&str, &str)]) -> Line {
        self.plan_calls.push(call_id.to_owned());
        let items: Vec<Value> = steps
            .iter()
            .map(|(text, status)| json!({"text": text, "completed": *status == "completed"}))
            .collect();
        let (kind, id) = match self.plan.take() {
            Some((id, _)) => ("item.updated", id),
            None => ("item.started", self.id()),
        };
        let item = json!({"id": id, "type": "todo_list", "items": items});
        self.plan = Some((id, item.clone()));
        item_line(kind, &item)
    }

    fn call_started(&mut self, call_id: &str, kind: ItemKind) -> Vec<Line> {
        let call = StartedCall { id: self.id(), kind };
        let line = call.started().map(|item| item_line("item.started", &item));
        self.calls.push((call_id.to_owned(), call));
        line.into_iter().collect()
    }

    fn call_ended(&mut self, call_id: &str, result: &CallResult<'_>) -> Vec<Line> {
        if let Some(at) = self.plan_calls.iter().position(|id| id == call_id) {
            self.plan_calls.remove(at);
            return Vec::new();
        }
        // A model may use an id twice. Calls with the same id end in the order in which they started.
        let Some(at) = self.calls.iter().position(|(id, _)| id == call_id) else { return Vec::new() };
        let (_, call) = self.calls.remove(at);
        vec![item_line("item.completed", &call.completed(result))]
    }

    fn item(&mut self, kind: &str, field: &str, text: &str) -> Line {
        let id = self.id();
        item_line("item.completed", &json!({"id": id, "type": kind, field: text}))
    }

    fn id(&mut self) -> String {
        let id = format!("item_{}", self.next_item);
        self.next_item = self.next_item.saturating_add(1);
        id
    }
}

fn item_line(kind: &str, item: &Value) -> Line {
    Line::new(json!({"type": kind, "item": item}))
}

fn failed(message: &str) -> Line {
    Line::new(json!({"type": "turn.failed", "error": {"message": message}}))
}

fn usage(usage: &Usage) -> Value {
    json!({
        "input_tokens": usage.input_tokens,
        "cached_input_tokens": usage.cache_read_tokens.unwrap_or(0),
        "cache_write_input_tokens": usage.cache_write_tokens.unwrap_or(0),
        "output_tokens": usage.output_tokens,
        "reasoning_output_tokens": usage.reasoning_tokens.unwrap_or(0),
    })
}
