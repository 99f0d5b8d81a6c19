//! `search_file_content`: searches the content of files.

use std::fmt::Write as _;
use std::path::PathBuf;

use pintle_env::{ExecutionEnvironment, GrepOutput, GrepRequest};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::builtin::{display_path, ignored_note, shown_line};
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::kind::ToolKind;
use crate::properties::{stateless_tool, tool_properties};
use crate::tool::{Effect, ReadExtent, Tool, ToolOutput};

/// Maximum number of matching lines per call.
const MAX_MATCHES: usize = 1_000;

stateless_tool! {
    /// Searches the content of files, ignoring case.
    pub struct SearchFileContent;
}

/// The arguments of `search_file_content`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct SearchFileContentInput {
    /// The regular expression to search for.
    #[schemars(description = "")]
    pub pattern: String,
    /// Default: the working directory.
    pub dir_path: Option<String>,
    /// Only matching files, such as `*.{ts,tsx}`.
    pub include: Option<String>,
}

impl Tool for SearchFileContent {
    type Input = SearchFileContentInput;

    tool_properties! {
        name: "search_file_content",
        description: include_str!("../../../prompts/gemini/search_file_content.md"),
        effect: Effect::Read,
        kind: ToolKind::Grep.as_str(),
    }

    fn reads(&self, input: &SearchFileContentInput) -> Vec<PathBuf> {
        vec![PathBuf::from(input.dir_path.as_deref().unwrap_or("."))]
    }

    fn read_extent(&self, _input: &SearchFileContentInput) -> ReadExtent {
        ReadExtent::Searched
    }

    async fn call(&self, input: SearchFileContentInput, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let mut request =
            GrepRequest::new(&input.pattern).with_case_insensitive(true).with_max_results(MAX_MATCHES);
        request.path = input.dir_path.as_ref().map(Into::into);
        request.glob_filter.clone_from(&input.include);
        let found = cx.env.grep(&request).await?;
        Ok(ToolOutput::new(render(cx.env.as_ref(), &input, &found)))
    }
}

fn render(env: &dyn ExecutionEnvironment, input: &SearchFileContentInput, found: &GrepOutput) -> String {
    let directory = input.dir_path.as_deref().unwrap_or(".");
    let filter =
        input.include.as_ref().map_or_else(String::new, |include| format!(" (filter: \"{include}\")"));
    let search = format!("for pattern \"{}\" in path \"{directory}\"{filter}", input.pattern);
    let count: usize = found.files.iter().map(|file| file.lines.len()).sum();
    if count == 0 {
        let note = ignored_note(found).map_or_else(String::new, |note| format!("\n[{note}]"));
        return format!("No matches found {search}.{note}");
    }
    let noun = if count == 1 { "match" } else { "matches" };
    let mut text = format!("Found {count} {noun} {search}:\n---\n");
    for file in &found.files {
        let _infallible = writeln!(text, "File: {}", display_path(env, &file.path));
        for line in &file.lines {
            let _infallible = writeln!(text, "L{}: {}", line.number, shown_line(line));
        }
        text.push_str("---\n");
    }
    if found.truncated {
        let _infallible = writeln!(text, "There are more: these are the first {count}. Narrow the search.");
    }
    text.truncate(text.trim_end().len());
    text
}
