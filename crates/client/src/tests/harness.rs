//! A host of scripted sessions, its server, and a proxy that fails.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use pintle_agent::{
    EventKind, ProviderProfile, Session, SessionBuilder, SessionEvent, SessionId, SystemClock,
};
use pintle_env::{CommandScript, MemoryEnvironment, Program};
use pintle_llm::testing::FakeAdapter;
use pintle_llm::{Client as Models, ProviderAdapter};
use pintle_server::{
    AccessTokens, DocumentKind, HostError, ModelSummary, OpenSession, Server, ServerLimits, SessionControls,
    SessionHost, SessionSettings,
};
use pintle_store::{
    FileStore, SessionStore, StoreError, StoredFork, StoredJournal, Summary, fork, read_record,
};
use pintle_tools::pipeline::{Gate, PreparedCall, Verdict};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::{Backoff, Client, ClientError, ClientOptions, SessionEvents, SessionItem};

/// Time limit of each wait in a test.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// Returns options with short delays.
pub(super) fn quick() -> ClientOptions {
    let backoff = Backoff { first: Duration::from_millis(5), longest: Duration::from_millis(50) };
    ClientOptions::default().with_backoff(backoff)
}

#[derive(Clone, Debug)]
struct TestHost {
    adapter: Arc<FakeAdapter>,
    store: FileStore,
}

#[derive(Debug)]
struct TestControls(Mutex<SessionSettings>);

#[derive(Debug)]
struct AskingGate;

#[async_trait]
impl Gate for AskingGate {
    async fn check(&self, call: &PreparedCall) -> Verdict {
        if call.effect() == pintle_tools::Effect::Read {
            Verdict::ALLOW
        } else {
            Verdict::ask("it changes something")
        }
    }
}

#[async_trait]
impl SessionControls for TestControls {
    fn settings(&self) -> SessionSettings {
        self.0.lock().unwrap().clone()
    }

    async fn set(
        &self,
        change: &pintle_server::SettingsChange,
        _by: Option<&pintle_agent::Principal>,
    ) -> Result<(), HostError> {
        self.0.lock().unwrap().mode.clone_from(&change.mode);
        Ok(())
    }
}

impl TestHost {
    fn builder(&self) -> SessionBuilder {
        let adapter = Arc::clone(&self.adapter) as Arc<dyn ProviderAdapter>;
        let models = Models::builder().shared_provider(adapter).build().unwrap();
        let environment =
            MemoryEnvironment::new("/project").with_commands(|command| match &command.program {
                Program::Shell(line) => CommandScript::exit(0).stdout(format!("ran {line}\n")),
                Program::Argv { .. } => CommandScript::exit(0),
            });
        let profile = ProviderProfile::anthropic("claude-opus-4-6");
        Session::builder(models, profile, Arc::new(environment)).gate(AskingGate)
    }

    fn opened(builder: SessionBuilder) -> Result<OpenSession, HostError> {
        let session = builder.build().map_err(|error| HostError::failed("cannot build", error))?;
        let mut settings = SessionSettings::default();
        settings.mode = Some("ask".to_owned());
        Ok(OpenSession::new(session, Arc::new(TestControls(Mutex::new(settings)))))
    }
}

fn host_error(error: StoreError) -> HostError {
    #[expect(clippy::wildcard_enum_match_arm, reason = "the others are failures")]
    match error {
        StoreError::NotFound(id) => HostError::NotFound(id),
        StoreError::Exists(id) => HostError::Exists(id),
        // The detail reaches the test.
        error => HostError::Invalid(error.to_string()),
    }
}

#[async_trait]
impl SessionHost for TestHost {
    async fn create(
        &self,
        id: SessionId,
        request: pintle_server::NewSession,
    ) -> Result<OpenSession, HostError> {
        if request.directory.as_deref() == Some("/nowhere") {
            return Err(HostError::Invalid("there is no directory `/nowhere`".to_owned()));
        }
        let mut summary = Summary::new(id.clone(), pintle_agent::Clock::now(&SystemClock));
        summary.properties.extend(request.properties);
        let writer = self.store.create(summary.clone()).await.map_err(host_error)?;
        Self::opened(self.builder().with_id(id).journal(StoredJournal::new(writer, summary)))
    }

    async fn open(&self, id: &SessionId) -> Result<OpenSession, HostError> {
        let opened = self.store.open(id).await.map_err(host_error)?;
        let summary = self.store.summary(id).await.map_err(host_error)?.unwrap();
        let builder = match read_record(&self.store, id).await {
            Ok(record) => self.builder().resume(record),
            Err(StoreError::NotFound(_)) => self.builder().with_id(id.clone()),
            Err(error) => return Err(host_error(error)),
        };
        Self::opened(builder.journal(StoredJournal::new(opened.writer, summary)))
    }

