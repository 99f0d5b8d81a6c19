//! History in the input items of the Responses API.

use serde_json::Value;

use super::{History, ToolOutcome, content_text, list_at, text_at};

pub(super) fn read(body: &Value, history: &mut History) {
    history.system(&text_at(body, "instructions"));
    if let Some(prompt) = body.get("input").and_then(Value::as_str) {
        history.user(prompt.to_owned());
    }
    for (index, item) in list_at(body, "input").iter().enumerate() {
        read_item(index, item, history);
    }
}

fn read_item(index: usize, item: &Value, history: &mut History) {
    let call_id = item.get("call_id").and_then(Value::as_str);
    match item.get("type").and_then(Value::as_str).unwrap_or("message") {
        "message" => read_message(item, history),
        "function_call" | "custom_tool_call" => history.call(call_id.map(str::to_owned)),
        "function_call_output" | "custom_tool_call_output" => {
            let text = item.get("output").map(content_text).unwrap_or_default();
            history.result(call_id, ToolOutcome { text, is_error: None });
        }
        "reasoning" => match item.get("encrypted_content").and_then(Value::as_str) {
            Some(seal) => {
                history.reasoning(format!("input[{index}].encrypted_content"), None, seal.to_owned())
            }
            None => history.step(|_| ()),
        },
        _ => {}
    }
}

fn read_message(item: &Value, history: &mut History) {
    let text = item.get("content").map(content_text).unwrap_or_default();
    match item.get("role").and_then(Value::as_str) {
        Some("assistant") => history.step(|_| ()),
        Some("system" | "developer") => history.system(&text),
        _ => history.user(text),
    }
}
