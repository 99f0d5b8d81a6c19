//! Streamed answers.

use std::borrow::Cow;

use pintle_llm::{
    ContentPart, Error, ErrorKind, FinishReason, Message, OpaqueData, PartialToolCall, Response, Role,
    StreamEvent, ThinkingData, ToolCall, Warning,
};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use super::usage::Counts;
use super::{NAME, error, response};
use crate::dialect::{Decoder as Feed, SseEvent};
use crate::lenient::Text;

/// Turns the events of one streamed message into unified events.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    state: State,
    /// What the start of the stream says of the request.
    warnings: Vec<Warning>,
    model: String,
    stop_reason: Option<String>,
    counts: Counts,
    open: Vec<Open>,
    /// Blocks so far; numbers text and reasoning, since indexes may come twice.
    blocks: u64,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Waiting,
    Answering,
    Finished,
}

/// A block that has started and not stopped.
#[derive(Debug)]
struct Open {
    index: u64,
    block: Block,
}

#[derive(Debug)]
enum Block {
    Text { id: String },
    Thinking { id: String, text: String, signature: Option<String> },
    Call { id: String, name: String, input: Option<Value>, pieces: String },
    Opaque { block: Map<String, Value>, pieces: String },
}

/// Any event of the stream; what stands in it depends on `kind`.
#[derive(Debug, Deserialize)]
struct Event<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(default)]
    index: u64,
    #[serde(default)]
    message: Option<Value>,
    #[serde(default)]
    content_block: Option<Value>,
    #[serde(default, borrow)]
    delta: Option<Delta<'a>>,
    #[serde(default)]
    usage: Option<Map<String, Value>>,
    /// What the server has removed from the context.
    #[serde(default)]
    context_management: Option<IgnoredAny>,
}

/// Any delta: of a block, or of the message.
#[derive(Debug, Deserialize)]
struct Delta<'a> {
    #[serde(default, borrow)]
    text: Option<Text<'a>>,
    #[serde(default, borrow)]
    thinking: Option<Text<'a>>,
    #[serde(default, borrow)]
    signature: Option<Text<'a>>,
    #[serde(default, borrow)]
    partial_json: Option<Text<'a>>,
    #[serde(default)]
    stop_reason: Option<String>,
    /// Why the model refused.
    #[serde(default)]
    stop_details: Option<IgnoredAny>,
    /// Which of the texts that end an answer has ended it.
    #[serde(default)]
    stop_sequence: Option<IgnoredAny>,
    /// Where code ran, which the next request may name.
    #[serde(default)]
    container: Option<IgnoredAny>,
}

impl Delta<'_> {
    /// Whether it holds something that the unified model has no place for.
    fn says_more(&self) -> bool {
        [self.stop_details, self.stop_sequence, self.container].iter().any(Option::is_some)
    }
}

impl Feed for Decoder {
    fn feed(&mut self, event: SseEvent<'_>, out: &mut Vec<StreamEvent>) -> Result<(), Error> {
        if self.state == State::Finished || event.data.trim().is_empty() {
            return Ok(());
        }
        let data = event.data;
        let event: Event<'_> = serde_json::from_str(data)
            .map_err(|source| error::unreadable("a stream event", data.as_bytes(), source))?;
        match event.kind.as_ref() {
            "ping" => Ok(()),
            "error" => Err(error::reported(data.as_bytes())),
            "message_start" => self.start(&event.message.unwrap_or_default(), out),
            _ if self.state == State::Waiting => {
                let source = "the stream began with another event";
                Err(error::unreadable("`message_start`", data.as_bytes(), source))
            }
            "content_block_start" => {
                self.start_block(event.index, event.content_block.unwrap_or_default(), out);
                Ok(())
            }
            "content_block_delta" => self.block_delta(event.index, event.delta, data, out),
            "content_block_stop" => {
                self.stop_block(event.index, out);
                Ok(())
            }
            "message_delta" => {
                if event.context_management.is_some() || event.delta.as_ref().is_some_and(Delta::says_more) {
                    out.push(as_it_came(data));
                }
                self.message_delta(event.delta, event.usage);
                Ok(())
            }
            "message_stop" => {
                self.finish(out);
                Ok(())
            }
            _ => {
                out.push(as_it_came(data));
                Ok(())
            }
        }
    }

