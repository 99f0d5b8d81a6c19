//! Decoding of Chat Completions streams.

use pintle_llm::{Error, ErrorKind, Message, PartialToolCall, Response, Role, StreamEvent, ToolCall, Usage};
use serde::de::IgnoredAny;
use serde_json::Value;

use super::delta::{CallDelta, Chunk, Delta, Function, Piece, finish_reason, merge_details};
use super::response::{generated_id, refusal_part, signature_of, thinking};
use crate::dialect::{Decoder, SseEvent};
use crate::failure::{Failure, malformed};
use crate::lenient::{AnyText, Object};
use crate::openai_common::error::failure_of;
use crate::streamed_arguments::StreamedArguments;

/// Decoder of one streamed response.
///
/// The response is complete when a finish reason has been seen and the stream ends or `[DONE]` arrives: usage may follow the
/// finish reason, and some servers send no `[DONE]`.
#[derive(Debug)]
pub(crate) struct ChatDecoder {
    provider: String,
    seed: u64,
    started: bool,
    finished: bool,
    /// Number of text and reasoning segments so far, for their ids.
    segments: usize,
    open: Option<Segment>,
    details: Vec<Value>,
    /// Whether reasoning was received in `reasoning_content`.
    reasoning_content: bool,
    refusal: String,
    calls: Vec<Call>,
    finish: Option<String>,
    usage: Usage,
}

/// The open segment. A delta of the other kind ends it.
#[derive(Debug)]
enum Segment {
    Text { id: String },
    Reasoning { id: String, text: String },
}

/// A call that is being streamed.
#[derive(Debug)]
struct Call {
    index: Option<u64>,
    /// Id sent by the server, empty before it is sent.
    given_id: String,
    id: String,
    name: String,
    arguments: StreamedArguments,
    /// Its `extra_content` as text.
    signature: Option<String>,
    /// Whether its start has been emitted, which requires its name.
    started: bool,
    /// Whether the last delta repeated the name without arguments.
    is_name_repeated: bool,
}

impl ChatDecoder {
    pub(super) fn new(provider: &str, seed: u64) -> Self {
        Self {
            provider: provider.to_owned(),
            seed,
            started: false,
            finished: false,
            segments: 0,
            open: None,
            details: Vec::new(),
            reasoning_content: false,
            refusal: String::new(),
            calls: Vec::new(),
            finish: None,
            usage: Usage::default(),
        }
    }

    fn start(&mut self, id: &AnyText<'_>, model: &AnyText<'_>, out: &mut Vec<StreamEvent>) {
        if std::mem::replace(&mut self.started, true) {
            return;
        }
        let (id, model) = (id.non_empty().map(str::to_owned), model.non_empty().map(str::to_owned));
        out.push(StreamEvent::StreamStart { id, model, warnings: Vec::new() });
    }

    fn chunk(&mut self, mut chunk: Chunk<'_>, out: &mut Vec<StreamEvent>) {
        if let Some(usage) = chunk.take_usage() {
            self.usage = usage;
        }
        // The first chunk of some servers has neither choices nor id.
        let Some(choice) = chunk.choices.0 else { return };
        self.start(&chunk.id, &chunk.model, out);
        // Some servers send a complete message in a stream.
        if let Some(delta) = choice.delta.0.or(choice.message.0.map(|message| *message)) {
            self.delta(delta, out);
        }
        if let Some(reason) = choice.finish_reason.0 {
            self.finish = Some(reason.into_owned());
        }
    }

    fn delta(&mut self, mut delta: Delta<'_>, out: &mut Vec<StreamEvent>) {
        self.reasoning_content |= delta.has_reasoning_content();
        self.refusal.push_str(delta.refusal().unwrap_or_default());
        // Before the text: it ends the reasoning, whose end event contains the details.
        merge_details(&mut self.details, std::mem::take(&mut delta.reasoning_details.0));
        for piece in delta.pieces() {
            match piece {
                Piece::Text(text) => self.text(text, out),
                Piece::Reasoning(text) => self.reasoning(text, out),
            }
        }
        for Object(piece) in delta.tool_calls.0 {
            self.close_segment(out);
            self.call_delta(&piece.unwrap_or_default(), out);
        }
    }

    fn text(&mut self, delta: &str, out: &mut Vec<StreamEvent>) {
        if !matches!(self.open, Some(Segment::Text { .. })) {
            self.close_segment(out);
            let id = self.next_id();
            out.push(StreamEvent::TextStart { text_id: id.clone() });
            self.open = Some(Segment::Text { id });
        }
        if let Some(Segment::Text { id }) = &self.open {
            out.push(StreamEvent::TextDelta { text_id: id.clone(), delta: delta.to_owned() });
        }
    }

