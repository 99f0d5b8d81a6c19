//! JSON-RPC 2.0: one message per line.

use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Id of a request, chosen by its sender.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum RequestId {
    Number(i64),
    Text(String),
    /// Allowed and discouraged by JSON-RPC; also the id of a response to a message without an id.
    Null,
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => write!(f, "{text:?}"),
            Self::Null => f.write_str("null"),
        }
    }
}

/// Error of a response.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct RpcError {
    pub(crate) code: i64,
    pub(crate) message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) data: Option<Value>,
}

impl RpcError {
    pub(crate) const PARSE: i64 = -32700;
    pub(crate) const INVALID_REQUEST: i64 = -32600;
    pub(crate) const METHOD_NOT_FOUND: i64 = -32601;
    pub(crate) const INVALID_PARAMS: i64 = -32602;
    pub(crate) const INTERNAL: i64 = -32603;
    pub(crate) const CANCELLED: i64 = -32800;
    pub(crate) const AUTHENTICATION_REQUIRED: i64 = -32000;
    pub(crate) const NOT_FOUND: i64 = -32002;
    /// Defined by this crate: the session exists, but its state or its holder does not allow the request.
    pub(crate) const CONFLICT: i64 = -32010;

    pub(crate) fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    pub(crate) fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(Self::INVALID_PARAMS, message)
    }

    pub(crate) fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(Self::INVALID_REQUEST, message)
    }

    pub(crate) fn cancelled() -> Self {
        Self::new(Self::CANCELLED, "the request was cancelled")
    }

    pub(crate) fn with_data(mut self, data: Value) -> Self {
        self.data = Some(data);
        self
    }
}

/// Message of the client.
#[derive(Debug, PartialEq)]
pub(crate) enum IncomingMessage {
    Request {
        id: RequestId,
        method: String,
        params: Value,
    },
    Notification {
        method: String,
        params: Value,
    },
    Response {
        id: RequestId,
        result: Result<Value, RpcError>,
    },
    /// Invalid message. The error is the response.
    Invalid {
        id: RequestId,
        error: RpcError,
    },
}

/// Parses a line.
pub(crate) fn parse(line: &[u8]) -> IncomingMessage {
    let invalid =
        |id, message: &str| IncomingMessage::Invalid { id, error: RpcError::invalid_request(message) };
    let value: Value = match serde_json::from_slice(line) {
        Ok(value) => value,
        Err(error) => {
            let error = RpcError::new(RpcError::PARSE, format!("the line is no JSON: {error}"));
            return IncomingMessage::Invalid { id: RequestId::Null, error };
        }
    };
    let Value::Object(mut fields) = value else {
        let what = if value.is_array() { "batches are not supported" } else { "a message is a JSON object" };
        return invalid(RequestId::Null, what);
    };
    let id = match fields.remove("id").map(serde_json::from_value::<RequestId>) {
        None => None,
        Some(Ok(id)) => Some(id),
        Some(Err(_)) => return invalid(RequestId::Null, "`id` is not a string, an integer or null"),
    };
    if fields.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return invalid(id.unwrap_or(RequestId::Null), "`jsonrpc` is not \"2.0\"");
    }
    let params = fields.remove("params").unwrap_or(Value::Null);
    match (fields.remove("method"), id) {
        (Some(Value::String(method)), Some(id)) => IncomingMessage::Request { id, method, params },
        (Some(Value::String(method)), None) => IncomingMessage::Notification { method, params },
        (Some(_), id) => invalid(id.unwrap_or(RequestId::Null), "`method` is not a string"),
        (None, id) => response(id, fields.remove("result"), fields.remove("error")),
    }
}

fn response(id: Option<RequestId>, result: Option<Value>, error: Option<Value>) -> IncomingMessage {
    let Some(id) = id.filter(|_| result.is_some() || error.is_some()) else {
        let error =
            RpcError::invalid_request("the message has neither `method` nor `id` with `result` or `error`");
        return IncomingMessage::Invalid { id: RequestId::Null, error };
    };
    let result = match (result, error) {
        (_, Some(error)) => Err(serde_json::from_value(error.clone())
            .unwrap_or_else(|_| RpcError::new(RpcError::INTERNAL, error.to_string()))),
        (result, None) => Ok(result.unwrap_or(Value::Null)),
    };
    IncomingMessage::Response { id, result }
}

/// Parses the parameters of a request or a notification. Missing parameters count as an empty object.
pub(crate) fn params<T: DeserializeOwned>(params: Value) -> Result<T, RpcError> {
    let params = if params.is_null() { json!({}) } else { params };
    serde_json::from_value(params)
        .map_err(|error| RpcError::invalid_params(format!("wrong parameters: {error}")))
}

pub(crate) fn request(id: i64, method: &str, params: &impl Serialize) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

pub(crate) fn notification(method: &str, params: &impl Serialize) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

pub(crate) fn reply(id: &RequestId, result: Result<Value, RpcError>) -> Value {
    match result {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(error) => json!({"jsonrpc": "2.0", "id": id, "error": error}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_messages_or_answered_with_an_error() {
        let request = |id| IncomingMessage::Request { id, method: "m".into(), params: json!({"a": 1}) };
        let cases = [
            (r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1}}"#, request(RequestId::Number(1))),
            (
                r#"{"jsonrpc":"2.0","id":"x","method":"m","params":{"a":1}}"#,
                request(RequestId::Text("x".into())),
            ),
            (r#"{"jsonrpc":"2.0","id":null,"method":"m","params":{"a":1}}"#, request(RequestId::Null)),
            (
                r#"{"jsonrpc":"2.0","method":"m"}"#,
                IncomingMessage::Notification { method: "m".into(), params: Value::Null },
            ),
            (
                r#"{"jsonrpc":"2.0","id":2,"result":null}"#,
                IncomingMessage::Response { id: RequestId::Number(2), result: Ok(Value::Null) },
            ),
            (
                r#"{"jsonrpc":"2.0","id":2,"error":{"code":-1,"message":"no"}}"#,
                IncomingMessage::Response { id: RequestId::Number(2), result: Err(RpcError::new(-1, "no")) },
            ),
        ];
        for (line, expected) in cases {
            assert_eq!(parse(line.as_bytes()), expected, "{line}");
        }
    }

    #[test]
    fn bad_messages_name_what_is_wrong() {
        let cases: [(&[u8], i64, &str); 9] = [
            (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"meth", -32700, "no JSON"),
            (b"\xff\xfe", -32700, "no JSON"),
            (b"[]", -32600, "batches"),
            (b"7", -32600, "object"),
            (br#"{"id":1,"method":"m"}"#, -32600, "jsonrpc"),
            (br#"{"jsonrpc":"2.0","id":1.5,"method":"m"}"#, -32600, "`id`"),
            (br#"{"jsonrpc":"2.0","id":{},"method":"m"}"#, -32600, "`id`"),
            (br#"{"jsonrpc":"2.0","id":1,"method":3}"#, -32600, "`method`"),
            (br#"{"jsonrpc":"2.0","id":1}"#, -32600, "neither"),
        ];
        for (line, code, word) in cases {
            let IncomingMessage::Invalid { error, .. } = parse(line) else { panic!("{line:?} was accepted") };
            assert_eq!(error.code, code);
            assert!(error.message.contains(word), "{}", error.message);
        }
    }
}
