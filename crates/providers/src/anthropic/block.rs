//! Encoding of history items as content blocks.

use bytes::Bytes;
use pintle_llm::{
    ContentPart, DocumentData, Error, ErrorInfo, Fingerprint, HistoryItem, ImageData, MediaSource, Message,
    Origin, Role, ThinkingData, ToolCall, ToolResult,
};
use serde::Serialize;
use serde_json::{Value, json};
use std::sync::Arc;

use super::NAME;
use crate::body::{ObjectArguments, fragment};
use crate::media::{ImageForm, check_document, image_form, unread, unsupported};

/// Maximum length of a tool name, in characters.
const MAX_NAME: usize = 128;

const IMAGE_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// Maximum size of a document, in bytes: a request may have 32 MB, in base64.
const MAX_DOCUMENT: usize = 32 * 1_000 * 1_000 / 4 * 3;

/// Maximum size of an image, in bytes: the API accepts 5 MiB of base64 per image.
const MAX_IMAGE: usize = 5 * 1024 * 1024 / 4 * 3;

/// Memoised encoding of one history item. An item that the API does not support fails each time it is sent.
pub(super) type EncodedTurn = Result<Turn, Box<ErrorInfo>>;

#[derive(Debug)]
pub(super) struct Turn {
    pub(super) role: WireRole,
    pub(super) blocks: Vec<Block>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WireRole {
    /// The system prompt, which is a separate field.
    System,
    User,
    Assistant,
}

/// One serialised content block, with what assembly needs to know about it.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) kind: Kind,
    pub(super) json: Bytes,
    /// Whether the caller has set a cache point on it.
    pub(super) cache_point: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Thinking,
    Call(String),
    Result(String),
    /// Call of a tool that runs at the provider.
    ServerCall(String),
    /// Result of such a call.
    ServerResult(String),
    Other,
}

/// Returns the blocks of an item, encoded once per `target`, which names the model and the rule for unsigned thinking.
pub(super) fn encoded(
    item: &HistoryItem,
    target: &str,
    model: &str,
    unsigned_thinking: bool,
) -> Result<Arc<EncodedTurn>, Error> {
    let turn = item.encoding(NAME, target, |message| {
        turn(message, model, unsigned_thinking).map_err(|error| Box::new(error.info().clone()))
    });
    match turn.as_ref() {
        Ok(_) => Ok(turn),
        Err(info) => Err(ErrorInfo::clone(info).into()),
    }
}

impl Block {
    fn new(kind: Kind, value: &Value) -> Self {
        Self { kind, json: fragment(value), cache_point: value.get("cache_control").is_some() }
    }

    fn text(text: &str) -> Option<Self> {
        // The API rejects blocks without a visible character.
        let visible = !text.trim().is_empty();
        visible.then(|| Self::new(Kind::Other, &json!({"type": "text", "text": text})))
    }
}

fn turn(message: &Message, model: &str, unsigned_thinking: bool) -> Result<Turn, Error> {
    let role = match message.role {
        Role::System | Role::Developer => {
            if let Some(part) = message.content.iter().find(|part| part.as_text().is_none()) {
                return Err(misplaced(part, "a system message"));
            }
            WireRole::System
        }
        Role::User | Role::Tool => WireRole::User,
        Role::Assistant => WireRole::Assistant,
    };
    if let (Role::Tool, None, Some(id)) = (message.role, message.results().next(), &message.tool_call_id) {
        // A result written as plain text.
        let result = ToolResult::new(id.clone(), message.text(), false);
        return Ok(Turn { role, blocks: vec![result_block(&result)?] });
    }
    // A message without an origin was built by the caller, who vouches for its signatures.
    let own = message.origin.as_ref().is_none_or(|origin| *origin == Origin::new(NAME, model));
    let mut blocks = Vec::with_capacity(message.content.len());
    for part in &message.content {
        let block = match role {
            WireRole::User | WireRole::System => user_block(part)?,
            WireRole::Assistant => assistant_block(part, own, unsigned_thinking)?,
        };
        blocks.extend(block);
    }
    Ok(Turn { role, blocks })
}

