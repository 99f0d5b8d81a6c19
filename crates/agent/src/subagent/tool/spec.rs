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
        .with(SpawnAgent(Arc::clone(roster)))
        .with(SendInput(Arc::clone(roster)))
        .with(Wait(Arc::clone(roster)))
        .with(CloseAgent(Arc::clone(roster)))
}

struct SpawnAgent(Arc<Roster>);

/// The arguments of `spawn_agent`.
#[derive(Debug, Deserialize, JsonSchema)]
struct SpawnAgentInput {
    /// The task, complete in itself: the subagent knows nothing of this conversation.
    task: String,
    /// The directory that it works in, below your own. Default: your own.
    working_dir: Option<String>,
    /// Another model than yours.
    model: Option<String>,
    /// How often its model may answer; 0, the default, is without limit.
    max_turns: Option<u64>,
}

impl Tool for SpawnAgent {
    type Input = SpawnAgentInput;

    tool_properties! {
        name: "spawn_agent",
        description: "Starts a subagent, which works on a task by itself, with the same files and tools and a \
         conversation of its own, and returns its id at once. Several of them work side by side. Use it for a part \
         of the work that can be described completely and done apart; give no two of them the same files to change. \
         wait gives the result.",
        // The gates check each call of the subagent separately.
        effect: Effect::Read,
        repeatable: false,
        // The new subagent is on record before it starts.
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
    agent_id: String,
    /// The message.
    message: String,
}

impl Tool for SendInput {
    type Input = SendInputInput;

    tool_properties! {
        name: "send_input",
        description: "Sends a message to a subagent. One that works reads it after the calls that it is making; one \
         that has finished goes to work again with it, in the same conversation.",
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
    agent_id: String,
}

impl Tool for Wait {
    type Input = WaitInput;

    tool_properties! {
        name: "wait",
        description: "Waits until a subagent has finished and gives its result: whether it succeeded, how many turns \
         it used, and its last message; of one that failed, what it had said by then.",
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
    agent_id: String,
}

impl Tool for CloseAgent {
    type Input = CloseAgentInput;

    tool_properties! {
        name: "close_agent",
        description: "Ends a subagent, at work or not, and gives its final status. It takes no message afterwards.",
        effect: Effect::Read,
    }

    async fn call(&self, input: CloseAgentInput, _cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let agent = self.0.find(&input.agent_id)?;
        let report = agent.close_and_report().await;
        Ok(ToolOutput::new(format!("{} is closed. Final status: {}", agent.id(), report.status)))
    }
}
