//! The rules of Anthropic's Messages API.

mod conversation;

use serde_json::{Map, Value};

use super::report::Kind::{Any, Count, Flag, List, Number, Object, OneOf, Text, TextOrList};
use super::report::{Field, Report, join, may, must, nullable, text};
use super::{media, tools};

/// Maximum number of cache breakpoints of a request.
const MAX_BREAKPOINTS: usize = 4;

/// Maximum length of the name of a call, in characters.
const MAX_CALL_NAME: usize = 128;

/// Minimum thinking budget, in tokens.
const LEAST_BUDGET: u64 = 1024;

const REQUEST: &[Field] = &[
    must("model", Text),
    must("max_tokens", Count),
    must("messages", List),
    may("system", TextOrList),
    may("stream", Flag),
    may("tools", List),
    may("tool_choice", Object),
    may("thinking", Object),
    may("output_config", Object),
    may("output_format", Object),
    may("temperature", Number),
    may("top_p", Number),
    may("top_k", Count),
    may("stop_sequences", List),
    may("metadata", Object),
    may("service_tier", OneOf(&["auto", "standard_only"])),
    nullable("speed", OneOf(&["standard", "fast"])),
    CACHED,
    nullable("container", Any),
    nullable("context_management", Object),
    may("mcp_servers", List),
    nullable("inference_geo", Text),
    nullable("diagnostics", Object),
    nullable("compaction", Object),
    nullable("fallbacks", Any),
];

const MESSAGE: &[Field] = &[must("role", OneOf(&["user", "assistant"])), must("content", TextOrList)];

const TOOL: &[Field] = &[
    must("name", Text),
    must("input_schema", Object),
    may("description", Text),
    nullable("type", OneOf(&["custom"])),
    CACHED,
    may("strict", Flag),
    may("defer_loading", Flag),
    nullable("eager_input_streaming", Flag),
    may("allowed_callers", List),
    may("input_examples", List),
];

const TOOL_CHOICE: &[Field] = &[
    must("type", OneOf(&["auto", "any", "tool", "none"])),
    may("name", Text),
    may("disable_parallel_tool_use", Flag),
];

const THINKING_CONFIG: &[Field] = &[
    must("type", OneOf(&["enabled", "disabled", "adaptive", "between_tools"])),
    may("budget_tokens", Count),
    nullable("display", OneOf(&["summarized", "omitted", "updates"])),
    nullable("block_binding", Any),
];

const OUTPUT: &[Field] = &[
    nullable("effort", OneOf(&["low", "medium", "high", "xhigh", "max"])),
    nullable("format", Object),
    nullable("task_budget", Object),
];

const CACHE_CONTROL: &[Field] = &[must("type", OneOf(&["ephemeral"])), may("ttl", OneOf(&["5m", "1h"]))];

const CACHED: Field = nullable("cache_control", Object);
const TEXT_BLOCK: &[Field] = &[must("type", Text), must("text", Text), nullable("citations", List), CACHED];
const IMAGE: &[Field] =
    &[must("type", Text), must("source", Object), nullable("transformations", Object), CACHED];
const DOCUMENT: &[Field] = &[
    must("type", Text),
    must("source", Object),
    nullable("title", Text),
    nullable("context", Text),
    nullable("citations", Object),
    CACHED,
];
const THINKING: &[Field] = &[must("type", Text), must("thinking", Text), must("signature", Text)];
const REDACTED: &[Field] = &[must("type", Text), must("data", Text)];
const TOOL_USE: &[Field] = &[
    must("type", Text),
    must("id", Text),
    must("name", Text),
    must("input", Object),
    may("caller", Object),
    nullable("toolset_name", Text),
    CACHED,
];
const TOOL_RESULT: &[Field] = &[
    must("type", Text),
    must("tool_use_id", Text),
    may("content", TextOrList),
    may("is_error", Flag),
    nullable("toolset_name", Text),
    CACHED,
];

/// Blocks of assistant messages only that are not checked further, besides results of server tools.
const OTHER_ASSISTANT_BLOCKS: &[&str] =
    &["server_tool_use", "mcp_tool_use", "compaction", "container_upload", "fallback"];

/// Blocks of user messages only that are not checked further.
const OTHER_USER_BLOCKS: &[&str] = &["search_result", "container_upload"];

type Messages<'a> = [(String, &'a Map<String, Value>)];

pub(super) fn check(body: &Map<String, Value>, report: &mut Report) {
    report.fields("", body, REQUEST);
    if body.get("max_tokens").and_then(Value::as_u64) == Some(0) {
        report.invalid("max_tokens", "found 0, expected at least 1");
    }
    for (path, block) in report.objects("", body, "system") {
        check_text_block(&path, block, report);
    }
    check_tools(body, report);
    check_thinking(body, report);
    check_output(body, report);
    let messages = report.objects("", body, "messages");
    for (path, message) in &messages {
        report.fields(path, message, MESSAGE);
        check_content(path, message, report);
    }
    conversation::check(body, &messages, report);
    check_breakpoints(body, report);
}

