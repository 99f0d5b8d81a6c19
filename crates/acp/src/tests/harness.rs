//! A small host, and a client that speaks in lines.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use pintle_agent::{
    ApprovalRequest, EventKind, Money, ProviderProfile, Record, Session, SessionConfig, SessionEvent,
    SessionHandle, SessionId,
};
use pintle_env::{CommandScript, ExecutionEnvironment, MemoryEnvironment, Program};
use pintle_llm::testing::FakeAdapter;
use pintle_llm::{Client as Models, Message, ProviderAdapter, RetryPolicy, Role, ToolCall};
use pintle_tools::pipeline::{Gate, PreparedCall, Verdict};
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
};
use tokio::task::JoinSet;

use crate::{
    AcpAgent, AgentHost, AgentInfo, Client, CommandResult, ConfigOption, HostError, NamedChoice, NewSession,
    OpenSession, OptionCategory, OptionKind, OptionValue, ServeError, SessionControls, SessionModes,
    SessionPage, SessionQuery, SessionSettings, SessionSummary, SlashCommand,
};

/// How long a test waits for a message.
const PATIENCE: Duration = Duration::from_secs(20);

/// Host of scripted sessions in `/project`.
#[derive(Clone, Debug)]
pub(super) struct TestHost {
    pub(super) adapter: Arc<FakeAdapter>,
    pub(super) env: Arc<MemoryEnvironment>,
    /// Whether writes and commands are asked about.
    pub(super) asks: bool,
    /// Records of the sessions that were closed, in order.
    pub(super) kept: Arc<Mutex<Vec<(String, Record)>>>,
    pub(super) rules: Arc<Mutex<Vec<String>>>,
    /// Whether sessions have a title, which is their newest input, and a cost, which is that of one input.
    pub(super) titled: bool,
    pub(super) deleted: Arc<Mutex<Vec<String>>>,
    pub(super) logouts: Arc<Mutex<usize>>,
    inputs: Arc<Mutex<Vec<String>>>,
    settings: Arc<Mutex<SessionSettings>>,
}

impl TestHost {
    pub(super) fn new(adapter: FakeAdapter) -> Self {
        Self {
            adapter: Arc::new(adapter),
            env: Arc::new(environment()),
            asks: false,
            kept: Arc::default(),
            rules: Arc::default(),
            titled: false,
            deleted: Arc::default(),
            logouts: Arc::default(),
            inputs: Arc::default(),
            settings: Arc::new(Mutex::new(settings())),
        }
    }

    pub(super) fn asking(mut self) -> Self {
        self.asks = true;
        self
    }

    fn open(&self, id: Option<&str>, record: Option<Record>) -> OpenSession {
        let adapter = Arc::clone(&self.adapter) as Arc<dyn ProviderAdapter>;
        let models = Models::builder().shared_provider(adapter).build().unwrap();
        let env = Arc::clone(&self.env) as Arc<dyn ExecutionEnvironment>;
        let quick = RetryPolicy::default().with_base_delay(Duration::from_millis(1));
        let mut builder = Session::builder(models, ProviderProfile::anthropic("claude-opus-4-6"), env)
            .with_config(SessionConfig::default().with_retry(quick))
            .record(true)
            .gate(TestGate { asks: self.asks });
        if let Some(id) = id {
            builder = builder.with_id(SessionId::new(id));
        }
        if let Some(record) = record {
            builder = builder.resume(record);
        }
        OpenSession::new(builder.build().unwrap(), Arc::new(self.clone()), "/project")
    }
}

fn settings() -> SessionSettings {
    let modes = SessionModes {
        current: "ask".to_owned(),
        available: vec![
            NamedChoice::new("ask", "Ask"),
            NamedChoice::new("auto", "Auto").with_description("Ask nothing."),
        ],
    };
    let effort = OptionKind::Select {
        current: "low".to_owned(),
        choices: vec![NamedChoice::new("low", "Low"), NamedChoice::new("high", "High")],
    };
    SessionSettings::default()
        .with_modes(modes)
        .with_options([
            ConfigOption::new("effort", "Effort", OptionCategory::Reasoning, effort),
            ConfigOption::new("web", "Web", OptionCategory::Other, OptionKind::Switch(false)),
        ])
        .with_commands([
            SlashCommand::new("say", "Says something").with_input("text"),
            SlashCommand::new("review", "Has the model review the changes"),
            SlashCommand::new("hang", "Never ends"),
        ])
}

