//! `delegate`: one call that spawns a subagent of a type that the application defined, and waits for its result.

use std::fmt::Write as _;
use std::sync::Arc;

use async_trait::async_trait;
use pintle_llm::ToolDefinition;
use pintle_tools::{
    DefinitionError, DynTool, Effect, ToolContext, ToolError, ToolKind, ToolOutput, ToolRegistry,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Roster, SpawnRequest, output_of, spawn_and_wait};
use crate::subagent::subagent_type;

const NAME: &str = "delegate";

/// Adds the tool, if the application has defined types. A tool of the same name is kept.
pub(in crate::subagent) fn register(registry: &mut ToolRegistry, roster: &Arc<Roster>) {
    if roster.types.is_empty() || registry.get(NAME).is_some() {
        return;
    }
    if let Err(error) = registry.register(Delegate(Arc::clone(roster))) {
        tracing::warn!(%error, "the tool for subagents is left out");
    }
}

struct Delegate(Arc<Roster>);

#[derive(Deserialize)]
struct DelegateInput {
    agent: String,
    task: String,
}

#[async_trait]
impl DynTool for Delegate {
    fn definition(&self) -> Result<ToolDefinition, DefinitionError> {
        let mut description =
            include_str!("../../../prompts/subagent/tools/delegate.md").trim_end().to_owned();
        for agent in self.0.types.iter() {
            let _ = write!(description, "\n* `{}`: {}", agent.name, agent.description);
        }
        let names: Vec<&str> = self.0.types.iter().map(|agent| agent.name.as_str()).collect();
        let parameters = json!({
            "type": "object",
            "properties": {
                "agent": {"type": "string", "enum": names, "description": "The agent."},
                "task": {"type": "string", "description": "The task, complete in itself."},
            },
            "required": ["agent", "task"],
            "additionalProperties": false,
        });
        ToolDefinition::new(NAME, description, parameters)
            .map_err(|error| DefinitionError::refused(NAME, error))
    }

    /// The gates check each call of the subagent separately.
    fn effect(&self) -> Effect {
        Effect::Read
    }

    fn is_repeatable(&self) -> bool {
        false
    }

    fn canonical_kind(&self) -> Option<String> {
        Some(ToolKind::SpawnAgent.as_str().to_owned())
    }

    fn waits(&self) -> bool {
        true
    }

    async fn call_json(&self, arguments: Value, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let DelegateInput { agent, task } = serde_json::from_value(arguments)
            .map_err(|error| ToolError::invalid_arguments(error.to_string()))?;
        let kind = subagent_type::find(&self.0.types, &agent).map_err(ToolError::invalid_arguments)?;
        let mut request = SpawnRequest::new(task);
        request.settings = kind.settings();
        let (_, report) = spawn_and_wait(&self.0, request, cx).await?;
        Ok(output_of(&report))
    }
}
