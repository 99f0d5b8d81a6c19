//! Requests as the server remembers them.

use std::collections::VecDeque;

use serde_json::Value;

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
    /// Path and query as they were sent.
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
        if request.body.len() > budget || budget == 0 {
            return;
        }
        self.bytes += request.body.len();
        self.requests.push_back(RecordedRequest {
            dialect: Dialect::of_path(&request.path),
            method: request.method.clone(),
            path: request.path.clone(),
            headers: request.headers.iter().map(redact).collect(),
            body: Value::Null,
            raw_body: request.body.clone(),
            status,
            violations,
        });
        while self.bytes > budget {
            let Some(oldest) = self.requests.pop_front() else {
                return;
            };
            self.bytes -= oldest.raw_body.len();
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
            path: "/v1/responses".to_owned(),
            headers: vec![("authorization".to_owned(), "Bearer secret".to_owned())],
            body: body.as_bytes().to_vec(),
            keep_alive: true,
        }
    }

    #[test]
    fn the_oldest_go_first_and_keys_never_stay() {
        let mut record = Record::default();
        for body in ["1111", "2222", "3333"] {
            record.push(&request(body), Some(200), Vec::new(), 8);
        }
        let kept: Vec<Value> = record.all().into_iter().map(|request| request.body).collect();
        assert_eq!(kept, [2222, 3333]);
        assert!(!format!("{record:?}").contains("secret"));
        record.push(&request("123456789"), Some(200), Vec::new(), 8);
        assert_eq!(record.all().len(), 2, "a body above the budget is not kept and drives nothing out");
    }
}
