//! The profile for OpenAI's models (loop specification, section 3.4).

use std::sync::Arc;

use pintle_tools::builtin::{ApplyPatch, Glob, Grep, ReadFile, Shell, WriteFile};

use super::{ProviderProfile, UnknownModel, registry_of};

pub(super) const ID: &str = "openai";

pub(super) const UNKNOWN_MODEL: UnknownModel =
    UnknownModel { context_window_size: 128_000, supports_reasoning: true };

pub(super) fn profile(model: String) -> ProviderProfile {
    ProviderProfile {
        base_instructions: include_str!("openai.md").to_owned(),
        tool_registry: registry_of([
            Arc::new(ReadFile::new()),
            Arc::new(ApplyPatch::new()),
            Arc::new(WriteFile::new()),
            Arc::new(Shell::new()),
            Arc::new(Grep::new()),
            Arc::new(Glob::new()),
        ]),
        supports_parallel_tool_calls: true,
        ..ProviderProfile::new(ID, model)
    }
    .with_doc_files(["AGENTS.md", ".codex/instructions.md"])
}
