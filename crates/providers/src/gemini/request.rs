//! Encoding of requests.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use pintle_llm::{Error, Request, ResponseFormat, ToolChoice, ToolDefinition, ToolItem};
use serde_json::{Map, Value, json};

use super::conversation::Conversation;
use super::{NAME, reasoning};
use crate::body::{Fields, fragment, joined, merge_options};
use crate::dialect::HttpRequest;
use crate::options::{list_option, options_for};
use crate::secret::Secret;
use crate::tool_names::check_tools;

/// Options that this adapter applies itself.
const HANDLED: [&str; 1] = ["tools"];

/// Encodes a request.
pub(super) fn encode(request: &Request, stream: bool, api_key: &Secret) -> Result<HttpRequest, Error> {
    let none = Map::new();
    check_tools(&request.tools, NAME)?;
    let options = options_for(request, NAME)?.unwrap_or(&none);
    let conversation = Conversation::new(request)?;

    let mut fields = Fields::default();
    let configuration = generation_config(request)?;
    if !configuration.is_empty() {
        fields.insert("generationConfig".into(), configuration.into());
    }
    if !options.contains_key("cachedContent") {
        system(&mut fields, &conversation);
        tools(&mut fields, request, options)?;
    }
    merge_options(&mut fields, NAME, options, &HANDLED, "contents")?;

    let mut body = fields.into_body("contents");
    conversation.write(&mut body)?;
    body.write(b"]}");
    let headers = vec![("x-goog-api-key", api_key.expose().to_owned())];
    Ok(HttpRequest { path: path(&request.model, stream), headers, body })
}

fn path(model: &str, stream: bool) -> String {
    // A name with a slash is a full resource name, such as `tunedModels/mine`.
    let collection = if model.contains('/') { "" } else { "models/" };
    let method = if stream { "streamGenerateContent?alt=sse" } else { "generateContent" };
    format!("/v1beta/{collection}{}:{method}", escaped(model))
}

/// Percent-encodes characters that would end the path.
fn escaped(name: &str) -> String {
    let mut path = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                path.push(char::from(byte));
            }
            _ => path.push_str(&format!("%{byte:02X}")),
        }
    }
    path
}

fn generation_config(request: &Request) -> Result<Map<String, Value>, Error> {
    let mut config = Map::new();
    if let Some(temperature) = request.temperature {
        config.insert("temperature".into(), temperature.into());
    }
    if let Some(top_p) = request.top_p {
        config.insert("topP".into(), top_p.into());
    }
    if let Some(max_tokens) = request.max_tokens {
        config.insert("maxOutputTokens".into(), max_tokens.into());
    }
    if !request.stop_sequences.is_empty() {
        config.insert("stopSequences".into(), request.stop_sequences.clone().into());
    }
    match &request.response_format {
        Some(ResponseFormat::Json) => {
            config.insert("responseMimeType".into(), "application/json".into());
        }
        Some(ResponseFormat::JsonSchema { json_schema, .. }) => {
            config.insert("responseMimeType".into(), "application/json".into());
            // `responseSchema` supports only a subset of OpenAPI schemas.
            config.insert("responseJsonSchema".into(), json_schema.clone());
        }
        None | Some(ResponseFormat::Text | _) => {}
    }
    if let Some(thinking) = reasoning::thinking_config(request)? {
        config.insert("thinkingConfig".into(), thinking);
    }
    Ok(config)
}

fn system(fields: &mut Fields, conversation: &Conversation<'_>) {
    let mut parts = conversation.system().peekable();
    if parts.peek().is_some() {
        fields.set_serialised("systemInstruction", joined(r#"{"parts":["#, parts, "]}"));
    }
}

fn tool(tool: &ToolDefinition) -> Value {
    // The API has choices, but no reference with other keywords beside it, such as the `type` of the root.
    let parameters = match tool.parameters.get("$ref") {
        Some(_) => tool.parameters_without_choices(),
        None => Cow::Borrowed(&tool.parameters),
    };
    json!({"name": tool.name, "description": tool.description, "parametersJsonSchema": parameters})
}

/// Returns all functions as one tool of the API; `None` without functions.
fn functions(tools: &[ToolItem]) -> Option<Bytes> {
    let encode = |item: &ToolItem| item.encoding(NAME, "", |definition| fragment(&tool(definition)));
    let functions: Vec<Arc<Bytes>> = tools.iter().map(encode).collect();
    let list = || joined(r#"{"functionDeclarations":["#, functions.iter().map(AsRef::as_ref), "]}");
    (!functions.is_empty()).then(list)
}

fn tools(fields: &mut Fields, request: &Request, options: &Map<String, Value>) -> Result<(), Error> {
    let more = list_option(Some(options), NAME, "tools")?;
    let tools: Vec<Bytes> = functions(&request.tools).into_iter().chain(more.iter().map(fragment)).collect();
    if tools.is_empty() {
        return Ok(());
    }
    fields.set_serialised("tools", joined("[", &tools, "]"));
    let calling = match &request.tool_choice {
        None => return Ok(()),
        Some(ToolChoice::Auto) => json!({"mode": "AUTO"}),
        Some(ToolChoice::None) => json!({"mode": "NONE"}),
        Some(ToolChoice::Required) => json!({"mode": "ANY"}),
        Some(ToolChoice::Named(name)) => json!({"mode": "ANY", "allowedFunctionNames": [name]}),
    };
    fields.insert("toolConfig".into(), json!({"functionCallingConfig": calling}));
    Ok(())
}
