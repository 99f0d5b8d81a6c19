//! The tools of the loop specification (sections 3.3 to 3.6), with its names and parameters.
//!
//! Each tool accesses files and processes only through the environment of the call's
//! [`ToolContext`](crate::ToolContext). Relative paths start at the working directory. A tool returns its complete
//! output; the pipeline truncates it.

mod apply_patch;
mod ask_user;
mod background;
mod content_kind;
mod diff;
mod edit_file;
mod glob;
mod grep;
mod image;
mod list_dir;
mod notebook;
mod path;
mod read_file;
mod read_many_files;
mod shell;
mod update_plan;
mod web;
mod web_fetch;
mod web_search;
mod write_file;

pub use apply_patch::{
    ApplyPatch, ApplyPatchInput, ApplyPlanCause, ApplyPlanError, MAX_FILES_BYTES, ReadFilesError,
    UnrestoredFile, apply_plan, read_files,
};
pub(crate) use apply_patch::{check_patch, output_of, read_by, written_by};
pub use ask_user::{AskUser, AskUserInput};
pub(crate) use background::{NOT_STARTED, follow, stop};
pub use background::{
    ShellList, ShellListInput, ShellRead, ShellReadInput, ShellStart, ShellStartInput, ShellStop,
    ShellStopInput, ShellWrite, ShellWriteInput, register_background,
};
pub(crate) use diff::file_change;
pub use edit_file::{Edit, EditFile, EditFileInput, EditRequest, GeminiEditFileInput};
pub(crate) use edit_file::{edit_file, write_edited};
pub(crate) use glob::ignored_matches;
pub use glob::{Glob, GlobInput};
pub use grep::{Grep, GrepInput, GrepOutputMode};
pub(crate) use grep::{ignored_note, shown_line};
pub use image::{ImageError, MAX_IMAGE, image_of, read_image};
pub use list_dir::{ListDir, ListDirInput};
pub(crate) use path::{display_path, search_base, unreadable};
pub(crate) use read_file::{FileLines, FileView, OffsetPastEnd, empty as empty_file, read_file};
pub use read_file::{ReadFile, ReadFileInput};
pub use read_many_files::{ReadManyFiles, ReadManyFilesInput};
pub use shell::{Shell, ShellInput, run_command};
pub(crate) use shell::{end_of, missing_apply_patch, stopped_by_limits};
pub use update_plan::{PlanStatus, PlanStep, UpdatePlan, UpdatePlanInput};
pub use web::{
    FetchRequest, SearchHit, SearchQuery, SearchResults, WebClient, WebError, WebErrorKind, WebPage,
    WebSearchClient,
};
pub use web_fetch::{WebFetch, WebFetchInput};
pub(crate) use web_fetch::{fetch, page_text};
pub(crate) use web_search::search;
pub use web_search::{WebSearch, WebSearchInput};
pub use write_file::{WriteFile, WriteFileInput};
pub(crate) use write_file::{WriteReport, write_file};

pub use crate::background::{BackgroundCommands, BackgroundOutput, BackgroundState, BackgroundStatus};
use crate::error::DefinitionError;
use crate::registry::ToolRegistry;

/// Registers the tools that every profile has: `read_file`, `write_file`, `edit_file`, `shell`, `grep` and `glob`.
///
/// A profile with another variant of a tool registers it afterwards. That replaces the tool and keeps its position.
///
/// # Errors
///
/// Errors of [`ToolRegistry::register_static`]. They are not expected, since tests verify the definitions.
pub fn register_core(registry: &mut ToolRegistry) -> Result<(), DefinitionError> {
    registry.register_static(ReadFile::new())?;
    registry.register_static(WriteFile::new())?;
    registry.register_static(EditFile::new())?;
    registry.register_static(Shell::new())?;
    registry.register_static(Grep::new())?;
    registry.register_static(Glob::new())
}

#[cfg(test)]
mod tests;
