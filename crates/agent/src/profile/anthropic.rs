//! The profile for Claude (loop specification, section 3.5).

use std::sync::Arc;
use std::time::Duration;

use pintle_tools::builtin::{EditFile, Glob, Grep, ReadFile, Shell, WriteFile};

use super::{ProviderProfile, UnknownModel, registry_of};

pub(super) const ID: &str = "anthropic";

pub(super) const UNKNOWN_MODEL: UnknownModel =
    UnknownModel { context_window_size: 200_000, supports_reasoning: true };

/// How long a command may run if the call does not say: longer than elsewhere, as these models expect it.
const SHELL_TIMEOUT: Duration = Duration::from_secs(120);

pub(super) fn profile(model: String) -> ProviderProfile {
    ProviderProfile {
        base_instructions: include_str!("anthropic.md").to_owned(),
        tool_registry: registry_of([
            Arc::new(ReadFile::new()),
            Arc::new(WriteFile::new()),
            Arc::new(EditFile::new()),
            Arc::new(Shell::with_default_timeout(SHELL_TIMEOUT)),
            Arc::new(Grep::new()),
            Arc::new(Glob::new()),
        ]),
        supports_parallel_tool_calls: true,
        ..ProviderProfile::new(ID, model)
    }
    .with_doc_files(["AGENTS.md", "CLAUDE.md"])
}
