//! Decoding of streamed responses.

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
use crate::dialect::{Decoder as StreamDecoder, SseEvent};
use crate::lenient::Text;
use crate::streamed_arguments::StreamedArguments;

/// Decoder of one streamed message.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    state: StreamState,
    /// Warnings for the start event.
    warnings: Vec<Warning>,
    model: String,
    stop_reason: Option<String>,
    counts: Counts,
    open: Vec<OpenBlock>,
    /// Number of blocks so far. It numbers text and reasoning, because indexes may repeat.
    blocks: u64,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum StreamState {
    #[default]
    /// Before `message_start`.
    Waiting,
    Started,
    Finished,
}

/// A block that has started and not stopped.
#[derive(Debug)]
struct OpenBlock {
    index: u64,
    block: Block,
}

#[derive(Debug)]
enum Block {
    Text { id: String },
    Thinking { id: String, text: String, signature: Option<String> },
    Call { id: String, name: String, input: Option<Value>, arguments: StreamedArguments },
    Opaque { block: Map<String, Value>, buffer: String },
}

/// Any event of the stream. Its fields depend on `kind`.
#[derive(Debug, Deserialize)]
struct Event<'a> {
    #[serde(rename = "type", borrow, default)]
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
    /// Content that the server removed from the context.
    #[serde(default)]
    context_management: Option<IgnoredAny>,
}

/// A delta of a block or of the message.
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
    /// Reason for a refusal.
    #[serde(default)]
    stop_details: Option<IgnoredAny>,
    /// The stop sequence that ended the response.
    #[serde(default)]
    stop_sequence: Option<IgnoredAny>,
    /// Container of executed code, which the next request may name.
    #[serde(default)]
    container: Option<IgnoredAny>,
}

impl Delta<'_> {
    /// Returns whether it continues the arguments of a call.
    fn has_arguments(&self) -> bool {
        is_given(self.partial_json.as_ref())
    }

    /// Returns whether it contains data that the unified model does not represent.
    fn has_extra(&self) -> bool {
        [self.stop_details, self.stop_sequence, self.container].iter().any(Option::is_some)
    }
}

impl StreamDecoder for Decoder {
    fn feed(&mut self, event: SseEvent<'_>, out: &mut Vec<StreamEvent>) -> Result<(), Error> {
        if self.state == StreamState::Finished {
            return Ok(());
        }
        let data = event.data;
        let mut parsed: Event<'_> = match serde_json::from_str(data) {
            Ok(parsed) => parsed,
            Err(_) if event.is_keep_alive(is_event) => return Ok(()),
            Err(source) => return Err(error::unreadable("a stream event", data.as_bytes(), source)),
        };
        if parsed.kind.is_empty() {
            parsed.kind = event.name.into();
        }
        let event = parsed;
        match event.kind.as_ref() {
            "" | "ping" => Ok(()),
            "error" => Err(error::reported(data.as_bytes())),
            "message_start" => self.start(&event.message.unwrap_or_default(), out),
            kind if self.state == StreamState::Waiting => {
                if !is_event(kind) {
                    return Ok(());
                }
                let source = "the stream started with another event";
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
                if event.context_management.is_some() || event.delta.as_ref().is_some_and(Delta::has_extra) {
                    out.push(raw_event(data));
                }
                self.message_delta(event.delta, event.usage);
                Ok(())
            }
            "message_stop" => {
                self.finish(out);
                Ok(())
            }
            _ => {
                out.push(raw_event(data));
                Ok(())
            }
        }
    }

    fn end(&mut self, _out: &mut Vec<StreamEvent>) -> Result<(), Error> {
        if self.state == StreamState::Finished {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Stream, "the stream ended before `message_stop`").with_provider(NAME))
    }
}

impl Decoder {
    /// Creates a decoder whose start event carries these warnings.
    pub(super) fn new(warnings: Vec<Warning>) -> Self {
        Self { warnings, ..Self::default() }
    }

    fn start(&mut self, message: &Value, out: &mut Vec<StreamEvent>) -> Result<(), Error> {
        if self.state != StreamState::Waiting {
            let found = message.to_string();
            let source = "a second message started in the stream";
            return Err(error::unreadable("one message", found.as_bytes(), source));
        }
        self.state = StreamState::Started;
        let text = |name: &str| message.get(name).and_then(Value::as_str).map(str::to_owned);
        self.model = text("model").unwrap_or_default();
        self.stop_reason = text("stop_reason");
        if let Some(usage) = message.get("usage").and_then(Value::as_object) {
            self.counts.restate(usage.clone());
        }
        let warnings = std::mem::take(&mut self.warnings);
        out.push(StreamEvent::StreamStart { id: text("id"), model: text("model"), warnings });
        // The complete content may be here, with no block events to follow.
        let blocks = message.get("content").and_then(Value::as_array);
        for (index, block) in (0..).zip(blocks.into_iter().flatten()) {
            self.start_block(index, block.clone(), out);
            self.stop_block(index, out);
        }
        Ok(())
    }

