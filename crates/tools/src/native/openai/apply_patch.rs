//! `apply_patch` with free text instead of JSON.

use std::path::PathBuf;
use std::time::Instant;

use pintle_llm::Grammar;
use pintle_patch::{ChangeKind, Plan};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::builtin::{self, check_patch, output_of, read_by, written_by};
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::kind::ToolKind;
use crate::properties::tool_properties;
use crate::tool::{Effect, Tool, ToolOutput};

/// Applies a patch in the v4a format, like [`builtin::ApplyPatch`].
///
/// If the provider supports free-text tools, the input is the patch itself, constrained by a grammar.
#[derive(Clone, Debug, Default)]
pub struct ApplyPatch {
    inner: builtin::ApplyPatch,
}

/// The input of `apply_patch`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ApplyPatchInput {
    /// The patch, from `*** Begin Patch` to `*** End Patch`.
    pub input: String,
}

impl ApplyPatch {
    /// Creates the tool.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl Tool for ApplyPatch {
    type Input = ApplyPatchInput;

    tool_properties! {
        name: "apply_patch",
        description: include_str!("../../../prompts/openai/apply_patch.md"),
        effect: Effect::Write,
        declares_changes: true,
        kind: ToolKind::ApplyPatch.as_str(),
        supports_dry_run: true,
    }

    fn grammar(&self) -> Option<Grammar> {
        let definition = include_str!("../../../prompts/openai/apply_patch.lark").to_owned();
        Some(Grammar { syntax: "lark".to_owned(), definition })
    }

    fn check(&self, input: &ApplyPatchInput) -> Result<(), ToolError> {
        check_patch(&input.input).map_err(unverified)
    }

    fn writes(&self, input: &ApplyPatchInput) -> Vec<PathBuf> {
        written_by(&input.input)
    }

    /// A patch that does not apply shows lines of the file, and a patch that moves a file copies its content.
    fn reads(&self, input: &ApplyPatchInput) -> Vec<PathBuf> {
        read_by(&input.input)
    }

    async fn call(&self, input: ApplyPatchInput, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let started = Instant::now();
        let plan = self.inner.apply(input.input, cx).await.map_err(unverified)?;
        let tenths = (started.elapsed().as_secs_f64() * 10.0).round() / 10.0;
        let head = format!("Exit code: 0\nWall time: {tenths} seconds\nOutput:\n");
        Ok(output_of(&plan, report(&plan)).with_preface(head))
    }
}

/// Adds the prefix that codex puts before the error of a patch.
fn unverified(error: ToolError) -> ToolError {
    let message = format!("apply_patch verification failed: {}", error.for_model());
    ToolError::new(error.kind(), message).with_source(error)
}

/// Lists the files with a letter for their change: added, then modified or renamed, then deleted.
fn report(plan: &Plan) -> String {
    let mut report = String::from("Success. Updated the following files:");
    for letter in ['A', 'M', 'D'] {
        for change in plan.changes.iter().filter(|change| letter_of(&change.kind) == letter) {
            report.push_str(&format!("\n{letter} {}", change.path));
        }
    }
    if plan.changes.is_empty() {
        report = "Success. The patch changes no file.".to_owned();
    }
    for diagnostic in &plan.diagnostics {
        report.push_str(&format!("\nNote: {diagnostic}"));
    }
    report
}

fn letter_of(kind: &ChangeKind) -> char {
    match kind {
        ChangeKind::Added => 'A',
        ChangeKind::Modified | ChangeKind::Renamed { .. } => 'M',
        ChangeKind::Deleted => 'D',
    }
}
