//! `Grep`: searches the content of files.

mod render;

use std::path::PathBuf;

use pintle_env::{GrepMode, GrepOutput, GrepRequest};
use schemars::JsonSchema;
use serde::Deserialize;

use self::render::Page;
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::kind::ToolKind;
use crate::native::number::count;
use crate::properties::{stateless_tool, tool_properties};
use crate::tool::{Effect, ReadExtent, Tool, ToolOutput};

/// Maximum number of results requested from the environment. Without a limit in the call, the output limits apply.
const MAX_RESULTS: usize = 10_000;

stateless_tool! {
    /// Searches the content of files.
    ///
    /// Paths inside of the working directory are relative. Long lines are cut as in
    /// [`builtin::Grep`](crate::builtin::Grep).
    pub struct Grep;
}

/// The arguments of `Grep`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct GrepInput {
    /// The regular expression to search for.
    #[schemars(description = "")]
    pub pattern: String,
    /// Default: the working directory.
    pub path: Option<String>,
    /// Such as `*.{ts,tsx}`. Not with `type`.
    pub glob: Option<String>,
    /// Default: `files_with_matches`.
    pub output_mode: Option<GrepOutputMode>,
    /// How many lines to show before each match. In `content` mode only.
    #[schemars(description = "")]
    #[serde(rename = "-B")]
    pub before: Option<f64>,
    /// How many lines to show after each match. In `content` mode only.
    #[schemars(description = "")]
    #[serde(rename = "-A")]
    pub after: Option<f64>,
    /// How many lines to show before and after each match. In `content` mode only.
    #[schemars(description = "")]
    #[serde(rename = "-C")]
    pub around: Option<f64>,
    /// The same as `-C`.
    #[schemars(description = "")]
    pub context: Option<f64>,
    /// Whether to show line numbers. In `content` mode only. Default: true.
    #[schemars(description = "")]
    #[serde(rename = "-n")]
    pub line_numbers: Option<bool>,
    /// Whether to ignore case. Default: false.
    #[schemars(description = "")]
    #[serde(rename = "-i")]
    pub ignore_case: Option<bool>,
    /// Such as `rust`.
    #[serde(rename = "type")]
    pub file_type: Option<String>,
    /// Show only the first so many lines or entries. Default: 0, which sets no limit.
    #[schemars(description = "")]
    pub head_limit: Option<f64>,
    /// Leave out so many lines or entries before the first that is shown. Default: 0.
    #[schemars(description = "")]
    pub offset: Option<f64>,
}

/// The form of a result of `Grep`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
#[expect(missing_docs, reason = "doc comments would turn the names in the schema into objects")]
pub enum GrepOutputMode {
    Content,
    #[default]
    FilesWithMatches,
    Count,
}

impl Tool for Grep {
    type Input = GrepInput;

    tool_properties! {
        name: "Grep",
        description: include_str!("../../../prompts/anthropic/grep.md"),
        effect: Effect::Read,
        kind: ToolKind::Grep.as_str(),
    }

    fn reads(&self, input: &GrepInput) -> Vec<PathBuf> {
        vec![PathBuf::from(input.path.as_deref().unwrap_or("."))]
    }

    fn read_extent(&self, _input: &GrepInput) -> ReadExtent {
        ReadExtent::Searched
    }

    async fn call(&self, input: GrepInput, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let page = Page {
            offset: input.offset.map_or(0, count),
            limit: input.head_limit.map(count).filter(|limit| *limit > 0),
        };
        let (numbers, mode) = (input.line_numbers.unwrap_or(true), input.output_mode.unwrap_or_default());
        let request = request(input, page)?;
        let found: GrepOutput = cx.env.grep(&request).await?;
        let env = cx.env.as_ref();
        Ok(ToolOutput::new(match mode {
            GrepOutputMode::Content => render::content(env, &found, page, numbers),
            GrepOutputMode::FilesWithMatches => render::files(env, &found, page),
            GrepOutputMode::Count => render::counts(env, &found, page),
        }))
    }
}

fn request(input: GrepInput, page: Page) -> Result<GrepRequest, ToolError> {
    let filter = match (input.glob, input.file_type) {
        (Some(_), Some(_)) => {
            let message = "glob and type exclude each other: give the one that says it best";
            return Err(ToolError::invalid_arguments(message));
        }
        (glob, None) => glob,
        (None, Some(file_type)) => Some(glob_of_type(&file_type)),
    };
    let around = input.around.or(input.context);
    let lines = |own: Option<f64>| own.or(around).map_or(0, count);
    let mut request = GrepRequest::new(input.pattern)
        .with_case_insensitive(input.ignore_case.unwrap_or(false))
        .with_max_results(page.end().unwrap_or(MAX_RESULTS).clamp(1, MAX_RESULTS))
        .with_output_mode(match input.output_mode.unwrap_or_default() {
            GrepOutputMode::Content => GrepMode::Content,
            GrepOutputMode::FilesWithMatches => GrepMode::FilesWithMatches,
            GrepOutputMode::Count => GrepMode::Count,
        })
        .with_context(lines(input.before), lines(input.after));
    request.path = input.path.map(Into::into);
    request.glob_filter = filter;
    Ok(request)
}

/// Returns the glob for a file type of ripgrep. An unknown type is treated as an extension.
fn glob_of_type(name: &str) -> String {
    let extensions = match name {
        "c" => "{c,h}",
        "cpp" => "{cc,cpp,cxx,hh,hpp,hxx,h}",
        "csharp" => "cs",
        "elixir" => "{ex,exs}",
        "haskell" => "hs",
        "html" => "{html,htm}",
        "js" => "{js,jsx,mjs,cjs}",
        "json" => "json",
        "kotlin" => "{kt,kts}",
        "markdown" | "md" => "{md,markdown,mdx}",
        "perl" => "{pl,pm}",
        "py" | "python" => "{py,pyi}",
        "ruby" => "rb",
        "rust" => "rs",
        "sh" => "{sh,bash,zsh}",
        "ts" | "typescript" => "{ts,tsx,mts,cts}",
        "yaml" => "{yaml,yml}",
        other => other,
    };
    format!("*.{extensions}")
}
