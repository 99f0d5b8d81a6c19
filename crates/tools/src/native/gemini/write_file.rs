//! `write_file`: creates or replaces a file.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::builtin::{self, WriteReport};
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::kind::ToolKind;
use crate::properties::{stateless_tool, tool_properties};
use crate::tool::{ChangeKind, Effect, Tool, ToolOutput};

stateless_tool! {
    /// Creates or replaces a file, like [`builtin::WriteFile`].
    pub struct WriteFile;
}

/// The arguments of `write_file`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct WriteFileInput {
    /// The path of the file.
    #[schemars(description = "")]
    pub file_path: String,
    /// The whole content of the file, with nothing left out.
    #[schemars(description = "")]
    pub content: String,
}

impl Tool for WriteFile {
    type Input = WriteFileInput;

    tool_properties! {
        name: "write_file",
        description: include_str!("../../../prompts/gemini/write_file.md"),
        effect: Effect::Write,
        declares_changes: true,
        repeatable: true,
        kind: ToolKind::WriteFile.as_str(),
        supports_dry_run: true,
    }

    fn writes(&self, input: &WriteFileInput) -> Vec<PathBuf> {
        vec![PathBuf::from(&input.file_path)]
    }

    async fn call(&self, input: WriteFileInput, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let WriteFileInput { file_path, content } = input;
        let WriteReport { change, note, .. } = builtin::write_file(&file_path, &content, cx).await?;
        let report = if change.kind == ChangeKind::Added {
            format!("Successfully created and wrote to new file: {file_path}.")
        } else {
            format!("Successfully overwrote file: {file_path}.")
        };
        Ok(ToolOutput::new(report + &note).with_change(change))
    }
}
