//! One request and the bytes of its answer, under time limits.

use std::time::{Duration, SystemTime};

use pintle_llm::{AdapterTimeout, Error, ErrorInfo, ErrorKind, Retry};
use reqwest::RequestBuilder;
use reqwest::header::HeaderMap;
use serde_json::Value;

use crate::dialect::Headers;
use crate::failure::{MAX_ERROR_BODY, malformed};
use crate::retry_after;

/// An answer whose first byte has come, or which has none.
pub(crate) struct Exchange {
    response: reqwest::Response,
    first: Option<Vec<u8>>,
    read_limit: Duration,
    facts: Facts,
}

impl Exchange {
    /// Sends and waits for the first byte of the answer's body.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Network`] without a connection or if it breaks here, [`ErrorKind::RequestTimeout`] if it takes
    /// longer than `connect` or `first_byte`.
    pub(crate) async fn open(
        call: RequestBuilder,
        mut facts: Facts,
        limits: &AdapterTimeout,
        host: &str,
    ) -> Result<Self, Error> {
        let begin = async {
            let mut response = call.send().await?;
            let first = response.chunk().await?;
            Ok((response, first))
        };
        let limit = limits.first_byte;
        let begun = tokio::time::timeout(limit, begin)
            .await
            .map_err(|_| timed_out(format!("no answer within {limit:?}")))?;
        let (response, first) = begun.map_err(|error| not_begun(error, host, limits.connect))?;
        facts.headers = headers_of(response.headers());
        Ok(Self { response, first: first.map(Vec::from), read_limit: limits.stream_read, facts })
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
    pub(crate) async fn read(&mut self) -> Result<Option<Vec<u8>>, Error> {
        if let Some(first) = self.first.take() {
            return Ok(Some(first));
        }
        let limit = self.read_limit;
        match tokio::time::timeout(limit, self.response.chunk()).await {
            Ok(Ok(bytes)) => Ok(bytes.map(Vec::from)),
            Ok(Err(error)) => {
                Err(Error::new(ErrorKind::Stream, "the connection broke in the middle of the answer")
                    .with_source(error.without_url()))
            }
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
                return Err(self.facts.annotate(Error::new(ErrorKind::Stream, message)));
            }
        }
    }

    /// As much of a complaint as comes: its status already says most.
    pub(crate) async fn read_error_body(&mut self) -> Vec<u8> {
        let mut body = Vec::new();
        while body.len() < MAX_ERROR_BODY {
            match self.read().await {
                Ok(Some(bytes)) => body.extend_from_slice(&bytes),
                Ok(None) | Err(_) => break,
            }
        }
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
        match self.facts.headers.get("content-encoding") {
            None | Some("" | "identity") => Ok(()),
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
        let body = self.read_error_body().await;
        Err(self.facts.annotate(malformed(provider, &expected, &body)))
    }
}

/// What is added to every error of an exchange.
pub(crate) struct Facts {
    pub(crate) headers: Headers,
    /// Keys that no error may hold.
    keys: Vec<String>,
    now: fn() -> SystemTime,
}

impl Facts {
    pub(crate) fn new(sent: &HeaderMap, now: fn() -> SystemTime) -> Self {
        let names = ["authorization", "api-key", "x-api-key", "x-goog-api-key"];
        let values = names.iter().filter_map(|name| sent.get(*name)?.to_str().ok());
        let keys = values.filter_map(|value| value.split_whitespace().last()).map(str::to_owned);
        // A key of a few characters, as local servers take, would be found in innocent words.
        Self { headers: Headers::default(), keys: keys.filter(|key| key.len() >= 8).collect(), now }
    }

    /// The provider's id for the request.
    pub(crate) fn request_id(&self) -> Option<&str> {
        ["x-request-id", "request-id", "x-goog-request-id"].iter().find_map(|name| self.headers.get(name))
    }

    /// The error with request id and delay, and without the key that some servers quote back.
    pub(crate) fn annotate(&self, error: Error) -> Error {
        let mut error = self.without_keys(error);
        if let (None, Some(id)) = (error.request_id(), self.request_id()) {
            error = error.with_request_id(id);
        }
        if error.retry() == Retry::After(None)
            && let Some(delay) = retry_after::from_headers(&self.headers, (self.now)())
        {
            error = error.with_retry(Retry::After(Some(delay)));
        }
        error
    }

    fn without_keys(&self, error: Error) -> Error {
        let holds = |text: &str| self.keys.iter().any(|key| text.contains(key.as_str()));
        let raw = error.raw().map(Value::to_string).unwrap_or_default();
        if !holds(error.message()) && !holds(&raw) {
            return error;
        }
        let clean =
            |text: &str| self.keys.iter().fold(text.to_owned(), |text, key| text.replace(key, "[key]"));
        let mut info: ErrorInfo = error.info().clone();
        info.message = clean(&info.message);
        info.raw = info.raw.map(|raw| {
            let text = clean(&raw.to_string());
            serde_json::from_str(&text).unwrap_or(Value::String(text))
        });
        info.into()
    }
}

/// The error of a limit that has run out.
pub(crate) fn timed_out(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::RequestTimeout, message)
}

fn headers_of(headers: &HeaderMap) -> Headers {
    let pairs = headers
        .iter()
        .filter_map(|(name, value)| Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned())));
    Headers(pairs.collect())
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
