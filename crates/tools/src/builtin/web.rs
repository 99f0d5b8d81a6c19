//! What the web tools need of whoever speaks HTTP.

mod search;

use std::error::Error as StdError;
use std::fmt;

use async_trait::async_trait;

pub use self::search::{SearchHit, SearchQuery, SearchResults};

/// Fetches pages for [`WebFetch`](super::WebFetch). The crate `pintle-web` has one that speaks HTTP.
///
/// An implementation limits time, size and redirects, and reaches no address that its host has not allowed: a model
/// chooses the URL, and what it has read may have chosen it before. Dropping the future ends the request.
#[async_trait]
pub trait WebClient: fmt::Debug + Send + Sync {
    /// Gets a page as text.
    ///
    /// # Errors
    ///
    /// What the model should read. An answer with a status such as 404 is no error, but a page.
    async fn fetch(&self, request: FetchRequest) -> Result<WebPage, WebError>;
}

/// Searches the web for [`WebSearch`](super::WebSearch). Implemented by hosts over the engine that they have; the crate
/// `pintle-web` has one that asks the provider of a model.
///
/// Dropping the future ends the request.
#[async_trait]
pub trait WebSearchClient: fmt::Debug + Send + Sync {
    /// What was found, the best first; no hits if nothing was.
    ///
    /// # Errors
    ///
    /// What the model should read.
    async fn search(&self, query: SearchQuery) -> Result<SearchResults, WebError>;
}

const _: fn(&dyn WebClient, &dyn WebSearchClient) = |_, _| {};

/// A page to get.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FetchRequest {
    /// The address, as the model gave it.
    pub url: String,
}

/// A page, as text.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WebPage {
    /// Where it was found, after redirects.
    pub url: String,
    /// The status of the answer.
    pub status: u16,
    /// The media type of the answer, such as `text/html`; empty if it had none.
    pub media_type: String,
    /// Its text; HTML as Markdown.
    pub text: String,
    /// How many bytes were read, if the page is longer than that.
    pub cut_at: Option<u64>,
}

/// Why there is no page, or no hits.
#[derive(Debug)]
pub struct WebError {
    kind: WebErrorKind,
    message: String,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

/// What kind of failure the web tools met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WebErrorKind {
    /// The address is none, or not one of http or https.
    InvalidUrl,
    /// The address is one that may not be reached.
    Refused,
    /// There were more redirects than are followed.
    TooManyRedirects,
    /// The answer took too long.
    Timeout,
    /// The answer is no text.
    NotText,
    /// Anything else: no such host, a broken connection, an engine that fails.
    Failed,
}

impl FetchRequest {
    /// For this address.
    #[must_use]
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into() }
    }
}

impl WebPage {
    /// A page with its address, status, media type and text, whole.
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

    /// Says after how many bytes no more was read.
    #[must_use]
    pub fn with_cut_at(mut self, bytes: Option<u64>) -> Self {
        self.cut_at = bytes;
        self
    }
}

impl WebError {
    /// A failure with what the model should read.
    #[must_use]
    pub fn new(kind: WebErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    /// The kind of failure.
    #[must_use]
    pub fn kind(&self) -> WebErrorKind {
        self.kind
    }

    /// With the cause.
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
