//! Token estimates for calls whose provider has not reported usage.
//!
//! Four bytes of text count as one token: close for English and code, too high for most other scripts. An image, an
//! audio clip and a document count as 1,000 tokens each, whatever their size.

use serde::Serialize;
use serde_json::Value;

use crate::content::ContentPart;
use crate::message::Message;
use crate::request::Request;
use crate::stream::StreamEvent;

const BYTES_PER_TOKEN: usize = 4;

const TOKENS_PER_MEDIUM: usize = 1_000;

/// Estimated tokens in this many bytes of text.
#[must_use]
pub fn tokens(bytes: usize) -> u64 {
    u64::try_from(bytes.div_ceil(BYTES_PER_TOKEN)).unwrap_or(u64::MAX)
}

/// Estimated tokens of a request's prompt: its messages and its tools.
#[must_use]
pub fn prompt_tokens(request: &Request) -> u64 {
    let messages = request.messages.iter().map(|item| message_bytes(item)).fold(0, usize::saturating_add);
    tokens(messages.saturating_add(request.tools.json_bytes()))
}

/// Bytes of a message's content, media at a flat rate.
#[must_use]
pub fn message_bytes(message: &Message) -> usize {
    message.content.iter().map(part_bytes).fold(0, usize::saturating_add)
}

/// Bytes of text, reasoning or arguments in an event.
#[must_use]
pub fn event_bytes(event: &StreamEvent) -> usize {
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

/// Length of a value's JSON, computed without building the text; 0 for a value that cannot be serialised.
pub fn json_bytes<T: Serialize + ?Sized>(value: &T) -> usize {
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

fn part_bytes(part: &ContentPart) -> usize {
    const MEDIUM: usize = TOKENS_PER_MEDIUM * BYTES_PER_TOKEN;
    match part {
        ContentPart::Text(data) => data.text.len(),
        ContentPart::Image(_) | ContentPart::Audio(_) | ContentPart::Document(_) => MEDIUM,
        ContentPart::ToolCall(call) => match (&call.raw_arguments, &*call.arguments) {
            (Some(raw), _) => raw.len(),
            (None, Value::String(text)) => text.len(),
            (None, arguments) => json_bytes(arguments),
        },
        ContentPart::ToolResult(result) => {
            let text = result.content.as_str().map_or_else(|| json_bytes(&result.content), str::len);
            text.saturating_add(result.images.len().saturating_mul(MEDIUM))
        }
        ContentPart::Thinking(data) => {
            data.text.len().saturating_add(data.signature.as_ref().map_or(0, String::len))
        }
        ContentPart::Opaque(data) => json_bytes(&data.data),
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
        let cases = [
            (ContentPart::text(""), 0),
            (ContentPart::text("12345"), 2),
            (ToolCall::from_raw("c", "t", r#"{"a": 1}"#).into(), 2),
            (ContentPart::ToolResult(result.clone()), 2),
            (ContentPart::Image(ImageData::url("https://example.com/a.png")), 1_000),
        ];
        for (part, expected) in cases {
            assert_eq!(prompt_tokens(&message(part.clone())), expected, "{part:?}");
        }
        result.content = json!({"a": [1, 2]});
        result.images.push(ImageData::url("https://example.com/a.png"));
        assert_eq!(prompt_tokens(&message(ContentPart::ToolResult(result))), 1_003);
        assert_eq!(json_bytes(&json!({"a": [1, 2]})), 11);
    }
}
