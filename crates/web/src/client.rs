//! HTTP client for pages.

use std::error::Error as StdError;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use pintle_egress::{Host, HostRules, Target};
use pintle_tools::builtin::{FetchRequest, WebClient, WebError, WebErrorKind, WebPage};
use reqwest::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION};
use reqwest::{Certificate, Client, Response, Url, redirect};

use crate::address::{AddressRules, DeniedAddress, RefusedAddress};
use crate::charset::decode;
use crate::markdown::to_markdown;
use crate::resolver::{self, CheckedResolver, HostLookup};

/// Maximum length of a URL, in bytes.
const MAX_URL: usize = 8 << 10;

/// Accepted media types, best first.
const ACCEPTED: HeaderValue =
    HeaderValue::from_static("text/markdown, text/html;q=0.9, text/plain;q=0.8, */*;q=0.5");

/// Fetches pages over HTTP and HTTPS, within limits and address rules.
///
/// One client in an `Arc` serves many sessions. Connections are not reused between requests.
pub struct HttpWebClient {
    limits: FetchLimits,
    rules: AddressRules,
    /// Hosts that may be reached; `None` without such a limit.
    hosts: Option<Arc<HostRules>>,
    lookup: HostLookup,
    /// Whether redirects to another host are refused.
    stays_on_host: bool,
    /// Certificates trusted in addition to the system's.
    roots: Vec<Certificate>,
    plain: OnceLock<Client>,
    secure: OnceLock<Client>,
}

/// Limits of one fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FetchLimits {
    /// Maximum total time, redirects included. Default 30 s.
    pub time: Duration,
    /// Maximum number of bytes read of a page; the rest is left out. Default 2 MiB.
    pub bytes: usize,
    /// Maximum number of redirects followed. Default 5.
    pub redirects: usize,
}

impl FetchLimits {
    /// Sets the maximum total time.
    #[must_use]
    pub fn with_time(mut self, time: Duration) -> Self {
        self.time = time;
        self
    }

    /// Sets the maximum number of bytes.
    #[must_use]
    pub fn with_bytes(mut self, bytes: usize) -> Self {
        self.bytes = bytes;
        self
    }

    /// Sets the maximum number of redirects.
    #[must_use]
    pub fn with_redirects(mut self, redirects: usize) -> Self {
        self.redirects = redirects;
        self
    }
}

impl Default for FetchLimits {
    fn default() -> Self {
        Self { time: Duration::from_secs(30), bytes: 2 << 20, redirects: 5 }
    }
}

impl HttpWebClient {
    /// Creates a client with these limits and rules. HTTP is set up at the first fetch.
    #[must_use]
    pub fn new(limits: FetchLimits, rules: AddressRules) -> Self {
        Self::with_lookup(limits, rules, resolver::system_lookup())
    }

    /// Like [`new`](Self::new), with names resolved by `lookup`.
    pub(crate) fn with_lookup(limits: FetchLimits, rules: AddressRules, lookup: HostLookup) -> Self {
        let (plain, secure) = (OnceLock::new(), OnceLock::new());
        Self { limits, rules, hosts: None, lookup, stays_on_host: false, roots: Vec::new(), plain, secure }
    }

    /// Refuses redirects to another host. The error contains the address, which can be fetched with a separate call. Needed
    /// where rules judge calls by their host.
    #[must_use]
    pub fn staying_on_host(mut self) -> Self {
        self.stays_on_host = true;
        self
    }

    /// Limits requests, redirects included, to targets that these rules allow as well. Errors name the host.
    #[must_use]
    pub fn with_hosts(mut self, hosts: HostRules) -> Self {
        self.hosts = Some(Arc::new(hosts));
        (self.plain, self.secure) = (OnceLock::new(), OnceLock::new());
        self
    }

    /// Trusts these PEM certificates in addition to the system's, for example certificates of a company's own authority.
    ///
    /// # Errors
    ///
    /// Fails when `pem` contains no certificate or a malformed one.
    pub fn with_root_certificates(mut self, pem: &[u8]) -> Result<Self, WebError> {
        let unreadable = || WebError::new(WebErrorKind::Failed, "cannot read the root certificates");
        let roots = Certificate::from_pem_bundle(pem).map_err(|error| unreadable().with_source(error))?;
        if roots.is_empty() {
            return Err(unreadable().with_source("no certificate found, expected PEM"));
        }
        self.roots.extend(roots);
        self.secure = OnceLock::new();
        Ok(self)
    }

