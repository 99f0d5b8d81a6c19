//! `glob`: finds files by name.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Deserialize;

use super::path::{display_path, search_base};
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::properties::{stateless_tool, tool_properties};
use crate::tool::{Effect, ReadExtent, Tool, ToolOutput};

stateless_tool! {
    /// Finds files by a pattern, the newest first (loop specification, section 3.3).
    ///
    /// Paths inside of the working directory are relative.
    pub struct Glob;
}

/// The arguments of `glob`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct GlobInput {
    /// The pattern, for instance `**/*.ts`, relative to `path`.
    pub pattern: String,
    /// The directory to search. Default: the working directory.
    pub path: Option<String>,
}

impl Tool for Glob {
    type Input = GlobInput;

    tool_properties! {
        name: "glob",
        description: include_str!("glob.md"),
        effect: Effect::Read,
    }

    fn reads(&self, input: &GlobInput) -> Vec<PathBuf> {
        vec![search_base(input.path.as_deref(), &input.pattern)]
    }

    fn read_extent(&self, _input: &GlobInput) -> ReadExtent {
        ReadExtent::Searched
    }

    async fn call(&self, input: GlobInput, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let directory = input.path.as_deref().unwrap_or(".");
        let found = cx.env.glob(&input.pattern, Path::new(directory)).await?;
        if found.is_empty() {
            return Ok(ToolOutput::new("No files found"));
        }
        let paths: Vec<String> = found.iter().map(|path| display_path(cx.env.as_ref(), path)).collect();
        Ok(ToolOutput::new(paths.join("\n")))
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::time::{Duration, SystemTime};

    use serde_json::json;

    use super::*;
    use crate::harness::Harness;

    /// Makes a file older by some seconds.
    fn age(harness: &Harness, name: &str, seconds: u64) {
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000 - seconds);
        File::options().append(true).open(harness.path(name)).unwrap().set_modified(time).unwrap();
    }

    #[tokio::test]
    async fn the_newest_files_come_first() {
        let harness = Harness::new();
        for (name, seconds) in
            [("old.rs", 30), ("src/new.rs", 10), ("src/deep/mid.rs", 20), ("src/other.py", 5)]
        {
            harness.write(name, "");
            age(&harness, name, seconds);
        }
        let cases = [
            (json!({"pattern": "**/*.rs"}), "src/new.rs\nsrc/deep/mid.rs\nold.rs"),
            (json!({"pattern": "*.rs", "path": "src"}), "src/new.rs"),
            (json!({"pattern": "src/*.{rs,py}"}), "src/other.py\nsrc/new.rs"),
            (json!({"pattern": "*.c"}), "No files found"),
        ];
        for (arguments, expected) in cases {
            assert_eq!(
                harness.call(Glob::new(), &arguments.to_string()).await,
                format!("ok: {expected}"),
                "{arguments}"
            );
        }
    }

    #[tokio::test]
    async fn failed_searches_explain_themselves() {
        let harness = Harness::new();
        let invalid = harness.call(Glob::new(), r#"{"pattern": "a{b"}"#).await;
        assert!(invalid.starts_with(r#"error: Tool error (glob): invalid pattern "a{b": "#), "{invalid}");
        assert_eq!(
            harness.call(Glob::new(), r#"{"pattern": "*", "path": "nowhere"}"#).await,
            "error: Tool error (glob): DIR/nowhere does not exist"
        );
    }
}
