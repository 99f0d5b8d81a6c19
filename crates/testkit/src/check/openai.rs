//! The rules of OpenAI's Responses API.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::report::Kind::{Count, Flag, List, Number, Object, OneOf, Text, TextOrList, TextOrObject};
use super::report::{Field, Report, join, may, must, text};
use super::{media, tools};

const REQUEST: &[Field] = &[
    must("model", Text),
    must("input", TextOrList),
    may("instructions", Text),
    may("stream", Flag),
    may("store", Flag),
    may("include", List),
    may("tools", List),
    may("tool_choice", TextOrObject),
    may("parallel_tool_calls", Flag),
    may("max_output_tokens", Count),
    may("max_tool_calls", Count),
    may("reasoning", Object),
    may("text", Object),
    may("temperature", Number),
    may("top_p", Number),
    may("top_logprobs", Count),
    may("truncation", OneOf(&["auto", "disabled"])),
    may("metadata", Object),
    may("client_metadata", Object),
    may("user", Text),
    may("safety_identifier", Text),
    may("prompt_cache_key", Text),
    may("prompt_cache_options", Object),
    may("prompt_cache_retention", OneOf(&["in_memory", "24h"])),
    may("service_tier", Text),
    may("stream_options", Object),
    may("previous_response_id", Text),
    may("conversation", TextOrObject),
    may("prompt", Object),
    may("background", Flag),
    may("background_options", Object),
    may("access_programs", Object),
    may("image", Object),
    may("context_management", List),
    may("moderation", Object),
];

/// Reasoning efforts. A model may support fewer of them.
const EFFORTS: &[&str] = &["none", "minimal", "low", "medium", "high", "xhigh", "max"];

const REASONING: &[Field] = &[
    may("effort", OneOf(EFFORTS)),
    may("summary", OneOf(&["auto", "concise", "detailed"])),
    may("generate_summary", OneOf(&["auto", "concise", "detailed"])),
    may("context", Text),
    may("mode", Text),
];

const TEXT: &[Field] = &[may("format", Object), may("verbosity", OneOf(&["low", "medium", "high"]))];

const SCHEMA_FORMAT: &[Field] = &[
    must("type", Text),
    must("name", Text),
    must("schema", Object),
    may("description", Text),
    may("strict", Flag),
];

const FUNCTION: &[Field] = &[
    must("type", Text),
    must("name", Text),
    may("description", Text),
    may("parameters", Object),
    may("strict", Flag),
    may("defer_loading", Flag),
    may("allowed_callers", List),
    may("output_schema", Object),
];

const CUSTOM: &[Field] = &[
    must("type", Text),
    must("name", Text),
    may("description", Text),
    may("format", Object),
    may("defer_loading", Flag),
    may("allowed_callers", List),
];

const STATUS: Field = may("status", OneOf(&["in_progress", "completed", "incomplete"]));

const MESSAGE: &[Field] = &[
    may("type", Text),
    must("role", OneOf(&["user", "assistant", "system", "developer"])),
    must("content", TextOrList),
    may("id", Text),
    STATUS,
    may("phase", OneOf(&["commentary", "final_answer"])),
];

const FUNCTION_CALL: &[Field] = &[
    must("type", Text),
    must("call_id", Text),
    must("name", Text),
    must("arguments", Text),
    may("id", Text),
    may("namespace", Text),
    may("caller", Object),
    STATUS,
];

const CUSTOM_CALL: &[Field] = &[
    must("type", Text),
    must("call_id", Text),
    must("name", Text),
    must("input", Text),
    may("id", Text),
    may("namespace", Text),
    may("caller", Object),
    STATUS,
];

const CALL_OUTPUT: &[Field] = &[
    must("type", Text),
    must("call_id", Text),
    must("output", TextOrList),
    may("id", Text),
    may("name", Text),
    may("namespace", Text),
    may("caller", Object),
    STATUS,
];

const REASONING_ITEM: &[Field] = &[
    must("type", Text),
    must("summary", List),
    may("id", Text),
    may("content", List),
    may("encrypted_content", Text),
    STATUS,
];

