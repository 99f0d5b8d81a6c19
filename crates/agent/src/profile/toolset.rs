//! Which names and forms a profile's tools have.

use pintle_tools::ToolRegistry;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::kit::Kit;
use crate::prompt::base::BasePrompt;

/// The two faces of a family's tools (design, section 7).
///
/// What the tools do is the same in both; names, parameters and the form of results differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Toolset {
    /// Those of the loop specification, the same for all families as far as they share a tool. The library's default.
    #[default]
    Spec,
    /// Those of the family's own agent, on which its models were trained: codex, Claude Code, gemini-cli. Models behind
    /// Chat Completions have no such agent, and the tools of the specification here too.
    Native,
}

/// The tools of a family, with the instructions that speak of them.
pub(super) struct Equipment {
    pub(super) tools: ToolRegistry,
    pub(super) instructions: String,
    /// Tools that the provider runs itself, as its dialect has them.
    pub(super) provider_tools: Vec<Value>,
}

impl Equipment {
    pub(super) fn new(prompt: BasePrompt, tools: Kit) -> Self {
        let tools = tools.into_registry();
        Self { instructions: prompt.text(&tools), tools, provider_tools: Vec::new() }
    }

    pub(super) fn with_provider_tools(mut self, tools: Vec<Value>) -> Self {
        self.provider_tools = tools;
        self
    }
}
