//! The profile for OpenAI's models (loop specification, section 3.4).

use std::sync::Arc;

use pintle_tools::builtin::{ApplyPatch, Glob, Grep, ReadFile, Shell, UpdatePlan, WriteFile};
use pintle_tools::native::openai;

use super::toolset::{Equipment, Toolset};
use super::{ProviderProfile, UnknownModel, registry_of};
use crate::prompt::base::{OPENAI_NATIVE, OPENAI_SPEC};

pub(super) const ID: &str = "openai";

pub(super) const UNKNOWN_MODEL: UnknownModel =
    UnknownModel { context_window_size: 128_000, supports_reasoning: true };

pub(super) fn profile(model: String) -> ProviderProfile {
    let Equipment { tools, instructions } = equipment(Toolset::Spec);
    ProviderProfile {
        base_instructions: instructions,
        tool_registry: tools,
        supports_parallel_tool_calls: true,
        ..ProviderProfile::new(ID, model)
    }
    .with_doc_files(["AGENTS.md", ".codex/instructions.md"])
    .with_skill_dirs([".agents/skills", ".codex/skills"])
}

pub(super) fn equipment(toolset: Toolset) -> Equipment {
    let (tools, prompt) = match toolset {
        Toolset::Spec => {
            let tools = registry_of([
                Arc::new(ReadFile::new()),
                Arc::new(ApplyPatch::new()),
                Arc::new(WriteFile::new()),
                Arc::new(Shell::new()),
                Arc::new(Grep::new()),
                Arc::new(Glob::new()),
            ]);
            (tools, OPENAI_SPEC)
        }
        Toolset::Native => {
            let tools = registry_of([
                Arc::new(openai::ExecCommand::new()),
                Arc::new(openai::WriteStdin::new()),
                Arc::new(UpdatePlan::new()),
                Arc::new(openai::ApplyPatch::new()),
                Arc::new(openai::ViewImage::new()),
            ]);
            (tools, OPENAI_NATIVE)
        }
    };
    Equipment { instructions: prompt.text(&tools), tools }
}
