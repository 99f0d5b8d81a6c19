//! Compares an outcome with the manifest, by the rules of the manifest.

use std::fmt;

use pintle_llm::{
    ContentPart, Error, ErrorKind, Finish, OpaqueData, Response, ThinkingData, ToolCall, ToolCallKind, Usage,
};
use serde_json::Value;

use crate::manifest::{CallKind, Complaint, Digest, Entry, Expected, ExpectedCall, ExpectedUsage, Kind};
use crate::outcome::Outcome;
use crate::sha256;

/// A difference from the expected outcome.
#[derive(Debug)]
pub(crate) struct Difference {
    what: String,
    expected: String,
    found: String,
}

impl Difference {
    pub(crate) fn new(what: impl Into<String>, expected: impl fmt::Debug, found: impl fmt::Debug) -> Self {
        Self { what: what.into(), expected: format!("{expected:?}"), found: format!("{found:?}") }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (expected, found) = from_the_difference_on(&self.expected, &self.found);
        write!(f, "{}\n      expected {expected}\n      found    {found}", self.what)
    }
}

/// Compares the outcome of a complete recording.
pub(crate) fn judge(entry: &Entry, whole_framing: bool, outcome: &Outcome) -> Vec<Difference> {
    let expected = &entry.expected;
    match &outcome.answer {
        // An event that is not JSON, or lacks its blank line, may be skipped or end the stream with an error.
        Err(error) if (expected.bad_events > 0 || !whole_framing) && expected.error.is_none() => {
            is_stream_error(error).into_iter().collect()
        }
        Err(error) => match &expected.error {
            Some(complaint) => judge_complaint(expected, complaint, error),
            None if expected.terminated => vec![Difference::new("the outcome", "an answer", error)],
            None => is_stream_error(error).into_iter().chain(judge_text(expected, outcome)).collect(),
        },
        Ok(response) if expected.error.is_some() || !expected.terminated => {
            vec![Difference::new("the outcome", "an error", &response.finish_reason)]
        }
        Ok(response) => judge_answer(entry, outcome, response),
    }
}

/// Checks the outcome of a truncated stream: an error, unless the terminal event was kept.
pub(crate) fn judge_cut(entry: &Entry, terminal_kept: bool, outcome: &Outcome) -> Vec<Difference> {
    let expected = &entry.expected;
    match &outcome.answer {
        Ok(response) if !terminal_kept || !expected.terminated || expected.error.is_some() => {
            vec![Difference::new("the outcome", "an error", &response.finish_reason)]
        }
        // Usage may follow the terminal event.
        Ok(response) => judge_text(expected, outcome)
            .into_iter()
            .chain(judge_calls(entry, response))
            .chain(judge_finish(expected, response))
            .collect(),
        Err(_) if expected.bad_events > 0 || !expected.text.is_empty() && expected.error.is_some() => {
            Vec::new()
        }
        Err(_) if expected.text.starts_with(&outcome.text()) => Vec::new(),
        Err(_) => vec![Difference::new("the text before the cut", &expected.text, outcome.text())],
    }
}

fn is_stream_error(error: &Error) -> Option<Difference> {
    (error.kind() != ErrorKind::Stream)
        .then(|| Difference::new("the kind of the error", ErrorKind::Stream, error))
}

fn judge_complaint(expected: &Expected, complaint: &Complaint, error: &Error) -> Vec<Difference> {
    let mut found = Vec::new();
    if error.message() != complaint.message {
        found.push(Difference::new("the message of the error", &complaint.message, error.message()));
    }
    let code = match &complaint.code {
        Value::String(code) => Some(code.clone()),
        Value::Null => complaint.kind.clone(),
        // A number is a status.
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => None,
    };
    let words = [code.as_deref(), complaint.kind.as_deref()];
    if code.is_some() && !words.contains(&error.error_code()) {
        found.push(Difference::new("the code of the error", code, error.error_code()));
    }
    let class = match expected.http_error.as_deref() {
        None => return found,
        Some("InvalidRequestError") => ErrorKind::InvalidRequest,
        Some("RateLimitError") => ErrorKind::RateLimit,
        Some(other) => {
            found.push(Difference::new("the class of the error", other, "a class that is not known here"));
            return found;
        }
    };
    if error.kind() != class && !is_finer(complaint, error.kind()) {
        found.push(Difference::new("the kind of the error", class, error.kind()));
    }
    found
}

/// Returns whether the error names a class that is more specific than its status.
fn is_finer(complaint: &Complaint, kind: ErrorKind) -> bool {
    let words = format!("{} {:?} {:?}", complaint.message, complaint.code, complaint.kind).to_lowercase();
    let any = |parts: &[&str]| parts.iter().any(|part| words.contains(part));
    (kind == ErrorKind::ContextLength && any(&["context", "too long"]))
        || (kind == ErrorKind::NotFound && any(&["not found", "not_found", "does not exist"]))
        || (kind == ErrorKind::Authentication && any(&["key"]))
        || (kind == ErrorKind::QuotaExceeded && any(&["insufficient_quota"]))
}

