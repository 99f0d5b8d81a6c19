//! One request and the bytes of its answer, under time limits.

use std::error::Error as StdError;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures_util::future::{self, Either};
use pintle_llm::{AdapterTimeout, Error, ErrorInfo, ErrorKind, Retry};
use reqwest::header::HeaderMap;
use reqwest::{RequestBuilder, Url};
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::dialect::Headers;
use crate::failure::{MAX_ERROR_BODY, malformed};
use crate::retry_after;

/// The shortest key that is looked for, in bytes, and the shortest beginning of one.
const SHORTEST_KEY: usize = 8;

/// How long the body of a refusal is waited for: its status already says most.
const REFUSAL_LIMIT: Duration = Duration::from_secs(10);

/// An answer whose first byte has come, or which has none.
pub(crate) struct Exchange {
    response: reqwest::Response,
    first: Option<Bytes>,
    read_limit: Duration,
    /// How long it took until here.
    opening: Duration,
    facts: Facts,
}

impl Exchange {
    /// Sends and waits for the first byte of the answer's body, or for the head of a refusal. `sent` resolves when the
    /// request is sent, whatever it resolves to; without it, the headers have no limit of their own.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Network`] without a connection or if it breaks here, [`ErrorKind::RequestTimeout`] if it takes
    /// longer than `connect`, `headers` or `first_byte`.
    pub(crate) async fn open(
        call: RequestBuilder,
        sent: Option<oneshot::Receiver<()>>,
        mut facts: Facts,
        limits: &AdapterTimeout,
    ) -> Result<Self, Error> {
        let started = Instant::now();
        let not_begun = |error| not_begun(error, &facts.endpoint.host, limits.connect);
        let begin = async {
            let mut response = within_after(limits.headers, sent, call.send()).await?.map_err(not_begun)?;
            let first = match response.status().is_success() {
                true => response.chunk().await.map_err(not_begun)?,
                false => None,
            };
            Ok((response, first))
        };
        let limit = limits.first_byte;
        let begun = tokio::time::timeout(limit, begin).await;
        let (mut response, first) =
            begun.unwrap_or_else(|_| Err(timed_out(format!("no answer within {limit:?}"))))?;
        facts.headers = Headers(std::mem::take(response.headers_mut()));
        Ok(Self { response, first, read_limit: limits.stream_read, opening: started.elapsed(), facts })
    }

    /// How long it took to connect, to send and to get the first byte.
    pub(crate) fn opening(&self) -> Duration {
        self.opening
    }

    pub(crate) fn status(&self) -> u16 {
        self.response.status().as_u16()
    }

