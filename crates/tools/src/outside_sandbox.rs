//! Commands that run outside of the sandbox of their environment.

use std::sync::Arc;

use async_trait::async_trait;
use pintle_llm::ToolDefinition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::context::ToolContext;
use crate::error::{DefinitionError, ToolError};
use crate::kind::ToolKind;
use crate::registry::{RegisteredTool, ToolRegistry};
use crate::tool::{DynTool, Effect, ToolInput, ToolOutput};
use crate::truncate::TruncationRule;

/// Name of the argument by which a call leaves the sandbox.
pub const OUTSIDE_SANDBOX: &str = "outside_sandbox";

/// Description of the argument, for the model.
const DESCRIPTION: &str = include_str!("../prompts/outside_sandbox.md").trim_ascii_end();

/// Where a command runs in an environment that has a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SandboxSide {
    /// In the sandbox.
    Inside,
    /// Outside of it, with all permissions of the user.
    Outside,
}

impl SandboxSide {
    /// Returns the side as text that follows "it runs", such as `in the sandbox`.
    #[must_use]
    pub const fn as_words(self) -> &'static str {
        match self {
            Self::Inside => "in the sandbox",
            Self::Outside => "outside of the sandbox",
        }
    }
}

impl ToolRegistry {
    /// Adds the optional argument [`outside_sandbox`](OUTSIDE_SANDBOX) to the tools that start commands: the tools of
    /// the kind `shell` with an argument `command` or `cmd`. A call that sets it runs in the environment that
    /// [`outside_sandbox`](pintle_env::ExecutionEnvironment::outside_sandbox) returns, and always needs an approval.
    /// Tools that already have the argument are unchanged.
    ///
    /// # Errors
    ///
    /// A schema that no provider would accept, which is not expected. The tools before it are changed.
    pub fn offer_outside_sandbox(&mut self) -> Result<(), DefinitionError> {
        let tools: Vec<Arc<RegisteredTool>> = self.clone().into_iter().collect();
        for tool in tools.into_iter().filter(|tool| runs_commands(tool)) {
            let is_known = has_property(&tool, |name| name == OUTSIDE_SANDBOX);
            // Free text cannot contain a further argument.
            if !is_known && tool.definition().grammar.is_none() {
                self.register(UnsandboxedTool { tool })?;
            }
        }
        Ok(())
    }
}

/// Returns whether a call of the tool starts a command in the environment, and so in its sandbox. Tools of the same
/// kind that work on a running command do not accept a command.
pub(crate) fn runs_commands(tool: &RegisteredTool) -> bool {
    tool.effect() == Effect::Execute
        && tool.kind() == ToolKind::Shell.as_str()
        && has_property(tool, |name| matches!(name, "command" | "cmd"))
}

fn has_property(tool: &RegisteredTool, is_meant: impl Fn(&str) -> bool) -> bool {
    let properties = tool.definition().parameters.get("properties").and_then(Value::as_object);
    properties.is_some_and(|properties| properties.keys().any(|name| is_meant(name)))
}

/// A tool with the additional argument.
struct UnsandboxedTool {
    tool: Arc<RegisteredTool>,
}

#[async_trait]
impl DynTool for UnsandboxedTool {
    fn definition(&self) -> Result<ToolDefinition, DefinitionError> {
        let mut definition = self.tool.definition().clone();
        if let Some(schema) = definition.parameters.as_object_mut()
            && let Some(properties) =
                schema.entry("properties").or_insert_with(|| Map::new().into()).as_object_mut()
        {
            let property = json!({"type": "boolean", "description": DESCRIPTION});
            properties.insert(OUTSIDE_SANDBOX.to_owned(), property);
        }
        Ok(definition)
    }

    fn effect(&self) -> Effect {
        self.tool.effect()
    }

    fn is_repeatable(&self) -> bool {
        self.tool.is_repeatable()
    }

    fn declares_changes(&self) -> bool {
        self.tool.tool().declares_changes()
    }

    fn canonical_kind(&self) -> Option<String> {
        Some(self.tool.kind().to_owned())
    }

    fn truncation(&self) -> Option<TruncationRule> {
        Some(self.tool.truncation())
    }

    fn aliases(&self) -> Vec<(String, String)> {
        self.tool.aliases().to_vec()
    }

    fn waits(&self) -> bool {
        self.tool.waits()
    }

    fn can_dry_run(&self) -> bool {
        self.tool.tool().can_dry_run()
    }

    fn parse(&self, arguments: &Value) -> Result<ToolInput, ToolError> {
        let mut arguments = arguments.clone();
        let wish = arguments.as_object_mut().and_then(|fields| fields.remove(OUTSIDE_SANDBOX));
        let mut input = self.tool.tool().parse(&arguments)?;
        input.leaves_sandbox = wish == Some(Value::Bool(true));
        Ok(input)
    }

    async fn call_parsed(&self, input: ToolInput, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let tool = self.tool.tool();
        if !input.leaves_sandbox {
            return tool.call_parsed(input, cx).await;
        }
        let env = cx.env.outside_sandbox().ok_or_else(|| {
            ToolError::failed(format!(
                "no command can leave the sandbox here; make the call without {OUTSIDE_SANDBOX}"
            ))
        })?;
        // An approval of a command does not cover later input to it.
        let background = cx.background.without_input();
        tool.call_parsed(input, &ToolContext { env, background, ..cx.clone() }).await
    }

    async fn call_json(&self, arguments: Value, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        self.call_parsed(self.parse(&arguments)?, cx).await
    }
}

#[cfg(test)]
mod tests;
