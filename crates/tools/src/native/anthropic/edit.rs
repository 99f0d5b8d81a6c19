//! `Edit`: replaces text in a file.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::builtin;
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::kind::ToolKind;
use crate::properties::{stateless_tool, tool_properties};
use crate::tool::{Effect, Tool, ToolOutput};

stateless_tool! {
    /// Replaces an exact text in a file, like [`EditFile`](builtin::EditFile).
    pub struct Edit;
}

/// The arguments of `Edit`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct EditInput {
    /// The absolute path of the file.
    #[schemars(description = "")]
    pub file_path: String,
    /// The exact text to replace.
    #[schemars(description = "")]
    pub old_string: String,
    /// The text to put in its place, which must differ from it.
    #[schemars(description = "")]
    pub new_string: String,
    /// Whether to replace every occurrence of `old_string`.
    #[schemars(description = "")]
    #[serde(default)]
    pub replace_all: bool,
}

impl Tool for Edit {
    type Input = EditInput;

    tool_properties! {
        name: "Edit",
        description: include_str!("../../../prompts/anthropic/edit.md"),
        effect: Effect::Write,
        declares_changes: true,
        kind: ToolKind::EditFile.as_str(),
        supports_dry_run: true,
    }

    fn writes(&self, input: &EditInput) -> Vec<PathBuf> {
        vec![PathBuf::from(&input.file_path)]
    }

    /// The edit needs the content, and a failed edit shows lines of it.
    fn reads(&self, input: &EditInput) -> Vec<PathBuf> {
        self.writes(input)
    }

    async fn call(&self, input: EditInput, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let EditInput { file_path, old_string, new_string, replace_all } = input;
        let edit = builtin::Edit { old: &old_string, new: &new_string, all: replace_all, expected: None };
        let edited = builtin::edit_file(&file_path, &edit, cx).await?;
        let mut report = if replace_all {
            let count = edited.lines.len();
            format!("The file {file_path} has been updated. All occurrences were replaced: {count}.")
        } else {
            format!("The file {file_path} has been updated successfully.")
        };
        edited.append_notes(&mut report);
        Ok(ToolOutput::new(report).with_change(edited.change))
    }
}
