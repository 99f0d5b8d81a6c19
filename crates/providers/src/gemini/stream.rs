//! Decoding of streamed responses.

use pintle_llm::{
    ContentPart, Error, ErrorKind, Message, OpaqueData, PartialToolCall, Response, Role, StreamEvent,
    ThinkingData, ToolCall,
};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use super::arguments::{self, PartialArg};
use super::{NAME, error, response, usage};
use crate::dialect::{Decoder as StreamDecoder, SseEvent};

/// Decoder of one streamed response.
///
/// The dialect has no final event: the response is complete if a finish reason was seen before the end of the stream.
#[derive(Debug)]
pub(crate) struct Decoder {
    model: String,
    seed: u64,
    started: bool,
    finish: Option<Finish>,
    usage: Map<String, Value>,
    segment: Option<Segment>,
    segments: u64,
    call: Option<Call>,
    calls: u64,
}

/// Text or thoughts that are still growing.
#[derive(Debug)]
enum Segment {
    Text { id: String },
    Thoughts { id: String, text: String },
}

/// A call whose arguments are incomplete.
#[derive(Debug)]
struct Call {
    id: String,
    name: String,
    arguments: Map<String, Value>,
    signature: Option<String>,
}

#[derive(Debug)]
enum Finish {
    Reason(String),
    /// The prompt was blocked, so there is no candidate.
    Blocked(String),
    Done,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Chunk {
    #[serde(default)]
    candidates: Vec<Candidate>,
    #[serde(default)]
    prompt_feedback: Option<Feedback>,
    #[serde(default)]
    usage_metadata: Option<Map<String, Value>>,
    #[serde(default)]
    model_version: Option<String>,
    #[serde(default)]
    response_id: Option<String>,
    #[serde(default)]
    error: Option<IgnoredAny>,
}

impl Chunk {
    /// Returns whether it has no field of the dialect, as a keep-alive.
    fn is_blank(&self) -> bool {
        self.candidates.is_empty()
            && self.prompt_feedback.is_none()
            && self.usage_metadata.is_none()
            && self.model_version.is_none()
            && self.response_id.is_none()
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate {
    #[serde(default)]
    index: u64,
    #[serde(default)]
    content: Option<Content>,
    #[serde(default)]
    finish_reason: Option<String>,
    #[serde(default)]
    finish_message: Option<String>,
    #[serde(default)]
    grounding_metadata: Option<Value>,
    #[serde(default)]
    citation_metadata: Option<Value>,
    #[serde(default)]
    url_context_metadata: Option<Value>,
    #[serde(default)]
    safety_ratings: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct Content {
    #[serde(default)]
    parts: Vec<Map<String, Value>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Feedback {
    #[serde(default)]
    block_reason: Option<String>,
    #[serde(default)]
    safety_ratings: Option<Value>,
}

/// A call or a delta of one.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct FunctionCall {
    id: Option<String>,
    name: Option<String>,
    args: Option<Value>,
    partial_args: Option<Vec<PartialArg>>,
    will_continue: Option<bool>,
}

impl StreamDecoder for Decoder {
    fn feed(&mut self, event: SseEvent<'_>, out: &mut Vec<StreamEvent>) -> Result<(), Error> {
        let data = event.data.trim();
        let chunk: Chunk = match serde_json::from_str(data) {
            Ok(chunk) => chunk,
            Err(_) if event.is_keep_alive(|_| false) => return Ok(()),
            Err(source) => return Err(error::unreadable("a response", data.as_bytes(), source)),
        };
        if chunk.error.is_some() {
            return Err(error::reported(data.as_bytes()));
        }
        if chunk.is_blank() {
            return Ok(());
        }
        if !self.started {
            self.started = true;
            let model = chunk.model_version.clone();
            out.push(StreamEvent::StreamStart { id: chunk.response_id.clone(), model, warnings: Vec::new() });
        }
        if let Some(counts) = chunk.usage_metadata {
            self.usage.extend(counts);
        }
        if let Some(Feedback { block_reason: Some(reason), safety_ratings }) = chunk.prompt_feedback {
            push_metadata(out, [("safetyRatings", safety_ratings)]);
            self.finish = Some(Finish::Blocked(reason));
        }
        // Requests never ask for more than one candidate.
        for candidate in chunk.candidates.into_iter().filter(|candidate| candidate.index == 0) {
            self.candidate(candidate, data, out)?;
        }
        Ok(())
    }

    fn end(&mut self, out: &mut Vec<StreamEvent>) -> Result<(), Error> {
        let has_calls = self.calls > 0;
        let finish_reason = match self.finish.replace(Finish::Done) {
            Some(Finish::Reason(raw)) => response::finish_reason(&raw, has_calls),
            Some(Finish::Blocked(raw)) => response::blocked(raw),
            Some(Finish::Done) => return Ok(()),
            None => {
                return Err(Error::new(ErrorKind::Stream, "the response ended before a `finishReason`")
                    .with_provider(NAME));
            }
        };
        self.close_segment(None, out);
        self.close_call(out);
        let usage = usage::usage(std::mem::take(&mut self.usage));
        let empty = Message::new(Role::Assistant, Vec::new());
        let response = Box::new(Response::new(NAME, self.model.clone(), empty));
        out.push(StreamEvent::Finish { finish_reason, usage, response });
        Ok(())
    }
}

impl Decoder {
    /// Creates a decoder for a response of this model. Missing call ids are derived from `seed`.
    pub(super) fn new(model: &str, seed: u64) -> Self {
        Self {
            model: model.to_owned(),
            seed,
            started: false,
            finish: None,
            usage: Map::new(),
            segment: None,
            segments: 0,
            call: None,
            calls: 0,
        }
    }

    fn candidate(
        &mut self,
        candidate: Candidate,
        data: &str,
        out: &mut Vec<StreamEvent>,
    ) -> Result<(), Error> {
        for part in candidate.content.map(|content| content.parts).unwrap_or_default() {
            self.part(part, data, out)?;
        }
        let is_abnormal = candidate.finish_reason.as_deref().is_some_and(|reason| reason != "STOP");
        let message = candidate.finish_message.filter(|_| is_abnormal).map(Value::String);
        push_metadata(
            out,
            [
                ("finishMessage", message),
                ("groundingMetadata", candidate.grounding_metadata),
                ("citationMetadata", candidate.citation_metadata),
                ("urlContextMetadata", candidate.url_context_metadata),
                // Every chunk has them, and they matter only if they explain the end.
                ("safetyRatings", candidate.safety_ratings.filter(|_| is_abnormal)),
            ],
        );
        if let Some(reason) = candidate.finish_reason {
            self.finish = Some(Finish::Reason(reason));
        }
        Ok(())
    }

    fn part(
        &mut self,
        mut part: Map<String, Value>,
        data: &str,
        out: &mut Vec<StreamEvent>,
    ) -> Result<(), Error> {
        let known = |name: &str| matches!(name, "text" | "thought" | "thoughtSignature" | "functionCall");
        let signature = part.get("thoughtSignature").and_then(Value::as_str).map(str::to_owned);
        if let Some(call) = part.remove("functionCall").filter(|call| !call.is_null()) {
            let call = serde_json::from_value(call)
                .map_err(|source| error::unreadable("a function call", data.as_bytes(), source))?;
            return self.function_call(call, signature, data, out);
        }
        if let Some(kind) = part.keys().find(|name| !known(name)).cloned()
            && !part.contains_key("text")
        {
            self.close_segment(None, out);
            self.close_call(out);
            let raw = Value::Object(part);
            let opaque = ContentPart::Opaque(OpaqueData { kind, data: raw.clone() });
            out.push(StreamEvent::ProviderEvent { raw, part: Some(Box::new(opaque)) });
            return Ok(());
        }
        let thought = part.get("thought").and_then(Value::as_bool).unwrap_or_default();
        let text = match part.remove("text") {
            Some(Value::String(text)) => text,
            Some(_) | None => String::new(),
        };
        self.text(text, thought, signature, out);
        Ok(())
    }

    /// Appends text to the open segment. Signed text gets its own segment, because its signature is returned on that part.
    fn text(&mut self, text: String, thought: bool, signature: Option<String>, out: &mut Vec<StreamEvent>) {
        if text.is_empty() && signature.is_none() {
            return;
        }
        self.close_call(out);
        let joins = match &self.segment {
            Some(Segment::Text { .. }) => !thought,
            Some(Segment::Thoughts { .. }) => thought,
            None => false,
        };
        if !joins || signature.is_some() {
            self.close_segment(None, out);
            self.open_segment(thought, out);
        }
        match &mut self.segment {
            Some(Segment::Text { id }) if !text.is_empty() => {
                out.push(StreamEvent::TextDelta { text_id: id.clone(), delta: text });
            }
            Some(Segment::Thoughts { id, text: all }) if !text.is_empty() => {
                all.push_str(&text);
                out.push(StreamEvent::ReasoningDelta { reasoning_id: id.clone(), reasoning_delta: text });
            }
            Some(Segment::Text { .. } | Segment::Thoughts { .. }) | None => {}
        }
        if signature.is_some() {
            self.close_segment(signature, out);
        }
    }

    fn open_segment(&mut self, thought: bool, out: &mut Vec<StreamEvent>) {
        let id = self.segments.to_string();
        self.segments += 1;
        self.segment = Some(if thought {
            out.push(StreamEvent::ReasoningStart { reasoning_id: id.clone() });
            Segment::Thoughts { id, text: String::new() }
        } else {
            out.push(StreamEvent::TextStart { text_id: id.clone() });
            Segment::Text { id }
        });
    }

    fn close_segment(&mut self, signature: Option<String>, out: &mut Vec<StreamEvent>) {
        match self.segment.take() {
            Some(Segment::Text { id }) => out.push(StreamEvent::TextEnd { text_id: id, signature }),
            Some(Segment::Thoughts { id, text }) => {
                let thinking = ThinkingData::new(text).with_signature(signature);
                out.push(StreamEvent::ReasoningEnd { reasoning_id: id, thinking });
            }
            None => {}
        }
    }

    fn function_call(
        &mut self,
        delta: FunctionCall,
        signature: Option<String>,
        data: &str,
        out: &mut Vec<StreamEvent>,
    ) -> Result<(), Error> {
        self.close_segment(None, out);
        let unexpected = |expected: &str, source: &str| error::unreadable(expected, data.as_bytes(), source);
        let mut call = match (self.call.take(), delta.name) {
            (open, Some(name)) => {
                self.call = open;
                self.close_call(out);
                self.open_call(delta.id, name, out)
            }
            (Some(open), None) => open,
            (None, None) if delta.args.is_none() && delta.partial_args.is_none() => return Ok(()),
            (None, None) => {
                return Err(unexpected("the name of a function", "the arguments belong to no call"));
            }
        };
        if signature.is_some() {
            call.signature = signature;
        }
        match delta.args {
            None | Some(Value::Null) => {}
            Some(Value::Object(arguments)) => call.arguments.extend(arguments),
            Some(_) => return Err(unexpected("arguments as an object", "`args` is not an object")),
        }
        for part in delta.partial_args.unwrap_or_default() {
            arguments::add(&mut call.arguments, part)
                .ok_or_else(|| unexpected("a partial argument", "its path is invalid"))?;
        }
        self.call = Some(call);
        if delta.will_continue != Some(true) {
            self.close_call(out);
        }
        Ok(())
    }

    fn open_call(&mut self, id: Option<String>, name: String, out: &mut Vec<StreamEvent>) -> Call {
        self.calls += 1;
        let generated = || {
            // Distinct for every call of a response, because the factor is odd.
            let number = self.seed.wrapping_add(self.calls.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            format!("call_{number:016x}")
        };
        let id = id.filter(|id| !id.is_empty()).unwrap_or_else(generated);
        let tool_call = PartialToolCall { id: id.clone(), name: name.clone() };
        out.push(StreamEvent::ToolCallStart { tool_call });
        Call { id, name, arguments: Map::new(), signature: None }
    }

    fn close_call(&mut self, out: &mut Vec<StreamEvent>) {
        if let Some(Call { id, name, arguments, signature }) = self.call.take() {
            let tool_call = ToolCall::new(id, name, arguments).with_signature(signature);
            out.push(StreamEvent::ToolCallEnd { tool_call });
        }
    }
}

/// Pushes metadata that the unified model does not represent.
fn push_metadata<const N: usize>(out: &mut Vec<StreamEvent>, fields: [(&str, Option<Value>); N]) {
    let fields = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    let metadata: Map<String, Value> = fields.collect();
    if !metadata.is_empty() {
        out.push(StreamEvent::ProviderEvent { raw: Value::Object(metadata), part: None });
    }
}