    async fn fork(&self, origin: &SessionId, turns: usize, id: SessionId) -> Result<OpenSession, HostError> {
        let mut summary = Summary::new(id.clone(), pintle_agent::Clock::now(&SystemClock));
        summary.properties = self.store.summary(origin).await.map_err(host_error)?.unwrap().properties;
        let forked = fork(&self.store, origin, Some(turns), summary).await;
        let StoredFork { journal, start, .. } =
            forked.map_err(|error| HostError::Invalid(error.to_string()))?;
        Self::opened(self.builder().with_id(id).start(start).journal(journal))
    }

    async fn delete(&self, id: &SessionId) -> Result<(), HostError> {
        match self.store.delete(id).await.map_err(host_error)? {
            true => Ok(()),
            false => Err(HostError::NotFound(id.clone())),
        }
    }

    async fn document(&self, id: &SessionId, kind: DocumentKind) -> Result<String, HostError> {
        Ok(format!("{kind:?} of {id}"))
    }

    fn models(&self) -> Vec<ModelSummary> {
        vec![ModelSummary::new("claude-opus-4-6", 200_000)]
    }
}

/// A server that runs.
pub(super) struct Fixture {
    host: TestHost,
    pub(super) address: SocketAddr,
    _directory: tempfile::TempDir,
    tokens: Option<AccessTokens>,
    stop: CancellationToken,
    serving: JoinSet<()>,
}

impl Fixture {
    pub(super) async fn start(adapter: FakeAdapter) -> Self {
        Self::start_with(adapter, None).await
    }

    pub(super) async fn start_with(adapter: FakeAdapter, tokens: Option<AccessTokens>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store = FileStore::open(directory.path()).unwrap();
        let host = TestHost { adapter: Arc::new(adapter), store };
        let mut fixture = Self {
            host,
            address: ([127, 0, 0, 1], 0).into(),
            _directory: directory,
            tokens,
            stop: CancellationToken::new(),
            serving: JoinSet::new(),
        };
        fixture.serve().await;
        fixture
    }

    pub(super) fn client(&self) -> Client {
        self.client_with(None, quick())
    }

    pub(super) fn client_with(&self, token: Option<&str>, options: ClientOptions) -> Client {
        Client::with_options(&format!("http://{}", self.address), token, options).unwrap()
    }

    fn server(&self) -> Server {
        let store: Arc<dyn SessionStore> = Arc::new(self.host.store.clone());
        let limits = ServerLimits::default().with_drain(Duration::from_millis(20));
        let server = Server::new(Arc::new(self.host.clone()), store, limits);
        match &self.tokens {
            Some(tokens) => server.with_tokens(tokens.clone()),
            None => server,
        }
    }

    async fn serve(&mut self) {
        let server = self.server();
        server.reopen_sessions().await.unwrap();
        let listener = TcpListener::bind(self.address).await.unwrap();
        self.address = listener.local_addr().unwrap();
        self.stop = CancellationToken::new();
        let stop = self.stop.clone();
        self.serving.spawn(async move { server.serve_tcp(listener, stop.cancelled_owned()).await.unwrap() });
    }

    /// Serves on a socket, too.
    pub(super) fn serve_socket(&mut self, path: &std::path::Path) {
        let (server, stop) = (self.server(), self.stop.clone());
        let listener = tokio::net::UnixListener::bind(path).unwrap();
        self.serving.spawn(async move { server.serve_unix(listener, stop.cancelled_owned()).await });
    }

    /// Shuts the server down, and starts another one on the same store and address.
    pub(super) async fn restart(&mut self) {
        self.stop.cancel();
        while let Some(served) = self.serving.join_next().await {
            served.unwrap();
        }
        self.serve().await;
    }

    /// Returns the store of the server.
    pub(super) fn store(&self) -> &FileStore {
        &self.host.store
    }

    /// Returns the events on record.
    pub(super) async fn recorded(&self, id: &SessionId) -> Vec<SessionEvent> {
        read_record(&self.host.store, id).await.unwrap().replay().unwrap().events
    }
}

/// Items that a client has received.
#[derive(Debug, Default)]
pub(super) struct Received {
    pub(super) events: Vec<SessionEvent>,
    pub(super) ids: Vec<crate::EventId>,
    /// Text of the open segment, and of the segments that have ended.
    pub(super) text: String,
    pub(super) texts: Vec<(String, String)>,
    pub(super) disconnected: usize,
    pub(super) resets: usize,
}

