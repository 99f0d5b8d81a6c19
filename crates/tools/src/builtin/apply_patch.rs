//! `apply_patch`: any number of files at once, or none.

mod error;
mod place;
mod stage;
mod step;
mod steps;
mod transaction;

use std::path::{Path, PathBuf};

use pintle_env::ExecutionEnvironment;
use pintle_patch::{
    ApplyError, ApplyErrorKind, ApplyOptions, ChangeKind, ParseError, Patch, Plan, parse, parse_outline, plan,
};
use schemars::JsonSchema;
use serde::Deserialize;

pub use self::error::{ApplyPlanCause, ApplyPlanError, LeftChanged, ReadFilesError};
pub use self::transaction::{MAX_FILES_BYTES, apply_plan, read_files};
use super::diff::of_patch;
use super::path::{shown, suggestion};
use crate::context::ToolContext;
use crate::error::{ToolError, ToolErrorKind};
use crate::known::Acquaintance;
use crate::tool::{Effect, Tool, ToolOutput};

/// The longest path that is looked at, in bytes: no system takes a longer one.
const MAX_PATH: usize = 4096;

/// How much of a path that is too long is shown, in characters.
const SHOWN: usize = 60;

/// Applies a patch in the v4a format (loop specification, section 3.4 and appendix A; design, section 8).
///
/// Everything is planned before anything is written, and [`apply_plan`] writes all of it or nothing.
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
    /// The tool, with the matching policy of the design.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// With another matching policy.
    #[must_use]
    pub fn with_options(mut self, options: ApplyOptions) -> Self {
        self.options = options;
        self
    }
}

impl Tool for ApplyPatch {
    type Input = ApplyPatchInput;

    fn name(&self) -> &str {
        "apply_patch"
    }

    fn description(&self) -> &str {
        include_str!("apply_patch.md").trim_end()
    }

    fn effect(&self) -> Effect {
        Effect::Write
    }

    fn check(&self, input: &ApplyPatchInput) -> Result<(), ToolError> {
        check_patch(&input.patch)
    }

    fn writes(&self, input: &ApplyPatchInput) -> Vec<PathBuf> {
        written_by(&input.patch)
    }

    fn rehearsable(&self) -> bool {
        true
    }

    async fn call(&self, input: ApplyPatchInput, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let plan = self.apply(input.patch, cx).await?;
        Ok(told(report(&plan), &plan))
    }
}

impl ApplyPatch {
    /// Applies a patch, and says what came of it.
    ///
    /// A patch may be megabytes long, and each form of it is dropped once the next one is made.
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
        let seen = seen(cx, &plan).await;
        apply_plan(env, &plan).await?;
        for (path, content) in seen {
            cx.files.wrote(env, path, content).await;
        }
        Ok(plan)
    }
}

/// The patch that a text is.
fn parsed(patch: &str) -> Result<Patch, ToolError> {
    parse(patch).map_err(no_patch)
}

/// Checks that a text is a patch.
pub(crate) fn check_patch(patch: &str) -> Result<(), ToolError> {
    parse_outline(patch).map(drop).map_err(no_patch)
}

fn no_patch(error: ParseError) -> ToolError {
    ToolError::new(ToolErrorKind::InvalidArguments, error.to_string()).with_source(error)
}

/// The files that a patch names. What is no patch writes nothing.
pub(crate) fn written_by(patch: &str) -> Vec<PathBuf> {
    parse_outline(patch)
        .map(|patch| patch.paths().into_iter().map(PathBuf::from).collect())
        .unwrap_or_default()
}

/// The files of which the session has seen the whole once the plan is carried out, with their new contents.
async fn seen<'p>(cx: &ToolContext, plan: &'p Plan) -> Vec<(&'p Path, &'p [u8])> {
    let mut seen = Vec::new();
    for change in &plan.changes {
        let (path, Some(new)) = (Path::new(&change.path), &change.new) else { continue };
        let is_seen = match &change.kind {
            ChangeKind::Added => true,
            ChangeKind::Modified => {
                cx.files.compare(cx.env.as_ref(), path, change.old.as_deref()).await == Acquaintance::Current
            }
            ChangeKind::Renamed { .. } | ChangeKind::Deleted => false,
        };
        if is_seen {
            seen.push((path, new.as_slice()));
        }
    }
    seen
}

/// Why a patch does not fit. If a file is missing, it names those that may be meant.
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

/// A report to the model, with the changes of a plan for people and hosts.
pub(crate) fn told(report: String, plan: &Plan) -> ToolOutput {
    plan.changes.iter().map(of_patch).fold(ToolOutput::new(report), ToolOutput::with_change)
}

/// One name for each file, however a patch spells it: relative to the working directory where it is inside.
fn canonical(env: &dyn ExecutionEnvironment, path: &str) -> Result<String, ToolError> {
    if path.len() > MAX_PATH {
        let start: String = path.chars().take(SHOWN).collect();
        let message = format!("{start}… has {} bytes: a path has at most {MAX_PATH}", path.len());
        return Err(ToolError::new(ToolErrorKind::InvalidArguments, message));
    }
    let place = shown(env, &env.resolve(Path::new(path)));
    // A working directory that is not UTF-8 has no name for what is outside of it.
    if place.contains(char::REPLACEMENT_CHARACTER) && !path.contains(char::REPLACEMENT_CHARACTER) {
        let message = format!("{path} leads out of a directory whose name is not UTF-8");
        return Err(ToolError::new(ToolErrorKind::Failed, message));
    }
    Ok(place)
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