/// An environment whose `sleep` never returns; everything else prints its command.
fn environment() -> MemoryEnvironment {
    MemoryEnvironment::new("/project").with_commands(|command| match &command.program {
        Program::Shell(line) if line.starts_with("sleep") => CommandScript::exit(0).hang(),
        Program::Shell(line) => CommandScript::exit(0).stdout(format!("ran {line}\n")),
        Program::Argv { .. } => CommandScript::exit(0),
    })
}

#[derive(Debug)]
struct TestGate {
    asks: bool,
}

#[async_trait]
impl Gate for TestGate {
    async fn check(&self, call: &PreparedCall) -> Verdict {
        if self.asks && call.effect() != pintle_tools::Effect::Read {
            Verdict::ask("it changes something").with_suggested_rules(vec![format!("{}(this)", call.name())])
        } else {
            Verdict::ALLOW
        }
    }
}

#[async_trait]
impl AgentHost for TestHost {
    fn info(&self) -> AgentInfo {
        AgentInfo::new("test", "1.0.0")
            .with_loading(true)
            .with_lists(true)
            .with_deletion(true)
            .with_logout(true)
            .with_auth_methods([NamedChoice::new("key", "API key")])
    }

    async fn authenticate(&self, method: &str) -> Result<(), HostError> {
        if method == "key" {
            Ok(())
        } else {
            Err(HostError::Invalid(format!("there is no method `{method}`")))
        }
    }

    async fn logout(&self) -> Result<(), HostError> {
        let mut logouts = self.logouts.lock().unwrap();
        *logouts += 1;
        if *logouts > 1 {
            return Err(HostError::Invalid("there is no key".to_owned()));
        }
        Ok(())
    }

    async fn delete_session(&self, id: &str) -> Result<(), HostError> {
        let mut kept = self.kept.lock().unwrap();
        let before = kept.len();
        kept.retain(|(kept, _)| kept != id);
        if kept.len() == before {
            return Err(HostError::NoSuchSession(id.to_owned()));
        }
        self.deleted.lock().unwrap().push(id.to_owned());
        Ok(())
    }

    async fn new_session(&self, request: NewSession, _client: &Client) -> Result<OpenSession, HostError> {
        match request.directory.to_str() {
            Some("/private") => Err(HostError::AuthenticationRequired),
            Some("/panic") => panic!("the host is broken"),
            Some("/hang") => std::future::pending().await,
            _ => Ok(self.open(None, None)),
        }
    }

    async fn load_session(
        &self,
        id: &str,
        request: NewSession,
        _client: &Client,
    ) -> Result<OpenSession, HostError> {
        if id == "held" {
            return Err(HostError::Held { id: id.to_owned(), holder: "process 4711".to_owned() });
        }
        let kept = self.kept.lock().unwrap();
        let record = kept.iter().rev().find(|(kept, _)| kept == id).map(|(_, record)| record.clone());
        let record = record.ok_or_else(|| HostError::NoSuchSession(id.to_owned()))?;
        if request.directory != std::path::Path::new("/project") {
            return Err(HostError::OtherDirectory { id: id.to_owned(), directory: "/project".into() });
        }
        Ok(self.open(None, Some(record)))
    }

    async fn list_sessions(&self, request: SessionQuery) -> Result<SessionPage, HostError> {
        if request.cursor.is_some() {
            return Err(HostError::Invalid("there is no such page".to_owned()));
        }
        let kept = self.kept.lock().unwrap();
        let summary =
            |(id, _): &(String, Record)| SessionSummary::new(id, "/project").with_title(Some("A".to_owned()));
        Ok(SessionPage::new(kept.iter().map(summary).collect()).with_next(Some("2".to_owned())))
    }
}

#[async_trait]
impl SessionControls for TestHost {
    fn settings(&self) -> SessionSettings {
        let title = self.inputs.lock().unwrap().last().cloned().filter(|_| self.titled);
        self.settings.lock().unwrap().clone().with_title(title)
    }

    fn observe(&self, event: &SessionEvent) {
        if let EventKind::UserInput { content, .. } = &event.kind {
            self.inputs.lock().unwrap().push(content.clone());
        }
    }

    fn cost(&self) -> Option<Money> {
        let inputs = u32::try_from(self.inputs.lock().unwrap().len()).unwrap();
        self.titled.then(|| Money::from_dollars(0.25 * f64::from(inputs)))
    }

    fn context_window(&self) -> Option<u64> {
        self.titled.then_some(1_000)
    }

