//! Cache of complete responses.

mod store;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use pintle_llm::{
    CallEnd, CallObserver, ContentPart, Error, ErrorKind, Fingerprint, Finish, MediaSource, Middleware, Mode,
    Next, Reply, Request, Response, observe,
};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use self::store::ResponseStore;

/// Middleware that responds to a repeated request from memory.
///
/// Two requests are equal if everything that the provider would receive is equal; time limits are ignored. Responses
/// are shared between both modes: a replayed stream has all its events at once, one delta per segment. A replayed
/// response keeps its id and usage, but not the provider's rate limits.
///
/// * Only complete responses are stored: those that finished by themselves, at the output limit or with tool calls.
///   Errors, truncated or dropped streams and filtered responses are not stored.
/// * A complete request waits for an equal one in flight and takes its response. If that call fails, is dropped or
///   takes longer than `max_wait`, it makes its own call. Streams do not wait, since their events are wanted at once.
/// * The number of entries, their bytes and optionally their age are limited; the least recently used entry goes first.
/// * A request with a local file is passed on, since the file may change.
///
/// The key is a hash without a secret: do not share a cache between users who must not see each other's responses, nor
/// between clients that use the same provider name for different servers. Clones share their entries. Dropping a
/// waiting call only ends its wait.
///
/// ```
/// # use pintle_llm::{Client, Error, Message, Request};
#[doc = include_str!("example_adapter.txt")]
/// use pintle_middleware::ResponseCache;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Error> {
/// let cache = ResponseCache::builder().with_max_entries(100).build()?;
/// let client = Client::builder().provider(Echo).default_provider("openai").middleware(cache.clone()).build()?;
/// for _ in 0..3 {
///     client.complete(Request::new("any", [Message::user("hello")])).await?;
/// }
/// assert_eq!((cache.stats().misses, cache.stats().hits), (1, 2));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct ResponseCache {
    store: Arc<Mutex<ResponseStore>>,
    max_wait: Duration,
}

/// Builder for a [`ResponseCache`].
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct ResponseCacheBuilder {
    max_entries: usize,
    max_bytes: usize,
    max_age: Option<Duration>,
    max_wait: Duration,
}

/// Statistics of a [`ResponseCache`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheStats {
    /// Requests served from the cache.
    pub hits: u64,
    /// Cacheable requests that were passed on.
    pub misses: u64,
    /// Responses stored.
    pub entries: usize,
    /// Size of the stored responses as JSON, in bytes.
    pub bytes: usize,
}

impl ResponseCache {
    /// Starts a cache of 256 responses and 64 MiB, without an age limit.
    pub fn builder() -> ResponseCacheBuilder {
        let max_wait = Duration::from_secs(60);
        ResponseCacheBuilder { max_entries: 256, max_bytes: 64 * 1024 * 1024, max_age: None, max_wait }
    }

    /// Returns the statistics.
    #[must_use]
    pub fn stats(&self) -> CacheStats {
        self.lock().stats()
    }

    /// Removes all responses. The counts of hits and misses stay.
    pub fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, ResponseStore> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks up the response. After a miss in [`Mode::Complete`], joins or starts a call that others can wait for.
    fn lookup(&self, key: Fingerprint, mode: Mode) -> CacheLookup {
        let mut store = self.lock();
        if let Some(response) = store.get(key, Instant::now()) {
            return CacheLookup::Hit(response);
        }
        match (mode, store.in_flight.get(&key)) {
            (Mode::Stream, _) => CacheLookup::Miss,
            (Mode::Complete, Some(leader)) => CacheLookup::Follower(leader.clone()),
            (Mode::Complete, None) => {
                let (done, leader) = watch::channel(());
                store.in_flight.insert(key, leader);
                CacheLookup::Leader(LeaderGuard { cache: self.clone(), key, _done: done })
            }
        }
    }

    fn get(&self, key: Fingerprint) -> Option<Arc<Response>> {
        self.lock().get(key, Instant::now())
    }
}

impl ResponseCacheBuilder {
    /// Limits the number of responses; at least 1. Default 256.
    pub fn with_max_entries(mut self, entries: usize) -> Self {
        self.max_entries = entries;
        self
    }

    /// Limits the total size of responses in bytes of JSON; at least 1. Larger responses are not stored. Default 64 MiB.
    pub fn with_max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Limits the age of responses; above zero. Default: no limit.
    pub fn with_max_age(mut self, age: Duration) -> Self {
        self.max_age = Some(age);
        self
    }

