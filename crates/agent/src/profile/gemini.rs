//! Profile for Gemini (loop specification, section 3.6).

use pintle_tools::builtin::{EditFile, Glob, Grep, ListDir, ReadFile, ReadManyFiles, Shell, WriteFile};
use pintle_tools::native::gemini;

use super::built_in::BuiltInTools;
use super::skill::gemini_skill;
use super::toolset::{Toolset, ToolsetParts};
use super::toolset_options::ToolsetOptions;
use super::{ModelDefaults, ProviderProfile};
use crate::prompt::base::{GEMINI_NATIVE, GEMINI_SPEC};

pub(super) const ID: &str = "gemini";

pub(super) const UNKNOWN_MODEL: ModelDefaults =
    ModelDefaults { context_window_size: 1_048_576, supports_reasoning: true };

pub(super) fn profile(model: String) -> ProviderProfile {
    ProviderProfile { supports_parallel_tool_calls: true, ..ProviderProfile::new(ID, model) }
        .with_doc_files(["AGENTS.md", "GEMINI.md"])
        .with_skill_dirs([".agents/skills", ".gemini/skills"])
        .with_toolset(Toolset::Spec)
}

pub(super) fn toolset_parts(
    toolset: Toolset,
    options: &ToolsetOptions,
    skill_dirs: &[String],
) -> ToolsetParts {
    match toolset {
        Toolset::Spec => ToolsetParts::new(GEMINI_SPEC, spec_tools(options)),
        Toolset::Native => ToolsetParts::new(GEMINI_NATIVE, native_tools(options, skill_dirs)),
    }
}

fn spec_tools(options: &ToolsetOptions) -> BuiltInTools {
    BuiltInTools::new()
        .with_tool(ReadFile::new())
        .with_tool(ReadManyFiles::new())
        .with_tool(WriteFile::new())
        .with_tool(EditFile::gemini())
        .with_tool(Shell::new())
        .with_tool(Grep::new())
        .with_tool(Glob::new())
        .with_tool(ListDir::new())
        .with_all(options.built_in())
}

fn native_tools(options: &ToolsetOptions, skill_dirs: &[String]) -> BuiltInTools {
    BuiltInTools::new()
        .with_tool(gemini::ListDirectory::new())
        .with_tool(gemini::ReadFile::new())
        .with_tool(ReadManyFiles::new())
        .with_tool(gemini::SearchFileContent::new())
        .with_tool(gemini::Glob::new())
        .with_tool(gemini::Replace::new())
        .with_tool(gemini::WriteFile::new())
        .with_optional(options.web.clone().map(gemini::WebFetch::new))
        .with_tool(gemini::RunShellCommand::new())
        .with_all(options.background_tools())
        .with_optional(options.engine().map(gemini::GoogleWebSearch::new))
        .with_tool(gemini_skill(skill_dirs))
        .with_all(options.conversation_tools())
}
