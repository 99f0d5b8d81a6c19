//! The one driver of all dialects: connects, sends, limits, frames and decodes.

#![expect(clippy::disallowed_methods, reason = "the driver draws the time; everything below is given it")]

mod events;
mod exchange;

use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::{BuildHasher as _, Hasher as _};
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use pintle_llm::{AdapterTimeout, Error, ErrorKind, EventStream, Request, Response};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Url, redirect};
use tokio::time::Instant;

use crate::dialect::{Dialect, HttpRequest, SseEvent};
use crate::media;
use crate::rate_limit;
use crate::repair;
use crate::transport::events::{Events, StreamLimits};
use crate::transport::exchange::{Endpoint, Exchange, Facts, timed_out};

/// The largest whole answer that is read, in bytes.
pub(crate) const MAX_BODY: usize = 64 * 1024 * 1024;

/// What an adapter's connections are like.
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
    /// Without header values, since a gateway's key may be one, and without the URL's user and password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("HttpOptions")
            .field("headers", &names)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

/// How an answer is to come.
#[derive(Clone, Copy, Debug)]
enum Way {
    Streamed,
    Whole {
        /// When all of it must be there.
        deadline: Option<Instant>,
    },
}

/// A dialect with a connection pool. The pool is made at the first request.
pub(crate) struct HttpAdapter<D> {
    dialect: D,
    endpoint: Arc<Endpoint>,
    timeout: AdapterTimeout,
    client: OnceLock<Client>,
}

impl<D: Dialect> HttpAdapter<D> {
    /// # Errors
    ///
    /// [`ErrorKind::Configuration`] for a base URL that is no absolute `http` or `https` URL, or a bad header.
    pub(crate) fn new(dialect: D, options: HttpOptions) -> Result<Self, Error> {
        let provider = dialect.provider();
        let HttpOptions { base_url, headers: given, timeout } = options;
        let base_url = parse_base_url(&base_url).map_err(|error| error.with_provider(provider))?;
        let mut headers = HeaderMap::new();
        for (name, value) in given {
            let (name, value) = parse_header(&name, &value).map_err(|error| error.with_provider(provider))?;
            headers.insert(name, value);
        }
        let host = host(&base_url);
        let endpoint = Arc::new(Endpoint { base_url, headers, host });
        Ok(Self { dialect, endpoint, timeout, client: OnceLock::new() })
    }

    pub(crate) fn dialect(&self) -> &D {
        &self.dialect
    }

    /// One whole answer, within the request's limits. Dropping the future closes the connection.
    pub(crate) async fn complete(&self, request: &Request) -> Result<Response, Error> {
        let limits = request.timeout.unwrap_or(self.timeout);
        let whole = [limits.request, limits.content].into_iter().flatten().min();
        // Drawn before the limit below begins, so that it comes before that limit's end.
        let deadline = whole.and_then(|limit| Instant::now().checked_add(limit));
        let exchange = self.read_answer(request, &limits, deadline);
        let answer = match whole {
            Some(limit) => tokio::time::timeout(limit, exchange)
                .await
                .unwrap_or_else(|_| Err(timed_out(format!("no whole answer within {limit:?}")))),
            None => exchange.await,
        };
        answer.map_err(|error| self.named(error))
    }

    /// The answer as it forms. Returns once the first byte has come, so that a failure before it is an error of
    /// this call, which may be retried. Dropping future or stream closes the connection.
    pub(crate) async fn stream(&self, request: &Request) -> Result<EventStream, Error> {
        let limits = request.timeout.unwrap_or(self.timeout);
        self.open_stream(request, &limits).await.map_err(|error| self.named(error))
    }

    async fn read_answer(
        &self,
        request: &Request,
        limits: &AdapterTimeout,
        deadline: Option<Instant>,
    ) -> Result<Response, Error> {
        let request = request.in_order()?;
        let request = media::resolve(&request).await?;
        let encoded = self.dialect.encode(&request, false)?;
        let mut exchange = self.open(encoded, limits, Way::Whole { deadline }).await?;
        let body = exchange.read_all(MAX_BODY).await?;
        let decoded = self.decode(&request, &body);
        let mut response = decoded.map_err(|error| exchange.facts().annotate(error))?;
        response.rate_limit = rate_limit::from_headers(&exchange.facts().headers, SystemTime::now());
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
        let mut exchange = self.open(encoded, limits, Way::Streamed).await?;
        exchange.expect_events(self.dialect.provider()).await?;
        let decoder = self.dialect.decoder(&request, seed());
        let rate_limit = rate_limit::from_headers(&exchange.facts().headers, SystemTime::now());
        let provider = self.dialect.provider();
        let stream_limits = StreamLimits { content: limits.content, ..StreamLimits::default() };
        Ok(Events::new(exchange, decoder, provider, &request.model, rate_limit, stream_limits).into_stream())
    }

