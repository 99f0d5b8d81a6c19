//! Client: routing and middleware (client specification, sections 2.2 to 2.6, 4.1 and 4.2).

use std::sync::{Arc, PoisonError, RwLock};

use crate::adapter::ProviderAdapter;
use crate::error::{Error, ErrorKind};
use crate::middleware::{Middleware, Mode, Next, Reply};
use crate::request::Request;
use crate::response::Response;
use crate::stream::EventStream;

/// Routes requests to provider adapters through middleware. Cheap to clone and safe to share.
///
/// A client never retries and never guesses a provider.
#[derive(Clone, Debug)]
pub struct Client {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    providers: Vec<(String, Arc<dyn ProviderAdapter>)>,
    default_provider: Option<String>,
    middleware: Vec<Arc<dyn Middleware>>,
}

impl Client {
    /// Starts a client without providers.
    #[must_use]
    pub fn builder() -> ClientBuilder {
        ClientBuilder { providers: Vec::new(), default_provider: None, middleware: Vec::new() }
    }

    /// Sends the request and returns the complete response. Dropping the future cancels the call.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Configuration`] if no provider can be resolved, else the error of the provider.
    pub async fn complete(&self, request: Request) -> Result<Response, Error> {
        match self.call(request, Mode::Complete).await? {
            Reply::Response(response) => Ok(*response),
            Reply::Stream(_) => Err(mode_mismatch("a stream", "a complete response")),
        }
    }

    /// Sends the request and returns the response as a stream of events. Dropping the stream closes the connection.
    ///
    /// # Errors
    ///
    /// As for [`Client::complete`]; failures after the response has started are items of the stream.
    pub async fn stream(&self, request: Request) -> Result<EventStream, Error> {
        match self.call(request, Mode::Stream).await? {
            Reply::Stream(stream) => Ok(stream),
            Reply::Response(_) => Err(mode_mismatch("a complete response", "a stream")),
        }
    }

    /// Returns a client with an additional innermost layer. `self` is unchanged.
    #[must_use]
    pub fn with_middleware(&self, layer: impl Middleware + 'static) -> Self {
        let mut middleware = self.inner.middleware.clone();
        middleware.push(Arc::new(layer));
        let inner = Inner {
            providers: self.inner.providers.clone(),
            default_provider: self.inner.default_provider.clone(),
            middleware,
        };
        Self { inner: Arc::new(inner) }
    }

    /// Names of the registered providers, in registration order.
    pub fn providers(&self) -> impl Iterator<Item = &str> {
        self.inner.providers.iter().map(|(name, _)| name.as_str())
    }

    /// Provider of requests that name none.
    #[must_use]
    pub fn default_provider(&self) -> Option<&str> {
        self.inner.default_provider.as_deref()
    }

    /// Returns the adapter for requests with this `provider` field.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Configuration`] if the provider is unknown, or if none is named and no default is set.
    pub fn adapter(&self, provider: Option<&str>) -> Result<&Arc<dyn ProviderAdapter>, Error> {
        let Some(name) = provider.or(self.inner.default_provider.as_deref()) else {
            let message = format!(
                "the request names no provider and the client has no default; registered: {}; set the request's \
                 `provider` or the client's `default_provider`",
                self.registered()
            );
            return Err(Error::new(ErrorKind::Configuration, message));
        };
        let found = self.inner.providers.iter().find(|(known, _)| known == name);
        found.map(|(_, adapter)| adapter).ok_or_else(|| {
            let message = format!("unknown provider `{name}`; registered: {}", self.registered());
            Error::new(ErrorKind::Configuration, message)
        })
    }

    /// Registered providers for messages.
    fn registered(&self) -> String {
        let names: Vec<&str> = self.providers().collect();
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    }

    /// Closes every adapter.
    pub async fn close(&self) {
        for (_, adapter) in &self.inner.providers {
            adapter.close().await;
        }
    }

    async fn call(&self, request: Request, mode: Mode) -> Result<Reply, Error> {
        let adapter = self.adapter(request.provider.as_deref())?;
        if let Some(choice) = &request.tool_choice
            && !adapter.supports_tool_choice(choice)
        {
            return Err(Error::new(
                ErrorKind::UnsupportedToolChoice,
                format!("{} does not support the tool choice mode `{}`", adapter.name(), choice.mode()),
            ));
        }
        let next = Next { layers: &self.inner.middleware, adapter: adapter.as_ref() };
        next.run(request, mode).await
    }
}

/// Builder for a [`Client`].
#[derive(Debug)]
pub struct ClientBuilder {
    providers: Vec<(String, Arc<dyn ProviderAdapter>)>,
    default_provider: Option<String>,
    middleware: Vec<Arc<dyn Middleware>>,
}

impl ClientBuilder {
    /// Registers an adapter under its name, replacing an earlier one of the same name.
    #[must_use]
    pub fn provider(self, adapter: impl ProviderAdapter + 'static) -> Self {
        self.shared_provider(Arc::new(adapter))
    }

