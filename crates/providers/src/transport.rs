//! The driver of all dialects: connects, sends, enforces limits, frames and decodes.

#![expect(clippy::disallowed_methods, reason = "the driver reads the clock and passes the time down")]

mod events;
mod exchange;

use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::{BuildHasher as _, Hasher as _};
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use futures_util::TryStreamExt as _;
use pintle_llm::{AdapterTimeout, ContentPart, Error, ErrorKind, EventStream, Request, Response};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Url, redirect};
use tokio::time::Instant;

use crate::dialect::{Dialect, HttpRequest, SseEvent};
use crate::media;
use crate::rate_limit;
use crate::refused_media;
use crate::repair;
use crate::transport::events::{Events, StreamLimits};
use crate::transport::exchange::{Endpoint, ErrorContext, Exchange, timed_out};

/// Maximum size of a complete response, in bytes.
pub(crate) const MAX_BODY: usize = 64 * 1024 * 1024;

/// Connection settings of an adapter.
pub(crate) struct HttpOptions {
    pub(crate) base_url: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) timeout: AdapterTimeout,
}

impl HttpOptions {
    pub(crate) fn new(base_url: impl Into<String>) -> Self {
        Self { base_url: base_url.into(), headers: Vec::new(), timeout: AdapterTimeout::default() }
    }
}

impl fmt::Debug for HttpOptions {
    /// Omits header values, which may be a gateway's key, and the URL, which may contain a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("HttpOptions")
            .field("headers", &names)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

/// Form of a response.
#[derive(Clone, Copy, Debug)]
enum ResponseMode {
    Streamed,
    Complete {
        /// Time by which the response must be complete.
        deadline: Option<Instant>,
    },
}

/// A dialect with a connection pool, which is created at the first request.
pub(crate) struct HttpAdapter<D> {
    dialect: Arc<D>,
    endpoint: Arc<Endpoint>,
    timeout: AdapterTimeout,
    client: OnceLock<Client>,
}

impl<D: Dialect> HttpAdapter<D> {
    /// Creates an adapter without connecting. `dialect` is called with the host name of the base URL.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Configuration`] for a base URL that is not an absolute `http` or `https` URL, or an invalid header.
    pub(crate) fn new(
        provider: &str,
        options: HttpOptions,
        dialect: impl FnOnce(&str) -> D,
    ) -> Result<Self, Error> {
        let HttpOptions { base_url, headers: given, timeout } = options;
        let base_url = parse_base_url(&base_url).map_err(|error| error.with_provider(provider))?;
        let mut headers = HeaderMap::new();
        for (name, value) in given {
            let (name, value) = parse_header(&name, &value).map_err(|error| error.with_provider(provider))?;
            headers.insert(name, value);
        }
        let dialect = Arc::new(dialect(base_url.host_str().unwrap_or_default()));
        let host = host(&base_url);
        let endpoint = Arc::new(Endpoint { base_url, headers, host });
        Ok(Self { dialect, endpoint, timeout, client: OnceLock::new() })
    }

    pub(crate) fn dialect(&self) -> &D {
        &self.dialect
    }

    /// Gets a complete response, within the request's timeouts. Dropping the future closes the connection.
    pub(crate) async fn complete(&self, request: &Request) -> Result<Response, Error> {
        let limits = request.timeout.unwrap_or(self.timeout);
        let total = [limits.request, limits.content].into_iter().flatten().min();
        // Taken before the timeout below starts, so that the deadline passes first.
        let deadline = total.and_then(|limit| Instant::now().checked_add(limit));
        let exchange = self.read_response(request, &limits, deadline);
        let response = match total {
            Some(limit) => tokio::time::timeout(limit, exchange)
                .await
                .unwrap_or_else(|_| Err(timed_out(format!("no complete response within {limit:?}")))),
            None => exchange.await,
        };
        response.map_err(|error| self.with_provider(error))
    }

