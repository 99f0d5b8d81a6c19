//! Parser of messages from servers.

use rmcp::RoleClient;
use rmcp::service::RxJsonRpcMessage;
use serde_json::Value;

/// Maximum size of a message from a server, in bytes.
pub(crate) const MAX_MESSAGE: usize = 64 << 20;

/// Parses a message. An answer may have `"error": null` beside its result, or `"result": null` beside its error, as in version
/// 1 of JSON-RPC.
///
/// # Errors
///
/// The text is not a message.
pub(crate) fn parse(text: &[u8]) -> Result<RxJsonRpcMessage<RoleClient>, serde_json::Error> {
    serde_json::from_slice(text).or_else(|error| match without_null(text) {
        Some(message) => serde_json::from_value(message),
        None => Err(error),
    })
}

/// Returns an answer without the null in place of its error or result; `None` if the text has no such null.
pub(crate) fn without_null(text: &[u8]) -> Option<Value> {
    let mut message: Value = serde_json::from_slice(text).ok()?;
    let members = message.as_object_mut()?;
    let is_null = |name: &str| members.get(name).map(Value::is_null);
    let absent = match (is_null("result"), is_null("error")) {
        (Some(false), Some(true)) => "error",
        (Some(true), Some(false)) => "result",
        (_, _) => return None,
    };
    members.remove(absent);
    Some(message)
}

#[cfg(test)]
mod tests {
    use rmcp::model::JsonRpcMessage;

    use super::*;

    #[test]
    fn a_null_beside_a_result_or_an_error_is_absent() {
        let error = r#"{"code": 1, "message": "m"}"#;
        for (members, is_result) in [
            (r#""result": {"tools": []}, "error": null"#.to_owned(), Some(true)),
            (r#""result": {"tools": []}"#.to_owned(), Some(true)),
            (format!(r#""result": null, "error": {error}"#), Some(false)),
            (format!(r#""error": {error}"#), Some(false)),
            (format!(r#""result": {{}}, "error": {error}"#), None),
            (r#""result": null, "error": null"#.to_owned(), None),
        ] {
            let text = format!(r#"{{"jsonrpc": "2.0", "id": 1, {members}}}"#);
            let found = match parse(text.as_bytes()) {
                Ok(JsonRpcMessage::Response(_)) => Some(true),
                Ok(JsonRpcMessage::Error(_)) => Some(false),
                Ok(JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_)) | Err(_) => None,
            };
            assert_eq!(found, is_result, "{text}");
        }
        assert!(parse(b"[]").is_err() && parse(b"{").is_err());
    }
}
