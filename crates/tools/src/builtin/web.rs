//! The clients that the web tools need.

mod search;

use std::error::Error as StdError;
use std::fmt;

use async_trait::async_trait;

pub use self::search::{SearchHit, SearchQuery, SearchResults};

/// Fetches pages for [`WebFetch`](super::WebFetch). The crate `pintle-web` has an HTTP implementation.
///
/// An implementation must limit time, size and redirects, and must refuse addresses that the application does not
/// allow: the model chooses the URL, possibly under the influence of text that it has read. Dropping the future cancels
/// the request.
#[async_trait]
pub trait WebClient: fmt::Debug + Send + Sync {
    /// Fetches a page as text.
    ///
    /// # Errors
    ///
    /// An error with a message for the model. A response with a status such as 404 is a page, not an error.
    async fn fetch(&self, request: FetchRequest) -> Result<WebPage, WebError>;

    /// Returns the host that [`fetch`](Self::fetch) would reach first for a URL, in lower case; `None` if it is
    /// unknown, which is the default. Gates judge a call by it.
    fn host(&self, url: &str) -> Option<String> {
        let _ = url;
        None
    }
}

/// Searches the web for [`WebSearch`](super::WebSearch). The crate `pintle-web` has an implementation that uses the
/// search of a model provider.
///
/// Dropping the future cancels the request.
#[async_trait]
pub trait WebSearchClient: fmt::Debug + Send + Sync {
    /// Returns the hits, the best first.
    ///
    /// # Errors
    ///
    /// An error with a message for the model.
    async fn search(&self, query: SearchQuery) -> Result<SearchResults, WebError>;
}

const _: fn(&dyn WebClient, &dyn WebSearchClient) = |_, _| {};

/// A request for a page.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FetchRequest {
    /// The URL as the model wrote it.
    pub url: String,
}

/// A fetched page.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WebPage {
    /// The final URL, after redirects.
    pub url: String,
    /// The status code.
    pub status: u16,
    /// The media type, such as `text/html`; empty if the response had none.
    pub media_type: String,
    /// The text; HTML is converted to Markdown.
    pub text: String,
    /// The number of bytes that were read, if the page is longer.
    pub cut_at: Option<u64>,
}

/// An error of a web client.
#[derive(Debug)]
pub struct WebError {
    kind: WebErrorKind,
    message: String,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

/// The kind of a [`WebError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WebErrorKind {
    /// The URL is invalid, or neither http nor https.
    InvalidUrl,
    /// The address is not allowed.
    Refused,
    /// There were too many redirects.
    TooManyRedirects,
    /// The response took too long.
    Timeout,
    /// The response is not text.
    NotText,
    /// Another failure, such as an unknown host or a broken connection.
    Failed,
}

impl FetchRequest {
    /// Creates a request for this URL.
    #[must_use]
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into() }
    }
}

impl WebPage {
    /// Creates a complete page with its URL, status, media type and text.
    #[must_use]
    pub fn new(
        url: impl Into<String>,
        status: u16,
        media_type: impl Into<String>,
        text: impl Into<String>,
    ) -> Self {
        let (url, media_type, text) = (url.into(), media_type.into(), text.into());
        Self { url, status, media_type, text, cut_at: None }
    }

    /// Sets the number of bytes after which reading stopped.
    #[must_use]
    pub fn with_cut_at(mut self, bytes: Option<u64>) -> Self {
        self.cut_at = bytes;
        self
    }
}

impl WebError {
    /// Creates an error with the message for the model.
    #[must_use]
    pub fn new(kind: WebErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    /// Returns the kind of the error.
    #[must_use]
    pub fn kind(&self) -> WebErrorKind {
        self.kind
    }

    /// Sets the cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }
}

impl fmt::Display for WebError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl StdError for WebError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn StdError + 'static))
    }
}

impl From<WebError> for crate::error::ToolError {
    fn from(error: WebError) -> Self {
        use crate::error::ToolErrorKind;
        let kind = match error.kind {
            WebErrorKind::InvalidUrl => ToolErrorKind::InvalidArguments,
            WebErrorKind::Refused => ToolErrorKind::PermissionDenied,
            WebErrorKind::Timeout => ToolErrorKind::TimedOut,
            WebErrorKind::TooManyRedirects | WebErrorKind::NotText | WebErrorKind::Failed => {
                ToolErrorKind::Failed
            }
        };
        Self::new(kind, error.message.clone()).with_source(error)
    }
}
