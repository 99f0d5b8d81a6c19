//! Requests as the server remembers them.

use std::collections::VecDeque;

use serde_json::Value;

use crate::check::KEY_PARAMETERS;
use crate::dialect::Dialect;
use crate::http::HttpRequest;
use crate::violation::Violation;

/// What stands in the place of a key.
const REDACTED: &str = "[redacted]";
/// Headers that carry keys.
const SECRET: &[&str] = &["authorization", "x-api-key", "x-goog-api-key", "proxy-authorization", "cookie"];

/// A request that the server got, and the status of its answer.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct RecordedRequest {
    /// The dialect that its path belongs to, if any.
    pub dialect: Option<Dialect>,
    /// The method.
    pub method: String,
    /// Path and query as they were sent, but for a key in the query, which is redacted.
    pub path: String,
    /// Headers with names in lower case, in order; keys are redacted.
    pub headers: Vec<(String, String)>,
    /// The body as JSON, null if it is none.
    pub body: Value,
    /// The body as it was sent.
    pub raw_body: Vec<u8>,
    /// The status of the answer; nothing where the connection was closed without one.
    pub status: Option<u16>,
    /// What the checker found wrong.
    pub violations: Vec<Violation>,
    /// What it counts for in the budget.
    bytes: usize,
}

impl RecordedRequest {
    /// The value of a header by its name, in any case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        crate::check::header(&self.headers, name)
    }
}

/// The latest requests within a budget of bytes.
#[derive(Debug, Default)]
pub(super) struct Record {
    requests: VecDeque<RecordedRequest>,
    bytes: usize,
}

impl Record {
    /// Keeps a request, with its body unparsed until it is asked for.
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

/// The bytes that a client sent, in which the budget is counted.
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
    let value = if SECRET.contains(&name.as_str()) { REDACTED.to_owned() } else { value.clone() };
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
        let mut record = Record::default();
        let empty = request("");
        let budget = 2 * (size(&empty.path, &empty.headers, &empty.body) + 4);
        for body in ["1111", "2222", "3333"] {
            record.push(&request(body), Some(200), Vec::new(), budget);
        }
        let kept: Vec<Value> = record.all().into_iter().map(|request| request.body).collect();
        assert_eq!(kept, [2222, 3333]);
        assert!(!format!("{record:?}").contains("secret"));
        assert_eq!(record.all()[0].path, "/v1/responses?alt=sse&key=[redacted]");
        record.push(&request(&"1".repeat(budget)), Some(200), Vec::new(), budget);
        assert_eq!(record.all().len(), 2, "a request above the budget is not kept and drives nothing out");
    }

    #[test]
    fn requests_without_body_are_bounded() {
        let mut record = Record::default();
        for _ in 0..1000 {
            record.push(&request(""), Some(404), Vec::new(), 1000);
        }
        assert!(record.all().len() < 20, "{}", record.all().len());
        record.push(&request(""), Some(404), Vec::new(), 0);
        assert!(!record.all().is_empty(), "a budget of nothing keeps nothing new");
    }
}
