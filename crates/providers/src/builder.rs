//! The builder of all adapters.

use pintle_llm::{AdapterTimeout, Error};

use crate::secret::Secret;
use crate::transport::HttpOptions;

/// Builder of an adapter, created by the adapter's `builder` function.
#[derive(Debug)]
#[must_use]
pub struct AdapterBuilder<A> {
    pub(crate) parts: Parts,
    assemble: fn(Parts) -> Result<A, Error>,
}

/// Settings that all four adapters share.
#[derive(Debug)]
pub(crate) struct Parts {
    /// The provider's name.
    pub(crate) name: String,
    /// Not yet validated; see [`Secret::validate`].
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

    /// Sets the base URL, in the form of the provider's official SDK. A trailing slash makes no difference.
    pub fn with_base_url(mut self, url: impl Into<String>) -> Self {
        self.parts.http.base_url = url.into();
        self
    }

    /// Adds a header to every request. It replaces a header of the same name, including the adapter's own.
    pub fn with_default_header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.parts.http.headers.push((name.into(), value.into()));
        self
    }

    /// Sets the timeouts; the default is [`AdapterTimeout::default`]. A request's own timeouts take precedence, except
    /// for `connect`, which is fixed here.
    pub fn with_timeout(mut self, timeout: AdapterTimeout) -> Self {
        self.parts.http.timeout = timeout;
        self
    }

    /// Builds the adapter. No connection is opened before the first request.
    ///
    /// # Errors
    ///
    /// [`pintle_llm::ErrorKind::Configuration`] for a key that is empty or not a legal header value, a base URL that is
    /// not an absolute `http` or `https` URL, or an invalid header.
    pub fn build(self) -> Result<A, Error> {
        (self.assemble)(self.parts)
    }
}
