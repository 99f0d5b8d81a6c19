//! Accumulation of stream events (client specification, section 4.4).

use crate::content::{ContentPart, TextData, ThinkingData, ToolCall};
use crate::error::{Error, ErrorKind};
use crate::message::{Message, Origin, Role};
use crate::response::{Finish, FinishReason, Response, Warning};
use crate::stream::StreamEvent;
use crate::usage::Usage;

/// Accumulates stream events into the response that [`Client::complete`](crate::Client::complete) would have returned.
///
/// Parts are in the order of their start events. The response so far is available at any time
/// ([`StreamAccumulator::partial`]), so the text of a broken stream is not lost.
#[derive(Clone, Debug)]
pub struct StreamAccumulator {
    origin: Origin,
    id: String,
    model: Option<String>,
    warnings: Vec<Warning>,
    parts: Vec<Part>,
    finish: Option<(FinishReason, Usage)>,
}

#[derive(Clone, Debug)]
enum Part {
    Text { id: String, data: TextData },
    Reasoning { id: String, data: ThinkingData },
    Call { id: String, call: Option<ToolCall> },
    Complete(ContentPart),
}

impl StreamAccumulator {
    /// Creates an accumulator for a response of this provider and model.
    #[must_use]
    pub fn new(provider: impl Into<String>, model: impl Into<String>) -> Self {
        Self {
            origin: Origin::new(provider, model),
            id: String::new(),
            model: None,
            warnings: Vec::new(),
            parts: Vec::new(),
            finish: None,
        }
    }

    /// Adds an event.
    pub fn process(&mut self, event: &StreamEvent) {
        match event {
            StreamEvent::StreamStart { id, model, warnings } => {
                if let Some(id) = id {
                    self.id.clone_from(id);
                }
                if model.is_some() {
                    self.model.clone_from(model);
                }
                self.warnings.extend_from_slice(warnings);
            }
            StreamEvent::TextStart { text_id } => {
                self.parts.push(Part::Text {
                    id: text_id.clone(),
                    data: TextData { text: String::new(), signature: None },
                });
            }
            StreamEvent::TextDelta { text_id, delta } => {
                if let Some(data) = self.text_mut(text_id) {
                    data.text.push_str(delta);
                }
            }
            StreamEvent::TextEnd { text_id, signature } => {
                if let Some(data) = self.text_mut(text_id) {
                    data.signature.clone_from(signature);
                    // It grew by doubling, and a history keeps it.
                    data.text.shrink_to_fit();
                }
            }
            StreamEvent::ReasoningStart { reasoning_id } => {
                self.parts.push(Part::Reasoning { id: reasoning_id.clone(), data: ThinkingData::default() });
            }
            StreamEvent::ReasoningDelta { reasoning_id, reasoning_delta } => {
                if let Some(data) = self.reasoning_mut(reasoning_id) {
                    data.text.push_str(reasoning_delta);
                }
            }
            StreamEvent::ReasoningEnd { reasoning_id, thinking } => {
                if let Some(data) = self.reasoning_mut(reasoning_id) {
                    *data = thinking.clone();
                }
            }
            StreamEvent::ToolCallStart { tool_call } => {
                self.parts.push(Part::Call { id: tool_call.id.clone(), call: None });
            }
            StreamEvent::ToolCallDelta { .. } | StreamEvent::StepFinish { .. } => {}
            StreamEvent::ToolCallEnd { tool_call } => self.end_call(tool_call),
            StreamEvent::Finish { finish_reason, usage, .. } => {
                self.finish = Some((finish_reason.clone(), usage.clone()));
            }
            StreamEvent::ProviderEvent { part, .. } => {
                if let Some(part) = part {
                    self.parts.push(Part::Complete((**part).clone()));
                }
            }
        }
    }

