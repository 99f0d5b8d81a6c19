//! `replace`: replaces text in a file.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::builtin;
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::kind::ToolKind;
use crate::native::number::count;
use crate::properties::{stateless_tool, tool_properties};
use crate::tool::{Effect, Tool, ToolOutput};

stateless_tool! {
    /// Replaces an exact text in a file, like [`builtin::EditFile`].
    pub struct Replace;
}

/// The arguments of `replace`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ReplaceInput {
    /// The path of the file.
    #[schemars(description = "")]
    pub file_path: String,
    /// The purpose of the change, for the user.
    pub instruction: String,
    /// The exact text to replace, with its white space and indentation, and at least three lines of context before and
    /// after the place.
    #[schemars(description = "")]
    pub old_string: String,
    /// The complete new text, indented as it should be.
    pub new_string: String,
    /// Default: 1.
    #[schemars(range(min = 1))]
    pub expected_replacements: Option<f64>,
}

impl Tool for Replace {
    type Input = ReplaceInput;

    tool_properties! {
        name: "replace",
        description: include_str!("../../../prompts/gemini/replace.md"),
        effect: Effect::Write,
        declares_changes: true,
        kind: ToolKind::EditFile.as_str(),
        supports_dry_run: true,
    }

    fn writes(&self, input: &ReplaceInput) -> Vec<PathBuf> {
        vec![PathBuf::from(&input.file_path)]
    }

    /// The edit needs the content, and a failed edit shows lines of it.
    fn reads(&self, input: &ReplaceInput) -> Vec<PathBuf> {
        self.writes(input)
    }

    async fn call(&self, input: ReplaceInput, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let expected = input.expected_replacements.map_or(1, count);
        let edit = builtin::Edit {
            old: &input.old_string,
            new: &input.new_string,
            all: false,
            expected: Some(expected),
        };
        let edited = builtin::edit_file(&input.file_path, &edit, cx).await?;
        let count = edited.lines.len();
        let mut report = format!("Successfully modified file: {} ({count} replacements).", input.file_path);
        edited.append_notes(&mut report);
        Ok(ToolOutput::new(report).with_change(edited.change))
    }
}
