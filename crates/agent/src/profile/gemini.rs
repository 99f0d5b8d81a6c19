//! The profile for Gemini (loop specification, section 3.6).

use std::sync::Arc;

use pintle_tools::builtin::{EditFile, Glob, Grep, ListDir, ReadFile, ReadManyFiles, Shell, WriteFile};
use pintle_tools::native::gemini;

use super::toolset::{Equipment, Toolset};
use super::{ProviderProfile, UnknownModel, registry_of};
use crate::prompt::base::{GEMINI_NATIVE, GEMINI_SPEC};

pub(super) const ID: &str = "gemini";

pub(super) const UNKNOWN_MODEL: UnknownModel =
    UnknownModel { context_window_size: 1_048_576, supports_reasoning: true };

pub(super) fn profile(model: String) -> ProviderProfile {
    let Equipment { tools, instructions } = equipment(Toolset::Spec);
    ProviderProfile {
        base_instructions: instructions,
        tool_registry: tools,
        supports_parallel_tool_calls: true,
        ..ProviderProfile::new(ID, model)
    }
    .with_doc_files(["AGENTS.md", "GEMINI.md"])
    .with_skill_dirs([".agents/skills", ".gemini/skills"])
}

pub(super) fn equipment(toolset: Toolset) -> Equipment {
    let (tools, prompt) = match toolset {
        Toolset::Spec => {
            let tools = registry_of([
                Arc::new(ReadFile::new()),
                Arc::new(ReadManyFiles::new()),
                Arc::new(WriteFile::new()),
                Arc::new(EditFile::gemini()),
                Arc::new(Shell::new()),
                Arc::new(Grep::new()),
                Arc::new(Glob::new()),
                Arc::new(ListDir::new()),
            ]);
            (tools, GEMINI_SPEC)
        }
        Toolset::Native => {
            let tools = registry_of([
                Arc::new(gemini::ListDirectory::new()),
                Arc::new(gemini::ReadFile::new()),
                Arc::new(ReadManyFiles::new()),
                Arc::new(gemini::SearchFileContent::new()),
                Arc::new(gemini::Glob::new()),
                Arc::new(gemini::Replace::new()),
                Arc::new(gemini::WriteFile::new()),
                Arc::new(gemini::RunShellCommand::new()),
            ]);
            (tools, GEMINI_NATIVE)
        }
    };
    Equipment { instructions: prompt.text(&tools), tools }
}