    /// Opens a streamed response. Returns after the first byte, so that an earlier failure is an error of this call,
    /// which may be retried. A response in JSON instead of a stream is complete then. Dropping the future or the stream closes the connection.
    pub(crate) async fn stream(&self, request: &Request) -> Result<EventStream, Error> {
        let limits = request.timeout.unwrap_or(self.timeout);
        self.open_stream(request, &limits).await.map_err(|error| self.with_provider(error))
    }

    async fn read_response(
        &self,
        request: &Request,
        limits: &AdapterTimeout,
        deadline: Option<Instant>,
    ) -> Result<Response, Error> {
        let request = request.in_order()?;
        let request = media::resolve(&request).await?;
        let encoded = self.dialect.encode(&request, false)?;
        let opened = self.open(encoded, limits, ResponseMode::Complete { deadline }).await;
        let mut exchange =
            opened.map_err(|error| with_refused_media(self.dialect(), error, &request, false))?;
        self.read_and_decode(&request, &mut exchange, false).await
    }

    async fn read_and_decode(
        &self,
        request: &Request,
        exchange: &mut Exchange,
        streaming: bool,
    ) -> Result<Response, Error> {
        let body = exchange.read_all(MAX_BODY).await?;
        let decoded = self.decode(request, &body).map_err(|error| exchange.context().annotate(error));
        let mut response =
            decoded.map_err(|error| with_refused_media(self.dialect(), error, request, streaming))?;
        response.rate_limit = rate_limit::from_headers(&exchange.context().headers, SystemTime::now());
        Ok(response)
    }

    fn decode(&self, request: &Request, body: &[u8]) -> Result<Response, Error> {
        let marked = repair::mark_invalid_bytes(body);
        let repaired = repair::repair(SseEvent { name: "", data: &marked })?;
        let mut response = self.dialect.decode(request, repaired.json.as_bytes())?;
        if repaired.replaced > 0 {
            response.warnings.push(repair::warning(repaired.replaced));
        }
        Ok(response)
    }

    async fn open_stream(&self, request: &Request, limits: &AdapterTimeout) -> Result<EventStream, Error> {
        let request = request.in_order()?;
        let request = media::resolve(&request).await?;
        let encoded = self.dialect.encode(&request, true)?;
        let opened = self.open(encoded, limits, ResponseMode::Streamed).await;
        let mut exchange =
            opened.map_err(|error| with_refused_media(self.dialect(), error, &request, true))?;
        exchange.expect_no_page(self.dialect.provider()).await?;
        if exchange.is_json() {
            // Some servers ignore `stream`.
            let complete = self.read_and_decode(&request, &mut exchange, true);
            let response = match limits.content {
                Some(limit) => tokio::time::timeout(limit, complete).await.unwrap_or_else(|_| {
                    Err(timed_out(format!("the response stalled: no content for {limit:?}")))
                }),
                None => complete.await,
            };
            return response.map(Response::into_stream);
        }
        let decoder = self.dialect.decoder(&request, seed());
        let rate_limit = rate_limit::from_headers(&exchange.context().headers, SystemTime::now());
        let provider = self.dialect.provider();
        let stream_limits = StreamLimits { content: limits.content, ..StreamLimits::default() };
        let events = Events::new(exchange, decoder, provider, &request.model, rate_limit, stream_limits);
        Ok(self.naming_refused_media(events.into_stream(), &request))
    }

    /// Adds the media that an error in the stream names. Only a request with media is kept for that.
    fn naming_refused_media(&self, events: EventStream, request: &Request) -> EventStream {
        let parts = request.messages.iter().flat_map(|item| &item.content);
        if parts.flat_map(ContentPart::media).next().is_none() {
            return events;
        }
        let (dialect, request) = (Arc::clone(&self.dialect), request.clone());
        Box::pin(events.map_err(move |error| with_refused_media(dialect.as_ref(), error, &request, true)))
    }

