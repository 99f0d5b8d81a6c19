//! One wire dialect as pure functions; one driver does the I/O for all ([`crate::transport`]).

use std::fmt;

use pintle_llm::{Error, Fingerprint, Request, Response, StreamEvent};
use reqwest::header::HeaderMap;
#[cfg(test)]
use reqwest::header::{HeaderName, HeaderValue};
use serde_json::Value;

use crate::body::Body;

/// What goes over the wire: everything but the connection.
///
/// `Debug` leaves out header values, since one of them is the key.
pub(crate) struct HttpRequest {
    /// Path below the base URL, with a leading slash and any query.
    pub(crate) path: String,
    /// Names in lower case.
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

/// The headers of an answer; names are looked up without regard to case.
#[derive(Clone, Debug, Default)]
pub(crate) struct Headers(pub(crate) HeaderMap);

impl Headers {
    /// The first value of this name that is text.
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
    /// The `event:` line; empty if there was none. The payload's own type is preferred.
    pub(crate) name: &'a str,
    /// The `data:` lines, joined by line feeds.
    pub(crate) data: &'a str,
}

/// The seed of a whole answer's ids: the same answer at the same place has the same ids, and another has others.
pub(crate) fn answer_seed(request: &Request, body: &[u8]) -> u64 {
    let place = Value::from(request.messages.len()).to_string();
    let hash = Fingerprint::of(place.as_bytes()).chain(Fingerprint::of(body)).to_string();
    hash.get(..16).and_then(|digits| u64::from_str_radix(digits, 16).ok()).unwrap_or_default()
}

/// A wire dialect: encode, decode, stream-decode and classify, without I/O.
pub(crate) trait Dialect: fmt::Debug + Send + Sync + 'static {
    /// The decoder of one streamed answer.
    type Decoder: Decoder;

    /// The provider's name as errors and responses carry it.
    fn provider(&self) -> &str;

    /// The request on the wire. Local media paths have been read before.
    fn encode(&self, request: &Request, stream: bool) -> Result<HttpRequest, Error>;

    /// A whole answer.
    fn decode(&self, request: &Request, body: &[u8]) -> Result<Response, Error>;

    /// A decoder for the answer to `request`. `seed` is fresh per answer; ids are derived from it where the
    /// provider gives none, so that the same seed decodes the same bytes to the same events.
    fn decoder(&self, request: &Request, seed: u64) -> Self::Decoder;

    /// What an answer with an error status means.
    fn classify(&self, status: u16, headers: &Headers, body: &[u8]) -> Error;
}

/// Turns the events of one stream into unified events.
///
/// It never sees a network read: the driver hands over whole events. It emits no `STREAM_START` twice, pairs
/// every start with an end, and emits [`StreamEvent::Finish`] once, last, with an empty response that the driver
/// fills from its accumulator.
pub(crate) trait Decoder: Send + 'static {
    /// Takes one event and pushes what follows from it.
    ///
    /// # Errors
    ///
    /// An error event in the stream, or bytes that are not this dialect. The stream ends there.
    fn feed(&mut self, event: SseEvent<'_>, out: &mut Vec<StreamEvent>) -> Result<(), Error>;

    /// The bytes have ended: finishes, or says that the terminal event never came.
    ///
    /// # Errors
    ///
    /// [`pintle_llm::ErrorKind::Stream`] if the answer is incomplete.
    fn end(&mut self, out: &mut Vec<StreamEvent>) -> Result<(), Error>;
}

#[cfg(test)]
mod tests {
    use super::*;

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
