//! `grep`: searches the content of files.

use std::fmt::Write as _;

use std::path::PathBuf;

use pintle_env::{ExecutionEnvironment, GrepLine, GrepMode, GrepOutput, GrepRequest};
use schemars::JsonSchema;
use serde::Deserialize;

use super::path::display_path;
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::properties::{stateless_tool, tool_properties};
use crate::tool::{Effect, ReadExtent, Tool, ToolOutput};

/// Maximum number of characters shown of a line, so that lines of minified files do not crowd out the others.
const LINE_LIMIT: usize = 1000;

stateless_tool! {
    /// Searches the content of files (loop specification, section 3.3, with the output modes of 3.5).
    ///
    /// Paths inside of the working directory are relative. Of a line with more than 1,000 characters, the 1,000 around
    /// the first match are shown, with a count of the others.
    pub struct Grep;
}

/// The arguments of `grep`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct GrepInput {
    /// The regular expression to search for.
    #[schemars(description = "")]
    pub pattern: String,
    /// Directory or file. Default: the working directory.
    pub path: Option<String>,
    /// Only matching files, such as `*.py`.
    pub glob_filter: Option<String>,
    /// Whether to ignore case. Default: false.
    #[schemars(description = "")]
    pub case_insensitive: Option<bool>,
    /// Most lines, or files. Default: 100.
    #[schemars(range(min = 1))]
    pub max_results: Option<usize>,
    /// Lines (`content`, the default), paths, or paths with the number of lines.
    pub output_mode: Option<GrepOutputMode>,
}

/// The form of a result of `grep`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
#[expect(missing_docs, reason = "doc comments would turn the names in the schema into objects")]
pub enum GrepOutputMode {
    Content,
    FilesWithMatches,
    Count,
}

impl Tool for Grep {
    type Input = GrepInput;

    tool_properties! {
        name: "grep",
        description: include_str!("../../prompts/builtin/grep.md"),
        effect: Effect::Read,
    }

    fn reads(&self, input: &GrepInput) -> Vec<PathBuf> {
        vec![PathBuf::from(input.path.as_deref().unwrap_or("."))]
    }

    fn read_extent(&self, _input: &GrepInput) -> ReadExtent {
        ReadExtent::Searched
    }

    async fn call(&self, input: GrepInput, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let request = request(input);
        let found = cx.env.grep(&request).await?;
        Ok(ToolOutput::new(render(cx.env.as_ref(), &request, &found)))
    }
}

fn request(input: GrepInput) -> GrepRequest {
    let mut request = GrepRequest::new(input.pattern);
    request.path = input.path.map(Into::into);
    request.glob_filter = input.glob_filter;
    request.case_insensitive = input.case_insensitive.unwrap_or(false);
    request.max_results = input.max_results.unwrap_or(request.max_results);
    request.output_mode = match input.output_mode {
        None | Some(GrepOutputMode::Content) => GrepMode::Content,
        Some(GrepOutputMode::FilesWithMatches) => GrepMode::FilesWithMatches,
        Some(GrepOutputMode::Count) => GrepMode::Count,
    };
    request
}

fn render(env: &dyn ExecutionEnvironment, request: &GrepRequest, found: &GrepOutput) -> String {
    let mut lines = Vec::new();
    for file in &found.files {
        let path = display_path(env, &file.path);
        match request.output_mode {
            GrepMode::Content => {
                lines.extend(
                    file.lines.iter().map(|line| format!("{path}:{}:{}", line.number, shown_line(line))),
                );
            }
            GrepMode::FilesWithMatches => lines.push(path),
            GrepMode::Count => lines.push(format!("{path}:{}", file.matches)),
        }
    }
    let mut text = if lines.is_empty() { "No matches found".to_owned() } else { lines.join("\n") };
    for note in notes(request, found) {
        let _infallible = write!(text, "\n[{note}]");
    }
    text
}

fn notes(request: &GrepRequest, found: &GrepOutput) -> Vec<String> {
    let mut notes = Vec::new();
    if found.truncated {
        let what = match request.output_mode {
            GrepMode::Content => "matching lines",
            GrepMode::FilesWithMatches | GrepMode::Count => "files",
        };
        notes.push(format!(
            "There is more: these are the first {} {what}. Narrow the search or raise max_results.",
            request.max_results
        ));
    }
    if found.binary_files > 0 {
        notes.push(format!("Binary files skipped: {}", found.binary_files));
    }
    if found.unreadable_files > 0 {
        notes.push(format!("Files that cannot be read: {}", found.unreadable_files));
    }
    notes.extend(ignored_note(found));
    notes
}

/// Returns a note about the ignored matches of a search without a result.
pub(crate) fn ignored_note(found: &GrepOutput) -> Option<String> {
    (found.files.is_empty() && found.ignored > 0).then(|| {
        format!(
            "Ignored files and directories that were not searched: {}. To search one, name it as the path.",
            found.ignored
        )
    })
}