    /// Maximum wait for an equal request in flight; zero never waits. Default 60 s.
    pub fn with_max_wait(mut self, wait: Duration) -> Self {
        self.max_wait = wait;
        self
    }

    /// Builds the cache.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Configuration`] for a limit of zero.
    pub fn build(self) -> Result<ResponseCache, Error> {
        if self.max_entries == 0 || self.max_bytes == 0 || self.max_age.is_some_and(|age| age.is_zero()) {
            return Err(Error::new(
                ErrorKind::Configuration,
                format!(
                    "invalid response cache: {} entries, {} bytes, age {:?}; expected limits above 0",
                    self.max_entries, self.max_bytes, self.max_age
                ),
            ));
        }
        let store = ResponseStore::new(self.max_entries, self.max_bytes, self.max_age);
        Ok(ResponseCache { store: Arc::new(Mutex::new(store)), max_wait: self.max_wait })
    }
}

#[async_trait]
impl Middleware for ResponseCache {
    async fn handle(&self, request: Request, mode: Mode, next: Next<'_>) -> Result<Reply, Error> {
        let Some(key) = key(next.provider(), &request) else { return next.run(request, mode).await };
        let guard = match self.lookup(key, mode) {
            CacheLookup::Hit(response) => return Ok(reply(&response, mode)),
            CacheLookup::Follower(mut leader) => {
                // Woken when the leader is dropped. A leader that no task polls never ends, so the wait has a limit.
                let _ = timeout(self.max_wait, leader.changed()).await;
                if let Some(response) = self.get(key) {
                    return Ok(reply(&response, mode));
                }
                None
            }
            CacheLookup::Leader(guard) => Some(guard),
            CacheLookup::Miss => None,
        };
        self.lock().misses += 1;
        let reply = observe(next.run(request, mode), ResponseRecorder { cache: self.clone(), key }).await;
        drop(guard);
        reply
    }
}

enum CacheLookup {
    Hit(Arc<Response>),
    /// First of several equal requests; the others wait until the guard is dropped.
    Leader(LeaderGuard),
    /// An equal request is in flight.
    Follower(watch::Receiver<()>),
    /// No request waits for this one.
    Miss,
}

/// Entry of a call that others wait for. Dropping it wakes them.
struct LeaderGuard {
    cache: ResponseCache,
    key: Fingerprint,
    _done: watch::Sender<()>,
}

impl Drop for LeaderGuard {
    fn drop(&mut self) {
        self.cache.lock().in_flight.remove(&self.key);
    }
}

/// Stores the response of a call if it is cacheable.
struct ResponseRecorder {
    cache: ResponseCache,
    key: Fingerprint,
}

impl CallObserver for ResponseRecorder {
    fn on_end(&mut self, end: CallEnd<'_>) {
        if let CallEnd::Completed(response) = end
            && matches!(response.finish_reason.reason, Finish::Stop | Finish::Length | Finish::ToolCalls)
        {
            let mut stored = response.clone();
            stored.rate_limit = None;
            self.cache.lock().put(self.key, stored, Instant::now());
        }
    }
}

fn reply(response: &Response, mode: Mode) -> Reply {
    tracing::debug!(model = response.model, "served from the response cache");
    match mode {
        Mode::Complete => Reply::Response(Box::new(response.clone())),
        Mode::Stream => Reply::Stream(response.clone().into_stream()),
    }
}

/// Hash of everything that the provider receives; `None` for a request with a local file.
fn key(provider: &str, request: &Request) -> Option<Fingerprint> {
    if request.messages.iter().flat_map(|item| &item.content).any(has_local_file) {
        return None;
    }
    // History items cache their hashes, so only the rest is hashed here. The request's prefix chain is no substitute:
    // it ignores the position of system and developer messages, which some dialects send in place.
    let mut rest = request.clone();
    rest.messages.clear();
    rest.provider = Some(provider.to_owned());
    let rest = Fingerprint::from_bytes(&serde_json::to_vec(&rest).ok()?);
    Some(request.messages.iter().fold(rest, |key, item| key.chain(item.fingerprint())))
}

fn has_local_file(part: &ContentPart) -> bool {
    part.media().any(|source| matches!(source, MediaSource::Path(_)))
}
