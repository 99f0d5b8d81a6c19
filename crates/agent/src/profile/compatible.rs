//! The profile for models behind Chat Completions, local ones above all.

use pintle_tools::builtin::{EditFile, Glob, Grep, ReadFile, Shell, WriteFile};

use super::kit::Kit;
use super::toolset::Equipment;
use super::toolset_options::ToolsetOptions;
use super::{ProviderProfile, UnknownModel};
use crate::prompt::base::COMPATIBLE;
use crate::subagent::SubagentTools;

pub(super) const ID: &str = "openai-compatible";

/// Small, since a window that is thought too large fails late and for no visible reason.
pub(super) const UNKNOWN_MODEL: UnknownModel =
    UnknownModel { context_window_size: 32_768, supports_reasoning: false };

pub(super) fn profile(model: String) -> ProviderProfile {
    let Equipment { tools, instructions, .. } = equipment(&ToolsetOptions::default());
    ProviderProfile {
        base_instructions: instructions.into(),
        tool_registry: tools,
        subagent_tools: Some(SubagentTools::Spec),
        ..ProviderProfile::new(ID, model)
    }
}

/// The same in both toolsets: these models were trained on no agent's tools in particular.
pub(super) fn equipment(options: &ToolsetOptions) -> Equipment {
    let tools = Kit::new()
        .with(ReadFile::new())
        .with(WriteFile::new())
        .with(EditFile::new())
        .with(Shell::new())
        .with(Grep::new())
        .with(Glob::new())
        .with_all(options.built_in());
    Equipment::new(COMPATIBLE, tools)
}
