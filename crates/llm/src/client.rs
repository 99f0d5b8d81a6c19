//! The client: routing and middleware (client specification, sections 2.2 to 2.6, 4.1 and 4.2).

use std::sync::{Arc, PoisonError, RwLock};

use crate::adapter::ProviderAdapter;
use crate::error::{Error, ErrorKind};
use crate::middleware::{Middleware, Mode, Next, Reply};
use crate::request::Request;
use crate::response::Response;
use crate::stream::EventStream;

/// Routes requests to provider adapters through middleware. Cheap to clone; safe to share.
///
/// It never retries and never guesses a provider.
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
    /// Begins a client without providers.
    #[must_use]
    pub fn builder() -> ClientBuilder {
        ClientBuilder { providers: Vec::new(), default_provider: None, middleware: Vec::new() }
    }

    /// Sends the request and returns the whole answer. Dropping the future cancels the call.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Configuration`] if no provider can be resolved, else what the provider reports.
    pub async fn complete(&self, request: Request) -> Result<Response, Error> {
        match self.call(request, Mode::Complete).await? {
            Reply::Response(response) => Ok(*response),
            Reply::Stream(_) => Err(mismatch("a stream", "a whole answer")),
        }
    }

    /// Sends the request and returns the answer as it forms. Dropping the stream closes the connection.
    ///
    /// # Errors
    ///
    /// As for [`Client::complete`]; failures after the answer has begun come through the stream.
    pub async fn stream(&self, request: Request) -> Result<EventStream, Error> {
        match self.call(request, Mode::Stream).await? {
            Reply::Stream(stream) => Ok(stream),
            Reply::Response(_) => Err(mismatch("a whole answer", "a stream")),
        }
    }

    /// The same client with one more layer, inside those that it has. This one stays as it is.
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

    /// The names of the registered providers, in the order of their registration.
    pub fn providers(&self) -> impl Iterator<Item = &str> {
        self.inner.providers.iter().map(|(name, _)| name.as_str())
    }

    /// The provider of requests that name none.
    #[must_use]
    pub fn default_provider(&self) -> Option<&str> {
        self.inner.default_provider.as_deref()
    }

    /// The adapter that a request with this `provider` field goes to.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Configuration`] if it names an unknown provider, or none and there is no default.
    pub fn adapter(&self, provider: Option<&str>) -> Result<&Arc<dyn ProviderAdapter>, Error> {
        let name = provider.or(self.inner.default_provider.as_deref()).ok_or_else(|| {
            Error::new(
                ErrorKind::Configuration,
                "the request names no provider and the client has no default one",
            )
        })?;
        self.inner.providers.iter().find(|(known, _)| known == name).map(|(_, adapter)| adapter).ok_or_else(
            || {
                let known: Vec<&str> = self.providers().collect();
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                Error::new(
                    ErrorKind::Configuration,
                    format!("unknown provider `{name}`; registered: {known}"),
                )
            },
        )
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
                format!("{} has no tool choice mode `{}`", adapter.name(), choice.mode()),
            ));
        }
        let next = Next { layers: &self.inner.middleware, adapter: adapter.as_ref() };
        next.run(request, mode).await
    }
}

/// Collects what a [`Client`] is made of.
#[derive(Debug)]
pub struct ClientBuilder {
    providers: Vec<(String, Arc<dyn ProviderAdapter>)>,
    default_provider: Option<String>,
    middleware: Vec<Arc<dyn Middleware>>,
}

impl ClientBuilder {
    /// Registers an adapter under its own name; a later one of the same name takes its place.
    #[must_use]
    pub fn provider(self, adapter: impl ProviderAdapter + 'static) -> Self {
        self.shared_provider(Arc::new(adapter))
    }

    /// Registers an adapter that is shared with others.
    #[must_use]
    pub fn shared_provider(mut self, adapter: Arc<dyn ProviderAdapter>) -> Self {
        let name = adapter.name().to_owned();
        match self.providers.iter_mut().find(|(known, _)| *known == name) {
            Some((_, replaced)) => *replaced = adapter,
            None => self.providers.push((name, adapter)),
        }
        self
    }

    /// Names the provider of requests that name none. Without this, the first registered one is it.
    #[must_use]
    pub fn default_provider(mut self, name: impl Into<String>) -> Self {
        self.default_provider = Some(name.into());
        self
    }

    /// Adds a layer inside those added before.
    #[must_use]
    pub fn middleware(mut self, layer: impl Middleware + 'static) -> Self {
        self.middleware.push(Arc::new(layer));
        self
    }

    /// The client.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Configuration`] if the default names no registered provider, or what an adapter's
    /// [`initialize`](ProviderAdapter::initialize) reports.
    pub fn build(self) -> Result<Client, Error> {
        for (_, adapter) in &self.providers {
            adapter.initialize()?;
        }
        let first = self.providers.first().map(|(name, _)| name.clone());
        let default_provider = self.default_provider.or(first);
        let client = Client {
            inner: Arc::new(Inner {
                providers: self.providers,
                default_provider,
                middleware: self.middleware,
            }),
        };
        if client.inner.default_provider.is_some() {
            client.adapter(None)?;
        }
        Ok(client)
    }
}

