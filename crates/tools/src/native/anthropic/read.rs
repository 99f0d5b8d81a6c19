//! `Read`: `read_file` with the numbers of `cat -n`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Deserialize;

use crate::builtin::{OffsetPastEnd, ReadFile, ReadFileInput};
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::native::number::count;
use crate::native::numbered::{Numbered, text_of};
use crate::kind::ToolKind;
use crate::tool::{Effect, Tool, ToolOutput};

/// Reads a file, as [`ReadFile`] does. A line comes as its number, right-aligned to six places, `→` and its text.
#[derive(Clone, Copy, Debug, Default)]
pub struct Read(());

/// The arguments of `Read`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ReadInput {
    /// The absolute path of the file.
    pub file_path: String,
    /// The number of the line to start at, counted from 1. Only for files that are too long to be read at once.
    pub offset: Option<f64>,
    /// How many lines to read. Only for files that are too long to be read at once.
    pub limit: Option<f64>,
}

impl Read {
    /// The tool.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl Tool for Read {
    type Input = ReadInput;

    fn name(&self) -> &str {
        "Read"
    }

    fn description(&self) -> &str {
        include_str!("read.md").trim_end()
    }

    fn effect(&self) -> Effect {
        Effect::Read
    }

    fn kind(&self) -> &str {
        ToolKind::ReadFile.as_str()
    }

    fn reads(&self, input: &ReadInput) -> Vec<PathBuf> {
        vec![PathBuf::from(&input.file_path)]
    }

    async fn call(&self, input: ReadInput, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let first = input.offset.map_or(1, count).max(1);
        let request = ReadFileInput {
            file_path: input.file_path.clone(),
            offset: Some(first),
            limit: input.limit.map(|limit| count(limit).max(1)),
        };
        let read = ReadFile::new().call(request, cx).await;
        let output = match read {
            Err(error) if OffsetPastEnd::of(&error).is_some() => {
                return Ok(ToolOutput::new(reminder(error.for_model())));
            }
            output => output?,
        };
        let text = text_of(&output.text)?;
        let shown = if is_empty(&input.file_path, cx).await { reminder(&text) } else { render(&text, first) };
        Ok(ToolOutput { text: shown.into(), ..output })
    }
}

async fn is_empty(path: &str, cx: &ToolContext) -> bool {
    cx.env.metadata(Path::new(path)).await.is_ok_and(|metadata| metadata.len == 0)
}

fn reminder(text: &str) -> String {
    format!("<system-reminder>Warning: {text}</system-reminder>")
}

fn render(text: &str, first: usize) -> String {
    let numbered = Numbered::of(text, first);
    let mut shown = String::with_capacity(text.len() + numbered.lines.len() * 6);
    for (number, line) in (first..).zip(&numbered.lines) {
        let _infallible = writeln!(shown, "{number:>6}→{line}");
    }
    shown.push_str(numbered.rest);
    if numbered.rest.is_empty() {
        shown.pop();
    }
    shown
}
