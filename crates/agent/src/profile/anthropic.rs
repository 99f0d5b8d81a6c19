//! The profile for Claude (loop specification, section 3.5).

use std::sync::Arc;
use std::time::Duration;

use pintle_tools::DynTool;
use pintle_tools::builtin::{EditFile, Glob, Grep, ReadFile, Shell, WriteFile};
use pintle_tools::native::anthropic;

use super::skill::claude_skill;
use super::toolset::{Equipment, Toolset};
use super::toolset_options::{ToolsetOptions, anthropic_search};
use super::{ProviderProfile, UnknownModel};
use crate::prompt::base::{ANTHROPIC_NATIVE, ANTHROPIC_SPEC};
use crate::subagent::SubagentTools;

pub(super) const ID: &str = "anthropic";

pub(super) const UNKNOWN_MODEL: UnknownModel =
    UnknownModel { context_window_size: 200_000, supports_reasoning: true };

/// How long a command may run if the call does not say: longer than elsewhere, as these models expect it.
const SHELL_TIMEOUT: Duration = Duration::from_secs(120);

pub(super) fn profile(model: String) -> ProviderProfile {
    let Equipment { tools, instructions, .. } = equipment(Toolset::Spec, &ToolsetOptions::default(), &[]);
    ProviderProfile {
        base_instructions: instructions.into(),
        tool_registry: tools,
        subagent_tools: Some(SubagentTools::Spec),
        supports_parallel_tool_calls: true,
        ..ProviderProfile::new(ID, model)
    }
    .with_doc_files(["AGENTS.md", "CLAUDE.md"])
    .with_skill_dirs([".agents/skills", ".claude/skills"])
}

pub(super) fn equipment(toolset: Toolset, options: &ToolsetOptions, skill_dirs: &[String]) -> Equipment {
    let (prompt, tools) = match toolset {
        Toolset::Spec => (ANTHROPIC_SPEC, spec_tools(options)),
        Toolset::Native => (ANTHROPIC_NATIVE, native_tools(options, skill_dirs)),
    };
    let search = options.provider_searches().then(anthropic_search);
    Equipment::new(prompt, tools).with_provider_tools(search.into_iter().collect())
}

fn spec_tools(options: &ToolsetOptions) -> Vec<Arc<dyn DynTool>> {
    let mut tools: Vec<Arc<dyn DynTool>> = vec![
        Arc::new(ReadFile::new()),
        Arc::new(WriteFile::new()),
        Arc::new(EditFile::new()),
        Arc::new(Shell::with_default_timeout(SHELL_TIMEOUT)),
        Arc::new(Grep::new()),
        Arc::new(Glob::new()),
    ];
    tools.extend(options.built_in());
    tools
}

fn native_tools(options: &ToolsetOptions, skill_dirs: &[String]) -> Vec<Arc<dyn DynTool>> {
    let mut tools: Vec<Arc<dyn DynTool>> = vec![
        Arc::new(anthropic::TaskOutput::new()),
        Arc::new(anthropic::Bash::new()),
        Arc::new(anthropic::Glob::new()),
        Arc::new(anthropic::Grep::new()),
        Arc::new(anthropic::Read::new()),
        Arc::new(anthropic::Edit::new()),
        Arc::new(anthropic::Write::new()),
        Arc::new(anthropic::NotebookEdit::new()),
    ];
    if let Some(web) = &options.web {
        tools.push(Arc::new(anthropic::WebFetch::new(Arc::clone(web))));
    }
    tools.push(Arc::new(anthropic::TodoWrite::new()));
    if let Some(engine) = options.engine() {
        tools.push(Arc::new(anthropic::WebSearch::new(engine)));
    }
    tools.push(Arc::new(anthropic::TaskStop::new()));
    if options.questions {
        tools.push(Arc::new(anthropic::AskUserQuestion::new()));
    }
    tools.push(claude_skill(skill_dirs));
    tools
}
