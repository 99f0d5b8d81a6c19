//! Encoding of a conversation as input items of the Responses API.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use pintle_llm::{
    ContentPart, DocumentData, Error, ErrorInfo, HistoryItem, ImageData, MediaSource, Message, Origin,
    Request, Role, ThinkingData, ToolCall, ToolCallKind, ToolResult,
};
use serde::Serialize;
use serde_json::{Value, json};

use super::PROVIDER;
use crate::body::{Body, fragment};
use crate::media::{unread, unsupported};
use crate::openai_common::calls::{CallIndex, answered, wire_id, wire_name};
use crate::openai_common::media::{file_data, image_url, media_placeholder};

/// Memo slot of history items.
pub(super) const DIALECT: &str = "openai-responses";

/// Maximum length of the name and of the id of a call, in characters.
const MAX_NAME: usize = 128;
const MAX_ID: usize = 64;

/// An encoded conversation, or the start of one.
#[derive(Clone, Debug, Default)]
pub(super) struct Input {
    /// Texts of the system messages, which are a separate field.
    pub(super) instructions: Vec<Arc<Bytes>>,
    /// All other messages, as elements of a JSON list.
    pub(super) items: Body,
}

impl Input {
    /// Encodes the conversation of a request. The part encoded for an earlier request is taken from the message list, where
    /// [`Input::memoise`] stored it. `self_contained` means that no part is stored at the provider, so that each result must
    /// have its call.
    ///
    /// # Errors
    ///
    /// [`pintle_llm::ErrorKind::InvalidRequest`] for content that the dialect does not support.
    pub(super) fn new(request: &Request, self_contained: bool) -> Result<Self, Error> {
        let messages = request.messages.as_slice();
        let known = request.messages.take_cached_prefix(memo_slot(self_contained), &request.model);
        let (known, mut input) = known.unwrap_or_else(|| (0, Self::default()));
        let (before, new) = messages.split_at_checked(known).unwrap_or((&[], messages));
        let origin = Origin::new(PROVIDER, &request.model);
        let mut calls = CallIndex::after(before);
        for item in new {
            if item.role == Role::System {
                check_system(item)?;
                input.instructions.push(item.encoding(DIALECT, "", |message| fragment(&message.text())));
            } else {
                input.add(item, &origin, &mut calls, self_contained)?;
            }
        }
        Ok(input)
    }

    fn add<'a>(
        &mut self,
        item: &'a HistoryItem,
        origin: &Origin,
        calls: &mut CallIndex<'a>,
        self_contained: bool,
    ) -> Result<(), Error> {
        let is_custom = |id: &&str| calls.find(id).is_some_and(|call| call.kind == ToolCallKind::Custom);
        let answers_custom: Vec<&str> = answered(item).filter(is_custom).collect();
        if self_contained {
            calls.read(item, PROVIDER)?;
        } else {
            calls.add(item);
        }
        // Besides the message, the encoding depends on the model that may read its reasoning and on the calls that it answers.
        let target = match item.role {
            Role::Assistant => Cow::from(&origin.model),
            Role::System | Role::User | Role::Tool | Role::Developer if answers_custom.is_empty() => {
                "".into()
            }
            Role::System | Role::User | Role::Tool | Role::Developer => answers_custom.join(" ").into(),
        };
        let encoded = item.encoding(DIALECT, &target, |message| {
            items_of(message, origin, &answers_custom).map_err(|error| Box::new(error.info().clone()))
        });
        match encoded.as_ref() {
            Ok(items) => items.iter().for_each(|item| self.items.shared_element(item)),
            Err(info) => return Err(ErrorInfo::clone(info).into()),
        }
        Ok(())
    }

    /// Memoises it with the messages of the request, for the next request.
    pub(super) fn memoise(self, request: &Request, self_contained: bool) {
        let messages = &request.messages;
        messages.cache_prefix(memo_slot(self_contained), &request.model, messages.len(), self);
    }
}

/// Returns the memo slot. The two are separate because their encodings were checked by different rules.
fn memo_slot(self_contained: bool) -> &'static str {
    if self_contained { "openai-responses" } else { "openai-responses-continued" }
}

/// Encodes one message. Calls, results and reasoning are separate items, so content between them becomes a message of its
/// own.
fn items_of(message: &Message, origin: &Origin, answers_custom: &[&str]) -> Result<Vec<Bytes>, Error> {
    // A message without an origin was built by the caller, who vouches for its content.
    let own = message.origin.as_ref().is_none_or(|wrote| wrote == origin);
    let mut items =
        Items { role: message.role, content: Vec::new(), done: Vec::new(), trailing_reasoning: 0 };
    for part in &message.content {
        check_role(part, message.role)?;
        match part {
            ContentPart::Text(data) if data.text.is_empty() => {}
            ContentPart::Text(data) => items.text(&data.text),
            ContentPart::Image(_) | ContentPart::Audio(_) | ContentPart::Document(_)
                if message.role == Role::Assistant =>
            {
                items.text(&media_placeholder(part));
            }
            ContentPart::Image(image) => items.content.push(input_image(image)?),
            ContentPart::Document(document) => items.content.push(input_file(document)?),
            ContentPart::Audio(_) => {
                return Err(unsupported(PROVIDER, "the Responses API does not support audio"));
            }
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
            // They are valid at their origin only.
            ContentPart::Thinking(_) | ContentPart::Opaque(_) | _ => {}
        }
    }
    if message.role == Role::Tool
        && items.done.is_empty()
        && let Some(id) = &message.tool_call_id
    {
        // A result written as plain text. Media beside it become a user message.
        let result = ToolResult::new(id.as_str(), message.text(), false);
        let output = fragment(&output_item(&result, answers_custom.contains(&id.as_str()))?);
        items.content.retain(|part| part.get("type").and_then(Value::as_str) != Some("input_text"));
        return Ok([output].into_iter().chain(items.finish()).collect());
    }
    Ok(items.finish())
}

