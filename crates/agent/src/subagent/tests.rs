//! Sessions with subagents, a fake model for each of them, and a fake place for tools.

mod in_flight;
mod limits;
mod many;
mod native;
mod past;
mod stopping;
mod work;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use pintle_env::{CommandScript, ExecutionEnvironment, MemoryEnvironment, Program};
use pintle_llm::testing::FakeAdapter;
use pintle_llm::{
    Client, Error, ErrorKind, EventStream, Message, ProviderAdapter, Request, Response, RetryPolicy, Role,
    ToolCall,
};
use pintle_tools::{Effect, Tool, ToolContext, ToolError, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Barrier;

use crate::config::SessionConfig;
use crate::profile::ProviderProfile;
use crate::protocol::{EventKind, SessionEvent};
use crate::session::{Session, SessionBuilder};

/// One model for each conversation, told by the words with which it begins.
#[derive(Debug)]
struct Cast {
    name: &'static str,
    parts: Vec<(&'static str, FakeAdapter)>,
}

impl Cast {
    /// A provider whose host's session begins with `go`.
    fn new(parent: FakeAdapter) -> Self {
        Self { name: "anthropic", parts: vec![("go", parent)] }
    }

    fn part(mut self, begins: &'static str, model: FakeAdapter) -> Self {
        self.parts.push((begins, model));
        self
    }

    fn find(&self, request: &Request) -> Result<&FakeAdapter, Error> {
        let first = request.messages.iter().find(|message| message.role == Role::User);
        let text = first.map(|message| message.text()).unwrap_or_default();
        let part = self.parts.iter().find(|(begins, _)| text.starts_with(begins));
        part.map(|(_, model)| model)
            .ok_or_else(|| Error::new(ErrorKind::InvalidRequest, format!("nobody plays {text:?}")))
    }

    /// What was asked of the model of one conversation.
    fn requests(&self, begins: &str) -> Vec<Request> {
        let part = self.parts.iter().find(|(known, _)| *known == begins);
        part.map(|(_, model)| model.requests()).expect("a part of this name")
    }
}

#[async_trait]
impl ProviderAdapter for Cast {
    fn name(&self) -> &str {
        self.name
    }

    async fn complete(&self, request: &Request) -> Result<Response, Error> {
        self.find(request)?.complete(request).await
    }

    async fn stream(&self, request: &Request) -> Result<EventStream, Error> {
        self.find(request)?.stream(request).await
    }
}

/// A tool whose calls return when as many have come as the barrier wants.
struct Meet(Arc<Barrier>);

#[derive(Deserialize, JsonSchema)]
struct MeetInput {}

impl Tool for Meet {
    type Input = MeetInput;

    fn name(&self) -> &str {
        "meet"
    }

    fn description(&self) -> &str {
        "Waits for the others."
    }

    fn effect(&self) -> Effect {
        Effect::Read
    }

    fn waits(&self) -> bool {
        true
    }

    async fn call(&self, _input: MeetInput, _cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        self.0.wait().await;
        Ok(ToolOutput::new("met"))
    }
}

struct Bench {
    session: Session,
    cast: Arc<Cast>,
    env: Arc<MemoryEnvironment>,
}

impl Bench {
    fn new(cast: Cast) -> Self {
        Self::with(cast, SessionConfig::default(), |builder| builder)
    }

    fn with(
        cast: Cast,
        config: SessionConfig,
        change: impl FnOnce(SessionBuilder) -> SessionBuilder,
    ) -> Self {
        Self::of(ProviderProfile::anthropic("claude-opus-4-6"), cast, config, change)
    }

    fn of(
        profile: ProviderProfile,
        cast: Cast,
        config: SessionConfig,
        change: impl FnOnce(SessionBuilder) -> SessionBuilder,
    ) -> Self {
        let cast = Arc::new(cast);
        let env = Arc::new(place());
        let client = Client::builder().shared_provider(Arc::clone(&cast) as Arc<dyn ProviderAdapter>);
        let quick = RetryPolicy::default().with_base_delay(Duration::from_millis(1));
        let builder = Session::builder(
            client.build().unwrap(),
            profile,
            Arc::clone(&env) as Arc<dyn ExecutionEnvironment>,
        );
        let session = change(builder.config(config.with_retry(quick))).build().unwrap();
        Self { session, cast, env }
    }

    /// What the tool calls of the host's session gave to its model, in order.
    fn results(&self) -> Vec<String> {
        let history = self.session.history();
        history
            .iter()
            .flat_map(|turn| turn.item.results().map(|result| result.text()).collect::<Vec<_>>())
            .collect()
    }
}

/// A folder with one file and one folder, whose `sleep` never returns.
fn place() -> MemoryEnvironment {
    let env = MemoryEnvironment::new("/project").with_file("/project/sub/notes.txt", "needle\n");
    env.with_commands(|command| match &command.program {
        Program::Shell(line) if line.starts_with("sleep") => CommandScript::exit(0).hang(),
        Program::Shell(_) | Program::Argv { .. } => CommandScript::exit(0),
    })
}

fn model() -> FakeAdapter {
    FakeAdapter::new("anthropic")
}

/// An answer that makes these calls after saying something.
fn saying(text: &str, calls: &[(&str, Value)]) -> Message {
    // Ids differ between the answers of a conversation, as a provider's do.
    static DRAWN: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    let said = (!text.is_empty()).then(|| pintle_llm::ContentPart::text(text));
    let calls = calls.iter().map(|(name, arguments)| {
        let id = DRAWN.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        ToolCall::from_raw(format!("call_{id}"), *name, arguments.to_string()).into()
    });
    Message::new(Role::Assistant, said.into_iter().chain(calls).collect())
}

fn calling(calls: &[(&str, Value)]) -> Message {
    saying("", calls)
}

fn spawn(task: &str) -> (&'static str, Value) {
    ("spawn_agent", json!({ "task": task }))
}

fn wait(agent: &str) -> (&'static str, Value) {
    ("wait", json!({ "agent_id": agent }))
}

fn sleeping() -> Message {
    calling(&[("shell", json!({ "command": "sleep 1000", "timeout_ms": 600_000 }))])
}

fn kind(event: &SessionEvent) -> String {
    serde_json::to_value(event).unwrap()["kind"].as_str().unwrap().to_owned()
}

/// Reads the events of the tree until one fits.
async fn until(
    events: &mut super::TreeEvents,
    fits: impl Fn(&SessionEvent) -> bool,
) -> (Vec<SessionEvent>, SessionEvent) {
    let mut before = Vec::new();
    loop {
        let next = tokio::time::timeout(Duration::from_secs(10), events.next()).await;
        let event = next.expect("events come").expect("the session goes on");
        if fits(&event) {
            return (before, event);
        }
        before.push(event);
    }
}

async fn rest(mut events: super::TreeEvents) -> Vec<SessionEvent> {
    let mut all = Vec::new();
    while let Some(event) =
        tokio::time::timeout(Duration::from_secs(10), events.next()).await.expect("it ends")
    {
        all.push(event);
    }
    all
}

/// Whether a subagent runs a command.
fn works(event: &SessionEvent) -> bool {
    event.depth == 1 && matches!(event.kind, EventKind::ToolCallStart { .. })
}
