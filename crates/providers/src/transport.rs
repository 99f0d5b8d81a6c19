//! The one driver of all dialects: connects, sends, limits, frames and decodes.

use pintle_llm::{AdapterTimeout, Error, EventStream, Request, Response};

use crate::dialect::Dialect;

/// What an adapter's connections are like.
#[derive(Debug)]
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

/// A dialect with a connection.
#[derive(Debug)]
pub(crate) struct HttpAdapter<D> {
    dialect: D,
}

impl<D: Dialect> HttpAdapter<D> {
    pub(crate) fn new(dialect: D, options: HttpOptions) -> Result<Self, Error> {
        todo!()
    }

    pub(crate) fn dialect(&self) -> &D {
        &self.dialect
    }

    pub(crate) async fn complete(&self, request: &Request) -> Result<Response, Error> {
        todo!()
    }

    pub(crate) async fn stream(&self, request: &Request) -> Result<EventStream, Error> {
        todo!()
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
