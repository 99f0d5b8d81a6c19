//! Reading of request bodies, written from the providers' documentation and independent of the encoders.

use std::collections::BTreeMap;

use pintle_testkit::Dialect as Rules;
use serde_json::Value;
use serde_json::value::RawValue;

/// A tool call on the wire.
#[derive(Debug, PartialEq)]
pub(super) struct SentCall {
    pub(super) id: String,
    pub(super) name: String,
    /// An object, or a string for free text and for text that is not JSON.
    pub(super) arguments: Value,
}

/// Returns the calls of a body, and the ids and texts of its results, in order.
pub(super) fn calls_and_results(rules: Rules, body: &Value) -> (Vec<SentCall>, Vec<(String, String)>) {
    let mut calls = Vec::new();
    let mut results = Vec::new();
    for part in parts(rules, body) {
        let text = |name: &str| part.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let written = |name: &str| part.get(name).map(ToString::to_string).unwrap_or_default();
        match text("type").as_str() {
            "function_call" => calls.push(call(text("call_id"), text("name"), parsed(&text("arguments")))),
            "custom_tool_call" => calls.push(call(text("call_id"), text("name"), text("input").into())),
            "function_call_output" | "custom_tool_call_output" => {
                results.push((text("call_id"), written("output")));
            }
            "tool_use" => calls.push(call(text("id"), text("name"), part["input"].clone())),
            "tool_result" => results.push((text("tool_use_id"), written("content"))),
            _ => {}
        }
        if let Some(called) = part.get("functionCall") {
            let text = |name: &str| called[name].as_str().unwrap_or_default().to_owned();
            calls.push(call(text("id"), text("name"), called["args"].clone()));
        }
        if let Some(result) = part.get("functionResponse") {
            let id = result["id"].as_str().unwrap_or_default().to_owned();
            results.push((id, result["response"].to_string()));
        }
        if text("role") == "tool" {
            results.push((text("tool_call_id"), written("content")));
        }
        for called in part.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
            let function = |name: &str| called["function"][name].as_str().unwrap_or_default().to_owned();
            let id = called["id"].as_str().unwrap_or_default().to_owned();
            calls.push(call(id, function("name"), parsed(&function("arguments"))));
        }
    }
    (calls, results)
}

fn call(id: String, name: String, arguments: Value) -> SentCall {
    SentCall { id, name, arguments }
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| text.into())
}

/// Returns the items or messages of a body; for Anthropic and Gemini the blocks of each message.
fn parts(rules: Rules, body: &Value) -> Vec<&Value> {
    let (list, inner) = lists(rules);
    let messages = body[list].as_array().into_iter().flatten();
    match inner {
        None => messages.collect(),
        Some(inner) => messages.flat_map(|message| message[inner].as_array().into_iter().flatten()).collect(),
    }
}

fn lists(rules: Rules) -> (&'static str, Option<&'static str>) {
    match rules {
        Rules::OpenAiResponses => ("input", None),
        Rules::ChatCompletions => ("messages", None),
        Rules::AnthropicMessages => ("messages", Some("content")),
        Rules::Gemini => ("contents", Some("parts")),
    }
}

/// Returns the raw JSON of each item; for Anthropic of each content block, because messages of one role are merged there.
/// Blocks are prefixed with their role and lack the cache point, which moves.
pub(super) fn raw_items(rules: Rules, body: &[u8]) -> Vec<String> {
    let members: BTreeMap<String, &RawValue> = serde_json::from_slice(body).unwrap();
    let list: Vec<&RawValue> = serde_json::from_str(members[lists(rules).0].get()).unwrap();
    if rules != Rules::AnthropicMessages {
        return list.iter().map(|item| item.get().to_owned()).collect();
    }
    let blocks = |message: &&RawValue| -> Vec<String> {
        let members: BTreeMap<String, &RawValue> = serde_json::from_str(message.get()).unwrap();
        let blocks: Vec<&RawValue> = serde_json::from_str(members["content"].get()).unwrap();
        let role = members["role"].get();
        blocks.iter().map(|block| format!("{role}: {}", without_cache_point(block.get()))).collect()
    };
    list.iter().flat_map(blocks).collect()
}

fn without_cache_point(block: &str) -> String {
    match block.strip_suffix(r#","cache_control":{"type":"ephemeral"}}"#) {
        Some(block) => format!("{block}}}"),
        None => block.to_owned(),
    }
}

/// Returns all objects within a value, including itself.
pub(super) fn objects(value: &Value) -> Vec<&Value> {
    let mut found = Vec::new();
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        match value {
            Value::Object(members) => {
                found.push(value);
                open.extend(members.values());
            }
            Value::Array(elements) => open.extend(elements),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    found
}
