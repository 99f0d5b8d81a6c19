//! Profile for models behind Chat Completions, mostly local ones.

use pintle_tools::builtin::{EditFile, Glob, Grep, ReadFile, Shell, WriteFile};

use super::built_in::BuiltInTools;
use super::toolset::{Toolset, ToolsetParts};
use super::toolset_options::ToolsetOptions;
use super::{ModelDefaults, ProviderProfile};
use crate::prompt::base::COMPATIBLE;

pub(super) const ID: &str = "openai-compatible";

/// A small window, since overestimating it fails late and for no visible reason.
pub(super) const UNKNOWN_MODEL: ModelDefaults =
    ModelDefaults { context_window_size: 32_768, supports_reasoning: false };

pub(super) fn profile(model: String) -> ProviderProfile {
    ProviderProfile::new(ID, model).with_toolset(Toolset::Spec)
}

/// Returns the tools of both toolsets, which are the same: these models were not trained on the tools of any agent.
pub(super) fn toolset_parts(options: &ToolsetOptions) -> ToolsetParts {
    let tools = BuiltInTools::new()
        .with_tool(ReadFile::new())
        .with_tool(WriteFile::new())
        .with_tool(EditFile::new())
        .with_tool(Shell::new())
        .with_tool(Grep::new())
        .with_tool(Glob::new())
        .with_all(options.built_in());
    ToolsetParts::new(COMPATIBLE, tools)
}
