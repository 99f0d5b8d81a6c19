//! Independent request checkers, one per dialect.
//!
//! They are written from the providers' documentation and type definitions and share no code with any encoder, so they do
//! not repeat mistakes of an encoder.

mod anthropic;
mod chat;
mod gemini;
mod json;
mod media;
mod openai;
mod report;
mod tools;

#[cfg(test)]
mod tests;

use serde_json::{Map, Value};

use crate::dialect::Dialect;
use crate::violation::{Violation, ViolationKind};
use report::Report;

/// Query parameters that contain keys, where no key belongs.
pub(crate) const KEY_PARAMETERS: &[&str] = &["key", "api_key"];

/// Checks a request against the rules of a dialect. An empty list means that the provider would accept it.
///
/// `path` may have a query. Header names are case-insensitive. At most 100 violations of the body are reported.
/// This is [`Checker::check`] with the default options.
///
/// ```
/// use pintle_testkit::{Dialect, check};
///
/// let headers = [("authorization".into(), "Bearer k".into()), ("content-type".into(), "application/json".into())];
/// let body = br#"{"model": "m", "messages": [{"role": "tool", "content": "4", "tool_call_id": "call_1"}]}"#;
/// let violations = check(Dialect::ChatCompletions, "POST", "/v1/chat/completions", &headers, body);
/// assert_eq!(violations[0].field, "messages[0]");
/// ```
#[must_use]
pub fn check(
    dialect: Dialect,
    method: &str,
    path: &str,
    headers: &[(String, String)],
    body: &[u8],
) -> Vec<Violation> {
    Checker::new().check(dialect, method, path, headers, body)
}

/// A request checker with options.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Checker {
    /// OpenAI Responses: accepts an `id` on input items although `store` is false.
    ///
    /// Off by default, because the provider looks such ids up and does not find them.
    pub allow_item_ids: bool,
}

impl Checker {
    /// Creates a checker with the strictest rules.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets whether an `id` on input items is accepted although `store` is false.
    #[must_use]
    pub fn with_item_ids(mut self, allow: bool) -> Self {
        self.allow_item_ids = allow;
        self
    }

    /// Checks a request; see [`check`].
    #[must_use]
    pub fn check(
        &self,
        dialect: Dialect,
        method: &str,
        path: &str,
        headers: &[(String, String)],
        body: &[u8],
    ) -> Vec<Violation> {
        if let Some(violation) = wrong_target(dialect, method, path) {
            return vec![violation];
        }
        let mut violations = authentication(dialect, path, headers);
        violations.extend(content_type(headers));
        match object(body) {
            Ok(body) => violations.extend(self.body(dialect, path, &body)),
            Err(problem) => violations.push(Violation::new(ViolationKind::Invalid, "", problem)),
        }
        violations
    }

    fn body(&self, dialect: Dialect, path: &str, body: &Map<String, Value>) -> Vec<Violation> {
        let mut report = Report::new(dialect);
        match dialect {
            Dialect::OpenAiResponses => openai::check(body, self.allow_item_ids, &mut report),
            Dialect::AnthropicMessages => anthropic::check(body, &mut report),
            Dialect::Gemini => gemini::check(path, body, &mut report),
            Dialect::ChatCompletions => chat::check(body, &mut report),
        }
        report.violations
    }
}

/// Returns the value of a header. The name is case-insensitive.
pub(crate) fn header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(header, _)| header.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
}

/// Returns the key in the header of the dialect.
pub(crate) fn key(dialect: Dialect, headers: &[(String, String)]) -> Option<&str> {
    let bearer = || header(headers, "authorization").and_then(|value| value.strip_prefix("Bearer "));
    match dialect {
        Dialect::OpenAiResponses | Dialect::ChatCompletions => bearer(),
        // The newest official package sends its key as a bearer token.
        Dialect::AnthropicMessages => header(headers, "x-api-key").or_else(bearer),
        Dialect::Gemini => header(headers, "x-goog-api-key"),
    }
}

fn wrong_target(dialect: Dialect, method: &str, path: &str) -> Option<Violation> {
    if Dialect::of_path(path) != Some(dialect) {
        let bare = path.split('?').next().unwrap_or(path);
        let message = format!("found {bare}, which is not a path of dialect {dialect}");
        return Some(Violation::new(ViolationKind::NotFound, "path", message));
    }
    if method != "POST" {
        return Some(Violation::new(
            ViolationKind::Method,
            "method",
            format!("found {method}, expected POST"),
        ));
    }
    None
}

fn authentication(dialect: Dialect, path: &str, headers: &[(String, String)]) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut missing = |field: &str, message: &str| {
        violations.push(Violation::new(ViolationKind::Authentication, field, message));
    };
    let has_key = key(dialect, headers).is_some_and(|key| !key.trim().is_empty());
    match dialect {
        Dialect::OpenAiResponses if !has_key => missing("authorization", "expected `Bearer` and a key"),
        // A local server often needs no key, but an existing header must have the right form.
        Dialect::ChatCompletions if !has_key && header(headers, "authorization").is_some() => {
            missing("authorization", "expected `Bearer` and a key, or no such header");
        }
        Dialect::AnthropicMessages if !has_key => {
            missing("x-api-key", "header is required, or `Bearer` and a key in authorization")
        }
        Dialect::Gemini if !has_key => missing("x-goog-api-key", "header is required"),
        Dialect::OpenAiResponses
        | Dialect::ChatCompletions
        | Dialect::AnthropicMessages
        | Dialect::Gemini => {}
    }
    if dialect == Dialect::AnthropicMessages && header(headers, "anthropic-version").is_none() {
        violations.push(Violation::new(ViolationKind::Invalid, "anthropic-version", "header is required"));
    }
    let query = path.split_once('?').map_or("", |(_, query)| query);
    let names = query.split('&').filter_map(|pair| pair.split_once('=')).map(|(name, _)| name);
    if names.into_iter().any(|name| KEY_PARAMETERS.contains(&name)) {
        let message = "found a key in the URL, which may be logged; expected it in a header";
        violations.push(Violation::new(ViolationKind::Invalid, "path", message));
    }
    violations
}

fn content_type(headers: &[(String, String)]) -> Option<Violation> {
    let found = header(headers, "content-type").unwrap_or_default();
    let essence = found.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("application/json") {
        return None;
    }
    let message = format!("found {found:?}, expected application/json");
    Some(Violation::new(ViolationKind::Invalid, "content-type", message))
}

fn object(body: &[u8]) -> Result<Map<String, Value>, String> {
    match json::read(body) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(other) => Err(format!("expected the body to be a JSON object, found {}", report::kind_of(&other))),
        Err(error) => Err(format!("body does not parse as JSON: {error}")),
    }
}
