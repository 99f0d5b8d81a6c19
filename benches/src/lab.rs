//! Sessions on a model server: what a host of this library sets up.

use std::{
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use pintle_agent::{OutcomeStatus, ProviderProfile, Session, SessionConfig, Start, Timestamp, Toolset, Turn};
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
use crate::model::Place;

/// A model that the catalog does not know, so that none of its prices is looked for.
pub(crate) const MODEL: &str = "gpt-bench";

/// More tokens than any history here has. What surely does not fit a model's window is not sent.
const WINDOW: u64 = 100_000_000;

/// The bytes of one turn of a long history.
const TURN: usize = 10_000;

/// The points in time after each call of a tool.
#[derive(Clone, Debug, Default)]
pub(crate) struct Moments(Arc<Mutex<Vec<Moment>>>);

impl Moments {
    pub(crate) fn push(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(Moment::now());
    }

    pub(crate) fn take(&self) -> Vec<Moment> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[async_trait]
impl Gate for Moments {
    async fn check(&self, _: &PreparedCall) -> Verdict {
        Verdict::Allow
    }

    async fn ran(&self, _: &PreparedCall, _: &Execution) {
        self.push();
    }
}

/// A tool that does nothing, in process.
#[derive(Debug)]
pub(crate) struct Note {
    name: String,
}

impl Note {
    pub(crate) fn new(name: impl Into<String>) -> Self {
        Self { name: name.into() }
    }
}

#[async_trait]
impl DynTool for Note {
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
        Ok(ToolOutput::new("ok"))
    }
}

/// A client of the OpenAI dialect for this conversation.
pub(crate) fn client(place: &Place) -> Client {
    client_of(Dialect::Responses, place)
}

/// A client of any dialect for this conversation.
pub(crate) fn client_of(dialect: Dialect, place: &Place) -> Client {
    let url = place.base_url();
    let builder = Client::builder();
    let builder = match dialect {
        Dialect::Responses => {
            builder.provider(OpenAi::builder("k-bench").base_url(url).build().expect("it is"))
        }
        Dialect::Messages => {
            builder.provider(Anthropic::builder("k-bench").base_url(url).build().expect("it is"))
        }
        Dialect::Gemini => builder.provider(Gemini::builder("k-bench").base_url(url).build().expect("it is")),
        Dialect::Chat => builder.provider(OpenAiCompatible::builder(url).build().expect("it is")),
    };
    let provider: String = builder.providers().collect();
    builder.default_provider(provider).build().expect("the default is registered")
}

/// The profile of this dialect's models with `apply_patch`, which takes its patch in free form if it is custom.
pub(crate) fn patching(dialect: Dialect, is_custom: bool) -> ProviderProfile {
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

/// The profile of the OpenAI models with the tool that does nothing.
pub(crate) fn profile() -> ProviderProfile {
    let mut profile = ProviderProfile::openai(MODEL).with_context_window(WINDOW);
    profile.tool_registry.register(Note::new("note")).expect("the tool is well formed");
    profile
}

/// The place where tools run, with the shell of the floor.
pub(crate) fn environment(folder: &Path) -> Arc<LocalEnvironment> {
    let builder = LocalEnvironment::builder(folder).host_env(std::env::vars_os()).shell("/bin/sh");
    Arc::new(builder.build().expect("the path is absolute"))
}

/// Has the session do one thing to its end, with a host that reads each event.
pub(crate) async fn submit(session: &Session, text: impl Into<String>) {
    let mut run = session.submit(text);
    while run.next().await.is_some() {}
    let outcome = run.await.expect("the session serves it");
    assert_eq!(outcome.status, OutcomeStatus::Completed, "{:?}", outcome.error);
}

/// So many bytes of conversation, in turns of some ten kilobytes.
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

/// Limits that no benchmark meets.
pub(crate) fn config() -> SessionConfig {
    let mut config = SessionConfig::default();
    config.limits.enable_loop_detection = false;
    config.limits.max_parallel_tools = 256;
    config.with_max_subagents(256)
}