    async fn set_mode(&self, mode: &str) -> Result<(), HostError> {
        let mut settings = self.settings.lock().unwrap();
        let modes = settings.modes.as_mut().unwrap();
        if !modes.available.iter().any(|one| one.id == mode) {
            return Err(HostError::Invalid(format!("there is no mode `{mode}`")));
        }
        modes.current = mode.to_owned();
        Ok(())
    }

    async fn set_option(&self, id: &str, value: OptionValue) -> Result<(), HostError> {
        let mut settings = self.settings.lock().unwrap();
        let option = settings.options.iter_mut().find(|option| option.id == id);
        let option = option.ok_or_else(|| HostError::Invalid(format!("there is no option `{id}`")))?;
        match (&mut option.kind, value) {
            (OptionKind::Select { current, .. }, OptionValue::Choice(choice)) => *current = choice,
            (OptionKind::Switch(is_on), OptionValue::Switch(value)) => *is_on = value,
            _ => return Err(HostError::Invalid("the value has the wrong type".to_owned())),
        }
        Ok(())
    }

    async fn run_command(
        &self,
        name: &str,
        input: &str,
        _session: &SessionHandle,
    ) -> Result<CommandResult, HostError> {
        match name {
            "say" => Ok(CommandResult::Text(format!("You said: {input}"))),
            "hang" => std::future::pending().await,
            "review" if !input.is_empty() => Ok(CommandResult::Prompt(format!("Review {input}").into())),
            _ => Ok(CommandResult::Prompt("Review the changes.".into())),
        }
    }

    async fn allow_always(&self, request: &ApprovalRequest) -> Result<(), HostError> {
        self.rules.lock().unwrap().extend(request.suggested_rules.clone());
        Ok(())
    }

    fn can_allow_always(&self) -> bool {
        true
    }

    async fn close(&self, session: Session) {
        let (id, handle) = (session.id().to_string(), session.handle());
        // Fails only if the session has ended.
        let _ = session.handle().stop_turn();
        session.detach().await;
        self.kept.lock().unwrap().push((id, handle.record().unwrap()));
    }
}

/// Client of an agent.
pub(super) struct TestClient {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    input: Option<WriteHalf<DuplexStream>>,
    next_id: i64,
    /// Messages that were read and not asked for yet.
    read: VecDeque<Value>,
    /// All messages that were received.
    pub(super) log: Vec<Value>,
    served: JoinSet<Result<(), ServeError>>,
}

impl TestClient {
    /// Connects without a word.
    pub(super) fn connect(host: &TestHost) -> Self {
        Self::connect_to(AcpAgent::new(host.clone()))
    }

    pub(super) fn connect_to(agent: AcpAgent) -> Self {
        let (near, far) = tokio::io::duplex(1 << 16);
        let (far_reader, far_writer) = tokio::io::split(far);
        let (reader, writer) = tokio::io::split(near);
        let mut served = JoinSet::new();
        served.spawn(async move { agent.serve(far_reader, far_writer).await });
        Self {
            lines: BufReader::new(reader).lines(),
            input: Some(writer),
            next_id: 0,
            read: VecDeque::new(),
            log: Vec::new(),
            served,
        }
    }

    /// Connects and initializes.
    pub(super) async fn start(host: &TestHost) -> Self {
        let mut client = Self::connect(host);
        client.initialize(json!({})).await;
        client
    }

    pub(super) async fn initialize(&mut self, capabilities: Value) -> Value {
        self.call("initialize", json!({"protocolVersion": 1, "clientCapabilities": capabilities})).await
    }

    /// Creates a session and reads what follows.
    pub(super) async fn new_session(&mut self) -> String {
        let result = self.call("session/new", json!({"cwd": "/project", "mcpServers": []})).await;
        self.update("available_commands_update").await;
        result["sessionId"].as_str().unwrap().to_owned()
    }

