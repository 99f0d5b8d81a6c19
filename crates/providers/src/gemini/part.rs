//! Encoding of history items as parts.

use std::sync::Arc;

use bytes::Bytes;
use pintle_llm::{
    AudioData, ContentPart, DocumentData, Error, ErrorInfo, HistoryItem, ImageData, MediaSource, Message,
    Origin, Role, ToolCall, ToolResult,
};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{NAME, is_third_generation};
use crate::body::{ObjectArguments, fragment};
use crate::media::{ImageForm, check_document, image_form, unread, unsupported};
use crate::quirks::SKIP_SIGNATURE;

const IMAGE_TYPES: [&str; 6] =
    ["image/png", "image/jpeg", "image/gif", "image/webp", "image/heic", "image/heif"];

/// Maximum size of an image, in bytes: a request with inline data may have 100 MB, in base64.
const MAX_IMAGE: usize = 100 * 1_000 * 1_000 / 4 * 3;

/// Maximum size of an inline document or recording, in bytes.
const MAX_DOCUMENT: usize = 50 * 1024 * 1024;

/// Maximum length of a function name, in characters.
const MAX_NAME: usize = 128;

/// Memoised encoding of one history item. An item that the API does not support fails each time it is sent.
pub(super) type EncodedTurn = Result<Turn, Box<ErrorInfo>>;

#[derive(Debug)]
pub(super) struct Turn {
    pub(super) role: WireRole,
    pub(super) parts: Vec<Part>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WireRole {
    /// The system prompt, which is a separate field.
    System,
    User,
    /// The user role, with results of calls.
    Results,
    Model,
}

/// One serialised part.
#[derive(Debug)]
pub(super) enum Part {
    Plain(Bytes),
    Call {
        id: String,
        name: String,
        json: Bytes,
    },
    Result {
        id: String,
        /// JSON after the function's name, which the result itself does not contain.
        rest: Bytes,
    },
}

/// Returns the parts of an item, encoded once per model.
pub(super) fn encoded(item: &HistoryItem, model: &str) -> Result<Arc<EncodedTurn>, Error> {
    let turn = item.encoding(NAME, model, |message| {
        turn(message, model).map_err(|error| Box::new(error.info().clone()))
    });
    match turn.as_ref() {
        Ok(_) => Ok(turn),
        Err(info) => Err(ErrorInfo::clone(info).into()),
    }
}

fn turn(message: &Message, model: &str) -> Result<Turn, Error> {
    let mut parts = Vec::with_capacity(message.content.len());
    let role = match message.role {
        Role::System | Role::Developer => {
            if let Some(part) = message.content.iter().find(|part| part.as_text().is_none()) {
                return Err(misplaced(part, "a system message"));
            }
            WireRole::System
        }
        Role::User | Role::Tool if message.results().next().is_some() => WireRole::Results,
        Role::User | Role::Tool => WireRole::User,
        Role::Assistant => WireRole::Model,
    };
    if let (Role::Tool, WireRole::User, Some(id)) = (message.role, role, &message.tool_call_id) {
        // A result written as plain text.
        let result = ToolResult::new(id.clone(), message.text(), false);
        return Ok(Turn { role: WireRole::Results, parts: vec![result_part(&result, Vec::new())] });
    }
    if role == WireRole::Model {
        // A message without an origin was built by the caller, who vouches for its signatures.
        let own = message.origin.as_ref().is_none_or(|origin| *origin == Origin::new(NAME, model));
        // Gemini 3 requires a signature on the first call of a step.
        let mut unsigned_step = is_third_generation(model);
        for part in &message.content {
            parts.extend(model_part(part, own, &mut unsigned_step)?);
        }
    } else {
        for part in &message.content {
            user_part(part, is_third_generation(model), &mut parts)?;
        }
    }
    Ok(Turn { role, parts })
}

fn user_part(part: &ContentPart, nested_media: bool, parts: &mut Vec<Part>) -> Result<(), Error> {
    let value = match part {
        ContentPart::Text(data) if data.text.is_empty() => return Ok(()),
        ContentPart::Text(data) => json!({"text": data.text}),
        ContentPart::Image(image) => image_part(image)?,
        ContentPart::Audio(audio) => audio_part(audio)?,
        ContentPart::Document(document) => document_part(document)?,
        ContentPart::Opaque(data) if data.data.is_object() => data.data.clone(),
        ContentPart::ToolResult(result) => {
            let images = result.images.iter().map(image_part).collect::<Result<Vec<_>, _>>()?;
            // Gemini 3 accepts media inside a result, earlier models only beside it.
            let (inside, beside) = if nested_media { (images, Vec::new()) } else { (Vec::new(), images) };
            parts.push(result_part(result, inside));
            parts.extend(beside.iter().map(|image| Part::Plain(fragment(image))));
            return Ok(());
        }
        ContentPart::ToolCall(_) | ContentPart::Thinking(_) | ContentPart::Opaque(_) | _ => {
            return Err(misplaced(part, "a user message"));
        }
    };
    parts.push(Part::Plain(fragment(&value)));
    Ok(())
}

fn model_part(part: &ContentPart, own: bool, unsigned_step: &mut bool) -> Result<Option<Part>, Error> {
    let signature = |signature: &Option<String>| signature.clone().filter(|_| own);
    let value = match part {
        ContentPart::Text(data) => match signature(&data.signature) {
            Some(signature) => json!({"text": data.text, "thoughtSignature": signature}),
            None if data.text.is_empty() => return Ok(None),
            None => json!({"text": data.text}),
        },
        // Without a signature a thought is only a summary for display.
        ContentPart::Thinking(data) => match signature(&data.signature) {
            Some(signature) => json!({"text": data.text, "thought": true, "thoughtSignature": signature}),
            None => return Ok(None),
        },
        ContentPart::ToolCall(call) => {
            let needed = std::mem::take(unsigned_step).then(|| SKIP_SIGNATURE.to_owned());
            return Ok(Some(call_part(call, signature(&call.signature).or(needed))));
        }
        ContentPart::Opaque(_) if !own => return Ok(None),
        ContentPart::Opaque(data) if data.data.is_object() => data.data.clone(),
        ContentPart::Image(image) => image_part(image)?,
        ContentPart::Audio(audio) => audio_part(audio)?,
        ContentPart::Document(document) => document_part(document)?,
        ContentPart::ToolResult(_) | ContentPart::Opaque(_) | _ => {
            return Err(misplaced(part, "an assistant message"));
        }
    };
    Ok(Some(Part::Plain(fragment(&value))))
}

fn call_part(call: &ToolCall, signature: Option<String>) -> Part {
    let name = wire_name(&call.name);
    let function_call = FunctionCall { args: ObjectArguments(&call.arguments), id: &call.id, name: &name };
    let json = fragment(&CallPart { function_call, thought_signature: signature });
    Part::Call { id: call.id.clone(), name, json }
}

/// A `functionCall` part with borrowed arguments. Its fields are in the order of a [`Value`]'s.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CallPart<'a> {
    function_call: FunctionCall<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought_signature: Option<String>,
}

