//! Encoding of requests for Chat Completions.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use pintle_llm::{
    AudioData, ContentPart, DocumentData, Error, ErrorInfo, ImageData, MediaSource, Message, Origin,
    OutputLimit, Request, ResponseFormat, Role, ServerQuirks, ToolCall, ToolChoice, ToolDefinition, ToolItem,
    ToolResult,
};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::delta::{FIELD, REASONING_CONTENT, REASONING_DETAILS};
use super::rules::MessageRules;
use crate::body::{Body, Fields, fragment, joined, merge_options};
use crate::media::unsupported;
use crate::openai_common::calls::{CallIndex, wire_name};
use crate::openai_common::media::{file_data, image_url, media_placeholder};
use crate::openai_common::schema_name;
use crate::options::{list_option, options_for};
use crate::quirks::{self, SKIP_SIGNATURE};
use crate::tool_names::check_tools;

/// Memo slot of history items.
const DIALECT: &str = "openai-chat";

/// Maximum length of the name of a call, in characters.
const MAX_NAME: usize = 64;

/// Options that the adapter applies itself.
const HANDLED: [&str; 2] = ["tools", quirks::OPTION];

/// Names of the limit on output tokens.
const MAX_TOKENS: &str = "max_tokens";
const MAX_COMPLETION_TOKENS: &str = "max_completion_tokens";

/// Text of the assistant message between results and a user message.
const AFTER_RESULTS: &str = "The results are received.";

/// Memoised encoding of one history item.
struct EncodedItem {
    messages: Vec<Bytes>,
    /// User message with the content beside results: a tool message contains only text, and nothing may be between the
    /// tool messages of a turn.
    after: Option<Bytes>,
    kind: ItemKind,
}

/// Kind of the messages of an encoded item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ItemKind {
    User,
    Results,
    Other,
}

