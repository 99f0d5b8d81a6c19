//! A host of scripted sessions in a store of files, its server on a socket, and a client.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper_util::rt::TokioIo;
use pintle_agent::{
    Principal, ProviderProfile, Session, SessionBuilder, SessionConfig, SessionId, SystemClock,
};
use pintle_env::{CommandScript, ExecutionEnvironment, MemoryEnvironment, Program};
use pintle_llm::testing::FakeAdapter;
use pintle_llm::{Client as Models, Message, ProviderAdapter, RetryPolicy, Role, ToolCall};
use pintle_store::{
    FileStore, SessionStore, StoreError, StoredFork, StoredJournal, Summary, fork, read_record,
};
use pintle_tools::pipeline::{Gate, PreparedCall, Verdict};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::hub::Hub;
use crate::{
    AccessTokens, AuditLog, HostError, ModelSummary, NewSession, OpenSession, Server, ServerLimits,
    SessionControls, SessionHost, SessionSettings, SettingsChange,
};

/// Time limit of each wait in a test.
pub(super) const PATIENCE: Duration = Duration::from_secs(120);

/// Host of scripted sessions.
#[derive(Clone, Debug)]
pub(super) struct TestHost {
    pub(super) adapter: Arc<FakeAdapter>,
    pub(super) store: FileStore,
    /// Commands that ran, in order.
    pub(super) ran: Arc<Mutex<Vec<String>>>,
    /// Whether calls are being prepared until it is `false` again.
    pub(super) holds: Arc<watch::Sender<bool>>,
    asks: bool,
}

#[derive(Debug)]
struct TestControls(Mutex<SessionSettings>);

#[derive(Debug)]
struct TestGate {
    asks: bool,
    holds: watch::Receiver<bool>,
}

#[async_trait]
impl Gate for TestGate {
    async fn check(&self, call: &PreparedCall) -> Verdict {
        // Fails only without the host.
        let _ = self.holds.clone().wait_for(|holds| !holds).await;
        if self.asks && call.effect() != pintle_tools::Effect::Read {
            Verdict::ask("it changes something")
        } else {
            Verdict::ALLOW
        }
    }
}

#[async_trait]
impl SessionControls for TestControls {
    fn settings(&self) -> SessionSettings {
        self.0.lock().unwrap().clone()
    }

    async fn set(&self, change: &SettingsChange, _by: Option<&Principal>) -> Result<(), HostError> {
        match change.mode.as_deref() {
            None => {}
            Some(mode @ ("ask" | "auto")) => self.0.lock().unwrap().mode = Some(mode.to_owned()),
            Some(mode) => return Err(HostError::Invalid(format!("there is no mode `{mode}`"))),
        }
        Ok(())
    }
}

impl TestHost {
    fn builder(&self) -> SessionBuilder {
        let adapter = Arc::clone(&self.adapter) as Arc<dyn ProviderAdapter>;
        let models = Models::builder().shared_provider(adapter).build().unwrap();
        let quick = RetryPolicy::default().with_base_delay(Duration::from_millis(1));
        Session::builder(models, ProviderProfile::anthropic("claude-opus-4-6"), self.environment())
            .with_config(SessionConfig::default().with_retry(quick))
            .gate(TestGate { asks: self.asks, holds: self.holds.subscribe() })
    }

    /// An environment whose `sleep` never returns; everything else prints its command.
    fn environment(&self) -> Arc<dyn ExecutionEnvironment> {
        let ran = Arc::clone(&self.ran);
        Arc::new(MemoryEnvironment::new("/project").with_commands(move |command| match &command.program {
            Program::Shell(line) if line.starts_with("sleep") => CommandScript::exit(0).hang(),
            Program::Shell(line) => {
                // Sessions run commands of their own, about git.
                if line.starts_with("make") {
                    ran.lock().unwrap().push(line.clone());
                }
                CommandScript::exit(0).stdout(format!("ran {line}\n"))
            }
            Program::Argv { .. } => CommandScript::exit(0),
        }))
    }

    fn opened(&self, builder: SessionBuilder) -> Result<OpenSession, HostError> {
        let session =
            builder.build().map_err(|error| HostError::failed("cannot build the session", error))?;
        let settings = SessionSettings { mode: Some("ask".to_owned()), ..SessionSettings::default() };
        Ok(OpenSession::new(session, Arc::new(TestControls(Mutex::new(settings)))))
    }

    fn journal(&self, writer: Box<dyn pintle_store::SessionWriter>, summary: Summary) -> StoredJournal {
        StoredJournal::new(writer, summary).with_subagents(Arc::new(self.store.clone()))
    }
}