    fn end(&mut self, _out: &mut Vec<StreamEvent>) -> Result<(), Error> {
        if self.state == State::Finished {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Stream, "the stream ended before `message_stop`").with_provider(NAME))
    }
}

impl Decoder {
    /// A decoder for an answer whose request gave rise to these warnings.
    pub(super) fn new(warnings: Vec<Warning>) -> Self {
        Self { warnings, ..Self::default() }
    }

    fn start(&mut self, message: &Value, out: &mut Vec<StreamEvent>) -> Result<(), Error> {
        if self.state != State::Waiting {
            let found = message.to_string();
            let source = "a second message began in the stream";
            return Err(error::unreadable("one message", found.as_bytes(), source));
        }
        self.state = State::Answering;
        let text = |name: &str| message.get(name).and_then(Value::as_str).map(str::to_owned);
        self.model = text("model").unwrap_or_default();
        self.stop_reason = text("stop_reason");
        if let Some(usage) = message.get("usage").and_then(Value::as_object) {
            self.counts.restate(usage.clone());
        }
        let warnings = std::mem::take(&mut self.warnings);
        out.push(StreamEvent::StreamStart { id: text("id"), model: text("model"), warnings });
        // A whole answer may stand here, with no block of its own to follow.
        let blocks = message.get("content").and_then(Value::as_array);
        for (index, block) in (0..).zip(blocks.into_iter().flatten()) {
            self.start_block(index, block.clone(), out);
            self.stop_block(index, out);
        }
        Ok(())
    }

    fn start_block(&mut self, index: u64, block: Value, out: &mut Vec<StreamEvent>) {
        // A block whose stop was lost ends where the next one of its index begins.
        self.stop_block(index, out);
        let id = self.blocks.to_string();
        self.blocks += 1;
        let block = match response::part(&block) {
            ContentPart::Text(data) => {
                out.push(StreamEvent::TextStart { text_id: id.clone() });
                push_text(&id, data.text, out);
                Block::Text { id }
            }
            ContentPart::Thinking(data) if data.redacted => {
                out.push(StreamEvent::ReasoningStart { reasoning_id: id.clone() });
                out.push(StreamEvent::ReasoningEnd { reasoning_id: id, thinking: data });
                return;
            }
            ContentPart::Thinking(data) => {
                out.push(StreamEvent::ReasoningStart { reasoning_id: id.clone() });
                push_reasoning(&id, &data.text, out);
                Block::Thinking { id, text: data.text, signature: data.signature }
            }
            ContentPart::ToolCall(call) => {
                let tool_call = PartialToolCall { id: call.id.clone(), name: call.name.clone() };
                out.push(StreamEvent::ToolCallStart { tool_call });
                // Streams open a block with an empty `input`, and its pieces replace that.
                let input = block.get("input").cloned();
                Block::Call { id: call.id, name: call.name, input, pieces: String::new() }
            }
            ContentPart::Image(_)
            | ContentPart::Audio(_)
            | ContentPart::Document(_)
            | ContentPart::ToolResult(_)
            | ContentPart::Opaque(_)
            | _ => {
                let Value::Object(block) = block else { return };
                Block::Opaque { block, pieces: String::new() }
            }
        };
        self.open.push(Open { index, block });
    }

    fn block_delta(
        &mut self,
        index: u64,
        delta: Option<Delta<'_>>,
        data: &str,
        out: &mut Vec<StreamEvent>,
    ) -> Result<(), Error> {
        let (Some(delta), Some(open)) = (delta, self.open.iter_mut().find(|open| open.index == index)) else {
            let source = "no such block is open";
            return Err(error::unreadable("a delta of an open block", data.as_bytes(), source));
        };
        match &mut open.block {
            Block::Text { id } if delta.text.is_some() => {
                push_text(id, delta.text.unwrap_or_default().0.into_owned(), out);
            }
            Block::Thinking { id, text, signature } => {
                let piece = delta.thinking.unwrap_or_default().0;
                text.push_str(&piece);
                push_reasoning(id, &piece, out);
                if let Some(Text(more)) = delta.signature.filter(|more| !more.0.is_empty()) {
                    signature.get_or_insert_default().push_str(&more);
                }
            }
            Block::Call { id, name, pieces, .. } => {
                let piece = delta.partial_json.unwrap_or_default().0.into_owned();
                if !piece.is_empty() {
                    pieces.push_str(&piece);
                    let tool_call = PartialToolCall { id: id.clone(), name: name.clone() };
                    out.push(StreamEvent::ToolCallDelta { tool_call, delta: piece });
                }
            }
            Block::Opaque { block, pieces } => match delta.partial_json {
                Some(Text(piece)) => pieces.push_str(&piece),
                None => grow(block, data),
            },
            // Citations, and whatever else accompanies text.
            Block::Text { .. } => out.push(as_it_came(data)),
        }
        Ok(())
    }

