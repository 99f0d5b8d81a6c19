//! One request and the bytes of its response, under timeouts.

use std::error::Error as StdError;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures_util::future::{self, Either};
use pintle_llm::{AdapterTimeout, Error, ErrorInfo, ErrorKind, Retry, Usage};
use reqwest::header::HeaderMap;
use reqwest::{RequestBuilder, Url};
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::dialect::Headers;
use crate::failure::{MAX_ERROR_BODY, malformed};
use crate::retry_after;
use crate::sse::BYTE_ORDER_MARK;

/// Minimum length in bytes of a key, and of the prefix of a truncated key, that is redacted.
const MIN_KEY_LENGTH: usize = 8;

/// Timeout for the body of an error response, whose status already says most.
const ERROR_BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// A response whose first byte has arrived, or that has no body.
pub(crate) struct Exchange {
    response: reqwest::Response,
    first: Option<Bytes>,
    read_limit: Duration,
    /// Time from the start of the request to the first byte.
    opening: Duration,
    context: ErrorContext,
}

impl Exchange {
    /// Sends the request and waits for the first byte of the body, or for the headers of an error response. `sent`
    /// resolves, to any value, when the request is sent; without it, the headers have no separate timeout.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Network`] if the connection cannot be opened or breaks, [`ErrorKind::RequestTimeout`] after
    /// `connect`, `headers` or `first_byte`.
    pub(crate) async fn open(
        call: RequestBuilder,
        sent: Option<oneshot::Receiver<()>>,
        mut context: ErrorContext,
        limits: &AdapterTimeout,
    ) -> Result<Self, Error> {
        let started = Instant::now();
        let send_error = |error| send_error(error, &context.endpoint.host, limits.connect);
        let begin = async {
            let mut response =
                with_headers_timeout(limits.headers, sent, call.send()).await?.map_err(send_error)?;
            let first = match response.status().is_success() {
                true => response.chunk().await.map_err(send_error)?,
                false => None,
            };
            Ok((response, first))
        };
        let limit = limits.first_byte;
        let opened = tokio::time::timeout(limit, begin).await;
        let (mut response, first) =
            opened.unwrap_or_else(|_| Err(timed_out(format!("no response within {limit:?}"))))?;
        context.headers = Headers(std::mem::take(response.headers_mut()));
        Ok(Self { response, first, read_limit: limits.stream_read, opening: started.elapsed(), context })
    }

    /// Returns the time from the start of the request to the first byte.
    pub(crate) fn opening(&self) -> Duration {
        self.opening
    }

    pub(crate) fn status(&self) -> u16 {
        self.response.status().as_u16()
    }

    pub(crate) fn context(&self) -> &ErrorContext {
        &self.context
    }

    /// Reads the next bytes; `None` at the end.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Stream`] if the connection breaks, [`ErrorKind::RequestTimeout`] after `stream_read` without a byte.
    pub(crate) async fn read(&mut self) -> Result<Option<Bytes>, Error> {
        self.read_within(Duration::MAX, || timed_out("the response stopped")).await
    }

    /// Reads the next bytes within `left`, else fails with the error that `timeout` creates. One timer serves both
    /// timeouts, because a stream may have a read for every event.
    ///
    /// # Errors
    ///
    /// As for [`Exchange::read`], and the error of `timeout`.
    pub(crate) async fn read_within(
        &mut self,
        left: Duration,
        timeout: impl FnOnce() -> Error,
    ) -> Result<Option<Bytes>, Error> {
        if let Some(first) = self.first.take() {
            return Ok(Some(first));
        }
        let limit = self.read_limit;
        match tokio::time::timeout(limit.min(left), self.response.chunk()).await {
            Ok(Ok(bytes)) => Ok(bytes),
            Ok(Err(error)) => {
                Err(Error::new(ErrorKind::Stream, "the connection broke in the middle of the response")
                    .with_source(error.without_url()))
            }
            Err(_) if left < limit => Err(timeout()),
            Err(_) => Err(timed_out(format!("the response stopped: no byte for {limit:?}"))),
        }
    }

    /// Reads the complete body.
    ///
    /// # Errors
    ///
    /// As for [`Exchange::read`], and [`ErrorKind::Stream`] if the body is larger than `limit`.
    pub(crate) async fn read_all(&mut self, limit: usize) -> Result<Vec<u8>, Error> {
        let mut body = Vec::new();
        loop {
            match self.read().await {
                Ok(Some(bytes)) => body.extend_from_slice(&bytes),
                Ok(None) => return Ok(body),
                Err(error) => return Err(self.context.annotate(error)),
            }
            if body.len() > limit {
                let message = format!("the response is larger than {limit} bytes");
                // A retry would be as large.
                let error = Error::new(ErrorKind::Stream, message).with_retry(Retry::Never);
                return Err(self.context.annotate(error));
            }
        }
    }