/// Property of a session with rules that allow calls.
const ALLOWING: &str = "allowing";

fn host_error(error: StoreError) -> HostError {
    let text = error.to_string();
    #[expect(clippy::wildcard_enum_match_arm, reason = "the others are failures")]
    match error {
        StoreError::Damaged { session, .. } => HostError::Damaged { id: session, damage: text, entries: 0 },
        StoreError::NotFound(id) => HostError::NotFound(id),
        StoreError::Exists(id) => HostError::Exists(id),
        StoreError::InUse { session, holder } => HostError::Held { id: session, holder: holder.to_string() },
        _ => HostError::failed("the store failed", error),
    }
}

#[async_trait]
impl SessionHost for TestHost {
    async fn create(&self, id: SessionId, request: NewSession) -> Result<OpenSession, HostError> {
        if request.directory.as_deref() == Some("/nowhere") {
            return Err(HostError::Invalid("there is no directory `/nowhere`".to_owned()));
        }
        let mut summary = Summary::new(id.clone(), pintle_agent::Clock::now(&SystemClock));
        summary.properties.extend(request.properties);
        if !request.rules.allow.is_empty() {
            summary.properties.insert(ALLOWING.to_owned(), "true".to_owned());
        }
        let writer = self.store.create(summary.clone()).await.map_err(host_error)?;
        self.opened(self.builder().with_id(id).journal(self.journal(writer, summary)))
    }

    async fn open(&self, id: &SessionId) -> Result<OpenSession, HostError> {
        let opened = self.store.open(id).await.map_err(host_error)?;
        let summary = self.store.summary(id).await.map_err(host_error)?.unwrap();
        let journal = self.journal(opened.writer, summary);
        let builder = match read_record(&self.store, id).await {
            Ok(record) => self.builder().resume(record),
            Err(StoreError::NotFound(_)) => self.builder().with_id(id.clone()),
            Err(error) => return Err(host_error(error)),
        };
        self.opened(builder.journal(journal))
    }

    async fn fork_widening(&self, origin: &SessionId) -> Result<Option<String>, HostError> {
        let summary = self.store.summary(origin).await.map_err(host_error)?;
        let is_allowing = summary.is_some_and(|summary| summary.properties.contains_key(ALLOWING));
        Ok(is_allowing.then(|| "the origin has rules that allow".to_owned()))
    }

    async fn fork(&self, origin: &SessionId, turns: usize, id: SessionId) -> Result<OpenSession, HostError> {
        let mut summary = Summary::new(id.clone(), pintle_agent::Clock::now(&SystemClock));
        summary.properties = self.store.summary(origin).await.map_err(host_error)?.unwrap().properties;
        let forked = fork(&self.store, origin, Some(turns), summary).await;
        let StoredFork { journal, start, .. } =
            forked.map_err(|error| HostError::Invalid(error.to_string()))?;
        self.opened(self.builder().with_id(id).start(start).journal(journal))
    }

    async fn delete(&self, id: &SessionId) -> Result<(), HostError> {
        match self.store.delete(id).await.map_err(host_error)? {
            true => Ok(()),
            false => Err(HostError::NotFound(id.clone())),
        }
    }

    fn models(&self) -> Vec<ModelSummary> {
        vec![ModelSummary::new("claude-opus-4-6", 200_000)]
    }
}

/// A server that runs, and what it needs.
pub(super) struct Fixture {
    pub(super) host: TestHost,
    pub(super) address: std::net::SocketAddr,
    pub(super) hub: Option<Arc<Hub>>,
    directory: tempfile::TempDir,
    tokens: Option<AccessTokens>,
    limits: ServerLimits,
    audit: Option<Arc<dyn AuditLog>>,
    stop: CancellationToken,
    serving: JoinSet<()>,
}

/// Builds a fixture.
pub(super) struct Setup {
    adapter: FakeAdapter,
    asks: bool,
    tokens: Option<AccessTokens>,
    limits: ServerLimits,
    audit: Option<Arc<dyn AuditLog>>,
}

impl Setup {
    pub(super) fn new(adapter: FakeAdapter) -> Self {
        let mut limits = ServerLimits::default().with_drain(Duration::from_millis(50));
        // A server that waited for the end of a body would take longer than a test waits for its end.
        limits.body_time = 5 * PATIENCE;
        Self { adapter, asks: false, tokens: None, limits, audit: None }
    }

    pub(super) fn asking(mut self) -> Self {
        self.asks = true;
        self
    }

    pub(super) fn with_tokens(mut self, tokens: AccessTokens) -> Self {
        self.tokens = Some(tokens);
        self
    }

