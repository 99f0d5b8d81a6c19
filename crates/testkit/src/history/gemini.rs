//! History in the contents of the Gemini API.

use serde_json::Value;

use super::{History, ToolOutcome, content_text, list_at};
use crate::dialect::gemini_target;

pub(super) fn read(path: &str, body: &Value, history: &mut History) {
    let path = path.split('?').next().unwrap_or(path);
    if let Some((model, stream)) = gemini_target(path) {
        model.clone_into(&mut history.model);
        history.stream = stream;
    }
    let system = body.pointer("/systemInstruction/parts").map(content_text).unwrap_or_default();
    history.system(&system);
    for (index, content) in list_at(body, "contents").iter().enumerate() {
        if content.get("role").and_then(Value::as_str) == Some("model") {
            read_model(index, content, history);
        } else {
            read_user(content, history);
        }
    }
}

fn read_model(index: usize, content: &Value, history: &mut History) {
    history.step(|_| ());
    for (part_index, part) in list_at(content, "parts").iter().enumerate() {
        if let Some(call) = part.get("functionCall") {
            history.call(call.get("id").and_then(Value::as_str).map(str::to_owned));
        }
        if let Some(seal) = part.get("thoughtSignature").and_then(Value::as_str) {
            let field = format!("contents[{index}].parts[{part_index}].thoughtSignature");
            history.reasoning(field, None, seal.to_owned());
        }
    }
}

fn read_user(content: &Value, history: &mut History) {
    let mut answers_calls = false;
    for response in list_at(content, "parts").iter().filter_map(|part| part.get("functionResponse")) {
        answers_calls = true;
        history.result(response.get("id").and_then(Value::as_str), outcome(response));
    }
    let text = content.get("parts").map(content_text).unwrap_or_default();
    match (answers_calls, text.is_empty()) {
        (true, false) => history.user_messages.push(text),
        (true, true) => {}
        (false, _) => history.user(text),
    }
}

/// Converts a response object: its values, one per line; the key `error` marks a failure.
fn outcome(response: &Value) -> ToolOutcome {
    let Some(object) = response.get("response").and_then(Value::as_object) else {
        return ToolOutcome::default();
    };
    let texts: Vec<String> = object
        .values()
        .map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned))
        .collect();
    ToolOutcome { text: texts.join("\n"), is_error: Some(object.contains_key("error")) }
}
