//! `list_directory`: lists one directory.

use std::path::{Path, PathBuf};

use pintle_env::DirEntry;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::builtin::unreadable;
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::kind::ToolKind;
use crate::properties::{stateless_tool, tool_properties};
use crate::tool::{Effect, ReadExtent, Tool, ToolOutput};

stateless_tool! {
    /// Lists a directory: subdirectories first, then files with their sizes.
    pub struct ListDirectory;
}

/// The arguments of `list_directory`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ListDirectoryInput {
    /// The path of the directory.
    #[schemars(description = "")]
    pub dir_path: String,
}

impl Tool for ListDirectory {
    type Input = ListDirectoryInput;

    tool_properties! {
        name: "list_directory",
        description: include_str!("../../../prompts/gemini/list_directory.md"),
        effect: Effect::Read,
        kind: ToolKind::ListDir.as_str(),
    }

    fn reads(&self, input: &ListDirectoryInput) -> Vec<PathBuf> {
        vec![PathBuf::from(&input.dir_path)]
    }

    fn read_extent(&self, _input: &ListDirectoryInput) -> ReadExtent {
        ReadExtent::Names { levels: 1 }
    }

    async fn call(&self, input: ListDirectoryInput, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let path = Path::new(&input.dir_path);
        let mut entries = match cx.env.list(path).await {
            Ok(entries) => entries,
            Err(error) => return Err(unreadable(cx.env.as_ref(), path, error).await),
        };
        let directory = cx.env.resolve(path).display().to_string();
        if entries.is_empty() {
            return Ok(ToolOutput::new(format!("Directory {directory} is empty.")));
        }
        // The sort is stable, so the names stay in order.
        entries.sort_by_key(|entry| !entry.is_dir);
        let lines: Vec<String> = entries.iter().map(line).collect();
        Ok(ToolOutput::new(format!("Directory listing for {directory}:\n{}", lines.join("\n"))))
    }
}

fn line(entry: &DirEntry) -> String {
    let name = entry.name.display();
    match entry.size {
        _ if entry.is_dir => format!("[DIR] {name}"),
        Some(size) => format!("{name} ({size} bytes)"),
        None => name.to_string(),
    }
}
