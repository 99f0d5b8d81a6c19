//! Output items of a stream.

use std::io::{self, Write};

use pintle_llm::{ContentPart, PartialToolCall, StreamEvent, ToolCall};
use serde_json::Value;

use crate::openai::response::{
    arguments_text, call_id, content_part, given_call_id, opaque, reasoning_text, thinking,
};
use crate::streamed_arguments::StreamedArguments;

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
    state: ItemState,
}

#[derive(Debug)]
enum ItemState {
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
    /// Arguments received in deltas, or in the event that ends them.
    arguments: StreamedArguments,
    /// Arguments of the event that ends them, if the deltas were different.
    corrected: Option<String>,
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
            "message" => ItemState::Message { segments: Vec::new(), refused: false },
            "reasoning" => {
                out.push(StreamEvent::ReasoningStart { reasoning_id: position.to_string() });
                ItemState::Reasoning { text: String::new(), part: None }
            }
            "function_call" | "custom_tool_call" => {
                let id = call_id(raw, seed, position);
                let mut call = Call::new(id, text("name"), kind == "custom_tool_call");
                call.start(out);
                ItemState::Call(call)
            }
            _ => ItemState::Other,
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
        let ItemState::Reasoning { text, part } = &mut self.state else { return };
        let before = part.replace(from);
        let is_new_part = before.is_some_and(|before| before != from);
        let delta = if is_new_part { format!("\n\n{delta}") } else { delta.to_owned() };
        push_reasoning(self.position, text, delta, out);
    }

    pub(super) fn call_delta(&mut self, delta: &str, out: &mut Vec<StreamEvent>) {
        if let ItemState::Call(call) = &mut self.state {
            call.push(delta, out);
        }
    }

    /// Handles the complete arguments of a call.
    pub(super) fn arguments_done(&mut self, full: String, out: &mut Vec<StreamEvent>) {
        if let ItemState::Call(call) = &mut self.state {
            call.complete_arguments(full, out);
        }
    }

    /// Ends the item. `raw` is the item as its end has it, or null if the end never came.
    pub(super) fn close(&mut self, raw: Value, out: &mut Vec<StreamEvent>) {
        if std::mem::replace(&mut self.done, true) {
            return;
        }
        match &mut self.state {
            ItemState::Message { .. } => self.close_message(&raw, out),
            ItemState::Reasoning { text, .. } => {
                if text.is_empty() {
                    push_reasoning(self.position, text, reasoning_text(&raw), out);
                }
                let thinking = thinking(&raw, std::mem::take(text));
                out.push(StreamEvent::ReasoningEnd { reasoning_id: self.position.to_string(), thinking });
            }
            ItemState::Call(call) => call.close(raw, out),
            ItemState::Other if raw.is_null() => {}
            ItemState::Other => {
                let part = Some(Box::new(opaque(&raw)));
                out.push(StreamEvent::ProviderEvent { raw, part });
            }
        }
    }

    /// Returns whether `json` is the minimal JSON encoding of the streamed arguments.
    pub(super) fn has_streamed(&self, json: &str) -> bool {
        let ItemState::Call(call) = &self.state else { return false };
        let mut rest = ExpectBytes(json.as_bytes());
        let streamed = call.arguments.text();
        !streamed.is_empty() && serde_json::to_writer(&mut rest, streamed).is_ok() && rest.0.is_empty()
    }

    pub(super) fn is_call(&self) -> bool {
        matches!(self.state, ItemState::Call(_))
    }

    pub(super) fn is_refusal(&self) -> bool {
        matches!(self.state, ItemState::Message { refused: true, .. })
    }

    fn close_message(&mut self, raw: &Value, out: &mut Vec<StreamEvent>) {
        let content = raw.get("content").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        for (index, part) in (0u64..).zip(content) {
            match content_part(part) {
                Some(ContentPart::Text(data)) => self.text_done(index, &data.text, out),
                Some(other) => {
                    if let (ItemState::Message { refused, .. }, "refusal") = (&mut self.state, other.kind()) {
                        *refused = true;
                    }
                    out.push(StreamEvent::ProviderEvent { raw: part.clone(), part: Some(Box::new(other)) });
                }
                None => {}
            }
        }
        if let ItemState::Message { segments, .. } = &mut self.state {
            for segment in segments {
                segment.close("", out);
            }
        }
    }

    fn segment(&mut self, content_index: u64, out: &mut Vec<StreamEvent>) -> Option<&mut Segment> {
        let ItemState::Message { segments, .. } = &mut self.state else { return None };
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
    fn new(id: String, name: String, custom: bool) -> Self {
        Self { id, name, custom, started: false, arguments: Self::no_arguments(custom), corrected: None }
    }

    fn no_arguments(custom: bool) -> StreamedArguments {
        if custom { StreamedArguments::of_free_text() } else { StreamedArguments::default() }
    }

    fn partial(&self) -> PartialToolCall {
        PartialToolCall { id: self.id.clone(), name: self.name.clone() }
    }

    fn start(&mut self, out: &mut Vec<StreamEvent>) {
        if !self.started && !self.name.is_empty() {
            self.started = true;
            out.push(StreamEvent::ToolCallStart { tool_call: self.partial() });
        }
    }

    fn push(&mut self, delta: &str, out: &mut Vec<StreamEvent>) {
        self.arguments.push(delta);
        if self.started {
            let delta = self.arguments.take_new();
            self.emit(delta, out);
        }
    }

    fn emit(&self, delta: Option<String>, out: &mut Vec<StreamEvent>) {
        out.extend(delta.map(|delta| StreamEvent::ToolCallDelta { tool_call: self.partial(), delta }));
    }

    /// Handles complete arguments: emits the rest of the deltas, or keeps the arguments if the deltas were different.
    fn complete_arguments(&mut self, full: String, out: &mut Vec<StreamEvent>) {
        if let Some(rest) = self.missing_part(&full) {
            self.push(rest, out);
        } else if !self.arguments.is_blank_text(&full) {
            self.corrected = Some(full);
        }
    }

    /// Returns the part of the complete arguments that no delta had: all of them if only a placeholder was sent; `None` if
    /// the deltas were different.
    fn missing_part<'a>(&self, full: &'a str) -> Option<&'a str> {
        let rest = full.strip_prefix(self.arguments.text());
        rest.or_else(|| self.arguments.is_withheld().then_some(full))
    }

    fn close(&mut self, mut raw: Value, out: &mut Vec<StreamEvent>) {
        let field = if self.custom { "input" } else { "arguments" };
        let mut full = arguments_text(raw.get_mut(field).map(Value::take));
        if self.arguments.is_blank_text(&full) {
            // Earlier events may have had the arguments.
            if let Some(corrected) = self.corrected.take() {
                full = corrected;
            } else if !self.arguments.is_blank() {
                full.clear();
            }
        }
        if !self.started {
            // It has no start event, so nothing has been emitted.
            if let Some(id) = given_call_id(&raw) {
                id.clone_into(&mut self.id);
            }
            self.name = raw.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
            if !full.is_empty() {
                self.arguments = Self::no_arguments(self.custom);
            }
            self.started = true;
            out.push(StreamEvent::ToolCallStart { tool_call: self.partial() });
        }
        if let Some(rest) = self.missing_part(&full) {
            self.push(rest, out);
        }
        let rest = self.arguments.take_rest();
        self.emit(rest, out);
        // The final item is authoritative: the provider continues from it. Only one copy is kept, because arguments may be
        // megabytes long.
        let streamed = std::mem::take(&mut self.arguments).into_text();
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
