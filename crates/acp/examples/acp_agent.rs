//! An agent for any client of the protocol, over standard input and output: real sessions in the client's directory, and a
//! script instead of a model. Sessions that are closed can be loaded again as long as the program runs.
//!
//! The script depends on the prompt: with `write`, the model writes `hello.txt`; with `run`, it runs a command; with `wait`,
//! one that takes a minute.
#![expect(clippy::disallowed_methods, reason = "an example builds its sessions itself")]

use std::collections::HashMap;
use std::error::Error;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use pintle_acp::{
    AcpAgent, AgentHost, AgentInfo, Client, EditorEnvironment, HostError, NamedChoice, NewSession,
    OpenSession, SessionControls, SessionModes, SessionPage, SessionQuery, SessionSettings, SessionSummary,
    SlashCommand, TerminalSwitch,
};
use pintle_agent::{
    ApprovalRequest, EventKind, Money, ProviderProfile, Record, Session, SessionEvent, SessionId,
};
use pintle_env::{ExecutionEnvironment, LocalEnvironment};
use pintle_llm::{
    Client as Models, ContentPart, Error as ModelError, EventStream, Message, ProviderAdapter, Request,
    Response, Role, ToolCall, testing::FakeAdapter,
};
use pintle_tools::Effect;
use pintle_tools::pipeline::{Gate, PreparedCall, Verdict};
use serde_json::json;

/// Model that follows the words of the prompt.
#[derive(Debug)]
struct Scripted;

impl Scripted {
    /// Returns the provider that gives the response to this request.
    fn respond(request: &Request) -> FakeAdapter {
        let script = FakeAdapter::new("anthropic");
        let is_answered = request.messages.last().is_some_and(|last| last.results().next().is_some());
        if is_answered {
            return script.answer("Done.");
        }
        let prompt = request.messages.last().map(|last| last.text()).unwrap_or_default();
        let call = |tool: &str, arguments: serde_json::Value| {
            let call = ToolCall::from_raw(format!("{tool}_1"), tool, arguments.to_string());
            Message::new(Role::Assistant, vec![ContentPart::text("I will."), call.into()])
        };
        match prompt.as_str() {
            text if text.contains("write") => {
                script.message(call("write_file", json!({"file_path": "hello.txt", "content": "hello\n"})))
            }
            text if text.contains("run") => script.message(call("shell", json!({"command": "echo hello"}))),
            text if text.contains("wait") => {
                script.message(call("shell", json!({"command": "sleep 60", "timeout_ms": 90_000})))
            }
            _ => script.answer("Hello."),
        }
    }
}

#[async_trait]
impl ProviderAdapter for Scripted {
    fn name(&self) -> &str {
        "anthropic"
    }

    async fn complete(&self, request: &Request) -> Result<Response, ModelError> {
        Self::respond(request).complete(request).await
    }

    async fn stream(&self, request: &Request) -> Result<EventStream, ModelError> {
        Self::respond(request).stream(request).await
    }
}

/// Asks about every call that changes something, until the user allows calls like it.
#[derive(Clone, Debug, Default)]
struct Rules(Arc<Mutex<Vec<String>>>);

#[async_trait]
impl Gate for Rules {
    async fn check(&self, call: &PreparedCall) -> Verdict {
        let rule = call.name().to_owned();
        let is_allowed = self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(&rule);
        if call.effect() == Effect::Read || is_allowed {
            return Verdict::ALLOW;
        }
        Verdict::ask("It changes something.").with_suggested_rules(vec![rule])
    }
}

/// Sessions that were closed, with their directories.
type Closed = Arc<Mutex<HashMap<String, (Record, String)>>>;

#[derive(Clone, Debug, Default)]
struct Host {
    closed: Closed,
}

#[derive(Debug)]
struct Controls {
    rules: Rules,
    closed: Closed,
    directory: String,
    /// The first input.
    title: Mutex<Option<String>>,
}

