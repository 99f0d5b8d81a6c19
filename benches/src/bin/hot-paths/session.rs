//! Rounds of a session with a fake model and a tool that does nothing.

use std::sync::Arc;

use async_trait::async_trait;
use pintle_agent::{OutcomeStatus, ProviderProfile, Session, SessionConfig};
use pintle_env::MemoryEnvironment;
use pintle_llm::testing::FakeAdapter;
use pintle_llm::{Client, Message, Role, ToolCall, ToolDefinition};
use pintle_tools::{DefinitionError, DynTool, Effect, ToolContext, ToolError, ToolOutput};
use serde_json::{Value, json};

use crate::block_on;

/// Few rounds: what a session and its first request take.
pub(crate) fn short() {
    block_on(rounds(10));
}

/// Many rounds: what each of them takes, and how it grows with the history.
pub(crate) fn long() {
    block_on(rounds(200));
}

async fn rounds(count: usize) {
    let call = |round: usize| ToolCall::from_raw(format!("call_{round}"), "note", r#"{"text":"noted"}"#);
    let answer = |round: usize| Message::new(Role::Assistant, vec![call(round).into()]);
    let model = (0..count).fold(FakeAdapter::new("openai"), |model, round| model.message(answer(round)));
    let client = Client::builder().provider(model.answer("Done.")).build().expect("one provider is enough");
    let mut profile = ProviderProfile::openai("gpt-bench");
    profile.tool_registry.register(Note).expect("the tool is well formed");
    let mut config = SessionConfig::default();
    config.limits.enable_loop_detection = false;
    let builder = Session::builder(client, profile, Arc::new(MemoryEnvironment::new("/project")));
    let session = builder.config(config).build().expect("it is complete");
    let mut run = session.submit("Go on.");
    while run.next().await.is_some() {}
    assert_eq!(run.await.expect("the session serves it").status, OutcomeStatus::Completed);
    session.close().await;
}

struct Note;

#[async_trait]
impl DynTool for Note {
    fn definition(&self) -> Result<ToolDefinition, DefinitionError> {
        let parameters =
            json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]});
        ToolDefinition::new("note", "Writes something down.", parameters)
            .map_err(|source| DefinitionError::refused("note", source))
    }

    fn effect(&self) -> Effect {
        Effect::Read
    }

    async fn call_json(&self, _: Value, _: &ToolContext) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::new("ok"))
    }
}
