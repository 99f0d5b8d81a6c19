//! Rendering of requests and responses as text, for the snapshots of all dialects.

use std::io::Write as _;

use pintle_llm::{Message, Request, Response, StreamAccumulator, StreamEvent, ToolResult};
use serde_json::{Map, Value};
use tempfile::NamedTempFile;

use crate::dialect::{Decoder as _, Dialect, SseEvent};
use crate::media;

/// Events that only keep a connection alive, with name and data.
pub(crate) const KEEP_ALIVES: [(&str, &str); 16] = [
    ("", ""),
    ("", " "),
    ("", "ping"),
    ("", ": ping"),
    ("", "keep-alive"),
    ("", "[PING]"),
    ("", "null"),
    ("", "1"),
    ("", "true"),
    ("", "\"\""),
    ("", "\"ping\""),
    ("", "2026-01-01T00:00:00Z"),
    ("", "{}"),
    ("ping", "ping"),
    ("keepalive", "keepalive"),
    ("keepalive", "{\"at\": 1}"),
];

/// Creates a temporary file with this suffix and content. It is deleted on drop.
pub(crate) fn local_file(suffix: &str, bytes: &[u8]) -> NamedTempFile {
    let mut file = tempfile::Builder::new().suffix(suffix).tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file
}

/// Renders a request body, one line per field and per list element. Local files are read first.
pub(crate) fn sent(dialect: &impl Dialect, request: &Request) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let request = runtime.block_on(media::resolve(request)).unwrap().into_owned();
    let sent = dialect.encode(&request, true).unwrap();
    let body: Map<String, Value> = serde_json::from_slice(&sent.body.to_vec()).unwrap();
    let line = |(key, value): (&String, &Value)| match value.as_array() {
        Some(list) => list.iter().map(|element| format!("{key}[] {element}\n")).collect(),
        None => format!("{key} {value}\n"),
    };
    body.iter().map(line).collect()
}

/// Returns the lines of [`sent`] that begin with one of `words`.
pub(crate) fn sent_of(dialect: &impl Dialect, request: &Request, words: &[&str]) -> String {
    let all = sent(dialect, request);
    let wanted = |line: &&str| words.iter().any(|word| line.starts_with(word));
    all.lines().filter(wanted).map(|line| format!("{line}\n")).collect()
}

/// Returns the error of a request that is refused before it is sent.
pub(crate) fn refused(dialect: &impl Dialect, request: &Request) -> String {
    let error = dialect.encode(request, true).unwrap_err();
    format!("{:?}: {}", error.kind(), error.message())
}

/// Decodes a stream of these events: one line per unified event, and the response.
pub(crate) fn streamed(dialect: &impl Dialect, request: &Request, data: &[Value]) -> (String, Response) {
    let mut decoder = dialect.decoder(request, 7);
    let mut events = Vec::new();
    for data in data {
        decoder.feed(SseEvent { name: "", data: &data.to_string() }, &mut events).unwrap();
    }
    decoder.end(&mut events).unwrap();
    let mut accumulator = StreamAccumulator::new(dialect.provider(), request.model.clone());
    events.iter().for_each(|event| accumulator.process(event));
    (events.iter().map(line).collect(), accumulator.response().unwrap())
}

/// Decodes a complete response: its finish reason and one line per part.
pub(crate) fn decoded(dialect: &impl Dialect, request: &Request, body: &Value) -> (String, Response) {
    let response = dialect.decode(request, body.to_string().as_bytes()).unwrap();
    let mut lines = vec![serde_json::to_value(&response.finish_reason).unwrap()];
    lines.extend(response.message.content.iter().map(|part| serde_json::to_value(part).unwrap()));
    (lines.iter().map(|line| format!("{line}\n")).collect(), response)
}

/// Returns the request that follows this response, with results for its calls.
pub(crate) fn next(request: &Request, response: &Response, results: Vec<ToolResult>) -> Request {
    let mut next = request.clone();
    next.messages.push(response.message.clone().into());
    if !results.is_empty() {
        next.messages.push(Message::tool_results(results).into());
    }
    next.messages.push(Message::user("Go on.").into());
    next
}

/// Renders an event as JSON, without the response that a finish event repeats and without raw usage.
fn line(event: &StreamEvent) -> String {
    let mut value = serde_json::to_value(event).unwrap();
    if let Some(fields) = value.as_object_mut() {
        fields.remove("response");
    }
    if let Some(usage) = value.get_mut("usage").and_then(Value::as_object_mut) {
        usage.remove("raw");
    }
    format!("{value}\n")
}
