//! Rounds of a session with a fake model and a tool that does nothing.
#![expect(clippy::disallowed_methods, reason = "measures sessions without a host")]

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use async_trait::async_trait;
use futures_util::stream;
use pintle_agent::{OutcomeStatus, ProviderProfile, Session, SessionConfig};
use pintle_env::MemoryEnvironment;
use pintle_llm::{
    Client, Error, EventStream, Finish, FinishReason, Message, ProviderAdapter, Request, Response, Role,
    StreamEvent, ToolCall, ToolDefinition,
};
use pintle_tools::{DefinitionError, DynTool, Effect, ToolContext, ToolError, ToolOutput};
use serde_json::{Value, json};

use crate::block_on;

/// A few rounds: the cost of a session and its first request.
pub(crate) fn short() {
    block_on(rounds(10));
}

/// Many rounds: the cost of a round and its growth with the history.
pub(crate) fn long() {
    block_on(rounds(200));
}

async fn rounds(count: usize) {
    let model = Model { rounds: count, asked: AtomicUsize::new(0) };
    let client = Client::builder().provider(model).build().expect("one provider is enough");
    let mut profile = ProviderProfile::openai("gpt-bench");
    profile.tool_registry.register(NoopTool).expect("the tool is well formed");
    let mut config = SessionConfig::default();
    config.limits.enable_loop_detection = false;
    let builder = Session::builder(client, profile, Arc::new(MemoryEnvironment::new("/project")));
    let session = builder.with_config(config).build().expect("it is complete");
    let mut run = session.submit("Go on.");
    while run.next().await.is_some() {}
    assert_eq!(run.await.expect("the session serves it").status, OutcomeStatus::Completed);
    session.close().await;
}

/// A model that calls the tool in each round and then responds with a text.
#[derive(Debug)]
struct Model {
    rounds: usize,
    asked: AtomicUsize,
}

impl Model {
    fn message(&self) -> Message {
        let round = self.asked.fetch_add(1, Ordering::Relaxed);
        if round < self.rounds {
            let call = ToolCall::from_raw(format!("call_{round}"), "note", r#"{"text":"noted"}"#);
            Message::new(Role::Assistant, vec![call.into()])
        } else {
            Message::assistant("Done.")
        }
    }
}

#[async_trait]
impl ProviderAdapter for Model {
    fn name(&self) -> &str {
        "openai"
    }

    async fn complete(&self, request: &Request) -> Result<Response, Error> {
        let message = self.message();
        let called = message.tool_calls().next().is_some();
        let finish = FinishReason::new(if called { Finish::ToolCalls } else { Finish::Stop });
        Ok(Response::new("openai", request.model.clone(), message).with_finish_reason(finish))
    }

    async fn stream(&self, request: &Request) -> Result<EventStream, Error> {
        let response = self.complete(request).await?;
        let mut events = vec![StreamEvent::StreamStart { id: None, model: None, warnings: Vec::new() }];
        events.extend(response.tool_calls().cloned().map(|tool_call| StreamEvent::ToolCallEnd { tool_call }));
        let (finish_reason, usage) = (response.finish_reason.clone(), response.usage.clone());
        events.push(StreamEvent::Finish { finish_reason, usage, response: Box::new(response) });
        Ok(Box::pin(stream::iter(events.into_iter().map(Ok))))
    }
}

struct NoopTool;

#[async_trait]
impl DynTool for NoopTool {
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