impl Received {
    pub(super) fn take(&mut self, item: SessionItem) {
        match item {
            SessionItem::Event { id, event } => {
                if let EventKind::AssistantTextEnd { text, .. } = &event.kind {
                    self.texts.push((std::mem::take(&mut self.text), text.clone()));
                }
                self.ids.push(id);
                self.events.push(*event);
            }
            SessionItem::Delta(event) => {
                if let EventKind::AssistantTextDelta { delta } = &event.kind {
                    assert_eq!(event.offset, Some(self.text.len() as u64), "{event:?}");
                    self.text.push_str(delta);
                }
            }
            SessionItem::Reset { .. } => *self = Self { resets: self.resets + 1, ..Self::default() },
            SessionItem::Disconnected(_) => self.disconnected += 1,
            SessionItem::Ready | SessionItem::Gap(_) => {}
            SessionItem::Unknown { event, .. } => panic!("{event}"),
        }
    }

    /// Follows a session until an event of this kind.
    pub(super) async fn follow(&mut self, items: &mut SessionEvents, is_last: impl Fn(&EventKind) -> bool) {
        loop {
            let before = self.events.len();
            self.take(next(items).await.unwrap());
            let is_new = self.events.len() > before;
            if is_new && self.events.last().is_some_and(|event| is_last(&event.kind)) {
                return;
            }
        }
    }
}

/// Returns the next item of a stream that has one.
pub(super) async fn next(items: &mut SessionEvents) -> Result<SessionItem, ClientError> {
    let item = tokio::time::timeout(PATIENCE, items.next()).await;
    item.expect("an item arrives").expect("the stream goes on")
}

pub(super) fn is_end(kind: &EventKind) -> bool {
    matches!(kind, EventKind::ProcessingEnd { .. })
}

/// Server that sends each connection the next response, the last one again and again, and keeps the requests.
pub(super) struct Canned {
    pub(super) address: SocketAddr,
    pub(super) requests: Arc<Mutex<Vec<String>>>,
    _serving: JoinSet<()>,
}

impl Canned {
    pub(super) async fn start(responses: Vec<Vec<u8>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&requests);
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            for index in 0.. {
                let (mut stream, _) = listener.accept().await.unwrap();
                let request = head_and_body(&mut stream).await;
                kept.lock().unwrap().push(request);
                let response = responses.get(index).or(responses.last()).unwrap();
                let _ = stream.write_all(response).await;
            }
        });
        Self { address, requests, _serving: serving }
    }

    pub(super) fn client(&self, options: ClientOptions) -> Client {
        let url = format!("http://{}/#token=secret", self.address);
        Client::with_options(&url, None, options).unwrap()
    }

    pub(super) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

pub(super) async fn head_and_body(stream: &mut TcpStream) -> String {
    let mut read = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&read).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                return text;
            }
        }
        let mut piece = [0; 4096];
        match stream.read(&mut piece).await.unwrap_or(0) {
            0 => return text,
            length => read.extend_from_slice(piece.get(..length).unwrap()),
        }
    }
}

/// Returns a response as bytes.
pub(super) fn response(status: &str, media_type: &str, more: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: {media_type}\r\ncontent-length: {length}\r\nconnection: close\r\n{more}\r\n{body}"
    )
    .into_bytes()
}

/// Proxy that drops requests, responds 502, and cuts responses at any byte.
pub(super) struct Faulty {
    pub(super) address: SocketAddr,
    pub(super) faults: Arc<AtomicUsize>,
    _serving: JoinSet<()>,
}

impl Faulty {
    pub(super) async fn start(server: SocketAddr, mut seed: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let faults = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&faults);
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (client, _) = listener.accept().await.unwrap();
                // A linear congruential generator: the same faults for the same seed.
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let (fate, size) = (seed >> 60, (seed >> 40) % 6_000);
                let count = Arc::clone(&count);
                connections.spawn(async move {
                    let _ = pass(client, server, fate, size, &count).await;
                });
            }
        });
        Self { address, faults, _serving: serving }
    }
}

/// Passes a connection on, of sixteen kinds of fate.
async fn pass(
    mut client: TcpStream,
    server: SocketAddr,
    fate: u64,
    size: u64,
    faults: &AtomicUsize,
) -> std::io::Result<()> {
    if fate < 3 {
        faults.fetch_add(1, Ordering::Relaxed);
        if fate == 0 {
            return Ok(());
        }
        head_and_body(&mut client).await;
        return client.write_all(&response("502 Bad Gateway", "text/html", "", "<p>no</p>")).await;
    }
    let mut server = TcpStream::connect(server).await?;
    if fate == 3 {
        tokio::io::copy_bidirectional(&mut client, &mut server).await?;
        return Ok(());
    }
    let (mut from_client, mut to_client) = client.split();
    let (from_server, mut to_server) = server.split();
    let mut part = from_server.take(size);
    let back = async {
        tokio::io::copy(&mut part, &mut to_client).await?;
        faults.fetch_add(1, Ordering::Relaxed);
        std::io::Result::Ok(())
    };
    tokio::select! {
        passed = back => passed,
        passed = tokio::io::copy(&mut from_client, &mut to_server) => passed.map(drop),
    }
}
