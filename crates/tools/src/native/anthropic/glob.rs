//! `Glob`: finds files by name.

use std::path::{Path, PathBuf};

use pintle_env::ExecutionEnvironmentExt as _;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::builtin::{ignored_matches, search_base};
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::kind::ToolKind;
use crate::properties::{stateless_tool, tool_properties};
use crate::tool::{Effect, ReadExtent, Tool, ToolOutput};

stateless_tool! {
    /// Finds files by a pattern. Returns absolute paths, the newest last.
    pub struct Glob;
}

/// The arguments of `Glob`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct GlobInput {
    /// The pattern that the files' paths match.
    #[schemars(description = "")]
    pub pattern: String,
    /// Default: the working directory.
    pub path: Option<String>,
}

impl Tool for Glob {
    type Input = GlobInput;

    tool_properties! {
        name: "Glob",
        description: include_str!("../../../prompts/anthropic/glob.md"),
        effect: Effect::Read,
        kind: ToolKind::Glob.as_str(),
    }

    fn reads(&self, input: &GlobInput) -> Vec<PathBuf> {
        vec![search_base(input.path.as_deref(), &input.pattern)]
    }

    fn read_extent(&self, _input: &GlobInput) -> ReadExtent {
        ReadExtent::Searched
    }

    async fn call(&self, input: GlobInput, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let directory = input.path.as_deref().unwrap_or(".");
        let newest_first = cx.env.glob(&input.pattern, Path::new(directory)).await?;
        if newest_first.is_empty() {
            let ignored = ignored_matches(cx.env.as_ref(), &input.pattern, Path::new(directory)).await;
            return Ok(ToolOutput::new(format!("No files found{}", ignored.unwrap_or_default())));
        }
        let paths: Vec<String> = newest_first.iter().rev().map(|path| path.display().to_string()).collect();
        Ok(ToolOutput::new(paths.join("\n")))
    }
}
