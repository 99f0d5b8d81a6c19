//! The profile for Gemini (loop specification, section 3.6).

use std::sync::Arc;

use pintle_tools::DynTool;
use pintle_tools::builtin::{EditFile, Glob, Grep, ListDir, ReadFile, ReadManyFiles, Shell, WriteFile};
use pintle_tools::native::gemini;

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

fn spec_tools(options: &ToolsetOptions) -> Vec<Arc<dyn DynTool>> {
    let mut tools: Vec<Arc<dyn DynTool>> = vec![
        Arc::new(ReadFile::new()),
        Arc::new(ReadManyFiles::new()),
        Arc::new(WriteFile::new()),
        Arc::new(EditFile::gemini()),
        Arc::new(Shell::new()),
        Arc::new(Grep::new()),
        Arc::new(Glob::new()),
        Arc::new(ListDir::new()),
    ];
    tools.extend(options.built_in());
    tools
}

fn native_tools(options: &ToolsetOptions, skill_dirs: &[String]) -> Vec<Arc<dyn DynTool>> {
    let mut tools: Vec<Arc<dyn DynTool>> = vec![
        Arc::new(gemini::ListDirectory::new()),
        Arc::new(gemini::ReadFile::new()),
        Arc::new(ReadManyFiles::new()),
        Arc::new(gemini::SearchFileContent::new()),
        Arc::new(gemini::Glob::new()),
        Arc::new(gemini::Replace::new()),
        Arc::new(gemini::WriteFile::new()),
    ];
    if let Some(web) = &options.web {
        tools.push(Arc::new(gemini::WebFetch::new(Arc::clone(web))));
    }
    tools.push(Arc::new(gemini::RunShellCommand::new()));
    tools.extend(options.background_tools());
    if let Some(engine) = options.engine() {
        tools.push(Arc::new(gemini::GoogleWebSearch::new(engine)));
    }
    tools.push(gemini_skill(skill_dirs));
    tools.extend(options.conversation_tools());
    tools
}
