//! Scripted sessions, with a server and without one.
#![expect(clippy::disallowed_methods, reason = "measures sessions without a host")]

use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use pintle_agent::{
    Clock as _, EventKind, Events, Principal, ProviderProfile, Session, SessionHandle, SessionId, SystemClock,
};
use pintle_llm::{
    Client, Error, EventStream, Finish, FinishReason, Message, ProviderAdapter, Request, Response,
    StreamEvent, Usage,
};
use pintle_server::{
    HostError, NewSession, OpenSession, Server, ServerLimits, SessionControls, SessionHost, SettingsChange,
};
use pintle_store::{FileStore, SessionStore, StoredJournal, Summary};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::control::answer_lines;
use super::latency::{Times, stamped};
use super::pace::Pace;
use crate::baseline::Connection;
use crate::sessions;

/// One of so many sessions is read in process as well.
const READ: usize = 50;

/// Time in which the work after the last event ends.
const SETTLE: Duration = Duration::from_millis(200);

/// Time until the streams of a round begin.
const LEAD: Duration = Duration::from_millis(50);

const FIRST_MESSAGE: &str = r#"{"message":{"text":"Say hello."}}"#;

/// Serves sessions of a store in a directory, as the lines of the input say.
pub(crate) fn serve(arguments: &[String]) -> io::Result<()> {
    let stage = Stage::new(arguments)?;
    let listener = stage.runtime.block_on(TcpListener::bind("127.0.0.1:0"))?;
    let address = listener.local_addr()?.to_string();
    let limits = ServerLimits::default()
        .with_sessions(2_000)
        .with_rate(1_000_000)
        .with_idle(Duration::from_secs(24 * 60 * 60));
    let store: Arc<dyn SessionStore> = Arc::new(stage.host.store.clone());
    let server = Server::new(Arc::new(stage.host.clone()), store, limits);
    let serving = stage.runtime.spawn(async move {
        server.serve_tcp(listener, std::future::pending()).await.expect("it is on the loopback interface");
    });
    let mut connection = stage.runtime.block_on(Connection::open(&address));
    let own_address = address.clone();
    stage.answer(&own_address, |runtime, number| {
        for _ in 0..number {
            let body = hyper::body::Bytes::from_static(FIRST_MESSAGE.as_bytes());
            runtime.block_on(connection.post("/v1/sessions", body, |_| ()));
        }
    })?;
    drop(serving);
    // Sessions that are dropped would wait for their tasks.
    std::process::exit(0)
}

/// Has the same sessions without a server.
pub(crate) fn bare(arguments: &[String]) -> io::Result<()> {
    let stage = Stage::new(arguments)?;
    let host = stage.host.clone();
    let mut held = Vec::new();
    stage.answer("", |runtime, number| {
        for _ in 0..number {
            let opened = runtime.block_on(async {
                let opened = host.create(SessionId::generate(), NewSession::default()).await;
                let opened = opened.expect("there is room for a session");
                opened.session.handle().say("Say hello.").await.expect("the session is open");
                opened
            });
            held.push(opened);
        }
    })?;
    std::process::exit(0)
}

/// Process with sessions.
struct Stage {
    runtime: Runtime,
    host: Host,
    handles: Vec<SessionHandle>,
    /// Times of the deltas in process.
    times: Arc<Mutex<Times>>,
    readers: JoinSet<()>,
}

impl Stage {
    #[expect(clippy::disallowed_methods, reason = "each process has a directory of its own")]
    fn new(arguments: &[String]) -> io::Result<Self> {
        let [directory] = arguments else { return Err(io::ErrorKind::InvalidInput.into()) };
        std::fs::create_dir_all(directory)?;
        let store = FileStore::open(Path::new(directory).join("store")).map_err(io::Error::other)?;
        let adapter = Arc::new(Scripted::default());
        let provider: Arc<dyn ProviderAdapter> = Arc::<Scripted>::clone(&adapter);
        let client = Client::builder().shared_provider(provider).build().map_err(io::Error::other)?;
        let host = Host {
            adapter,
            client,
            store,
            profile: sessions::profile(),
            directory: Path::new(directory).into(),
            created: Arc::default(),
        };
        let (runtime, handles) = (crate::runtime(), Vec::new());
        Ok(Self { runtime, host, handles, times: Arc::default(), readers: JoinSet::new() })
    }

