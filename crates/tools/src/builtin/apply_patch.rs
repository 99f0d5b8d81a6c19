//! `apply_patch`: changes any number of files atomically.

mod directory_cache;
mod error;
mod stage;
mod step;
mod steps;
mod transaction;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use pintle_env::ExecutionEnvironment;
use pintle_patch::{
    ApplyError, ApplyErrorKind, ApplyOptions, ChangeKind, ParseError, Patch, Plan, parse, parse_outline, plan,
};
use schemars::JsonSchema;
use serde::Deserialize;

pub use self::error::{ApplyPlanCause, ApplyPlanError, ReadFilesError, UnrestoredFile};
pub use self::transaction::{MAX_FILES_BYTES, apply_plan, read_files};
use super::diff::patch_change;
use super::path::{display_path, suggestion};
use crate::context::ToolContext;
use crate::error::{ToolError, ToolErrorKind};
use crate::intent::DeclaredChange;
use crate::known_files::Comparison;
use crate::properties::tool_properties;
use crate::tool::{Effect, Tool, ToolOutput};

/// Maximum length of a path, in bytes. No system supports longer ones.
const MAX_PATH: usize = 4096;

/// Maximum number of characters shown of a longer path.
const MAX_SHOWN: usize = 60;

/// Applies a patch in the v4a format (loop specification, section 3.4 and appendix A; design, section 8).
///
/// The patch is planned before any file is written, and [`apply_plan`] makes all changes or none.
#[derive(Clone, Debug, Default)]
pub struct ApplyPatch {
    options: ApplyOptions,
}

/// The arguments of `apply_patch`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ApplyPatchInput {
    /// The patch, from `*** Begin Patch` to `*** End Patch`.
    pub patch: String,
}

impl ApplyPatch {
    /// Creates the tool with the default matching policy.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the matching policy.
    #[must_use]
    pub fn with_options(mut self, options: ApplyOptions) -> Self {
        self.options = options;
        self
    }
}

impl Tool for ApplyPatch {
    type Input = ApplyPatchInput;

    tool_properties! {
        name: "apply_patch",
        description: include_str!("../../prompts/builtin/apply_patch.md"),
        effect: Effect::Write,
        declares_changes: true,
        supports_dry_run: true,
    }

    fn check(&self, input: &ApplyPatchInput) -> Result<(), ToolError> {
        check_patch(&input.patch)
    }

    fn writes(&self, input: &ApplyPatchInput) -> Vec<PathBuf> {
        written_by(&input.patch)
    }

    /// A patch that does not apply shows lines of the file, and a patch that moves a file copies its content.
    fn reads(&self, input: &ApplyPatchInput) -> Vec<PathBuf> {
        read_by(&input.patch)
    }

    async fn call(&self, input: ApplyPatchInput, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let plan = self.apply(input.patch, cx).await?;
        Ok(output_of(&plan, report(&plan)))
    }
}

impl ApplyPatch {
    /// Applies a patch and returns the executed plan.
    ///
    /// A patch may be megabytes long, so each representation is dropped as soon as the next one exists.
    pub(crate) async fn apply(&self, text: String, cx: &ToolContext) -> Result<Plan, ToolError> {
        let env = cx.env.as_ref();
        let patch = parsed(&text)?;
        drop(text);
        let patch = patch.resolve_paths(|path| canonical(env, path))?;
        let files = read_files(env, &patch).await?;
        let planned = plan(&patch, &files, &self.options);
        drop((patch, files));
        let plan = match planned {
            Ok(plan) => plan,
            Err(error) => return Err(conflict(env, error).await),
        };
        let known = known_contents(cx, &plan).await;
        cx.declare(&declared_changes(&plan)).await?;
        apply_plan(env, &plan).await?;
        for (path, content) in known {
            cx.files.wrote(env, path, content).await;
        }
        Ok(plan)
    }
}

fn parsed(patch: &str) -> Result<Patch, ToolError> {
    parse(patch).map_err(invalid_patch)
}

/// Checks the syntax of a patch.
pub(crate) fn check_patch(patch: &str) -> Result<(), ToolError> {
    parse_outline(patch).map(drop).map_err(invalid_patch)
}

fn invalid_patch(error: ParseError) -> ToolError {
    ToolError::invalid_arguments(error.to_string()).with_source(error)
}

