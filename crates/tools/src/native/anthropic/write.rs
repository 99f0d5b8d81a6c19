//! `Write`: creates or replaces a file.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::builtin::{Written, write_file};
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::kind::ToolKind;
use crate::tool::{ChangeKind, Effect, Tool, ToolOutput};

/// Creates or replaces a file, like [`WriteFile`](crate::builtin::WriteFile).
#[derive(Clone, Copy, Debug, Default)]
pub struct Write(());

/// The arguments of `Write`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct WriteInput {
    /// The absolute path of the file.
    pub file_path: String,
    /// The whole content of the file.
    pub content: String,
}

impl Write {
    /// The tool.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl Tool for Write {
    type Input = WriteInput;

    fn name(&self) -> &str {
        "Write"
    }

    fn description(&self) -> &str {
        include_str!("write.md").trim_end()
    }

    fn effect(&self) -> Effect {
        Effect::Write
    }

    fn repeatable(&self) -> bool {
        true
    }

    fn kind(&self) -> &str {
        ToolKind::WriteFile.as_str()
    }

    fn writes(&self, input: &WriteInput) -> Vec<PathBuf> {
        vec![PathBuf::from(&input.file_path)]
    }

    fn supports_dry_run(&self) -> bool {
        true
    }

    async fn call(&self, input: WriteInput, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let WriteInput { file_path, content } = input;
        let Written { change, note } = write_file(&file_path, &content, cx).await?;
        let report = if change.kind == ChangeKind::Added {
            format!("File created successfully at: {file_path}")
        } else {
            format!("The file {file_path} has been updated.")
        };
        Ok(ToolOutput::new(report + &note).with_change(change))
    }
}
