//! Encoding of requests for Chat Completions.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use pintle_llm::{
    AudioData, ContentPart, DocumentData, Error, ErrorInfo, ImageData, MediaSource, Message, Origin, Request,
    ResponseFormat, Role, ToolCall, ToolChoice, ToolDefinition, ToolItem, ToolResult,
};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::delta::{FIELD, REASONING_CONTENT};
use crate::body::{Body, Fields, fragment, joined, merge_options};
use crate::media::unsupported;
use crate::openai_common::calls::{CallIndex, wire_id, wire_name};
use crate::openai_common::media::{file_data, image_url, media_placeholder};
use crate::openai_common::schema_name;
use crate::options::{list_option, options_for};
use crate::tool_names::check_tools;

/// Memo slot of history items.
const DIALECT: &str = "openai-chat";

/// Maximum length of the name and of the id of a call, in characters.
const MAX_NAME: usize = 64;
const MAX_ID: usize = 40;

/// Options that the adapter applies itself.
const HANDLED: [&str; 1] = ["tools"];

/// Memoised encoding of one history item.
struct EncodedItem {
    messages: Vec<Bytes>,
    /// User message with the content beside results: a tool message contains only text, and nothing may be between the
    /// tool messages of a turn.
    after: Option<Bytes>,
    /// Whether `messages` are results.
    is_results: bool,
}

pub(super) fn encode(request: &Request, provider: &str, stream: bool) -> Result<Body, Error> {
    check_tools(&request.tools, provider)?;
    let options = options_for(request, provider)?;
    let mut fields = parameters(request, stream, list_option(options, provider, "tools")?);
    if let Some(options) = options {
        merge_options(&mut fields, provider, options, &HANDLED, "messages")?;
    }
    let conversation = Conversation::new(request, provider)?;
    if conversation.is_empty() {
        return Err(unsupported(
            provider,
            "the conversation is empty: expected at least one message with content",
        ));
    }
    let mut body = fields.into_body("messages");
    conversation.write(&mut body);
    body.write(b"]}");
    conversation.memoise(request);
    Ok(body)
}

/// Returns the fields before the conversation. `more` are server tools, sent after the request's own.
fn parameters(request: &Request, stream: bool, more: &[Value]) -> Fields {
    let mut fields = Fields::default();
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
    if !request.tools.is_empty() || !more.is_empty() {
        if let Some(choice) = &request.tool_choice {
            set("tool_choice", tool_choice(choice));
        }
        fields.set_serialised("tools", tools(&request.tools, more));
    }
    fields
}

fn tools(own: &[ToolItem], more: &[Value]) -> Bytes {
    let own: Vec<Arc<Bytes>> =
        own.iter().map(|item| item.encoding(DIALECT, "", |definition| fragment(&tool(definition)))).collect();
    let more: Vec<Bytes> = more.iter().map(fragment).collect();
    joined("[", own.iter().map(AsRef::as_ref).chain(&more), "]")
}

fn response_format(format: &ResponseFormat) -> Option<Value> {
    match format {
        ResponseFormat::Json => Some(json!({"type": "json_object"})),
        ResponseFormat::JsonSchema { json_schema, strict } => Some(json!({
            "type": "json_schema",
            "json_schema": {"name": schema_name(json_schema), "schema": json_schema, "strict": strict},
        })),
        ResponseFormat::Text | _ => None,
    }
}

fn tool(tool: &ToolDefinition) -> Value {
    let parameters = tool.parameters_without_choices();
    json!({
        "type": "function",
        "function": {"name": tool.name, "description": tool.description, "parameters": parameters},
    })
}

fn tool_choice(choice: &ToolChoice) -> Value {
    match choice {
        ToolChoice::Auto | ToolChoice::None | ToolChoice::Required => choice.mode().into(),
        ToolChoice::Named(name) => json!({"type": "function", "function": {"name": name}}),
    }
}