    /// Fetches a page, following redirects.
    async fn follow(&self, address: &str) -> Result<WebPage, WebError> {
        let mut url = parse(address)?;
        for _ in 0..=self.limits.redirects {
            self.rules.check_url(&url)?;
            self.check_host(&url)?;
            let request = self.client(&url)?.get(url.clone());
            let response = request.send().await.map_err(|error| failed(&url, error))?;
            match redirect_target(&url, &response)? {
                Some(next) if self.stays_on_host && next.host_str() != url.host_str() => {
                    let message =
                        format!("{url} leads to another host, which was not followed: fetch {next} itself");
                    return Err(WebError::new(WebErrorKind::Refused, message));
                }
                Some(next) => url = next,
                None => return self.page(&url, response).await,
            }
        }
        let message = format!("more than {} redirects; the last one led to {url}", self.limits.redirects);
        Err(WebError::new(WebErrorKind::TooManyRedirects, message))
    }

    /// Checks the host and port of a URL before the host is resolved.
    fn check_host(&self, url: &Url) -> Result<(), WebError> {
        let Some(hosts) = &self.hosts else { return Ok(()) };
        let host = url.host_str().unwrap_or_default();
        let refused = |reason: String| {
            WebError::new(WebErrorKind::Refused, format!("{host} may not be reached: {reason}"))
        };
        let target = Host::parse(host)
            .and_then(|host| Target::new(host, url.port_or_known_default().unwrap_or_default()));
        let target = target.map_err(|error| refused(error.to_string()))?;
        hosts.check(&target).map_err(|refusal| refused(refusal.to_string()))
    }

    /// Reads the text of a response.
    async fn page(&self, url: &Url, mut response: Response) -> Result<WebPage, WebError> {
        let status = response.status().as_u16();
        let content_type = header(response.headers(), &CONTENT_TYPE).to_owned();
        let media_type = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        // `content_length` shrinks while the body is read.
        let length = response.content_length();
        if !is_text(&media_type) {
            return Err(not_text(url, &media_type, length));
        }
        let encoding = header(response.headers(), &CONTENT_ENCODING);
        if !matches!(encoding, "" | "identity") {
            // Nothing is decompressed, so that a small response cannot become a large text.
            let message = format!("{url} was compressed with {encoding}, although that was not requested");
            return Err(WebError::new(WebErrorKind::NotText, message));
        }
        let mut body = Vec::new();
        let mut cut_at = None;
        while let Some(chunk) = response.chunk().await.map_err(|error| failed(url, error))? {
            let remaining = self.limits.bytes - body.len();
            body.extend_from_slice(chunk.get(..remaining.min(chunk.len())).unwrap_or_default());
            if chunk.len() > remaining {
                cut_at = Some(body.len() as u64);
                break;
            }
        }
        let is_html = matches!(media_type.as_str(), "text/html" | "application/xhtml+xml");
        let text = decode(&body, &content_type, is_html);
        if text.contains('\0') {
            return Err(not_text(url, &media_type, length));
        }
        let text = if is_html { to_markdown(&text, Some(url)) } else { text };
        Ok(WebPage::new(url.as_str(), status, media_type, text).with_cut_at(cut_at))
    }

    /// Returns the client for a URL's scheme, built on first use.
    fn client(&self, url: &Url) -> Result<&Client, WebError> {
        let secure = url.scheme() == "https";
        let cell = if secure { &self.secure } else { &self.plain };
        if let Some(client) = cell.get() {
            return Ok(client);
        }
        let client = self.build(secure)?;
        Ok(cell.get_or_init(|| client))
    }

    fn build(&self, secure: bool) -> Result<Client, WebError> {
        let resolver = CheckedResolver::new(self.rules.clone(), self.hosts.clone(), Arc::clone(&self.lookup));
        let mut builder = Client::builder()
            .redirect(redirect::Policy::none())
            .retry(reqwest::retry::never())
            // A proxy would resolve the name again and could reach addresses that this client must not.
            .no_proxy()
            .dns_resolver(Arc::new(resolver))
            // Each fetch opens a connection, to an address that was checked for it.
            .pool_max_idle_per_host(0)
            .default_headers(HeaderMap::from_iter([(ACCEPT, ACCEPTED)]))
            .user_agent(concat!("pintle/", env!("CARGO_PKG_VERSION")));
        if secure {
            // Fails if the process has installed another provider, which then stays.
            let _ = rustls::crypto::ring::default_provider().install_default();
            builder = builder.tls_certs_merge(self.roots.iter().cloned());
        } else {
            builder = builder.tls_backend_preconfigured(without_roots()?);
        }
        builder.build().map_err(|error| setup_failed(error.without_url()))
    }
}