fn check_tools(body: &Map<String, Value>, report: &mut Report) {
    let declared = report.objects("", body, "tools");
    for (path, tool) in &declared {
        // Any other type is a server tool.
        if matches!(text(tool, "type"), "" | "custom") {
            report.fields(path, tool, TOOL);
            tools::schema(path, tool, "input_schema", report);
            tools::choices(path, tool, "input_schema", report);
        }
        tools::name(path, tool, report);
    }
    let names: Vec<&str> = declared.iter().map(|(_, tool)| text(tool, "name")).collect();
    tools::unique("tools", names.iter().copied(), report);
    let Some(choice) = body.get("tool_choice").and_then(Value::as_object) else {
        return;
    };
    report.fields("tool_choice", choice, TOOL_CHOICE);
    if names.is_empty() {
        report.invalid("tool_choice", "found a choice without tools, expected `tools` beside it");
    }
    let name = text(choice, "name");
    if text(choice, "type") == "tool" && !names.contains(&name) {
        report.invalid("tool_choice.name", format!("found {name:?}, expected the name of a tool in `tools`"));
    }
}

fn check_thinking(body: &Map<String, Value>, report: &mut Report) {
    let Some(thinking) = body.get("thinking").and_then(Value::as_object) else {
        return;
    };
    report.fields("thinking", thinking, THINKING_CONFIG);
    if text(thinking, "type") != "enabled" {
        return;
    }
    let limit = body.get("max_tokens").and_then(Value::as_u64).unwrap_or(u64::MAX);
    match thinking.get("budget_tokens").and_then(Value::as_u64) {
        Some(budget) if budget < LEAST_BUDGET || budget >= limit => {
            let message = format!(
                "found {budget}, expected at least {LEAST_BUDGET} and less than max_tokens ({limit})"
            );
            report.invalid("thinking.budget_tokens", message);
        }
        Some(_) => {}
        None => report.invalid("thinking.budget_tokens", "field is required when thinking is enabled"),
    }
    if body.get("temperature").is_some_and(|value| value.as_f64() != Some(1.0)) {
        report.invalid("temperature", "expected 1 or nothing when thinking is enabled");
    }
    if body.contains_key("top_k") {
        report.invalid("top_k", "expected nothing when thinking is enabled");
    }
    let choice = body.get("tool_choice").and_then(Value::as_object).map_or("", |choice| text(choice, "type"));
    if matches!(choice, "any" | "tool") {
        report.invalid(
            "tool_choice.type",
            format!("found {choice}, expected auto or none when thinking is enabled"),
        );
    }
}

fn check_output(body: &Map<String, Value>, report: &mut Report) {
    let Some(output) = body.get("output_config").and_then(Value::as_object) else {
        return;
    };
    report.fields("output_config", output, OUTPUT);
    if let Some(format) = output.get("format").and_then(Value::as_object) {
        let known = [must("type", OneOf(&["json_schema"])), must("schema", Object)];
        report.fields("output_config.format", format, &known);
    }
}

fn check_content(path: &str, message: &Map<String, Value>, report: &mut Report) {
    let role = text(message, "role");
    match message.get("content") {
        Some(Value::String(content)) if content.trim().is_empty() => {
            report.invalid(join(path, "content"), "found a blank string, expected text");
        }
        Some(Value::Array(blocks)) if blocks.is_empty() => {
            report.invalid(join(path, "content"), "found an empty list, expected at least one block");
        }
        _ => {}
    }
    for (path, block) in report.objects(path, message, "content") {
        match (role, text(block, "type")) {
            (_, "text") => check_text_block(&path, block, report),
            ("user", "image") => check_image(&path, block, report),
            ("user", "tool_result") => check_tool_result(&path, block, report),
            ("assistant", "thinking") => {
                report.fields(&path, block, THINKING);
                if block.get("signature").is_some_and(|signature| signature == "") {
                    report.invalid(
                        join(&path, "signature"),
                        "found an empty string, expected the signature received",
                    );
                }
            }
            ("assistant", "redacted_thinking") => {
                report.fields(&path, block, REDACTED);
                if block.get("data").is_some_and(|data| data == "") {
                    report.invalid(join(&path, "data"), "found an empty string, expected the data received");
                }
            }
            ("assistant", "tool_use") => {
                report.fields(&path, block, TOOL_USE);
                tools::called(&path, block, MAX_CALL_NAME, tools::letters, report);
                check_id(&path, block, "id", report);
            }
            ("user", "document") => check_document(&path, block, report),
            ("user", kind) if OTHER_USER_BLOCKS.contains(&kind) => {}
            ("assistant", kind)
                if OTHER_ASSISTANT_BLOCKS.contains(&kind) || kind.ends_with("_tool_result") => {}
            (_, kind) => {
                report.invalid(
                    join(&path, "type"),
                    format!("found {kind:?}, which a {role} message may not hold"),
                );
            }
        }
    }
}