#[derive(Serialize)]
struct FunctionCall<'a> {
    args: ObjectArguments<'a>,
    id: &'a str,
    name: &'a str,
}

/// Encodes a result. The API requires an object: text is put under `result`, the text of a failure under `error`.
fn result_part(result: &ToolResult, images: Vec<Value>) -> Part {
    let response = match &result.content {
        Value::Object(_) if !result.is_error => result.content.clone(),
        _ if result.is_error => json!({"error": result.text()}),
        Value::Array(_) | Value::Bool(_) | Value::Number(_) => json!({"result": result.content}),
        Value::String(_) | Value::Null | Value::Object(_) => json!({"result": result.text()}),
    };
    let mut fields = Map::new();
    fields.insert("id".into(), result.tool_call_id.as_str().into());
    fields.insert("response".into(), response);
    if !images.is_empty() {
        fields.insert("parts".into(), images.into());
    }
    let mut object = serde_json::to_vec(&fields).unwrap_or_default();
    // Closes the enclosing object.
    object.push(b'}');
    Part::Result { id: result.tool_call_id.clone(), rest: Bytes::from(object.into_boxed_slice()).slice(1..) }
}

fn image_part(image: &ImageData) -> Result<Value, Error> {
    Ok(match image_form(image, NAME, &IMAGE_TYPES, MAX_IMAGE)? {
        ImageForm::Url(url) => file_part(url, image.media_type.as_deref()),
        ImageForm::Base64 { media_type, data } => {
            json!({"inlineData": {"mimeType": media_type, "data": data}})
        }
    })
}

fn audio_part(audio: &AudioData) -> Result<Value, Error> {
    media_part(&audio.source, audio.media_type.as_deref(), "audio/wav")
}

fn document_part(document: &DocumentData) -> Result<Value, Error> {
    media_part(&document.source, document.media_type.as_deref(), "application/pdf")
}

fn media_part(source: &MediaSource, media_type: Option<&str>, assumed: &str) -> Result<Value, Error> {
    Ok(match source {
        MediaSource::Url(url) => file_part(url, media_type),
        MediaSource::Data(blob) => {
            check_document(blob.as_bytes().len(), MAX_DOCUMENT, NAME)?;
            json!({"inlineData": {"mimeType": media_type.unwrap_or(assumed), "data": blob.to_base64()}})
        }
        MediaSource::Path(_) | _ => return Err(unread(NAME)),
    })
}

fn file_part(url: &str, media_type: Option<&str>) -> Value {
    match media_type {
        Some(media_type) => json!({"fileData": {"fileUri": url, "mimeType": media_type}}),
        // The API detects a missing media type.
        None => json!({"fileData": {"fileUri": url}}),
    }
}

/// Returns a function name in characters that the API accepts: models also call functions that do not exist.
fn wire_name(name: &str) -> String {
    let legal = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | ':' | '-') { c } else { '_' };
    let name: String = name.chars().take(MAX_NAME).map(legal).collect();
    match name.chars().next() {
        Some(first) if first.is_ascii_alphabetic() || first == '_' => name,
        Some(_) | None => format!("_{name}").chars().take(MAX_NAME).collect(),
    }
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
        encoded(&item, "gemini-x").unwrap();
        let is_memoised = |model: &str| {
            let mut fresh = false;
            item.encoding::<EncodedTurn>(NAME, model, |message| {
                fresh = true;
                turn(message, model).map_err(|error| Box::new(error.info().clone()))
            });
            !fresh
        };
        assert!(is_memoised("gemini-x"), "the second request reuses the encoding");
        assert!(!is_memoised("gemini-y"), "another model has other signatures");
    }
}
