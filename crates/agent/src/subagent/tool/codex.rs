//! `spawn_agent`, `send_input`, `wait` and `close_agent` in the form of codex 0.98.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::select_all;
use pintle_tools::{
    Effect, Tool, ToolContext, ToolError, ToolErrorKind, ToolKind, ToolOutput, TruncationRule,
    tool_properties,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{BuiltInTools, Roster, SpawnRequest, SubagentHandle, send};
use crate::protocol::{SubagentRole, SubagentStatus};

/// Default time-out of `wait`, in milliseconds.
const DEFAULT_WAIT_MS: f64 = 30_000.0;

/// Shortest and longest time-out of `wait`, in milliseconds.
const WAIT_MS: (f64, f64) = (10_000.0, 300_000.0);

pub(super) fn tools(roster: &Arc<Roster>) -> BuiltInTools {
    BuiltInTools::new()
        .with_tool(SpawnAgent(Arc::clone(roster)))
        .with_tool(SendInput(Arc::clone(roster)))
        .with_tool(Wait(Arc::clone(roster)))
        .with_tool(CloseAgent(Arc::clone(roster)))
}

/// Status of an agent in the JSON of codex.
fn status(agent: &SubagentHandle) -> Value {
    let report = agent.report();
    match report.status {
        SubagentStatus::Running => json!("running"),
        SubagentStatus::Completed if report.warning.is_some() => {
            json!({ "completed": report.text_with_warning() })
        }
        SubagentStatus::Completed => json!({ "completed": report.output }),
        SubagentStatus::Failed => {
            let reason = report.reason.as_deref().unwrap_or("it failed");
            json!({ "errored": format!("{reason}. Last message: {}", report.text()) })
        }
    }
}

struct SpawnAgent(Arc<Roster>);

/// The arguments of `spawn_agent`.
#[derive(Debug, Deserialize, JsonSchema)]
struct SpawnAgentInput {
    /// The task, complete in itself: the agent knows nothing of this conversation.
    #[schemars(description = "")]
    message: String,
    /// `explorer` changes nothing.
    agent_type: Option<AgentType>,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum AgentType {
    Default,
    Explorer,
    Worker,
}

impl Tool for SpawnAgent {
    type Input = SpawnAgentInput;

    tool_properties! {
        name: "spawn_agent",
        description: include_str!("../../../prompts/subagent/tools/codex/spawn_agent.md"),
        // The gates check each call of the agent separately.
        effect: Effect::Read,
        repeatable: false,
        // The new subagent is recorded before it starts.
        declares_changes: true,
    }

    async fn call(&self, input: SpawnAgentInput, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let mut request = SpawnRequest::new(input.message);
        request.settings.role = match input.agent_type {
            Some(AgentType::Explorer) => SubagentRole::Explorer,
            Some(AgentType::Default | AgentType::Worker) | None => SubagentRole::Worker,
        };
        let agent = self.0.spawn(&cx.call_id, request).await?;
        Ok(ToolOutput::new(json!({ "agent_id": agent.id() }).to_string()))
    }
}

struct SendInput(Arc<Roster>);

/// The arguments of `send_input`.
#[derive(Debug, Deserialize, JsonSchema)]
struct SendInputInput {
    /// The id that spawn_agent gave.
    #[schemars(description = "")]
    id: String,
    /// The message.
    #[schemars(description = "")]
    message: String,
    /// Whether the agent stops for the message. Default: false.
    interrupt: Option<bool>,
}

impl Tool for SendInput {
    type Input = SendInputInput;

    tool_properties! {
        name: "send_input",
        description: include_str!("../../../prompts/subagent/tools/codex/send_input.md"),
        effect: Effect::Read,
        repeatable: false,
    }

    async fn call(&self, input: SendInputInput, _cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let agent = self.0.find(&input.id)?;
        send(&agent, input.message, input.interrupt.unwrap_or(false))?;
        Ok(ToolOutput::new(json!({ "agent_id": agent.id(), "status": status(&agent) }).to_string()))
    }
}

struct Wait(Arc<Roster>);

/// The arguments of `wait`.
#[derive(Debug, Deserialize, JsonSchema)]
struct WaitInput {
    /// The first that has finished ends the wait.
    ids: Vec<String>,
    /// Milliseconds from 10000 to 300000. Default: 30000.
    timeout_ms: Option<f64>,
}

impl Tool for Wait {
    type Input = WaitInput;

    tool_properties! {
        name: "wait",
        description: include_str!("../../../prompts/subagent/tools/codex/wait.md"),
        effect: Effect::Read,
        truncation: TruncationRule::of_kind(ToolKind::SpawnAgent.as_str()),
        waits: true,
    }

    async fn call(&self, input: WaitInput, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let agents: Vec<SubagentHandle> =
            input.ids.iter().map(|id| self.0.find(id)).collect::<Result<_, _>>()?;
        if agents.is_empty() {
            return Err(ToolError::invalid_arguments("ids is empty; name one agent at least"));
        }
        let (min, max) = WAIT_MS;
        let timeout_ms = input.timeout_ms.unwrap_or(DEFAULT_WAIT_MS).clamp(min, max);
        let timeout = Duration::from_millis(timeout_ms as u64);
        let first_idle = select_all(agents.iter().map(|agent| Box::pin(agent.wait_until_idle())));
        let timed_out = tokio::select! {
            biased;
            () = cx.cancel.cancelled() => {
                return Err(ToolError::new(ToolErrorKind::Cancelled, "the call was cancelled while the agents worked"));
            }
            waited = tokio::time::timeout(timeout, first_idle) => waited.is_err(),
        };
        let finished = agents.iter().filter(|agent| agent.status() != SubagentStatus::Running);
        let status: Map<String, Value> =
            finished.map(|agent| (agent.id().to_owned(), status(agent))).collect();
        Ok(ToolOutput::new(json!({ "status": status, "timed_out": timed_out }).to_string()))
    }
}

struct CloseAgent(Arc<Roster>);

/// The arguments of `close_agent`.
#[derive(Debug, Deserialize, JsonSchema)]
struct CloseAgentInput {
    /// The id that spawn_agent gave.
    #[schemars(description = "")]
    id: String,
}

impl Tool for CloseAgent {
    type Input = CloseAgentInput;

    tool_properties! {
        name: "close_agent",
        description: include_str!("../../../prompts/subagent/tools/codex/close_agent.md"),
        effect: Effect::Read,
        truncation: TruncationRule::of_kind(ToolKind::SpawnAgent.as_str()),
    }

    async fn call(&self, input: CloseAgentInput, _cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let agent = self.0.find(&input.id)?;
        let before = status(&agent);
        agent.close_and_report().await;
        Ok(ToolOutput::new(json!({ "status": before }).to_string()))
    }
}
