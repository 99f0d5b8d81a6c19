//! `invoke_agent` of gemini-cli 0.61: one call that spawns an agent, waits for it and returns its last text. Release
//! 0.27 had a single fixed agent instead.

use std::sync::Arc;

use pintle_tools::{Effect, Tool, ToolContext, ToolError, ToolKind, ToolOutput, tool_properties};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{BuiltInTools, Roster, SpawnRequest, output_of, spawn_and_wait};
use crate::protocol::SubagentRole;

pub(super) fn tools(roster: &Arc<Roster>) -> BuiltInTools {
    BuiltInTools::new().with_tool(InvokeAgent(Arc::clone(roster)))
}

struct InvokeAgent(Arc<Roster>);

/// The arguments of `invoke_agent`.
#[derive(Debug, Deserialize, JsonSchema)]
struct InvokeAgentInput {
    /// `codebase_investigator` changes nothing.
    agent_name: AgentName,
    /// The task, complete in itself: the agent knows nothing of this conversation.
    #[schemars(description = "")]
    prompt: String,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum AgentName {
    Generalist,
    CodebaseInvestigator,
}

impl Tool for InvokeAgent {
    type Input = InvokeAgentInput;

    tool_properties! {
        name: "invoke_agent",
        description: include_str!("../../../prompts/subagent/tools/gemini/invoke_agent.md"),
        // The gates check each call of the agent separately.
        effect: Effect::Read,
        repeatable: false,
        // The new subagent is recorded before it starts.
        declares_changes: true,
        kind: ToolKind::SpawnAgent.as_str(),
        waits: true,
    }

    async fn call(&self, input: InvokeAgentInput, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let mut request = SpawnRequest::new(input.prompt);
        request.settings.role = match input.agent_name {
            AgentName::Generalist => SubagentRole::Worker,
            AgentName::CodebaseInvestigator => SubagentRole::Explorer,
        };
        let (_, report) = spawn_and_wait(&self.0, request, cx).await?;
        Ok(output_of(&report))
    }
}
