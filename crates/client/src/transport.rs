//! Sends requests, and repeats requests that failed in transit.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Client as Http, Method, Response, Url, redirect};
use serde::Serialize;

use crate::address::ServerAddress;
use crate::error::{ClientError, ServerProblem};
use crate::operation::ApiOperation;
use crate::options::ClientOptions;

/// Maximum `retry-after`. A stream waits no longer, and a request with a longer one fails.
pub(crate) const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(60);

/// Maximum bytes of problem details. A longer response comes from a proxy.
const MAX_PROBLEM: usize = 256 << 10;

/// Request to the server.
#[derive(Clone, Debug)]
pub(crate) struct ServerRequest {
    method: Method,
    url: Url,
    headers: HeaderMap,
    body: Option<Vec<u8>>,
}

impl ServerRequest {
    /// Adds a parameter, if it has a value.
    pub(crate) fn query(mut self, name: &str, value: Option<&str>) -> Self {
        if let Some(value) = value {
            self.url.query_pairs_mut().append_pair(name, value);
        }
        self
    }

    /// Adds a header.
    pub(crate) fn header(
        mut self,
        name: &'static str,
        what: &'static str,
        value: &str,
    ) -> Result<Self, ClientError> {
        let value = HeaderValue::from_str(value).map_err(|_| ClientError::InvalidHeader(what))?;
        self.headers.insert(HeaderName::from_static(name), value);
        Ok(self)
    }

    /// Sets the body.
    pub(crate) fn json(mut self, body: &impl Serialize) -> Result<Self, ClientError> {
        let body = serde_json::to_vec(body).map_err(ClientError::setup)?;
        self.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        self.body = Some(body);
        Ok(self)
    }
}

/// Failure of a request after all attempts.
pub(crate) struct FailedRequest {
    pub(crate) error: ClientError,
    /// Number of times that the request was sent.
    pub(crate) attempts: u32,
}

impl From<FailedRequest> for ClientError {
    fn from(failed: FailedRequest) -> Self {
        failed.error
    }
}