    /// Registers a shared adapter.
    #[must_use]
    pub fn shared_provider(mut self, adapter: Arc<dyn ProviderAdapter>) -> Self {
        let name = adapter.name().to_owned();
        match self.providers.iter_mut().find(|(known, _)| *known == name) {
            Some((_, replaced)) => *replaced = adapter,
            None => self.providers.push((name, adapter)),
        }
        self
    }

    /// Sets the provider of requests that name none. Without a default such requests fail, even if only one provider is
    /// registered.
    #[must_use]
    pub fn default_provider(mut self, name: impl Into<String>) -> Self {
        self.default_provider = Some(name.into());
        self
    }

    /// Names of the adapters registered so far, in registration order.
    pub fn providers(&self) -> impl Iterator<Item = &str> {
        self.providers.iter().map(|(name, _)| name.as_str())
    }

    /// Adds a layer inside those added before.
    #[must_use]
    pub fn middleware(mut self, layer: impl Middleware + 'static) -> Self {
        self.middleware.push(Arc::new(layer));
        self
    }

    /// Builds the client.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Configuration`] if the default provider is not registered, or the error of an adapter's
    /// [`initialize`](ProviderAdapter::initialize).
    pub fn build(self) -> Result<Client, Error> {
        for (_, adapter) in &self.providers {
            adapter.initialize()?;
        }
        let Self { providers, default_provider, middleware } = self;
        let client = Client { inner: Arc::new(Inner { providers, default_provider, middleware }) };
        if client.inner.default_provider.is_some() {
            client.adapter(None)?;
        }
        Ok(client)
    }
}

static DEFAULT_CLIENT: RwLock<Option<Client>> = RwLock::new(None);

/// Sets the process-wide client for calls that do not name one (specification section 2.5).
pub fn set_default_client(client: Client) {
    *DEFAULT_CLIENT.write().unwrap_or_else(PoisonError::into_inner) = Some(client);
}

