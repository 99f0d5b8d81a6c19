//! An agent loop in a hundred lines: the OpenAI Responses dialect, with sequential tool calls.

use std::borrow::Cow;

use hyper::body::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{connection::Connection, events::Lines};

/// A conversation, as the bytes of its next request.
pub(crate) struct Conversation {
    /// Everything before the closing brackets. Each item is serialized once.
    body: Vec<u8>,
    text: String,
}

/// The fields of a tool call that are sent back to the model.
#[derive(Deserialize, Serialize)]
#[serde(tag = "type", rename = "function_call")]
pub(crate) struct Call {
    pub(crate) call_id: String,
    pub(crate) name: String,
    pub(crate) arguments: String,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    item: Option<&'a RawValue>,
    #[serde(borrow)]
    delta: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Item<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
}

impl Conversation {
    /// Starts from `head`: a request with the first items of its input, without the closing brackets.
    pub(crate) fn new(head: &[u8]) -> Self {
        Self { body: head.to_vec(), text: String::new() }
    }

    /// Requests one response. Returns its tool calls, none if the model is done.
    pub(crate) async fn ask(&mut self, connection: &mut Connection, path: &str) -> Vec<Call> {
        let mut request = Vec::with_capacity(self.body.len() + 2);
        request.extend_from_slice(&self.body);
        request.extend_from_slice(b"]}");
        let mut lines = Lines::default();
        let mut calls = Vec::new();
        let read = |piece: &[u8]| lines.push(piece, |payload| self.take(payload, &mut calls));
        connection.post(path, Bytes::from(request), read).await;
        calls
    }

    /// Appends the result of a call.
    pub(crate) fn answer(&mut self, call: &Call, output: &str) {
        let item = serde_json::json!({
            "type": "function_call_output",
            "call_id": call.call_id,
            "output": output,
        });
        self.push(item.to_string().as_bytes());
    }

    fn take(&mut self, payload: &[u8], calls: &mut Vec<Call>) {
        let event: Event<'_> = serde_json::from_slice(payload).expect("an event is JSON");
        match (&*event.kind, event.item, event.delta) {
            ("response.output_item.done", Some(item), _) => {
                let kind: Item<'_> = serde_json::from_str(item.get()).expect("an item has a type");
                if kind.kind == "function_call" {
                    let call: Call = serde_json::from_str(item.get()).expect("a call has its fields");
                    self.push(&serde_json::to_vec(&call).expect("a call is JSON"));
                    calls.push(call);
                } else {
                    self.push(item.get().as_bytes());
                }
            }
            ("response.output_text.delta", _, Some(delta)) => self.text.push_str(&delta),
            _ => {}
        }
    }

    fn push(&mut self, item: &[u8]) {
        if self.body.last() != Some(&b'[') {
            self.body.push(b',');
        }
        self.body.extend_from_slice(item);
    }
}
