//! The profile for OpenAI's models (loop specification, section 3.4).

use std::sync::Arc;

use pintle_tools::DynTool;
use pintle_tools::builtin::{ApplyPatch, Glob, Grep, ReadFile, Shell, UpdatePlan, WebSearch, WriteFile};
use pintle_tools::native::openai;

use super::toolset::{Equipment, Toolset};
use super::toolset_options::{ToolsetOptions, openai_search};
use super::{ProviderProfile, UnknownModel};
use crate::prompt::base::{OPENAI_NATIVE, OPENAI_SPEC};
use crate::subagent::SubagentTools;

pub(super) const ID: &str = "openai";

pub(super) const UNKNOWN_MODEL: UnknownModel =
    UnknownModel { context_window_size: 128_000, supports_reasoning: true };

pub(super) fn profile(model: String) -> ProviderProfile {
    let Equipment { tools, instructions, .. } = equipment(Toolset::Spec, &ToolsetOptions::default());
    ProviderProfile {
        base_instructions: instructions.into(),
        tool_registry: tools,
        subagent_tools: Some(SubagentTools::Spec),
        supports_parallel_tool_calls: true,
        ..ProviderProfile::new(ID, model)
    }
    .with_doc_files(["AGENTS.md", ".codex/instructions.md"])
    .with_skill_dirs([".agents/skills", ".codex/skills"])
}

pub(super) fn equipment(toolset: Toolset, options: &ToolsetOptions) -> Equipment {
    let (prompt, tools) = match toolset {
        Toolset::Spec => (OPENAI_SPEC, spec_tools(options)),
        Toolset::Native => (OPENAI_NATIVE, native_tools(options)),
    };
    let search = options.provider_searches().then(openai_search);
    Equipment::new(prompt, tools).with_provider_tools(search.into_iter().collect())
}

fn spec_tools(options: &ToolsetOptions) -> Vec<Arc<dyn DynTool>> {
    let mut tools: Vec<Arc<dyn DynTool>> = vec![
        Arc::new(ReadFile::new()),
        Arc::new(ApplyPatch::new()),
        Arc::new(WriteFile::new()),
        Arc::new(Shell::new()),
        Arc::new(Grep::new()),
        Arc::new(Glob::new()),
    ];
    tools.extend(options.built_in());
    tools
}

fn native_tools(options: &ToolsetOptions) -> Vec<Arc<dyn DynTool>> {
    let mut tools: Vec<Arc<dyn DynTool>> = vec![
        Arc::new(openai::ExecCommand::new()),
        Arc::new(openai::WriteStdin::new()),
        Arc::new(UpdatePlan::new()),
    ];
    if options.questions {
        tools.push(Arc::new(openai::RequestUserInput::new()));
    }
    tools.push(Arc::new(openai::ApplyPatch::new()));
    if let Some(engine) = options.engine() {
        tools.push(Arc::new(WebSearch::new(engine)));
    }
    tools.push(Arc::new(openai::ViewImage::new()));
    tools
}
