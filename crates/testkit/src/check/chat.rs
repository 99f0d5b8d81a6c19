//! The rules of Chat Completions, as OpenAI-compatible servers apply them.

use std::collections::{HashSet, VecDeque};

use serde_json::{Map, Value};

use super::report::Kind::{Any, Count, Flag, List, Number, Object, OneOf, Text, TextOrList, TextOrObject};
use super::report::{Field, Report, join, may, must, text};
use super::{media, tools};

const REQUEST: &[Field] = &[
    must("model", Text),
    must("messages", List),
    may("stream", Flag),
    may("stream_options", Object),
    may("tools", List),
    may("tool_choice", TextOrObject),
    may("parallel_tool_calls", Flag),
    may("max_tokens", Count),
    may("max_completion_tokens", Count),
    may("temperature", Number),
    may("top_p", Number),
    may("n", Count),
    may("stop", TextOrList),
    may("seed", Number),
    may("presence_penalty", Number),
    may("frequency_penalty", Number),
    may("logit_bias", Object),
    may("logprobs", Flag),
    may("top_logprobs", Count),
    may("response_format", Object),
    may("reasoning_effort", Text),
    may("verbosity", Text),
    may("user", Text),
    may("metadata", Object),
    may("store", Flag),
    may("service_tier", Text),
    may("safety_identifier", Text),
    may("prompt_cache_key", Text),
    may("prompt_cache_options", Object),
    may("prompt_cache_retention", Text),
    may("moderation", Object),
    may("prediction", Object),
    may("modalities", List),
    may("audio", Object),
    may("web_search_options", Object),
    // Common extensions of compatible servers.
    may("top_k", Number),
    may("min_p", Number),
    may("repetition_penalty", Number),
    may("reasoning", Object),
    may("thinking", Object),
    may("chat_template_kwargs", Object),
    may("keep_alive", Any),
    may("options", Object),
    may("provider", Object),
];

const MESSAGE: &[Field] =
    &[must("role", OneOf(&["system", "developer", "user"])), must("content", TextOrList), may("name", Text)];

const ASSISTANT: &[Field] = &[
    must("role", Text),
    may("content", TextOrList),
    may("tool_calls", List),
    may("name", Text),
    may("refusal", Text),
    may("audio", Object),
    may("reasoning_content", Text),
    may("reasoning", Text),
    may("reasoning_details", List),
];

const TOOL_MESSAGE: &[Field] =
    &[must("role", Text), must("content", TextOrList), must("tool_call_id", Text), may("name", Text)];

const TOOL: &[Field] = &[must("type", OneOf(&["function"])), must("function", Object)];

const FUNCTION: &[Field] =
    &[must("name", Text), may("description", Text), may("parameters", Object), may("strict", Flag)];

const TOOL_CALL: &[Field] = &[
    must("id", Text),
    must("type", OneOf(&["function"])),
    must("function", Object),
    may("index", Count),
    // Gemini's compatible endpoint.
    may("extra_content", Object),
];

const CALLED: &[Field] = &[must("name", Text), must("arguments", Text)];

/// Maximum length of a call id, in characters.
const MAX_CALL_ID: usize = 40;

/// Maximum length of the name of a call, in characters.
const MAX_CALL_NAME: usize = 64;

pub(super) fn check(body: &Map<String, Value>, report: &mut Report) {
    report.fields("", body, REQUEST);
    if body.contains_key("max_tokens") && body.contains_key("max_completion_tokens") {
        report.invalid("max_tokens", "found max_completion_tokens too, expected one of them");
    }
    if let Some(options) = body.get("stream_options").and_then(Value::as_object) {
        report.fields(
            "stream_options",
            options,
            &[may("include_usage", Flag), may("include_obfuscation", Flag)],
        );
        if body.get("stream") != Some(&Value::Bool(true)) {
            report.invalid("stream_options", "expected it only beside stream: true");
        }
    }
    check_tools(body, report);
    check_response_format(body, report);
    let messages = report.objects("", body, "messages");
    if body.get("messages").and_then(Value::as_array).is_some_and(Vec::is_empty) {
        report.invalid("messages", "found an empty list, expected at least one message");
    }
    for (path, message) in &messages {
        check_message(path, message, report);
    }
    check_pairs(&messages, report);
}

