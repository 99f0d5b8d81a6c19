//! Output items of a stream.

use std::io::{self, Write};

use pintle_llm::{ContentPart, PartialToolCall, StreamEvent, ToolCall};
use serde_json::Value;

use crate::openai::response::{call_id, content_part, given_call_id, opaque, reasoning_text, thinking};

/// An output item. [`Item::close`] ends every segment that it has started.
#[derive(Debug)]
pub(super) struct Item {
    /// Index in the output, if the server sends one.
    pub(super) index: Option<u64>,
    /// Id at its start. Later events may have another one.
    pub(super) id: String,
    pub(super) done: bool,
    /// Position among the items of the response, used in segment ids.
    position: usize,
    state: State,
}

#[derive(Debug)]
enum State {
    Message { segments: Vec<Segment>, refused: bool },
    Reasoning { text: String, part: Option<(Option<u64>, Option<u64>)> },
    Call(Call),
    Other,
}

/// One text of a message.
#[derive(Debug)]
struct Segment {
    content_index: u64,
    id: String,
    /// Number of bytes emitted.
    length: usize,
    /// Whether a character may have been replaced, so that `length` is not an offset in the final text.
    lossy: bool,
    open: bool,
}

#[derive(Debug)]
struct Call {
    id: String,
    name: String,
    custom: bool,
    /// Whether its start has been emitted, which requires its name.
    started: bool,
    arguments: String,
}

impl Item {
    /// Opens an item.
    pub(super) fn open(
        position: usize,
        seed: u64,
        index: Option<u64>,
        raw: &Value,
        out: &mut Vec<StreamEvent>,
    ) -> Self {
        let text = |name: &str| raw.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let kind = text("type");
        let state = match kind.as_str() {
            "message" => State::Message { segments: Vec::new(), refused: false },
            "reasoning" => {
                out.push(StreamEvent::ReasoningStart { reasoning_id: position.to_string() });
                State::Reasoning { text: String::new(), part: None }
            }
            "function_call" | "custom_tool_call" => {
                let id = call_id(raw, seed, position);
                let custom = kind == "custom_tool_call";
                let mut call =
                    Call { id, name: text("name"), custom, started: false, arguments: String::new() };
                call.start(out);
                State::Call(call)
            }
            _ => State::Other,
        };
        Self { index, id: text("id"), done: false, position, state }
    }

    pub(super) fn text_delta(&mut self, content_index: u64, delta: &str, out: &mut Vec<StreamEvent>) {
        if let Some(segment) = self.segment(content_index, out) {
            segment.push(delta, out);
        }
    }

    pub(super) fn text_done(&mut self, content_index: u64, full: &str, out: &mut Vec<StreamEvent>) {
        if let Some(segment) = self.segment(content_index, out) {
            segment.close(full, out);
        }
    }

    /// Handles a reasoning delta. A new part starts a new paragraph.
    pub(super) fn reasoning_delta(
        &mut self,
        from: (Option<u64>, Option<u64>),
        delta: &str,
        out: &mut Vec<StreamEvent>,
    ) {
        let State::Reasoning { text, part } = &mut self.state else { return };
        let before = part.replace(from);
        let is_new_part = before.is_some_and(|before| before != from);
        let delta = if is_new_part { format!("\n\n{delta}") } else { delta.to_owned() };
        push_reasoning(self.position, text, delta, out);
    }

    pub(super) fn call_delta(&mut self, delta: &str, out: &mut Vec<StreamEvent>) {
        if let State::Call(call) = &mut self.state {
            call.push(delta, out);
        }
    }

    /// Ends the item. `raw` is the item as its end has it, or null if the end never came.
    pub(super) fn close(&mut self, raw: Value, out: &mut Vec<StreamEvent>) {
        if std::mem::replace(&mut self.done, true) {
            return;
        }
        match &mut self.state {
            State::Message { .. } => self.close_message(&raw, out),
            State::Reasoning { text, .. } => {
                if text.is_empty() {
                    push_reasoning(self.position, text, reasoning_text(&raw), out);
                }
                let thinking = thinking(&raw, std::mem::take(text));
                out.push(StreamEvent::ReasoningEnd { reasoning_id: self.position.to_string(), thinking });
            }
            State::Call(call) => call.close(raw, out),
            State::Other if raw.is_null() => {}
            State::Other => {
                let part = Some(Box::new(opaque(&raw)));
                out.push(StreamEvent::ProviderEvent { raw, part });
            }
        }
    }

    /// Returns whether `json` is the minimal JSON encoding of the streamed arguments.
    pub(super) fn has_streamed(&self, json: &str) -> bool {
        let State::Call(call) = &self.state else { return false };
        let mut rest = ExpectBytes(json.as_bytes());
        !call.arguments.is_empty()
            && serde_json::to_writer(&mut rest, &call.arguments).is_ok()
            && rest.0.is_empty()
    }

    pub(super) fn is_call(&self) -> bool {
        matches!(self.state, State::Call(_))
    }

