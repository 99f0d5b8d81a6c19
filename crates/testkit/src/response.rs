//! Responses of the scripted model, independent of the dialect.

mod anthropic;
mod chat;
mod gemini;
mod openai;

#[cfg(test)]
mod tests;

use serde_json::Value;

use crate::dialect::Dialect;
use crate::fingerprint;
use crate::prefix::{InputTokens, output_tokens};
use crate::script::{Call, ErrorEvent, Finish, Turn};
use crate::seal::Seal;

/// Creation time of every response. It is fixed, so that responses are reproducible byte for byte.
const CREATED: u64 = 1_767_225_600;

/// Target size range of a streamed piece of text, in bytes.
const MIN_PIECE: usize = 4;
const MAX_PIECE: usize = 24;
/// Maximum number of pieces of a text. A longer text has longer pieces.
const MAX_PIECES: usize = 256;

/// One event of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    event: Option<String>,
    data: String,
}

impl Frame {
    fn with_event(event: &str, data: &Value) -> Self {
        Self { event: Some(event.to_owned()), data: data.to_string() }
    }

    fn without_event(data: &Value) -> Self {
        Self { event: None, data: data.to_string() }
    }

    /// Encodes the event as a server-sent event.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let event = self.event.as_ref().map(|event| format!("event: {event}\n")).unwrap_or_default();
        format!("{event}data: {}\n\n", self.data).into_bytes()
    }
}

/// A response with ids and usage.
#[derive(Debug)]
pub(crate) struct ModelResponse<'a> {
    /// Unique key of conversation and turn, from which ids are derived.
    key: String,
    model: &'a str,
    turn: &'a Turn,
    /// Index of the turn in its dialect.
    index: usize,
    reasoning: Option<Reasoning<'a>>,
    calls: Vec<(String, &'a Call)>,
    input: InputTokens,
    stream_usage: bool,
}

/// Reasoning with its seal.
#[derive(Debug)]
struct Reasoning<'a> {
    text: &'a str,
    seal: String,
}

/// Inputs of a response.
#[derive(Debug)]
pub(crate) struct ResponseSpec<'a> {
    pub(crate) script: &'a str,
    pub(crate) dialect: Dialect,
    pub(crate) model: &'a str,
    pub(crate) conversation: u64,
    pub(crate) index: usize,
    pub(crate) turn: &'a Turn,
    pub(crate) input: InputTokens,
    pub(crate) stream_usage: bool,
    /// Whether a response without scripted reasoning must begin with empty reasoning.
    pub(crate) requires_thinking: bool,
    pub(crate) gemini_call_ids: bool,
}

impl<'a> ModelResponse<'a> {
    pub(crate) fn new(parts: &ResponseSpec<'a>) -> Self {
        let turn = parts.turn;
        let reasoning = turn.reasoning.as_deref().or(parts.requires_thinking.then_some(""));
        let calls =
            turn.calls.iter().enumerate().map(|(index, call)| (call_id(parts, index), call)).collect();
        Self {
            key: fingerprint::hex(&[
                parts.script,
                parts.dialect.name(),
                &parts.conversation.to_string(),
                &parts.index.to_string(),
            ]),
            model: parts.model,
            turn,
            index: parts.index,
            reasoning: reasoning
                .map(|text| Reasoning { text, seal: Seal::new(parts.dialect, parts.index, text).close() }),
            calls,
            input: parts.input,
            stream_usage: parts.stream_usage,
        }
    }

    /// Encodes a streamed response. The last event is the terminal one.
    pub(crate) fn frames(&self, dialect: Dialect) -> Vec<Frame> {
        match dialect {
            Dialect::OpenAiResponses => openai::frames(self),
            Dialect::AnthropicMessages => anthropic::frames(self),
            Dialect::Gemini => gemini::frames(self),
            Dialect::ChatCompletions => chat::frames(self),
        }
    }

    /// Encodes a complete response.
    pub(crate) fn complete(&self, dialect: Dialect) -> Value {
        match dialect {
            Dialect::OpenAiResponses => openai::complete(self),
            Dialect::AnthropicMessages => anthropic::complete(self),
            Dialect::Gemini => gemini::complete(self),
            Dialect::ChatCompletions => chat::complete(self),
        }
    }

    fn text(&self) -> &str {
        self.turn.text.as_deref().unwrap_or_default()
    }

    fn finish(&self) -> Finish {
        self.turn.finish.unwrap_or(Finish::Stop)
    }

    fn reasoning_tokens(&self) -> usize {
        self.reasoning.as_ref().map_or(0, |reasoning| output_tokens(reasoning.text))
    }