fn judge_answer(entry: &Entry, outcome: &Outcome, response: &Response) -> Vec<Difference> {
    let expected = &entry.expected;
    let mut found = judge_text(expected, outcome);
    let id = Some(response.id.as_str()).filter(|id| !id.is_empty());
    if expected.id.as_deref() != id {
        found.push(Difference::new("the id", &expected.id, id));
    }
    if expected.model.as_deref().is_some_and(|model| model != response.model) {
        found.push(Difference::new("the model", &expected.model, &response.model));
    }
    let segments: Vec<&str> = response.message.content.iter().filter_map(ContentPart::as_text).collect();
    if expected.text_segments.as_ref().is_some_and(|expected| *expected != segments) {
        found.push(Difference::new("the segments of the text", &expected.text_segments, segments));
    }
    let reasoning = response.reasoning().unwrap_or_default();
    if expected.reasoning.as_deref().unwrap_or_default() != reasoning {
        found.push(Difference::new("the reasoning", &expected.reasoning, reasoning));
    }
    found.extend(judge_opaque(expected, response));
    found.extend(judge_calls(entry, response));
    found.extend(judge_finish(expected, response));
    found.extend(judge_usage(entry.kind, expected.usage.as_ref(), &response.usage));
    found
}

fn judge_text(expected: &Expected, outcome: &Outcome) -> Vec<Difference> {
    let found = outcome.text();
    // If an event reports an error within an otherwise complete response, the amount of text shown is a choice.
    let judged = expected.error.is_none();
    (judged && expected.text != found)
        .then(|| Difference::new("the text", &expected.text, found))
        .into_iter()
        .collect()
}

/// Compares opaque data that must be preserved: signatures, redacted reasoning, provider-specific items.
fn judge_opaque(expected: &Expected, response: &Response) -> Vec<Difference> {
    let content = &response.message.content;
    let thinking = || content.iter().filter_map(ContentPart::as_thinking);
    let redacted: Vec<&str> = thinking().filter(|data| data.redacted).filter_map(signature_of).collect();
    let mut found = Vec::new();
    let signatures = digests(signatures(response));
    if signatures != expected.signatures && signatures != expected.signatures_final {
        found.push(Difference::new("the signatures", &expected.signatures, signatures));
    }
    if digests(redacted.iter().copied()) != expected.redacted {
        found.push(Difference::new("the redacted reasoning", &expected.redacted, redacted));
    }
    let opaque = || content.iter().filter_map(opaque);
    let items: Vec<&str> =
        opaque().map(|data| data.kind.as_str()).filter(|kind| *kind != "refusal").collect();
    if items != expected.other_items {
        found.push(Difference::new("the provider's own items", &expected.other_items, items));
    }
    let refusal = opaque().find(|data| data.kind == "refusal").and_then(|data| data.data.get("refusal"));
    if refusal.and_then(Value::as_str) != expected.refusal.as_deref() {
        found.push(Difference::new("the refusal", &expected.refusal, refusal));
    }
    found
}

fn signature_of(data: &ThinkingData) -> Option<&str> {
    data.signature.as_deref()
}

/// Returns the provider-specific item in a part, if it is one.
pub(crate) fn opaque(part: &ContentPart) -> Option<&OpaqueData> {
    if let ContentPart::Opaque(data) = part { Some(data) } else { None }
}

/// Returns the opaque strings beside the readable content, in order.
pub(crate) fn signatures(response: &Response) -> impl Iterator<Item = &str> {
    response.message.content.iter().filter_map(|part| match part {
        ContentPart::Text(data) => data.signature.as_deref(),
        ContentPart::ToolCall(call) => call.signature.as_deref(),
        ContentPart::Thinking(data) => signature_of(data).filter(|_| !data.redacted),
        // Gemini also signs provider-specific parts.
        ContentPart::Opaque(data) => data.data.get("thoughtSignature").and_then(Value::as_str),
        ContentPart::Image(_)
        | ContentPart::Audio(_)
        | ContentPart::Document(_)
        | ContentPart::ToolResult(_)
        | _ => None,
    })
}

fn digests<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<Digest> {
    texts.map(|text| Digest { len: text.len(), sha256: sha256::hex(text.as_bytes()) }).collect()
}

