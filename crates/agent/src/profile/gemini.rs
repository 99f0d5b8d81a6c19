//! The profile for Gemini (loop specification, section 3.6).

use std::sync::Arc;

use pintle_tools::builtin::{EditFile, Glob, Grep, ListDir, ReadFile, ReadManyFiles, Shell, WriteFile};

use super::{ProviderProfile, UnknownModel, registry_of};

pub(super) const ID: &str = "gemini";

pub(super) const UNKNOWN_MODEL: UnknownModel =
    UnknownModel { context_window_size: 1_048_576, supports_reasoning: true };

pub(super) fn profile(model: String) -> ProviderProfile {
    ProviderProfile {
        base_instructions: include_str!("gemini.md").to_owned(),
        tool_registry: registry_of([
            Arc::new(ReadFile::new()),
            Arc::new(ReadManyFiles::new()),
            Arc::new(WriteFile::new()),
            Arc::new(EditFile::gemini()),
            Arc::new(Shell::new()),
            Arc::new(Grep::new()),
            Arc::new(Glob::new()),
            Arc::new(ListDir::new()),
        ]),
        supports_parallel_tool_calls: true,
        ..ProviderProfile::new(ID, model)
    }
    .with_doc_files(["AGENTS.md", "GEMINI.md"])
}