/// Returns the text of a line; of a long one, the part with the first match, and the number of characters around it.
pub(crate) fn shown_line(line: &GrepLine) -> String {
    let chars = line.text.chars().count();
    if chars <= LINE_LIMIT && line.skipped == 0 {
        return line.text.clone();
    }
    let before_match = line.text.get(..line.match_start).unwrap_or_default().chars().count();
    let first = if line.skipped == 0 && before_match <= LINE_LIMIT / 2 {
        0
    } else {
        before_match.saturating_sub(LINE_LIMIT / 4).min(chars.saturating_sub(LINE_LIMIT))
    };
    let kept: String = line.text.chars().skip(first).take(LINE_LIMIT).collect();
    let (before, after) = (line.skipped + first, chars.saturating_sub(first + LINE_LIMIT));
    let before = if before == 0 { String::new() } else { format!("({before} earlier characters) …") };
    let after = if after == 0 { String::new() } else { format!("… ({after} more characters)") };
    format!("{before}{kept}{after}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tests::harness::Harness;

    fn harness() -> Harness {
        let harness = Harness::new();
        harness.write("a.rs", "fn One() {}\nfn two() {}\n// fn\n");
        harness.write("sub/b.py", "def fn():\n    pass\n");
        harness.write("sub/c.bin", b"fn\0");
        harness.write(".gitignore", "ignored\nwhole/*\n");
        harness.write("whole/w.rs", "fn whole() {}\n");
        harness.write("ignored", "fn\n");
        harness
    }

    #[tokio::test]
    async fn matches_have_path_and_line_number() {
        let harness = harness();
        let cases = [
            (
                json!({"pattern": "fn"}),
                "a.rs:1:fn One() {}\na.rs:2:fn two() {}\na.rs:3:// fn\nsub/b.py:1:def fn():",
            ),
            (json!({"pattern": "one", "case_insensitive": true}), "a.rs:1:fn One() {}"),
            (json!({"pattern": "fn", "path": "sub"}), "sub/b.py:1:def fn():"),
            (json!({"pattern": "fn", "glob_filter": "*.py"}), "sub/b.py:1:def fn():"),
            (
                json!({"pattern": "(?i)def|one", "glob_filter": "*.py,*.rs"}),
                "a.rs:1:fn One() {}\nsub/b.py:1:def fn():",
            ),
            (json!({"pattern": "fn", "path": "ignored"}), "ignored:1:fn"),
            (json!({"pattern": "fn", "path": "whole"}), "whole/w.rs:1:fn whole() {}"),
            (json!({"pattern": "^fn", "output_mode": "count"}), "a.rs:2"),
            (json!({"pattern": "fn", "output_mode": "files_with_matches"}), "a.rs\nsub/b.py"),
            (json!({"pattern": "nowhere", "path": "a.rs"}), "No matches found"),
        ];
        for (arguments, expected) in cases {
            let answer = harness.call(Grep::new(), &arguments.to_string()).await;
            let answer = answer.replace("\n[Binary files skipped: 1]", "");
            assert_eq!(answer, format!("ok: {expected}"), "{arguments}");
        }
    }

    #[tokio::test]
    async fn omitted_results_are_reported() {
        let harness = harness();
        insta::assert_snapshot!(
            harness.call(Grep::new(), r#"{"pattern": "fn", "max_results": 2, "path": "."}"#).await, @"
        ok: a.rs:1:fn One() {}
        a.rs:2:fn two() {}
        [There is more: these are the first 2 matching lines. Narrow the search or raise max_results.]
        ");
        insta::assert_snapshot!(harness.call(Grep::new(), r#"{"pattern": "nowhere"}"#).await, @"
        ok: No matches found
        [Binary files skipped: 1]
        [Ignored files and directories that were not searched: 2. To search one, name it as the path.]
        ");
        harness.write("long.txt", format!("{}é", "x".repeat(LINE_LIMIT)));
        let answer = harness.call(Grep::new(), r#"{"pattern": "xx", "path": "long.txt"}"#).await;
        assert!(answer.ends_with("xx… (1 more characters)"), "{answer}");
    }

    #[tokio::test]
    async fn the_part_of_a_long_line_with_the_match_is_shown() {
        let harness = Harness::new();
        for (before, after, starts, ends) in [
            (400, 400, "xxx", "xxx"),
            (400, 4_000, "xxx", "… (3406 more characters)"),
            (4_000, 4_000, "(3750 earlier characters) …xxx", "… (3256 more characters)"),
            (4_000, 0, "(3006 earlier characters) …xxx", "xxneedle"),
            (400_000, 0, "(399006 earlier characters) …xxx", "xxneedle"),
        ] {
            harness.write("long.txt", format!("{}needle{}", "x".repeat(before), "x".repeat(after)));
            let answer = harness.call(Grep::new(), r#"{"pattern": "needle", "path": "long.txt"}"#).await;
            let line = answer.strip_prefix("ok: long.txt:1:").unwrap();
            assert!(line.contains("xneedle"), "{before} {after}: {line}");
            assert!(line.starts_with(starts) && line.ends_with(ends), "{before} {after}: {line}");
            assert!(line.len() < LINE_LIMIT + 100, "{before} {after}");
        }
    }

    #[tokio::test]
    async fn failed_searches_explain_themselves() {
        let harness = harness();
        let invalid = harness.call(Grep::new(), r#"{"pattern": "a("}"#).await;
        assert!(invalid.starts_with(r#"error: Tool error (grep): invalid pattern "a(": "#), "{invalid}");
        assert_eq!(
            harness.call(Grep::new(), r#"{"pattern": "a", "path": "nowhere"}"#).await,
            "error: Tool error (grep): DIR/nowhere does not exist"
        );
    }
}
