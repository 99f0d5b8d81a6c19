//! History in the messages of Chat Completions.

use serde_json::Value;

use super::{History, ToolOutcome, content_text, list_at};

pub(super) fn read(body: &Value, history: &mut History) {
    history.stream_usage =
        body.pointer("/stream_options/include_usage").and_then(Value::as_bool).unwrap_or(false);
    for message in list_at(body, "messages") {
        let text = message.get("content").map(content_text).unwrap_or_default();
        match message.get("role").and_then(Value::as_str) {
            Some("system" | "developer") => history.system(&text),
            Some("assistant") => {
                history.step(|_| ());
                for call in list_at(message, "tool_calls") {
                    history.call(call.get("id").and_then(Value::as_str).map(str::to_owned));
                }
            }
            Some("tool") => {
                let id = message.get("tool_call_id").and_then(Value::as_str);
                history.result(id, ToolOutcome { text, is_error: None });
            }
            _ => history.user(text),
        }
    }
}
