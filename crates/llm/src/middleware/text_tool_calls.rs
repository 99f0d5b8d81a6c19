//! Tool calls that a model writes as text, made calls.

mod candidate;
mod parse;
mod recognizer;
mod stream;

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::parse::WrittenCall;
use self::recognizer::{Piece, Recognizer};
use super::{Middleware, Mode, Next, Reply};
use crate::content::{ContentPart, TextData, ToolCall};
use crate::error::Error;
use crate::request::Request;
use crate::response::{Finish, Response};
use crate::tool::{ToolChoice, ToolItem};

/// A form in which models write a tool call as text, where their server does not read it for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TextToolCallForm {
    /// `<tool_call>{"name": …, "arguments": …}</tool_call>`: Hermes, Qwen.
    Hermes,
    /// `<function=NAME><parameter=KEY>…</parameter></function>`, or JSON in place of the parameters, with or without
    /// `<tool_call>` around it: Qwen Coder, Llama.
    Function,
    /// `[TOOL_CALLS]` before a list of calls, or before `NAME[ARGS]{…}`: Mistral.
    Mistral,
    /// `<|python_tag|>` before a JSON object: Llama.
    PythonTag,
    /// An answer that begins with the JSON of a call, or of a list of them: Llama, and others whose server leaves the
    /// marker out.
    Json,
    /// A fenced block of `json` or `tool_call` that holds the JSON of a call.
    FencedJson,
    /// The special tokens of DeepSeek, from `<｜tool▁calls▁begin｜>` to `<｜tool▁calls▁end｜>`.
    DeepSeek,
}

/// Makes calls of the tool calls that a model writes as text in one of the given forms. For servers that do not do so
/// themselves; off unless a host registers it.
///
/// What counts as a call is strict, since anything else stays text, to the character:
///
/// * the whole of one of the forms, up to 1 MiB, with nothing but name, arguments (an object) and the usual `id` and
///   `type` in its JSON; of several calls in one block each must be so. An end marker that is missing at the very end of
///   the answer is forgiven, since servers take it for a stop word, but not where a stream breaks;
/// * the name of a tool that the request offers;
/// * outside of fenced code blocks, of code spans, which end with their line here, of lines that begin with `>`, and of
///   `<think>` at the start of an answer: there a model explains, quotes or thinks.
///
/// In a stream, text passes as it comes; only what may be the beginning of a call is held back until that is decided.
/// A call is whole when it shows. Its id is `text_call_N`, counted over the conversation, so that the same conversation
/// has the same ids; with a call in it, an answer that stopped ends for the reason [`Finish::ToolCalls`]. White space
/// that alone surrounds calls is left out.
///
/// Register it inside of [`Logging`](super::Logging) and [`ResponseCache`](super::ResponseCache), which then see calls.
#[derive(Clone, Debug)]
pub struct TextToolCalls {
    forms: BTreeSet<TextToolCallForm>,
}

impl TextToolCalls {
    /// Recognises these forms. Without any, everything passes as it is.
    #[must_use]
    pub fn new(forms: impl IntoIterator<Item = TextToolCallForm>) -> Self {
        Self { forms: forms.into_iter().collect() }
    }

    /// What is needed to read the answer to a request; `None` if no call can be in it.
    fn reader(&self, request: &Request) -> Option<Reader> {
        let may_call = request.tool_choice != Some(ToolChoice::None) && !request.tools.is_empty();
        (may_call && !self.forms.is_empty()).then(|| Reader {
            forms: self.forms.clone(),
            offered: Offered::of(&request.tools),
            next: next_number(request),
        })
    }
}

#[async_trait]
impl Middleware for TextToolCalls {
    async fn handle(&self, request: Request, mode: Mode, next: Next<'_>) -> Result<Reply, Error> {
        let reader = self.reader(&request);
        let reply = next.run(request, mode).await?;
        Ok(match (reply, reader) {
            (reply, None) => reply,
            (Reply::Response(response), Some(mut reader)) => {
                Reply::Response(Box::new(reader.read(*response)))
            }
            (Reply::Stream(events), Some(reader)) => Reply::Stream(stream::read(events, reader)),
        })
    }
}

