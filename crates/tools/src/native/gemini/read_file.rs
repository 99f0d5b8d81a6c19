//! `read_file`: the text of a file without line numbers.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Deserialize;

use crate::builtin::{FileLines, FileView, OffsetPastEnd, read_file};
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::kind::ToolKind;
use crate::native::number::count;
use crate::properties::{stateless_tool, tool_properties};
use crate::tool::{Effect, Tool, ToolOutput};
use crate::truncate::ShortenedText;

stateless_tool! {
    /// Reads a file, like [`builtin::ReadFile`](crate::builtin::ReadFile), and shows it without line numbers.
    ///
    /// If the file has lines before or after the shown ones, a header reports that.
    pub struct ReadFile;
}

/// The arguments of `read_file`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ReadFileInput {
    /// The path of the file.
    #[schemars(description = "")]
    pub file_path: String,
    /// Lines to skip, with `limit`.
    pub offset: Option<f64>,
    /// Default: 2000.
    pub limit: Option<f64>,
}

impl Tool for ReadFile {
    type Input = ReadFileInput;

    tool_properties! {
        name: "read_file",
        description: include_str!("../../../prompts/gemini/read_file.md"),
        effect: Effect::Read,
        kind: ToolKind::ReadFile.as_str(),
    }

    fn reads(&self, input: &ReadFileInput) -> Vec<PathBuf> {
        vec![PathBuf::from(&input.file_path)]
    }

    async fn call(&self, input: ReadFileInput, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let skipped = input.offset.map_or(0, count);
        let limit = input.limit.map(|limit| count(limit).max(1));
        let view = read_file(cx, &input.file_path, Some(skipped.saturating_add(1)), limit).await;
        match view.map_err(|error| with_zero_based_offset(error, &input.file_path, skipped))? {
            FileView::Lines(lines) => Ok(show(&input.file_path, &lines, cx).await.into()),
            view @ (FileView::Notebook(_) | FileView::Image(..) | FileView::Empty(_)) => {
                Ok(view.into_output())
            }
        }
    }
}

/// Reports an offset past the end with offsets counted from 0, as in this tool.
fn with_zero_based_offset(error: ToolError, path: &str, skipped: usize) -> ToolError {
    let Some(OffsetPastEnd { lines }) = OffsetPastEnd::from_error(&error) else { return error };
    let message = format!(
        "offset {skipped} is past the end of {path}, which has {lines} lines; the first is at offset 0"
    );
    ToolError::new(error.kind(), message).with_source(error)
}

/// Returns lines, below a header unless they are the whole file. Only the model gets a header that is just about cut
/// lines.
async fn show(path: &str, lines: &FileLines, cx: &ToolContext) -> ShortenedText {
    let mut content = ShortenedText::default();
    let first_cut = lines.append_to(&mut content, |_text, _number| {});
    let is_part = lines.first() > 1 || lines.has_more();
    let mut shown = ShortenedText::default();
    if is_part {
        shown.push(&header(path, lines, None, cx).await);
    }
    if first_cut.is_some() {
        shown.shortened = Some(header(path, lines, first_cut, cx).await);
    }
    shown.append(&content);
    shown
}

/// Returns the header of a part of a file. `first_cut` is the number of the first line that is cut.
async fn header(path: &str, lines: &FileLines, first_cut: Option<usize>, cx: &ToolContext) -> String {
    let (first, last) = (lines.first(), lines.last());
    // The lines of a file that is too large are not counted.
    let counted = cx.env.read_file(Path::new(path), None, None).await.map(|text| text.lines().count());
    let total = counted.as_ref().map_or_else(|_| "many".to_owned(), usize::to_string);
    let mut action = if counted.is_ok_and(|total| total <= last) {
        "This is the end of the file.".to_owned()
    } else {
        format!("To go on, call 'read_file' with offset: {last} and a 'limit'.")
    };
    if let Some(number) = first_cut {
        action.push_str(&format!(
            " To read a long line whole, read it alone, such as with offset: {} and limit: 1.",
            number.saturating_sub(1)
        ));
    }
    format!(
        include_str!("../../../prompts/gemini/read_file_truncated.md"),
        first = first,
        last = last,
        total = total,
        action = action
    )
}
