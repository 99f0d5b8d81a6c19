//! Decoding of streams of the Responses API.
//!
//! Events are matched to output items by `output_index`, because some servers change the id of an item from event to
//! event. Content that only the end of a text, of arguments, of an item or the final snapshot contains is emitted then, so
//! that nothing is lost if a server sends no deltas or a stream is resumed in the middle.

mod item;

use std::borrow::Cow;
use std::collections::BTreeMap;

use pintle_llm::{Error, ErrorKind, Message, Response, Role, StreamEvent, Warning};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use self::item::Item;
use super::PROVIDER;
use super::response::{StopFacts, arguments_text, failed, usage};
use crate::dialect::{Decoder, SseEvent};
use crate::failure::{Failure, malformed};
use crate::lenient::{AnyText, Text};
use crate::openai_common::error::failure_of;

/// Size in bytes from which an item is parsed without arguments that have been streamed.
pub(super) const LARGE_ITEM: usize = 64 << 10;

/// Decoder of one streamed response.
#[derive(Debug)]
pub(crate) struct ResponsesDecoder {
    seed: u64,
    warnings: Vec<Warning>,
    started: bool,
    finished: bool,
    items: Vec<Item>,
}

/// Fields of all events. Objects stay raw until the type of the event is known.
#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Cow<'a, str>,
    output_index: Option<u64>,
    #[serde(borrow)]
    item_id: Option<Text<'a>>,
    content_index: Option<u64>,
    summary_index: Option<u64>,
    #[serde(borrow, default)]
    delta: AnyText<'a>,
    #[serde(borrow, default)]
    text: AnyText<'a>,
    /// Complete arguments of a function.
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    /// Complete input of a custom tool.
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(borrow)]
    item: Option<&'a RawValue>,
    #[serde(borrow)]
    response: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

/// A response object. Its output stays raw, because it usually contains nothing new.
#[derive(Deserialize)]
struct Snapshot<'a> {
    id: Option<String>,
    model: Option<String>,
    #[serde(borrow)]
    output: Option<Vec<&'a RawValue>>,
    #[serde(default)]
    status: Value,
    #[serde(default)]
    incomplete_details: Value,
    usage: Option<Value>,
}

impl ResponsesDecoder {
    pub(super) fn new(warnings: Vec<Warning>, seed: u64) -> Self {
        Self { seed, warnings, started: false, finished: false, items: Vec::new() }
    }

    fn start(&mut self, id: Option<String>, model: Option<String>, out: &mut Vec<StreamEvent>) {
        if !std::mem::replace(&mut self.started, true) {
            out.push(StreamEvent::StreamStart { id, model, warnings: std::mem::take(&mut self.warnings) });
        }
    }

    /// Returns the position of an event's item: by index, else by id, else the last item.
    fn position(&self, index: Option<u64>, id: Option<&str>) -> Option<usize> {
        if index.is_some() {
            return self.items.iter().rposition(|item| item.index == index);
        }
        let by_id = id.and_then(|id| self.items.iter().rposition(|item| item.id == id));
        by_id.or_else(|| self.items.len().checked_sub(1))
    }

    fn open(&mut self, index: Option<u64>, raw: &Value, out: &mut Vec<StreamEvent>) -> usize {
        let position = self.items.len();
        self.items.push(Item::open(position, self.seed, index, raw, out));
        position
    }

    /// Returns the position of an event's item, which is opened if it had no start event.
    fn position_or_open(&mut self, event: &Event<'_>, kind: &str, out: &mut Vec<StreamEvent>) -> usize {
        let item_id = event.item_id.as_ref().map(|id| id.0.as_ref());
        self.position(event.output_index, item_id).unwrap_or_else(|| {
            let raw = serde_json::json!({"type": kind, "id": item_id});
            self.open(event.output_index, &raw, out)
        })
    }