    /// Sends the request and waits for the first byte of a successful response; other responses are classified.
    async fn open(
        &self,
        request: HttpRequest,
        limits: &AdapterTimeout,
        mode: ResponseMode,
    ) -> Result<Exchange, Error> {
        let url = join(&self.endpoint.base_url, &request.path);
        let headers = self.header_map(&request)?;
        let context = ErrorContext::new(Arc::clone(&self.endpoint), request.headers, SystemTime::now);
        let mut body = request.body.into_http();
        // The headers of a complete response arrive when it is ready, so only the total timeout applies to them.
        let (sent, deadline) = match mode {
            ResponseMode::Streamed => (Some(body.on_sent()), None),
            ResponseMode::Complete { deadline } => (None, deadline),
        };
        let call = self.client()?.post(url).headers(headers).body(reqwest::Body::wrap(body));
        let mut exchange = Exchange::open(call, sent, context, limits).await?;
        let status = exchange.status();
        tracing::debug!(
            provider = self.dialect.provider(),
            status,
            request_id = exchange.context().request_id().map(|id| exchange.context().redact(id)),
            "response"
        );
        if (200..=299).contains(&status) {
            exchange.expect_identity()?;
            return Ok(exchange);
        }
        if (300..=399).contains(&status) {
            let context = exchange.context();
            // Redacted before it is shortened, which could cut a key in two.
            let target = context.headers.get("location").map(|target| context.redact(target));
            return Err(context.annotate(redirected(target.as_deref(), status)));
        }
        let body = exchange.read_error_body(deadline).await;
        Err(exchange.context().annotate(self.dialect.classify(status, &exchange.context().headers, &body)))
    }

    fn header_map(&self, request: &HttpRequest) -> Result<HeaderMap, Error> {
        let mut headers = HeaderMap::new();
        headers.insert(reqwest::header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        for (name, value) in &request.headers {
            let (name, value) = parse_header(name, value)?;
            headers.insert(name, value);
        }
        // Not `extend`, which would send two headers with one name.
        for (name, value) in &self.endpoint.headers {
            headers.insert(name.clone(), value.clone());
        }
        Ok(headers)
    }

    fn client(&self) -> Result<&Client, Error> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let client = build_client(&self.endpoint.base_url, &self.timeout)?;
        Ok(self.client.get_or_init(|| client))
    }

    fn with_provider(&self, error: Error) -> Error {
        if error.provider().is_some() { error } else { error.with_provider(self.dialect.provider()) }
    }
}

/// Adds the media that a refusal names.
fn with_refused_media<D: Dialect>(dialect: &D, error: Error, request: &Request, stream: bool) -> Error {
    if !refused_media::may_be_named(&error) {
        return error;
    }
    // Sending consumed the body. The encoding of each message is cached, so the new body is the same.
    let Ok(encoded) = dialect.encode(request, stream) else { return error };
    match refused_media::find(&error, &encoded.body.to_vec(), request) {
        Some(media) => refused_media::set(error, media),
        None => error,
    }
}

impl<D: fmt::Debug> fmt::Debug for HttpAdapter<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.endpoint.headers.keys().map(HeaderName::as_str).collect();
        f.debug_struct("HttpAdapter")
            .field("dialect", &self.dialect)
            .field("host", &self.endpoint.host)
            .field("headers", &names)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

/// Implements [`ProviderAdapter`](pintle_llm::ProviderAdapter) for a type with a field `http: HttpAdapter<_>`.
macro_rules! provider_adapter {
    ($adapter:ty) => {
        #[async_trait::async_trait]
        impl pintle_llm::ProviderAdapter for $adapter {
            fn name(&self) -> &str {
                crate::dialect::Dialect::provider(self.http.dialect())
            }

            async fn complete(
                &self,
                request: &pintle_llm::Request,
            ) -> Result<pintle_llm::Response, pintle_llm::Error> {
                self.http.complete(request).await
            }

            async fn stream(
                &self,
                request: &pintle_llm::Request,
            ) -> Result<pintle_llm::EventStream, pintle_llm::Error> {
                self.http.stream(request).await
            }
        }
    };
}
pub(crate) use provider_adapter;

fn parse_base_url(text: &str) -> Result<Url, Error> {
    let invalid = |why: &str| {
        Error::new(
            ErrorKind::Configuration,
            format!("the base URL {why}; expected a URL such as https://example.com/v1"),
        )
    };
    let url = Url::parse(text).map_err(|error| invalid("cannot be parsed").with_source(error))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(invalid("is not an absolute http or https URL"));
    }
    Ok(url)
}

