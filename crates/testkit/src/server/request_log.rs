//! Recorded requests.

use std::collections::VecDeque;

use serde_json::Value;

use crate::check::KEY_PARAMETERS;
use crate::dialect::Dialect;
use crate::http::HttpRequest;
use crate::violation::Violation;

/// Replacement of a key.
const REDACTED: &str = "[redacted]";
/// Headers that contain keys.
const SECRET_HEADERS: &[&str] =
    &["authorization", "x-api-key", "x-goog-api-key", "proxy-authorization", "cookie"];

/// A request with the status of its response.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct RecordedRequest {
    /// Dialect of its path, if any.
    pub dialect: Option<Dialect>,
    /// The method.
    pub method: String,
    /// Path and query as sent, with keys redacted.
    pub path: String,
    /// Headers with names in lower case, in order; keys are redacted.
    pub headers: Vec<(String, String)>,
    /// The body as JSON, null if it is not JSON.
    pub body: Value,
    /// The raw body.
    pub raw_body: Vec<u8>,
    /// Status of the response; `None` if the connection was closed without one.
    pub status: Option<u16>,
    /// Violations that the checker reported.
    pub violations: Vec<Violation>,
    /// Size for the budget.
    bytes: usize,
}

impl RecordedRequest {
    /// Returns the value of a header. The name is case-insensitive.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        crate::check::header(&self.headers, name)
    }
}

/// Log of the latest requests within a budget in bytes.
#[derive(Debug, Default)]
pub(super) struct RequestLog {
    requests: VecDeque<RecordedRequest>,
    bytes: usize,
}

impl RequestLog {
    /// Adds a request. Its body is parsed on demand.
    pub(super) fn push(
        &mut self,
        request: &HttpRequest,
        status: Option<u16>,
        violations: Vec<Violation>,
        budget: usize,
    ) {
        let bytes = size(&request.path, &request.headers, &request.body);
        if bytes > budget {
            return;
        }
        self.bytes += bytes;
        self.requests.push_back(RecordedRequest {
            dialect: Dialect::of_path(&request.path),
            method: request.method.clone(),
            path: redact_query(&request.path),
            headers: request.headers.iter().map(redact).collect(),
            bytes,
            body: Value::Null,
            raw_body: request.body.clone(),
            status,
            violations,
        });
        while self.bytes > budget {
            let Some(oldest) = self.requests.pop_front() else {
                return;
            };
            self.bytes -= oldest.bytes;
        }
    }

    pub(super) fn all(&self) -> Vec<RecordedRequest> {
        let parsed = |request: &RecordedRequest| {
            let body = serde_json::from_slice(&request.raw_body).unwrap_or(Value::Null);
            RecordedRequest { body, ..request.clone() }
        };
        self.requests.iter().map(parsed).collect()
    }
}

/// Returns the size of a request for the budget.
fn size(path: &str, headers: &[(String, String)], body: &[u8]) -> usize {
    let headers = headers.iter().map(|(name, value)| name.len() + value.len());
    path.len() + headers.sum::<usize>() + body.len()
}

fn redact_query(path: &str) -> String {
    let Some((path, query)) = path.split_once('?') else {
        return path.to_owned();
    };
    let pairs = query.split('&').map(|pair| match pair.split_once('=') {
        Some((name, _)) if KEY_PARAMETERS.contains(&name) => format!("{name}={REDACTED}"),
        Some(_) | None => pair.to_owned(),
    });
    format!("{path}?{}", pairs.collect::<Vec<_>>().join("&"))
}

fn redact((name, value): &(String, String)) -> (String, String) {
    let value = if SECRET_HEADERS.contains(&name.as_str()) { REDACTED.to_owned() } else { value.clone() };
    (name.clone(), value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(body: &str) -> HttpRequest {
        HttpRequest {
            method: "POST".to_owned(),
            path: "/v1/responses?alt=sse&key=secret".to_owned(),
            headers: vec![("authorization".to_owned(), "Bearer secret".to_owned())],
            body: body.as_bytes().to_vec(),
            keep_alive: true,
        }
    }

    #[test]
    fn oldest_requests_are_evicted_and_keys_redacted() {
        let mut log = RequestLog::default();
        let empty = request("");
        let budget = 2 * (size(&empty.path, &empty.headers, &empty.body) + 4);
        for body in ["1111", "2222", "3333"] {
            log.push(&request(body), Some(200), Vec::new(), budget);
        }
        let kept: Vec<Value> = log.all().into_iter().map(|request| request.body).collect();
        assert_eq!(kept, [2222, 3333]);
        assert!(!format!("{log:?}").contains("secret"));
        assert_eq!(log.all()[0].path, "/v1/responses?alt=sse&key=[redacted]");
        log.push(&request(&"1".repeat(budget)), Some(200), Vec::new(), budget);
        assert_eq!(log.all().len(), 2, "a request above the budget is not kept and evicts nothing");
    }

    #[test]
    fn requests_without_body_are_bounded() {
        let mut log = RequestLog::default();
        for _ in 0..1000 {
            log.push(&request(""), Some(404), Vec::new(), 1000);
        }
        assert!(log.all().len() < 20, "{}", log.all().len());
        log.push(&request(""), Some(404), Vec::new(), 0);
        assert!(!log.all().is_empty(), "a budget of 0 keeps no new request");
    }
}
