//! `glob`: finds files by name.

use std::path::{Path, PathBuf};

use pintle_env::{ExecutionEnvironment, ExecutionEnvironmentExt as _, GlobRequest, SearchScope};
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
    /// Relative to `path`.
    pub pattern: String,
    /// Default: the working directory.
    pub path: Option<String>,
}

impl Tool for Glob {
    type Input = GlobInput;

    tool_properties! {
        name: "glob",
        description: include_str!("../../prompts/builtin/glob.md"),
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
            let ignored = ignored_matches(cx.env.as_ref(), &input.pattern, Path::new(directory)).await;
            return Ok(ToolOutput::new(format!("No files found{}", ignored.unwrap_or_default())));
        }
        let paths: Vec<String> = found.iter().map(|path| display_path(cx.env.as_ref(), path)).collect();
        Ok(ToolOutput::new(paths.join("\n")))
    }
}

/// Returns a line about the ignored files that a search without a result left out; `None` without such files.
pub(crate) async fn ignored_matches(
    env: &dyn ExecutionEnvironment,
    pattern: &str,
    directory: &Path,
) -> Option<String> {
    let scope = SearchScope::default().with_ignored(true);
    let request = GlobRequest::new(pattern).with_path(directory).with_scope(scope);
    // The search itself has succeeded, so failing to count is not an error.
    let count = env.find_files(&request).await.ok()?.len();
    (count > 0).then(|| {
        format!("\n[Ignored files that match and were left out: {count}. A path without wildcards finds its file.]")
    })
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::time::{Duration, SystemTime};

    use serde_json::json;

    use super::*;
    use crate::tests::harness::Harness;

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
    async fn ignored_files_are_found_by_name_or_counted() {
        let harness = Harness::new();
        harness.write(".gitignore", "*.log\n/whole/*\n/build/\n");
        for name in [
            "a.log",
            "logs/b.log",
            "logs/c.txt",
            "whole/w.py",
            "whole/v/x.py",
            "build/d/o.js",
            "app/[id]/p.tsx",
        ] {
            harness.write(name, "");
        }
        let omitted = |count: usize| {
            format!(
                "No files found\n[Ignored files that match and were left out: {count}. A path without wildcards finds \
                 its file.]"
            )
        };
        let cases = [
            (json!({"pattern": "a.log"}), "a.log".to_owned()),
            (json!({"pattern": "logs/b.log"}), "logs/b.log".to_owned()),
            (json!({"pattern": "build/d/o.js"}), "build/d/o.js".to_owned()),
            (json!({"pattern": "*.py", "path": "whole"}), "whole/w.py".to_owned()),
            (json!({"pattern": "whole/v/*"}), "whole/v/x.py".to_owned()),
            (json!({"pattern": "app/[id]/p.tsx"}), "app/[id]/p.tsx".to_owned()),
            (json!({"pattern": "app/[id]/*"}), "app/[id]/p.tsx".to_owned()),
            (json!({"pattern": "**/*.log"}), omitted(2)),
            (json!({"pattern": "logs/*.log"}), omitted(1)),
            (json!({"pattern": "**/*.rs"}), "No files found".to_owned()),
        ];
        for (arguments, expected) in cases {
            let answer = harness.call(Glob::new(), &arguments.to_string()).await;
            assert_eq!(answer, format!("ok: {expected}"), "{arguments}");
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
