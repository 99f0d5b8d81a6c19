//! `NotebookEdit`: edits one cell of a Jupyter notebook.

mod document;

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::document::{Document, NewCell};
use crate::builtin::{file_change, unreadable, write_edited};
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::kind::ToolKind;
use crate::properties::{stateless_tool, tool_properties};
use crate::tool::{Effect, Tool, ToolOutput};

stateless_tool! {
    /// Replaces, inserts or deletes one cell of a notebook. Every byte outside of the cell stays unchanged.
    ///
    /// A changed code cell loses its outputs and its execution count, which belong to the old code.
    pub struct NotebookEdit;
}

/// The arguments of `NotebookEdit`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct NotebookEditInput {
    /// The absolute path of the notebook.
    #[schemars(description = "")]
    pub notebook_path: String,
    /// ID, or number as `Read` shows it. `insert` adds after it, or at the start without it.
    pub cell_id: Option<String>,
    /// The new content of the cell.
    #[schemars(description = "")]
    pub new_source: String,
    /// Required with `insert`.
    pub cell_type: Option<CellKind>,
    /// Default: `replace`.
    pub edit_mode: Option<NotebookEditMode>,
}

/// The kind of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
#[expect(missing_docs, reason = "doc comments would turn the names in the schema into objects")]
pub enum CellKind {
    Code,
    Markdown,
}

/// The kind of an edit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
#[expect(missing_docs, reason = "doc comments would turn the names in the schema into objects")]
pub enum NotebookEditMode {
    // As above.
    #[default]
    Replace,
    Insert,
    Delete,
}

impl Tool for NotebookEdit {
    type Input = NotebookEditInput;

    tool_properties! {
        name: "NotebookEdit",
        description: include_str!("../../../prompts/anthropic/notebook_edit.md"),
        effect: Effect::Write,
        declares_changes: true,
        kind: ToolKind::EditFile.as_str(),
        supports_dry_run: true,
    }

    fn writes(&self, input: &NotebookEditInput) -> Vec<PathBuf> {
        vec![PathBuf::from(&input.notebook_path)]
    }

    /// The edit needs the content, and a failed edit shows lines of it.
    fn reads(&self, input: &NotebookEditInput) -> Vec<PathBuf> {
        self.writes(input)
    }

    async fn call(&self, input: NotebookEditInput, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let path = Path::new(&input.notebook_path);
        let old = match cx.env.read(path, None).await {
            Ok(bytes) => bytes,
            Err(error) => return Err(unreadable(cx.env.as_ref(), path, error).await),
        };
        let text = std::str::from_utf8(&old).map_err(|source| {
            let message = format!("{} is no notebook: it is not UTF-8", input.notebook_path);
            ToolError::failed(message).with_source(source)
        })?;
        let (new, report) = edited(text, &input, cx)?;
        write_edited(cx, path, &old, new.as_bytes()).await?;
        let change = file_change(&input.notebook_path, Some(old), new.as_bytes());
        Ok(ToolOutput::new(format!("{report} in {}.", input.notebook_path)).with_change(change))
    }
}

/// Returns the edited notebook and the report for the model.
fn edited(text: &str, input: &NotebookEditInput, cx: &ToolContext) -> Result<(String, String), ToolError> {
    let document = Document::parse(&input.notebook_path, text)?;
    let wanted = input.cell_id.as_deref().map(|id| document.find(id)).transpose()?;
    let missing = |name: &str, mode: &str| {
        let message = format!("`{name}`: required with edit_mode {mode}, but missing");
        ToolError::invalid_arguments(message)
    };
    match (input.edit_mode.unwrap_or_default(), wanted) {
        (NotebookEditMode::Replace, None) => Err(missing("cell_id", "replace")),
        (NotebookEditMode::Delete, None) => Err(missing("cell_id", "delete")),
        (NotebookEditMode::Replace, Some(at)) => {
            let new = document.replaced(at, &input.new_source, input.cell_type)?;
            Ok((new, format!("Updated cell {}", document.name(at))))
        }
        (NotebookEditMode::Delete, Some(at)) => {
            Ok((document.without(at), format!("Deleted cell {}", document.name(at))))
        }
        (NotebookEditMode::Insert, after) => {
            let kind = input.cell_type.ok_or_else(|| missing("cell_type", "insert"))?;
            let cell = NewCell { kind, source: &input.new_source, seed: &cx.call_id };
            let (new, name) = document.with_new(after, &cell)?;
            Ok((new, format!("Inserted cell {name}")))
        }
    }
}

#[cfg(test)]
mod tests;