    /// Handles a delta of an item of this type, or the complete text at the end of a text. It is ignored for an item that
    /// has ended.
    fn delta(&mut self, event: &Event<'_>, kind: &str, out: &mut Vec<StreamEvent>) -> Result<(), Error> {
        let text = match event.delta.0.as_deref().or(event.text.0.as_deref()) {
            Some(text) => text,
            // Some servers send null for no arguments.
            None if kind.ends_with("_call") => "",
            None => return Err(missing_content(event)),
        };
        self.start(None, None, out);
        let position = self.position_or_open(event, kind, out);
        let Some(item) = self.items.get_mut(position).filter(|item| !item.done) else { return Ok(()) };
        let content_index = event.content_index.unwrap_or_default();
        match kind {
            "message" if event.kind.ends_with(".done") => item.text_done(content_index, text, out),
            "message" => item.text_delta(content_index, text, out),
            "reasoning" => item.reasoning_delta((event.summary_index, event.content_index), text, out),
            _ => item.call_delta(text, out),
        }
        Ok(())
    }

    /// Handles the complete arguments of a call. Some servers send them in this event only.
    fn arguments_done(
        &mut self,
        event: &Event<'_>,
        kind: &str,
        arguments: Option<&RawValue>,
        out: &mut Vec<StreamEvent>,
    ) -> Result<(), Error> {
        self.start(None, None, out);
        let position = self.position_or_open(event, kind, out);
        let item = self.items.get_mut(position).filter(|item| !item.done);
        if let (Some(item), Some(arguments)) = (item, arguments)
            && !item.has_streamed(arguments.get())
        {
            item.arguments_done(arguments_text(parse(arguments)?), out);
        }
        Ok(())
    }

    /// Parses an item at its end, without arguments that have been streamed: they may be megabytes long, and parsing would
    /// copy them twice.
    pub(super) fn ended_item(&self, raw: &RawValue) -> Result<Value, Error> {
        if raw.get().len() < LARGE_ITEM {
            return parse(raw);
        }
        let Ok(fields) = serde_json::from_str::<BTreeMap<String, &RawValue>>(raw.get()) else {
            return parse(raw);
        };
        let has_streamed = |name: &str, value: &RawValue| {
            matches!(name, "arguments" | "input")
                && self.items.iter().any(|item| item.has_streamed(value.get()))
        };
        let new = fields.into_iter().filter(|(name, value)| !has_streamed(name, value));
        let item = new.map(|(name, value)| Ok((name, parse(value)?))).collect::<Result<_, Error>>()?;
        Ok(Value::Object(item))
    }

    fn close(&mut self, index: Option<u64>, raw: Value, out: &mut Vec<StreamEvent>) {
        let id = raw.get("id").and_then(Value::as_str);
        let known = self.position(index, id);
        // Without an index, an item that has ended is a different one.
        let known = known.filter(|at| index.is_some() || self.items.get(*at).is_some_and(|item| !item.done));
        let position = known.unwrap_or_else(|| self.open(index, &raw, out));
        if let Some(item) = self.items.get_mut(position) {
            item.close(raw, out);
        }
    }

    /// Ends open items and adds content that only the final snapshot has.
    fn complete(&mut self, raw: &RawValue, out: &mut Vec<StreamEvent>) -> Result<(), Error> {
        let snapshot: Snapshot<'_> = parse(raw)?;
        self.start(snapshot.id.clone(), snapshot.model.clone(), out);
        // If no event had an index, the snapshot is used only if there were no items at all.
        let indexed = self.items.iter().all(|item| item.index.is_some());
        for (index, raw) in (0u64..).zip(snapshot.output.into_iter().flatten()) {
            let known = self.items.iter().find(|item| item.index == Some(index));
            if known.map_or(indexed, |item| !item.done) {
                let item = self.ended_item(raw)?;
                self.close(Some(index), item, out);
            }
        }
        for item in &mut self.items {
            item.close(Value::Null, out);
        }
        let stop = StopFacts {
            status: snapshot.status.as_str(),
            details: &snapshot.incomplete_details,
            called: self.items.iter().any(Item::is_call),
            refused: self.items.iter().any(Item::is_refusal),
        };
        let mut response = Response::new(
            PROVIDER,
            snapshot.model.unwrap_or_default(),
            Message::new(Role::Assistant, Vec::new()),
        );
        response.id = snapshot.id.unwrap_or_default();
        self.finished = true;
        out.push(StreamEvent::Finish {
            finish_reason: stop.finish_reason(),
            usage: snapshot.usage.as_ref().map(usage).unwrap_or_default(),
            response: Box::new(response),
        });
        Ok(())
    }

