//! Encoding of requests for the Responses API.

use std::sync::Arc;

use bytes::Bytes;
use pintle_llm::{Error, Request, ResponseFormat, ToolChoice, ToolDefinition, ToolItem, get_model_info};
use serde_json::{Map, Value, json};

use super::PROVIDER;
use super::input::{DIALECT, Input};
use crate::body::{Body, Fields, fragment, joined, merge_options};
use crate::media::unsupported;
use crate::openai_common::schema_name;
use crate::options::{list_option, options_for};
use crate::tool_names::check_tools;

/// Options that the adapter applies itself.
const HANDLED: [&str; 2] = ["tools", "include"];

/// Options that refer to a part of the conversation stored at the provider.
const STORED_CONTENT: [&str; 3] = ["previous_response_id", "conversation", "prompt"];

pub(super) fn encode(request: &Request, stream: bool) -> Result<Body, Error> {
    check_tools(&request.tools, PROVIDER)?;
    let options = options_for(request, PROVIDER)?;
    let self_contained =
        !options.is_some_and(|options| STORED_CONTENT.iter().any(|name| options.contains_key(*name)));
    let input = Input::new(request, self_contained)?;
    let mut fields = parameters(request, options, &input, stream)?;
    if let Some(options) = options {
        merge_options(&mut fields, PROVIDER, options, &HANDLED, "input")?;
    }
    if self_contained && input.items.is_empty() {
        let message = "the conversation is empty: expected at least one message with content";
        return Err(unsupported(PROVIDER, message));
    }
    let mut body = fields.into_body("input");
    body.append(&input.items);
    body.write(b"]}");
    input.memoise(request, self_contained);
    Ok(body)
}

fn parameters(
    request: &Request,
    options: Option<&Map<String, Value>>,
    input: &Input,
    stream: bool,
) -> Result<Fields, Error> {
    let mut fields = Fields::default();
    let mut set = |name: &str, value: Value| {
        fields.insert(name.to_owned(), value);
    };
    set("model", request.model.as_str().into());
    set("store", false.into());
    set("stream", stream.into());
    let include = include(request, options)?;
    if !include.is_empty() {
        set("include", include.into());
    }
    if let Some(effort) = request.reasoning_effort.as_ref().filter(|_| is_reasoning_model(request)) {
        set("reasoning", json!({"effort": effort.as_str(), "summary": "auto"}));
    }
    if let Some(temperature) = request.temperature {
        set("temperature", temperature.into());
    }
    if let Some(top_p) = request.top_p {
        set("top_p", top_p.into());
    }
    if let Some(max_tokens) = request.max_tokens {
        set("max_output_tokens", max_tokens.into());
    }
    if !request.metadata.is_empty() {
        set("metadata", json!(request.metadata));
    }
    if let Some(format) = request.response_format.as_ref().and_then(text_format) {
        set("text", json!({"format": format}));
    }
    let more = list_option(options, PROVIDER, "tools")?;
    let has_tools = !request.tools.is_empty() || !more.is_empty();
    if has_tools {
        set("parallel_tool_calls", true.into());
        if let Some(choice) = &request.tool_choice {
            set("tool_choice", tool_choice(choice, &request.tools));
        }
    }
    if let Some(text) = instructions(&input.instructions) {
        fields.set_serialised("instructions", text);
    }
    if has_tools {
        fields.set_serialised("tools", tools(&request.tools, more));
    }
    Ok(fields)
}

/// Joins the request's own tools and `more` provider tools.
fn tools(own: &[ToolItem], more: &[Value]) -> Bytes {
    let own: Vec<Arc<Bytes>> =
        own.iter().map(|item| item.encoding(DIALECT, "", |definition| fragment(&tool(definition)))).collect();
    let more: Vec<Bytes> = more.iter().map(fragment).collect();
    joined("[", own.iter().map(AsRef::as_ref).chain(&more), "]")
}

/// Joins texts with blank lines.
fn instructions(texts: &[Arc<Bytes>]) -> Option<Bytes> {
    let (first, rest) = texts.split_first()?;
    if rest.is_empty() {
        return Some(Bytes::clone(first));
    }
    let unquoted = |text: &Bytes| text.slice(1..text.len().saturating_sub(1).max(1));
    let mut all = b"\"".to_vec();
    all.extend_from_slice(&unquoted(first));
    for text in rest {
        // Two line feeds, as escaped in JSON.
        all.extend_from_slice(br"\n\n");
        all.extend_from_slice(&unquoted(text));
    }
    all.push(b'"');
    Some(all.into())
}

/// Returns whether the model reasons. Other models reject an effort and `include` of encrypted reasoning. A model that is
/// not in the catalog counts as new, and new models reason.
fn is_reasoning_model(request: &Request) -> bool {
    let model = request.model.as_str();
    let old = || ["gpt-3", "gpt-4", "chatgpt-"].iter().any(|family| model.starts_with(family));
    match get_model_info(model) {
        Some(info) => info.supports_reasoning,
        None => request.reasoning_effort.is_some() || !old(),
    }
}

/// Returns the additional data to include in the response: reasoning for later requests, and the entries of the options.
fn include(request: &Request, options: Option<&Map<String, Value>>) -> Result<Vec<Value>, Error> {
    let reasoning = is_reasoning_model(request).then(|| Value::from("reasoning.encrypted_content"));
    let mut include: Vec<Value> = reasoning.into_iter().collect();
    for wanted in list_option(options, PROVIDER, "include")? {
        if !include.contains(wanted) {
            include.push(wanted.clone());
        }
    }
    Ok(include)
}

fn text_format(format: &ResponseFormat) -> Option<Value> {
    match format {
        ResponseFormat::Json => Some(json!({"type": "json_object"})),
        ResponseFormat::JsonSchema { json_schema, strict } => Some(json!({
            "type": "json_schema",
            "name": schema_name(json_schema),
            "schema": json_schema,
            "strict": strict,
        })),
        ResponseFormat::Text | _ => None,
    }
}

fn tool(tool: &ToolDefinition) -> Value {
    match &tool.grammar {
        Some(grammar) => json!({
            "type": "custom",
            "name": tool.name,
            "description": tool.description,
            "format": {"type": "grammar", "syntax": grammar.syntax, "definition": grammar.definition},
        }),
        None => json!({
            "type": "function",
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.parameters_without_choices(),
            "strict": false,
        }),
    }
}

fn tool_choice(choice: &ToolChoice, tools: &[ToolItem]) -> Value {
    match choice {
        ToolChoice::Auto | ToolChoice::None | ToolChoice::Required => choice.mode().into(),
        ToolChoice::Named(name) => {
            let custom = tools.iter().any(|tool| tool.name == *name && tool.grammar.is_some());
            json!({"type": if custom { "custom" } else { "function" }, "name": name})
        }
    }
}
