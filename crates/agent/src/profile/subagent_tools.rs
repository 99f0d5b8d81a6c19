//! Forms of the tools for subagents.

use super::{Toolset, anthropic, gemini, openai};

/// Form of a profile's tools for subagents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SubagentTools {
    /// `spawn_agent`, `send_input`, `wait` and `close_agent` of the loop specification.
    Spec,
    /// The same four tools with the parameters and results of codex.
    Codex,
    /// `Task` of Claude Code.
    ClaudeCode,
    /// `invoke_agent` of gemini-cli.
    GeminiCli,
}

impl SubagentTools {
    /// Returns the form in this toolset of a family.
    pub(crate) fn for_family(family: &str, toolset: Toolset) -> Self {
        match (toolset, family) {
            (Toolset::Native, openai::ID) => Self::Codex,
            (Toolset::Native, anthropic::ID) => Self::ClaudeCode,
            (Toolset::Native, gemini::ID) => Self::GeminiCli,
            (Toolset::Native | Toolset::Spec, _) => Self::Spec,
        }
    }

    /// Returns the toolset that the form belongs to.
    pub(crate) fn toolset(self) -> Toolset {
        match self {
            Self::Spec => Toolset::Spec,
            Self::Codex | Self::ClaudeCode | Self::GeminiCli => Toolset::Native,
        }
    }
}