    /// Answers the lines of the input. `create` creates sessions and sends each a message.
    fn answer(mut self, address: &str, mut create: impl FnMut(&Runtime, usize)) -> io::Result<()> {
        answer_lines(|verb, rest| {
            let number = || rest.parse::<usize>().expect("it is a number");
            let answer = match verb {
                "address" => address.to_owned(),
                "open" => {
                    create(&self.runtime, number());
                    self.opened()
                }
                "arm" => {
                    self.arm(number());
                    String::new()
                }
                "go" => {
                    let (at, all) = (Instant::now() + LEAD, *self.host.adapter.waiting.borrow());
                    self.host.adapter.begun.send_replace(Some(Begun { at, pace: Pace::parse(rest), all }));
                    String::new()
                }
                "wait" => {
                    let all = *self.host.adapter.waiting.borrow();
                    let mut finished = self.host.adapter.finished.subscribe();
                    self.runtime.block_on(async {
                        let waited = finished.wait_for(|finished| *finished == all).await;
                        waited.map(drop).expect("its sender is here");
                        tokio::time::sleep(SETTLE).await;
                    });
                    String::new()
                }
                "latencies" => self.times.lock().unwrap_or_else(PoisonError::into_inner).take().words(),
                _ => return None,
            };
            Some(answer)
        })
    }

    /// Waits until new sessions are idle, and returns the paths of their streams.
    fn opened(&mut self) -> String {
        let created = std::mem::take(&mut *self.host.created.lock().unwrap_or_else(PoisonError::into_inner));
        let mut paths = String::new();
        for Created { id, handle, mut events } in created {
            self.runtime.block_on(async {
                while let Some(event) = events.next().await {
                    if matches!(event.kind, EventKind::ProcessingEnd { .. }) {
                        return;
                    }
                }
            });
            if self.handles.len().is_multiple_of(READ) {
                let reading = read(events, Arc::clone(&self.times));
                self.readers.spawn_on(reading, self.runtime.handle());
            }
            self.handles.push(handle);
            paths.push_str(&format!("/v1/sessions/{id}/events "));
        }
        paths
    }

    /// Sends a message to the first sessions, whose responses wait for the start.
    fn arm(&self, number: usize) {
        let adapter = &self.host.adapter;
        adapter.is_armed.store(true, Ordering::Release);
        adapter.begun.send_replace(None);
        adapter.waiting.send_replace(0);
        adapter.finished.send_replace(0);
        self.runtime.block_on(async {
            for handle in self.handles.iter().take(number) {
                handle.say("Go on.").await.expect("the session is open");
            }
            let mut waiting = adapter.waiting.subscribe();
            waiting.wait_for(|waiting| *waiting == number).await.map(drop).expect("its sender is here");
            tokio::time::sleep(SETTLE).await;
        });
    }
}

/// Reads the events of a session as an application in the same process does.
async fn read(mut events: Events, times: Arc<Mutex<Times>>) {
    while let Some(event) = events.next().await {
        if let EventKind::AssistantTextDelta { delta } = &event.kind {
            times.lock().unwrap_or_else(PoisonError::into_inner).arrived(delta);
        }
    }
}

/// Opens sessions of one profile.
#[derive(Clone, Debug)]
struct Host {
    adapter: Arc<Scripted>,
    client: Client,
    profile: ProviderProfile,
    store: FileStore,
    directory: Arc<Path>,
    created: Arc<Mutex<Vec<Created>>>,
}

/// Session whose first response has not ended.
#[derive(Debug)]
struct Created {
    id: SessionId,
    handle: SessionHandle,
    events: Events,
}

#[derive(Debug)]
struct NoControls;

#[async_trait]
impl SessionControls for NoControls {
    async fn set(&self, _: &SettingsChange, _by: Option<&Principal>) -> Result<(), HostError> {
        Ok(())
    }
}

#[async_trait]
impl SessionHost for Host {
    async fn create(&self, id: SessionId, request: NewSession) -> Result<OpenSession, HostError> {
        let mut summary = Summary::new(id.clone(), SystemClock.now());
        summary.properties.extend(request.properties);
        let failed = |error| HostError::failed("the store failed", error);
        let writer = self.store.create(summary.clone()).await.map_err(failed)?;
        let journal = StoredJournal::new(writer, summary).with_subagents(Arc::new(self.store.clone()));
        let environment = sessions::environment(&self.directory);
        let builder = Session::builder(self.client.clone(), self.profile.clone(), environment);
        let session = builder.with_config(sessions::config()).with_id(id.clone()).journal(journal).build();
        let session = session.map_err(|error| HostError::failed("the session cannot be built", error))?;
        let created = Created { id, handle: session.handle(), events: session.events() };
        self.created.lock().unwrap_or_else(PoisonError::into_inner).push(created);
        Ok(OpenSession::new(session, Arc::new(NoControls)))
    }

    async fn open(&self, id: &SessionId) -> Result<OpenSession, HostError> {
        Err(HostError::NotFound(id.clone()))
    }

