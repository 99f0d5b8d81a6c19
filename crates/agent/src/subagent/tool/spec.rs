//! `spawn_agent`, `send_input`, `wait` and `close_agent` of the loop specification (section 7.2).

use std::sync::Arc;

use pintle_tools::{
    Effect, Tool, ToolContext, ToolError, ToolKind, ToolOutput, TruncationRule, tool_properties,
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{BuiltInTools, Roster, SpawnRequest, send, wait_until_idle};

pub(super) fn tools(roster: &Arc<Roster>) -> BuiltInTools {
    BuiltInTools::new()
        .with_tool(SpawnAgent(Arc::clone(roster)))
        .with_tool(SendInput(Arc::clone(roster)))
        .with_tool(Wait(Arc::clone(roster)))
        .with_tool(CloseAgent(Arc::clone(roster)))
}

struct SpawnAgent(Arc<Roster>);

/// The arguments of `spawn_agent`.
#[derive(Debug, Deserialize, JsonSchema)]
struct SpawnAgentInput {
    /// The task, complete in itself: the subagent knows nothing of this conversation.
    #[schemars(description = "")]
    task: String,
    /// A directory below your own. Default: your own.
    working_dir: Option<String>,
    /// Another model than yours.
    #[schemars(description = "")]
    model: Option<String>,
    /// Default: 0, no limit.
    max_turns: Option<u64>,
}

impl Tool for SpawnAgent {
    type Input = SpawnAgentInput;

    tool_properties! {
        name: "spawn_agent",
        description: include_str!("../../../prompts/subagent/tools/spec/spawn_agent.md"),
        // The gates check each call of the subagent separately.
        effect: Effect::Read,
        repeatable: false,
        // The new subagent is recorded before it starts.
        declares_changes: true,
    }

    async fn call(&self, input: SpawnAgentInput, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let mut request = SpawnRequest::new(input.task);
        request.settings.working_dir = input.working_dir;
        request.settings.model = input.model;
        request.settings.max_turns = input.max_turns.unwrap_or(0);
        let agent = self.0.spawn(&cx.call_id, request).await?;
        Ok(ToolOutput::new(format!("agent_id: {}\nstatus: running", agent.id())))
    }
}

struct SendInput(Arc<Roster>);

/// The arguments of `send_input`.
#[derive(Debug, Deserialize, JsonSchema)]
struct SendInputInput {
    /// The id that spawn_agent gave.
    #[schemars(description = "")]
    agent_id: String,
    /// The message.
    #[schemars(description = "")]
    message: String,
}

impl Tool for SendInput {
    type Input = SendInputInput;

    tool_properties! {
        name: "send_input",
        description: include_str!("../../../prompts/subagent/tools/spec/send_input.md"),
        effect: Effect::Read,
        repeatable: false,
    }

    async fn call(&self, input: SendInputInput, _cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let agent = self.0.find(&input.agent_id)?;
        send(&agent, input.message, false)?;
        Ok(ToolOutput::new(format!("The message was sent to {}.", agent.id())))
    }
}

struct Wait(Arc<Roster>);

/// The arguments of `wait`.
#[derive(Debug, Deserialize, JsonSchema)]
struct WaitInput {
    /// The id that spawn_agent gave.
    #[schemars(description = "")]
    agent_id: String,
}

impl Tool for Wait {
    type Input = WaitInput;

    tool_properties! {
        name: "wait",
        description: include_str!("../../../prompts/subagent/tools/spec/wait.md"),
        effect: Effect::Read,
        truncation: TruncationRule::of_kind(ToolKind::SpawnAgent.as_str()),
        waits: true,
    }

    async fn call(&self, input: WaitInput, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let agent = self.0.find(&input.agent_id)?;
        Ok(ToolOutput::new(wait_until_idle(&agent, cx).await?.for_model()))
    }
}

struct CloseAgent(Arc<Roster>);

/// The arguments of `close_agent`.
#[derive(Debug, Deserialize, JsonSchema)]
struct CloseAgentInput {
    /// The id that spawn_agent gave.
    #[schemars(description = "")]
    agent_id: String,
}

impl Tool for CloseAgent {
    type Input = CloseAgentInput;

    tool_properties! {
        name: "close_agent",
        description: include_str!("../../../prompts/subagent/tools/spec/close_agent.md"),
        effect: Effect::Read,
    }

    async fn call(&self, input: CloseAgentInput, _cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let agent = self.0.find(&input.agent_id)?;
        let report = agent.close_and_report().await;
        Ok(ToolOutput::new(format!("{} is closed. Final status: {}", agent.id(), report.status)))
    }
}