fn check_tools(body: &Map<String, Value>, report: &mut Report) {
    let mut names = Vec::new();
    for (path, tool) in report.objects("", body, "tools") {
        report.fields(&path, tool, TOOL);
        if let Some(function) = tool.get("function").and_then(Value::as_object) {
            let path = join(&path, "function");
            report.fields(&path, function, FUNCTION);
            tools::name(&path, function, report);
            tools::schema(&path, function, "parameters", report);
            tools::choices(&path, function, "parameters", report);
            names.push(text(function, "name"));
        }
    }
    if body.get("tools").and_then(Value::as_array).is_some_and(Vec::is_empty) {
        report.invalid("tools", "found an empty list, expected at least one tool or no such field");
    }
    tools::unique("tools", names.iter().copied(), report);
    if names.is_empty() && body.get("parallel_tool_calls").is_some_and(|value| !value.is_null()) {
        report.invalid("parallel_tool_calls", "found it without tools, expected `tools` beside it");
    }
    match body.get("tool_choice") {
        Some(choice @ Value::String(_)) => {
            report.kind("tool_choice", choice, OneOf(&["none", "auto", "required"]));
            if names.is_empty() {
                report.invalid("tool_choice", "found a choice without tools, expected `tools` beside it");
            }
        }
        Some(Value::Object(choice)) => {
            let name =
                choice.get("function").and_then(Value::as_object).map_or("", |named| text(named, "name"));
            if text(choice, "type") != "function" || !names.contains(&name) {
                report.invalid(
                    "tool_choice",
                    format!("found {name:?}, expected type function and a declared name"),
                );
            }
        }
        _ => {}
    }
}

fn check_response_format(body: &Map<String, Value>, report: &mut Report) {
    let Some(format) = body.get("response_format").and_then(Value::as_object) else {
        return;
    };
    let known = [must("type", OneOf(&["text", "json_object", "json_schema"])), may("json_schema", Object)];
    report.fields("response_format", format, &known);
    if text(format, "type") == "json_schema" {
        match format.get("json_schema").and_then(Value::as_object) {
            Some(schema) => {
                let known = [
                    must("name", Text),
                    may("description", Text),
                    may("schema", Object),
                    may("strict", Flag),
                ];
                report.fields("response_format.json_schema", schema, &known);
            }
            None => report.invalid("response_format.json_schema", "field is required"),
        }
    }
}

fn check_message(path: &str, message: &Map<String, Value>, report: &mut Report) {
    match text(message, "role") {
        "assistant" => check_assistant(path, message, report),
        "tool" => {
            report.fields(path, message, TOOL_MESSAGE);
            tools::call_id(path, message, "tool_call_id", MAX_CALL_ID, report);
            check_parts(path, message, &["text"], report);
        }
        "user" => {
            report.fields(path, message, MESSAGE);
            check_parts(path, message, &["text", "image_url", "input_audio", "file"], report);
        }
        _ => {
            report.fields(path, message, MESSAGE);
            check_parts(path, message, &["text"], report);
        }
    }
}

fn check_assistant(path: &str, message: &Map<String, Value>, report: &mut Report) {
    report.fields(path, message, ASSISTANT);
    check_parts(path, message, &["text", "refusal"], report);
    let calls = report.objects(path, message, "tool_calls");
    let says =
        ["content", "refusal"].iter().any(|name| message.get(*name).is_some_and(|value| !value.is_null()));
    if !says && !message.contains_key("tool_calls") {
        report.invalid(join(path, "content"), "found neither content nor tool_calls, expected one of them");
    }
    if message.get("tool_calls").and_then(Value::as_array).is_some_and(Vec::is_empty) {
        report.invalid(
            join(path, "tool_calls"),
            "found an empty list, expected at least one call or no such field",
        );
    }
    for (path, call) in calls {
        report.fields(&path, call, TOOL_CALL);
        tools::call_id(&path, call, "id", MAX_CALL_ID, report);
        if let Some(function) = call.get("function").and_then(Value::as_object) {
            check_called(&join(&path, "function"), function, report);
        }
    }
}