/// Returns the client of [`set_default_client`] or [`default_client_or_init`]; `None` before the first call of either.
/// This crate reads no environment variables: `pintle_providers::default_client` creates a client from them.
#[must_use]
pub fn default_client() -> Option<Client> {
    DEFAULT_CLIENT.read().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Returns the default client, creating it on first use. Concurrent first uses create it once.
///
/// `init` must not use the default client itself.
///
/// # Errors
///
/// The error of `init`; the next use tries again.
pub fn default_client_or_init(init: impl FnOnce() -> Result<Client, Error>) -> Result<Client, Error> {
    if let Some(client) = default_client() {
        return Ok(client);
    }
    let mut slot = DEFAULT_CLIENT.write().unwrap_or_else(PoisonError::into_inner);
    // Another thread may have set it in the meantime.
    if let Some(client) = &*slot {
        return Ok(client.clone());
    }
    let client = init()?;
    *slot = Some(client.clone());
    Ok(client)
}

fn mode_mismatch(got: &str, expected: &str) -> Error {
    Error::new(ErrorKind::Configuration, format!("a middleware returned {got}, expected {expected}"))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use async_trait::async_trait;

    use super::*;
    use crate::message::Message;
    use crate::testing::FakeAdapter;
    use crate::tool::ToolChoice;

    fn request() -> Request {
        Request::new("m", [Message::user("hello")])
    }

    #[derive(Debug)]
    struct Trace {
        name: &'static str,
        log: Arc<Mutex<Vec<String>>>,
    }

    #[async_trait]
    impl Middleware for Trace {
        async fn handle(&self, mut request: Request, mode: Mode, next: Next<'_>) -> Result<Reply, Error> {
            self.log.lock().unwrap().push(format!("{} in", self.name));
            request.metadata.insert(self.name.to_owned(), String::new());
            let reply = next.run(request, mode).await;
            self.log.lock().unwrap().push(format!("{} out", self.name));
            reply
        }
    }

    #[tokio::test]
    async fn routes_by_the_provider_field_and_falls_back_to_the_default() {
        let client = Client::builder()
            .provider(FakeAdapter::new("b").answer("from b"))
            .provider(FakeAdapter::new("a").answer("from a"))
            .default_provider("a")
            .build()
            .unwrap();
        assert_eq!(client.complete(request()).await.unwrap().text(), "from a");
        assert_eq!(client.complete(request().with_provider("b")).await.unwrap().text(), "from b");
        let error = client.complete(request().with_provider("c")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Configuration);
        assert_eq!(error.message(), "unknown provider `c`; registered: b, a");
    }

    #[tokio::test]
    async fn a_later_adapter_replaces_one_of_the_same_name() {
        let builder = Client::builder()
            .provider(FakeAdapter::new("a").answer("old"))
            .provider(FakeAdapter::new("b").answer("from b"))
            .provider(FakeAdapter::new("a").answer("new"));
        assert_eq!(builder.providers().collect::<Vec<_>>(), ["a", "b"]);
        let client = builder.default_provider("a").build().unwrap();
        assert_eq!(client.providers().collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(client.complete(request()).await.unwrap().text(), "new");
    }

    #[tokio::test]
    async fn no_provider_and_no_default_is_a_configuration_error() {
        let one = Arc::new(FakeAdapter::new("a").answer("never"));
        let two = Arc::new(FakeAdapter::new("b").answer("never"));
        let adapters = [&one, &two].map(|adapter| Arc::clone(adapter) as Arc<dyn ProviderAdapter>);
        for (count, registered) in [(0, "none"), (1, "a"), (2, "a, b")] {
            let builder =
                adapters[..count].iter().cloned().fold(Client::builder(), ClientBuilder::shared_provider);
            let client = builder.build().unwrap();
            assert_eq!(client.default_provider(), None);
            let streamed = client.stream(request()).await.map(drop).unwrap_err();
            for error in [client.complete(request()).await.unwrap_err(), streamed] {
                assert_eq!(error.kind(), ErrorKind::Configuration);
                assert!(error.message().contains(&format!("registered: {registered};")), "{error}");
                assert!(error.message().contains("`default_provider`"), "{error}");
            }
        }
        assert!(one.requests().is_empty() && two.requests().is_empty(), "nothing is sent");
    }

    #[test]
    fn an_unregistered_default_is_refused_at_build() {
        let unknown = Client::builder().provider(FakeAdapter::new("a")).default_provider("z").build();
        assert_eq!(unknown.unwrap_err().message(), "unknown provider `z`; registered: a");
    }

    #[tokio::test]
    async fn middleware_runs_in_order_and_back_for_both_modes() {
        let log = Arc::new(Mutex::new(Vec::new()));
        let adapter = Arc::new(FakeAdapter::new("a").answer("one").answer("two"));
        let client = Client::builder()
            .shared_provider(Arc::clone(&adapter) as Arc<dyn ProviderAdapter>)
            .default_provider("a")
            .middleware(Trace { name: "first", log: Arc::clone(&log) })
            .middleware(Trace { name: "second", log: Arc::clone(&log) })
            .build()
            .unwrap();
        client.complete(request()).await.unwrap();
        drop(client.stream(request()).await.unwrap());
        let once = ["first in", "second in", "second out", "first out"];
        assert_eq!(*log.lock().unwrap(), [once, once].concat());
        assert!(adapter.requests().iter().all(|request| request.metadata.len() == 2));
    }

    #[tokio::test]
    async fn an_inner_layer_can_be_added_to_a_built_client() {
        let log = Arc::new(Mutex::new(Vec::new()));
        let layer = |name| Trace { name, log: Arc::clone(&log) };
        let adapter = FakeAdapter::new("a").answer("one").answer("two");
        let builder = Client::builder().provider(adapter).default_provider("a");
        let client = builder.middleware(layer("outer")).build().unwrap();
        let extended = client.with_middleware(layer("inner"));
        assert_eq!(extended.complete(request()).await.unwrap().text(), "one");
        assert_eq!(*log.lock().unwrap(), ["outer in", "inner in", "inner out", "outer out"]);
        client.complete(request()).await.unwrap();
        assert_eq!(log.lock().unwrap()[4..], ["outer in", "outer out"]);
    }

    #[tokio::test]
    async fn the_default_client_is_created_once_and_can_be_replaced() {
        let named = |name: &str| {
            Client::builder().provider(FakeAdapter::new(name).answer(name)).default_provider(name).build()
        };
        let prompt = || crate::GenerateOptions::new("m").with_prompt("hello");
        let error = crate::generate(prompt()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Configuration);
        assert!(error.message().contains("set_default_client"), "{error}");
        let missing = || Err(Error::new(ErrorKind::Configuration, "no key"));
        assert_eq!(default_client_or_init(missing).unwrap_err().message(), "no key");
        assert!(default_client().is_none(), "a failure is not cached");
        default_client_or_init(|| named("first")).unwrap();
        let again = default_client_or_init(|| panic!("there is one")).unwrap();
        assert_eq!(again.default_provider(), Some("first"));
        assert_eq!(crate::generate(prompt()).await.unwrap().text(), "first");
        set_default_client(named("second").unwrap());
        assert_eq!(crate::generate(prompt()).await.unwrap().text(), "second");
        let own = prompt().with_client(named("own").unwrap());
        assert_eq!(crate::generate(own).await.unwrap().text(), "own");
    }

    #[tokio::test]
    async fn an_unsupported_tool_choice_is_refused_before_sending() {
        let adapter = Arc::new(FakeAdapter::new("a").without_tool_choice());
        let client = Client::builder()
            .shared_provider(Arc::clone(&adapter) as Arc<dyn ProviderAdapter>)
            .default_provider("a")
            .build()
            .unwrap();
        let error = client.complete(request().with_tool_choice(ToolChoice::Required)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UnsupportedToolChoice);
        assert!(adapter.requests().is_empty());
    }
}
