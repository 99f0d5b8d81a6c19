//! `list_dir`: lists a directory as a tree.

use std::path::{Path, PathBuf};

use pintle_env::{DirEntry, ExecutionEnvironmentExt as _};
use schemars::JsonSchema;
use serde::Deserialize;

use super::path::unreadable;
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::properties::{stateless_tool, tool_properties};
use crate::tool::{Effect, ReadExtent, Tool, ToolOutput};

stateless_tool! {
    /// Lists a directory to a given depth (loop specification, section 3.6).
    pub struct ListDir;
}

/// The arguments of `list_dir`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ListDirInput {
    /// Default: the working directory.
    pub path: Option<String>,
    /// Levels to show. Default: 1.
    #[schemars(range(min = 1))]
    pub depth: Option<usize>,
}

impl Tool for ListDir {
    type Input = ListDirInput;

    tool_properties! {
        name: "list_dir",
        description: include_str!("../../prompts/builtin/list_dir.md"),
        effect: Effect::Read,
    }

    fn reads(&self, input: &ListDirInput) -> Vec<PathBuf> {
        vec![PathBuf::from(input.path.as_deref().unwrap_or("."))]
    }

    fn read_extent(&self, input: &ListDirInput) -> ReadExtent {
        ReadExtent::Names { levels: input.depth.unwrap_or(1) }
    }

    async fn call(&self, input: ListDirInput, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let path = input.path.as_deref().unwrap_or(".");
        let entries = match cx.env.list_directory(Path::new(path), input.depth.unwrap_or(1)).await {
            Ok(entries) => entries,
            Err(error) => return Err(unreadable(cx.env.as_ref(), Path::new(path), error).await),
        };
        if entries.is_empty() {
            return Ok(ToolOutput::new(format!("[{path} is empty]")));
        }
        let lines: Vec<String> = entries.iter().map(line).collect();
        Ok(ToolOutput::new(lines.join("\n")))
    }
}

fn line(entry: &DirEntry) -> String {
    let level = entry.name.components().count().saturating_sub(1);
    let name = entry.name.file_name().unwrap_or_default().to_string_lossy();
    let kind = match entry.size {
        Some(size) => format!(" ({size} bytes)"),
        None if entry.is_dir => "/".to_owned(),
        None if entry.is_symlink => " (link)".to_owned(),
        None => " (device, pipe or socket)".to_owned(),
    };
    format!("{}{name}{kind}", "  ".repeat(level))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::harness::Harness;

    #[tokio::test]
    async fn a_tree_is_shown_to_the_given_depth() {
        let harness = Harness::new();
        harness.write("src/main.rs", "12345");
        harness.write("src/deep/er/x", "");
        harness.write("README.md", "1");
        std::os::unix::fs::symlink("src", harness.path("link")).unwrap();
        assert_eq!(harness.call(ListDir::new(), "{}").await, "ok: README.md (1 bytes)\nlink (link)\nsrc/");
        insta::assert_snapshot!(harness.call(ListDir::new(), r#"{"path": ".", "depth": 3}"#).await, @"
        ok: README.md (1 bytes)
        link (link)
        src/
          deep/
            er/
          main.rs (5 bytes)
        ");
    }

    #[tokio::test]
    async fn failed_listings_explain_themselves() {
        let harness = Harness::new();
        harness.write("source/file", "");
        let mut answers = Vec::new();
        for path in ["sourc", "source/file"] {
            answers.push(harness.call(ListDir::new(), &format!(r#"{{"path": "{path}"}}"#)).await);
        }
        insta::assert_snapshot!(answers.join("\n"), @"
        error: Tool error (list_dir): DIR/sourc does not exist. Did you mean source?
        error: Tool error (list_dir): DIR/source/file is not a directory
        ");
    }
}
