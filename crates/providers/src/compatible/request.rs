//! From a request to the body of Chat Completions.

use std::sync::Arc;

use pintle_llm::{
    AudioData, ContentPart, DocumentData, Error, ErrorInfo, ImageData, MediaSource, Message, Origin, Request,
    ResponseFormat, Role, ToolCall, ToolChoice, ToolDefinition, ToolResult,
};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::body::{fragment, merge_options, write_body};
use crate::media::refuse;
use crate::openai::{file_data, image_url, schema_name};

/// The memo slot of history items.
const DIALECT: &str = "openai-chat";

/// What one history item becomes, or the reason why it cannot.
type Encoded = Result<Messages, Box<ErrorInfo>>;

struct Messages {
    messages: Vec<Box<RawValue>>,
    /// Images of tool results, as a user message: a tool message takes text only, and nothing may stand between the
    /// tool messages of a turn.
    after: Option<Box<RawValue>>,
}

pub(super) fn encode(request: &Request, provider: &str, stream: bool) -> Result<Vec<u8>, Error> {
    let mut fields = parameters(request, stream);
    if let Some(options) = request.options_of(provider) {
        merge_options(&mut fields, provider, options, &[], "messages")?;
    }
    let encoded = encode_items(request, provider)?;
    let mut messages: Vec<&RawValue> = Vec::with_capacity(encoded.len());
    let mut held: Vec<&RawValue> = Vec::new();
    for (item, encoded) in request.messages.iter().zip(&encoded) {
        let Ok(encoded) = encoded.as_ref() else { continue };
        if item.role != Role::Tool {
            messages.append(&mut held);
        }
        messages.extend(encoded.messages.iter().map(AsRef::as_ref));
        held.extend(encoded.after.as_deref());
    }
    messages.append(&mut held);
    Ok(write_body(&fields, "messages", messages))
}

fn parameters(request: &Request, stream: bool) -> Map<String, Value> {
    let mut fields = Map::new();
    let mut set = |name: &str, value: Value| {
        fields.insert(name.to_owned(), value);
    };
    set("model", request.model.as_str().into());
    set("stream", stream.into());
    if stream {
        set("stream_options", json!({"include_usage": true}));
    }
    if let Some(temperature) = request.temperature {
        set("temperature", temperature.into());
    }
    if let Some(top_p) = request.top_p {
        set("top_p", top_p.into());
    }
    if let Some(max_tokens) = request.max_tokens {
        set("max_tokens", max_tokens.into());
    }
    if !request.stop_sequences.is_empty() {
        set("stop", json!(request.stop_sequences));
    }
    if let Some(effort) = &request.reasoning_effort {
        set("reasoning_effort", effort.as_str().into());
    }
    if !request.metadata.is_empty() {
        set("metadata", json!(request.metadata));
    }
    if let Some(format) = request.response_format.as_ref().and_then(response_format) {
        set("response_format", format);
    }
    if !request.tools.is_empty() {
        set("tools", request.tools.iter().map(tool).collect());
        if let Some(choice) = &request.tool_choice {
            set("tool_choice", tool_choice(choice));
        }
    }
    fields
}

fn response_format(format: &ResponseFormat) -> Option<Value> {
    match format {
        ResponseFormat::Text => None,
        ResponseFormat::Json => Some(json!({"type": "json_object"})),
        ResponseFormat::JsonSchema { json_schema, strict } => Some(json!({
            "type": "json_schema",
            "json_schema": {"name": schema_name(json_schema), "schema": json_schema, "strict": strict},
        })),
    }
}

fn tool(tool: &ToolDefinition) -> Value {
    json!({
        "type": "function",
        "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
    })
}

fn tool_choice(choice: &ToolChoice) -> Value {
    match choice {
        ToolChoice::Auto | ToolChoice::None | ToolChoice::Required => choice.mode().into(),
        ToolChoice::Named(name) => json!({"type": "function", "function": {"name": name}}),
    }
}

fn encode_items(request: &Request, provider: &str) -> Result<Vec<Arc<Encoded>>, Error> {
    let origin = Origin::new(provider, &request.model);
    // What an encoding depends on besides the message: who may read its reasoning, and whose limits refuse it.
    let own = origin.to_string();
    request
        .messages
        .iter()
        .map(|item| {
            let encoded = item.encoding(DIALECT, &own, |message| {
                messages_of(message, &origin).map_err(|error| Box::new(error.info().clone()))
            });
            match encoded.as_ref() {
                Ok(_) => Ok(encoded),
                Err(info) => Err(ErrorInfo::clone(info).into()),
            }
        })
        .collect()
}

fn messages_of(message: &Message, origin: &Origin) -> Result<Messages, Error> {
    let provider = &origin.provider;
    Ok(match message.role {
        Role::System | Role::Developer => Messages::of(&json!({"role": "system", "content": message.text()})),
        Role::User => {
            Messages::of(&json!({"role": "user", "content": user_content(&message.content, provider)?}))
        }
        Role::Assistant => {
            // A message without an origin was made by hand: its maker vouches for what it holds.
            let own = message.origin.as_ref().is_none_or(|wrote| wrote == origin);
            assistant(message, own).as_ref().map_or_else(Messages::none, Messages::of)
        }
        Role::Tool => tool_messages(message, provider)?,
    })
}

