//! Replay of a complete response as a stream.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use serde_json::Value;

use super::{EventStream, PartialToolCall, StreamEvent};
use crate::content::{ContentPart, ThinkingData, ToolCall};
use crate::error::Error;
use crate::response::Response;

impl Response {
    /// Returns events that accumulate to this response, with one delta per segment. All events are ready at once.
    pub fn into_stream(self) -> EventStream {
        Box::pin(Replay(events(self).into()))
    }
}

struct Replay(VecDeque<StreamEvent>);

impl Stream for Replay {
    type Item = Result<StreamEvent, Error>;

    fn poll_next(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.pop_front().map(Ok))
    }
}

fn events(mut response: Response) -> Vec<StreamEvent> {
    // Streamed responses have no raw body.
    response.raw = None;
    let mut out = vec![StreamEvent::StreamStart {
        id: (!response.id.is_empty()).then(|| response.id.clone()),
        model: Some(response.model.clone()),
        warnings: response.warnings.clone(),
    }];
    for (index, part) in response.message.content.iter().enumerate() {
        segment(index.to_string(), part, &mut out);
    }
    out.push(StreamEvent::Finish {
        finish_reason: response.finish_reason.clone(),
        usage: response.usage.clone(),
        response: Box::new(response),
    });
    out
}

fn segment(id: String, part: &ContentPart, out: &mut Vec<StreamEvent>) {
    match part {
        ContentPart::Text(data) => out.extend([
            StreamEvent::TextStart { text_id: id.clone() },
            StreamEvent::TextDelta { text_id: id.clone(), delta: data.text.clone() },
            StreamEvent::TextEnd { text_id: id, signature: data.signature.clone() },
        ]),
        ContentPart::Thinking(thinking) => reasoning(id, thinking, out),
        ContentPart::ToolCall(call) => tool_call(call, out),
        ContentPart::Image(_)
        | ContentPart::Audio(_)
        | ContentPart::Document(_)
        | ContentPart::ToolResult(_) => {
            out.push(StreamEvent::ProviderEvent { raw: Value::Null, part: Some(Box::new(part.clone())) });
        }
        ContentPart::Opaque(opaque) => {
            let raw = opaque.data.clone();
            out.push(StreamEvent::ProviderEvent { raw, part: Some(Box::new(part.clone())) });
        }
    }
}

fn reasoning(id: String, thinking: &ThinkingData, out: &mut Vec<StreamEvent>) {
    out.push(StreamEvent::ReasoningStart { reasoning_id: id.clone() });
    if !thinking.text.is_empty() {
        let reasoning_delta = thinking.text.clone();
        out.push(StreamEvent::ReasoningDelta { reasoning_id: id.clone(), reasoning_delta });
    }
    out.push(StreamEvent::ReasoningEnd { reasoning_id: id, thinking: thinking.clone() });
}

fn tool_call(call: &ToolCall, out: &mut Vec<StreamEvent>) {
    let tool_call = PartialToolCall { id: call.id.clone(), name: call.name.clone() };
    out.push(StreamEvent::ToolCallStart { tool_call: tool_call.clone() });
    out.push(StreamEvent::ToolCallDelta { tool_call, delta: call.arguments_text().into_owned() });
    out.push(StreamEvent::ToolCallEnd { tool_call: call.clone() });
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::accumulate::StreamAccumulator;
    use crate::content::{ImageData, OpaqueData};
    use crate::message::{Message, Origin, Role};
    use crate::response::{Finish, FinishReason, Warning};
    use crate::usage::Usage;

    #[test]
    fn events_accumulate_to_the_response() {
        let redacted = ThinkingData::redacted("sealed");
        let parts = vec![
            ContentPart::Thinking(redacted),
            ContentPart::text("one"),
            ContentPart::Opaque(OpaqueData { kind: "server_tool_use".into(), data: json!({"a": 1}) }),
            ContentPart::text("two"),
            ToolCall::from_raw("c1", "t", r#"{"a": 1}"#).into(),
            ContentPart::Image(ImageData::url("https://example.com/a.png")),
        ];
        let message = Message::new(Role::Assistant, parts).with_origin(Origin::new("p", "m"));
        let mut response = Response::new("p", "m-2026", message)
            .with_finish_reason(FinishReason::new(Finish::ToolCalls).with_raw("tool_use"))
            .with_usage(Usage::new(3, 4));
        response.id = "r1".into();
        response.warnings = vec![Warning { message: "odd".into(), code: None }];
        let mut accumulator = StreamAccumulator::new("p", "m");
        let events = events(response.clone());
        events.iter().for_each(|event| accumulator.process(event));
        assert_eq!(accumulator.response().unwrap(), response);
        assert!(
            matches!(events.last(), Some(StreamEvent::Finish { response: last, .. }) if **last == response)
        );
    }
}