fn judge_calls(entry: &Entry, response: &Response) -> Vec<Difference> {
    let expected = &entry.expected.tool_calls;
    let calls: Vec<&ToolCall> = response.tool_calls().collect();
    if calls.len() != expected.len() {
        let names: Vec<&str> = calls.iter().map(|call| call.name.as_str()).collect();
        let expected: Vec<&str> = expected.iter().map(|call| call.name.as_str()).collect();
        return vec![Difference::new("the calls", expected, names)];
    }
    let mut found: Vec<Difference> = expected
        .iter()
        .zip(&calls)
        .flat_map(|(expected, call)| judge_call(entry.kind, expected, call))
        .collect();
    let mut ids: Vec<&str> = calls.iter().map(|call| call.id.as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    if ids.len() != calls.len() || ids.contains(&"") {
        found.push(Difference::new("the ids of the calls", "one for each", ids));
    }
    found
}

fn judge_call(kind: Kind, expected: &ExpectedCall, call: &ToolCall) -> Vec<Difference> {
    let mut found = Vec::new();
    let id = expected.id.as_ref().filter(|_| kind != Kind::Gemini);
    if id.is_some_and(|id| *id != call.id) {
        found.push(Difference::new("the id of a call", id, &call.id));
    }
    if expected.name != call.name {
        found.push(Difference::new("the name of a call", &expected.name, &call.name));
    }
    let custom = expected.kind == CallKind::Custom;
    if custom != (call.kind == ToolCallKind::Custom) {
        found.push(Difference::new("the type of a call", expected.kind, call.kind));
    }
    if expected.valid_json && expected.arguments != call.arguments {
        found.push(Difference::new("the arguments of a call", &expected.arguments, &call.arguments));
    }
    let text = call.raw_arguments.as_deref().or(call.arguments.as_str());
    if expected.arguments_raw.is_some() && expected.arguments_raw.as_deref() != text {
        found.push(Difference::new("the arguments of a call as text", &expected.arguments_raw, text));
    }
    found
}

fn judge_finish(expected: &Expected, response: &Response) -> Vec<Difference> {
    let finish = &response.finish_reason;
    let mut found = Vec::new();
    if expected.finish.raw != finish.raw {
        found.push(Difference::new("the provider's reason to stop", &expected.finish.raw, &finish.raw));
    }
    let outside = expected.notes.iter().any(|note| note.contains("not in the spec's table"));
    let unified = expected.finish.unified.as_deref().filter(|_| !outside);
    if unified.is_some_and(|unified| unified != spelling(finish.reason)) {
        found.push(Difference::new("the reason to stop", unified, spelling(finish.reason)));
    }
    found
}

/// In the spelling of the specification (section 3.8).
fn spelling(reason: Finish) -> &'static str {
    match reason {
        Finish::Stop => "stop",
        Finish::Length => "length",
        Finish::ToolCalls => "tool_calls",
        Finish::ContentFilter => "content_filter",
        Finish::Error => "error",
        Finish::Other => "other",
    }
}

fn judge_usage(kind: Kind, expected: Option<&ExpectedUsage>, usage: &Usage) -> Vec<Difference> {
    let Some(expected) = expected else {
        let none = *usage == Usage::default();
        return if none { Vec::new() } else { vec![Difference::new("the usage", "none", usage)] };
    };
    let mut found = Vec::new();
    let mut judge = |what: &str, right: &[Option<u64>], is: Option<u64>| {
        if !right.contains(&is) {
            found.push(Difference::new(format!("the usage: {what}"), right, is));
        }
    };
    let counted = |count: Option<u64>| Some(count.unwrap_or_default());
    judge("input tokens", &[Some(complete_input(kind, expected))], Some(usage.input_tokens));
    let mut output = vec![counted(expected.output_tokens)];
    output.extend(expected.output_plus_reasoning.map(Some));
    judge("output tokens", &output, Some(usage.output_tokens));
    let total =
        [expected.total_tokens, expected.provider_total, usage.input_tokens.checked_add(usage.output_tokens)];
    judge("total tokens", &total, Some(usage.total_tokens));
    if kind != Kind::Anthropic {
        judge("reasoning tokens", &[expected.reasoning_tokens], usage.reasoning_tokens);
    }
    judge("tokens read from a cache", &[expected.cache_read_tokens], usage.cache_read_tokens);
    judge("tokens written to a cache", &[expected.cache_write_tokens], usage.cache_write_tokens);
    found
}

/// The complete input, which is the meaning of `Usage` (decision 0016). The manifest has the provider's own field,
/// which lacks some input: for Anthropic, tokens read from or written to a cache, as for any server that reports more
/// cached tokens than input; for Gemini, tokens read by its built-in tools, which only the provider's total includes.
fn complete_input(kind: Kind, expected: &ExpectedUsage) -> u64 {
    let stated = expected.input_tokens.unwrap_or_default();
    let cached = expected.cache_read_tokens.unwrap_or(0) + expected.cache_write_tokens.unwrap_or(0);
    match (kind, expected.provider_total, expected.output_plus_reasoning) {
        (Kind::Anthropic, ..) => stated + cached,
        (Kind::Gemini, Some(total), Some(output)) => stated.max(total.saturating_sub(output)),
        _ if cached > stated => stated + cached,
        _ => stated,
    }
}

/// Number of characters shown of a long value.
const SHOWN: usize = 240;

/// Shortens both values to the part around their first difference.
fn from_the_difference_on(expected: &str, found: &str) -> (String, String) {
    let same = expected.chars().zip(found.chars()).take_while(|(a, b)| a == b).count();
    let skipped = if same > SHOWN / 2 { same - 40 } else { 0 };
    let cut = |text: &str| {
        let mut shown: String = text.chars().skip(skipped).take(SHOWN).collect();
        if skipped > 0 {
            shown.insert_str(0, "… ");
        }
        if text.chars().count() > skipped + SHOWN {
            shown.push_str(" …");
        }
        shown
    };
    (cut(expected), cut(found))
}
