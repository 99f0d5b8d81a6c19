//! `write_file`: creates or replaces a file.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::builtin::{self, Written};
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::kind::ToolKind;
use crate::tool::{ChangeKind, Effect, Tool, ToolOutput};

/// Creates or replaces a file, like [`builtin::WriteFile`].
#[derive(Clone, Copy, Debug, Default)]
pub struct WriteFile(());

/// The arguments of `write_file`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct WriteFileInput {
    /// The path of the file.
    pub file_path: String,
    /// The whole content of the file, with nothing left out.
    pub content: String,
}

impl WriteFile {
    /// The tool.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl Tool for WriteFile {
    type Input = WriteFileInput;

    fn name(&self) -> &str {
        "write_file"
    }

    fn description(&self) -> &str {
        include_str!("write_file.md").trim_end()
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

    fn writes(&self, input: &WriteFileInput) -> Vec<PathBuf> {
        vec![PathBuf::from(&input.file_path)]
    }

    fn supports_dry_run(&self) -> bool {
        true
    }

    async fn call(&self, input: WriteFileInput, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let WriteFileInput { file_path, content } = input;
        let Written { change, note } = builtin::write_file(&file_path, &content, cx).await?;
        let report = if change.kind == ChangeKind::Added {
            format!("Successfully created and wrote to new file: {file_path}.")
        } else {
            format!("Successfully overwrote file: {file_path}.")
        };
        Ok(ToolOutput::new(report + &note).with_change(change))
    }
}
