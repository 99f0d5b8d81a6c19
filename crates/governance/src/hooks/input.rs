//! Input of commands.

use std::time::Duration;

use pintle_agent::{ApprovalRequest, CompactionTrigger, HookSession, SessionEndReason, SessionSource};
use pintle_tools::pipeline::{Execution, PreparedCall};
use serde_json::{Map, Value, json};

use super::event::HookEvent;

/// Facts about the session that its description does not have.
#[derive(Clone, Debug, Default)]
pub(super) struct SessionFacts {
    pub(super) transcript: Option<String>,
    pub(super) mode: Option<&'static str>,
}

/// Fields of one event.
#[derive(Clone, Debug)]
pub(super) struct Details(Map<String, Value>);

impl Details {
    fn new<const N: usize>(fields: [(&str, Value); N]) -> Self {
        Self(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    pub(super) fn none() -> Self {
        Self::new([])
    }

    pub(super) fn of_call(call: &PreparedCall) -> Self {
        Self::of_tool(call.name(), call.arguments(), call.call_id())
    }

    pub(super) fn of_request(request: &ApprovalRequest) -> Self {
        Self::of_tool(&request.tool_name, &request.arguments, &request.call_id)
    }

    fn of_tool(name: &str, arguments: &Value, id: &str) -> Self {
        Self::new([("tool_name", json!(name)), ("tool_input", arguments.clone()), ("tool_use_id", json!(id))])
    }

    pub(super) fn of_result(call: &PreparedCall, execution: &Execution, duration: Duration) -> Self {
        let Execution { result, exit_code, changes, .. } = execution;
        let changed: Vec<&str> = changes.iter().map(|change| change.path.as_str()).collect();
        let response = json!({
            "content": result.content,
            "is_error": result.is_error,
            "exit_code": exit_code,
            "timed_out": execution.timed_out.is_some(),
            "changed_files": changed,
        });
        let Self(mut fields) = Self::of_call(call);
        fields.insert("tool_response".to_owned(), response);
        let duration = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        fields.insert("duration_ms".to_owned(), json!(duration));
        Self(fields)
    }

    pub(super) fn of_prompt(text: &str) -> Self {
        Self::new([("prompt", json!(text))])
    }

    pub(super) fn of_start(source: &str) -> Self {
        Self::new([("source", json!(source))])
    }

    pub(super) fn of_session_end(reason: SessionEndReason) -> Self {
        let reason = match reason {
            SessionEndReason::Closed => "closed",
            SessionEndReason::Aborted => "aborted",
            SessionEndReason::Failed => "failed",
            SessionEndReason::Suspended => "suspended",
            // The shared format has this name for all other reasons.
            _ => "other",
        };
        Self::new([("reason", json!(reason))])
    }

    pub(super) fn of_end(text: &str, sent_on: u32) -> Self {
        Self::new([("stop_hook_active", json!(sent_on > 0)), ("last_assistant_message", json!(text))])
    }

    pub(super) fn of_compaction(trigger: CompactionTrigger) -> Self {
        let trigger = match trigger {
            CompactionTrigger::Manual => "manual",
            // Triggers of later versions are not requests of the application.
            CompactionTrigger::Automatic | _ => "auto",
        };
        Self::new([("trigger", json!(trigger))])
    }

    /// Returns the complete input: one JSON object on a line.
    pub(super) fn into_input(
        self,
        event: HookEvent,
        session: &HookSession,
        session_facts: SessionFacts,
    ) -> Vec<u8> {
        let Self(mut fields) = self;
        let SessionFacts { transcript, mode } = session_facts;
        let base = [
            ("session_id", Some(json!(session.id))),
            ("transcript_path", Some(json!(transcript))),
            ("cwd", Some(json!(session.directory.to_string_lossy()))),
            ("permission_mode", mode.map(Value::from)),
            ("agent_id", session.origin.as_ref().map(|origin| json!(origin.agent_id))),
            ("agent_type", session.origin.as_ref().map(|origin| json!(origin.role))),
            ("hook_event_name", Some(json!(event.as_str()))),
        ];
        for (name, value) in base {
            fields.extend(value.map(|value| (name.to_owned(), value)));
        }
        let mut line = Value::Object(fields).to_string().into_bytes();
        line.push(b'\n');
        line
    }
}

/// Sources of sessions, as [`source_name`] returns them.
pub(super) const SOURCES: [&str; 3] = ["startup", "resume", "fork"];

/// Returns the source of a session by the name that other agents use.
pub(super) fn source_name(source: SessionSource) -> &'static str {
    match source {
        SessionSource::Resumed => "resume",
        SessionSource::Forked => "fork",
        // Sources of later versions count as a start.
        SessionSource::New | _ => "startup",
    }
}