/// Returns the files that a patch names; empty if the patch is invalid.
pub(crate) fn written_by(patch: &str) -> Vec<PathBuf> {
    parse_outline(patch)
        .map(|patch| patch.paths().into_iter().map(PathBuf::from).collect())
        .unwrap_or_default()
}

/// Returns the files whose content a patch copies or shows; empty if the patch is invalid.
pub(crate) fn read_by(patch: &str) -> Vec<PathBuf> {
    parse_outline(patch)
        .map(|patch| patch.sources().into_iter().map(PathBuf::from).collect())
        .unwrap_or_default()
}

/// Returns the changes of a plan by file. A renamed file disappears under its old name, which another file may get.
fn declared_changes(plan: &Plan) -> Vec<DeclaredChange<'_>> {
    let mut files = BTreeMap::new();
    for change in &plan.changes {
        let (path, old, new) = (change.path.as_str(), change.old.as_deref(), change.new.as_deref());
        let steps = match &change.kind {
            ChangeKind::Renamed { from } => vec![(from.as_str(), old, None), (path, None, new)],
            ChangeKind::Added | ChangeKind::Modified | ChangeKind::Deleted => vec![(path, old, new)],
        };
        for (path, before, after) in steps {
            let known: &mut (Option<&[u8]>, Option<&[u8]>) = files.entry(path).or_default();
            *known = (known.0.or(before), known.1.or(after));
        }
    }
    let declared = |(path, (before, after))| DeclaredChange { path: Path::new(path), before, after };
    files.into_iter().map(declared).collect()
}

/// Returns the files whose complete content the session knows after the plan, with their new contents.
async fn known_contents<'p>(cx: &ToolContext, plan: &'p Plan) -> Vec<(&'p Path, &'p [u8])> {
    let mut known = Vec::new();
    for change in &plan.changes {
        let (path, Some(new)) = (Path::new(&change.path), &change.new) else { continue };
        let is_known = match &change.kind {
            ChangeKind::Added => true,
            ChangeKind::Modified => {
                cx.files.compare(cx.env.as_ref(), path, change.old.as_deref()).await == Comparison::Current
            }
            ChangeKind::Renamed { .. } | ChangeKind::Deleted => false,
        };
        if is_known {
            known.push((path, new.as_slice()));
        }
    }
    known
}

/// Converts an error of planning. If a file is missing, similar ones are suggested.
async fn conflict(env: &dyn ExecutionEnvironment, error: ApplyError) -> ToolError {
    let mut message = error.to_string();
    if matches!(*error.kind, ApplyErrorKind::Missing { removed_at: None, .. })
        && let Some(suggestion) = suggestion(env, Path::new(&error.path)).await
    {
        message.push_str(". ");
        message.push_str(&suggestion);
    }
    ToolError::new(ToolErrorKind::EditConflict, message).with_source(error)
}

/// Returns the result of a plan: a report for the model, and the changes for users and applications.
pub(crate) fn output_of(plan: &Plan, report: String) -> ToolOutput {
    plan.changes.iter().map(patch_change).fold(ToolOutput::new(report), ToolOutput::with_change)
}

/// Normalizes a path so that each file has one name. The path is relative to the working directory if it is inside.
fn canonical(env: &dyn ExecutionEnvironment, path: &str) -> Result<String, ToolError> {
    if path.len() > MAX_PATH {
        let start: String = path.chars().take(MAX_SHOWN).collect();
        let message = format!("{start}… has {} bytes: a path has at most {MAX_PATH}", path.len());
        return Err(ToolError::invalid_arguments(message));
    }
    let shown = display_path(env, &env.resolve(Path::new(path)));
    // If the working directory is not UTF-8, paths outside of it have no name.
    if shown.contains(char::REPLACEMENT_CHARACTER) && !path.contains(char::REPLACEMENT_CHARACTER) {
        return Err(ToolError::failed(format!("{path} leads out of a directory whose name is not UTF-8")));
    }
    Ok(shown)
}

fn report(plan: &Plan) -> String {
    let mut report = if plan.changes.is_empty() {
        "The patch was read, and nothing changes by it.".to_owned()
    } else {
        format!("The patch was applied:\n{}", plan.summary().trim_end())
    };
    for diagnostic in &plan.diagnostics {
        report.push_str("\nNote: ");
        report.push_str(&diagnostic.to_string());
    }
    report
}

#[cfg(test)]
mod tests;
