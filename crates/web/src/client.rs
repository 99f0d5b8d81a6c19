//! Pages over HTTP.

use std::error::Error as StdError;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use pintle_tools::builtin::{FetchRequest, WebClient, WebError, WebErrorKind, WebPage};
use reqwest::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION};
use reqwest::{Certificate, Client, Response, Url, redirect};

use crate::address::{AddressRules, RefusedAddress};
use crate::charset::decode;
use crate::markdown::to_markdown;
use crate::resolver::{self, CheckedResolver, Lookup};

/// How long a URL may be, in bytes.
const MAX_URL: usize = 8 << 10;

/// What is asked for, the best first.
const ACCEPTED: HeaderValue =
    HeaderValue::from_static("text/markdown, text/html;q=0.9, text/plain;q=0.8, */*;q=0.5");

/// Gets pages over HTTP and HTTPS, within limits and rules.
///
/// Cheap to clone is its `Arc`; one is enough for many sessions. Connections are not kept between requests.
pub struct HttpWebClient {
    limits: FetchLimits,
    rules: AddressRules,
    lookup: Lookup,
    /// Trusted beside those of the system.
    roots: Vec<Certificate>,
    plain: OnceLock<Client>,
    secure: OnceLock<Client>,
}

/// How much one fetch may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FetchLimits {
    /// The most time for all of it, redirects included. Default 30 s.
    pub time: Duration,
    /// The most bytes of a page that are read; the rest is left out. Default 2 MiB.
    pub bytes: usize,
    /// The most redirects that are followed. Default 5.
    pub redirects: usize,
}

impl FetchLimits {
    /// With another limit of time.
    #[must_use]
    pub fn with_time(mut self, time: Duration) -> Self {
        self.time = time;
        self
    }

    /// With another limit of bytes.
    #[must_use]
    pub fn with_bytes(mut self, bytes: usize) -> Self {
        self.bytes = bytes;
        self
    }

    /// With another limit of redirects.
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
    /// A client with these limits and rules. HTTP is set up at the first fetch.
    #[must_use]
    pub fn new(limits: FetchLimits, rules: AddressRules) -> Self {
        Self::with_lookup(limits, rules, resolver::system())
    }

    /// As [`new`](Self::new), with names resolved by `lookup`.
    pub(crate) fn with_lookup(limits: FetchLimits, rules: AddressRules, lookup: Lookup) -> Self {
        let (plain, secure) = (OnceLock::new(), OnceLock::new());
        Self { limits, rules, lookup, roots: Vec::new(), plain, secure }
    }

    /// And trusts these certificates, in PEM, beside those of the system: a company's own authority, say.
    ///
    /// # Errors
    ///
    /// A text that holds no certificate or a broken one.
    pub fn with_root_certificates(mut self, pem: &[u8]) -> Result<Self, WebError> {
        let unreadable = || WebError::new(WebErrorKind::Failed, "the root certificates cannot be read");
        let roots = Certificate::from_pem_bundle(pem).map_err(|error| unreadable().with_source(error))?;
        if roots.is_empty() {
            return Err(unreadable().with_source("there is none in the text, expected PEM"));
        }
        self.roots.extend(roots);
        self.secure = OnceLock::new();
        Ok(self)
    }

    /// Gets a page, redirect by redirect.
    async fn follow(&self, address: &str) -> Result<WebPage, WebError> {
        let mut url = parse(address)?;
        for _ in 0..=self.limits.redirects {
            self.rules.check_url(&url)?;
            let request = self.client(&url)?.get(url.clone());
            let response = request.send().await.map_err(|error| failed(&url, error))?;
            match target(&url, &response)? {
                Some(next) => url = next,
                None => return self.page(&url, response).await,
            }
        }
        let message = format!("more than {} redirects; the last one led to {url}", self.limits.redirects);
        Err(WebError::new(WebErrorKind::TooManyRedirects, message))
    }

    /// The text of an answer.
    async fn page(&self, url: &Url, mut response: Response) -> Result<WebPage, WebError> {
        let status = response.status().as_u16();
        let content_type = header(response.headers(), &CONTENT_TYPE).to_owned();
        let media_type = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        // The response counts down while it is read.
        let length = response.content_length();
        if !is_text(&media_type) {
            return Err(not_text(url, &media_type, length));
        }
        let encoding = header(response.headers(), &CONTENT_ENCODING);
        if !matches!(encoding, "" | "identity") {
            // Nothing is unpacked, so that a small answer is a small text.
            let message = format!("{url} came packed as {encoding}, although that was not asked for");
            return Err(WebError::new(WebErrorKind::NotText, message));
        }
        let mut body = Vec::new();
        let mut cut_at = None;
        while let Some(chunk) = response.chunk().await.map_err(|error| failed(url, error))? {
            let room = self.limits.bytes - body.len();
            body.extend_from_slice(chunk.get(..room.min(chunk.len())).unwrap_or_default());
            if chunk.len() > room {
                cut_at = Some(body.len() as u64);
                break;
            }
        }
        if body.contains(&0) {
            return Err(not_text(url, &media_type, length));
        }
        let is_html = matches!(media_type.as_str(), "text/html" | "application/xhtml+xml");
        let text = decode(&body, &content_type, is_html);
        let text = if is_html { to_markdown(&text, Some(url)) } else { text };
        Ok(WebPage::new(url.as_str(), status, media_type, text).with_cut_at(cut_at))
    }

