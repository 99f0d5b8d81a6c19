//! `Write`: creates or replaces a file.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::builtin::{WriteReport, write_file};
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::kind::ToolKind;
use crate::properties::{stateless_tool, tool_properties};
use crate::tool::{ChangeKind, Effect, Tool, ToolOutput};

stateless_tool! {
    /// Creates or replaces a file, like [`WriteFile`](crate::builtin::WriteFile).
    pub struct Write;
}

/// The arguments of `Write`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct WriteInput {
    /// The absolute path of the file.
    #[schemars(description = "")]
    pub file_path: String,
    /// The whole content of the file.
    #[schemars(description = "")]
    pub content: String,
}

impl Tool for Write {
    type Input = WriteInput;

    tool_properties! {
        name: "Write",
        description: include_str!("../../../prompts/anthropic/write.md"),
        effect: Effect::Write,
        declares_changes: true,
        repeatable: true,
        kind: ToolKind::WriteFile.as_str(),
        supports_dry_run: true,
    }

    fn writes(&self, input: &WriteInput) -> Vec<PathBuf> {
        vec![PathBuf::from(&input.file_path)]
    }

    async fn call(&self, input: WriteInput, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let WriteInput { file_path, content } = input;
        let WriteReport { change, note, .. } = write_file(&file_path, &content, cx).await?;
        let report = if change.kind == ChangeKind::Added {
            format!("File created successfully at: {file_path}")
        } else {
            format!("The file {file_path} has been updated.")
        };
        Ok(ToolOutput::new(report + &note).with_change(change))
    }
}