impl Messages {
    fn none() -> Self {
        Self { messages: Vec::new(), after: None }
    }

    fn of(message: &Value) -> Self {
        Self { messages: vec![fragment(message)], after: None }
    }
}

/// One text as a text, which every server takes; anything else as a list.
fn user_content(content: &[ContentPart], provider: &str) -> Result<Value, Error> {
    if let [ContentPart::Text(only)] = content {
        return Ok(only.text.as_str().into());
    }
    let mut parts = Vec::with_capacity(content.len());
    for part in content {
        parts.push(match part {
            ContentPart::Text(data) => json!({"type": "text", "text": data.text}),
            ContentPart::Image(image) => image_part(image, provider)?,
            ContentPart::Audio(audio) => audio_part(audio, provider)?,
            ContentPart::Document(document) => document_part(document)?,
            ContentPart::ToolCall(_)
            | ContentPart::ToolResult(_)
            | ContentPart::Thinking(_)
            | ContentPart::Opaque(_) => continue,
        });
    }
    Ok(parts.into())
}

fn image_part(image: &ImageData, provider: &str) -> Result<Value, Error> {
    let mut url = json!({"url": image_url(image, provider)?});
    if let (Value::Object(fields), Some(detail)) = (&mut url, &image.detail) {
        fields.insert("detail".to_owned(), detail.as_str().into());
    }
    Ok(json!({"type": "image_url", "image_url": url}))
}

fn audio_part(audio: &AudioData, provider: &str) -> Result<Value, Error> {
    let MediaSource::Data(bytes) = &audio.source else {
        return Err(refuse(provider, "audio by URL is not taken; give its bytes or a local path"));
    };
    let media_type = audio.media_type.as_deref().unwrap_or("audio/wav");
    let format = media_type.strip_prefix("audio/").unwrap_or(media_type);
    Ok(json!({"type": "input_audio", "input_audio": {"data": bytes.to_base64(), "format": format}}))
}

fn document_part(document: &DocumentData) -> Result<Value, Error> {
    let (name, data) = file_data(document)?;
    Ok(json!({"type": "file", "file": {"filename": name, "file_data": data}}))
}

/// An assistant message; none if nothing of it may be sent.
fn assistant(message: &Message, own: bool) -> Option<Value> {
    let mut fields = Map::new();
    fields.insert("role".to_owned(), "assistant".into());
    let calls: Vec<Value> = message.tool_calls().map(call).collect();
    let text = text_of(message);
    if text.is_empty() && calls.is_empty() {
        return None;
    }
    fields.insert("content".to_owned(), if text.is_empty() { Value::Null } else { text.into() });
    if !calls.is_empty() {
        fields.insert("tool_calls".to_owned(), calls.into());
    }
    let thinking = message.content.iter().filter_map(ContentPart::as_thinking).filter(|_| own);
    let details = thinking.filter_map(|thinking| thinking.raw.as_ref()?.get("reasoning_details")?.as_array());
    let details: Vec<Value> = details.flatten().cloned().collect();
    if !details.is_empty() {
        fields.insert("reasoning_details".to_owned(), details.into());
    }
    Some(Value::Object(fields))
}

/// The text, with a mark where another provider's model answered with an image, which may not stand here.
fn text_of(message: &Message) -> String {
    let texts = message.content.iter().filter_map(|part| match part {
        ContentPart::Text(data) => Some(data.text.clone()),
        ContentPart::Image(image) => Some(format!("[{}]", image.media_type.as_deref().unwrap_or("image"))),
        ContentPart::Audio(_)
        | ContentPart::Document(_)
        | ContentPart::ToolCall(_)
        | ContentPart::ToolResult(_)
        | ContentPart::Thinking(_)
        | ContentPart::Opaque(_) => None,
    });
    texts.collect()
}

/// A call. What is no object becomes the argument `input`: the free text of another provider's custom tool, and
/// arguments that were cut off, since servers parse them when they render the conversation.
fn call(call: &ToolCall) -> Value {
    let arguments = match call.arguments_object() {
        Some(_) => call.arguments_text(),
        None => json!({"input": call.arguments}).to_string(),
    };
    json!({"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}})
}

fn tool_messages(message: &Message, provider: &str) -> Result<Messages, Error> {
    let mut found = Messages::none();
    let mut images = Vec::new();
    for result in message.results() {
        found.messages.push(fragment(&tool_message(&result.tool_call_id, &result.text())));
        images.extend(images_of(result, provider)?);
    }
    if let (true, Some(id)) = (found.messages.is_empty(), &message.tool_call_id) {
        // A result written as plain text.
        found.messages.push(fragment(&tool_message(id, &message.text())));
    }
    if !images.is_empty() {
        found.after = Some(fragment(&json!({"role": "user", "content": images})));
    }
    Ok(found)
}

fn tool_message(id: &str, text: &str) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": text})
}

/// The images of a result, after a line that names the call they belong to.
fn images_of(result: &ToolResult, provider: &str) -> Result<Vec<Value>, Error> {
    if result.images.is_empty() {
        return Ok(Vec::new());
    }
    let line = format!("Images of the result of call {}:", result.tool_call_id);
    let mut parts = vec![json!({"type": "text", "text": line})];
    for image in &result.images {
        parts.push(image_part(image, provider)?);
    }
    Ok(parts)
}
