//! Answers that need no second call.

mod store;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use self::store::Store;
use crate::content::{ContentPart, MediaSource};
use crate::error::{Error, ErrorKind};
use crate::history::Fingerprint;
use crate::middleware::follow::{End, Follower, follow};
use crate::middleware::replay::replay;
use crate::middleware::{Middleware, Mode, Next, Reply};
use crate::request::Request;
use crate::response::{Finish, Response};

/// Answers a request that was answered before, without a call.
///
/// Two requests are the same if all that the provider would get is the same; time limits do not count. A whole answer
/// is replayed as a stream and the other way round: the events of a replayed stream are there at once, each segment in
/// one delta. A replayed answer is the one that came, with its id and its usage, but without the provider's limits
/// of then.
///
/// * Only complete answers are kept, those that ended by themselves, at the output limit or with tool calls. Errors,
///   streams that are cut or dropped, and answers that a filter stopped are not.
/// * A request for a whole answer waits for a same one that is on its way, and takes its answer; if that fails, is
///   dropped or takes longer than `max_wait`, it makes a call of its own. Streams do not wait, since their events are
///   wanted at once.
/// * Entries are bounded in number, in bytes and, if wanted, in age; the one not used for longest goes first.
/// * A request that names a local file is passed on: the file may have changed.
///
/// The key is a hash that tells requests apart, not a proof of identity: do not share one cache between users who must
/// not see each other's answers, nor between clients that mean different servers by one provider's name. Clones share
/// their entries. Dropping a waiting call only ends its wait.
///
/// ```
/// # use pintle_llm::{Client, Error, Message, Request};
#[doc = include_str!("echo.txt")]
/// use pintle_llm::ResponseCache;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Error> {
/// let cache = ResponseCache::builder().max_entries(100).build()?;
/// let client = Client::builder().provider(Echo).middleware(cache.clone()).build()?;
/// for _ in 0..3 {
///     client.complete(Request::new("any", [Message::user("hello")])).await?;
/// }
/// assert_eq!((cache.stats().misses, cache.stats().hits), (1, 2));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct ResponseCache {
    store: Arc<Mutex<Store>>,
    max_wait: Duration,
}

/// Collects the bounds of a [`ResponseCache`].
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct ResponseCacheBuilder {
    max_entries: usize,
    max_bytes: usize,
    max_age: Option<Duration>,
    max_wait: Duration,
}

/// What a [`ResponseCache`] holds and has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheStats {
    /// Requests that were answered without a call.
    pub hits: u64,
    /// Requests that were passed on although they could have been answered.
    pub misses: u64,
    /// Answers held.
    pub entries: usize,
    /// Their size as JSON, in bytes.
    pub bytes: usize,
}

impl ResponseCache {
    /// Begins a cache of 256 answers and 64 MiB, without a limit of age.
    pub fn builder() -> ResponseCacheBuilder {
        let max_wait = Duration::from_secs(60);
        ResponseCacheBuilder { max_entries: 256, max_bytes: 64 * 1024 * 1024, max_age: None, max_wait }
    }

    /// What it holds and has done.
    #[must_use]
    pub fn stats(&self) -> CacheStats {
        self.lock().stats()
    }

    /// Forgets all answers. The counts of hits and misses stay.
    pub fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks the answer up, and if it is not there, joins those that ask for it.
    fn enter(&self, key: Fingerprint, mode: Mode) -> Entered {
        let mut store = self.lock();
        if let Some(response) = store.get(key, Instant::now()) {
            return Entered::Hit(response);
        }
        match (mode, store.flights.get(&key)) {
            (Mode::Stream, _) => Entered::Alone,
            (Mode::Complete, Some(flight)) => Entered::Behind(flight.clone()),
            (Mode::Complete, None) => {
                let (landed, flight) = watch::channel(());
                store.flights.insert(key, flight);
                Entered::First(Flight { cache: self.clone(), key, _landed: landed })
            }
        }
    }

    /// The answer that another call may have brought meanwhile.
    fn look_again(&self, key: Fingerprint) -> Option<Arc<Response>> {
        self.lock().get(key, Instant::now())
    }
}

impl ResponseCacheBuilder {
    /// The most answers that are held; 1 at least. Default 256.
    pub fn max_entries(mut self, entries: usize) -> Self {
        self.max_entries = entries;
        self
    }

    /// The most bytes of JSON that are held; 1 at least. A larger answer is not kept. Default 64 MiB.
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// How long an answer is good for; more than zero. Default: as long as there is room for it.
    pub fn max_age(mut self, age: Duration) -> Self {
        self.max_age = Some(age);
        self
    }