    fn handle(&mut self, event: &Event<'_>, data: &str, out: &mut Vec<StreamEvent>) -> Result<(), Error> {
        let missing = || missing_content(event);
        match event.kind.as_ref() {
            "response.created" | "response.in_progress" | "response.queued" => {
                let snapshot: Option<Snapshot<'_>> = event.response.map(parse).transpose()?;
                let (id, model) = snapshot.map_or((None, None), |snapshot| (snapshot.id, snapshot.model));
                self.start(id, model, out);
            }
            "response.output_item.added" => {
                let raw: Value = parse(event.item.ok_or_else(missing)?)?;
                self.start(None, None, out);
                self.open(event.output_index, &raw, out);
            }
            "response.output_item.done" => {
                let raw = self.ended_item(event.item.ok_or_else(missing)?)?;
                self.start(None, None, out);
                self.close(event.output_index, raw, out);
            }
            "response.output_text.delta" | "response.output_text.done" => {
                self.delta(event, "message", out)?
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.delta(event, "reasoning", out)?;
            }
            "response.function_call_arguments.delta" => self.delta(event, "function_call", out)?,
            "response.custom_tool_call_input.delta" => self.delta(event, "custom_tool_call", out)?,
            "response.function_call_arguments.done" => {
                self.arguments_done(event, "function_call", event.arguments, out)?;
            }
            "response.custom_tool_call_input.done" => {
                self.arguments_done(event, "custom_tool_call", event.input, out)?;
            }
            "response.completed" | "response.incomplete" | "response.cancelled" => {
                self.complete(event.response.ok_or_else(missing)?, out)?;
            }
            "response.failed" => return Err(failed(&parse(event.response.ok_or_else(missing)?)?)),
            "error" => return Err(error_event(data)),
            // Citations.
            "response.output_text.annotation.added" => {
                self.start(None, None, out);
                let raw = serde_json::from_str(data).unwrap_or_default();
                out.push(StreamEvent::ProviderEvent { raw, part: None });
            }
            // Progress of built-in tools, and parts whose text has its own events.
            _ => {}
        }
        Ok(())
    }
}

impl Decoder for ResponsesDecoder {
    fn feed(&mut self, event: SseEvent<'_>, out: &mut Vec<StreamEvent>) -> Result<(), Error> {
        if self.finished {
            return Ok(());
        }
        let mut parsed: Event<'_> = match serde_json::from_str(event.data) {
            Ok(parsed) => parsed,
            Err(_) if event.is_keep_alive(|name| name.starts_with("response.")) => return Ok(()),
            Err(error) => {
                return Err(malformed(PROVIDER, "a JSON event", event.data.as_bytes()).with_source(error));
            }
        };
        if parsed.kind.is_empty() {
            let is_error = parsed.error.is_some_and(|error| error.get() != "null");
            parsed.kind = if is_error { "error".into() } else { event.name.into() };
        }
        self.handle(&parsed, event.data, out)
    }

    fn end(&mut self, _out: &mut Vec<StreamEvent>) -> Result<(), Error> {
        if self.finished {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Stream, "the stream ended before `response.completed`")
            .with_provider(PROVIDER))
    }
}

/// Returns the error for an event without the content of its type.
fn missing_content(event: &Event<'_>) -> Error {
    Error::new(ErrorKind::Stream, format!("an event of type {:?} lacks its content", event.kind))
        .with_provider(PROVIDER)
}

fn parse<'a, T: Deserialize<'a>>(raw: &'a RawValue) -> Result<T, Error> {
    serde_json::from_str(raw.get()).map_err(|error| {
        malformed(PROVIDER, "a value of another type", raw.get().as_bytes()).with_source(error)
    })
}

fn error_event(data: &str) -> Error {
    failure_of(Failure { provider: PROVIDER, body: data.as_bytes(), ..Failure::default() })
}