/// Parts of an assistant message.
const OUTPUT_PARTS: &[&str] = &["output_text", "refusal"];

/// Parts of any other message, and of the output of a call.
const INPUT_PARTS: &[&str] = &["input_text", "input_image", "input_file", "input_audio"];

/// Items of server tools and newer features, which are not checked further.
const OTHER_ITEMS: &[&str] = &[
    "additional_tools",
    "apply_patch_call",
    "apply_patch_call_output",
    "code_interpreter_call",
    "compaction",
    "compaction_trigger",
    "computer_call",
    "computer_call_output",
    "configuration_update",
    "file_search_call",
    "image_generation_call",
    "item_reference",
    "local_shell_call",
    "local_shell_call_output",
    "mcp_approval_request",
    "mcp_approval_response",
    "mcp_call",
    "mcp_list_tools",
    "program",
    "program_output",
    "shell_call",
    "shell_call_output",
    "tool_search_call",
    "tool_search_output",
    "web_search_call",
];

/// Maximum length of a call id, in characters.
const MAX_CALL_ID: usize = 64;

/// Maximum length of the name of a call, in characters. The limit for a tool is lower.
const MAX_CALL_NAME: usize = 128;

pub(super) fn check(body: &Map<String, Value>, allow_item_ids: bool, report: &mut Report) {
    report.fields("", body, REQUEST);
    for name in ["previous_response_id", "conversation", "background"] {
        let used = body.get(name).is_some_and(|value| !value.is_null() && *value != Value::Bool(false));
        if used {
            report.invalid(
                name,
                "expected none: this server stores no responses and reads the complete history",
            );
        }
    }
    if let Some(reasoning) = body.get("reasoning").and_then(Value::as_object) {
        report.fields("reasoning", reasoning, REASONING);
    }
    check_text(body, report);
    check_tools(body, report);
    let items = report.objects("", body, "input");
    if body.get("input").and_then(Value::as_array).is_some_and(Vec::is_empty) {
        report.invalid("input", "found an empty list, expected at least one item");
    }
    let stored = body.get("store").and_then(Value::as_bool).unwrap_or(true);
    for (path, item) in &items {
        check_item(path, item, report);
        if !stored {
            check_unstored(path, item, allow_item_ids, report);
        }
    }
    check_pairs(&items, report);
    check_reasoning_order(&items, report);
    if !stored {
        check_include(body, &items, report);
    }
}

fn check_text(body: &Map<String, Value>, report: &mut Report) {
    let Some(config) = body.get("text").and_then(Value::as_object) else {
        return;
    };
    report.fields("text", config, TEXT);
    let Some(format) = config.get("format").and_then(Value::as_object) else {
        return;
    };
    match text(format, "type") {
        "json_schema" => report.fields("text.format", format, SCHEMA_FORMAT),
        _ => report.fields(
            "text.format",
            format,
            &[must("type", OneOf(&["text", "json_object", "json_schema"]))],
        ),
    }
}

fn check_tools(body: &Map<String, Value>, report: &mut Report) {
    let declared = report.objects("", body, "tools");
    for (path, tool) in &declared {
        match text(tool, "type") {
            "function" => {
                report.fields(path, tool, FUNCTION);
                tools::name(path, tool, report);
                tools::schema(path, tool, "parameters", report);
                tools::choices(path, tool, "parameters", report);
                if tool.get("strict") == Some(&Value::Bool(true)) {
                    check_strict(path, tool, report);
                }
            }
            "custom" => {
                report.fields(path, tool, CUSTOM);
                tools::name(path, tool, report);
            }
            "" => report.invalid(join(path, "type"), "field is required"),
            // Server tools.
            _ => {}
        }
    }
    let names: Vec<&str> = declared.iter().map(|(_, tool)| text(tool, "name")).collect();
    tools::unique("tools", names.iter().copied(), report);
    check_tool_choice(body, &names, report);
}

