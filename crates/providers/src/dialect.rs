//! Wire dialects as pure functions. One driver does the I/O for all of them ([`crate::transport`]).

use std::fmt;

use pintle_llm::{Error, Fingerprint, Request, Response, StreamEvent};
use reqwest::header::HeaderMap;
#[cfg(test)]
use reqwest::header::{HeaderName, HeaderValue};
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::body::Body;

/// An encoded request.
///
/// `Debug` leaves out header values, because one of them is the key.
pub(crate) struct HttpRequest {
    /// Path below the base URL, with a leading slash and an optional query.
    pub(crate) path: String,
    /// Header names are in lower case.
    pub(crate) headers: Vec<(&'static str, String)>,
    /// JSON.
    pub(crate) body: Body,
}

impl fmt::Debug for HttpRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| *name).collect();
        f.debug_struct("HttpRequest")
            .field("path", &self.path)
            .field("headers", &names)
            .field("body", &format_args!("{} bytes", self.body.len()))
            .finish()
    }
}

/// Headers of a response. Names are case-insensitive.
#[derive(Clone, Debug, Default)]
pub(crate) struct Headers(pub(crate) HeaderMap);

impl Headers {
    /// Returns the first value of this name that is visible ASCII.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get_all(name).iter().find_map(|value| value.to_str().ok())
    }
}

#[cfg(test)]
impl<'a> FromIterator<(&'a str, &'a str)> for Headers {
    fn from_iter<T: IntoIterator<Item = (&'a str, &'a str)>>(pairs: T) -> Self {
        let parsed = |(name, value): (&str, &str)| {
            (HeaderName::try_from(name).unwrap(), HeaderValue::try_from(value).unwrap())
        };
        let mut headers = HeaderMap::new();
        for (name, value) in pairs.into_iter().map(parsed) {
            headers.append(name, value);
        }
        Self(headers)
    }
}

/// One event of a server-sent event stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SseEvent<'a> {
    /// Value of the `event:` line, empty if there was none. Decoders prefer the type in the payload.
    pub(crate) name: &'a str,
    /// Values of the `data:` lines, joined by line feeds.
    pub(crate) data: &'a str,
}

impl SseEvent<'_> {
    /// Returns whether an event that cannot be parsed as an event of the dialect only keeps the connection alive: the dialect
    /// does not have its name, or its data is blank, a comment, a time, a JSON scalar, or a word such as `ping`. Truncated
    /// JSON and messages are not.
    pub(crate) fn is_keep_alive(&self, has_name: impl FnOnce(&str) -> bool) -> bool {
        /// Words that a time or a number may follow.
        const WORDS: [&str; 5] = ["ping", "pong", "heartbeat", "keepalive", "keep-alive"];
        /// Maximum length of any other word, in bytes.
        const MAX_LENGTH: usize = 32;
        if self.name == "error" {
            return false;
        }
        if !self.name.is_empty() && !has_name(self.name) {
            return true;
        }
        let data = self.data.trim();
        if data.starts_with(':') || is_time(data) || is_scalar(data) {
            return true;
        }
        let inside = data.strip_prefix('[').and_then(|data| data.strip_suffix(']')).unwrap_or(data);
        let is_word = |byte: u8| byte.is_ascii_alphabetic() || matches!(byte, b'-' | b'_');
        let first = data.split([' ', ':', ',']).next().unwrap_or_default();
        (data.len() <= MAX_LENGTH && inside.bytes().all(is_word))
            || WORDS.iter().any(|word| first.eq_ignore_ascii_case(word))
    }
}

/// Returns whether the data is a time or a date in ISO form.
fn is_time(data: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_digit() || b"-:.,+TZtz ".contains(&byte);
    data.starts_with(|first: char| first.is_ascii_digit()) && data.bytes().all(is_part)
}

/// Returns whether the data is a JSON value that is neither an object nor a list.
fn is_scalar(data: &str) -> bool {
    !data.starts_with(['{', '[']) && serde_json::from_str::<IgnoredAny>(data).is_ok()
}

/// Returns the seed for ids of a complete response. It depends on the body and on the position in the conversation, so
/// that decoding is deterministic and ids are unique.
pub(crate) fn response_seed(request: &Request, body: &[u8]) -> u64 {
    let position = Value::from(request.messages.len()).to_string();
    let hash = Fingerprint::from_bytes(position.as_bytes()).chain(Fingerprint::from_bytes(body)).to_string();
    hash.get(..16).and_then(|digits| u64::from_str_radix(digits, 16).ok()).unwrap_or_default()
}