    fn reasoning(&mut self, delta: &str, out: &mut Vec<StreamEvent>) {
        if !matches!(self.open, Some(Segment::Reasoning { .. })) {
            self.close_segment(out);
            let id = self.next_id();
            out.push(StreamEvent::ReasoningStart { reasoning_id: id.clone() });
            self.open = Some(Segment::Reasoning { id, text: String::new() });
        }
        if let Some(Segment::Reasoning { id, text }) = &mut self.open {
            text.push_str(delta);
            let reasoning_delta = delta.to_owned();
            out.push(StreamEvent::ReasoningDelta { reasoning_id: id.clone(), reasoning_delta });
        }
    }

    fn next_id(&mut self) -> String {
        self.segments += 1;
        (self.segments - 1).to_string()
    }

    fn close_segment(&mut self, out: &mut Vec<StreamEvent>) {
        match self.open.take() {
            Some(Segment::Text { id }) => out.push(StreamEvent::TextEnd { text_id: id, signature: None }),
            Some(Segment::Reasoning { id, text }) => {
                let thinking = thinking(text, std::mem::take(&mut self.details), self.reasoning_content);
                out.push(StreamEvent::ReasoningEnd { reasoning_id: id, thinking });
            }
            None => {}
        }
    }

    /// Handles a delta of a call. It belongs to the last call with its index, unless it has another id or begins another
    /// call ([`Call::is_followed_by`]). Without index and id it belongs to the last call.
    fn call_delta(&mut self, delta: &CallDelta<'_>, out: &mut Vec<StreamEvent>) {
        let index = delta.index.0;
        let given = delta.id.non_empty().unwrap_or_default();
        let function = delta.function.0.as_ref();
        let belongs = |call: &Call| {
            let same_index = index.is_none() || call.index == index;
            same_index && (given.is_empty() || call.given_id.is_empty() || call.given_id == given)
        };
        let known = self.calls.iter().rposition(belongs);
        let ended =
            known.and_then(|at| self.calls.get(at)).filter(|call| call.is_followed_by(given, function));
        // Its name may have been in the last delta.
        let repeated_name = ended.map(|call| call.name.clone());
        let position = match (known, repeated_name) {
            (Some(at), None) => at,
            (_, repeated_name) => {
                let id = generated_id(self.seed, self.calls.len());
                let is_named = function.is_some_and(|function| function.name.non_empty().is_some());
                let name = repeated_name.filter(|_| !is_named).unwrap_or_default();
                self.calls.push(Call::new(index, id, name));
                self.calls.len() - 1
            }
        };
        // Two calls with one id could not be answered separately.
        let used = self.calls.iter().enumerate().any(|(at, call)| at != position && call.id == given);
        let given = if used { "" } else { given };
        if let Some(call) = self.calls.get_mut(position) {
            if let Some(extra) = signature_of(delta.extra_content.0.as_ref()) {
                call.signature = Some(extra);
            }
            call.take(given, function, out);
        }
    }

    fn complete(&mut self, out: &mut Vec<StreamEvent>) {
        self.start(&AnyText::default(), &AnyText::default(), out);
        self.close_segment(out);
        if !self.details.is_empty() {
            // Reasoning without readable text.
            let id = self.next_id();
            out.push(StreamEvent::ReasoningStart { reasoning_id: id.clone() });
            self.open = Some(Segment::Reasoning { id, text: String::new() });
            self.close_segment(out);
        }
        if !self.refusal.is_empty() {
            let part = refusal_part(&self.refusal);
            let raw = serde_json::json!({"refusal": self.refusal});
            out.push(StreamEvent::ProviderEvent { raw, part: Some(Box::new(part)) });
        }
        for call in &mut self.calls {
            call.close(out);
        }
        self.finished = true;
        out.push(StreamEvent::Finish {
            finish_reason: finish_reason(
                self.finish.as_deref(),
                !self.calls.is_empty(),
                !self.refusal.is_empty(),
            ),
            usage: std::mem::take(&mut self.usage),
            response: Box::new(Response::new(&self.provider, "", Message::new(Role::Assistant, Vec::new()))),
        });
    }
}