    fn stop_block(&mut self, index: u64, out: &mut Vec<StreamEvent>) {
        let Some(place) = self.open.iter().position(|open| open.index == index) else { return };
        match self.open.remove(place).block {
            Block::Text { id } => out.push(StreamEvent::TextEnd { text_id: id, signature: None }),
            Block::Thinking { id, text, signature } => {
                self.counts.saw_thinking(&text);
                let thinking = ThinkingData::new(text).with_signature(signature);
                out.push(StreamEvent::ReasoningEnd { reasoning_id: id, thinking });
            }
            Block::Call { id, name, input, pieces } => {
                let tool_call = if pieces.is_empty() {
                    response::call(&id, &name, input.as_ref())
                } else {
                    ToolCall::from_raw(id, name, pieces)
                };
                out.push(StreamEvent::ToolCallEnd { tool_call });
            }
            Block::Opaque { mut block, pieces } => {
                if let Ok(input) = serde_json::from_str(&pieces) {
                    block.insert("input".into(), input);
                }
                let kind = block.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
                let raw = Value::Object(block);
                let part = ContentPart::Opaque(OpaqueData { kind, data: raw.clone() });
                out.push(StreamEvent::ProviderEvent { raw, part: Some(Box::new(part)) });
            }
        }
    }

    fn message_delta(&mut self, delta: Option<Delta<'_>>, usage: Option<Map<String, Value>>) {
        if let Some(reason) = delta.and_then(|delta| delta.stop_reason) {
            self.stop_reason = Some(reason);
        }
        if let Some(usage) = usage {
            self.counts.restate(usage);
        }
    }

    fn finish(&mut self, out: &mut Vec<StreamEvent>) {
        while let Some(open) = self.open.first() {
            let index = open.index;
            self.stop_block(index, out);
        }
        self.state = State::Finished;
        let finish_reason: FinishReason = response::finish_reason(self.stop_reason.as_deref());
        let usage = std::mem::take(&mut self.counts).usage();
        let empty = Message::new(Role::Assistant, Vec::new());
        let response = Box::new(Response::new(NAME, std::mem::take(&mut self.model), empty));
        out.push(StreamEvent::Finish { finish_reason, usage, response });
    }
}

fn push_text(id: &str, delta: String, out: &mut Vec<StreamEvent>) {
    if !delta.is_empty() {
        out.push(StreamEvent::TextDelta { text_id: id.to_owned(), delta });
    }
}

fn push_reasoning(id: &str, delta: &str, out: &mut Vec<StreamEvent>) {
    if !delta.is_empty() {
        out.push(StreamEvent::ReasoningDelta {
            reasoning_id: id.to_owned(),
            reasoning_delta: delta.to_owned(),
        });
    }
}

/// Adds a delta of a kind that the unified model does not know to its block: texts grow, all else is set.
fn grow(block: &mut Map<String, Value>, data: &str) {
    let event: Map<String, Value> = serde_json::from_str(data).unwrap_or_default();
    let Some(delta) = event.get("delta").and_then(Value::as_object) else { return };
    for (name, value) in delta.iter().filter(|(name, _)| *name != "type") {
        match (block.get_mut(name), value) {
            (Some(Value::String(text)), Value::String(more)) => text.push_str(more),
            _ => {
                block.insert(name.clone(), value.clone());
            }
        }
    }
}

fn as_it_came(data: &str) -> StreamEvent {
    let raw = serde_json::from_str(data).unwrap_or_default();
    StreamEvent::ProviderEvent { raw, part: None }
}