fn parse_header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), Error> {
    let invalid = |what: &str| {
        Error::new(ErrorKind::Configuration, format!("the header `{name}` has an invalid {what}"))
    };
    let parsed_name = HeaderName::try_from(name).map_err(|error| invalid("name").with_source(error))?;
    // The cause is omitted: it could quote the value, which may be a key.
    let mut parsed = HeaderValue::try_from(value).map_err(|_| invalid("value"))?;
    parsed.set_sensitive(true);
    Ok((parsed_name, parsed))
}

/// Appends a path with an optional query to the base URL, keeping the query of the base URL.
fn join(base: &Url, suffix: &str) -> Url {
    let (path, query) = suffix.split_once('?').map_or((suffix, None), |(path, query)| (path, Some(query)));
    let mut url = base.clone();
    url.set_path(&format!("{}{path}", base.path().trim_end_matches('/')));
    if let Some(query) = query {
        let all = base.query().map_or_else(|| query.to_owned(), |before| format!("{before}&{query}"));
        url.set_query(Some(&all));
    }
    url
}

fn host(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// Builds the HTTP client for one base URL.
///
/// Redirects are not followed, because they would carry the key to another host. Proxies come from the environment
/// (`HTTPS_PROXY` and so on), except for a loopback address.
fn build_client(base_url: &Url, timeout: &AdapterTimeout) -> Result<Client, Error> {
    let mut builder = Client::builder()
        .redirect(redirect::Policy::none())
        .retry(reqwest::retry::never())
        .connect_timeout(timeout.connect)
        .user_agent(concat!("pintle/", env!("CARGO_PKG_VERSION")));
    if is_loopback(base_url) {
        builder = builder.no_proxy();
    }
    if base_url.scheme() == "https" {
        // Fails if the process has installed another provider, which then stays.
        let _ = rustls::crypto::ring::default_provider().install_default();
    } else {
        builder = builder.tls_backend_preconfigured(without_roots()?);
    }
    builder.build().map_err(|error| {
        Error::new(ErrorKind::Configuration, "cannot set up HTTP").with_source(error.without_url())
    })
}

/// Returns a TLS configuration without root certificates: loading the system's dominates start-up, and plain HTTP needs
/// none.
fn without_roots() -> Result<rustls::ClientConfig, Error> {
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::new(ErrorKind::Configuration, "cannot set up TLS").with_source(error))?;
    Ok(config.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth())
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn redirected(location: Option<&str>, status: u16) -> Error {
    let target =
        location.map(|text| text.split(['?', '#']).next().unwrap_or_default().chars().take(200).collect());
    let target: String = target.unwrap_or_else(|| "an unnamed target".to_owned());
    Error::new(
        ErrorKind::Configuration,
        format!("the server redirects to {target}; redirects are not followed because they would carry the key there; set the base URL to the right host"),
    )
    .with_status(status)
}

/// Returns a fresh number, for ids that a provider does not send.
fn seed() -> u64 {
    RandomState::new().build_hasher().finish()
}

#[cfg(test)]
#[cfg(all(feature = "anthropic", feature = "compatible", feature = "gemini", feature = "openai"))]
mod tests;
