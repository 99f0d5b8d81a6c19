//! The order of the events of a stream.

use std::collections::BTreeMap;

use pintle_llm::StreamEvent;

use crate::outcome::Outcome;

/// Returns the violations of the order: the start is first, starts and ends are paired, deltas add up, and the finish
/// is last.
pub(crate) fn disorder(outcome: &Outcome) -> Vec<String> {
    let mut found = Vec::new();
    let mut open: BTreeMap<String, String> = BTreeMap::new();
    let is_start = |event: &StreamEvent| matches!(event, StreamEvent::StreamStart { .. });
    if outcome.events.iter().skip(1).any(is_start)
        || outcome.events.first().is_some_and(|event| !is_start(event))
    {
        found.push("the start of the stream is not its first event, or comes twice".to_owned());
    }
    for event in &outcome.events {
        found.extend(follow(event, &mut open));
    }
    if let Ok(response) = &outcome.answer {
        found.extend(open.keys().map(|id| format!("{id} has no end")));
        if response.text() != outcome.deltas() {
            found.push("the deltas of the text are not the text of the answer".to_owned());
        }
    }
    found
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "only events that open, grow or close something matter here"
)]
fn follow(event: &StreamEvent, open: &mut BTreeMap<String, String>) -> Option<String> {
    match event {
        StreamEvent::TextStart { text_id } => begin(open, &format!("text {text_id}")),
        StreamEvent::TextDelta { text_id, delta } => grow(open, &format!("text {text_id}"), delta),
        StreamEvent::TextEnd { text_id, .. } => end(open, &format!("text {text_id}"), None),
        StreamEvent::ReasoningStart { reasoning_id } => begin(open, &format!("reasoning {reasoning_id}")),
        StreamEvent::ReasoningDelta { reasoning_id, reasoning_delta } => {
            grow(open, &format!("reasoning {reasoning_id}"), reasoning_delta)
        }
        StreamEvent::ReasoningEnd { reasoning_id, thinking } => {
            end(open, &format!("reasoning {reasoning_id}"), Some(&thinking.text))
        }
        StreamEvent::ToolCallStart { tool_call } => begin(open, &format!("call {}", tool_call.id)),
        StreamEvent::ToolCallDelta { tool_call, delta } => {
            grow(open, &format!("call {}", tool_call.id), delta)
        }
        StreamEvent::ToolCallEnd { tool_call } => {
            let text = tool_call.raw_arguments.as_deref().or(tool_call.arguments.as_str());
            end(open, &format!("call {}", tool_call.id), text)
        }
        _ => None,
    }
}

fn begin(open: &mut BTreeMap<String, String>, id: &str) -> Option<String> {
    open.insert(id.to_owned(), String::new()).map(|_| format!("{id} begins twice"))
}

fn grow(open: &mut BTreeMap<String, String>, id: &str, delta: &str) -> Option<String> {
    match open.get_mut(id) {
        Some(text) => text.push_str(delta),
        None => return Some(format!("{id} grows before it begins")),
    }
    None
}

/// `whole` is the expected concatenation of the deltas.
fn end(open: &mut BTreeMap<String, String>, id: &str, whole: Option<&str>) -> Option<String> {
    match open.remove(id) {
        None => Some(format!("{id} ends before it begins")),
        Some(grown) => whole
            .filter(|whole| *whole != grown)
            .map(|whole| format!("{id} ends with {whole:?}, and its deltas are {grown:?}")),
    }
}
