//! How many tokens a call has, where the provider has not said so.
//!
//! Four bytes of text are taken for a token, which is near the truth for English and code and too much for most other
//! scripts; an image, a sound and a document count as a thousand tokens each, whatever their size.

use serde::Serialize;

use crate::content::ContentPart;
use crate::message::Message;
use crate::request::Request;
use crate::stream::StreamEvent;

const BYTES_PER_TOKEN: usize = 4;

const TOKENS_PER_MEDIUM: usize = 1_000;

/// The tokens of this many bytes of text.
pub(super) fn tokens(bytes: usize) -> u64 {
    u64::try_from(bytes.div_ceil(BYTES_PER_TOKEN)).unwrap_or(u64::MAX)
}

/// The tokens of a request's prompt: its messages and its tools.
pub(super) fn prompt(request: &Request) -> u64 {
    let messages = request.messages.iter().map(|item| text_in(item)).fold(0, usize::saturating_add);
    let tools = request.tools.iter().map(json_length).fold(0, usize::saturating_add);
    tokens(messages.saturating_add(tools))
}

/// The bytes of a message's text and of what else it holds.
pub(super) fn text_in(message: &Message) -> usize {
    message.content.iter().map(part).fold(0, usize::saturating_add)
}

/// The bytes of text that an event brings.
pub(super) fn text_of(event: &StreamEvent) -> usize {
    match event {
        StreamEvent::TextDelta { delta, .. } | StreamEvent::ToolCallDelta { delta, .. } => delta.len(),
        StreamEvent::ReasoningDelta { reasoning_delta, .. } => reasoning_delta.len(),
        StreamEvent::StreamStart { .. }
        | StreamEvent::TextStart { .. }
        | StreamEvent::TextEnd { .. }
        | StreamEvent::ReasoningStart { .. }
        | StreamEvent::ReasoningEnd { .. }
        | StreamEvent::ToolCallStart { .. }
        | StreamEvent::ToolCallEnd { .. }
        | StreamEvent::Finish { .. }
        | StreamEvent::StepFinish { .. }
        | StreamEvent::ProviderEvent { .. } => 0,
    }
}

/// The bytes of a value's JSON, which is not built for it; 0 for what has no JSON.
pub(super) fn json_length<T: Serialize + ?Sized>(value: &T) -> usize {
    struct Length(usize);
    impl std::io::Write for Length {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 = self.0.saturating_add(bytes.len());
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut length = Length(0);
    serde_json::to_writer(&mut length, value).map_or(0, |()| length.0)
}

fn part(part: &ContentPart) -> usize {
    const MEDIUM: usize = TOKENS_PER_MEDIUM * BYTES_PER_TOKEN;
    match part {
        ContentPart::Text(data) => data.text.len(),
        ContentPart::Image(_) | ContentPart::Audio(_) | ContentPart::Document(_) => MEDIUM,
        ContentPart::ToolCall(call) => match &call.raw_arguments {
            Some(raw) => raw.len(),
            None => json_length(&call.arguments),
        },
        ContentPart::ToolResult(result) => {
            let text = result.content.as_str().map_or_else(|| json_length(&result.content), str::len);
            text.saturating_add(result.images.len().saturating_mul(MEDIUM))
        }
        ContentPart::Thinking(data) => {
            data.text.len().saturating_add(data.signature.as_ref().map_or(0, String::len))
        }
        ContentPart::Opaque(data) => json_length(&data.data),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::content::{ImageData, ToolCall, ToolResult};
    use crate::message::Role;

    #[test]
    fn every_part_of_a_prompt_counts() {
        let message = |part: ContentPart| Request::new("m", [Message::new(Role::User, vec![part])]);
        let mut result = ToolResult::new("c", "12345678", false);
        let rows = [
            (ContentPart::text(""), 0),
            (ContentPart::text("12345"), 2),
            (ToolCall::from_raw("c", "t", r#"{"a": 1}"#).into(), 2),
            (ContentPart::ToolResult(result.clone()), 2),
            (ContentPart::Image(ImageData::url("https://example.com/a.png")), 1_000),
        ];
        for (part, expected) in rows {
            assert_eq!(prompt(&message(part.clone())), expected, "{part:?}");
        }
        result.content = json!({"a": [1, 2]});
        result.images.push(ImageData::url("https://example.com/a.png"));
        assert_eq!(prompt(&message(ContentPart::ToolResult(result))), 1_003);
        assert_eq!(json_length(&json!({"a": [1, 2]})), 11);
    }
}