    pub(super) fn with_audit(mut self, log: Arc<dyn AuditLog>) -> Self {
        self.audit = Some(log);
        self
    }

    pub(super) fn with_limits(mut self, limits: ServerLimits) -> Self {
        self.limits = limits;
        self
    }

    pub(super) async fn start(self) -> Fixture {
        let directory = tempfile::tempdir().unwrap();
        let store = FileStore::open(directory.path()).unwrap();
        let (adapter, holds) = (Arc::new(self.adapter), Arc::new(watch::Sender::new(false)));
        let host = TestHost { adapter, store, ran: Arc::default(), holds, asks: self.asks };
        let mut fixture = Fixture {
            host,
            address: ([127, 0, 0, 1], 0).into(),
            hub: None,
            directory,
            tokens: self.tokens,
            limits: self.limits,
            audit: self.audit,
            stop: CancellationToken::new(),
            serving: JoinSet::new(),
        };
        fixture.start().await;
        fixture
    }
}

impl Fixture {
    async fn start(&mut self) {
        let store: Arc<dyn SessionStore> = Arc::new(self.host.store.clone());
        let mut server = Server::new(Arc::new(self.host.clone()), store, self.limits.clone());
        if let Some(tokens) = &self.tokens {
            server = server.with_tokens(tokens.clone());
        }
        if let Some(audit) = &self.audit {
            server = server.with_audit(Arc::clone(audit));
        }
        self.hub = Some(Arc::clone(&server.hub));
        server.reopen_sessions().await.unwrap();
        let listener = TcpListener::bind(self.address).await.unwrap();
        self.address = listener.local_addr().unwrap();
        self.stop = CancellationToken::new();
        let stop = self.stop.clone();
        self.serving.spawn(async move {
            server.serve_tcp(listener, stop.cancelled_owned()).await.unwrap();
        });
    }

    /// Shuts the server down, and starts another one on the same store.
    pub(super) async fn restart(&mut self) {
        self.shut_down().await;
        self.start().await;
    }

    pub(super) async fn shut_down(&mut self) {
        self.stop.cancel();
        while let Some(served) = self.serving.join_next().await {
            served.unwrap();
        }
    }

    /// Returns the directory of the store.
    pub(super) fn directory(&self) -> &std::path::Path {
        self.directory.path()
    }

    /// Sends a request.
    pub(super) async fn send(&self, request: Request) -> Answer {
        let answered = tokio::time::timeout(PATIENCE, send(self.address, request));
        let response = answered.await.expect("the server answers");
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Answer { status: parts.status.as_u16(), headers: parts.headers, body }
    }

    /// Sends a request and goes away after this time, whatever the answer is.
    pub(super) async fn send_and_leave(&self, request: Request, after: Duration) {
        let head = format!(
            "{} {} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            request.method,
            request.path,
            self.address,
            request.body.len()
        );
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(&[head.as_bytes(), &request.body].concat()).await.unwrap();
        tokio::time::sleep(after).await;
    }

    pub(super) async fn get(&self, path: &str) -> Answer {
        self.send(Request::new("GET", path)).await
    }

    pub(super) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send(Request::new("POST", path).json(body)).await
    }

    /// Creates a session and returns its id.
    pub(super) async fn create(&self) -> String {
        let answer = self.post("/v1/sessions", &json!({})).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.json()["id"].as_str().unwrap().to_owned()
    }

    /// Creates a session that begins with a message.
    pub(super) async fn create_with(&self, text: &str) -> String {
        let answer = self.post("/v1/sessions", &json!({"message": {"text": text}})).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.json()["id"].as_str().unwrap().to_owned()
    }

    /// Follows the events of a session.
    pub(super) async fn follow(&self, id: &str, after: Option<&str>) -> Stream {
        let after = after.map(|after| format!("?after={after}")).unwrap_or_default();
        self.stream(&format!("/v1/sessions/{id}/events{after}")).await
    }

    pub(super) async fn stream(&self, path: &str) -> Stream {
        self.stream_of(Request::new("GET", path)).await
    }

    pub(super) async fn stream_of(&self, request: Request) -> Stream {
        let response = send(self.address, request).await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Stream { body: response.into_body(), read: String::new() }
    }
}

/// A request.
#[derive(Clone, Debug)]
pub(super) struct Request {
    method: &'static str,
    path: String,
    headers: Vec<(String, String)>,
    body: Bytes,
}

impl Request {
    pub(super) fn new(method: &'static str, path: &str) -> Self {
        Self { method, path: path.to_owned(), headers: Vec::new(), body: Bytes::new() }
    }

