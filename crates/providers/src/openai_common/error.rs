//! Error objects of OpenAI and compatible servers.

use pintle_llm::Error;
use serde_json::Value;

use crate::failure::{Failure, is_known};

/// Classifies a failure whose body contains an error object: `{"error": {message, type, code}}`, the bare object, a string
/// in its place, or a list with one of these.
///
/// A numeric code is the status of an upstream server.
pub(crate) fn failure_of(failure: Failure<'_>) -> Error {
    let body: Value = serde_json::from_slice(failure.body).unwrap_or_default();
    let body = body.get(0).unwrap_or(&body);
    let found = match body.get("error") {
        None | Some(Value::Null) => body,
        Some(error) => error,
    };
    let text = |name: &str| found.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let number =
        |name: &str| found.get(name).and_then(Value::as_u64).and_then(|number| u16::try_from(number).ok());
    let code = text("code").or_else(|| text("type"));
    // The type is used only if the code is unknown.
    let known = [text("code"), text("type")].into_iter().flatten().find(|code| is_known(code));
    let upstream = ["status_code", "code", "status"].iter().find_map(|name| number(name));
    let error = Failure {
        status: failure.status.or(upstream.filter(|status| (400..=599).contains(status))),
        code: known.or(code),
        message: found.as_str().or_else(|| text("message")).or_else(|| text("detail")),
        ..failure
    }
    .into_error();
    match code {
        Some(code) => error.with_error_code(code),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use pintle_llm::ErrorKind;

    use super::*;

    #[test]
    fn error_objects_of_every_shape_are_read() {
        use ErrorKind as K;
        // Status, body; kind, status, code and message of the error.
        type Case<'a> = (Option<u16>, &'a str, K, Option<u16>, Option<&'a str>, &'a str);
        let cases: &[Case<'_>] = &[
            (
                Some(400),
                r#"{"error": {"message": "Bad value", "type": "invalid_request_error", "param": "x", "code": "below_min"}}"#,
                K::InvalidRequest,
                Some(400),
                Some("below_min"),
                "Bad value",
            ),
            (
                Some(400),
                r#"{"error": {"message": "Too long", "type": "invalid_request_error", "code": "context_length_exceeded"}}"#,
                K::ContextLength,
                Some(400),
                Some("context_length_exceeded"),
                "Too long",
            ),
            (
                Some(401),
                r#"{"error": {"message": "Wrong key", "type": "invalid_request_error", "code": "invalid_api_key"}}"#,
                K::Authentication,
                Some(401),
                Some("invalid_api_key"),
                "Wrong key",
            ),
            (
                Some(404),
                r#"{"error": {"message": "The model `x` does not exist", "code": "model_not_found"}}"#,
                K::NotFound,
                Some(404),
                Some("model_not_found"),
                "The model `x` does not exist",
            ),
            (
                Some(429),
                r#"{"error": {"message": "Quota", "type": "insufficient_quota", "code": "insufficient_quota"}}"#,
                K::QuotaExceeded,
                Some(429),
                Some("insufficient_quota"),
                "Quota",
            ),
            (
                Some(429),
                r#"{"error": {"message": "Rate", "type": "tokens", "code": "rate_limit_exceeded"}}"#,
                K::RateLimit,
                Some(429),
                Some("rate_limit_exceeded"),
                "Rate",
            ),
            (
                Some(500),
                r#"{"error": {"message": "Oops", "type": "server_error", "code": null}}"#,
                K::Server,
                Some(500),
                Some("server_error"),
                "Oops",
            ),
            (
                None,
                r#"{"type": "error", "code": "server_error", "message": "Oops", "param": null}"#,
                K::Server,
                None,
                Some("server_error"),
                "Oops",
            ),
            (
                None,
                r#"{"error": {"message": "No call", "type": "invalid_request_error", "code": "tool_use_failed", "status_code": 400}}"#,
                K::InvalidRequest,
                Some(400),
                Some("tool_use_failed"),
                "No call",
            ),
            (
                None,
                r#"{"error": {"message": "Bad", "type": "invalid_request_error", "code": "new_code"}}"#,
                K::InvalidRequest,
                None,
                Some("new_code"),
                "Bad",
            ),
            (
                None,
                r#"{"id": "x", "error": {"code": 502, "message": "Upstream"}, "choices": []}"#,
                K::Server,
                Some(502),
                None,
                "Upstream",
            ),
            (
                Some(400),
                r#"{"error": "model 'x' not found"}"#,
                K::NotFound,
                Some(400),
                None,
                "model 'x' not found",
            ),
            (
                Some(400),
                r#"{"object": "error", "message": "Bad", "type": "BadRequestError", "code": 400}"#,
                K::InvalidRequest,
                Some(400),
                Some("BadRequestError"),
                "Bad",
            ),
            (
                Some(422),
                r#"{"detail": "Field required"}"#,
                K::InvalidRequest,
                Some(422),
                None,
                "Field required",
            ),
            (
                Some(400),
                r#"[{"error": {"message": "Listed", "code": 400}}]"#,
                K::InvalidRequest,
                Some(400),
                None,
                "Listed",
            ),
            (
                Some(503),
                "<html>busy</html>",
                K::Server,
                Some(503),
                None,
                "the body begins with \"<html>busy</html>\"",
            ),
        ];
        for (status, body, kind, seen, code, message) in cases {
            let failure =
                Failure { provider: "p", status: *status, body: body.as_bytes(), ..Failure::default() };
            let error = failure_of(failure);
            assert_eq!((error.kind(), error.status(), error.error_code()), (*kind, *seen, *code), "{body}");
            assert_eq!(error.message(), *message, "{body}");
            assert!(error.raw().is_some(), "{body}");
        }
    }
}