    /// Reads the body of an error response, as far as it arrives within its size limit, its timeout and the deadline of
    /// the exchange. Never fails: the status is known, and is worth more than a timeout error.
    pub(crate) async fn read_error_body(&mut self, deadline: Option<Instant>) -> Vec<u8> {
        let end = Instant::now() + ERROR_BODY_TIMEOUT;
        let end = deadline.map_or(end, |deadline| deadline.min(end));
        let mut body = Vec::new();
        let read = async {
            while body.len() < MAX_ERROR_BODY
                && let Ok(Some(bytes)) = self.read().await
            {
                body.extend_from_slice(&bytes);
            }
        };
        // A timeout keeps the received bytes.
        let _ = tokio::time::timeout_at(end, read).await;
        body.truncate(MAX_ERROR_BODY);
        body
    }

    /// Reads for up to 50 ms after the response is complete: only a connection whose body has ended can be reused. If the
    /// server keeps the body open, the connection is closed.
    pub(crate) async fn drain(&mut self) {
        const DRAIN_TIMEOUT: Duration = Duration::from_millis(50);
        let end = async { while let Ok(Some(_)) = self.response.chunk().await {} };
        let _ = tokio::time::timeout(DRAIN_TIMEOUT, end).await;
    }

    /// Checks that the response is not compressed.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Stream`] for a compressed response: none was requested, and its bytes would be read as garbage.
    pub(crate) fn expect_identity(&self) -> Result<(), Error> {
        match self.context.headers.get("content-encoding").map(str::trim) {
            None | Some("") => Ok(()),
            Some(encoding) if encoding.eq_ignore_ascii_case("identity") => Ok(()),
            Some(other) => {
                let message = format!("the response is encoded with {other:?}, which was not requested");
                Err(self.context.annotate(Error::new(ErrorKind::Stream, message)))
            }
        }
    }

    /// Checks that the response is not an HTML page. Any other content type is accepted, because some servers send none or
    /// a wrong one.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Stream`], with the beginning of the body.
    pub(crate) async fn expect_no_page(&mut self, provider: &str) -> Result<(), Error> {
        if self.content_type() != "text/html" {
            return Ok(());
        }
        let body = self.read_error_body(None).await;
        Err(self.context.annotate(malformed(provider, "an event stream instead of text/html", &body)))
    }

    /// Returns whether the body is JSON instead of an event stream: by its first character, with which no field of an event
    /// begins, and by its type if none has arrived. Some servers label an event stream as JSON.
    pub(crate) fn is_json(&self) -> bool {
        let first = self.first.as_deref().unwrap_or_default();
        let first = first.strip_prefix(&BYTE_ORDER_MARK).unwrap_or(first).trim_ascii_start();
        match first.first() {
            Some(character) => matches!(character, b'{' | b'['),
            None => self.content_type() == "application/json",
        }
    }

    /// Returns the content type in lower case, without parameters.
    fn content_type(&self) -> String {
        let value = self.context.headers.get("content-type").unwrap_or_default();
        value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
    }
}

/// Server of an adapter, with the headers of each request.
pub(crate) struct Endpoint {
    pub(crate) base_url: Url,
    pub(crate) headers: HeaderMap,
    /// Host and port for error messages.
    pub(crate) host: String,
}

