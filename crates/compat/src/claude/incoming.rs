//! Lines of the host.

use serde_json::Value;

use super::fields::ObjectFields;
use super::lines::LineError;
use super::request::HostRequest;
use super::user_line::UserLine;
use crate::command_line::shorten;

/// A line of the host.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum IncomingLine {
    /// A message of the user.
    User(Box<UserLine>),
    /// A request.
    Request {
        /// Id that the host chose.
        id: String,
        /// The request, or the reason why it cannot be served.
        request: Result<HostRequest, RefusedRequest>,
    },
    /// The answer to one of our requests.
    Answer {
        /// Id of the request.
        id: String,
        /// The answer, or the reason why it is missing.
        answer: Result<Value, String>,
    },
    /// A request of the host no longer needs an answer.
    CancelRequest {
        /// Id of the request.
        id: String,
    },
    /// A line without effect.
    KeepAlive,
}

/// A request that cannot be served.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RefusedRequest {
    /// Its subtype; empty without one.
    pub subtype: String,
    /// Reason why it cannot be served.
    pub reason: String,
}

impl IncomingLine {
    /// Parses a line.
    ///
    /// A request that cannot be served is not an error: it has an id, and the host waits for an answer.
    ///
    /// # Errors
    ///
    /// [`LineError`] for an invalid line. The next line is not affected.
    pub fn parse(line: &str) -> Result<Self, LineError> {
        let value: Value = serde_json::from_str(line)
            .map_err(|error| LineError::NotAnObject { reason: error.to_string() })?;
        let not_an_object = || LineError::NotAnObject { reason: "it is another JSON value".to_owned() };
        let line = ObjectFields::new("line", &value).map_err(|_| not_an_object())?;
        match line.text("type")? {
            "user" => Ok(Self::User(Box::new(UserLine::read(line)?))),
            "control_request" => request(line),
            "control_response" => {
                answer(ObjectFields::new("response", line.required("response", "an object")?)?)
            }
            "control_cancel_request" => Ok(Self::CancelRequest { id: line.text("request_id")?.to_owned() }),
            "keep_alive" => Ok(Self::KeepAlive),
            other => Err(LineError::UnknownType { found: shorten(other) }),
        }
    }
}

fn request(line: ObjectFields<'_>) -> Result<IncomingLine, LineError> {
    let id = line.text("request_id")?.to_owned();
    let subtype = line.get("request").and_then(|request| request.get("subtype")).and_then(Value::as_str);
    let subtype = shorten(subtype.unwrap_or_default());
    let read = || HostRequest::read(ObjectFields::new("request", line.required("request", "an object")?)?);
    let reason = match read() {
        Ok(Some(request)) => return Ok(IncomingLine::Request { id, request: Ok(request) }),
        Ok(None) => format!("unsupported control request subtype: {subtype}"),
        Err(error) => error.to_string(),
    };
    Ok(IncomingLine::Request { id, request: Err(RefusedRequest { subtype, reason }) })
}

fn answer(response: ObjectFields<'_>) -> Result<IncomingLine, LineError> {
    let id = response.text("request_id")?.to_owned();
    let answer = match response.text("subtype")? {
        "success" => Ok(response.get("response").cloned().unwrap_or_default()),
        "error" => Err(response.optional_text("error")?.unwrap_or_else(|| "unknown error".to_owned())),
        _ => return Err(response.wrong("subtype", "`success` or `error`")),
    };
    Ok(IncomingLine::Answer { id, answer })
}
