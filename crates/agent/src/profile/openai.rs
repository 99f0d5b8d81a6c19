//! Profile for OpenAI's models (loop specification, section 3.4).

use pintle_tools::builtin::{ApplyPatch, Glob, Grep, ReadFile, Shell, UpdatePlan, WebSearch, WriteFile};
use pintle_tools::native::openai;

use super::built_in::BuiltInTools;
use super::toolset::{Toolset, ToolsetParts};
use super::toolset_options::{ToolsetOptions, openai_search};
use super::{ModelDefaults, ProviderProfile};
use crate::prompt::base::{OPENAI_NATIVE, OPENAI_SPEC};

pub(super) const ID: &str = "openai";

pub(super) const UNKNOWN_MODEL: ModelDefaults =
    ModelDefaults { context_window_size: 128_000, supports_reasoning: true };

pub(super) fn profile(model: String) -> ProviderProfile {
    ProviderProfile { supports_parallel_tool_calls: true, ..ProviderProfile::new(ID, model) }
        .with_doc_files(["AGENTS.md", ".codex/instructions.md"])
        .with_skill_dirs([".agents/skills", ".codex/skills"])
        .with_toolset(Toolset::Spec)
}

pub(super) fn toolset_parts(toolset: Toolset, options: &ToolsetOptions) -> ToolsetParts {
    let (prompt, tools) = match toolset {
        Toolset::Spec => (OPENAI_SPEC, spec_tools(options)),
        Toolset::Native => (OPENAI_NATIVE, native_tools(options)),
    };
    let search = options.provider_searches().then(openai_search);
    ToolsetParts::new(prompt, tools).with_provider_tools(search.into_iter().collect())
}

fn spec_tools(options: &ToolsetOptions) -> BuiltInTools {
    BuiltInTools::new()
        .with_tool(ReadFile::new())
        .with_tool(ApplyPatch::new())
        .with_tool(WriteFile::new())
        .with_tool(Shell::new())
        .with_tool(Grep::new())
        .with_tool(Glob::new())
        .with_all(options.built_in())
}

fn native_tools(options: &ToolsetOptions) -> BuiltInTools {
    BuiltInTools::new()
        .with_tool(openai::ExecCommand::new())
        .with_tool(openai::WriteStdin::new())
        .with_tool(UpdatePlan::new())
        .with_optional(options.questions.then(openai::RequestUserInput::new))
        .with_tool(openai::ApplyPatch::new())
        .with_optional(options.engine().map(WebSearch::new))
        .with_tool(openai::ViewImage::new())
}