fn check_text_block(path: &str, block: &Map<String, Value>, report: &mut Report) {
    report.fields(path, block, TEXT_BLOCK);
    if text(block, "type") != "text" {
        report.invalid(join(path, "type"), format!("found {:?}, expected \"text\"", text(block, "type")));
    }
    if block.contains_key("text") && text(block, "text").trim().is_empty() {
        report.invalid(join(path, "text"), "found blank text, expected text blocks to be non-empty");
    }
}

fn check_image(path: &str, block: &Map<String, Value>, report: &mut Report) {
    report.fields(path, block, IMAGE);
    let Some(source) = block.get("source").and_then(Value::as_object) else {
        return;
    };
    let path = join(path, "source");
    match text(source, "type") {
        "base64" => {
            let media = OneOf(&["image/jpeg", "image/png", "image/gif", "image/webp"]);
            report.fields(
                &path,
                source,
                &[must("type", Text), must("media_type", media), must("data", Text)],
            );
            media::base64(&join(&path, "data"), text(source, "data"), report);
        }
        "url" => report.fields(&path, source, &[must("type", Text), must("url", Text)]),
        "file" => report.fields(&path, source, &[must("type", Text), must("file_id", Text)]),
        kind => report.invalid(join(&path, "type"), format!("found {kind:?}, expected base64, url or file")),
    }
}

fn check_document(path: &str, block: &Map<String, Value>, report: &mut Report) {
    report.fields(path, block, DOCUMENT);
    let Some(source) = block.get("source").and_then(Value::as_object) else {
        return;
    };
    let path = join(path, "source");
    let of_data = |media| [must("type", Text), must("media_type", media), must("data", Text)];
    match text(source, "type") {
        "base64" => {
            report.fields(&path, source, &of_data(OneOf(&["application/pdf"])));
            media::base64(&join(&path, "data"), text(source, "data"), report);
        }
        "text" => report.fields(&path, source, &of_data(OneOf(&["text/plain"]))),
        "url" => report.fields(&path, source, &[must("type", Text), must("url", Text)]),
        "file" => report.fields(&path, source, &[must("type", Text), must("file_id", Text)]),
        "content" => report.fields(&path, source, &[must("type", Text), must("content", TextOrList)]),
        kind => report.invalid(
            join(&path, "type"),
            format!("found {kind:?}, expected base64, text, url, file or content"),
        ),
    }
}

fn check_tool_result(path: &str, block: &Map<String, Value>, report: &mut Report) {
    report.fields(path, block, TOOL_RESULT);
    check_id(path, block, "tool_use_id", report);
    let empty = match block.get("content") {
        None => true,
        Some(Value::String(content)) => content.is_empty(),
        Some(Value::Array(blocks)) => blocks.is_empty(),
        Some(_) => false,
    };
    if empty && block.get("is_error") == Some(&Value::Bool(true)) {
        report.invalid(join(path, "content"), "found nothing, expected content when is_error is true");
    }
    for (path, part) in report.objects(path, block, "content") {
        match text(part, "type") {
            "text" => check_text_block(&path, part, report),
            "image" => check_image(&path, part, report),
            "document" => check_document(&path, part, report),
            "search_result" | "tool_reference" | "browser_state" => {}
            kind => report
                .invalid(join(&path, "type"), format!("found {kind:?}, which a tool result may not hold")),
        }
    }
}

/// Checks an id, because ids of other providers are not always legal.
fn check_id(path: &str, block: &Map<String, Value>, name: &str, report: &mut Report) {
    let id = text(block, name);
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if block.contains_key(name) && (id.is_empty() || !id.bytes().all(legal)) {
        report.invalid(
            join(path, name),
            format!("found {id:?}, expected one or more of a-z, A-Z, 0-9, _ and -"),
        );
    }
}

fn check_breakpoints(body: &Map<String, Value>, report: &mut Report) {
    let mut found = Vec::new();
    for (name, value) in body {
        collect_breakpoints(name, value, report, &mut found);
    }
    if let Some(control) = body.get("cache_control").filter(|control| !control.is_null()) {
        found.push(("cache_control".to_owned(), control));
    }
    for (path, control) in &found {
        if let Some(control) = report.object(path, control) {
            report.fields(path, control, CACHE_CONTROL);
        }
    }
    if found.len() > MAX_BREAKPOINTS {
        let message =
            format!("found {} blocks with cache_control, expected at most {MAX_BREAKPOINTS}", found.len());
        report.invalid("cache_control", message);
    }
}

/// Finds breakpoints of blocks and tools, at any depth of content, and not inside inputs or schemas.
fn collect_breakpoints<'a>(
    path: &str,
    value: &'a Value,
    report: &Report,
    found: &mut Vec<(String, &'a Value)>,
) {
    if let Value::Array(elements) = value {
        for (index, element) in elements.iter().enumerate() {
            let path = report.element_path(path, index);
            if let Some(control) = element.get("cache_control").filter(|control| !control.is_null()) {
                found.push((join(&path, "cache_control"), control));
            }
            if let Some(content) = element.get("content") {
                collect_breakpoints(&join(&path, "content"), content, report, found);
            }
        }
    }
}
