//! The control channel: requests and answers in both directions.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use thiserror::Error;

use super::hooks::HookAnswer;
use super::incoming::{IncomingLine, RefusedRequest};
use super::permission::{PermissionAnswer, PermissionRequest};
use super::request::HostRequest;
use super::user_line::UserLine;
use crate::line::Line;

/// Limits of a [`ControlChannel`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlLimits {
    /// Maximum number of our requests without an answer. Default: 256.
    pub asked: usize,
    /// Maximum number of requests of the host without an answer. Default: 256.
    pub requested: usize,
}

impl Default for ControlLimits {
    fn default() -> Self {
        Self { asked: 256, requested: 256 }
    }
}

/// State of the control channel: the requests that wait for an answer.
///
/// Every request of the host is answered once: with [`answer`](Self::answer), or immediately with an error if it cannot
/// be served. Each of our requests has at most one answer. A late answer, or an answer without a request, is an error
/// without effect.
///
/// ```
/// use pintle_compat::claude::{ControlChannel, ControlEvent, ControlLimits, HostRequest, IncomingLine};
///
/// let mut control = ControlChannel::new(ControlLimits::default());
/// let line = r#"{"type":"control_request","request_id":"1","request":{"subtype":"interrupt"}}"#;
/// let step = control.receive(IncomingLine::parse(line)?)?;
/// assert!(matches!(step.event, Some(ControlEvent::Request { request: HostRequest::Interrupt, .. })));
/// let answer = control.answer("1", Ok(serde_json::json!({})))?;
/// assert!(answer.to_string().contains(r#""request_id":"1""#));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct ControlChannel {
    limits: ControlLimits,
    next: u64,
    /// Our requests without an answer.
    asked: BTreeMap<String, PendingRequest>,
    /// Requests of the host without an answer.
    requested: BTreeSet<String>,
    is_initialized: bool,
}

/// The request.
#[derive(Clone, Debug)]
enum PendingRequest {
    Permission { input: Value },
    Hook,
    Mcp,
}

/// Result of a line of the host.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ControlStep {
    /// Lines to write.
    pub lines: Vec<Line>,
    /// Event for the caller, if any.
    pub event: Option<ControlEvent>,
}

/// Meaning of a line of the host.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ControlEvent {
    /// A message of the user.
    User(Box<UserLine>),
    /// The handshake requests something that could restrict the session and is not supported. The host has received the
    /// error, but may continue regardless. The caller must end the session without running anything.
    HandshakeRefused {
        /// The reason.
        reason: String,
    },
    /// A request. The caller answers it with [`ControlChannel::answer`].
    Request {
        /// Its id.
        id: String,
        /// The request.
        request: HostRequest,
    },
    /// A request of the host no longer needs an answer.
    RequestCancelled {
        /// Its id.
        id: String,
    },
    /// Answer to [`ControlChannel::ask_permission`]. An unreadable answer is a denial.
    Permission {
        /// Id of the request.
        id: String,
        /// The answer.
        answer: PermissionAnswer,
    },
    /// Answer to [`ControlChannel::run_hook`], or the reason why the hook failed.
    Hook {
        /// Id of the request.
        id: String,
        /// The answer.
        answer: Result<HookAnswer, String>,
    },
    /// Answer to [`ControlChannel::send_mcp`]: a JSON-RPC message, or the reason why it is missing.
    Mcp {
        /// Id of the request.
        id: String,
        /// The answer.
        answer: Result<Value, String>,
    },
}

/// One of our requests.
#[derive(Clone, Debug, PartialEq)]
pub struct SentRequest {
    /// Its id.
    pub id: String,
    /// The line to write.
    pub line: Line,
}

/// Reason why a message on the control channel has no effect.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ControlError {
    /// Too many of our requests wait for an answer.
    #[error("{waiting} requests wait for an answer of the host, which is the limit")]
    TooMany {
        /// Their number.
        waiting: usize,
    },
    /// An answer to a request that does not exist, was answered, or was withdrawn.
    #[error("answer to `{id}`, which no open request has")]
    NoSuchRequest {
        /// The id.
        id: String,
    },
    /// A request with the id of a request that has no answer yet.
    #[error("request `{id}` arrived twice")]
    Repeated {
        /// The id.
        id: String,
    },
}

impl ControlChannel {
    /// Creates the state of a channel without pending requests.
    #[must_use]
    pub fn new(limits: ControlLimits) -> Self {
        Self { limits, next: 0, asked: BTreeMap::new(), requested: BTreeSet::new(), is_initialized: false }
    }

    /// Processes a line of the host.
    ///
    /// # Errors
    ///
    /// [`ControlError::NoSuchRequest`] and [`ControlError::Repeated`]. The line then has no effect, and the channel
    /// stays usable.
    pub fn receive(&mut self, incoming: IncomingLine) -> Result<ControlStep, ControlError> {
        match incoming {
            IncomingLine::User(line) => Ok(event_step(ControlEvent::User(line))),
            IncomingLine::Request { id, request } => self.request(id, request),
            IncomingLine::Answer { id, answer } => self.resolve_answer(id, answer),
            IncomingLine::CancelRequest { id } => {
                // The host may send it after the answer, since it does not know whether one is on its way.
                let was_open = self.requested.remove(&id);
                Ok(if was_open {
                    event_step(ControlEvent::RequestCancelled { id })
                } else {
                    ControlStep::default()
                })
            }
            IncomingLine::KeepAlive => Ok(ControlStep::default()),
        }
    }