/// An encoded conversation, or the start of one.
#[derive(Clone, Debug)]
struct Conversation {
    /// Provider and model of the request, which decide who may read a message's reasoning and which limits apply.
    origin: String,
    /// Elements of a JSON list.
    messages: Body,
    /// User messages that follow, after any further results.
    held: Vec<Bytes>,
}

impl Conversation {
    /// Encodes the conversation of a request. The part encoded for an earlier request is taken from the message list, where
    /// [`Conversation::memoise`] stored it.
    fn new(request: &Request, provider: &str) -> Result<Self, Error> {
        let messages = request.messages.as_slice();
        let origin = Origin::new(provider, &request.model);
        let own = origin.to_string();
        let known = request.messages.take_cached_prefix(DIALECT, &own);
        let (known, mut conversation) =
            known.unwrap_or_else(|| (0, Self { origin: own, messages: Body::default(), held: Vec::new() }));
        let (before, new) = messages.split_at_checked(known).unwrap_or((&[], messages));
        let mut calls = CallIndex::after(before);
        for item in new {
            calls.read(item, provider)?;
            let encoded = item.encoding(DIALECT, &conversation.origin, |message| {
                messages_of(message, &origin).map_err(|error| Box::new(error.info().clone()))
            });
            match encoded.as_ref() {
                Ok(encoded) => conversation.add(encoded),
                Err(info) => return Err(ErrorInfo::clone(info).into()),
            }
        }
        Ok(conversation)
    }

    fn add(&mut self, encoded: &EncodedItem) {
        let held = if encoded.is_results { Vec::new() } else { std::mem::take(&mut self.held) };
        held.iter().chain(&encoded.messages).for_each(|message| self.messages.shared_element(message));
        self.held.extend(encoded.after.clone());
    }

    fn is_empty(&self) -> bool {
        self.messages.is_empty() && self.held.is_empty()
    }

    fn write(&self, body: &mut Body) {
        body.append(&self.messages);
        for (index, held) in self.held.iter().enumerate() {
            if index > 0 || !self.messages.is_empty() {
                body.write(b",");
            }
            body.share(held);
        }
    }

    /// Memoises it with the messages of the request, for the next request.
    fn memoise(self, request: &Request) {
        let origin = self.origin.clone();
        request.messages.cache_prefix(DIALECT, &origin, request.messages.len(), self);
    }
}

fn messages_of(message: &Message, origin: &Origin) -> Result<EncodedItem, Error> {
    let provider = &origin.provider;
    let one = match message.role {
        Role::System | Role::Developer => {
            check_parts(message, provider, |part| part.as_text().is_some())?;
            Some(fragment(&named(json!({"role": "system", "content": message.text()}), message)))
        }
        Role::User | Role::Tool => return user_or_tool(message, provider),
        Role::Assistant => {
            check_parts(message, provider, |part| !matches!(part, ContentPart::ToolResult(_)))?;
            // A message without an origin was built by the caller, who vouches for its content.
            let own = message.origin.as_ref().is_none_or(|wrote| wrote == origin);
            assistant(message, own).as_ref().map(fragment)
        }
    };
    Ok(EncodedItem { messages: one.into_iter().collect(), after: None, is_results: false })
}

/// Refuses a part that a message of its role cannot contain, rather than dropping it.
fn check_parts(message: &Message, provider: &str, fits: fn(&ContentPart) -> bool) -> Result<(), Error> {
    match message.content.iter().find(|part| !fits(part)) {
        Some(part) => {
            let role = format!("{:?}", message.role).to_lowercase();
            Err(unsupported(
                provider,
                format!("a message of role {role} cannot contain a part of kind {}", part.kind()),
            ))
        }
        None => Ok(()),
    }
}

