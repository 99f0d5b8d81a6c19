//! Sending of histories of one provider to all others.

mod conversation;
mod properties;
mod wire;

use std::collections::BTreeSet;

use pintle_llm::{
    ContentPart, Error, HistoryItem, ImageData, Message, OpaqueData, Origin, ReasoningEffort, Request, Role,
    ThinkingData, ToolCall, ToolDefinition, ToolResult,
};
use pintle_testkit::Dialect as Rules;
use serde_json::{Value, json};

use crate::anthropic::Messages;
use crate::compatible::Chat;
use crate::dialect::{Dialect, HttpRequest};
use crate::gemini::GenerateContent;
use crate::openai::Responses;
use crate::secret::Secret;

/// A provider and model, with the encoder of its adapter.
#[derive(Clone, Copy, Debug)]
struct Target {
    provider: &'static str,
    model: &'static str,
    /// Dialect of the independent checker.
    rules: Rules,
    encode: fn(&Request) -> Result<HttpRequest, Error>,
}

impl Target {
    fn send(&self, request: &Request) -> HttpRequest {
        (self.encode)(request).unwrap()
    }

    fn body(&self, request: &Request) -> Value {
        serde_json::from_slice(&self.send(request).body.to_vec()).unwrap()
    }

    fn origin(&self) -> Origin {
        Origin::new(self.provider, self.model)
    }
}

const OPENAI: Target = Target {
    provider: "openai",
    model: "gpt-5.2",
    rules: Rules::OpenAiResponses,
    encode: |request| Responses { api_key: Secret::new("k") }.encode(&*request.in_order()?, true),
};

const ANTHROPIC: Target = Target {
    provider: "anthropic",
    model: "claude-opus-4-6",
    rules: Rules::AnthropicMessages,
    encode: |request| {
        Messages { api_key: Secret::new("k"), host: String::new() }.encode(&*request.in_order()?, true)
    },
};

const GEMINI: Target = Target {
    provider: "gemini",
    model: "gemini-3-pro-preview",
    rules: Rules::Gemini,
    encode: |request| GenerateContent { api_key: Secret::new("k") }.encode(&*request.in_order()?, true),
};

const COMPATIBLE: Target = Target {
    provider: "openai-compatible",
    model: "llama",
    rules: Rules::ChatCompletions,
    encode: |request| {
        let dialect = Chat { provider: "openai-compatible".into(), api_key: None, host: String::new() };
        dialect.encode(&*request.in_order()?, true)
    },
};

const TARGETS: [Target; 4] = [OPENAI, ANTHROPIC, GEMINI, COMPATIBLE];

