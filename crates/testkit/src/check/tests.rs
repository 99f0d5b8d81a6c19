//! One legal request per dialect, and the violations of its mutations.

mod anthropic;
mod chat;
mod gemini;
mod openai;

use serde_json::Value;

use super::*;

/// Mutation of a legal body, with the reported field and a part of the message.
pub(super) type Case = (fn(&mut Value), &'static str, &'static str);

fn headers(dialect: Dialect) -> Vec<(String, String)> {
    let key = match dialect {
        Dialect::OpenAiResponses | Dialect::ChatCompletions => ("Authorization", "Bearer key"),
        Dialect::AnthropicMessages => ("X-Api-Key", "key"),
        Dialect::Gemini => ("x-goog-api-key", "key"),
    };
    [key, ("Content-Type", "application/json; charset=utf-8"), ("anthropic-version", "2023-06-01")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into()
}

fn path(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::OpenAiResponses => "/v1/responses",
        Dialect::AnthropicMessages => "/v1/messages?beta=true",
        Dialect::Gemini => "/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse",
        Dialect::ChatCompletions => "/v1/chat/completions",
    }
}

fn violations(dialect: Dialect, body: &Value) -> Vec<Violation> {
    check(dialect, "POST", path(dialect), &headers(dialect), body.to_string().as_bytes())
}

/// Asserts that each mutation of the legal body is reported with its field and message.
fn assert_cases(dialect: Dialect, legal: &Value, cases: &[Case]) {
    assert_eq!(violations(dialect, legal), [], "the legal body");
    for (index, (mutate, field, message)) in cases.iter().enumerate() {
        let mut body = legal.clone();
        mutate(&mut body);
        let found = violations(dialect, &body);
        let reported =
            found.iter().any(|violation| violation.field == *field && violation.message.contains(message));
        assert!(reported, "{dialect} case {index}: expected {field}: {message}\nfound {found:#?}");
    }
}

#[test]
fn keys_paths_methods_and_types_are_checked_first() {
    let dialect = Dialect::AnthropicMessages;
    let good = headers(dialect);
    let without = |name: &str| -> Vec<(String, String)> {
        good.iter().filter(|(header, _)| !header.eq_ignore_ascii_case(name)).cloned().collect()
    };
    let cases = [
        ("GET", "/v1/messages", good.clone(), ViolationKind::Method, "method"),
        ("POST", "/v1/message", good.clone(), ViolationKind::NotFound, "path"),
        ("POST", "/v1/messages", without("x-api-key"), ViolationKind::Authentication, "x-api-key"),
        ("POST", "/v1/messages", without("anthropic-version"), ViolationKind::Invalid, "anthropic-version"),
        ("POST", "/v1/messages", without("content-type"), ViolationKind::Invalid, "content-type"),
        ("POST", "/v1/messages?key=secret", good.clone(), ViolationKind::Invalid, "path"),
    ];
    for (method, path, headers, kind, field) in cases {
        let found = check(dialect, method, path, &headers, b"{}");
        assert!(
            found.iter().any(|violation| violation.kind == kind && violation.field == field),
            "{found:?}"
        );
    }
}

#[test]
fn every_dialect_requires_its_key_header() {
    for dialect in Dialect::ALL {
        let bare = [("content-type".to_owned(), "application/json".to_owned())];
        let found = check(dialect, "POST", path(dialect), &bare, b"{}");
        let refused = found.iter().any(|violation| violation.kind == ViolationKind::Authentication);
        assert_eq!(refused, dialect != Dialect::ChatCompletions, "{dialect}");
    }
    let basic = [("authorization".to_owned(), "Basic key".to_owned())];
    let found = check(Dialect::ChatCompletions, "POST", "/v1/chat/completions", &basic, b"{}");
    assert_eq!(found[0].kind, ViolationKind::Authentication, "an existing header must have the right form");
}

#[test]
fn bodies_must_be_objects() {
    for (body, message) in [
        ("[]", "expected the body to be a JSON object, found a list"),
        ("{", "does not parse"),
        (r#"{"model": "m", "model": "n"}"#, "found the member \"model\" twice"),
    ] {
        let dialect = Dialect::OpenAiResponses;
        let found = check(dialect, "POST", path(dialect), &headers(dialect), body.as_bytes());
        assert!(found[0].message.contains(message), "{found:?}");
    }
}

#[test]
fn reported_violations_are_limited() {
    let unknown: serde_json::Map<String, Value> =
        (0..1000).map(|number| (format!("field{number}"), Value::Null)).collect();
    for dialect in Dialect::ALL {
        assert_eq!(violations(dialect, &Value::Object(unknown.clone())).len(), 100, "{dialect}");
    }
}

proptest::proptest! {
    #[test]
    fn arbitrary_json_never_panics(text in "[\\[\\]{}\",:a-z0-9 ]{0,80}") {
        for dialect in Dialect::ALL {
            let _ = check(dialect, "POST", path(dialect), &headers(dialect), text.as_bytes());
        }
    }
}