    fn start_block(&mut self, index: u64, block: Value, out: &mut Vec<StreamEvent>) {
        // A block without a stop event ends when the next one with its index begins.
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
                // Streams open a block with an empty `input`, which the deltas replace.
                let input = block.get("input").cloned();
                Block::Call { id: call.id, name: call.name, input, arguments: StreamedArguments::default() }
            }
            ContentPart::Image(_)
            | ContentPart::Audio(_)
            | ContentPart::Document(_)
            | ContentPart::ToolResult(_)
            | ContentPart::Opaque(_)
            | _ => {
                let Value::Object(block) = block else { return };
                Block::Opaque { block, buffer: String::new() }
            }
        };
        self.open.push(OpenBlock { index, block });
    }

    /// Opens a block of text or thinking that the delta continues, if the server sent no start for it.
    fn open_missing_block(&mut self, index: u64, delta: &Delta<'_>, out: &mut Vec<StreamEvent>) {
        let open = self.open.iter().find(|open| open.index == index).map(|open| &open.block);
        let takes_text = matches!(open, Some(Block::Text { .. } | Block::Opaque { .. }));
        let takes_thinking = matches!(open, Some(Block::Thinking { .. } | Block::Opaque { .. }));
        let kind = if is_given(delta.text.as_ref()) && !takes_text {
            "text"
        } else if is_given(delta.thinking.as_ref()) && !takes_thinking {
            "thinking"
        } else {
            return;
        };
        self.start_block(index, serde_json::json!({"type": kind}), out);
    }

    fn block_delta(
        &mut self,
        index: u64,
        delta: Option<Delta<'_>>,
        data: &str,
        out: &mut Vec<StreamEvent>,
    ) -> Result<(), Error> {
        let Some(delta) = delta else { return Ok(()) };
        self.open_missing_block(index, &delta, out);
        let has_arguments = delta.has_arguments();
        let takes_arguments =
            |open: &OpenBlock| matches!(open.block, Block::Call { .. } | Block::Opaque { .. });
        let takes = |open: &OpenBlock| open.index == index && (!has_arguments || takes_arguments(open));
        let position = self.open.iter().position(takes).or_else(|| {
            // The start of the call may have had another index.
            let is_call = |open: &OpenBlock| matches!(open.block, Block::Call { .. });
            self.open.iter().rposition(is_call).filter(|_| has_arguments)
        });
        let Some(open) = position.and_then(|at| self.open.get_mut(at)) else {
            if !has_arguments {
                out.push(raw_event(data));
                return Ok(());
            }
            // Arguments without the name of their tool.
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
            Block::Call { id, name, arguments, .. } => {
                arguments.push(&delta.partial_json.unwrap_or_default().0);
                if let Some(delta) = arguments.take_new() {
                    let tool_call = PartialToolCall { id: id.clone(), name: name.clone() };
                    out.push(StreamEvent::ToolCallDelta { tool_call, delta });
                }
            }
            Block::Opaque { block, buffer } => match delta.partial_json {
                Some(Text(piece)) => buffer.push_str(&piece),
                None => merge_delta(block, data),
            },
            // Citations and other annotations of text.
            Block::Text { .. } => out.push(raw_event(data)),
        }
        Ok(())
    }

    fn stop_block(&mut self, index: u64, out: &mut Vec<StreamEvent>) {
        let Some(position) = self.open.iter().position(|open| open.index == index) else { return };
        match self.open.remove(position).block {
            Block::Text { id } => out.push(StreamEvent::TextEnd { text_id: id, signature: None }),
            Block::Thinking { id, text, signature } => {
                self.counts.add_thinking(&text);
                let thinking = ThinkingData::new(text).with_signature(signature);
                out.push(StreamEvent::ReasoningEnd { reasoning_id: id, thinking });
            }
            Block::Call { id, name, input, mut arguments } => {
                let has_input =
                    input.as_ref().and_then(Value::as_object).is_some_and(|input| !input.is_empty());
                let tool_call = if arguments.text().is_empty() || (has_input && arguments.is_blank()) {
                    response::call(&id, &name, input.as_ref())
                } else {
                    if let Some(delta) = arguments.take_rest() {
                        let tool_call = PartialToolCall { id: id.clone(), name: name.clone() };
                        out.push(StreamEvent::ToolCallDelta { tool_call, delta });
                    }
                    ToolCall::from_raw(id, name, arguments.into_text())
                };
                out.push(StreamEvent::ToolCallEnd { tool_call });
            }
            Block::Opaque { mut block, buffer } => {
                if let Ok(input) = serde_json::from_str(&buffer) {
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
        self.state = StreamState::Finished;
        let finish_reason: FinishReason = response::finish_reason(self.stop_reason.as_deref());
        let usage = std::mem::take(&mut self.counts).usage();
        let empty = Message::new(Role::Assistant, Vec::new());
        let response = Box::new(Response::new(NAME, std::mem::take(&mut self.model), empty));
        out.push(StreamEvent::Finish { finish_reason, usage, response });
    }
}

/// Returns whether this is the name of an event of the dialect.
fn is_event(name: &str) -> bool {
    matches!(name, "error" | "ping") || name.starts_with("message_") || name.starts_with("content_block_")
}

fn is_given(text: Option<&Text<'_>>) -> bool {
    text.is_some_and(|Text(text)| !text.is_empty())
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

/// Merges a delta of an unknown kind into its block: strings are appended, other values are set.
fn merge_delta(block: &mut Map<String, Value>, data: &str) {
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

fn raw_event(data: &str) -> StreamEvent {
    let raw = serde_json::from_str(data).unwrap_or_default();
    StreamEvent::ProviderEvent { raw, part: None }
}