/// Encodes a user message, or results with the content beside them.
fn user_or_tool(message: &Message, provider: &str) -> Result<EncodedItem, Error> {
    check_parts(message, provider, |part| {
        !matches!(part, ContentPart::ToolCall(_) | ContentPart::Thinking(_))
    })?;
    let mut results: Vec<Bytes> = Vec::new();
    let mut parts = Vec::new();
    for result in message.results() {
        results.push(fragment(&tool_message(&result.tool_call_id, &result.text())));
        parts.extend(images_of(result, provider)?);
    }
    let plain = message.tool_call_id.as_ref().filter(|_| message.role == Role::Tool && results.is_empty());
    // A result written as plain text.
    results.extend(plain.map(|id| fragment(&tool_message(id, &message.text()))));
    for part in message.content.iter().filter(|part| plain.is_none() || part.as_text().is_none()) {
        parts.extend(user_part(part, provider)?);
    }
    let user = user_message(message, &parts).as_ref().map(fragment);
    let is_results = !results.is_empty();
    Ok(if is_results {
        EncodedItem { messages: results, after: user, is_results }
    } else {
        EncodedItem { messages: user.into_iter().collect(), after: None, is_results }
    })
}

/// Encodes a user message: a single text as a string, which every server accepts, anything else as a list. Returns `None`
/// without content.
fn user_message(message: &Message, parts: &[Value]) -> Option<Value> {
    if let [ContentPart::Text(only)] = message.content.as_slice()
        && message.role == Role::User
    {
        return Some(named(json!({"role": "user", "content": only.text}), message));
    }
    (!parts.is_empty()).then(|| named(json!({"role": "user", "content": parts}), message))
}

/// Adds the participant's name to a message. The name of a tool message is that of the tool, which is in its call.
fn named(mut body: Value, message: &Message) -> Value {
    if let (Some(fields), Some(name)) = (body.as_object_mut(), name_of(message)) {
        fields.insert("name".to_owned(), name.into());
    }
    body
}

fn name_of(message: &Message) -> Option<String> {
    let name = message.name.as_ref().filter(|name| message.role != Role::Tool && !name.is_empty());
    name.map(|name| wire_name(name, MAX_NAME))
}

/// Encodes a part of a user message; `None` for parts that are encoded elsewhere or dropped.
fn user_part(part: &ContentPart, provider: &str) -> Result<Option<Value>, Error> {
    Ok(match part {
        ContentPart::Text(data) => Some(json!({"type": "text", "text": data.text})),
        ContentPart::Image(image) => Some(image_part(image, provider)?),
        ContentPart::Audio(audio) => Some(audio_part(audio, provider)?),
        ContentPart::Document(document) => Some(document_part(document, provider)?),
        ContentPart::ToolCall(_)
        | ContentPart::ToolResult(_)
        | ContentPart::Thinking(_)
        | ContentPart::Opaque(_)
        | _ => None,
    })
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
        return Err(unsupported(provider, "audio by URL is not supported; pass the data or a local path"));
    };
    let media_type = audio.media_type.as_deref().unwrap_or("audio/wav");
    // The API names two formats; some servers support more.
    let format = match media_type.strip_prefix("audio/").unwrap_or(media_type) {
        "mpeg" => "mp3",
        "x-wav" | "wave" | "vnd.wave" => "wav",
        other => other,
    };
    Ok(json!({"type": "input_audio", "input_audio": {"data": bytes.to_base64(), "format": format}}))
}

fn document_part(document: &DocumentData, provider: &str) -> Result<Value, Error> {
    let (name, data) = file_data(document, provider)?;
    Ok(json!({"type": "file", "file": {"filename": name, "file_data": data}}))
}

/// An assistant message with borrowed call arguments. Its fields are in the order of a [`Value`]'s.
#[derive(Serialize)]
struct AssistantMessage<'a> {
    /// Fields that precede `tool_calls` alphabetically.
    #[serde(flatten)]
    fields: Map<String, Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<ToolCallEntry<'a>>,
}

#[derive(Serialize)]
struct ToolCallEntry<'a> {
    function: Function<'a>,
    id: String,
    #[serde(rename = "type")]
    kind: &'static str,
}

#[derive(Serialize)]
struct Function<'a> {
    arguments: Cow<'a, str>,
    name: String,
}

