//! Sessions with subagents, with a fake model for each session and an environment in memory.

mod configuration;
mod handle;
mod limits;
mod native;
mod recorded;
mod resumed;
mod retention;
mod stopping;
mod texts;
mod types;
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

/// A provider with one fake model per conversation, chosen by the beginning of the first user message.
#[derive(Debug)]
struct ModelsByTask {
    name: &'static str,
    models: Vec<(&'static str, FakeAdapter)>,
}

impl ModelsByTask {
    /// Creates a provider for a root session whose first message begins with `go`.
    fn new(parent: FakeAdapter) -> Self {
        Self { name: "anthropic", models: vec![("go", parent)] }
    }

    /// Adds the model of a subagent whose task begins with `task`.
    fn subagent(mut self, task: &'static str, model: FakeAdapter) -> Self {
        self.models.push((task, model));
        self
    }

    fn find(&self, request: &Request) -> Result<&FakeAdapter, Error> {
        let first = request.messages.iter().find(|message| message.role == Role::User);
        let text = first.map(|message| message.text()).unwrap_or_default();
        let found = self.models.iter().find(|(task, _)| text.starts_with(task));
        found
            .map(|(_, model)| model)
            .ok_or_else(|| Error::new(ErrorKind::InvalidRequest, format!("no model for {text:?}")))
    }

    /// Requests to the model of one conversation.
    fn requests(&self, task: &str) -> Vec<Request> {
        let found = self.models.iter().find(|(known, _)| *known == task);
        found.map(|(_, model)| model.requests()).expect("a model for this task")
    }
}

#[async_trait]
impl ProviderAdapter for ModelsByTask {
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

/// A tool `meet` whose calls wait for a barrier.
struct BarrierTool(Arc<Barrier>);

#[derive(Deserialize, JsonSchema)]
struct NoInput {}

impl Tool for BarrierTool {
    type Input = NoInput;

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

    async fn call(&self, _input: NoInput, _cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        self.0.wait().await;
        Ok(ToolOutput::new("met"))
    }
}

struct Harness {
    session: Session,
    models: Arc<ModelsByTask>,
    env: Arc<MemoryEnvironment>,
}

impl Harness {
    fn new(models: ModelsByTask) -> Self {
        Self::with(models, SessionConfig::default(), |builder| builder)
    }

    fn with(
        models: ModelsByTask,
        config: SessionConfig,
        change: impl FnOnce(SessionBuilder) -> SessionBuilder,
    ) -> Self {
        Self::of(ProviderProfile::anthropic("claude-opus-4-6"), models, config, change)
    }

    fn of(
        profile: ProviderProfile,
        models: ModelsByTask,
        config: SessionConfig,
        change: impl FnOnce(SessionBuilder) -> SessionBuilder,
    ) -> Self {
        let models = Arc::new(models);
        let env = Arc::new(project_env());
        let client = Client::builder().shared_provider(Arc::clone(&models) as Arc<dyn ProviderAdapter>);
        let quick = RetryPolicy::default().with_base_delay(Duration::from_millis(1));
        let builder = Session::builder(
            client.build().unwrap(),
            profile,
            Arc::clone(&env) as Arc<dyn ExecutionEnvironment>,
        );
        let session = change(builder.with_config(config.with_retry(quick))).build().unwrap();
        Self { session, models, env }
    }

    /// Tool results in the history of the root session, in order.
    fn results(&self) -> Vec<String> {
        let history = self.session.history();
        history
            .iter()
            .flat_map(|turn| turn.item.results().map(|result| result.text()).collect::<Vec<_>>())
            .collect()
    }
}

/// A project with one file, in which `sleep` never returns.
fn project_env() -> MemoryEnvironment {
    let env = MemoryEnvironment::new("/project").with_file("/project/sub/notes.txt", "needle\n");
    env.with_commands(|command| match &command.program {
        Program::Shell(line) if line.starts_with("sleep") => CommandScript::exit(0).hang(),
        Program::Shell(_) | Program::Argv { .. } => CommandScript::exit(0),
    })
}

fn model() -> FakeAdapter {
    FakeAdapter::new("anthropic")
}

/// A response with text and these calls.
fn text_and_calls(text: &str, calls: &[(&str, Value)]) -> Message {
    // Ids are unique within a conversation, as with a real provider.
    static NEXT_ID: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    let text = (!text.is_empty()).then(|| pintle_llm::ContentPart::text(text));
    let calls = calls.iter().map(|(name, arguments)| {
        let id = NEXT_ID.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        ToolCall::from_raw(format!("call_{id}"), *name, arguments.to_string()).into()
    });
    Message::new(Role::Assistant, text.into_iter().chain(calls).collect())
}

fn calls(calls: &[(&str, Value)]) -> Message {
    text_and_calls("", calls)
}

fn spawn(task: &str) -> (&'static str, Value) {
    ("spawn_agent", json!({ "task": task }))
}

fn wait(agent: &str) -> (&'static str, Value) {
    ("wait", json!({ "agent_id": agent }))
}

fn sleep_call() -> Message {
    calls(&[("shell", json!({ "command": "sleep 1000", "timeout_ms": 600_000 }))])
}

fn kind(event: &SessionEvent) -> String {
    serde_json::to_value(event).unwrap()["kind"].as_str().unwrap().to_owned()
}

/// Reads events until one matches. Returns the ones before it separately.
async fn read_until(
    events: &mut super::TreeEvents,
    matches: impl Fn(&SessionEvent) -> bool,
) -> (Vec<SessionEvent>, SessionEvent) {
    let mut before = Vec::new();
    loop {
        let next = tokio::time::timeout(Duration::from_secs(10), events.next()).await;
        let event = next.expect("an event in time").expect("more events");
        if matches(&event) {
            return (before, event);
        }
        before.push(event);
    }
}

async fn read_all(mut events: super::TreeEvents) -> Vec<SessionEvent> {
    let mut all = Vec::new();
    while let Some(event) =
        tokio::time::timeout(Duration::from_secs(10), events.next()).await.expect("an event in time")
    {
        all.push(event);
    }
    all
}

/// Returns whether a subagent has started a tool call.
fn is_subagent_call(event: &SessionEvent) -> bool {
    event.depth == 1 && matches!(event.kind, EventKind::ToolCallStart { .. })
}