/// Returns two tool turns, the second one open, as written by a model of `origin`.
fn history(origin: &Origin) -> Vec<HistoryItem> {
    let turn = |n: usize| {
        let thinking = ThinkingData::new("Thinking.").with_signature(Some("SECRET-SIGNATURE".into()));
        let opaque = OpaqueData {
            kind: "server_block".into(),
            data: json!({"type": "server_block", "x": "SECRET-BLOCK"}),
        };
        let text = pintle_llm::TextData { text: "Looking.".into(), signature: Some("SECRET-TEXT".into()) };
        let content = vec![
            thinking.into(),
            ThinkingData::redacted("SECRET-REDACTED").into(),
            ContentPart::Text(text),
            ContentPart::Opaque(opaque),
            ToolCall::from_raw(format!("call_{n}_a"), "read_file", r#"{"path": "a"}"#)
                .with_signature(Some("SECRET-CALL".into()))
                .into(),
            ToolCall::custom(format!("call_{n}_b"), "apply_patch", "*** Begin Patch").into(),
            ToolCall::from_raw(format!("call_{n}_c"), "read_file", "").into(),
        ];
        Message::new(Role::Assistant, content).with_origin(origin.clone())
    };
    let results = |n: usize| {
        let result =
            |id: &str, error| ToolResult::new(format!("call_{n}_{id}"), format!("result {n} {id}"), error);
        let image = ImageData::data(b"png".to_vec(), "image/png");
        Message::tool_results(vec![
            result("a", false).with_image(image),
            result("b", true),
            result("c", false),
        ])
    };
    vec![
        Message::system("Be brief.").into(),
        Message::user("Fix it.").into(),
        turn(1).into(),
        results(1).into(),
        Message::user("Go on.").into(),
        turn(2).into(),
        results(2).into(),
    ]
}

fn tools() -> Vec<ToolDefinition> {
    let schema = json!({"type": "object", "properties": {}});
    ["read_file", "apply_patch"]
        .map(|name| ToolDefinition::new(name, "Does it.", schema.clone()).unwrap())
        .to_vec()
}

#[test]
fn choices_at_the_root_of_a_schema_are_not_sent() {
    let title = json!({"type": "string"});
    // Gemini accepts them.
    for target in [OPENAI, ANTHROPIC, COMPATIBLE] {
        for keyword in ["anyOf", "oneOf", "allOf"] {
            let schema =
                json!({"type": "object", "properties": {"title": title}, keyword: [{"required": ["title"]}]});
            let tool = ToolDefinition::new("update", "Updates.", schema.clone()).unwrap();
            assert_eq!(tool.parameters, schema, "arguments are checked against it");
            let request = Request::new(target.model, [Message::user("Hi")]).with_tools(vec![tool]);
            let sent = target.body(&request)["tools"].to_string();
            let provider = target.provider;
            assert!(
                sent.contains(r#""required":["title"]"#) && !sent.contains(keyword),
                "{provider}: {sent}"
            );
        }
    }
}

#[test]
fn histories_move_between_all_providers() {
    for from in &TARGETS {
        let history = history(&from.origin());
        for to in &TARGETS {
            let request = Request::new(to.model, history.clone())
                .with_tools(tools())
                .with_reasoning_effort(ReasoningEffort::High);
            let body = to.body(&request);
            let text = body.to_string();
            let route = format!("{} to {}: {body:#}", from.provider, to.provider);
            if from.provider != to.provider {
                assert!(!text.contains("SECRET"), "{route}");
            }
            for words in
                ["Be brief.", "Fix it.", "Looking.", "Go on.", "result 1 b", "result 2 c", "*** Begin Patch"]
            {
                assert!(text.contains(words), "{words:?} is missing; {route}");
            }
            check_pairs(&body, &route);
        }
    }
}

#[test]
fn other_models_of_one_provider_are_foreign() {
    for target in &TARGETS {
        let history = history(&Origin::new(target.provider, "another-model"));
        let request = Request::new(target.model, history).with_tools(tools());
        let text = target.body(&request).to_string();
        assert!(!text.contains("SECRET"), "{}: {text}", target.provider);
    }
}

/// Asserts that each call has its result, and that roles alternate where required.
fn check_pairs(body: &Value, route: &str) {
    let mut calls = Vec::new();
    let mut results = Vec::new();
    collect(body, &mut calls, &mut results);
    assert_eq!((calls.len(), results.len()), (6, 6), "{route}");
    assert_eq!(calls, results, "in order; {route}");
    let roles = |list: &str| -> Vec<String> {
        let items = body.get(list).and_then(Value::as_array).into_iter().flatten();
        items.filter_map(|item| item.get("role").and_then(Value::as_str)).map(str::to_owned).collect()
    };
    if body.get("system").is_some() {
        let roles = roles("messages");
        assert!(roles.windows(2).all(|pair| pair[0] != pair[1]), "roles alternate; {route}");
    }
    let known = ["user", "assistant", "system", "developer", "tool", "model"];
    let used: BTreeSet<String> =
        roles("messages").into_iter().chain(roles("contents")).chain(roles("input")).collect();
    assert!(used.iter().all(|role| known.contains(&role.as_str())), "{used:?}; {route}");
}

/// Collects the ids of calls and results, or their names if the dialect pairs by name, in the order of the body.
fn collect(value: &Value, calls: &mut Vec<String>, results: &mut Vec<String>) {
    let text =
        |value: &Value, key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    match value.get("type").and_then(Value::as_str) {
        Some("function_call" | "custom_tool_call") => calls.push(text(value, "call_id")),
        Some("function_call_output" | "custom_tool_call_output") => results.push(text(value, "call_id")),
        Some("tool_use") => calls.push(text(value, "id")),
        Some("tool_result") => results.push(text(value, "tool_use_id")),
        Some("function") if value.get("id").is_some() => calls.push(text(value, "id")),
        _ => {}
    }
    if text(value, "role") == "tool" {
        results.push(text(value, "tool_call_id"));
    }
    if let Some(call) = value.get("functionCall") {
        calls.push(text(call, "name"));
    }
    if let Some(result) = value.get("functionResponse") {
        results.push(text(result, "name"));
    }
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect(item, calls, results)),
        Value::Object(fields) => fields.values().for_each(|field| collect(field, calls, results)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
