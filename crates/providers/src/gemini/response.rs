//! Decoding of complete responses, which have the form of a stream with one chunk.

use pintle_llm::{Error, Finish, FinishReason, Request, Response, StreamAccumulator};
use serde_json::value::RawValue;

use super::stream::Decoder;
use super::{NAME, error};
use crate::dialect::{Decoder as _, SseEvent, response_seed};

/// Decodes a complete response. Without `alt=sse`, which a proxy may drop, a streamed response is a list of chunks.
pub(super) fn decode(request: &Request, body: &[u8]) -> Result<Response, Error> {
    let data =
        std::str::from_utf8(body).map_err(|source| error::unreadable("a response in UTF-8", body, source))?;
    let mut decoder = Decoder::new(&request.model, response_seed(request, body));
    let mut events = Vec::new();
    match serde_json::from_str::<Vec<&RawValue>>(data) {
        Ok(chunks) => {
            for chunk in chunks {
                decoder.feed(SseEvent { name: "", data: chunk.get() }, &mut events)?;
            }
        }
        Err(_) => decoder.feed(SseEvent { name: "", data }, &mut events)?,
    }
    decoder.end(&mut events)?;
    let mut accumulator = StreamAccumulator::new(NAME, request.model.clone());
    for event in &events {
        accumulator.process(event);
    }
    let mut response = accumulator.response()?;
    response.raw = serde_json::from_str(data).ok();
    Ok(response)
}

/// Returns the unified finish reason (client specification, section 3.8). The API has none for tool calls; they follow from
/// the parts.
pub(super) fn finish_reason(raw: &str, has_calls: bool) -> FinishReason {
    let reason = match raw {
        "STOP" if has_calls => Finish::ToolCalls,
        "STOP" => Finish::Stop,
        "MAX_TOKENS" => Finish::Length,
        "SAFETY"
        | "RECITATION"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION"
        | "MODEL_ARMOR"
        | "ESCALATION"
        | "LANGUAGE" => Finish::ContentFilter,
        // Failed generations of the Gemini API reference (`FinishReason`).
        "MALFORMED_FUNCTION_CALL"
        | "UNEXPECTED_TOOL_CALL"
        | "MALFORMED_RESPONSE"
        | "TOO_MANY_TOOL_CALLS"
        | "MISSING_THOUGHT_SIGNATURE" => Finish::Error,
        _ => Finish::Other,
    };
    FinishReason::new(reason).with_raw(raw)
}

/// Returns the finish reason of a response without a candidate, because the prompt was blocked.
pub(super) fn blocked(raw: String) -> FinishReason {
    FinishReason::new(Finish::ContentFilter).with_raw(raw)
}