    fn request(
        &mut self,
        id: String,
        request: Result<HostRequest, RefusedRequest>,
    ) -> Result<ControlStep, ControlError> {
        if self.requested.contains(&id) {
            return Err(ControlError::Repeated { id });
        }
        if self.requested.len() >= self.limits.requested {
            return Ok(refusal_step(&id, "too many requests wait for an answer"));
        }
        match request {
            Err(RefusedRequest { subtype, reason, .. }) => {
                let mut step = refusal_step(&id, &reason);
                if subtype == "initialize" {
                    step.event = Some(ControlEvent::HandshakeRefused { reason });
                }
                Ok(step)
            }
            Ok(HostRequest::Initialize(_)) if self.is_initialized => {
                Ok(refusal_step(&id, "the session is initialized already"))
            }
            Ok(request) => {
                self.is_initialized |= matches!(request, HostRequest::Initialize(_));
                self.requested.insert(id.clone());
                Ok(event_step(ControlEvent::Request { id, request }))
            }
        }
    }

    fn resolve_answer(
        &mut self,
        id: String,
        answer: Result<Value, String>,
    ) -> Result<ControlStep, ControlError> {
        let event = match self.asked.remove(&id) {
            None => return Err(ControlError::NoSuchRequest { id }),
            Some(PendingRequest::Permission { input }) => {
                ControlEvent::Permission { id, answer: permission(answer, &input) }
            }
            Some(PendingRequest::Hook) => {
                let read = |answer| HookAnswer::read(&answer).map_err(|error| error.to_string());
                ControlEvent::Hook { id, answer: answer.and_then(read) }
            }
            Some(PendingRequest::Mcp) => {
                let missing = || "the answer has no message".to_owned();
                let read = |answer: Value| answer.get("mcp_response").cloned().ok_or_else(missing);
                ControlEvent::Mcp { id, answer: answer.and_then(read) }
            }
        };
        Ok(event_step(event))
    }

    /// Answers a request of the host with an object, or with the reason of a failure.
    ///
    /// # Errors
    ///
    /// [`ControlError::NoSuchRequest`] if the request was answered already, or was cancelled.
    pub fn answer(&mut self, id: &str, answer: Result<Value, String>) -> Result<Line, ControlError> {
        if !self.requested.remove(id) {
            return Err(ControlError::NoSuchRequest { id: id.to_owned() });
        }
        Ok(match answer {
            Ok(response) => response_line(&json!({
                "subtype": "success", "request_id": id, "response": response,
            })),
            Err(reason) => error_line(id, &reason),
        })
    }

    /// Asks the host whether a call may run.
    ///
    /// # Errors
    ///
    /// [`ControlError::TooMany`].
    pub fn ask_permission(&mut self, request: &PermissionRequest) -> Result<SentRequest, ControlError> {
        self.send(PendingRequest::Permission { input: request.input.clone() }, &request.to_value())
    }

    /// Runs a hook of the host. [`HookBase::input`](super::HookBase::input) returns the `input`.
    ///
    /// # Errors
    ///
    /// [`ControlError::TooMany`].
    pub fn run_hook(
        &mut self,
        callback: &str,
        input: &Value,
        tool_use_id: Option<&str>,
    ) -> Result<SentRequest, ControlError> {
        let mut request = json!({"subtype": "hook_callback", "callback_id": callback, "input": input});
        if let (Some(id), Some(fields)) = (tool_use_id, request.as_object_mut()) {
            fields.insert("tool_use_id".to_owned(), id.into());
        }
        self.send(PendingRequest::Hook, &request)
    }

    /// Sends a JSON-RPC message to an MCP server that runs in the host. Notifications have an answer, too.
    ///
    /// # Errors
    ///
    /// [`ControlError::TooMany`].
    pub fn send_mcp(&mut self, server: &str, message: &Value) -> Result<SentRequest, ControlError> {
        let request = json!({"subtype": "mcp_message", "server_name": server, "message": message});
        self.send(PendingRequest::Mcp, &request)
    }

    /// Withdraws one of our requests and ignores its answer. Returns the line that informs the host; `None` if the
    /// request was answered already.
    pub fn withdraw(&mut self, id: &str) -> Option<Line> {
        self.asked.remove(id)?;
        Some(Line::new(json!({"type": "control_cancel_request", "request_id": id})))
    }

    /// Closes the channel after the host disconnected. Returns the ids of our requests that will not be answered.
    pub fn close(&mut self) -> Vec<String> {
        self.requested.clear();
        std::mem::take(&mut self.asked).into_keys().collect()
    }

    fn send(&mut self, asked: PendingRequest, request: &Value) -> Result<SentRequest, ControlError> {
        if self.asked.len() >= self.limits.asked {
            return Err(ControlError::TooMany { waiting: self.asked.len() });
        }
        let id = format!("pintle_{}", self.next);
        self.next = self.next.saturating_add(1);
        self.asked.insert(id.clone(), asked);
        let line = json!({"type": "control_request", "request_id": id, "request": request});
        Ok(SentRequest { id, line: Line::new(line) })
    }
}

/// Reads an answer. An unreadable answer is a denial.
fn permission(answer: Result<Value, String>, asked: &Value) -> PermissionAnswer {
    let read = |answer| PermissionAnswer::read(&answer, asked).map_err(|error| error.to_string());
    answer.and_then(read).unwrap_or_else(|reason| PermissionAnswer::Deny {
        message: format!("the request for permission failed: {reason}"),
        interrupts: false,
    })
}

fn event_step(event: ControlEvent) -> ControlStep {
    ControlStep { lines: Vec::new(), event: Some(event) }
}

fn refusal_step(id: &str, reason: &str) -> ControlStep {
    ControlStep { lines: vec![error_line(id, reason)], event: None }
}

fn error_line(id: &str, reason: &str) -> Line {
    response_line(&json!({"subtype": "error", "request_id": id, "error": reason}))
}

fn response_line(response: &Value) -> Line {
    Line::new(json!({"type": "control_response", "response": response}))
}