struct Items {
    role: Role,
    /// Content of the message that is being built.
    content: Vec<Value>,
    done: Vec<Bytes>,
    /// Number of reasoning items at the end of `done`.
    trailing_reasoning: usize,
}

impl Items {
    fn text(&mut self, text: &str) {
        let kind = if self.role == Role::Assistant { "output_text" } else { "input_text" };
        self.content.push(json!({"type": kind, "text": text}));
    }

    fn item(&mut self, item: &impl Serialize) {
        self.flush();
        self.done.push(fragment(item));
        self.trailing_reasoning = 0;
    }

    fn reasoning(&mut self, item: &Value) {
        self.flush();
        self.done.push(fragment(item));
        self.trailing_reasoning += 1;
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
        self.trailing_reasoning = 0;
    }

    /// Returns the items without trailing reasoning, as in a truncated response: the provider rejects a reasoning item that
    /// no other item follows.
    fn finish(mut self) -> Vec<Bytes> {
        self.flush();
        self.done.truncate(self.done.len().saturating_sub(self.trailing_reasoning));
        // It lives as long as the message and usually has one item.
        self.done.shrink_to_fit();
        self.done
    }
}

/// A call item with borrowed arguments, which may be megabytes long. Its fields are in the order of a [`Value`]'s.
#[derive(Serialize)]
struct CallItem<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<Cow<'a, str>>,
    call_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<Cow<'a, str>>,
    name: String,
    #[serde(rename = "type")]
    kind: &'static str,
}

fn call_item(call: &ToolCall) -> CallItem<'_> {
    let (call_id, name) = (wire_id(&call.id, MAX_ID), wire_name(&call.name, MAX_NAME));
    match call.kind {
        ToolCallKind::Function => {
            let arguments = Some(call.arguments_text());
            CallItem { arguments, call_id, input: None, name, kind: "function_call" }
        }
        ToolCallKind::Custom => {
            let input = Some(call.arguments_text());
            CallItem { arguments: None, call_id, input, name, kind: "custom_tool_call" }
        }
    }
}

fn output_item(result: &ToolResult, custom: bool) -> Result<Value, Error> {
    let output = if result.images.is_empty() {
        Value::String(result.text())
    } else {
        let text = Some(result.text()).filter(|text| !text.is_empty());
        let mut content: Vec<Value> =
            text.iter().map(|text| json!({"type": "input_text", "text": text})).collect();
        for image in &result.images {
            content.push(input_image(image)?);
        }
        Value::Array(content)
    };
    let kind = if custom { "custom_tool_call_output" } else { "function_call_output" };
    let id = wire_id(&result.tool_call_id, MAX_ID);
    Ok(json!({"type": kind, "call_id": id, "output": output}))
}

/// Encodes reasoning verbatim, but without its id, under which nothing is stored. Returns `None` without encrypted content,
/// which the provider could not use.
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

/// Removes the id of a provider-specific item, under which nothing is stored. Items of remote MCP servers keep it, because
/// other items refer to it.
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
    // The API does not require it, but its type definitions do.
    let detail = image.detail.as_deref().unwrap_or("auto");
    Ok(json!({"type": "input_image", "image_url": url, "detail": detail}))
}

fn input_file(document: &DocumentData) -> Result<Value, Error> {
    match &document.source {
        MediaSource::Url(url) => Ok(json!({"type": "input_file", "file_url": url})),
        MediaSource::Data(_) => {
            let (name, data) = file_data(document, PROVIDER)?;
            Ok(json!({"type": "input_file", "filename": name, "file_data": data}))
        }
        MediaSource::Path(_) | _ => Err(unread(PROVIDER)),
    }
}

/// Checks that calls and reasoning are in assistant messages, and results are not.
fn check_role(part: &ContentPart, role: Role) -> Result<(), Error> {
    let assistant = role == Role::Assistant;
    match part {
        ContentPart::ToolCall(_) | ContentPart::Thinking(_) if !assistant => {
            Err(misplaced(part, "a user message"))
        }
        ContentPart::ToolResult(_) if assistant => Err(misplaced(part, "an assistant message")),
        ContentPart::Text(_)
        | ContentPart::Image(_)
        | ContentPart::Audio(_)
        | ContentPart::Document(_)
        | ContentPart::ToolCall(_)
        | ContentPart::ToolResult(_)
        | ContentPart::Thinking(_)
        | ContentPart::Opaque(_)
        | _ => Ok(()),
    }
}

/// Checks that a system message contains only text.
fn check_system(message: &Message) -> Result<(), Error> {
    match message.content.iter().find(|part| part.as_text().is_none()) {
        Some(part) => Err(misplaced(part, "a system message")),
        None => Ok(()),
    }
}

fn misplaced(part: &ContentPart, message: &str) -> Error {
    unsupported(PROVIDER, format!("{message} cannot contain a part of kind {}", part.kind()))
}
