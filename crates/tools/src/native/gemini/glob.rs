//! `glob`: finds files by name.

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
    /// Finds files by a pattern. Returns absolute paths, the newest first, below a line with their number.
    pub struct Glob;
}

/// The arguments of `glob`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct GlobInput {
    /// The pattern that the files' paths match, for instance `**/*.py` or `docs/*.md`.
    #[schemars(description = "")]
    pub pattern: String,
    /// Default: the working directory.
    pub dir_path: Option<String>,
}

impl Tool for Glob {
    type Input = GlobInput;

    tool_properties! {
        name: "glob",
        description: include_str!("../../../prompts/gemini/glob.md"),
        effect: Effect::Read,
        kind: ToolKind::Glob.as_str(),
    }

    fn reads(&self, input: &GlobInput) -> Vec<PathBuf> {
        vec![search_base(input.dir_path.as_deref(), &input.pattern)]
    }

    fn read_extent(&self, _input: &GlobInput) -> ReadExtent {
        ReadExtent::Searched
    }

    async fn call(&self, input: GlobInput, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let directory = Path::new(input.dir_path.as_deref().unwrap_or("."));
        let found = cx.env.glob(&input.pattern, directory).await?;
        let (pattern, base) = (&input.pattern, cx.env.resolve(directory).display().to_string());
        if found.is_empty() {
            let ignored = ignored_matches(cx.env.as_ref(), pattern, directory).await.unwrap_or_default();
            return Ok(ToolOutput::new(format!(
                "No files found matching pattern \"{pattern}\" within {base}{ignored}"
            )));
        }
        let paths: Vec<String> = found.iter().map(|path| path.display().to_string()).collect();
        Ok(ToolOutput::new(format!(
            "Found {} file(s) matching \"{pattern}\" within {base}, sorted by modification time (newest first):\n{}",
            paths.len(),
            paths.join("\n")
        )))
    }
}
