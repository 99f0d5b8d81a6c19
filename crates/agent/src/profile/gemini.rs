//! The profile for Gemini (loop specification, section 3.6).

use pintle_tools::builtin::{EditFile, Glob, Grep, ListDir, ReadFile, ReadManyFiles, Shell, WriteFile};
use pintle_tools::native::gemini;

use super::kit::Kit;
use super::skill::gemini_skill;
use super::toolset::{Equipment, Toolset};
use super::toolset_options::ToolsetOptions;
use super::{ProviderProfile, UnknownModel};
use crate::prompt::base::{GEMINI_NATIVE, GEMINI_SPEC};
use crate::subagent::SubagentTools;

pub(super) const ID: &str = "gemini";

pub(super) const UNKNOWN_MODEL: UnknownModel =
    UnknownModel { context_window_size: 1_048_576, supports_reasoning: true };

pub(super) fn profile(model: String) -> ProviderProfile {
    let Equipment { tools, instructions, .. } = equipment(Toolset::Spec, &ToolsetOptions::default(), &[]);
    ProviderProfile {
        base_instructions: instructions.into(),
        tool_registry: tools,
        subagent_tools: Some(SubagentTools::Spec),
        supports_parallel_tool_calls: true,
        ..ProviderProfile::new(ID, model)
    }
    .with_doc_files(["AGENTS.md", "GEMINI.md"])
    .with_skill_dirs([".agents/skills", ".gemini/skills"])
}

pub(super) fn equipment(toolset: Toolset, options: &ToolsetOptions, skill_dirs: &[String]) -> Equipment {
    match toolset {
        Toolset::Spec => Equipment::new(GEMINI_SPEC, spec_tools(options)),
        Toolset::Native => Equipment::new(GEMINI_NATIVE, native_tools(options, skill_dirs)),
    }
}

fn spec_tools(options: &ToolsetOptions) -> Kit {
    Kit::new()
        .with(ReadFile::new())
        .with(ReadManyFiles::new())
        .with(WriteFile::new())
        .with(EditFile::gemini())
        .with(Shell::new())
        .with(Grep::new())
        .with(Glob::new())
        .with(ListDir::new())
        .with_all(options.built_in())
}

fn native_tools(options: &ToolsetOptions, skill_dirs: &[String]) -> Kit {
    Kit::new()
        .with(gemini::ListDirectory::new())
        .with(gemini::ReadFile::new())
        .with(ReadManyFiles::new())
        .with(gemini::SearchFileContent::new())
        .with(gemini::Glob::new())
        .with(gemini::Replace::new())
        .with(gemini::WriteFile::new())
        .with_some(options.web.clone().map(gemini::WebFetch::new))
        .with(gemini::RunShellCommand::new())
        .with_all(options.background_tools())
        .with_some(options.engine().map(gemini::GoogleWebSearch::new))
        .with(gemini_skill(skill_dirs))
        .with_all(options.conversation_tools())
}
