//! From a request to the body of the Responses API.

use std::collections::HashSet;
use std::sync::Arc;

use pintle_llm::{
    ContentPart, DocumentData, Error, ErrorInfo, ErrorKind, HistoryItem, ImageData, MediaSource, Message,
    Origin, Request, ResponseFormat, Role, ThinkingData, ToolCall, ToolCallKind, ToolChoice, ToolDefinition,
    ToolResult, get_model_info,
};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::PROVIDER;
use crate::body::{fragment, merge_options, write_body};
use crate::media::{ImageForm, image_form, refuse};

/// The memo slot of history items.
const DIALECT: &str = "openai-responses";

/// Limits of the provider for one image.
pub(crate) const IMAGE_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
pub(crate) const MAX_IMAGE: usize = 20 * 1024 * 1024;

/// What one history item becomes: input items, or the reason why it cannot.
type Encoded = Result<Vec<Box<RawValue>>, Box<ErrorInfo>>;

pub(super) fn encode(request: &Request, stream: bool) -> Result<Vec<u8>, Error> {
    let mut fields = parameters(request, stream)?;
    if let Some(options) = request.options_of(PROVIDER) {
        merge_options(&mut fields, PROVIDER, options, &["tools"], "input")?;
    }
    let input = input(request)?;
    let items = input.iter().filter_map(|encoded| encoded.as_ref().as_ref().ok()).flatten();
    Ok(write_body(&fields, "input", items.map(AsRef::as_ref)))
}

fn parameters(request: &Request, stream: bool) -> Result<Map<String, Value>, Error> {
    let mut fields = Map::new();
    let mut set = |name: &str, value: Value| {
        fields.insert(name.to_owned(), value);
    };
    set("model", request.model.as_str().into());
    set("store", false.into());
    set("stream", stream.into());
    if let Some(text) = instructions(&request.messages) {
        set("instructions", text.into());
    }
    if reasons(request) {
        set("include", json!(["reasoning.encrypted_content"]));
        if let Some(effort) = &request.reasoning_effort {
            set("reasoning", json!({"effort": effort.as_str(), "summary": "auto"}));
        }
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
    let tools = tools(request)?;
    if !tools.is_empty() {
        set("tools", tools.into());
        set("parallel_tool_calls", true.into());
        if let Some(choice) = &request.tool_choice {
            set("tool_choice", tool_choice(choice, &request.tools));
        }
    }
    Ok(fields)
}

/// All system messages as one text.
fn instructions(messages: &[HistoryItem]) -> Option<String> {
    let texts: Vec<String> =
        messages.iter().filter(|item| item.role == Role::System).map(|item| item.text()).collect();
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}

/// Whether the model reasons: others refuse an effort, and to be asked for encrypted reasoning. A model that the
/// catalog does not know is taken for a new one, which reasons.
fn reasons(request: &Request) -> bool {
    let model = request.model.as_str();
    let old = || ["gpt-3", "gpt-4", "chatgpt-"].iter().any(|family| model.starts_with(family));
    match get_model_info(model) {
        Some(info) => info.supports_reasoning,
        None => request.reasoning_effort.is_some() || !old(),
    }
}

fn text_format(format: &ResponseFormat) -> Option<Value> {
    match format {
        ResponseFormat::Text => None,
        ResponseFormat::Json => Some(json!({"type": "json_object"})),
        ResponseFormat::JsonSchema { json_schema, strict } => Some(json!({
            "type": "json_schema",
            "name": schema_name(json_schema),
            "schema": json_schema,
            "strict": strict,
        })),
    }
}

/// The schema's title as a name that the provider accepts, else `response`.
pub(crate) fn schema_name(schema: &Value) -> String {
    let title = schema.get("title").and_then(Value::as_str).unwrap_or_default();
    let name: String =
        title.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-')).take(64).collect();
    if name.is_empty() { "response".to_owned() } else { name }
}

/// The request's tools, then those of the provider's options.
fn tools(request: &Request) -> Result<Vec<Value>, Error> {
    let mut tools: Vec<Value> = request.tools.iter().map(tool).collect();
    match request.options_of(PROVIDER).and_then(|options| options.get("tools")) {
        None => {}
        Some(Value::Array(built_in)) => tools.extend(built_in.iter().cloned()),
        Some(found) => {
            let message = format!("provider_options.{PROVIDER}.tools must be a list; found {found}");
            return Err(Error::new(ErrorKind::Configuration, message).with_provider(PROVIDER));
        }
    }
    Ok(tools)
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
            "parameters": tool.parameters,
            "strict": false,
        }),
    }
}