impl Decoder for ChatDecoder {
    fn feed(&mut self, event: SseEvent<'_>, out: &mut Vec<StreamEvent>) -> Result<(), Error> {
        if self.finished {
            return Ok(());
        }
        if event.data.trim() == "[DONE]" {
            self.complete(out);
            return Ok(());
        }
        let chunk: Object<Chunk<'_>> = match serde_json::from_str(event.data) {
            Ok(chunk) => chunk,
            Err(_) if event.is_keep_alive(|_| false) => return Ok(()),
            Err(error) => {
                return Err(
                    malformed(&self.provider, "a JSON chunk", event.data.as_bytes()).with_source(error)
                );
            }
        };
        let chunk = chunk.0.unwrap_or_default();
        if chunk.is_error() || event.name == "error" {
            let failure =
                Failure { provider: &self.provider, body: event.data.as_bytes(), ..Failure::default() };
            return Err(failure_of(failure));
        }
        self.chunk(chunk, out);
        Ok(())
    }

    fn end(&mut self, out: &mut Vec<StreamEvent>) -> Result<(), Error> {
        if self.finished {
            return Ok(());
        }
        if self.finish.is_some() {
            self.complete(out);
            return Ok(());
        }
        let message = "the stream ended before a finish reason";
        Err(Error::new(ErrorKind::Stream, message).with_provider(&self.provider))
    }
}

impl Call {
    fn new(index: Option<u64>, id: String, name: String) -> Self {
        Self {
            index,
            given_id: String::new(),
            id,
            name,
            arguments: StreamedArguments::default(),
            signature: None,
            started: false,
            is_name_repeated: false,
        }
    }

    /// Returns whether a delta begins another call: it names a function after the arguments of this one. Some servers
    /// give every call the index 0 and no id.
    ///
    /// Other servers repeat the name in every delta, so the same name begins a call only if this one is complete.
    fn is_followed_by(&self, given: &str, function: Option<&Function<'_>>) -> bool {
        let Some(function) = function else { return false };
        let has_same_id = !given.is_empty() && self.given_id == given;
        let arguments = self.arguments.text();
        if has_same_id || self.name.is_empty() || arguments.trim().is_empty() {
            return false;
        }
        match function.name.non_empty() {
            Some(name) if name != self.name => true,
            None if !self.is_name_repeated => false,
            Some(_) | None => {
                // Both are checked before the parser, because arguments may be megabytes long.
                let begins = function.arguments.0.trim_start().starts_with('{');
                let ends = arguments.trim_end().ends_with('}');
                begins && ends && serde_json::from_str::<IgnoredAny>(arguments).is_ok()
            }
        }
    }

    fn take(&mut self, given: &str, function: Option<&Function<'_>>, out: &mut Vec<StreamEvent>) {
        if !given.is_empty() && !self.started {
            given.clone_into(&mut self.given_id);
            given.clone_into(&mut self.id);
        }
        let name = function.and_then(|function| function.name.0.as_deref()).unwrap_or_default();
        let piece = function.map(|function| function.arguments.0.as_ref()).unwrap_or_default();
        let repeats_name = self.is_name_repeated || (!name.is_empty() && self.name == name);
        self.is_name_repeated = repeats_name && piece.trim().is_empty();
        // Some servers repeat the complete name in every delta.
        if self.name != name {
            self.name.push_str(name);
        }
        self.arguments.push(piece);
        if self.started {
            let delta = self.arguments.take_new();
            self.delta(delta, out);
        } else if !self.name.is_empty() {
            self.start(out);
        }
    }

    fn partial(&self) -> PartialToolCall {
        PartialToolCall { id: self.id.clone(), name: self.name.clone() }
    }

    fn start(&mut self, out: &mut Vec<StreamEvent>) {
        self.started = true;
        out.push(StreamEvent::ToolCallStart { tool_call: self.partial() });
        let delta = self.arguments.take_new();
        self.delta(delta, out);
    }

    fn delta(&self, delta: Option<String>, out: &mut Vec<StreamEvent>) {
        out.extend(delta.map(|delta| StreamEvent::ToolCallDelta { tool_call: self.partial(), delta }));
    }

    fn close(&mut self, out: &mut Vec<StreamEvent>) {
        if !self.started {
            self.start(out);
        }
        let delta = self.arguments.take_rest();
        self.delta(delta, out);
        let arguments = std::mem::take(&mut self.arguments).into_text();
        let tool_call =
            ToolCall::from_raw(&self.id, &self.name, arguments).with_signature(self.signature.take());
        out.push(StreamEvent::ToolCallEnd { tool_call });
    }
}