    pub(crate) fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The next bytes, as they come; `None` at the end.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Stream`] if the connection breaks, [`ErrorKind::RequestTimeout`] if it stays silent for longer
    /// than `stream_read`.
    pub(crate) async fn read(&mut self) -> Result<Option<Bytes>, Error> {
        self.read_within(Duration::MAX, || timed_out("the answer stopped")).await
    }

    /// The next bytes if they come within `left`, else the error that `over` makes. One timer serves both limits, since
    /// a stream may have a read for every event.
    ///
    /// # Errors
    ///
    /// As [`Exchange::read`], and that of `over`.
    pub(crate) async fn read_within(
        &mut self,
        left: Duration,
        over: impl FnOnce() -> Error,
    ) -> Result<Option<Bytes>, Error> {
        if let Some(first) = self.first.take() {
            return Ok(Some(first));
        }
        let limit = self.read_limit;
        match tokio::time::timeout(limit.min(left), self.response.chunk()).await {
            Ok(Ok(bytes)) => Ok(bytes),
            Ok(Err(error)) => {
                Err(Error::new(ErrorKind::Stream, "the connection broke in the middle of the answer")
                    .with_source(error.without_url()))
            }
            Err(_) if left < limit => Err(over()),
            Err(_) => Err(timed_out(format!("the answer stopped: no byte for {limit:?}"))),
        }
    }

    /// The whole body.
    ///
    /// # Errors
    ///
    /// As [`Exchange::read`], and [`ErrorKind::Stream`] if it is larger than `limit`.
    pub(crate) async fn read_all(&mut self, limit: usize) -> Result<Vec<u8>, Error> {
        let mut body = Vec::new();
        loop {
            match self.read().await {
                Ok(Some(bytes)) => body.extend_from_slice(&bytes),
                Ok(None) => return Ok(body),
                Err(error) => return Err(self.facts.annotate(error)),
            }
            if body.len() > limit {
                let message = format!("the answer is larger than {limit} bytes");
                // It would be as large again.
                let error = Error::new(ErrorKind::Stream, message).with_retry(Retry::Never);
                return Err(self.facts.annotate(error));
            }
        }
    }

    /// As much of a refusal's body as comes within its limits of size and time, and before the exchange's deadline:
    /// the status is known by now, and worth more than that its words did not come in time.
    pub(crate) async fn read_error_body(&mut self, deadline: Option<Instant>) -> Vec<u8> {
        let end = Instant::now() + REFUSAL_LIMIT;
        let end = deadline.map_or(end, |deadline| deadline.min(end));
        let mut body = Vec::new();
        let read = async {
            while body.len() < MAX_ERROR_BODY
                && let Ok(Some(bytes)) = self.read().await
            {
                body.extend_from_slice(&bytes);
            }
        };
        // What has come by then is all that there is.
        let _ = tokio::time::timeout_at(end, read).await;
        body.truncate(MAX_ERROR_BODY);
        body
    }

    /// Reads on for a moment after the answer is complete: only a connection whose body has ended can serve another
    /// request. A server that keeps the body open loses the connection instead.
    pub(crate) async fn finish_reading(&mut self) {
        const MOMENT: Duration = Duration::from_millis(50);
        let end = async { while let Ok(Some(_)) = self.response.chunk().await {} };
        let _ = tokio::time::timeout(MOMENT, end).await;
    }

    /// # Errors
    ///
    /// [`ErrorKind::Stream`] for a compressed answer: none was asked for, and its bytes would be read as garbage.
    pub(crate) fn expect_identity(&self) -> Result<(), Error> {
        match self.facts.headers.get("content-encoding").map(str::trim) {
            None | Some("") => Ok(()),
            Some(encoding) if encoding.eq_ignore_ascii_case("identity") => Ok(()),
            Some(other) => {
                let message = format!("the answer is encoded with {other:?}, which was not asked for");
                Err(self.facts.annotate(Error::new(ErrorKind::Stream, message)))
            }
        }
    }

    /// Refuses what is certainly no event stream: an HTML page, or one JSON document. Other types are given a
    /// chance, since some servers name none or a wrong one.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Stream`], with the beginning of what came.
    pub(crate) async fn expect_events(&mut self, provider: &str) -> Result<(), Error> {
        let kind = self.facts.headers.get("content-type").unwrap_or_default().to_ascii_lowercase();
        let kind = kind.split(';').next().unwrap_or_default().trim();
        if !matches!(kind, "text/html" | "application/json") {
            return Ok(());
        }
        let expected = format!("an event stream instead of {kind}");
        let body = self.read_error_body(None).await;
        Err(self.facts.annotate(malformed(provider, &expected, &body)))
    }
}

/// The server that an adapter speaks to, and what it is sent with each request.
pub(crate) struct Endpoint {
    pub(crate) base_url: Url,
    pub(crate) headers: HeaderMap,
    /// As people are told of it.
    pub(crate) host: String,
}

