//! Whole answers: one chunk of a stream, and its end.

use pintle_llm::{Error, Fingerprint, Finish, FinishReason, Request, Response, StreamAccumulator};
use serde_json::Value;

use super::stream::Decoder;
use super::{NAME, error};
use crate::dialect::{Decoder as _, SseEvent};

/// Decodes a whole answer.
pub(super) fn decode(request: &Request, body: &[u8]) -> Result<Response, Error> {
    let data =
        std::str::from_utf8(body).map_err(|source| error::unreadable("an answer in UTF-8", body, source))?;
    let mut decoder = Decoder::new(&request.model, seed(request, body));
    let mut events = Vec::new();
    decoder.feed(SseEvent { name: "", data }, &mut events)?;
    decoder.end(&mut events)?;
    let mut accumulator = StreamAccumulator::new(NAME, request.model.clone());
    for event in &events {
        accumulator.process(event);
    }
    let mut response = accumulator.response()?;
    response.raw = serde_json::from_str(data).ok();
    Ok(response)
}

/// The unified reason (client specification, section 3.8). The API has none for calls: they follow from the parts.
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
        | "ESCALATION" => Finish::ContentFilter,
        _ => Finish::Other,
    };
    FinishReason::new(reason).with_raw(raw)
}

/// The reason of an answer that has no candidate, since the prompt was blocked.
pub(super) fn blocked(raw: String) -> FinishReason {
    FinishReason::new(Finish::ContentFilter).with_raw(raw)
}

/// Where the ids of a whole answer's calls begin: the same answer at the same place has the same ids.
fn seed(request: &Request, body: &[u8]) -> u64 {
    let place = Value::from(request.messages.len()).to_string();
    let hash = Fingerprint::of(place.as_bytes()).chain(Fingerprint::of(body)).to_string();
    hash.get(..16).and_then(|digits| u64::from_str_radix(digits, 16).ok()).unwrap_or_default()
}