/// Checks the rules of strict mode: every property of the root is required, and there are no others.
fn check_strict(path: &str, tool: &Map<String, Value>, report: &mut Report) {
    let path = join(path, "parameters");
    let Some(schema) = tool.get("parameters").and_then(Value::as_object) else {
        return;
    };
    if schema.get("additionalProperties") != Some(&Value::Bool(false)) {
        report.invalid(join(&path, "additionalProperties"), "expected false, since the tool is strict");
    }
    tools::required(&path, schema, report);
    let properties = schema.get("properties").and_then(Value::as_object);
    let required = schema.get("required").and_then(Value::as_array);
    for name in properties.into_iter().flat_map(Map::keys) {
        if !required.is_some_and(|required| required.iter().any(|required| required == name)) {
            report.invalid(
                join(&path, "required"),
                format!("expected {name:?} in it, since the tool is strict"),
            );
        }
    }
}

fn check_tool_choice(body: &Map<String, Value>, names: &[&str], report: &mut Report) {
    match body.get("tool_choice") {
        Some(Value::String(_)) => {
            if let Some(choice) = body.get("tool_choice") {
                report.kind("tool_choice", choice, OneOf(&["none", "auto", "required"]));
            }
        }
        Some(Value::Object(choice)) if matches!(text(choice, "type"), "function" | "custom") => {
            let name = text(choice, "name");
            if !names.contains(&name) {
                report.invalid(
                    "tool_choice.name",
                    format!("found {name:?}, expected the name of a tool in `tools`"),
                );
            }
        }
        _ => {}
    }
}

fn check_item(path: &str, item: &Map<String, Value>, report: &mut Report) {
    match item_type(item) {
        "message" => check_message(path, item, report),
        kind @ ("function_call" | "custom_tool_call") => {
            report.fields(path, item, if kind == "function_call" { FUNCTION_CALL } else { CUSTOM_CALL });
            tools::called(path, item, MAX_CALL_NAME, tools::letters, report);
            tools::call_id(path, item, "call_id", MAX_CALL_ID, report);
        }
        "function_call_output" | "custom_tool_call_output" => {
            report.fields(path, item, CALL_OUTPUT);
            tools::call_id(path, item, "call_id", MAX_CALL_ID, report);
            check_parts(path, item, "output", INPUT_PARTS, report);
        }
        "reasoning" => report.fields(path, item, REASONING_ITEM),
        other if OTHER_ITEMS.contains(&other) => {}
        other => {
            report.invalid(join(path, "type"), format!("found {other:?}, expected the type of an input item"))
        }
    }
}

/// Returns the type of an item, which a message may omit.
fn item_type(item: &Map<String, Value>) -> &str {
    item.get("type").map_or("message", |kind| kind.as_str().unwrap_or_default())
}

fn check_message(path: &str, item: &Map<String, Value>, report: &mut Report) {
    report.fields(path, item, MESSAGE);
    let of_assistant = text(item, "role") == "assistant";
    check_parts(path, item, "content", if of_assistant { OUTPUT_PARTS } else { INPUT_PARTS }, report);
}

/// Checks the parts of a message or of the output of a call.
fn check_parts(path: &str, item: &Map<String, Value>, name: &str, allowed: &[&str], report: &mut Report) {
    if item.get(name).and_then(Value::as_array).is_some_and(Vec::is_empty) {
        report.invalid(join(path, name), "found an empty list, expected at least one part");
    }
    for (path, part) in report.objects(path, item, name) {
        let kind = text(part, "type");
        let has = |name: &str| part.get(name).is_some_and(Value::is_string);
        if !allowed.contains(&kind) {
            let message = format!("found {kind:?}, expected one of {} here", allowed.join(", "));
            report.invalid(join(&path, "type"), message);
        }
        match kind {
            "input_text" | "output_text" if !has("text") => {
                report.invalid(join(&path, "text"), "expected a string");
            }
            "refusal" if !has("refusal") => report.invalid(join(&path, "refusal"), "expected a string"),
            "input_image" if !has("image_url") && !has("file_id") => {
                report.invalid(join(&path, "image_url"), "expected a URL string, or `file_id`");
            }
            "input_file" if !["file_id", "file_url", "file_data"].into_iter().any(has) => {
                report.invalid(&path, "expected one of file_id, file_url, file_data");
            }
            "input_file" if has("file_data") && !has("filename") => {
                report.invalid(join(&path, "filename"), "field is required beside file_data");
            }
            _ => {}
        }
        media::data_uri(&join(&path, "image_url"), text(part, "image_url"), media::IMAGES, report);
        media::data_uri(&join(&path, "file_data"), text(part, "file_data"), &[], report);
    }
}