    pub(super) fn is_refusal(&self) -> bool {
        matches!(self.state, State::Message { refused: true, .. })
    }

    fn close_message(&mut self, raw: &Value, out: &mut Vec<StreamEvent>) {
        let content = raw.get("content").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        for (index, part) in (0u64..).zip(content) {
            match content_part(part) {
                Some(ContentPart::Text(data)) => self.text_done(index, &data.text, out),
                Some(other) => {
                    if let (State::Message { refused, .. }, "refusal") = (&mut self.state, other.kind()) {
                        *refused = true;
                    }
                    out.push(StreamEvent::ProviderEvent { raw: part.clone(), part: Some(Box::new(other)) });
                }
                None => {}
            }
        }
        if let State::Message { segments, .. } = &mut self.state {
            for segment in segments {
                segment.close("", out);
            }
        }
    }

    fn segment(&mut self, content_index: u64, out: &mut Vec<StreamEvent>) -> Option<&mut Segment> {
        let State::Message { segments, .. } = &mut self.state else { return None };
        let known = segments.iter().position(|segment| segment.content_index == content_index);
        let position = known.unwrap_or_else(|| {
            let id = format!("{}.{content_index}", self.position);
            out.push(StreamEvent::TextStart { text_id: id.clone() });
            segments.push(Segment { content_index, id, length: 0, lossy: false, open: true });
            segments.len() - 1
        });
        segments.get_mut(position)
    }
}

/// Writer that fails unless exactly these bytes are written.
struct ExpectBytes<'a>(&'a [u8]);

impl Write for ExpectBytes<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.strip_prefix(bytes).ok_or(io::ErrorKind::InvalidData)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Segment {
    fn push(&mut self, delta: &str, out: &mut Vec<StreamEvent>) {
        if self.open && !delta.is_empty() {
            self.length += delta.len();
            self.lossy |= !delta.is_ascii() && delta.contains(char::REPLACEMENT_CHARACTER);
            out.push(StreamEvent::TextDelta { text_id: self.id.clone(), delta: delta.to_owned() });
        }
    }

    /// Emits the part of `full` beyond the deltas, and the end.
    fn close(&mut self, full: &str, out: &mut Vec<StreamEvent>) {
        if !self.open {
            return;
        }
        if !self.lossy {
            self.push(full.get(self.length..).unwrap_or_default(), out);
        }
        self.open = false;
        out.push(StreamEvent::TextEnd { text_id: self.id.clone(), signature: None });
    }
}

impl Call {
    fn start(&mut self, out: &mut Vec<StreamEvent>) {
        if !self.started && !self.name.is_empty() {
            self.started = true;
            let tool_call = PartialToolCall { id: self.id.clone(), name: self.name.clone() };
            out.push(StreamEvent::ToolCallStart { tool_call });
        }
    }

    fn push(&mut self, delta: &str, out: &mut Vec<StreamEvent>) {
        self.arguments.push_str(delta);
        if self.started && !delta.is_empty() {
            let tool_call = PartialToolCall { id: self.id.clone(), name: self.name.clone() };
            out.push(StreamEvent::ToolCallDelta { tool_call, delta: delta.to_owned() });
        }
    }

    fn close(&mut self, mut raw: Value, out: &mut Vec<StreamEvent>) {
        let field = if self.custom { "input" } else { "arguments" };
        let full = match raw.get_mut(field).map(Value::take) {
            Some(Value::String(full)) => full,
            _ => String::new(),
        };
        if !self.started {
            // It has no start event, so nothing has been emitted.
            if let Some(id) = given_call_id(&raw) {
                id.clone_into(&mut self.id);
            }
            self.name = raw.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
            let held = std::mem::take(&mut self.arguments);
            self.started = true;
            let tool_call = PartialToolCall { id: self.id.clone(), name: self.name.clone() };
            out.push(StreamEvent::ToolCallStart { tool_call });
            self.push(if full.is_empty() { &held } else { &full }, out);
        } else if let Some(rest) = full.strip_prefix(self.arguments.as_str()) {
            self.push(rest, out);
        }
        // The final item is authoritative: the provider continues from it. Only one copy is kept, because arguments may be
        // megabytes long.
        let streamed = std::mem::take(&mut self.arguments);
        let arguments = Some(full).filter(|full| !full.is_empty()).unwrap_or(streamed);
        let tool_call = if self.custom {
            ToolCall::custom(&self.id, &self.name, arguments)
        } else {
            ToolCall::from_raw(&self.id, &self.name, arguments)
        };
        out.push(StreamEvent::ToolCallEnd { tool_call });
    }
}

fn push_reasoning(position: usize, text: &mut String, delta: String, out: &mut Vec<StreamEvent>) {
    if !delta.is_empty() {
        text.push_str(&delta);
        let reasoning_id = position.to_string();
        out.push(StreamEvent::ReasoningDelta { reasoning_id, reasoning_delta: delta });
    }
}
