//! How every adapter is built.

use pintle_llm::{AdapterTimeout, Error};

use crate::secret::Secret;
use crate::transport::HttpOptions;

/// Collects what an adapter needs; made by its `builder` function.
#[derive(Debug)]
#[must_use]
pub struct AdapterBuilder<A> {
    pub(crate) parts: Parts,
    assemble: fn(Parts) -> Result<A, Error>,
}

/// What the four builders have in common.
#[derive(Debug)]
pub(crate) struct Parts {
    /// The provider's name.
    pub(crate) name: String,
    /// Not yet checked; see [`Secret::checked`].
    pub(crate) api_key: Secret,
    pub(crate) http: HttpOptions,
}

impl<A> AdapterBuilder<A> {
    pub(crate) fn new(
        name: &str,
        base_url: impl Into<String>,
        api_key: Secret,
        assemble: fn(Parts) -> Result<A, Error>,
    ) -> Self {
        let http = HttpOptions::new(base_url);
        Self { parts: Parts { name: name.to_owned(), api_key, http }, assemble }
    }

    /// Another base URL, as the provider's official SDK takes it. A slash at its end makes no difference.
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.parts.http.base_url = url.into();
        self
    }

    /// A header for every request; replaces a header of the same name, the adapter's own included.
    pub fn default_header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.parts.http.headers.push((name.into(), value.into()));
        self
    }

    /// Other time limits than [`AdapterTimeout::default`]. A request's own limits win, except for `connect`,
    /// which is fixed here.
    pub fn timeout(mut self, timeout: AdapterTimeout) -> Self {
        self.parts.http.timeout = timeout;
        self
    }

    /// The adapter. No connection is made before the first request.
    ///
    /// # Errors
    ///
    /// [`pintle_llm::ErrorKind::Configuration`] for a key that is empty or no header value, a base URL that is
    /// not an absolute `http` or `https` URL, or a header that is none.
    pub fn build(self) -> Result<A, Error> {
        (self.assemble)(self.parts)
    }
}
