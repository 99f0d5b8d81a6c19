//! `Read`: `read_file` with line numbers as in `cat -n`.

use std::fmt::Write as _;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::builtin::{FileView, OffsetPastEnd, empty_file, read_file};
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::kind::ToolKind;
use crate::native::number::count;
use crate::properties::{stateless_tool, tool_properties};
use crate::tool::{Effect, Tool, ToolOutput};
use crate::truncate::ShortenedText;

stateless_tool! {
    /// Reads a file, like [`ReadFile`](crate::builtin::ReadFile). A line has the form of its number, right-aligned to
    /// six columns, `→` and its text.
    pub struct Read;
}

/// The arguments of `Read`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ReadInput {
    /// The absolute path of the file.
    #[schemars(description = "")]
    pub file_path: String,
    /// First line, counted from 1.
    pub offset: Option<f64>,
    /// How many lines to read. Only for files that are too long to be read at once.
    #[schemars(description = "")]
    pub limit: Option<f64>,
}

impl Tool for Read {
    type Input = ReadInput;

    tool_properties! {
        name: "Read",
        description: include_str!("../../../prompts/anthropic/read.md"),
        effect: Effect::Read,
        kind: ToolKind::ReadFile.as_str(),
    }

    fn reads(&self, input: &ReadInput) -> Vec<PathBuf> {
        vec![PathBuf::from(&input.file_path)]
    }

    async fn call(&self, input: ReadInput, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let (offset, limit) = (input.offset.map(count), input.limit.map(|limit| count(limit).max(1)));
        match read_file(cx, &input.file_path, offset, limit).await {
            Ok(FileView::Lines(lines)) => {
                let mut text = ShortenedText::default();
                let first_cut = lines.append_to(&mut text, |text, number| {
                    let _infallible = write!(text, "{number:>6}→");
                });
                lines.append_notes(&mut text, first_cut);
                Ok(text.into())
            }
            Ok(FileView::Empty(path)) => Ok(ToolOutput::new(reminder(&empty_file(&path)))),
            Ok(view @ (FileView::Notebook(_) | FileView::Image(..))) => Ok(view.into_output()),
            Err(error) if OffsetPastEnd::from_error(&error).is_some() => {
                Ok(ToolOutput::new(reminder(error.for_model())))
            }
            Err(error) => Err(error),
        }
    }
}

fn reminder(text: &str) -> String {
    format!("<system-reminder>Warning: {text}</system-reminder>")
}