/// Connection settings of one server. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Transport {
    http: Http,
    base: Url,
    /// Host and port, or the socket, for messages.
    host: Arc<str>,
    authorization: Option<HeaderValue>,
    /// Whether a connection to the server was ever made.
    has_connected: Arc<AtomicBool>,
    pub(crate) options: Arc<ClientOptions>,
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transport")
            .field("host", &self.host)
            .field("has_token", &self.authorization.is_some())
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl Transport {
    pub(crate) fn new(url: &str, token: Option<&str>, options: ClientOptions) -> Result<Self, ClientError> {
        let address = ServerAddress::parse(url)?;
        let authorization = token.or(address.token.as_deref()).map(bearer).transpose()?;
        let http = http_of(&address, &options)?;
        let host = match &address.socket {
            Some(path) => path.display().to_string(),
            None => {
                let host = address.base.host_str().unwrap_or_default();
                address.base.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
            }
        };
        let host = host.into();
        let (has_connected, options) = (Arc::default(), Arc::new(options));
        Ok(Self { http, base: address.base, host, authorization, has_connected, options })
    }

    pub(crate) fn request(
        &self,
        operation: &ApiOperation,
        values: &[&str],
    ) -> Result<ServerRequest, ClientError> {
        let url = operation.url(&self.base, values)?;
        Ok(ServerRequest { method: operation.method.clone(), url, headers: HeaderMap::new(), body: None })
    }

    /// Sends a request once. Returns a successful response with an unread body.
    pub(crate) async fn open(&self, request: &ServerRequest) -> Result<Response, ClientError> {
        let ServerRequest { method, url, headers, body } = request.clone();
        let mut sent = self.http.request(method, url).headers(headers);
        if let Some(authorization) = &self.authorization {
            sent = sent.header(AUTHORIZATION, authorization.clone());
        }
        if let Some(body) = body {
            sent = sent.body(body);
        }
        let sent = sent.send().await.map_err(|error| self.failed(error));
        if !matches!(sent, Err(ClientError::Connect { .. })) {
            self.has_connected.store(true, Ordering::Relaxed);
        }
        let response = sent?;
        if response.status().is_success() {
            return Ok(response);
        }
        Err(self.read_refusal(response).await)
    }

    /// Sends a request until a response has been read or the request has failed permanently.
    pub(crate) async fn call(&self, request: &ServerRequest) -> Result<Vec<u8>, FailedRequest> {
        let mut attempts = 1;
        loop {
            let attempt = async {
                let response = self.open(request).await?;
                self.body(response, self.options.max_bytes).await
            };
            let ended = tokio::time::timeout(self.options.timeout, attempt).await;
            let error = match ended.unwrap_or(Err(ClientError::Silent(self.options.timeout))) {
                Ok(body) => return Ok(body),
                Err(error) => error,
            };
            let Some(delay) = self.retry_delay(&error, attempts) else {
                return Err(FailedRequest { error, attempts });
            };
            tokio::time::sleep(delay).await;
            attempts += 1;
        }
    }

    /// Returns the delay before the next attempt of a request, or `None` if the request has failed permanently. A server
    /// that no connection was ever made to is not expected to return.
    pub(crate) fn retry_delay(&self, error: &ClientError, attempts: u32) -> Option<Duration> {
        let retry_after = error.retry_after().unwrap_or_default();
        let is_unknown =
            matches!(error, ClientError::Connect { .. }) && !self.has_connected.load(Ordering::Relaxed);
        if attempts > self.options.retries
            || is_unknown
            || !error.is_retryable()
            || retry_after > LONGEST_RETRY_AFTER
        {
            return None;
        }
        Some(retry_after + self.options.backoff.delay(attempts))
    }

    async fn body(&self, mut response: Response, limit: usize) -> Result<Vec<u8>, ClientError> {
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| self.failed(error))? {
            if body.len() + chunk.len() > limit {
                return Err(ClientError::TooLong(limit));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    /// Returns the error of an unsuccessful response.
    async fn read_refusal(&self, response: Response) -> ClientError {
        let status = response.status().as_u16();
        let retry_after = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        // A date would have to be compared with a clock that may be wrong.
        let retry_after = retry_after.and_then(|value| value.trim().parse().ok()).map(Duration::from_secs);
        // The status suffices if the body is incomplete or too long.
        let body = self.body(response, MAX_PROBLEM).await.unwrap_or_default();
        match serde_json::from_slice::<ServerProblem>(&body) {
            Ok(problem) => ClientError::Refused { problem: ServerProblem { status, ..problem }, retry_after },
            Err(_) => ClientError::Status { status, retry_after },
        }
    }

    /// Returns the error of a request without a complete response.
    pub(crate) fn failed(&self, error: reqwest::Error) -> ClientError {
        let (host, source) = (self.host.to_string(), error.without_url());
        if source.is_connect() {
            ClientError::Connect { host, source: source.into() }
        } else {
            ClientError::Lost { host, source: source.into() }
        }
    }
}

fn bearer(token: &str) -> Result<HeaderValue, ClientError> {
    let value = HeaderValue::from_str(&format!("Bearer {}", token.trim()));
    let mut value = value.map_err(|_| ClientError::InvalidHeader("token"))?;
    // `Debug` does not show the token.
    value.set_sensitive(true);
    Ok(value)
}

/// Builds the HTTP client. Redirects are not followed, since they could carry the token to another host. The proxies of the
/// environment are used, except for this machine.
fn http_of(address: &ServerAddress, options: &ClientOptions) -> Result<Http, ClientError> {
    let mut builder = Http::builder()
        .redirect(redirect::Policy::none())
        .retry(reqwest::retry::never())
        .user_agent(concat!("pintle-client/", env!("CARGO_PKG_VERSION")));
    if address.is_local() {
        builder = builder.no_proxy();
    }
    #[cfg(unix)]
    if let Some(path) = &address.socket {
        builder = builder.unix_socket(path.clone());
    }
    if address.base.scheme() == "https" {
        // Fails if the process has already installed a provider, which then stays.
        let _ = rustls::crypto::ring::default_provider().install_default();
        builder = builder.tls_certs_merge(options.roots.iter().cloned());
    } else {
        builder = builder.tls_backend_preconfigured(without_roots()?);
    }
    builder.build().map_err(|error| ClientError::setup(error.without_url()))
}

/// Returns a TLS configuration without root certificates: loading the system's is slow, and plain HTTP needs none.
fn without_roots() -> Result<rustls::ClientConfig, ClientError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(ClientError::setup)?;
    Ok(config.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth())
}