    pub(super) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(super) fn json(self, body: &Value) -> Self {
        self.header("content-type", "application/json").body(body.to_string())
    }

    pub(super) fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }
}

async fn send(address: std::net::SocketAddr, request: Request) -> hyper::Response<Incoming> {
    try_send(address, request).await.expect("the server is there")
}

/// Sends a request to a server that may not be there, or end before it answers.
pub(super) async fn try_send(
    address: std::net::SocketAddr,
    request: Request,
) -> Option<hyper::Response<Incoming>> {
    let stream = TcpStream::connect(address).await.ok()?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.ok()?;
    // It ends with the response.
    #[expect(clippy::disallowed_methods, reason = "the connection has to be driven beside the response")]
    tokio::spawn(async move {
        let _ = connection.await;
    });
    let mut builder = hyper::Request::builder().method(request.method).uri(&request.path);
    if !request.headers.iter().any(|(name, _)| name == "host") {
        builder = builder.header("host", address.to_string());
    }
    for (name, value) in request.headers {
        builder = builder.header(name, value);
    }
    sender.send_request(builder.body(Full::new(request.body)).unwrap()).await.ok()
}

/// Opens a stream of events, if the server is there.
pub(super) async fn try_stream(address: std::net::SocketAddr, path: &str) -> Option<Stream> {
    let response = try_send(address, Request::new("GET", path)).await?;
    (response.status() == 200).then(|| Stream { body: response.into_body(), read: String::new() })
}

/// An answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: hyper::HeaderMap,
    pub(super) body: Bytes,
}

impl Answer {
    pub(super) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(super) fn text(&self) -> String {
        String::from_utf8(self.body.to_vec()).unwrap()
    }

    /// Returns the header, or nothing.
    pub(super) fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

/// A stream of server-sent events.
pub(super) struct Stream {
    body: Incoming,
    read: String,
}

/// A server-sent event.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Frame {
    pub(super) id: Option<String>,
    pub(super) name: Option<String>,
    pub(super) data: Value,
    /// Line of data that names the stream, in a connection with several.
    pub(super) head: Option<Value>,
}

impl Stream {
    /// Returns the next event; `None` at the end.
    pub(super) async fn next(&mut self) -> Option<Frame> {
        tokio::time::timeout(PATIENCE, self.read_frame()).await.expect("an event in time")
    }

    async fn read_frame(&mut self) -> Option<Frame> {
        loop {
            if let Some((frame, rest)) = self.read.split_once("\n\n") {
                let (frame, rest) = (frame.to_owned(), rest.to_owned());
                self.read = rest;
                if let Some(frame) = parse(&frame) {
                    return Some(frame);
                }
                continue;
            }
            let frame = self.body.frame().await?.ok()?;
            let data = frame.into_data().ok()?;
            // The server sends whole events, so no character is in two pieces.
            self.read.push_str(std::str::from_utf8(&data).unwrap());
        }
    }

    /// Returns the events up to and with the first that `is_last`.
    pub(super) async fn until(&mut self, is_last: impl Fn(&Frame) -> bool) -> Vec<Frame> {
        let mut frames = Vec::new();
        let end = tokio::time::Instant::now() + PATIENCE;
        loop {
            let next = tokio::time::timeout_at(end, self.read_frame()).await;
            let Ok(Some(frame)) = next else {
                panic!("{} after {frames:#?}", if next.is_err() { "nothing" } else { "the stream ended" });
            };
            let has_ended = is_last(&frame);
            frames.push(frame);
            if has_ended {
                return frames;
            }
        }
    }

    /// Returns the events up to and with one of this kind.
    pub(super) async fn until_kind(&mut self, kind: &str) -> Vec<Frame> {
        self.until(|frame| frame.data["kind"] == kind).await
    }
}

fn parse(text: &str) -> Option<Frame> {
    let (mut id, mut name, mut data) = (None, None, Vec::new());
    for line in text.lines() {
        match line.split_once(": ").unwrap() {
            ("id", value) => id = Some(value.to_owned()),
            ("event", value) => name = Some(value.to_owned()),
            ("data", value) => data.push(serde_json::from_str(value).unwrap()),
            ("retry", _) => {}
            other => panic!("{other:?}"),
        }
    }
    let last = data.pop()?;
    Some(Frame { id, name, data: last, head: data.pop() })
}

/// A response that runs a command.
pub(super) fn runs(id: &str, command: &str) -> Message {
    let call = ToolCall::from_raw(id, "shell", json!({"command": command}).to_string());
    Message::new(Role::Assistant, vec![call.into()])
}

pub(super) fn scripted() -> FakeAdapter {
    FakeAdapter::new("anthropic")
}