fn user_block(part: &ContentPart) -> Result<Option<Block>, Error> {
    Ok(match part {
        ContentPart::Text(data) => Block::text(&data.text),
        ContentPart::Image(image) => Some(Block::new(Kind::Other, &image_block(image)?)),
        ContentPart::Document(document) => Some(Block::new(Kind::Other, &document_block(document)?)),
        ContentPart::ToolResult(result) => Some(result_block(result)?),
        ContentPart::Opaque(data) if is_block(&data.data) => Some(Block::new(Kind::Other, &data.data)),
        ContentPart::Audio(_) => return Err(unsupported(NAME, "audio is not supported")),
        ContentPart::ToolCall(_) | ContentPart::Thinking(_) | ContentPart::Opaque(_) | _ => {
            return Err(misplaced(part, "a user message"));
        }
    })
}

fn assistant_block(part: &ContentPart, own: bool, unsigned_thinking: bool) -> Result<Option<Block>, Error> {
    Ok(match part {
        ContentPart::Text(data) => Block::text(&data.text),
        ContentPart::ToolCall(call) => Some(call_block(call)),
        ContentPart::Thinking(_) | ContentPart::Opaque(_) if !own => None,
        ContentPart::Thinking(data) => signature_of(data, unsigned_thinking).map(|signature| {
            let block = if data.redacted {
                json!({"type": "redacted_thinking", "data": signature})
            } else {
                json!({"type": "thinking", "thinking": data.text, "signature": signature})
            };
            Block::new(Kind::Thinking, &block)
        }),
        ContentPart::Opaque(data) if is_block(&data.data) => {
            Some(Block::new(server_kind(&data.data), &data.data))
        }
        // Media of another provider's model: the API accepts none from the assistant.
        ContentPart::Image(_) | ContentPart::Audio(_) | ContentPart::Document(_) => {
            Block::text(&format!("[{} left out]", part.kind().to_lowercase()))
        }
        ContentPart::ToolResult(_) | ContentPart::Opaque(_) | _ => {
            return Err(misplaced(part, "an assistant message"));
        }
    })
}

/// Returns the signature with which thinking is sent back. The schema of the API requires the field, so unsigned thinking
/// has an empty one. Thinking without text has nothing to send.
fn signature_of(data: &ThinkingData, unsigned_thinking: bool) -> Option<&str> {
    let unsigned = (unsigned_thinking && !data.redacted && !data.text.is_empty()).then_some("");
    data.signature.as_deref().or(unsigned)
}

/// Returns the kind of a provider-specific block.
fn server_kind(block: &Value) -> Kind {
    let text = |name: &str| block.get(name).and_then(Value::as_str).unwrap_or_default();
    match text("type") {
        "server_tool_use" | "mcp_tool_use" => Kind::ServerCall(text("id").to_owned()),
        kind if kind.ends_with("_tool_result") => Kind::ServerResult(text("tool_use_id").to_owned()),
        _ => Kind::Other,
    }
}

fn is_block(value: &Value) -> bool {
    value.as_object().is_some_and(|fields| !fields.is_empty())
}

fn call_block(call: &ToolCall) -> Block {
    let id = wire_id(&call.id);
    let block = ToolUse {
        id: &id,
        input: ObjectArguments(&call.arguments),
        name: wire_name(&call.name),
        kind: "tool_use",
    };
    let json = fragment(&block);
    Block { kind: Kind::Call(id), json, cache_point: false }
}

/// A `tool_use` block with borrowed arguments. Its fields are in the order of a [`Value`]'s.
#[derive(Serialize)]
struct ToolUse<'a> {
    id: &'a str,
    input: ObjectArguments<'a>,
    name: String,
    #[serde(rename = "type")]
    kind: &'static str,
}