pub(super) fn encode(
    request: &Request,
    provider: &str,
    quirks: &ServerQuirks,
    stream: bool,
) -> Result<Body, Error> {
    check_tools(&request.tools, provider)?;
    let options = options_for(request, provider)?;
    let mut fields = parameters(request, quirks, stream, list_option(options, provider, "tools")?);
    if let Some(max_tokens) = request.max_tokens {
        let is_given = |name: &str| options.is_some_and(|options| options.contains_key(name));
        // The API refuses both names together.
        let counts_reasoning = quirks.output_limit == Some(OutputLimit::MaxCompletionTokens);
        let name = if !is_given(MAX_TOKENS) && (counts_reasoning || is_given(MAX_COMPLETION_TOKENS)) {
            MAX_COMPLETION_TOKENS
        } else {
            MAX_TOKENS
        };
        fields.insert(name.to_owned(), max_tokens.into());
    }
    if let Some(options) = options {
        merge_options(&mut fields, provider, options, &HANDLED, "messages")?;
    }
    let conversation = Conversation::new(request, provider, MessageRules::new(quirks))?;
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
fn parameters(request: &Request, quirks: &ServerQuirks, stream: bool, more: &[Value]) -> Fields {
    let mut fields = Fields::default();
    let mut set = |name: &str, value: Value| {
        fields.insert(name.to_owned(), value);
    };
    set("model", request.model.as_str().into());
    set("stream", stream.into());
    if stream && quirks.stream_options != Some(false) {
        set("stream_options", json!({"include_usage": true}));
    }
    if let Some(temperature) = request.temperature {
        set("temperature", temperature.into());
    }
    if let Some(top_p) = request.top_p {
        set("top_p", top_p.into());
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
    /// Target of the cached prefix: provider and model of the request, which decide who may read a message's reasoning, and
    /// the rules at the start of the conversation.
    cache_target: String,
    /// Target of the next item, which depends on the rules at its position.
    item_target: String,
    rules: MessageRules,
    /// Elements of a JSON list.
    messages: Body,
    /// User messages that follow, after any further results.
    held: Vec<Bytes>,
    /// Whether the last message is a result.
    after_results: bool,
}

impl Conversation {
    /// Encodes the conversation of a request. The part encoded for an earlier request is taken from the message list, where
    /// [`Conversation::memoise`] stored it.
    fn new(request: &Request, provider: &str, rules: MessageRules) -> Result<Self, Error> {
        let messages = request.messages.as_slice();
        let origin = Origin::new(provider, &request.model);
        let target = rules.target(&origin);
        let known = request.messages.take_cached_prefix(DIALECT, &target);
        let (known, mut conversation) = known.unwrap_or_else(|| (0, Self::empty(target, rules)));
        let (before, new) = messages.split_at_checked(known).unwrap_or((&[], messages));
        let mut calls = CallIndex::after(before);
        for item in new {
            calls.read(item, provider)?;
            conversation.adopt_reasoning_content(item, &origin);
            let rules = conversation.rules;
            let encoded = item.encoding(DIALECT, &conversation.item_target, |message| {
                messages_of(message, &origin, rules).map_err(|error| Box::new(error.info().clone()))
            });
            match encoded.as_ref() {
                Ok(encoded) => conversation.add(encoded),
                Err(info) => return Err(ErrorInfo::clone(info).into()),
            }
        }
        Ok(conversation)
    }

    fn empty(target: String, rules: MessageRules) -> Self {
        Self {
            item_target: target.clone(),
            cache_target: target,
            rules,
            messages: Body::default(),
            held: Vec::new(),
            after_results: false,
        }
    }

    /// Applies the rule that messages have `reasoning_content` from the first one on that was received with it.
    ///
    /// The server has accepted earlier messages without the field, so their bytes do not change.
    fn adopt_reasoning_content(&mut self, message: &Message, origin: &Origin) {
        let rules = self.rules;
        if rules.adopts_reasoning_content
            && !rules.has_reasoning_content
            && message.role == Role::Assistant
            && is_own(message, origin)
            && received_reasoning_content(message).next().is_some()
        {
            self.rules.has_reasoning_content = true;
            self.item_target = self.rules.target(origin);
        }
    }

    fn add(&mut self, encoded: &EncodedItem) {
        let is_results = encoded.kind == ItemKind::Results;
        let held = if is_results { Vec::new() } else { std::mem::take(&mut self.held) };
        if !held.is_empty() || encoded.kind == ItemKind::User {
            let between = self.between_results_and_user();
            between.iter().for_each(|message| self.messages.shared_element(message));
            self.after_results = false;
        }
        held.iter().chain(&encoded.messages).for_each(|message| self.messages.shared_element(message));
        if !encoded.messages.is_empty() {
            self.after_results = is_results;
        }
        self.held.extend(encoded.after.clone());
    }

    /// Returns the assistant message that the server requires before a user message at this position.
    fn between_results_and_user(&self) -> Option<Bytes> {
        let is_required = self.rules.answer_after_results && self.after_results;
        is_required.then(|| {
            // The server may require the field on every assistant message.
            let reasoning = self.rules.has_reasoning_content.then_some("");
            fragment(&match reasoning {
                Some(reasoning) => {
                    json!({"role": "assistant", "content": AFTER_RESULTS, REASONING_CONTENT: reasoning})
                }
                None => json!({"role": "assistant", "content": AFTER_RESULTS}),
            })
        })
    }

    fn is_empty(&self) -> bool {
        self.messages.is_empty() && self.held.is_empty()
    }

    fn write(&self, body: &mut Body) {
        body.append(&self.messages);
        let between = self.between_results_and_user().filter(|_| !self.held.is_empty());
        for (index, held) in between.iter().chain(&self.held).enumerate() {
            if index > 0 || !self.messages.is_empty() {
                body.write(b",");
            }
            body.share(held);
        }
    }

    /// Memoises it with the messages of the request, for the next request.
    fn memoise(self, request: &Request) {
        let target = self.cache_target.clone();
        request.messages.cache_prefix(DIALECT, &target, request.messages.len(), self);
    }
}

fn messages_of(message: &Message, origin: &Origin, rules: MessageRules) -> Result<EncodedItem, Error> {
    let provider = &origin.provider;
    let one = match message.role {
        Role::System | Role::Developer => {
            check_parts(message, provider, |part| part.as_text().is_some())?;
            Some(fragment(&add_name(json!({"role": "system", "content": message.text()}), message)))
        }
        Role::User | Role::Tool => return user_or_tool(message, provider, rules),
        Role::Assistant => {
            check_parts(message, provider, |part| !matches!(part, ContentPart::ToolResult(_)))?;
            assistant(message, is_own(message, origin), rules).as_ref().map(fragment)
        }
    };
    Ok(EncodedItem { messages: one.into_iter().collect(), after: None, kind: ItemKind::Other })
}

/// Returns whether a model may read the reasoning of a message. A message without an origin was built by the caller, who
/// vouches for its content.
fn is_own(message: &Message, origin: &Origin) -> bool {
    message.origin.as_ref().is_none_or(|wrote| wrote == origin)
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
fn user_or_tool(message: &Message, provider: &str, rules: MessageRules) -> Result<EncodedItem, Error> {
    check_parts(message, provider, |part| {
        !matches!(part, ContentPart::ToolCall(_) | ContentPart::Thinking(_))
    })?;
    let mut results: Vec<Bytes> = Vec::new();
    let mut parts = Vec::new();
    for result in message.results() {
        let id = rules.wire_id(&result.tool_call_id);
        results.push(fragment(&tool_message(&id, &result.text())));
        parts.extend(images_of(result, &id, provider)?);
    }
    let plain = message.tool_call_id.as_ref().filter(|_| message.role == Role::Tool && results.is_empty());
    // A result written as plain text.
    results.extend(plain.map(|id| fragment(&tool_message(&rules.wire_id(id), &message.text()))));
    for part in message.content.iter().filter(|part| plain.is_none() || part.as_text().is_none()) {
        parts.extend(user_part(part, provider)?);
    }
    let user = user_message(message, &parts).as_ref().map(fragment);
    Ok(if results.is_empty() {
        let kind = if user.is_some() { ItemKind::User } else { ItemKind::Other };
        EncodedItem { messages: user.into_iter().collect(), after: None, kind }
    } else {
        EncodedItem { messages: results, after: user, kind: ItemKind::Results }
    })
}

/// Encodes a user message: a single text as a string, which every server accepts, anything else as a list. Returns `None`
/// without content.
fn user_message(message: &Message, parts: &[Value]) -> Option<Value> {
    if let [ContentPart::Text(only)] = message.content.as_slice()
        && message.role == Role::User
    {
        return Some(add_name(json!({"role": "user", "content": only.text}), message));
    }
    (!parts.is_empty()).then(|| add_name(json!({"role": "user", "content": parts}), message))
}

/// Adds the participant's name to a message. The name of a tool message is the name of the tool, which is in its call.
fn add_name(mut body: Value, message: &Message) -> Value {
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
    #[serde(skip_serializing_if = "Option::is_none")]
    extra_content: Option<Value>,
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
fn assistant(message: &Message, own: bool, rules: MessageRules) -> Option<AssistantMessage<'_>> {
    let mut fields = Map::new();
    fields.insert("role".to_owned(), "assistant".into());
    let calls = message.tool_calls().enumerate();
    let tool_calls: Vec<ToolCallEntry<'_>> = calls
        .map(|(position, to_send)| {
            let received = to_send.signature.as_deref().filter(|_| own).and_then(extra_content);
            let placeholder = || json!({"google": {"thought_signature": SKIP_SIGNATURE}});
            let needed = (rules.call_signatures && position == 0).then(placeholder);
            call(to_send, rules, received.or(needed))
        })
        .collect();
    let text = text_of(message);
    let refusal = refusal_of(message).filter(|_| own);
    if text.is_empty() && tool_calls.is_empty() && refusal.is_none() {
        return None;
    }
    fields.insert("content".to_owned(), if text.is_empty() { Value::Null } else { text.into() });
    fields.extend(refusal.map(|refusal| ("refusal".to_owned(), refusal.into())));
    if own {
        fields.extend(reasoning_details(message).map(|details| (REASONING_DETAILS.to_owned(), details)));
    }
    if rules.has_reasoning_content {
        let text: String = received_reasoning_content(message).filter(|_| own).collect();
        fields.insert(REASONING_CONTENT.to_owned(), text.into());
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

/// Returns the `reasoning_details` of a message, unchanged.
fn reasoning_details(message: &Message) -> Option<Value> {
    let thinking = message.content.iter().filter_map(ContentPart::as_thinking);
    let lists = thinking.filter_map(|data| data.raw.as_ref()?.get(REASONING_DETAILS)?.as_array());
    let details: Vec<Value> = lists.flatten().cloned().collect();
    (!details.is_empty()).then(|| details.into())
}

/// Returns the reasoning that was received in `reasoning_content`.
fn received_reasoning_content(message: &Message) -> impl Iterator<Item = &str> {
    let thinking = message.content.iter().filter_map(ContentPart::as_thinking);
    let has_field = |raw: &Value| raw.get(FIELD).is_some_and(|field| field == REASONING_CONTENT);
    thinking.filter(move |data| data.raw.as_ref().is_some_and(has_field)).map(|data| data.text.as_str())
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

/// Returns the `extra_content` in the signature of a call.
fn extra_content(signature: &str) -> Option<Value> {
    serde_json::from_str(signature).ok().filter(Value::is_object)
}

/// Encodes a call. Arguments that are not an object become the argument `input`: free text of another provider's custom
/// tool, and truncated arguments. Servers parse arguments when they render the conversation.
fn call(call: &ToolCall, rules: MessageRules, extra_content: Option<Value>) -> ToolCallEntry<'_> {
    let arguments = match call.arguments_object() {
        Some(_) => call.arguments_text(),
        None => json!({"input": call.arguments}).to_string().into(),
    };
    let (id, name) = (rules.wire_id(&call.id), wire_name(&call.name, MAX_NAME));
    ToolCallEntry { extra_content, function: Function { arguments, name }, id, kind: "function" }
}

fn tool_message(id: &str, text: &str) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": text})
}

/// Returns the images of a result, preceded by a line that names its call.
fn images_of(result: &ToolResult, id: &str, provider: &str) -> Result<Vec<Value>, Error> {
    if result.images.is_empty() {
        return Ok(Vec::new());
    }
    let line = format!("Images of the result of call {id}:");
    let mut parts = vec![json!({"type": "text", "text": line})];
    for image in &result.images {
        parts.push(image_part(image, provider)?);
    }
    Ok(parts)
}