    /// Returns the number of tokens of text and calls, without reasoning.
    fn visible_tokens(&self) -> usize {
        let calls =
            self.calls.iter().map(|(_, call)| output_tokens(&call.tool) + output_tokens(&call.input_text()));
        output_tokens(self.text()) + calls.sum::<usize>()
    }
}

/// Returns the id of a call in the format of its dialect. It is the same on every attempt.
///
/// Gemini's is empty unless ids are enabled.
pub(crate) fn call_id(parts: &ResponseSpec<'_>, call: usize) -> String {
    let hex = fingerprint::hex(&[
        parts.script,
        parts.dialect.name(),
        parts.model,
        &parts.index.to_string(),
        &call.to_string(),
    ]);
    let short = hex.get(..24).unwrap_or(&hex);
    match parts.dialect {
        Dialect::OpenAiResponses | Dialect::ChatCompletions => format!("call_{short}"),
        Dialect::AnthropicMessages => format!("toolu_01{short}"),
        Dialect::Gemini if parts.gemini_call_ids => short.to_owned(),
        Dialect::Gemini => String::new(),
    }
}

/// Returns the Gemini API's error for an invalid key, which is not a 401 as with other providers.
pub(crate) fn gemini_wrong_key() -> Value {
    gemini::wrong_key()
}

/// An error, independent of the dialect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ErrorBody<'a> {
    pub(crate) status: u16,
    pub(crate) message: &'a str,
    /// The field at fault, if any.
    pub(crate) field: Option<&'a str>,
    /// Retry delay in seconds, for dialects that put it in the body.
    pub(crate) retry_after: Option<u64>,
}

impl ErrorBody<'_> {
    /// Returns the message prefixed with the field, for clients that show only the message.
    fn text(&self) -> String {
        match self.field {
            Some(field) if !field.is_empty() => format!("{field}: {}", self.message),
            Some(_) | None => self.message.to_owned(),
        }
    }

    /// Encodes the body of an error response.
    pub(crate) fn body(&self, dialect: Dialect) -> Value {
        match dialect {
            Dialect::OpenAiResponses | Dialect::ChatCompletions => openai::error(self),
            Dialect::AnthropicMessages => anthropic::error(self),
            Dialect::Gemini => gemini::error(self),
        }
    }
}

/// Encodes an error event within a stream.
pub(crate) fn error_frame(dialect: Dialect, event: ErrorEvent, sequence: usize) -> Frame {
    match dialect {
        Dialect::OpenAiResponses => openai::error_frame(event, sequence),
        Dialect::AnthropicMessages => anthropic::error_frame(event),
        Dialect::Gemini => gemini::error_frame(event),
        Dialect::ChatCompletions => chat::error_frame(event),
    }
}

/// Returns the HTTP status of an error that is reported instead of a stream.
pub(crate) fn event_status(dialect: Dialect, event: ErrorEvent) -> u16 {
    match (dialect, event) {
        (_, ErrorEvent::RateLimit) => 429,
        (_, ErrorEvent::ServerError) => 500,
        (Dialect::AnthropicMessages, ErrorEvent::Overloaded) => 529,
        (Dialect::OpenAiResponses | Dialect::Gemini | Dialect::ChatCompletions, ErrorEvent::Overloaded) => {
            503
        }
    }
}

/// Returns the message of an error event.
pub(crate) fn event_message(event: ErrorEvent) -> &'static str {
    match event {
        ErrorEvent::Overloaded => "The model is overloaded. Please try again later.",
        ErrorEvent::RateLimit => "Rate limit reached. Please slow down.",
        ErrorEvent::ServerError => "The server had an error while processing the request.",
    }
}

/// Returns `object` with `members` added, replacing existing ones.
fn with_members(mut object: Value, members: Value) -> Value {
    if let (Some(object), Value::Object(members)) = (object.as_object_mut(), members) {
        object.extend(members);
    }
    object
}

/// Splits a text into pieces, after white space if possible and never inside a character.
fn pieces(text: &str) -> Vec<&str> {
    let target = (text.len() / 4).clamp(MIN_PIECE, MAX_PIECE).max(text.len().div_ceil(MAX_PIECES));
    let mut pieces = Vec::new();
    let mut start = 0;
    for (index, character) in text.char_indices() {
        let end = index + character.len_utf8();
        let length = end - start;
        if (length >= target && character.is_whitespace()) || length >= 2 * target {
            pieces.extend(text.get(start..end));
            start = end;
        }
    }
    pieces.extend(text.get(start..).filter(|rest| !rest.is_empty()));
    pieces
}
