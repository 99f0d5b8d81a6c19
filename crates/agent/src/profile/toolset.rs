//! Names and forms of a profile's tools.

use pintle_tools::ToolRegistry;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::built_in::BuiltInTools;
use crate::prompt::base::BasePrompt;

/// Names and forms of a family's tools (design, section 7).
///
/// Both toolsets do the same; names, parameters and the form of results differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Toolset {
    /// Tools of the loop specification. A tool that several families have is the same in all of them. The library's
    /// default.
    #[default]
    Spec,
    /// Tools of the family's own agent, on which its models were trained: codex, Claude Code, gemini-cli. Models behind
    /// Chat Completions have no such agent and keep the tools of the specification.
    Native,
}

/// The contents of one family's toolset.
pub(super) struct ToolsetParts {
    pub(super) tools: ToolRegistry,
    /// Base instructions, which refer to the tools.
    pub(super) instructions: String,
    /// Tools that the provider runs itself, in its own format.
    pub(super) provider_tools: Vec<Value>,
}

impl ToolsetParts {
    pub(super) fn new(prompt: BasePrompt, tools: BuiltInTools) -> Self {
        let tools = tools.into_registry();
        Self { instructions: prompt.text(&tools), tools, provider_tools: Vec::new() }
    }

    pub(super) fn with_provider_tools(mut self, tools: Vec<Value>) -> Self {
        self.provider_tools = tools;
        self
    }
}
