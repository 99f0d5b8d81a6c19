//! History items as content blocks, and blocks as a conversation.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use pintle_llm::{
    ContentPart, DocumentData, Error, ErrorInfo, Fingerprint, ImageData, MediaSource, Message, Origin,
    Request, Role, ToolCall, ToolResult,
};
use serde_json::{Value, json};

use super::NAME;
use crate::body::{Body, fragment};
use crate::media::{ImageForm, image_form, refuse};
use crate::openai::check_document;

/// The longest tool name of the API, in characters.
const LONGEST_NAME: usize = 128;

const IMAGE_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// A request may have 32 MB, in base64.
const LARGEST_DOCUMENT: usize = 32 * 1_000 * 1_000 / 4 * 3;

/// The API takes 5 MiB of base64 per image, which is a third more than its bytes.
const LARGEST_IMAGE: usize = 5 * 1024 * 1024 / 4 * 3;

const CACHE_POINT: &str = r#","cache_control":{"type":"ephemeral"}"#;

/// A conversation as the API wants it: roles alternate, results stand first, nothing is empty.
#[derive(Debug)]
pub(super) struct Conversation {
    turns: Vec<Arc<Encoded>>,
}

/// One message of the request: neighbours of one role have been merged.
#[derive(Debug)]
pub(super) struct Merged<'a> {
    speaker: Speaker,
    blocks: Vec<&'a Block>,
}

/// What one history item becomes; an item that this dialect cannot carry fails each time it is sent.
type Encoded = Result<Turn, Box<ErrorInfo>>;

#[derive(Debug)]
struct Turn {
    speaker: Speaker,
    blocks: Vec<Block>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Speaker {
    /// The system prompt, which is a field of its own.
    System,
    User,
    Assistant,
}

/// One serialised content block, with what assembly must know of it.
#[derive(Debug)]
struct Block {
    kind: Kind,
    json: Bytes,
    /// Whether its maker has set a cache point on it.
    cache_point: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum Kind {
    Thinking,
    Call(String),
    Result(String),
    /// The call of a tool that ran on the provider's side, and the result of one.
    ServerCall(String),
    ServerResult(String),
    Other,
}

impl Conversation {
    /// Encodes the items of a request, each at most once for a model.
    pub(super) fn new(request: &Request) -> Result<Self, Error> {
        let turns = request
            .messages
            .iter()
            .map(|item| {
                let turn = item.encoding(NAME, &request.model, |message| {
                    turn(message, &request.model).map_err(|error| Box::new(error.info().clone()))
                });
                match turn.as_ref() {
                    Ok(_) => Ok(turn),
                    Err(info) => Err(Error::from(ErrorInfo::clone(info))),
                }
            })
            .collect::<Result<_, Error>>()?;
        Ok(Self { turns })
    }

    /// The blocks of the system prompt.
    pub(super) fn system(&self) -> impl Iterator<Item = &Bytes> {
        let prompts = self.turns().filter(|turn| turn.speaker == Speaker::System);
        prompts.flat_map(|turn| &turn.blocks).map(|block| &block.json)
    }

    fn turns(&self) -> impl Iterator<Item = &Turn> + Clone {
        self.turns.iter().filter_map(|turn| turn.as_ref().as_ref().ok())
    }

