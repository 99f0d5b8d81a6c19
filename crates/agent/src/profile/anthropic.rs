//! The profile for Claude (loop specification, section 3.5).

use std::sync::Arc;
use std::time::Duration;

use pintle_tools::builtin::{EditFile, Glob, Grep, ReadFile, Shell, WriteFile};
use pintle_tools::native::anthropic;

use super::toolset::{Equipment, Toolset};
use super::{ProviderProfile, UnknownModel, registry_of};
use crate::prompt::base::{ANTHROPIC_NATIVE, ANTHROPIC_SPEC};

pub(super) const ID: &str = "anthropic";

pub(super) const UNKNOWN_MODEL: UnknownModel =
    UnknownModel { context_window_size: 200_000, supports_reasoning: true };

/// How long a command may run if the call does not say: longer than elsewhere, as these models expect it.
const SHELL_TIMEOUT: Duration = Duration::from_secs(120);

pub(super) fn profile(model: String) -> ProviderProfile {
    let Equipment { tools, instructions } = equipment(Toolset::Spec);
    ProviderProfile {
        base_instructions: instructions,
        tool_registry: tools,
        supports_parallel_tool_calls: true,
        ..ProviderProfile::new(ID, model)
    }
    .with_doc_files(["AGENTS.md", "CLAUDE.md"])
    .with_skill_dirs([".agents/skills", ".claude/skills"])
}

pub(super) fn equipment(toolset: Toolset) -> Equipment {
    let (tools, prompt) = match toolset {
        Toolset::Spec => {
            let tools = registry_of([
                Arc::new(ReadFile::new()),
                Arc::new(WriteFile::new()),
                Arc::new(EditFile::new()),
                Arc::new(Shell::with_default_timeout(SHELL_TIMEOUT)),
                Arc::new(Grep::new()),
                Arc::new(Glob::new()),
            ]);
            (tools, ANTHROPIC_SPEC)
        }
        Toolset::Native => {
            let tools = registry_of([
                Arc::new(anthropic::Bash::new()),
                Arc::new(anthropic::Glob::new()),
                Arc::new(anthropic::Grep::new()),
                Arc::new(anthropic::Read::new()),
                Arc::new(anthropic::Edit::new()),
                Arc::new(anthropic::Write::new()),
                Arc::new(anthropic::TodoWrite::new()),
            ]);
            (tools, ANTHROPIC_NATIVE)
        }
    };
    Equipment { instructions: prompt.text(&tools), tools }
}