/// What is added to every error of an exchange.
pub(crate) struct Facts {
    pub(crate) headers: Headers,
    endpoint: Arc<Endpoint>,
    /// What was sent beside the headers of the endpoint.
    sent: Vec<(&'static str, String)>,
    now: fn() -> SystemTime,
}

impl Facts {
    pub(crate) fn new(
        endpoint: Arc<Endpoint>,
        sent: Vec<(&'static str, String)>,
        now: fn() -> SystemTime,
    ) -> Self {
        Self { headers: Headers::default(), endpoint, sent, now }
    }

    /// The keys that no error may hold. They are looked for when there is an error, since most exchanges have none.
    fn keys(&self) -> impl Iterator<Item = &str> {
        // A gateway's key stands in a header of its own, or in the base URL.
        let Endpoint { base_url, headers, .. } = self.endpoint.as_ref();
        let sent = self.sent.iter().map(|(name, value)| (*name, value.as_str()));
        let headers = headers.iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
        let query = base_url.query().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
        let named = sent.chain(headers).chain(query).filter(|(name, _)| names_a_key(name));
        let keys = named.filter_map(|(_, value)| value.split_whitespace().last()).chain(base_url.password());
        // A key of a few characters, as local servers take, would be found in innocent words.
        keys.filter(|key| key.len() >= SHORTEST_KEY)
    }

    /// The provider's id for the request.
    pub(crate) fn request_id(&self) -> Option<&str> {
        ["x-request-id", "request-id", "x-goog-request-id"].iter().find_map(|name| self.headers.get(name))
    }

    /// The error with request id and delay, and without the key that some servers quote back.
    pub(crate) fn annotate(&self, error: Error) -> Error {
        let mut error = match (error.request_id(), self.request_id()) {
            (None, Some(id)) => error.with_request_id(id),
            (Some(_), _) | (None, None) => error,
        };
        // What a header says is more precise than a time in the words of the body.
        if error.is_retryable()
            && let Some(delay) = retry_after::from_headers(&self.headers, (self.now)())
        {
            error = error.with_retry(Retry::After(Some(delay)));
        }
        self.without_keys(error)
    }

    /// The error with its keys blotted out, and without its cause where that quotes what it read.
    fn without_keys(&self, error: Error) -> Error {
        if !self.quoted_in(&error) {
            return error;
        }
        let mut info: ErrorInfo = error.info().clone();
        info.message = self.clean(&info.message);
        info.error_code = info.error_code.map(|code| self.clean(&code));
        info.request_id = info.request_id.map(|id| self.clean(&id));
        info.causes = info.causes.iter().map(|cause| self.clean(cause)).collect();
        info.raw = info.raw.map(|raw| {
            let text = self.clean(&raw.to_string());
            serde_json::from_str(&text).unwrap_or(Value::String(text))
        });
        info.into()
    }

    /// Whether the error or a cause of it shows a key.
    fn quoted_in(&self, error: &Error) -> bool {
        let holds = |shown: &str| self.clean(shown) != shown;
        let mut cause: Option<&dyn StdError> = Some(error);
        while let Some(found) = cause {
            if holds(&found.to_string()) {
                return true;
            }
            cause = found.source();
        }
        // Shows all facts and causes, the causes' own facts included.
        holds(&format!("{error:?}"))
    }

    /// The text with its keys blotted out.
    pub(crate) fn clean(&self, text: &str) -> String {
        self.keys().fold(text.to_owned(), |text, key| blot_out(&text, key))
    }
}

/// Whether a header or parameter of this name holds a key.
fn names_a_key(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["key", "auth", "token", "secret", "cookie"].iter().any(|word| name.contains(word))
}

/// The text without the key, and without the beginning of it where the text was cut inside the key: there the text
/// ends, or what quotes it does.
pub(super) fn blot_out(text: &str, key: &str) -> String {
    let mut clean = text.replace(key, "[key]");
    let Some(beginning) = key.get(..SHORTEST_KEY) else { return clean };
    let mut from = 0;
    while let Some((before, _)) = clean.get(from..).and_then(|rest| rest.split_once(beginning)) {
        let start = from + before.len();
        let found = clean.bytes().skip(start);
        let end = start + found.zip(key.bytes()).take_while(|(found, key)| found == key).count();
        if matches!(clean.as_bytes().get(end), None | Some(b'"' | b'\\')) {
            clean.replace_range(start..end, "[key]");
        }
        from = start + 1;
    }
    clean
}

/// The response, unless its headers are not complete within `limit` after the request was sent. Without `sent` there is
/// no such limit.
async fn within_after<T>(
    limit: Duration,
    sent: Option<oneshot::Receiver<()>>,
    response: impl Future<Output = T>,
) -> Result<T, Error> {
    let Some(sent) = sent else { return Ok(response.await) };
    let late = async {
        // The sender is dropped, so that this is an error always.
        let _ = sent.await;
        tokio::time::sleep(limit).await;
    };
    match future::select(pin!(response), pin!(late)).await {
        Either::Left((response, _)) => Ok(response),
        Either::Right(_) => Err(timed_out(format!("no response headers within {limit:?}"))),
    }
}

/// The error of a limit that has run out.
pub(crate) fn timed_out(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::RequestTimeout, message)
}

fn not_begun(error: reqwest::Error, host: &str, connect: Duration) -> Error {
    let found = if error.is_connect() && error.is_timeout() {
        // Nothing was sent, so that trying again is harmless.
        timed_out(format!("no connection to {host} within {connect:?}")).with_retry(Retry::After(None))
    } else if error.is_connect() {
        Error::new(ErrorKind::Network, format!("no connection to {host}"))
    } else if error.is_builder() {
        Error::new(ErrorKind::Configuration, "the request cannot be sent")
    } else {
        Error::new(ErrorKind::Network, format!("the connection to {host} broke before the answer began"))
    };
    found.with_source(error.without_url())
}
