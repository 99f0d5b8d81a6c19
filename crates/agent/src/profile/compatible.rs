//! The profile for models behind Chat Completions, local ones above all.

use std::sync::Arc;

use pintle_tools::builtin::{EditFile, Glob, Grep, ReadFile, Shell, WriteFile};

use super::{ProviderProfile, UnknownModel, registry_of};

pub(super) const ID: &str = "openai-compatible";

/// Small, since a window that is thought too large fails late and for no visible reason.
pub(super) const UNKNOWN_MODEL: UnknownModel =
    UnknownModel { context_window_size: 32_768, supports_reasoning: false };

pub(super) fn profile(model: String) -> ProviderProfile {
    ProviderProfile {
        base_instructions: include_str!("compatible.md").to_owned(),
        tool_registry: registry_of([
            Arc::new(ReadFile::new()),
            Arc::new(WriteFile::new()),
            Arc::new(EditFile::new()),
            Arc::new(Shell::new()),
            Arc::new(Grep::new()),
            Arc::new(Glob::new()),
        ]),
        ..ProviderProfile::new(ID, model)
    }
}