impl Host {
    fn open(
        &self,
        directory: &Path,
        record: Option<Record>,
        client: &Client,
    ) -> Result<OpenSession, HostError> {
        let failed =
            |error: Box<dyn Error + Send + Sync>| HostError::failed("cannot open the session", error);
        let models = Models::builder().provider(Scripted).build().map_err(|error| failed(error.into()))?;
        let local = LocalEnvironment::builder(directory).build().map_err(|error| failed(error.into()))?;
        let local: Arc<dyn ExecutionEnvironment> = Arc::new(local);
        let id = record.as_ref().map_or_else(SessionId::generate, |record| record.header.session_id.clone());
        let env = EditorEnvironment::new(local, client.clone(), id.as_str(), TerminalSwitch::new(true));
        let rules = Rules::default();
        let mut builder = Session::builder(
            models,
            ProviderProfile::anthropic("claude-opus-4-6"),
            Arc::new(env) as Arc<dyn ExecutionEnvironment>,
        )
        .with_id(id)
        .record(true)
        .gate(rules.clone());
        if let Some(record) = record {
            builder = builder.resume(record);
        }
        let session = builder.build().map_err(|error| failed(error.into()))?;
        let controls = Controls {
            rules,
            closed: Arc::clone(&self.closed),
            directory: directory.display().to_string(),
            title: Mutex::default(),
        };
        Ok(OpenSession::new(session, Arc::new(controls), directory))
    }
}

#[async_trait]
impl AgentHost for Host {
    fn info(&self) -> AgentInfo {
        let script = NamedChoice::new("script", "Script").with_description("A script needs no key.");
        AgentInfo::new("acp_agent", env!("CARGO_PKG_VERSION"))
            .with_auth_methods([script])
            .with_loading(true)
            .with_lists(true)
            .with_deletion(true)
            .with_logout(true)
    }

    async fn authenticate(&self, _method: &str) -> Result<(), HostError> {
        Ok(())
    }

    async fn logout(&self) -> Result<(), HostError> {
        Ok(())
    }

    async fn delete_session(&self, id: &str) -> Result<(), HostError> {
        let removed = self.closed.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
        removed.map(drop).ok_or_else(|| HostError::NoSuchSession(id.to_owned()))
    }

    async fn new_session(&self, request: NewSession, client: &Client) -> Result<OpenSession, HostError> {
        self.open(&request.directory, None, client)
    }

    async fn load_session(
        &self,
        id: &str,
        request: NewSession,
        client: &Client,
    ) -> Result<OpenSession, HostError> {
        let closed = self.closed.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned();
        let (record, directory) = closed.ok_or_else(|| HostError::NoSuchSession(id.to_owned()))?;
        if request.directory != Path::new(&directory) {
            return Err(HostError::OtherDirectory { id: id.to_owned(), directory: directory.into() });
        }
        self.open(&request.directory, Some(record), client)
    }

    async fn list_sessions(&self, _request: SessionQuery) -> Result<SessionPage, HostError> {
        let closed = self.closed.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(SessionPage::new(
            closed.iter().map(|(id, (_, directory))| SessionSummary::new(id, directory)).collect(),
        ))
    }
}

#[async_trait]
impl SessionControls for Controls {
    fn settings(&self) -> SessionSettings {
        let modes =
            SessionModes { current: "ask".to_owned(), available: vec![NamedChoice::new("ask", "Ask")] };
        SessionSettings::default()
            .with_modes(modes)
            .with_commands([SlashCommand::new("help", "Says what this agent does")])
            .with_title(self.title.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    fn observe(&self, event: &SessionEvent) {
        if let EventKind::UserInput { content, .. } = &event.kind {
            let mut title = self.title.lock().unwrap_or_else(PoisonError::into_inner);
            title.get_or_insert_with(|| content.clone());
        }
    }

    fn cost(&self) -> Option<Money> {
        Some(Money::ZERO)
    }

    fn context_window(&self) -> Option<u64> {
        Some(100_000)
    }

    async fn allow_always(&self, request: &ApprovalRequest) -> Result<(), HostError> {
        self.rules.0.lock().unwrap_or_else(PoisonError::into_inner).extend(request.suggested_rules.clone());
        Ok(())
    }

    fn can_allow_always(&self) -> bool {
        true
    }

    async fn set_mode(&self, mode: &str) -> Result<(), HostError> {
        if mode == "ask" { Ok(()) } else { Err(HostError::Invalid(format!("there is no mode `{mode}`"))) }
    }

    async fn run_command(
        &self,
        _name: &str,
        _input: &str,
        _session: &pintle_agent::SessionHandle,
    ) -> Result<pintle_acp::CommandResult, HostError> {
        Ok(pintle_acp::CommandResult::Text("I follow a script: write, run or wait.".to_owned()))
    }

    async fn close(&self, session: Session) {
        let (id, handle) = (session.id().to_string(), session.handle());
        // Fails only if the session has ended.
        let _ = session.handle().stop_turn();
        session.detach().await;
        if let Ok(record) = handle.record() {
            let mut closed = self.closed.lock().unwrap_or_else(PoisonError::into_inner);
            closed.insert(id, (record, self.directory.clone()));
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    AcpAgent::new(Host::default()).serve(tokio::io::stdin(), tokio::io::stdout()).await?;
    Ok(())
}