static DEFAULT_CLIENT: RwLock<Option<Client>> = RwLock::new(None);

/// Sets the client that calls without one use, for the whole process (specification section 2.5).
pub fn set_default_client(client: Client) {
    *DEFAULT_CLIENT.write().unwrap_or_else(PoisonError::into_inner) = Some(client);
}

/// The client of [`set_default_client`] or [`default_client_or_init`]; `None` before the first of them. This crate reads
/// no environment: `pintle_providers::default_client` makes one from it.
#[must_use]
pub fn default_client() -> Option<Client> {
    DEFAULT_CLIENT.read().unwrap_or_else(PoisonError::into_inner).clone()
}

/// The default client, made on first use if none was set. Of several first uses at once only one makes it.
///
/// `make` must not use the default client itself.
///
/// # Errors
///
/// What `make` reports; the next use tries again.
pub fn default_client_or_init(make: impl FnOnce() -> Result<Client, Error>) -> Result<Client, Error> {
    if let Some(client) = default_client() {
        return Ok(client);
    }
    let mut slot = DEFAULT_CLIENT.write().unwrap_or_else(PoisonError::into_inner);
    // Somebody else may have been faster.
    if let Some(client) = &*slot {
        return Ok(client.clone());
    }
    let client = make()?;
    *slot = Some(client.clone());
    Ok(client)
}

fn mismatch(got: &str, wanted: &str) -> Error {
    Error::new(
        ErrorKind::Configuration,
        format!("a middleware answered with {got} where {wanted} was asked for"),
    )
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
            .provider(FakeAdapter::new("a").answer("from a"))
            .provider(FakeAdapter::new("b").answer("from b"))
            .build()
            .unwrap();
        assert_eq!(client.complete(request()).await.unwrap().text(), "from a");
        assert_eq!(client.complete(request().with_provider("b")).await.unwrap().text(), "from b");
        let error = client.complete(request().with_provider("c")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Configuration);
        assert_eq!(error.message(), "unknown provider `c`; registered: a, b");
    }

    #[tokio::test]
    async fn a_later_adapter_of_a_name_takes_the_place_of_the_earlier_one() {
        let client = Client::builder()
            .provider(FakeAdapter::new("a").answer("old"))
            .provider(FakeAdapter::new("b").answer("from b"))
            .provider(FakeAdapter::new("a").answer("new"))
            .build()
            .unwrap();
        assert_eq!(client.providers().collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(client.complete(request()).await.unwrap().text(), "new", "it is still the default");
    }

    #[tokio::test]
    async fn without_a_provider_it_is_a_configuration_error() {
        let client = Client::builder().build().unwrap();
        assert_eq!(client.complete(request()).await.unwrap_err().kind(), ErrorKind::Configuration);
        let unknown = Client::builder().provider(FakeAdapter::new("a")).default_provider("z").build();
        assert_eq!(unknown.unwrap_err().kind(), ErrorKind::Configuration);
    }

    #[tokio::test]
    async fn middleware_runs_in_order_and_back_for_both_modes() {
        let log = Arc::new(Mutex::new(Vec::new()));
        let adapter = Arc::new(FakeAdapter::new("a").answer("one").answer("two"));
        let client = Client::builder()
            .shared_provider(Arc::clone(&adapter) as Arc<dyn ProviderAdapter>)
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
    async fn a_layer_can_be_added_inside_without_touching_the_client() {
        let log = Arc::new(Mutex::new(Vec::new()));
        let layer = |name| Trace { name, log: Arc::clone(&log) };
        let adapter = FakeAdapter::new("a").answer("one").answer("two");
        let client = Client::builder().provider(adapter).middleware(layer("outer")).build().unwrap();
        let more = client.with_middleware(layer("inner"));
        assert_eq!(more.complete(request()).await.unwrap().text(), "one");
        assert_eq!(*log.lock().unwrap(), ["outer in", "inner in", "inner out", "outer out"]);
        client.complete(request()).await.unwrap();
        assert_eq!(log.lock().unwrap()[4..], ["outer in", "outer out"]);
    }

    #[tokio::test]
    async fn the_default_client_is_made_once_and_can_be_replaced() {
        let named = |name: &str| Client::builder().provider(FakeAdapter::new(name).answer(name)).build();
        let prompt = || crate::GenerateOptions::new("m").with_prompt("hello");
        let error = crate::generate(prompt()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Configuration);
        assert!(error.message().contains("set_default_client"), "{error}");
        let missing = || Err(Error::new(ErrorKind::Configuration, "no key"));
        assert_eq!(default_client_or_init(missing).unwrap_err().message(), "no key");
        assert!(default_client().is_none(), "a failure is not kept");
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
            .build()
            .unwrap();
        let error = client.complete(request().with_tool_choice(ToolChoice::Required)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UnsupportedToolChoice);
        assert!(adapter.requests().is_empty());
    }
}