/// Checks a call, including its arguments, which servers parse when they render the conversation.
fn check_called(path: &str, function: &Map<String, Value>, report: &mut Report) {
    report.fields(path, function, CALLED);
    tools::called(path, function, MAX_CALL_NAME, tools::letters, report);
    let arguments = function.get("arguments").and_then(Value::as_str);
    if arguments.is_some_and(|text| serde_json::from_str::<Map<String, Value>>(text).is_err()) {
        report.invalid(join(path, "arguments"), "found text that is not a JSON object, expected one");
    }
}

fn check_parts(path: &str, message: &Map<String, Value>, allowed: &[&str], report: &mut Report) {
    if message.get("content").and_then(Value::as_array).is_some_and(Vec::is_empty) {
        report.invalid(join(path, "content"), "found an empty list, expected at least one part");
    }
    for (path, part) in report.objects(path, message, "content") {
        let kind = text(part, "type");
        if !allowed.contains(&kind) {
            let message = format!("found {kind:?}, expected one of {}", allowed.join(", "));
            report.invalid(join(&path, "type"), message);
        }
        if kind == "text" && !part.get("text").is_some_and(Value::is_string) {
            report.invalid(join(&path, "text"), "expected a string");
        }
        check_media(&path, kind, part, report);
    }
}

fn check_media(path: &str, kind: &str, part: &Map<String, Value>, report: &mut Report) {
    let known: &[Field] = match kind {
        "image_url" => &[must("url", Text), may("detail", OneOf(&["auto", "low", "high"]))],
        "input_audio" => &[must("data", Text), must("format", OneOf(&["wav", "mp3"]))],
        "file" => &[may("filename", Text), may("file_data", Text), may("file_id", Text)],
        _ => return,
    };
    let path = join(path, kind);
    let Some(held) = part.get(kind).and_then(Value::as_object) else {
        report.invalid(path, "expected an object");
        return;
    };
    report.fields(&path, held, known);
    media::data_uri(&join(&path, "url"), text(held, "url"), media::IMAGES, report);
    media::data_uri(&join(&path, "file_data"), text(held, "file_data"), &[], report);
    if kind == "input_audio" {
        media::base64(&join(&path, "data"), text(held, "data"), report);
    }
}

/// Checks that the calls of an assistant message are followed by one tool message each, in order.
fn check_pairs(messages: &[(String, &Map<String, Value>)], report: &mut Report) {
    let mut open: VecDeque<&str> = VecDeque::new();
    let mut seen = HashSet::new();
    for (path, message) in messages {
        if text(message, "role") == "tool" {
            let id = text(message, "tool_call_id");
            match open.pop_front() {
                None => report.invalid(
                    path.as_str(),
                    "messages with role 'tool' must be a response to a preceding message with 'tool_calls'",
                ),
                Some(expected) if expected != id => {
                    let message = format!(
                        "found {id:?}, expected {expected:?}: results come in the order of the calls"
                    );
                    report.invalid(join(path, "tool_call_id"), message);
                }
                Some(_) => {}
            }
            continue;
        }
        unanswered(path, &mut open, report);
        seen.clear();
        for call in message.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
            let id = call.get("id").and_then(Value::as_str).unwrap_or_default();
            if !seen.insert(id) {
                report.invalid(
                    join(path, "tool_calls"),
                    format!("found the id {id:?} twice, expected unique ids"),
                );
            }
            open.push_back(id);
        }
    }
    unanswered("messages", &mut open, report);
}

fn unanswered(path: &str, open: &mut VecDeque<&str>, report: &mut Report) {
    if open.is_empty() {
        return;
    }
    let ids: Vec<&str> = open.drain(..).collect();
    let message = format!("tool calls have no response messages before this point: {}", ids.join(", "));
    report.invalid(path, message);
}
