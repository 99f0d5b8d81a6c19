//! An answer of the scripted model, before it takes the form of a dialect.

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

/// The moment that every answer names as its own: the server has no clock, so that its answers repeat byte for byte.
const CREATED: u64 = 1_767_225_600;

/// Bytes of a piece of a streamed text, at least and at most, as far as words allow.
const SMALLEST_PIECE: usize = 4;
const LARGEST_PIECE: usize = 24;
/// The most pieces of a text; a longer text has longer pieces.
const MOST_PIECES: usize = 256;

/// One event of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    event: Option<String>,
    data: String,
}

impl Frame {
    fn named(event: &str, data: &Value) -> Self {
        Self { event: Some(event.to_owned()), data: data.to_string() }
    }

    fn unnamed(data: &Value) -> Self {
        Self { event: None, data: data.to_string() }
    }

    /// The event as server-sent events have it.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let event = self.event.as_ref().map(|event| format!("event: {event}\n")).unwrap_or_default();
        format!("{event}data: {}\n\n", self.data).into_bytes()
    }
}

/// What the model says, with ids and usage.
#[derive(Debug)]
pub(crate) struct Answer<'a> {
    /// Unique for conversation and turn; ids of the dialect are made of it.
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

/// What an answer is made of.
#[derive(Debug)]
pub(crate) struct Parts<'a> {
    pub(crate) script: &'a str,
    pub(crate) dialect: Dialect,
    pub(crate) model: &'a str,
    pub(crate) conversation: u64,
    pub(crate) index: usize,
    pub(crate) turn: &'a Turn,
    pub(crate) input: InputTokens,
    pub(crate) stream_usage: bool,
    /// Whether an answer without scripted reasoning must begin with empty reasoning all the same.
    pub(crate) must_think: bool,
    pub(crate) gemini_call_ids: bool,
}

impl<'a> Answer<'a> {
    pub(crate) fn new(parts: &Parts<'a>) -> Self {
        let turn = parts.turn;
        let reasoning = turn.reasoning.as_deref().or(parts.must_think.then_some(""));
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

    /// The events of a streamed answer, the last of them the terminal one.
    pub(crate) fn frames(&self, dialect: Dialect) -> Vec<Frame> {
        match dialect {
            Dialect::OpenAiResponses => openai::frames(self),
            Dialect::AnthropicMessages => anthropic::frames(self),
            Dialect::Gemini => gemini::frames(self),
            Dialect::ChatCompletions => chat::frames(self),
        }
    }

    /// The body of an answer that is not streamed.
    pub(crate) fn whole(&self, dialect: Dialect) -> Value {
        match dialect {
            Dialect::OpenAiResponses => openai::whole(self),
            Dialect::AnthropicMessages => anthropic::whole(self),
            Dialect::Gemini => gemini::whole(self),
            Dialect::ChatCompletions => chat::whole(self),
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

    /// The tokens of text and calls, without reasoning.
    fn visible_tokens(&self) -> usize {
        let calls =
            self.calls.iter().map(|(_, call)| output_tokens(&call.tool) + output_tokens(&call.input_text()));
        output_tokens(self.text()) + calls.sum::<usize>()
    }
}

/// The id of a call by the convention of its dialect; the same turn gives the same id on every attempt.
///
/// Gemini's is empty unless ids are asked for.
pub(crate) fn call_id(parts: &Parts<'_>, call: usize) -> String {
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

/// The answer of the Gemini API to a key that is wrong: unlike other providers, not a 401.
pub(crate) fn gemini_wrong_key() -> Value {
    gemini::wrong_key()
}

/// An error of a dialect, before it takes the dialect's form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ErrorBody<'a> {
    pub(crate) status: u16,
    pub(crate) message: &'a str,
    /// The field at fault, where there is one.
    pub(crate) field: Option<&'a str>,
    /// Whole seconds to wait, for dialects that tell it in the body.
    pub(crate) retry_after: Option<u64>,
}

impl ErrorBody<'_> {
    /// The message with the field in front, for clients that show the message alone.
    fn text(&self) -> String {
        match self.field {
            Some(field) if !field.is_empty() => format!("{field}: {}", self.message),
            Some(_) | None => self.message.to_owned(),
        }
    }

    /// The body of an error answer.
    pub(crate) fn body(&self, dialect: Dialect) -> Value {
        match dialect {
            Dialect::OpenAiResponses | Dialect::ChatCompletions => openai::error(self),
            Dialect::AnthropicMessages => anthropic::error(self),
            Dialect::Gemini => gemini::error(self),
        }
    }
}

/// The event that reports an error in the middle of a stream.
pub(crate) fn error_frame(dialect: Dialect, event: ErrorEvent, sequence: usize) -> Frame {
    match dialect {
        Dialect::OpenAiResponses => openai::error_frame(event, sequence),
        Dialect::AnthropicMessages => anthropic::error_frame(event),
        Dialect::Gemini => gemini::error_frame(event),
        Dialect::ChatCompletions => chat::error_frame(event),
    }
}

/// The status that belongs to an error event where it comes instead of a stream.
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

/// What an error event says.
pub(crate) fn event_message(event: ErrorEvent) -> &'static str {
    match event {
        ErrorEvent::Overloaded => "The model is overloaded. Please try again later.",
        ErrorEvent::RateLimit => "Rate limit reached. Please slow down.",
        ErrorEvent::ServerError => "The server had an error while processing the request.",
    }
}

/// An object with the members of another put over its own.
fn with(mut object: Value, members: Value) -> Value {
    if let (Some(object), Value::Object(members)) = (object.as_object_mut(), members) {
        object.extend(members);
    }
    object
}

/// A text in several pieces, cut after blanks where it has some and never inside a character.
fn pieces(text: &str) -> Vec<&str> {
    let target = (text.len() / 4).clamp(SMALLEST_PIECE, LARGEST_PIECE).max(text.len().div_ceil(MOST_PIECES));
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
