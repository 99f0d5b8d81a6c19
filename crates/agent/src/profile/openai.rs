//! The profile for OpenAI's models (loop specification, section 3.4).

use pintle_tools::builtin::{ApplyPatch, Glob, Grep, ReadFile, Shell, UpdatePlan, WebSearch, WriteFile};
use pintle_tools::native::openai;

use super::kit::Kit;
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

fn spec_tools(options: &ToolsetOptions) -> Kit {
    Kit::new()
        .with(ReadFile::new())
        .with(ApplyPatch::new())
        .with(WriteFile::new())
        .with(Shell::new())
        .with(Grep::new())
        .with(Glob::new())
        .with_all(options.built_in())
}

fn native_tools(options: &ToolsetOptions) -> Kit {
    Kit::new()
        .with(openai::ExecCommand::new())
        .with(openai::WriteStdin::new())
        .with(UpdatePlan::new())
        .with_some(options.questions.then(openai::RequestUserInput::new))
        .with(openai::ApplyPatch::new())
        .with_some(options.engine().map(WebSearch::new))
        .with(openai::ViewImage::new())
}