/// Checks that nothing refers to stored content when `store` is false.
fn check_unstored(path: &str, item: &Map<String, Value>, allow_item_ids: bool, report: &mut Report) {
    let kind = item_type(item);
    if kind == "item_reference" {
        report.invalid(path, "found an item reference, expected the item itself: `store` is false");
        return;
    }
    if item.get("id").is_some_and(|id| !id.is_null()) && !allow_item_ids {
        report.invalid(join(path, "id"), "expected none: items are not persisted when `store` is false");
    }
    if kind == "reasoning" && !item.get("encrypted_content").is_some_and(Value::is_string) {
        let message = "expected a string: reasoning is not persisted when `store` is false";
        report.invalid(join(path, "encrypted_content"), message);
    }
}

/// Checks that each call has exactly one output after it, and each output its call before it.
fn check_pairs(items: &[(String, &Map<String, Value>)], report: &mut Report) {
    let mut open: HashMap<&str, (&str, &str, bool)> = HashMap::new();
    for (path, item) in items {
        let id = text(item, "call_id");
        match item_type(item) {
            kind @ ("function_call" | "custom_tool_call") => {
                let repeated = open.insert(id, (kind, path, false)).is_some();
                if repeated {
                    report.invalid(
                        join(path, "call_id"),
                        format!("found {id:?} twice, expected unique call ids"),
                    );
                }
            }
            kind @ ("function_call_output" | "custom_tool_call_output") => match open.get_mut(id) {
                None => report.invalid(
                    join(path, "call_id"),
                    format!("no tool call found for call id {id:?} before it"),
                ),
                Some((_, _, true)) => {
                    report.invalid(join(path, "call_id"), format!("found a second output for {id:?}"))
                }
                Some((call, _, answered)) => {
                    *answered = true;
                    if kind.strip_suffix("_output") != Some(*call) {
                        report.invalid(
                            join(path, "type"),
                            format!("found {kind}, expected the output of a {call}"),
                        );
                    }
                }
            },
            _ => {}
        }
    }
    let mut unanswered: Vec<(&str, &str)> = open
        .into_iter()
        .filter(|(_, (_, _, answered))| !answered)
        .map(|(id, (_, path, _))| (path, id))
        .collect();
    unanswered.sort_unstable();
    for (path, id) in unanswered {
        report.invalid(join(path, "call_id"), format!("no tool output found for call id {id:?}"));
    }
}

fn check_reasoning_order(items: &[(String, &Map<String, Value>)], report: &mut Report) {
    for (index, (path, item)) in items.iter().enumerate() {
        if item_type(item) != "reasoning" {
            continue;
        }
        let follows = items.get(index + 1).is_some_and(|(_, next)| match item_type(next) {
            "message" => text(next, "role") == "assistant",
            kind => !kind.ends_with("_output"),
        });
        if !follows {
            report
                .invalid(path, "found a reasoning item without its required following item of the same turn");
        }
    }
}

/// Checks that encrypted reasoning is requested, the only form that works without storage.
fn check_include(body: &Map<String, Value>, items: &[(String, &Map<String, Value>)], report: &mut Report) {
    let reasons = body.get("reasoning").is_some_and(|reasoning| !reasoning.is_null())
        || items.iter().any(|(_, item)| item_type(item) == "reasoning");
    let included = body.get("include").and_then(Value::as_array);
    let is_included =
        included.is_some_and(|list| list.iter().any(|word| word == "reasoning.encrypted_content"));
    if reasons && !is_included {
        report.invalid("include", "expected \"reasoning.encrypted_content\" in it, since `store` is false");
    }
}
