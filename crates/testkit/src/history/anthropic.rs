//! History in the messages of the Messages API.

use serde_json::Value;

use super::{History, ToolOutcome, content_text, list_at, text_at};

pub(super) fn read(body: &Value, history: &mut History) {
    let thinking = body.pointer("/thinking/type").and_then(Value::as_str);
    history.requires_thinking = thinking == Some("enabled");
    history.allows_thinking = matches!(thinking, Some("enabled" | "adaptive"));
    history.system(&body.get("system").map(content_text).unwrap_or_default());
    for (index, message) in list_at(body, "messages").iter().enumerate() {
        if message.get("role").and_then(Value::as_str) == Some("assistant") {
            read_assistant(index, message, history);
        } else {
            read_user(message, history);
        }
    }
}

fn read_assistant(index: usize, message: &Value, history: &mut History) {
    history.step(|_| ());
    for (block_index, block) in list_at(message, "content").iter().enumerate() {
        match block.get("type").and_then(Value::as_str) {
            Some("tool_use") => history.call(Some(text_at(block, "id"))),
            Some("thinking") => {
                let field = format!("messages.{index}.content.{block_index}.signature");
                history.reasoning(field, Some(text_at(block, "thinking")), text_at(block, "signature"));
            }
            _ => {}
        }
    }
}

fn read_user(message: &Value, history: &mut History) {
    let text = message.get("content").map(content_text).unwrap_or_default();
    let mut answers_calls = false;
    for block in list_at(message, "content") {
        if block.get("type").and_then(Value::as_str) == Some("tool_result") {
            answers_calls = true;
            let outcome = ToolOutcome {
                text: block.get("content").map(content_text).unwrap_or_default(),
                is_error: Some(block.get("is_error").and_then(Value::as_bool).unwrap_or(false)),
            };
            history.result(block.get("tool_use_id").and_then(Value::as_str), outcome);
        }
    }
    match (answers_calls, text.is_empty()) {
        // Text beside results is steering within the open turn.
        (true, false) => history.user_messages.push(text),
        (true, true) => {}
        (false, _) => history.user(text),
    }
}