/// A wire dialect: encoding, decoding and error classification, without I/O.
pub(crate) trait Dialect: fmt::Debug + Send + Sync + 'static {
    /// Decoder of one streamed response.
    type Decoder: Decoder;

    /// Returns the provider's name for errors and responses.
    fn provider(&self) -> &str;

    /// Encodes a request. Local media files have been read before.
    fn encode(&self, request: &Request, stream: bool) -> Result<HttpRequest, Error>;

    /// Decodes a complete response.
    fn decode(&self, request: &Request, body: &[u8]) -> Result<Response, Error>;

    /// Creates a decoder for the streamed response to `request`. Ids that the provider does not send are derived from
    /// `seed`, which is fresh per response: the same seed and bytes yield the same events.
    fn decoder(&self, request: &Request, seed: u64) -> Self::Decoder;

    /// Classifies a response with an error status.
    fn classify(&self, status: u16, headers: &Headers, body: &[u8]) -> Error;
}

/// Converter from the events of one stream to unified events.
///
/// It receives complete events, never raw reads. It emits `STREAM_START` at most once, pairs every start with an end,
/// and emits [`StreamEvent::Finish`] once, last, with an empty response that the driver fills from its accumulator.
pub(crate) trait Decoder: Send + 'static {
    /// Decodes one event and pushes the resulting unified events. An event that only keeps the connection alive has none
    /// ([`SseEvent::is_keep_alive`]).
    ///
    /// # Errors
    ///
    /// Fails for an error event and for data that is not of this dialect. The stream ends there.
    fn feed(&mut self, event: SseEvent<'_>, out: &mut Vec<StreamEvent>) -> Result<(), Error>;

    /// Returns whether content was received since the last call that may be held: it is progress, although no event carries it
    /// yet.
    fn take_progress(&mut self) -> bool {
        false
    }

    /// Handles the end of the bytes.
    ///
    /// # Errors
    ///
    /// [`pintle_llm::ErrorKind::Stream`] if the response is incomplete.
    fn end(&mut self, out: &mut Vec<StreamEvent>) -> Result<(), Error>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keep_alives_have_no_content() {
        let cases = [
            ("", "", true),
            ("", " \n ", true),
            ("", "ping", true),
            ("", ": ping", true),
            ("", "PING", true),
            ("", "keep-alive", true),
            ("", "waiting_for_model", true),
            ("", "[PING]", true),
            ("", "[DONE]", true),
            ("", "null", true),
            ("", "ping - 2026-01-01 00:00:00.000001+00:00", true),
            ("", "heartbeat: 7", true),
            ("", ": connected to the server", true),
            ("", "1", true),
            ("", "-1.5", true),
            ("", "true", true),
            ("", "\"\"", true),
            ("", "\"ping\"", true),
            ("", "\"2026-01-01T00:00:00Z\"", true),
            ("", "2026-01-01T00:00:00.001Z", true),
            ("", "2026-01-01 00:00:00+00:00", true),
            ("known", "7", true),
            ("known", "ping", true),
            ("known", "", true),
            ("keepalive", "keepalive", true),
            ("keepalive", "7", true),
            ("keepalive", "{\"a\": ", true),
            ("known", "{\"a\": ", false),
            ("", "{\"a\": ", false),
            ("", "{", false),
            ("", "[", false),
            ("", "[1]", false),
            ("", "\"ping", false),
            ("", "7 problems", false),
            ("", "<html>", false),
            ("", "\u{1}", false),
            ("", "\u{fffd}", false),
            ("", "upstream connect error", false),
            ("", "Unauthorized: no key", false),
            ("error", "overloaded", false),
            ("error", "\"overloaded\"", false),
            ("error", "", false),
        ];
        for (name, data, expected) in cases {
            let event = SseEvent { name, data };
            assert_eq!(event.is_keep_alive(|name| name == "known"), expected, "{event:?}");
        }
    }

    #[test]
    fn first_text_value_of_a_header_wins() {
        let mut headers: Headers =
            [("X-Request-Id", "1"), ("retry-after", "2"), ("retry-after", "3")].into_iter().collect();
        assert_eq!((headers.get("x-request-id"), headers.get("Retry-After")), (Some("1"), Some("2")));
        headers.0.insert("retry-after", HeaderValue::from_bytes(b"\xff").unwrap());
        headers.0.append("retry-after", HeaderValue::from_static("4"));
        assert_eq!((headers.get("retry-after"), headers.get("x-none")), (Some("4"), None));
    }
}
