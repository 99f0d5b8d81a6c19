//! Which names and forms a profile's tools have.

use pintle_tools::ToolRegistry;

/// The two faces of a family's tools (design, section 7).
///
/// What the tools do is the same in both; names, parameters and the form of results differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
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
}
