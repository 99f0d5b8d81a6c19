//! Clients, profiles and sessions for the model server, as an embedding application sets them up.

use std::{
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use pintle_agent::{
    OutcomeStatus, ProviderProfile, Session, SessionConfig, Start, Timestamp, Toolset, Turn, UserMessage,
};
use pintle_env::LocalEnvironment;
use pintle_llm::{Client, Message, ToolDefinition};
use pintle_providers::{Anthropic, Gemini, OpenAi, OpenAiCompatible};
use pintle_tools::builtin::ApplyPatch;
use pintle_tools::gate::Verdict;
use pintle_tools::pipeline::{Execution, Gate, PreparedCall};
use pintle_tools::{DefinitionError, DynTool, Effect, ToolContext, ToolError, ToolOutput};
use serde_json::{Value, json};

use crate::dialect::Dialect;
use crate::measure::Moment;
use crate::model::Endpoint;

/// A model that is not in the catalog, so that no price lookup is measured.
pub(crate) const MODEL: &str = "gpt-bench";

/// A window larger than any history here. Requests that exceed the window would not be sent.
const WINDOW: u64 = 100_000_000;

/// Bytes of one turn of a long history.
const TURN: usize = 10_000;

/// The times at which tool calls ended.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallTimes(Arc<Mutex<Vec<Moment>>>);

impl CallTimes {
    pub(crate) fn push(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(Moment::now());
    }

    pub(crate) fn take(&self) -> Vec<Moment> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[async_trait]
impl Gate for CallTimes {
    async fn check(&self, _: &PreparedCall) -> Verdict {
        Verdict::ALLOW
    }

    async fn ran(&self, _: &PreparedCall, _: &Execution) {
        self.push();
    }
}

/// A tool in process that does nothing.
#[derive(Debug)]
pub(crate) struct NoopTool {
    name: String,
    output: String,
}

impl NoopTool {
    pub(crate) fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), output: "ok".to_owned() }
    }

    /// Sets the output.
    pub(crate) fn with_output(mut self, output: String) -> Self {
        self.output = output;
        self
    }
}

#[async_trait]
impl DynTool for NoopTool {
    fn definition(&self) -> Result<ToolDefinition, DefinitionError> {
        let parameters = json!({
            "type": "object",
            "properties": {"text": {"type": "string", "description": "What to write down."}},
            "required": ["text"],
            "additionalProperties": false,
        });
        ToolDefinition::new(&self.name, "Writes something down.", parameters)
            .map_err(|source| DefinitionError::refused(&self.name, source))
    }

    fn effect(&self) -> Effect {
        Effect::Read
    }

    async fn call_json(&self, _: Value, _: &ToolContext) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::new(self.output.clone()))
    }
}

/// Returns a client of the OpenAI dialect for this conversation.
pub(crate) fn client(endpoint: &Endpoint) -> Client {
    client_of(Dialect::Responses, endpoint)
}

/// Returns a client of any dialect for this conversation.
pub(crate) fn client_of(dialect: Dialect, endpoint: &Endpoint) -> Client {
    let url = endpoint.base_url();
    let builder = Client::builder();
    let builder = match dialect {
        Dialect::Responses => {
            builder.provider(OpenAi::builder("k-bench").with_base_url(url).build().expect("the URL is valid"))
        }
        Dialect::Messages => builder
            .provider(Anthropic::builder("k-bench").with_base_url(url).build().expect("the URL is valid")),
        Dialect::Gemini => {
            builder.provider(Gemini::builder("k-bench").with_base_url(url).build().expect("the URL is valid"))
        }
        Dialect::Chat => builder.provider(OpenAiCompatible::builder(url).build().expect("the URL is valid")),
    };
    let provider: String = builder.providers().collect();
    builder.default_provider(provider).build().expect("the default is registered")
}

/// Returns a profile of this dialect's models with `apply_patch`, as a free-form tool if `is_custom`.
pub(crate) fn patching_profile(dialect: Dialect, is_custom: bool) -> ProviderProfile {
    let profile = match dialect {
        Dialect::Responses => ProviderProfile::openai(MODEL),
        Dialect::Messages => ProviderProfile::anthropic(MODEL),
        Dialect::Gemini => ProviderProfile::gemini(MODEL),
        Dialect::Chat => ProviderProfile::openai_compatible(MODEL),
    };
    let profile = profile.with_context_window(WINDOW);
    if is_custom {
        return profile.with_toolset(Toolset::Native);
    }
    let profile = profile.with_toolset(Toolset::Spec).without_tool("apply_patch");
    profile.with_tool(ApplyPatch::new()).expect("the tool is well formed")
}

/// Returns the profile of the OpenAI models with the tool that does nothing.
pub(crate) fn profile() -> ProviderProfile {
    let mut profile = ProviderProfile::openai(MODEL).with_context_window(WINDOW);
    profile.tool_registry.register(NoopTool::new("note")).expect("the tool is well formed");
    profile
}

/// Returns a local environment with the same shell as the baseline.
pub(crate) fn environment(directory: &Path) -> Arc<LocalEnvironment> {
    Arc::new(local(directory))
}

/// The same, for a wrapper.
pub(crate) fn local(directory: &Path) -> LocalEnvironment {
    let builder =
        LocalEnvironment::builder(directory).with_host_env(std::env::vars_os()).with_shell("/bin/sh");
    builder.build().expect("the path is absolute")
}

/// Submits a message, reads every event and waits for the outcome.
pub(crate) async fn submit(session: &Session, message: impl Into<UserMessage>) {
    let mut run = session.submit(message);
    while run.next().await.is_some() {}
    let outcome = run.await.expect("the session serves it");
    assert_eq!(outcome.status, OutcomeStatus::Completed, "{:?}", outcome.error);
}

/// Returns a history of `bytes`, in turns of about ten kilobytes.
pub(crate) fn history(bytes: usize) -> Start {
    let size = TURN.min(bytes / 2).max(1);
    let text = "A line of what was said. ".repeat(size / 25 + 1);
    let at = Timestamp::from_millis(1_700_000_000_000);
    let turns = (0..bytes / size).map(|index| match index % 2 {
        0 => Turn::user(text.clone(), at),
        _ => Turn::assistant(Message::assistant(text.clone()), at),
    });
    let mut start = Start::new(config().limits, None);
    start.history = turns.collect();
    start
}

/// Returns limits that no benchmark reaches.
pub(crate) fn config() -> SessionConfig {
    let mut config = SessionConfig::default();
    config.limits.enable_loop_detection = false;
    config.limits.max_parallel_tools = 256;
    config.with_max_subagents(256)
}