    /// The messages, merged and in legal order.
    ///
    /// # Errors
    ///
    /// [`pintle_llm::ErrorKind::InvalidRequest`] for a conversation that the API refuses for certain: no message at all,
    /// or a result without its call.
    pub(super) fn messages(&self) -> Result<Vec<Merged<'_>>, Error> {
        let mut messages: Vec<Merged<'_>> = Vec::new();
        let turns = self.turns().filter(|turn| turn.speaker != Speaker::System);
        let answered: HashSet<&str> =
            turns.clone().flat_map(|turn| &turn.blocks).filter_map(server_result).collect();
        for turn in turns.filter(|turn| !turn.blocks.is_empty()) {
            if messages.last().is_some_and(|last| last.speaker != turn.speaker) {
                drop_unanswered(&mut messages, &answered);
                drop_trailing_thinking(&mut messages);
            }
            match messages.last_mut().filter(|last| last.speaker == turn.speaker) {
                Some(last) => last.blocks.extend(&turn.blocks),
                None => {
                    messages.push(Merged { speaker: turn.speaker, blocks: turn.blocks.iter().collect() });
                }
            }
        }
        drop_trailing_thinking(&mut messages);
        for message in messages.iter_mut().filter(|message| message.speaker == Speaker::User) {
            // Stable, so that results and everything else keep their order.
            message.blocks.sort_by_key(|block| !matches!(block.kind, Kind::Result(_)));
        }
        if messages.is_empty() {
            return Err(refuse(
                NAME,
                "the conversation is empty: expected at least one message with content",
            ));
        }
        check_results(&messages)?;
        Ok(messages)
    }
}

/// Whether the conversation ends inside a tool turn that was begun without thinking. Only the turn's first answer
/// counts: without interleaved thinking, a model thinks there and nowhere else.
pub(super) fn open_turn_unthought(messages: &[Merged<'_>]) -> bool {
    let has_results =
        |message: &Merged<'_>| message.blocks.iter().any(|block| matches!(block.kind, Kind::Result(_)));
    if !messages.last().is_some_and(has_results) {
        return false;
    }
    let asked =
        messages.iter().rposition(|message| message.speaker == Speaker::User && !has_results(message));
    let first = messages.get(asked.map_or(0, |asked| asked + 1)).and_then(|answer| answer.blocks.first());
    first.is_some_and(|block| block.kind != Kind::Thinking)
}

/// Writes the messages as the elements of a JSON list, with cache points at the ends of the last two of the user
/// if `cache` is set.
pub(super) fn write(messages: &[Merged<'_>], cache: bool, out: &mut Body) {
    let cached: Vec<usize> = messages
        .iter()
        .enumerate()
        .rev()
        .filter(|(_, message)| cache && message.speaker == Speaker::User)
        .map(|(index, _)| index)
        .take(2)
        .collect();
    for (index, message) in messages.iter().enumerate() {
        if index > 0 {
            out.write(b",");
        }
        message.write(cached.contains(&index), out);
    }
}

impl Merged<'_> {
    fn calls(&self) -> impl Iterator<Item = &str> {
        self.blocks.iter().filter_map(|block| match &block.kind {
            Kind::Call(id) => Some(id.as_str()),
            Kind::Result(_) | Kind::Thinking | Kind::ServerCall(_) | Kind::ServerResult(_) | Kind::Other => {
                None
            }
        })
    }

    fn results(&self) -> impl Iterator<Item = &str> {
        self.blocks.iter().filter_map(|block| match &block.kind {
            Kind::Result(id) => Some(id.as_str()),
            Kind::Call(_) | Kind::Thinking | Kind::ServerCall(_) | Kind::ServerResult(_) | Kind::Other => {
                None
            }
        })
    }

    fn write(&self, cache: bool, out: &mut Body) {
        let role = if self.speaker == Speaker::Assistant { "assistant" } else { "user" };
        out.write(format!(r#"{{"role":"{role}","content":["#).as_bytes());
        let marked = self.blocks.last().filter(|last| cache && !last.cache_point);
        let plain = self.blocks.len() - usize::from(marked.is_some());
        out.share_all(self.blocks.iter().take(plain).map(|block| &block.json));
        if let Some(block) = marked {
            if plain > 0 {
                out.write(b",");
            }
            // Into the block: it is an object with fields, so its last byte is the closing brace.
            out.share(&block.json.slice(..block.json.len().saturating_sub(1)));
            out.write(CACHE_POINT.as_bytes());
            out.write(b"}");
        }
        out.write(b"]}");
    }
}

impl Block {
    fn new(kind: Kind, value: &Value) -> Self {
        Self { kind, json: fragment(value), cache_point: value.get("cache_control").is_some() }
    }

    fn text(text: &str) -> Option<Self> {
        // The API refuses blocks without a visible character.
        let visible = !text.trim().is_empty();
        visible.then(|| Self::new(Kind::Other, &json!({"type": "text", "text": text})))
    }
}

/// The call that a block answers on the provider's side.
fn server_result(block: &Block) -> Option<&str> {
    match &block.kind {
        Kind::ServerResult(id) => Some(id),
        Kind::Thinking | Kind::Call(_) | Kind::Result(_) | Kind::ServerCall(_) | Kind::Other => None,
    }
}

/// Drops calls of the provider's own tools whose results never came, as in an answer that was cut off: the API refuses
/// them once the conversation has gone on. Beside a call of the client's they wait until the assistant speaks again.
fn drop_unanswered(messages: &mut [Merged<'_>], answered: &HashSet<&str>) {
    let is_call = |block: &&Block| matches!(block.kind, Kind::Call(_));
    let of_assistant = |message: &&mut Merged<'_>| message.speaker == Speaker::Assistant;
    let waits = messages.last().is_some_and(|last| last.blocks.iter().any(is_call));
    let Some(message) = messages.iter_mut().rev().take(2).find(of_assistant).filter(|_| !waits) else {
        return;
    };
    let is_answered =
        |block: &&Block| !matches!(&block.kind, Kind::ServerCall(id) if !answered.contains(id.as_str()));
    message.blocks.retain(is_answered);
}

/// An assistant's message must not end with thinking: an answer that was cut off there has said nothing.
fn drop_trailing_thinking(messages: &mut Vec<Merged<'_>>) {
    let Some(last) = messages.last_mut().filter(|last| last.speaker == Speaker::Assistant) else { return };
    while last.blocks.last().is_some_and(|block| block.kind == Kind::Thinking) {
        last.blocks.pop();
    }
    // Empty also if all that it had was dropped before.
    if last.blocks.is_empty() {
        messages.pop();
    }
}

fn check_results(messages: &[Merged<'_>]) -> Result<(), Error> {
    let nothing = Merged { speaker: Speaker::Assistant, blocks: Vec::new() };
    let before = std::iter::once(&nothing).chain(messages);
    for (before, message) in before.zip(messages) {
        // Results mostly come in the order of their calls.
        let mut next = before.calls();
        let unknown = message
            .results()
            .find(|id| next.next().is_none_or(|call| call != *id) && !before.calls().any(|call| call == *id));
        if let Some(id) = unknown {
            return Err(refuse(
                NAME,
                format!("the result of call `{id}` answers no call of the message before it"),
            ));
        }
    }
    Ok(())
}

fn turn(message: &Message, model: &str) -> Result<Turn, Error> {
    let speaker = match message.role {
        Role::System | Role::Developer => {
            if let Some(part) = message.content.iter().find(|part| part.as_text().is_none()) {
                return Err(misplaced(part, "a system message"));
            }
            Speaker::System
        }
        Role::User | Role::Tool => Speaker::User,
        Role::Assistant => Speaker::Assistant,
    };
    if let (Role::Tool, None, Some(id)) = (message.role, message.results().next(), &message.tool_call_id) {
        // A result written as plain text.
        let result = ToolResult::new(id.clone(), message.text(), false);
        return Ok(Turn { speaker, blocks: vec![result_block(&result)?] });
    }
    // A message without an origin was made by hand: whoever made it vouches for its signatures.
    let own = message.origin.as_ref().is_none_or(|origin| *origin == Origin::new(NAME, model));
    let mut blocks = Vec::with_capacity(message.content.len());
    for part in &message.content {
        let block = match speaker {
            Speaker::User | Speaker::System => user_block(part)?,
            Speaker::Assistant => assistant_block(part, own)?,
        };
        blocks.extend(block);
    }
    Ok(Turn { speaker, blocks })
}

fn user_block(part: &ContentPart) -> Result<Option<Block>, Error> {
    Ok(match part {
        ContentPart::Text(data) => Block::text(&data.text),
        ContentPart::Image(image) => Some(Block::new(Kind::Other, &image_block(image)?)),
        ContentPart::Document(document) => Some(Block::new(Kind::Other, &document_block(document)?)),
        ContentPart::ToolResult(result) => Some(result_block(result)?),
        ContentPart::Opaque(data) if is_block(&data.data) => Some(Block::new(Kind::Other, &data.data)),
        ContentPart::Audio(_) => return Err(refuse(NAME, "audio is not taken")),
        ContentPart::ToolCall(_) | ContentPart::Thinking(_) | ContentPart::Opaque(_) => {
            return Err(misplaced(part, "a user message"));
        }
    })
}

fn assistant_block(part: &ContentPart, own: bool) -> Result<Option<Block>, Error> {
    Ok(match part {
        ContentPart::Text(data) => Block::text(&data.text),
        ContentPart::ToolCall(call) => Some(call_block(call)),
        ContentPart::Thinking(_) | ContentPart::Opaque(_) if !own => None,
        ContentPart::Thinking(data) => data.signature.as_ref().map(|signature| {
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
        // Media that another provider's model made: the API takes none from the assistant.
        ContentPart::Image(_) | ContentPart::Audio(_) | ContentPart::Document(_) => {
            Block::text(&format!("[{} left out]", part.kind().to_lowercase()))
        }
        ContentPart::ToolResult(_) | ContentPart::Opaque(_) => {
            return Err(misplaced(part, "an assistant message"));
        }
    })
}

/// What assembly must know of a block that is none of ours.
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
    let input = match call.arguments_object() {
        Some(arguments) => Value::Object(arguments.clone()),
        // Free text, or arguments that were cut off: the API takes objects only.
        None => json!({"input": call.arguments}),
    };
    let block = json!({"type": "tool_use", "id": id, "name": wire_name(&call.name), "input": input});
    Block::new(Kind::Call(id), &block)
}

fn result_block(result: &ToolResult) -> Result<Block, Error> {
    let id = wire_id(&result.tool_call_id);
    let mut text = result.text();
    if text.trim().is_empty() && result.is_error {
        // An error without a word is refused.
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
    let source = match image_form(image, NAME, &IMAGE_TYPES, LARGEST_IMAGE)? {
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
            check_document(blob.as_bytes().len(), LARGEST_DOCUMENT, NAME)?;
            let text = std::str::from_utf8(blob.as_bytes()).ok();
            match text.filter(|_| media_type.starts_with("text/")) {
                Some(text) => json!({"type": "text", "media_type": "text/plain", "data": text}),
                None if media_type == "application/pdf" => {
                    json!({"type": "base64", "media_type": media_type, "data": blob.to_base64()})
                }
                None => {
                    let message = "taken are application/pdf, and text in UTF-8";
                    return Err(refuse(
                        NAME,
                        format!("a document of type {media_type} is not taken; {message}"),
                    ));
                }
            }
        }
    };
    let mut block = json!({"type": "document", "source": source});
    if let (Some(name), Some(block)) = (&document.file_name, block.as_object_mut()) {
        block.insert("title".into(), name.as_str().into());
    }
    Ok(block)
}

/// The id of a call in letters that the API accepts. Other providers' ids may hold others; call and result map alike.
fn wire_id(id: &str) -> String {
    let legal = !id.is_empty() && id.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if legal { id.to_owned() } else { format!("toolu_{}", Fingerprint::of(id.as_bytes())) }
}

/// A tool's name in letters that the API accepts: models also call tools that do not exist.
fn wire_name(name: &str) -> String {
    let legal = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let name: String = name.chars().take(LONGEST_NAME).map(legal).collect();
    if name.is_empty() { "unnamed".to_owned() } else { name }
}

fn misplaced(part: &ContentPart, place: &str) -> Error {
    refuse(NAME, format!("{place} cannot hold a part of kind {}", part.kind()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_is_encoded_once_for_a_model() {
        let request = Request::new("claude-x", [Message::user("hello")]);
        Conversation::new(&request).unwrap();
        let kept = |model: &str| {
            let mut fresh = false;
            request.messages[0].encoding::<Encoded>(NAME, model, |message| {
                fresh = true;
                turn(message, model).map_err(|error| Box::new(error.info().clone()))
            });
            !fresh
        };
        assert!(kept("claude-x"), "the second request finds the first one's encoding");
        assert!(!kept("claude-y"), "another model has other reasoning");
    }
}