fn tool_choice(choice: &ToolChoice, tools: &[ToolDefinition]) -> Value {
    match choice {
        ToolChoice::Auto | ToolChoice::None | ToolChoice::Required => choice.mode().into(),
        ToolChoice::Named(name) => {
            let custom = tools.iter().any(|tool| tool.name == *name && tool.grammar.is_some());
            json!({"type": if custom { "custom" } else { "function" }, "name": name})
        }
    }
}

/// The conversation without its system messages, each item encoded once.
fn input(request: &Request) -> Result<Vec<Arc<Encoded>>, Error> {
    let origin = Origin::new(PROVIDER, &request.model);
    let custom: HashSet<&str> = request
        .messages
        .iter()
        .flat_map(|item| item.tool_calls())
        .filter(|call| call.kind == ToolCallKind::Custom)
        .map(|call| call.id.as_str())
        .collect();
    let mut input = Vec::with_capacity(request.messages.len());
    for item in request.messages.iter().filter(|item| item.role != Role::System) {
        let answers_custom: Vec<&str> = item
            .results()
            .map(|result| result.tool_call_id.as_str())
            .filter(|id| custom.contains(id))
            .collect();
        // What an encoding depends on besides the message: who may read its reasoning, and what its results answer.
        let target = match item.role {
            Role::Assistant => origin.model.clone(),
            Role::System | Role::User | Role::Tool | Role::Developer => answers_custom.join(" "),
        };
        let encoded = item.encoding(DIALECT, &target, |message| {
            items_of(message, &origin, &answers_custom).map_err(|error| Box::new(error.info().clone()))
        });
        if let Err(info) = encoded.as_ref() {
            return Err(ErrorInfo::clone(info).into());
        }
        input.push(encoded);
    }
    Ok(input)
}

/// The items of one message. Calls, results and reasoning stand beside messages, so that content between them
/// becomes a message of its own.
fn items_of(
    message: &Message,
    origin: &Origin,
    answers_custom: &[&str],
) -> Result<Vec<Box<RawValue>>, Error> {
    // A message without an origin was made by hand: its maker vouches for what it holds.
    let own = message.origin.as_ref().is_none_or(|wrote| wrote == origin);
    let mut items = Items { role: message.role, content: Vec::new(), done: Vec::new(), unfollowed: 0 };
    for part in &message.content {
        match part {
            ContentPart::Text(data) if data.text.is_empty() => {}
            ContentPart::Text(data) => items.text(&data.text),
            ContentPart::Image(image) if message.role == Role::Assistant => {
                // Only other providers' models answer with images, and none may stand here.
                let kind = image.media_type.as_deref().unwrap_or("image");
                items.text(&format!("[{kind}]"));
            }
            ContentPart::Image(image) => items.content.push(input_image(image)?),
            ContentPart::Document(document) => items.content.push(input_file(document)?),
            ContentPart::Audio(_) => return Err(refuse(PROVIDER, "the Responses API takes no audio")),
            ContentPart::ToolCall(call) => items.item(&call_item(call)),
            ContentPart::ToolResult(result) => {
                items.item(&output_item(result, answers_custom.contains(&result.tool_call_id.as_str()))?);
            }
            ContentPart::Thinking(thinking) if own => {
                if let Some(item) = reasoning_item(thinking) {
                    items.reasoning(&item);
                }
            }
            ContentPart::Opaque(data) if own && data.kind == "refusal" => {
                items.content.push(data.data.clone())
            }
            ContentPart::Opaque(data) if own => items.item(&without_id(&data.data)),
            // Valid where they came from only.
            ContentPart::Thinking(_) | ContentPart::Opaque(_) => {}
        }
    }
    if message.role == Role::Tool
        && items.done.is_empty()
        && let Some(id) = &message.tool_call_id
    {
        // A result written as plain text.
        let output = json!({"type": "function_call_output", "call_id": id, "output": message.text()});
        return Ok(vec![fragment(&output)]);
    }
    Ok(items.finish())
}

struct Items {
    role: Role,
    /// The content of the message that forms.
    content: Vec<Value>,
    done: Vec<Box<RawValue>>,
    /// How many reasoning items stand last.
    unfollowed: usize,
}

impl Items {
    fn text(&mut self, text: &str) {
        let kind = if self.role == Role::Assistant { "output_text" } else { "input_text" };
        self.content.push(json!({"type": kind, "text": text}));
    }

    fn item(&mut self, item: &Value) {
        self.flush();
        self.done.push(fragment(item));
        self.unfollowed = 0;
    }