    async fn fork(&self, origin: &SessionId, _: usize, _: SessionId) -> Result<OpenSession, HostError> {
        Err(HostError::NotFound(origin.clone()))
    }

    async fn delete(&self, id: &SessionId) -> Result<(), HostError> {
        Err(HostError::NotFound(id.clone()))
    }
}

/// Model whose responses begin at the same time, once all sessions wait for one.
#[derive(Debug)]
struct Scripted {
    /// Responses wait for the start. Before, they are complete at once.
    is_armed: AtomicBool,
    waiting: watch::Sender<usize>,
    begun: watch::Sender<Option<Begun>>,
    finished: watch::Sender<usize>,
}

/// Start of the responses.
#[derive(Clone, Copy, Debug)]
struct Begun {
    at: Instant,
    pace: Pace,
    /// Number of responses.
    all: usize,
}

impl Default for Scripted {
    fn default() -> Self {
        Self {
            is_armed: AtomicBool::new(false),
            waiting: watch::Sender::new(0),
            begun: watch::Sender::new(None),
            finished: watch::Sender::new(0),
        }
    }
}

#[async_trait]
impl ProviderAdapter for Scripted {
    fn name(&self) -> &str {
        "openai"
    }

    async fn complete(&self, request: &Request) -> Result<Response, Error> {
        Ok(response(&request.model, "Hello."))
    }

    async fn stream(&self, request: &Request) -> Result<EventStream, Error> {
        let (model, finished) = (request.model.clone(), self.finished.clone());
        let mut streaming = Streaming {
            model,
            finished,
            begun: None,
            index: 0,
            next: 0,
            text: String::new(),
            ready: VecDeque::new(),
        };
        if self.is_armed.load(Ordering::Acquire) {
            self.waiting.send_modify(|waiting| {
                streaming.index = *waiting;
                *waiting += 1;
            });
            let mut begun = self.begun.subscribe();
            let waiting = async move {
                streaming.begun = begun.wait_for(Option::is_some).await.ok().and_then(|begun| *begun);
                streaming.start();
                streaming
            };
            let events = futures_util::stream::once(waiting).flat_map(Streaming::events);
            return Ok(Box::pin(events));
        }
        streaming.start();
        Ok(Box::pin(streaming.events()))
    }
}

/// Response that is being streamed.
struct Streaming {
    model: String,
    finished: watch::Sender<usize>,
    /// `None` for a response that is complete at once.
    begun: Option<Begun>,
    index: usize,
    /// Number of the next delta.
    next: u32,
    text: String,
    ready: VecDeque<StreamEvent>,
}

impl Streaming {
    fn start(&mut self) {
        let start =
            StreamEvent::StreamStart { id: None, model: Some(self.model.clone()), warnings: Vec::new() };
        self.ready.extend([start, StreamEvent::TextStart { text_id: "0".to_owned() }]);
    }

    fn events(self) -> impl futures_util::Stream<Item = Result<StreamEvent, Error>> + Send {
        futures_util::stream::unfold(Some(self), |streaming| async {
            let mut streaming = streaming?;
            let event = streaming.event().await;
            let is_last = matches!(event, StreamEvent::Finish { .. });
            Some((Ok(event), (!is_last).then_some(streaming)))
        })
    }

    async fn event(&mut self) -> StreamEvent {
        if let Some(event) = self.ready.pop_front() {
            return event;
        }
        let deltas = self.begun.map_or(1, |begun| begun.pace.deltas);
        if self.next == deltas {
            self.ready.push_back(finish(response(&self.model, &self.text)));
            if self.begun.is_some() {
                self.finished.send_modify(|finished| *finished += 1);
            }
            return StreamEvent::TextEnd { text_id: "0".to_owned(), signature: None };
        }
        if let Some(Begun { at, pace, all }) = self.begun {
            tokio::time::sleep_until(at + pace.due(self.next, self.index, all)).await;
        }
        self.next += 1;
        let delta = if self.begun.is_some() { stamped() } else { "Hello.".to_owned() };
        self.text.push_str(&delta);
        StreamEvent::TextDelta { text_id: "0".to_owned(), delta }
    }
}

fn response(model: &str, text: &str) -> Response {
    Response::new("openai", model, Message::assistant(text))
        .with_finish_reason(FinishReason::new(Finish::Stop))
        .with_usage(Usage::new(10, 5))
}

fn finish(response: Response) -> StreamEvent {
    let (finish_reason, usage) = (response.finish_reason.clone(), response.usage.clone());
    StreamEvent::Finish { finish_reason, usage, response: Box::new(response) }
}