    /// The client for a URL's scheme, made when it is first wanted.
    fn client(&self, url: &Url) -> Result<&Client, WebError> {
        let secure = url.scheme() == "https";
        let cell = if secure { &self.secure } else { &self.plain };
        if let Some(client) = cell.get() {
            return Ok(client);
        }
        let client = self.connect(secure)?;
        Ok(cell.get_or_init(|| client))
    }

    fn connect(&self, secure: bool) -> Result<Client, WebError> {
        let resolver = CheckedResolver::new(self.rules.clone(), Arc::clone(&self.lookup));
        let mut builder = Client::builder()
            .redirect(redirect::Policy::none())
            .retry(reqwest::retry::never())
            // A proxy would resolve the name again, and reach what this client may not.
            .no_proxy()
            .dns_resolver(Arc::new(resolver))
            // Each fetch connects anew, to an address that was checked for it.
            .pool_max_idle_per_host(0)
            .default_headers(HeaderMap::from_iter([(ACCEPT, ACCEPTED)]))
            .user_agent(concat!("pintle/", env!("CARGO_PKG_VERSION")));
        if secure {
            // The process may have chosen a provider of its own, which then stays.
            let _ = rustls::crypto::ring::default_provider().install_default();
            builder = builder.tls_certs_merge(self.roots.iter().cloned());
        } else {
            builder = builder.tls_backend_preconfigured(without_roots()?);
        }
        builder.build().map_err(|error| setup(error.without_url()))
    }
}

#[async_trait]
impl WebClient for HttpWebClient {
    async fn fetch(&self, request: FetchRequest) -> Result<WebPage, WebError> {
        match tokio::time::timeout(self.limits.time, self.follow(&request.url)).await {
            Ok(page) => page,
            Err(_elapsed) => {
                let seconds = self.limits.time.as_secs_f64();
                let message = format!("the page was not whole after {seconds} s");
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
        return Err(invalid(format!("the address has {} bytes; at most {MAX_URL} are taken", address.len())));
    }
    Url::parse(address).map_err(|error| {
        invalid(format!("`{address}` is no address: {error}; it must begin with https:// or http://"))
            .with_source(error)
    })
}

/// Where an answer sends the client; `None` if it is the page itself.
fn target(url: &Url, response: &Response) -> Result<Option<Url>, WebError> {
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
            let message =
                format!("{url} redirects to an address of {bytes} bytes; at most {MAX_URL} are taken");
            Err(WebError::new(WebErrorKind::Failed, message))
        }
        Ok(next) => Ok(Some(next)),
        Err(error) => {
            let message = format!("{url} redirects to what is no address: {error}");
            Err(WebError::new(WebErrorKind::Failed, message).with_source(error))
        }
    }
}

/// A header's value; empty if it is missing or no text.
fn header<'a>(headers: &'a HeaderMap, name: &reqwest::header::HeaderName) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// Whether a media type is one of text. What is unnamed is looked at.
fn is_text(media_type: &str) -> bool {
    const ALSO: [&str; 9] = [
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
        || ALSO.contains(&media_type)
}

fn not_text(url: &Url, media_type: &str, length: Option<u64>) -> WebError {
    let kind = if media_type.is_empty() { "of no type" } else { media_type };
    let size = length.map_or_else(|| "of unknown size".to_owned(), |bytes| format!("{bytes} bytes"));
    let message = format!("{url} is no text: {kind}, {size}. Get it with a command if you need it as a file");
    WebError::new(WebErrorKind::NotText, message)
}

/// Why there was no answer, or not a whole one.
fn failed(url: &Url, error: reqwest::Error) -> WebError {
    let error = error.without_url();
    let mut innermost: &(dyn StdError + 'static) = &error;
    while let Some(source) = innermost.source() {
        if let Some(refused) = source.downcast_ref::<RefusedAddress>() {
            return WebError::from(refused.clone());
        }
        innermost = source;
    }
    let host = url.host_str().unwrap_or_default();
    let message = if error.is_connect() {
        format!("cannot connect to {host}: {innermost}")
    } else {
        format!("{host} gave no whole answer: {innermost}")
    };
    WebError::new(WebErrorKind::Failed, message).with_source(error)
}

fn setup(error: impl Into<Box<dyn StdError + Send + Sync>>) -> WebError {
    WebError::new(WebErrorKind::Failed, "HTTP cannot be set up on this machine").with_source(error)
}

/// Loading the system's root certificates takes long, and plain HTTP needs none.
fn without_roots() -> Result<rustls::ClientConfig, WebError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(setup)?;
    Ok(config.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth())
}

#[cfg(test)]
mod tests;