    fn reasoning(&mut self, item: &Value) {
        self.flush();
        self.done.push(fragment(item));
        self.unfollowed += 1;
    }

    fn flush(&mut self) {
        if self.content.is_empty() {
            return;
        }
        let role = match self.role {
            Role::Assistant => "assistant",
            Role::Developer | Role::System => "developer",
            Role::User | Role::Tool => "user",
        };
        let content = std::mem::take(&mut self.content);
        self.done.push(fragment(&json!({"type": "message", "role": role, "content": content})));
        self.unfollowed = 0;
    }

    /// The items, without reasoning that led to nothing, as in an answer that was cut off: the provider refuses a
    /// reasoning item that no other follows.
    fn finish(mut self) -> Vec<Box<RawValue>> {
        self.flush();
        self.done.truncate(self.done.len().saturating_sub(self.unfollowed));
        self.done
    }
}

fn call_item(call: &ToolCall) -> Value {
    match call.kind {
        ToolCallKind::Function => json!({
            "type": "function_call",
            "call_id": call.id,
            "name": call.name,
            "arguments": call.arguments_text(),
        }),
        ToolCallKind::Custom => json!({
            "type": "custom_tool_call",
            "call_id": call.id,
            "name": call.name,
            "input": call.arguments.as_str().map_or_else(|| call.arguments_text(), str::to_owned),
        }),
    }
}

fn output_item(result: &ToolResult, custom: bool) -> Result<Value, Error> {
    let output = if result.images.is_empty() {
        Value::String(result.text())
    } else {
        let mut content = vec![json!({"type": "input_text", "text": result.text()})];
        for image in &result.images {
            content.push(input_image(image)?);
        }
        Value::Array(content)
    };
    let kind = if custom { "custom_tool_call_output" } else { "function_call_output" };
    Ok(json!({"type": kind, "call_id": result.tool_call_id, "output": output}))
}

/// Reasoning as it came, without the id that nothing is stored under. Without encrypted content there is nothing
/// that the provider could use.
fn reasoning_item(thinking: &ThinkingData) -> Option<Value> {
    let encrypted = thinking.signature.as_ref()?;
    let kept = thinking.raw.as_ref().and_then(|raw| raw.get("summary")).cloned();
    let summary = kept.unwrap_or_else(|| {
        if thinking.text.is_empty() {
            json!([])
        } else {
            json!([{"type": "summary_text", "text": thinking.text}])
        }
    });
    Some(json!({"type": "reasoning", "summary": summary, "encrypted_content": encrypted}))
}

/// A provider's own item without its id, since nothing is stored under it; items of remote MCP servers keep theirs,
/// because other items name it.
fn without_id(item: &Value) -> Value {
    let mut item = item.clone();
    let named = item.get("type").and_then(Value::as_str).is_some_and(|kind| kind.starts_with("mcp_"));
    if let (Value::Object(fields), false) = (&mut item, named) {
        fields.remove("id");
    }
    item
}

fn input_image(image: &ImageData) -> Result<Value, Error> {
    let url = image_url(image, PROVIDER)?;
    let mut part = json!({"type": "input_image", "image_url": url});
    if let (Value::Object(fields), Some(detail)) = (&mut part, &image.detail) {
        fields.insert("detail".to_owned(), detail.as_str().into());
    }
    Ok(part)
}

/// The image's URL, or its bytes as a data URI.
pub(crate) fn image_url(image: &ImageData, provider: &str) -> Result<String, Error> {
    Ok(match image_form(image, provider, &IMAGE_TYPES, MAX_IMAGE)? {
        ImageForm::Url(url) => url.to_owned(),
        ImageForm::Base64 { media_type, data } => format!("data:{media_type};base64,{data}"),
    })
}

fn input_file(document: &DocumentData) -> Result<Value, Error> {
    match &document.source {
        MediaSource::Url(url) => Ok(json!({"type": "input_file", "file_url": url})),
        MediaSource::Data(_) => {
            let (name, data) = file_data(document)?;
            Ok(json!({"type": "input_file", "filename": name, "file_data": data}))
        }
    }
}

/// A document's name, which the provider asks for, and its bytes as a data URI.
pub(crate) fn file_data(document: &DocumentData) -> Result<(String, String), Error> {
    let MediaSource::Data(bytes) = &document.source else {
        return Err(refuse(PROVIDER, "a document by URL is not taken here; give its bytes or a local path"));
    };
    let media_type = document.media_type.as_deref().unwrap_or("application/pdf");
    let name = document.file_name.clone().unwrap_or_else(|| "document".to_owned());
    Ok((name, format!("data:{media_type};base64,{}", bytes.to_base64())))
}