/// Information that is added to, or redacted from, every error of an exchange.
pub(crate) struct ErrorContext {
    pub(crate) headers: Headers,
    endpoint: Arc<Endpoint>,
    /// Headers that were sent in addition to the headers of the endpoint.
    sent: Vec<(&'static str, String)>,
    now: fn() -> SystemTime,
}

impl ErrorContext {
    pub(crate) fn new(
        endpoint: Arc<Endpoint>,
        sent: Vec<(&'static str, String)>,
        now: fn() -> SystemTime,
    ) -> Self {
        Self { headers: Headers::default(), endpoint, sent, now }
    }

    /// Returns the keys that no error may contain. They are collected when there is an error, which is rare.
    fn keys(&self) -> impl Iterator<Item = &str> {
        // A gateway's key is in a separate header or in the base URL.
        let Endpoint { base_url, headers, .. } = self.endpoint.as_ref();
        let sent = self.sent.iter().map(|(name, value)| (*name, value.as_str()));
        let headers = headers.iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
        let query = base_url.query().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
        let named = sent.chain(headers).chain(query).filter(|(name, _)| is_key_name(name));
        let keys = named.filter_map(|(_, value)| value.split_whitespace().last()).chain(base_url.password());
        // A key of a few characters, as local servers accept, would match ordinary words.
        keys.filter(|key| key.len() >= MIN_KEY_LENGTH)
    }

    /// Returns the provider's id of the request.
    pub(crate) fn request_id(&self) -> Option<&str> {
        ["x-request-id", "request-id", "x-goog-request-id"].iter().find_map(|name| self.headers.get(name))
    }

    /// Adds request id and retry delay to an error, and redacts keys that some servers quote.
    pub(crate) fn annotate(&self, error: Error) -> Error {
        let mut error = match (error.request_id(), self.request_id()) {
            (None, Some(id)) => error.with_request_id(id),
            (Some(_), _) | (None, None) => error,
        };
        // A delay in a header is more precise than one in the message.
        if error.is_retryable()
            && let Some(delay) = retry_after::from_headers(&self.headers, (self.now)())
        {
            error = error.with_retry(Retry::After(Some(delay)));
        }
        self.redact_error(error)
    }

    /// Redacts keys in all parts of an error. Its causes become text if one of them quotes a key.
    fn redact_error(&self, error: Error) -> Error {
        if !self.contains_key(&error) {
            return error;
        }
        let mut info: ErrorInfo = error.info().clone();
        info.message = self.redact(&info.message);
        info.error_code = info.error_code.map(|code| self.redact(&code));
        info.request_id = info.request_id.map(|id| self.redact(&id));
        info.causes = info.causes.iter().map(|cause| self.redact(cause)).collect();
        info.raw = info.raw.map(|raw| {
            let text = self.redact(&raw.to_string());
            serde_json::from_str(&text).unwrap_or(Value::String(text))
        });
        info.into()
    }

    /// Returns whether an error or one of its causes shows a key.
    fn contains_key(&self, error: &Error) -> bool {
        let leaks = |shown: &str| self.redact(shown) != shown;
        let mut cause: Option<&dyn StdError> = Some(error);
        while let Some(found) = cause {
            if leaks(&found.to_string()) {
                return true;
            }
            cause = found.source();
        }
        // `Debug` shows all fields, including the fields of the causes.
        leaks(&format!("{error:?}"))
    }

    /// Redacts all keys in a text.
    pub(crate) fn redact(&self, text: &str) -> String {
        self.keys().fold(text.to_owned(), |text, key| redact(&text, key))
    }
}

/// Returns whether a header or query parameter of this name contains a key.
fn is_key_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["key", "auth", "token", "secret", "cookie"].iter().any(|word| name.contains(word))
}

/// Redacts a key in a text, and a prefix of the key where the text was truncated inside it: at the end of the text or of
/// a quotation.
pub(super) fn redact(text: &str, key: &str) -> String {
    let mut redacted = text.replace(key, "[key]");
    let Some(prefix) = key.get(..MIN_KEY_LENGTH) else { return redacted };
    let mut from = 0;
    while let Some((before, _)) = redacted.get(from..).and_then(|rest| rest.split_once(prefix)) {
        let start = from + before.len();
        let found = redacted.bytes().skip(start);
        let end = start + found.zip(key.bytes()).take_while(|(found, key)| found == key).count();
        if matches!(redacted.as_bytes().get(end), None | Some(b'"' | b'\\')) {
            redacted.replace_range(start..end, "[key]");
        }
        from = start + 1;
    }
    redacted
}

/// Awaits the response headers, at most for `limit` after the request was sent. Without `sent` there is no such timeout.
async fn with_headers_timeout<T>(
    limit: Duration,
    sent: Option<oneshot::Receiver<()>>,
    response: impl Future<Output = T>,
) -> Result<T, Error> {
    let Some(sent) = sent else { return Ok(response.await) };
    let late = async {
        // Always an error, because the sender is only dropped.
        let _ = sent.await;
        tokio::time::sleep(limit).await;
    };
    match future::select(pin!(response), pin!(late)).await {
        Either::Left((response, _)) => Ok(response),
        Either::Right(_) => Err(timed_out(format!("no response headers within {limit:?}"))),
    }
}

/// Returns the error for an expired timeout.
pub(crate) fn timed_out(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::RequestTimeout, message)
}

/// Classifies a failure before the first byte of the body.
fn send_error(error: reqwest::Error, host: &str, connect: Duration) -> Error {
    let found = if error.is_connect() && error.is_timeout() {
        // Nothing was sent, so a retry is harmless.
        timed_out(format!("no connection to {host} within {connect:?}"))
            .with_retry(Retry::After(None))
            .with_usage(Usage::default())
    } else if error.is_connect() {
        Error::new(ErrorKind::Network, format!("no connection to {host}")).with_usage(Usage::default())
    } else if error.is_builder() {
        Error::new(ErrorKind::Configuration, "the request cannot be sent")
    } else {
        Error::new(ErrorKind::Network, format!("the connection to {host} broke before the response began"))
    };
    found.with_source(error.without_url())
}