/// Encodes an assistant message; `None` if it has no content to send.
fn assistant(message: &Message, own: bool) -> Option<AssistantMessage<'_>> {
    let mut fields = Map::new();
    fields.insert("role".to_owned(), "assistant".into());
    let tool_calls: Vec<ToolCallEntry<'_>> = message.tool_calls().map(call).collect();
    let text = text_of(message);
    let refusal = refusal_of(message).filter(|_| own);
    if text.is_empty() && tool_calls.is_empty() && refusal.is_none() {
        return None;
    }
    fields.insert("content".to_owned(), if text.is_empty() { Value::Null } else { text.into() });
    fields.extend(refusal.map(|refusal| ("refusal".to_owned(), refusal.into())));
    if own {
        fields.extend(reasoning_of(message, !tool_calls.is_empty()));
    }
    let name = name_of(message).map(|name| ("name".to_owned(), name.into()));
    fields.extend(name);
    Some(AssistantMessage { fields, tool_calls })
}

fn refusal_of(message: &Message) -> Option<&str> {
    message.content.iter().find_map(|part| match part {
        ContentPart::Opaque(data) if data.kind == "refusal" => data.data.get("refusal")?.as_str(),
        ContentPart::Opaque(_)
        | ContentPart::Text(_)
        | ContentPart::Image(_)
        | ContentPart::Audio(_)
        | ContentPart::Document(_)
        | ContentPart::ToolCall(_)
        | ContentPart::ToolResult(_)
        | ContentPart::Thinking(_)
        | _ => None,
    })
}

/// Returns the fields with reasoning that the server expects: `reasoning_details`, and with calls the text in its original
/// field (DeepSeek and others reject results of calls whose reasoning is missing).
fn reasoning_of(message: &Message, called: bool) -> Map<String, Value> {
    let mut fields = Map::new();
    let thinking = || message.content.iter().filter_map(ContentPart::as_thinking);
    let raw = |name: &'static str| thinking().filter_map(move |data| data.raw.as_ref()?.get(name));
    let details: Vec<Value> =
        raw("reasoning_details").filter_map(Value::as_array).flatten().cloned().collect();
    if !details.is_empty() {
        fields.insert("reasoning_details".to_owned(), details.into());
    }
    if called && raw(FIELD).any(|field| field == REASONING_CONTENT) {
        let text: String = thinking().map(|data| data.text.as_str()).collect();
        fields.insert(REASONING_CONTENT.to_owned(), text.into());
    }
    fields
}

/// Returns the text, with placeholders for media of another provider's model, which the message cannot contain.
fn text_of(message: &Message) -> String {
    let texts = message.content.iter().filter_map(|part| match part {
        ContentPart::Text(data) => Some(data.text.clone()),
        ContentPart::Image(_) | ContentPart::Audio(_) | ContentPart::Document(_) => {
            Some(media_placeholder(part))
        }
        ContentPart::ToolCall(_)
        | ContentPart::ToolResult(_)
        | ContentPart::Thinking(_)
        | ContentPart::Opaque(_)
        | _ => None,
    });
    texts.collect()
}

/// Encodes a call. Arguments that are not an object become the argument `input`: free text of another provider's custom
/// tool, and truncated arguments. Servers parse arguments when they render the conversation.
fn call(call: &ToolCall) -> ToolCallEntry<'_> {
    let arguments = match call.arguments_object() {
        Some(_) => call.arguments_text(),
        None => json!({"input": call.arguments}).to_string().into(),
    };
    let (id, name) = (wire_id(&call.id, MAX_ID), wire_name(&call.name, MAX_NAME));
    ToolCallEntry { function: Function { arguments, name }, id, kind: "function" }
}

fn tool_message(id: &str, text: &str) -> Value {
    json!({"role": "tool", "tool_call_id": wire_id(id, MAX_ID), "content": text})
}

/// Returns the images of a result, preceded by a line that names its call.
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