#[async_trait]
impl WebClient for HttpWebClient {
    fn host(&self, url: &str) -> Option<String> {
        parse(url).ok()?.host_str().map(str::to_owned)
    }

    async fn fetch(&self, request: FetchRequest) -> Result<WebPage, WebError> {
        match tokio::time::timeout(self.limits.time, self.follow(&request.url)).await {
            Ok(page) => page,
            Err(_elapsed) => {
                let seconds = self.limits.time.as_secs_f64();
                let message = format!("the page was not complete after {seconds} s");
                Err(WebError::new(WebErrorKind::Timeout, message))
            }
        }
    }
}

impl fmt::Debug for HttpWebClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpWebClient")
            .field("limits", &self.limits)
            .field("rules", &self.rules)
            .field("roots", &self.roots.len())
            .finish_non_exhaustive()
    }
}

fn parse(address: &str) -> Result<Url, WebError> {
    let invalid = |message: String| WebError::new(WebErrorKind::InvalidUrl, message);
    let address = address.trim();
    if address.len() > MAX_URL {
        return Err(invalid(format!("the URL has {} bytes; at most {MAX_URL} are allowed", address.len())));
    }
    Url::parse(address).map_err(|error| {
        invalid(format!("`{address}` is not a URL: {error}; it must begin with https:// or http://"))
            .with_source(error)
    })
}

/// Returns the target of a redirect; `None` for any other response.
fn redirect_target(url: &Url, response: &Response) -> Result<Option<Url>, WebError> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let location = header(response.headers(), &LOCATION);
    if location.is_empty() {
        return Ok(None);
    }
    match url.join(location) {
        Ok(next) if next.as_str().len() > MAX_URL => {
            let bytes = next.as_str().len();
            let message = format!("{url} redirects to a URL of {bytes} bytes; at most {MAX_URL} are allowed");
            Err(WebError::new(WebErrorKind::Failed, message))
        }
        Ok(next) => Ok(Some(next)),
        Err(error) => {
            let message = format!("{url} redirects to an invalid URL: {error}");
            Err(WebError::new(WebErrorKind::Failed, message).with_source(error))
        }
    }
}

/// Returns the value of a header; empty if it is missing or not text.
fn header<'a>(headers: &'a HeaderMap, name: &reqwest::header::HeaderName) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// Returns whether a media type is textual. A body without one is judged by its content.
fn is_text(media_type: &str) -> bool {
    const TEXTUAL: [&str; 9] = [
        "application/json",
        "application/xml",
        "application/javascript",
        "application/ecmascript",
        "application/yaml",
        "application/x-yaml",
        "application/toml",
        "application/x-ndjson",
        "application/sql",
    ];
    media_type.is_empty()
        || media_type.starts_with("text/")
        || media_type.ends_with("+json")
        || media_type.ends_with("+xml")
        || media_type.ends_with("+yaml")
        || TEXTUAL.contains(&media_type)
}

fn not_text(url: &Url, media_type: &str, length: Option<u64>) -> WebError {
    let kind = if media_type.is_empty() { "no media type" } else { media_type };
    let size = length.map_or_else(|| "unknown size".to_owned(), |bytes| format!("{bytes} bytes"));
    let message =
        format!("{url} is not text: {kind}, {size}. Get it with a command if you need it as a file");
    WebError::new(WebErrorKind::NotText, message)
}

/// Describes why there was no response or an incomplete one.
fn failed(url: &Url, error: reqwest::Error) -> WebError {
    let error = error.without_url();
    let mut innermost: &(dyn StdError + 'static) = &error;
    while let Some(source) = innermost.source() {
        if let Some(refused) = source.downcast_ref::<RefusedAddress>() {
            return WebError::from(refused.clone());
        }
        if let Some(denied) = source.downcast_ref::<DeniedAddress>() {
            return WebError::from(denied.clone());
        }
        innermost = source;
    }
    let host = url.host_str().unwrap_or_default();
    let message = if error.is_connect() {
        format!("cannot connect to {host}: {innermost}")
    } else {
        format!("{host} sent no complete response: {innermost}")
    };
    WebError::new(WebErrorKind::Failed, message).with_source(error)
}

fn setup_failed(error: impl Into<Box<dyn StdError + Send + Sync>>) -> WebError {
    WebError::new(WebErrorKind::Failed, "cannot set up HTTP on this machine").with_source(error)
}

/// Returns a TLS configuration without root certificates: loading the system's takes long, and plain HTTP needs none.
fn without_roots() -> Result<rustls::ClientConfig, WebError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(setup_failed)?;
    Ok(config.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth())
}

#[cfg(test)]
mod tests;