/// The tools that may be called, each with the parameters that take text as it stands.
#[derive(Clone, Debug, Default)]
struct Offered(BTreeMap<String, BTreeSet<String>>);

impl Offered {
    fn of(tools: &[ToolItem]) -> Self {
        Self(tools.iter().map(|tool| (tool.name.clone(), texts(&tool.parameters))).collect())
    }

    fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    fn takes_text(&self, name: &str, parameter: &str) -> bool {
        self.0.get(name).is_some_and(|texts| texts.contains(parameter))
    }
}

/// The properties of a schema that may be strings.
fn texts(schema: &Value) -> BTreeSet<String> {
    let is_text = |property: &Value| match property.get("type") {
        Some(Value::String(kind)) => kind == "string",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "string"),
        Some(_) | None => false,
    };
    let properties = schema.get("properties").and_then(Value::as_object);
    let texts = properties.into_iter().flatten().filter(|(_, property)| is_text(property));
    texts.map(|(name, _)| name.clone()).collect()
}

/// The first number of an id that is free in the conversation.
fn next_number(request: &Request) -> u64 {
    let numbers = request
        .messages
        .iter()
        .flat_map(|item| item.tool_calls())
        .filter_map(|call| call.id.strip_prefix(ID)?.parse::<u64>().ok());
    numbers.max().unwrap_or(0).saturating_add(1)
}

/// What an id begins with.
const ID: &str = "text_call_";

/// Reads one answer.
#[derive(Clone, Debug)]
struct Reader {
    forms: BTreeSet<TextToolCallForm>,
    offered: Offered,
    /// The number of the next call.
    next: u64,
}

impl Reader {
    fn recognizer(&self) -> Recognizer {
        Recognizer::new(&self.forms, self.offered.clone())
    }

    fn call(&mut self, written: WrittenCall) -> ToolCall {
        let id = format!("{ID}{}", self.next);
        self.next = self.next.saturating_add(1);
        ToolCall::from_raw(id, written.name, written.arguments)
    }

    /// The answer with its calls.
    fn read(&mut self, mut response: Response) -> Response {
        let first = self.next;
        let parts = std::mem::take(&mut response.message.content);
        for part in parts {
            match part {
                ContentPart::Text(data) => self.read_text(data, &mut response.message.content),
                ContentPart::Image(_)
                | ContentPart::Audio(_)
                | ContentPart::Document(_)
                | ContentPart::ToolCall(_)
                | ContentPart::ToolResult(_)
                | ContentPart::Thinking(_)
                | ContentPart::Opaque(_) => response.message.content.push(part),
            }
        }
        if self.next != first {
            called(&mut response.finish_reason.reason);
        }
        response
    }

    fn read_text(&mut self, data: TextData, out: &mut Vec<ContentPart>) {
        let mut recognizer = self.recognizer();
        let mut pieces = Vec::new();
        recognizer.feed(&data.text, &mut pieces);
        recognizer.finish(&mut pieces);
        if !pieces.iter().any(|piece| matches!(piece, Piece::Call(_))) {
            out.push(ContentPart::Text(data));
            return;
        }
        // A signature was over the whole text.
        let mut text = String::new();
        let close = |text: &mut String, out: &mut Vec<ContentPart>| {
            let text = std::mem::take(text);
            out.extend((!text.trim().is_empty()).then(|| ContentPart::text(text)));
        };
        for piece in pieces {
            match piece {
                Piece::Text(more) => text.push_str(&more),
                Piece::Call(written) => {
                    close(&mut text, out);
                    out.push(self.call(written).into());
                }
            }
        }
        close(&mut text, out);
    }
}

/// The reason of an answer with calls in its text. An answer that was cut off stays that.
fn called(reason: &mut Finish) {
    match reason {
        Finish::Stop | Finish::Other => *reason = Finish::ToolCalls,
        Finish::ToolCalls | Finish::Length | Finish::ContentFilter | Finish::Error => {}
    }
}

#[cfg(test)]
mod tests;