    /// How long a request waits for a same one; zero never waits. Default 60 s.
    pub fn max_wait(mut self, wait: Duration) -> Self {
        self.max_wait = wait;
        self
    }

    /// The cache.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Configuration`] for a bound of zero.
    pub fn build(self) -> Result<ResponseCache, Error> {
        if self.max_entries == 0 || self.max_bytes == 0 || self.max_age.is_some_and(|age| age.is_zero()) {
            return Err(Error::new(
                ErrorKind::Configuration,
                format!(
                    "a response cache of {} entries, {} bytes and an age of {:?} holds nothing; expected bounds above 0",
                    self.max_entries, self.max_bytes, self.max_age
                ),
            ));
        }
        let store = Store::new(self.max_entries, self.max_bytes, self.max_age);
        Ok(ResponseCache { store: Arc::new(Mutex::new(store)), max_wait: self.max_wait })
    }
}

#[async_trait]
impl Middleware for ResponseCache {
    async fn handle(&self, request: Request, mode: Mode, next: Next<'_>) -> Result<Reply, Error> {
        let Some(key) = key(next.provider(), &request) else { return next.run(request, mode).await };
        let flight = match self.enter(key, mode) {
            Entered::Hit(response) => return Ok(answer(&response, mode)),
            Entered::Behind(mut landed) => {
                // The only news is that the other call is over, one way or the other. It may also be one that nobody
                // polls any more, which is why the wait has a limit.
                let _ = timeout(self.max_wait, landed.changed()).await;
                if let Some(response) = self.look_again(key) {
                    return Ok(answer(&response, mode));
                }
                None
            }
            Entered::First(flight) => Some(flight),
            Entered::Alone => None,
        };
        self.lock().misses += 1;
        let reply = follow(next.run(request, mode), Keep { cache: self.clone(), key }).await;
        drop(flight);
        reply
    }
}

enum Entered {
    /// Here is the answer.
    Hit(Arc<Response>),
    /// The first that asks; the others wait until this is dropped.
    First(Flight),
    /// Another call asks for the same.
    Behind(watch::Receiver<()>),
    /// Nobody is to wait for this call.
    Alone,
}

/// A call that others wait for. Dropping it wakes them.
struct Flight {
    cache: ResponseCache,
    key: Fingerprint,
    _landed: watch::Sender<()>,
}

impl Drop for Flight {
    fn drop(&mut self) {
        self.cache.lock().flights.remove(&self.key);
    }
}

/// Keeps the answer if it is worth keeping.
struct Keep {
    cache: ResponseCache,
    key: Fingerprint,
}

impl Follower for Keep {
    fn end(&mut self, end: End<'_>) {
        if let End::Answered(response) = end
            && matches!(response.finish_reason.reason, Finish::Stop | Finish::Length | Finish::ToolCalls)
        {
            let mut kept = response.clone();
            kept.rate_limit = None;
            self.cache.lock().put(self.key, kept, Instant::now());
        }
    }
}

fn answer(response: &Response, mode: Mode) -> Reply {
    tracing::debug!(model = response.model, "answered from the response cache");
    match mode {
        Mode::Complete => Reply::Response(Box::new(response.clone())),
        Mode::Stream => Reply::Stream(replay(response.clone())),
    }
}

/// The hash over all that the provider gets; `None` for a request that does not say all of it.
fn key(provider: &str, request: &Request) -> Option<Fingerprint> {
    if request.messages.iter().flat_map(|item| &item.content).any(names_a_file) {
        return None;
    }
    // The messages of a conversation remember their hashes, so that only the rest is hashed anew. The request's prefix
    // chain does not do, since it knows no place of a system or developer message: some dialects send it where it stands.
    let mut rest = request.clone();
    rest.messages.clear();
    rest.provider = Some(provider.to_owned());
    let rest = Fingerprint::of(&serde_json::to_vec(&rest).ok()?);
    Some(request.messages.iter().fold(rest, |key, item| key.chain(item.fingerprint())))
}

fn names_a_file(part: &ContentPart) -> bool {
    let local = |source: &MediaSource| match source {
        MediaSource::Url(url) => !url.contains("://") && !url.starts_with("data:"),
        MediaSource::Data(_) => false,
    };
    match part {
        ContentPart::Image(image) => local(&image.source),
        ContentPart::Audio(audio) => local(&audio.source),
        ContentPart::Document(document) => local(&document.source),
        ContentPart::ToolResult(result) => result.images.iter().any(|image| local(&image.source)),
        ContentPart::Text(_)
        | ContentPart::ToolCall(_)
        | ContentPart::Thinking(_)
        | ContentPart::Opaque(_) => false,
    }
}
