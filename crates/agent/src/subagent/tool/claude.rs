//! `Task` of Claude Code 2.1.32: one call that spawns an agent, waits for it and returns its last text.

use std::sync::Arc;

use pintle_tools::{Effect, Tool, ToolContext, ToolError, ToolKind, ToolOutput, tool_properties};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{BuiltInTools, Roster, SpawnRequest, output_of, send, spawn_and_wait, wait_until_idle};
use crate::protocol::SubagentRole;

pub(super) fn tools(roster: &Arc<Roster>) -> BuiltInTools {
    BuiltInTools::new().with_tool(Task(Arc::clone(roster)))
}

struct Task(Arc<Roster>);

/// The arguments of `Task`.
#[derive(Debug, Deserialize, JsonSchema)]
struct TaskInput {
    /// The task in a few words, for people.
    #[schemars(description = "")]
    description: String,
    /// The task, complete in itself: the agent knows nothing of this conversation.
    #[schemars(description = "")]
    prompt: String,
    /// `Explore` changes nothing.
    subagent_type: SubagentType,
    /// Another model than yours.
    #[schemars(description = "")]
    model: Option<Model>,
    /// The id of a finished agent to continue with.
    resume: Option<String>,
    /// How often its model may answer. Default: without limit.
    #[schemars(description = "")]
    max_turns: Option<u64>,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
enum SubagentType {
    #[serde(rename = "general-purpose")]
    GeneralPurpose,
    Explore,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Model {
    Sonnet,
    Opus,
    Haiku,
}

impl Model {
    fn as_str(self) -> &'static str {
        match self {
            Self::Sonnet => "sonnet",
            Self::Opus => "opus",
            Self::Haiku => "haiku",
        }
    }
}

impl Tool for Task {
    type Input = TaskInput;

    tool_properties! {
        name: "Task",
        description: include_str!("../../../prompts/subagent/tools/claude/task.md"),
        // The gates check each call of the agent separately.
        effect: Effect::Read,
        repeatable: false,
        kind: ToolKind::SpawnAgent.as_str(),
        waits: true,
    }

    async fn call(&self, input: TaskInput, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        tracing::debug!(description = input.description, "spawning a subagent");
        let (agent, report) = if let Some(id) = &input.resume {
            let agent = self.0.find(id)?;
            send(&agent, input.prompt, false)?;
            let report = wait_until_idle(&agent, cx).await?;
            (agent, report)
        } else {
            let mut request = SpawnRequest::new(input.prompt);
            request.settings.model = input.model.map(|model| model.as_str().to_owned());
            request.settings.max_turns = input.max_turns.unwrap_or(0);
            request.settings.role = match input.subagent_type {
                SubagentType::GeneralPurpose => SubagentRole::Worker,
                SubagentType::Explore => SubagentRole::Explorer,
            };
            spawn_and_wait(&self.0, request, cx).await?
        };
        let preface = format!("agentId: {} (for resume)\n\n", agent.id());
        Ok(output_of(&report).with_preface(preface))
    }
}
