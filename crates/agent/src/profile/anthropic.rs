//! Profile for Claude (loop specification, section 3.5).

use std::time::Duration;

use pintle_tools::builtin::{EditFile, Glob, Grep, ReadFile, Shell, WriteFile};
use pintle_tools::native::anthropic;

use super::built_in::BuiltInTools;
use super::skill::claude_skill;
use super::toolset::{Toolset, ToolsetParts};
use super::toolset_options::{ToolsetOptions, anthropic_search};
use super::{ModelDefaults, ProviderProfile};
use crate::prompt::base::{ANTHROPIC_NATIVE, ANTHROPIC_SPEC};

pub(super) const ID: &str = "anthropic";

pub(super) const UNKNOWN_MODEL: ModelDefaults =
    ModelDefaults { context_window_size: 200_000, supports_reasoning: true };

/// Default time-out of a command; these models expect a longer one than others.
const SHELL_TIMEOUT: Duration = Duration::from_secs(120);

pub(super) fn profile(model: String) -> ProviderProfile {
    ProviderProfile { supports_parallel_tool_calls: true, ..ProviderProfile::new(ID, model) }
        .with_doc_files(["AGENTS.md", "CLAUDE.md"])
        .with_skill_dirs([".agents/skills", ".claude/skills"])
        .with_toolset(Toolset::Spec)
}

pub(super) fn toolset_parts(
    toolset: Toolset,
    options: &ToolsetOptions,
    skill_dirs: &[String],
) -> ToolsetParts {
    let (prompt, tools) = match toolset {
        Toolset::Spec => (ANTHROPIC_SPEC, spec_tools(options)),
        Toolset::Native => (ANTHROPIC_NATIVE, native_tools(options, skill_dirs)),
    };
    let search = options.provider_searches().then(anthropic_search);
    ToolsetParts::new(prompt, tools).with_provider_tools(search.into_iter().collect())
}

fn spec_tools(options: &ToolsetOptions) -> BuiltInTools {
    BuiltInTools::new()
        .with_tool(ReadFile::new())
        .with_tool(WriteFile::new())
        .with_tool(EditFile::new())
        .with_tool(Shell::with_default_timeout(SHELL_TIMEOUT))
        .with_tool(Grep::new())
        .with_tool(Glob::new())
        .with_all(options.built_in())
}

fn native_tools(options: &ToolsetOptions, skill_dirs: &[String]) -> BuiltInTools {
    BuiltInTools::new()
        .with_tool(anthropic::TaskOutput::new())
        .with_tool(anthropic::Bash::new())
        .with_tool(anthropic::Glob::new())
        .with_tool(anthropic::Grep::new())
        .with_tool(anthropic::Read::new())
        .with_tool(anthropic::Edit::new())
        .with_tool(anthropic::Write::new())
        .with_tool(anthropic::NotebookEdit::new())
        .with_optional(options.web.clone().map(anthropic::WebFetch::new))
        .with_tool(anthropic::TodoWrite::new())
        .with_optional(options.engine().map(anthropic::WebSearch::new))
        .with_tool(anthropic::TaskStop::new())
        .with_optional(options.questions.then(anthropic::AskUserQuestion::new))
        .with_tool(claude_skill(skill_dirs))
}