fn result_block(result: &ToolResult) -> Result<Block, Error> {
    let id = wire_id(&result.tool_call_id);
    let mut text = result.text();
    if text.trim().is_empty() && result.is_error {
        // The API rejects an error without text.
        "the tool failed without a message".clone_into(&mut text);
    }
    let content = if result.images.is_empty() {
        Value::String(text)
    } else {
        let text = (!text.trim().is_empty()).then(|| Ok(json!({"type": "text", "text": text})));
        let blocks = text.into_iter().chain(result.images.iter().map(image_block));
        Value::Array(blocks.collect::<Result<_, Error>>()?)
    };
    let block = json!({
        "type": "tool_result", "tool_use_id": id, "content": content, "is_error": result.is_error
    });
    Ok(Block::new(Kind::Result(id), &block))
}

fn image_block(image: &ImageData) -> Result<Value, Error> {
    let source = match image_form(image, NAME, &IMAGE_TYPES, MAX_IMAGE)? {
        ImageForm::Url(url) => json!({"type": "url", "url": url}),
        ImageForm::Base64 { media_type, data } => {
            json!({"type": "base64", "media_type": media_type, "data": data})
        }
    };
    Ok(json!({"type": "image", "source": source}))
}

fn document_block(document: &DocumentData) -> Result<Value, Error> {
    let media_type = document.media_type.as_deref().unwrap_or("application/pdf");
    let source = match &document.source {
        MediaSource::Url(url) => json!({"type": "url", "url": url}),
        MediaSource::Data(blob) => {
            check_document(blob.as_bytes().len(), MAX_DOCUMENT, NAME)?;
            let text = std::str::from_utf8(blob.as_bytes()).ok();
            match text.filter(|_| media_type.starts_with("text/")) {
                Some(text) => json!({"type": "text", "media_type": "text/plain", "data": text}),
                None if media_type == "application/pdf" => {
                    json!({"type": "base64", "media_type": media_type, "data": blob.to_base64()})
                }
                None => {
                    let message = "supported are application/pdf and UTF-8 text";
                    return Err(unsupported(
                        NAME,
                        format!("documents of type {media_type} are not supported; {message}"),
                    ));
                }
            }
        }
        MediaSource::Path(_) | _ => return Err(unread(NAME)),
    };
    let mut block = json!({"type": "document", "source": source});
    if let (Some(name), Some(block)) = (&document.file_name, block.as_object_mut()) {
        block.insert("title".into(), name.as_str().into());
    }
    Ok(block)
}

/// Returns a call id in characters that the API accepts. Ids of a call and of its result map alike.
fn wire_id(id: &str) -> String {
    let legal = !id.is_empty() && id.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if legal { id.to_owned() } else { format!("toolu_{}", Fingerprint::from_bytes(id.as_bytes())) }
}

/// Returns a tool name in characters that the API accepts: models also call tools that do not exist.
fn wire_name(name: &str) -> String {
    let legal = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let name: String = name.chars().take(MAX_NAME).map(legal).collect();
    if name.is_empty() { "unnamed".to_owned() } else { name }
}

fn misplaced(part: &ContentPart, message: &str) -> Error {
    unsupported(NAME, format!("{message} cannot contain a part of kind {}", part.kind()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_encoded_once_per_model() {
        let item = HistoryItem::from(Message::user("hello"));
        encoded(&item, "claude-x", "claude-x", false).unwrap();
        let is_memoised = |model: &str| {
            let mut fresh = false;
            item.encoding::<EncodedTurn>(NAME, model, |message| {
                fresh = true;
                turn(message, model, false).map_err(|error| Box::new(error.info().clone()))
            });
            !fresh
        };
        assert!(is_memoised("claude-x"), "the second request reuses the encoding");
        assert!(!is_memoised("claude-y"), "another model has other reasoning");
    }
}