    pub(super) async fn send_line(&mut self, line: &[u8]) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line).await.unwrap();
        input.write_all(b"\n").await.unwrap();
    }

    pub(super) async fn send(&mut self, message: Value) {
        self.send_line(message.to_string().as_bytes()).await;
    }

    /// Sends a request and returns its id.
    pub(super) async fn request(&mut self, method: &str, params: Value) -> i64 {
        self.next_id += 1;
        let id = self.next_id;
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        id
    }

    pub(super) async fn notify(&mut self, method: &str, params: Value) {
        self.send(json!({"jsonrpc": "2.0", "method": method, "params": params})).await;
    }

    pub(super) async fn prompt(&mut self, session: &str, text: &str) -> i64 {
        let prompt = json!([{"type": "text", "text": text}]);
        self.request("session/prompt", json!({"sessionId": session, "prompt": prompt})).await
    }

    pub(super) async fn cancel(&mut self, session: &str) {
        self.notify("session/cancel", json!({"sessionId": session})).await;
    }

    pub(super) async fn answer(&mut self, request: &Value, result: Value) {
        self.send(json!({"jsonrpc": "2.0", "id": request["id"], "result": result})).await;
    }

    /// Sends a request and returns its result.
    pub(super) async fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params).await;
        let response = self.response(id).await;
        assert!(response.get("error").is_none(), "{method}: {response}");
        response["result"].clone()
    }

    /// Sends a request and returns its error.
    pub(super) async fn call_in_vain(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params).await;
        let response = self.response(id).await;
        assert!(response.get("result").is_none(), "{method}: {response}");
        response["error"].clone()
    }

    /// Returns the stop reason of a prompt.
    pub(super) async fn stop_reason(&mut self, id: i64) -> String {
        let response = self.response(id).await;
        response["result"]["stopReason"].as_str().unwrap_or_else(|| panic!("{response}")).to_owned()
    }

    pub(super) async fn response(&mut self, id: i64) -> Value {
        self.take(|message| message["id"] == id && message.get("method").is_none()).await
    }

    /// Returns the next update of this kind.
    pub(super) async fn update(&mut self, kind: &str) -> Value {
        let message = self.take(|message| message["params"]["update"]["sessionUpdate"] == kind).await;
        message["params"]["update"].clone()
    }

    /// Returns the next request of the agent.
    pub(super) async fn asked(&mut self, method: &str) -> Value {
        self.take(|message| message["method"] == method && message.get("id").is_some()).await
    }

    /// Returns the first message that fits, and keeps the others.
    pub(super) async fn take(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.read.iter().position(&fits) {
            return self.read.remove(at).unwrap();
        }
        loop {
            let message = self.next().await.expect("the connection lasts");
            if fits(&message) {
                return message;
            }
            self.read.push_back(message);
        }
    }

    /// Reads the next message; `None` at the end.
    pub(super) async fn next(&mut self) -> Option<Value> {
        let line = match tokio::time::timeout(PATIENCE, self.lines.next_line()).await {
            Ok(line) => line.unwrap()?,
            Err(_elapsed) => panic!("nothing more comes after {:#?}", self.log),
        };
        let message: Value = serde_json::from_str(&line).unwrap();
        self.log.push(message.clone());
        Some(message)
    }

    /// Closes the input, reads the rest, and returns how serving ended.
    pub(super) async fn close(&mut self) -> Result<(), ServeError> {
        // A pipe is closed for writing by shutting it down.
        self.input.as_mut().unwrap().shutdown().await.unwrap();
        self.input = None;
        while let Some(message) = self.next().await {
            self.read.push_back(message);
        }
        self.served.join_next().await.unwrap().unwrap()
    }

    /// Closes the input and reads nothing.
    pub(super) async fn stop_writing(&mut self) {
        self.input.as_mut().unwrap().shutdown().await.unwrap();
    }

    /// Drops both ends of the connection and waits for the agent.
    pub(super) async fn vanish(self) {
        let Self { lines, input, mut served, .. } = self;
        drop((lines, input));
        // It may find out by reading or by writing.
        let _ = served.join_next().await.unwrap().unwrap();
    }

    /// Texts of the model that were received for a session.
    pub(super) fn said(&self) -> String {
        let updates = self.log.iter().map(|message| &message["params"]["update"]);
        let chunks = updates.filter(|update| update["sessionUpdate"] == "agent_message_chunk");
        chunks.filter_map(|chunk| chunk["content"]["text"].as_str()).collect()
    }
}

pub(super) fn anthropic() -> FakeAdapter {
    FakeAdapter::new("anthropic")
}

pub(super) fn calling(calls: &[(&str, Value)]) -> Message {
    let parts = calls.iter().enumerate().map(|(index, (name, arguments))| {
        ToolCall::from_raw(format!("call_{index}_{name}"), *name, arguments.to_string()).into()
    });
    Message::new(Role::Assistant, parts.collect())
}

pub(super) fn writing(path: &str, content: &str) -> Message {
    calling(&[("write_file", json!({"file_path": path, "content": content}))])
}

pub(super) fn hanging() -> Message {
    calling(&[("shell", json!({"command": "sleep 1000", "timeout_ms": 600_000}))])
}