    /// Sends the request and waits for the first byte of a good answer; a bad one is classified.
    async fn open(&self, request: HttpRequest, limits: &AdapterTimeout, way: Way) -> Result<Exchange, Error> {
        let url = join(&self.endpoint.base_url, &request.path);
        let headers = self.header_map(&request)?;
        let facts = Facts::new(Arc::clone(&self.endpoint), request.headers, SystemTime::now);
        let mut body = request.body.into_sending();
        // The headers of a whole answer come when it is complete, so that its own limits are theirs too.
        let (sent, deadline) = match way {
            Way::Streamed => (Some(body.end()), None),
            Way::Whole { deadline } => (None, deadline),
        };
        let call = self.client()?.post(url).headers(headers).body(reqwest::Body::wrap(body));
        let mut exchange = Exchange::open(call, sent, facts, limits).await?;
        let status = exchange.status();
        tracing::debug!(
            provider = self.dialect.provider(),
            status,
            request_id = exchange.facts().request_id().map(|id| exchange.facts().clean(id)),
            "answer"
        );
        if (200..=299).contains(&status) {
            exchange.expect_identity()?;
            return Ok(exchange);
        }
        if (300..=399).contains(&status) {
            let facts = exchange.facts();
            // Before it is shortened, which could cut a key in two.
            let place = facts.headers.get("location").map(|place| facts.clean(place));
            return Err(facts.annotate(redirected(place.as_deref(), status)));
        }
        let body = exchange.read_error_body(deadline).await;
        Err(exchange.facts().annotate(self.dialect.classify(status, &exchange.facts().headers, &body)))
    }

    fn header_map(&self, request: &HttpRequest) -> Result<HeaderMap, Error> {
        let mut headers = HeaderMap::new();
        headers.insert(reqwest::header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        for (name, value) in &request.headers {
            let (name, value) = parse_header(name, value)?;
            headers.insert(name, value);
        }
        // Not `extend`, which would send two headers of one name.
        for (name, value) in &self.endpoint.headers {
            headers.insert(name.clone(), value.clone());
        }
        Ok(headers)
    }

    fn client(&self) -> Result<&Client, Error> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let client = connect_pool(&self.endpoint.base_url, &self.timeout)?;
        Ok(self.client.get_or_init(|| client))
    }

    fn named(&self, error: Error) -> Error {
        if error.provider().is_some() { error } else { error.with_provider(self.dialect.provider()) }
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

/// Makes a type with a field `http: HttpAdapter<_>` a [`ProviderAdapter`](pintle_llm::ProviderAdapter).
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
    let wrong = |why: &str| {
        Error::new(
            ErrorKind::Configuration,
            format!("the base URL {why}; expected such as https://example.com/v1"),
        )
    };
    let url = Url::parse(text).map_err(|error| wrong("cannot be read").with_source(error))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(wrong("is no absolute http or https URL"));
    }
    Ok(url)
}

fn parse_header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), Error> {
    let wrong =
        |what: &str| Error::new(ErrorKind::Configuration, format!("the header `{name}` has a bad {what}"));
    let parsed_name = HeaderName::try_from(name).map_err(|error| wrong("name").with_source(error))?;
    // The reason is left out: it could quote the value, which may be a key.
    let mut parsed = HeaderValue::try_from(value).map_err(|_| wrong("value"))?;
    parsed.set_sensitive(true);
    Ok((parsed_name, parsed))
}

/// The base URL with a path, and perhaps a query, below it. A query of the base URL stays.
fn join(base: &Url, below: &str) -> Url {
    let (path, query) = below.split_once('?').map_or((below, None), |(path, query)| (path, Some(query)));
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

/// A pool of connections to one base URL.
///
/// Redirects are not followed, since they would carry the key to where they lead. Proxies are those of the
/// environment (`HTTPS_PROXY` and so on), except for a loopback address, which needs none.
fn connect_pool(base_url: &Url, timeout: &AdapterTimeout) -> Result<Client, Error> {
    let mut builder = Client::builder()
        .redirect(redirect::Policy::none())
        .retry(reqwest::retry::never())
        .connect_timeout(timeout.connect)
        .user_agent(concat!("pintle/", env!("CARGO_PKG_VERSION")));
    if is_loopback(base_url) {
        builder = builder.no_proxy();
    }
    if base_url.scheme() == "https" {
        // The process may have chosen a provider of its own, which then stays.
        let _ = rustls::crypto::ring::default_provider().install_default();
    } else {
        builder = builder.tls_backend_preconfigured(without_roots()?);
    }
    builder.build().map_err(|error| {
        Error::new(ErrorKind::Configuration, "cannot set up HTTP").with_source(error.without_url())
    })
}

/// Loading the system's root certificates takes longer than all else at the start, and plain HTTP needs none.
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
    let target: String = target.unwrap_or_else(|| "a place that it does not name".to_owned());
    Error::new(
        ErrorKind::Configuration,
        format!("the server redirects to {target}, which is not followed, since the key would go there too; set the base URL to where it should go"),
    )
    .with_status(status)
}

/// A number that is new each time, for ids that a provider does not give.
fn seed() -> u64 {
    RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests;