    /// Returns the complete response, after [`StreamEvent::Finish`].
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Stream`] if the stream has not finished.
    pub fn response(&self) -> Result<Response, Error> {
        if self.finish.is_none() {
            return Err(Error::new(ErrorKind::Stream, "the stream ended before the response was complete"));
        }
        Ok(self.partial())
    }

    /// Returns the response so far: complete parts and the text received. Incomplete calls are left out.
    #[must_use]
    pub fn partial(&self) -> Response {
        self.clone().into_partial()
    }

    /// As [`StreamAccumulator::partial`], without copying the texts.
    #[must_use]
    pub fn into_partial(self) -> Response {
        let content = self.parts.into_iter().filter_map(Part::into_content).collect();
        let (provider, model) = (self.origin.provider.clone(), self.origin.model.clone());
        let message = Message::new(Role::Assistant, content).with_origin(self.origin);
        let mut response = Response::new(provider, self.model.unwrap_or(model), message);
        response.id = self.id;
        response.warnings = self.warnings;
        match self.finish {
            Some((reason, usage)) => {
                response.finish_reason = reason;
                response.usage = usage;
            }
            None => response.finish_reason = FinishReason::new(Finish::Error),
        }
        response
    }

    fn end_call(&mut self, complete: &ToolCall) {
        let open = self.parts.iter_mut().find_map(|part| match part {
            Part::Call { id, call: call @ None } if *id == complete.id => Some(call),
            Part::Text { .. } | Part::Reasoning { .. } | Part::Call { .. } | Part::Complete(_) => None,
        });
        match open {
            Some(call) => *call = Some(complete.clone()),
            None => {
                let (id, call) = (complete.id.clone(), Some(complete.clone()));
                self.parts.push(Part::Call { id, call });
            }
        }
    }

    fn text_mut(&mut self, text_id: &str) -> Option<&mut TextData> {
        self.parts.iter_mut().rev().find_map(|part| match part {
            Part::Text { id, data } if id == text_id => Some(data),
            Part::Text { .. } | Part::Reasoning { .. } | Part::Call { .. } | Part::Complete(_) => None,
        })
    }

    fn reasoning_mut(&mut self, reasoning_id: &str) -> Option<&mut ThinkingData> {
        self.parts.iter_mut().rev().find_map(|part| match part {
            Part::Reasoning { id, data } if id == reasoning_id => Some(data),
            Part::Text { .. } | Part::Reasoning { .. } | Part::Call { .. } | Part::Complete(_) => None,
        })
    }
}

impl Part {
    fn into_content(self) -> Option<ContentPart> {
        match self {
            Self::Text { data, .. } if data.text.is_empty() && data.signature.is_none() => None,
            Self::Text { data, .. } => Some(ContentPart::Text(data)),
            Self::Reasoning { data, .. } => Some(ContentPart::Thinking(data)),
            Self::Call { call, .. } => call.map(ContentPart::ToolCall),
            Self::Complete(part) => Some(part),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::PartialToolCall;

    fn text(id: &str, deltas: &[&str]) -> Vec<StreamEvent> {
        let mut events = vec![StreamEvent::TextStart { text_id: id.into() }];
        events
            .extend(deltas.iter().map(|d| StreamEvent::TextDelta { text_id: id.into(), delta: (*d).into() }));
        events.push(StreamEvent::TextEnd { text_id: id.into(), signature: None });
        events
    }

    #[test]
    fn parts_are_in_the_order_of_their_start_events() {
        let mut accumulator = StreamAccumulator::new("p", "m");
        let call = ToolCall::from_raw("c", "t", "{}");
        let mut events = text("0", &["a", "b"]);
        events.push(StreamEvent::ToolCallStart {
            tool_call: PartialToolCall { id: "c".into(), name: "t".into() },
        });
        events.extend(text("1", &["c"]));
        events.push(StreamEvent::ToolCallEnd { tool_call: call.clone() });
        for event in &events {
            accumulator.process(event);
        }
        let message = accumulator.partial().message;
        assert_eq!(message.content, [ContentPart::text("ab"), call.into(), ContentPart::text("c")]);
        assert_eq!(message.origin, Some(Origin::new("p", "m")));
        assert_eq!(accumulator.clone().into_partial(), accumulator.partial());
    }

    #[test]
    fn an_unfinished_stream_has_partial_text_and_no_response() {
        let mut accumulator = StreamAccumulator::new("p", "m");
        for event in &text("0", &["half"])[..2] {
            accumulator.process(event);
        }
        assert_eq!(accumulator.partial().text(), "half");
        assert_eq!(accumulator.response().unwrap_err().kind(), ErrorKind::Stream);
    }
}
