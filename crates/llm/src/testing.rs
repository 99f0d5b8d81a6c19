//! A provider without a network, and a harness for middleware.

mod harness;

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};

use async_trait::async_trait;
use futures_core::Stream;

pub use self::harness::{Harness, MODES, scripted_error, user_request};
use crate::adapter::ProviderAdapter;
use crate::content::ContentPart;
use crate::error::{Error, ErrorKind};
use crate::message::{Message, Origin};
use crate::request::Request;
use crate::response::{Finish, FinishReason, Response};
use crate::stream::{EventStream, PartialToolCall, StreamEvent};
use crate::tool::ToolChoice;
use crate::usage::Usage;

/// Adapter that plays back scripted responses in order and records the requests.
#[derive(Debug)]
pub struct FakeAdapter {
    name: String,
    script: Mutex<VecDeque<ScriptedReply>>,
    requests: Mutex<Vec<Request>>,
    tool_choice: bool,
}

#[derive(Debug)]
enum ScriptedReply {
    Message(Box<Message>, Finish),
    Failure(Error),
    /// Text, then a failure in the middle of the response.
    Cut(String, Error),
}

impl FakeAdapter {
    /// Creates an adapter with this provider name and an empty script.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), script: Mutex::default(), requests: Mutex::default(), tool_choice: true }
    }

    /// Appends a text response.
    #[must_use]
    pub fn answer(self, text: impl Into<String>) -> Self {
        self.message(Message::assistant(text))
    }

    /// Appends a response with this message; the finish reason depends on whether it has tool calls.
    #[must_use]
    pub fn message(self, message: Message) -> Self {
        let finish = if message.tool_calls().next().is_some() { Finish::ToolCalls } else { Finish::Stop };
        self.finished(message, finish)
    }

    /// Appends a response with this message and finish reason.
    #[must_use]
    pub fn finished(self, message: Message, finish: Finish) -> Self {
        self.push(ScriptedReply::Message(Box::new(message), finish))
    }

    /// Appends a failed call.
    #[must_use]
    pub fn failure(self, error: Error) -> Self {
        self.push(ScriptedReply::Failure(error))
    }

    /// Appends a stream that fails after this text.
    #[must_use]
    pub fn cut(self, text: impl Into<String>, error: Error) -> Self {
        self.push(ScriptedReply::Cut(text.into(), error))
    }

    /// Supports no tool choice other than `auto`.
    #[must_use]
    pub fn without_tool_choice(mut self) -> Self {
        self.tool_choice = false;
        self
    }

    /// Requests received so far.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn push(self, entry: ScriptedReply) -> Self {
        self.script.lock().unwrap_or_else(PoisonError::into_inner).push_back(entry);
        self
    }

    fn take(&self, request: &Request) -> Result<ScriptedReply, Error> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).push(request.clone());
        let mut script = self.script.lock().unwrap_or_else(PoisonError::into_inner);
        script.pop_front().ok_or_else(|| {
            Error::new(
                ErrorKind::InvalidRequest,
                format!("the fake provider `{}` has no scripted response left", self.name),
            )
        })
    }

    fn respond(&self, request: &Request, message: Message, finish: Finish) -> Response {
        let message = message.with_origin(Origin::new(self.name.clone(), request.model.clone()));
        Response::new(self.name.clone(), request.model.clone(), message)
            .with_finish_reason(FinishReason::new(finish))
            .with_usage(Usage::new(10, 5))
    }
}

#[async_trait]
impl ProviderAdapter for FakeAdapter {
    fn name(&self) -> &str {
        &self.name
    }

    async fn complete(&self, request: &Request) -> Result<Response, Error> {
        match self.take(request)? {
            ScriptedReply::Message(message, finish) => Ok(self.respond(request, *message, finish)),
            ScriptedReply::Failure(error) | ScriptedReply::Cut(_, error) => Err(error),
        }
    }

    async fn stream(&self, request: &Request) -> Result<EventStream, Error> {
        let events = match self.take(request)? {
            ScriptedReply::Message(message, finish) => events_of(self.respond(request, *message, finish)),
            ScriptedReply::Failure(error) => return Err(error),
            ScriptedReply::Cut(text, error) => {
                let start = StreamEvent::TextStart { text_id: "0".into() };
                let delta = StreamEvent::TextDelta { text_id: "0".into(), delta: text };
                VecDeque::from([Ok(start), Ok(delta), Err(error)])
            }
        };
        Ok(Box::pin(Events(events)))
    }

    fn supports_tool_choice(&self, choice: &ToolChoice) -> bool {
        self.tool_choice || *choice == ToolChoice::Auto
    }
}

fn events_of(response: Response) -> VecDeque<Result<StreamEvent, Error>> {
    let mut events = VecDeque::from([Ok(StreamEvent::StreamStart {
        id: Some(response.id.clone()),
        model: Some(response.model.clone()),
        warnings: Vec::new(),
    })]);
    for (index, part) in response.message.content.iter().enumerate() {
        let id = index.to_string();
        match part {
            ContentPart::Text(data) => {
                events.push_back(Ok(StreamEvent::TextStart { text_id: id.clone() }));
                events
                    .push_back(Ok(StreamEvent::TextDelta { text_id: id.clone(), delta: data.text.clone() }));
                events.push_back(Ok(StreamEvent::TextEnd { text_id: id, signature: data.signature.clone() }));
            }
            ContentPart::Thinking(data) => {
                events.push_back(Ok(StreamEvent::ReasoningStart { reasoning_id: id.clone() }));
                events.push_back(Ok(StreamEvent::ReasoningDelta {
                    reasoning_id: id.clone(),
                    reasoning_delta: data.text.clone(),
                }));
                events.push_back(Ok(StreamEvent::ReasoningEnd { reasoning_id: id, thinking: data.clone() }));
            }
            ContentPart::ToolCall(call) => {
                let tool_call = PartialToolCall { id: call.id.clone(), name: call.name.clone() };
                events.push_back(Ok(StreamEvent::ToolCallStart { tool_call }));
                events.push_back(Ok(StreamEvent::ToolCallEnd { tool_call: call.clone() }));
            }
            ContentPart::Opaque(data) => events.push_back(Ok(StreamEvent::ProviderEvent {
                raw: data.data.clone(),
                part: Some(Box::new(part.clone())),
            })),
            ContentPart::Image(_)
            | ContentPart::Audio(_)
            | ContentPart::Document(_)
            | ContentPart::ToolResult(_) => {}
        }
    }
    events.push_back(Ok(StreamEvent::Finish {
        finish_reason: response.finish_reason.clone(),
        usage: response.usage.clone(),
        response: Box::new(response),
    }));
    events
}

struct Events(VecDeque<Result<StreamEvent, Error>>);

impl Stream for Events {
    type Item = Result<StreamEvent, Error>;

    fn poll_next(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.pop_front())
    }
}
