//! `read_file`: the text as it stands in the file.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Deserialize;

use crate::builtin::{self, OffsetPastEnd};
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::native::number::count;
use crate::native::numbered::{Numbered, text_of};
use crate::kind::ToolKind;
use crate::tool::{Effect, Tool, ToolOutput};

/// Reads a file, as [`builtin::ReadFile`] does, and shows it without line numbers.
///
/// Where the file has lines before or after those that are shown, a header says which they are.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadFile(());

/// The arguments of `read_file`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ReadFileInput {
    /// The path of the file.
    pub file_path: String,
    /// How many lines to leave out at the beginning. For files that were cut; used together with `limit`.
    pub offset: Option<f64>,
    /// How many lines to read. Default: 2000.
    pub limit: Option<f64>,
}

impl ReadFile {
    /// The tool.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl Tool for ReadFile {
    type Input = ReadFileInput;

    fn name(&self) -> &str {
        "read_file"
    }

    fn description(&self) -> &str {
        include_str!("read_file.md").trim_end()
    }

    fn effect(&self) -> Effect {
        Effect::Read
    }

    fn kind(&self) -> &str {
        ToolKind::ReadFile.as_str()
    }

    fn reads(&self, input: &ReadFileInput) -> Vec<PathBuf> {
        vec![PathBuf::from(&input.file_path)]
    }

    async fn call(&self, input: ReadFileInput, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let skipped = input.offset.map_or(0, count);
        let first = skipped.saturating_add(1);
        let request = builtin::ReadFileInput {
            file_path: input.file_path.clone(),
            offset: Some(first),
            limit: input.limit.map(|limit| count(limit).max(1)),
        };
        let read = builtin::ReadFile::new().call(request, cx).await;
        let output = read.map_err(|error| recounted(error, &input.file_path, skipped))?;
        let text = text_of(&output.text)?;
        let numbered = Numbered::of(&text, first);
        if numbered.lines.is_empty() {
            return Ok(output);
        }
        let content = numbered.lines.join("\n");
        let shown = if first > 1 || !numbered.rest.is_empty() {
            let last = skipped + numbered.lines.len();
            let cut = first_cut(&numbered.lines).map(|index| skipped + index);
            format!("{}{content}", header(&input.file_path, first, last, cut, cx).await)
        } else {
            content
        };
        Ok(ToolOutput { text: shown.into(), ..output })
    }
}

/// An offset that is past the end, as the call counts it: from 0.
fn recounted(error: ToolError, path: &str, skipped: usize) -> ToolError {
    let Some(OffsetPastEnd { lines }) = OffsetPastEnd::of(&error) else { return error };
    let message = format!(
        "offset {skipped} is past the end of {path}, which has {lines} lines; the first is at offset 0"
    );
    ToolError::new(error.kind(), message).with_source(error)
}

/// The first of these lines that was cut. One that is read alone comes whole.
fn first_cut(lines: &[&str]) -> Option<usize> {
    let is_long = |line: &&str| line.chars().nth(builtin::MAX_LINE).is_some();
    lines.iter().position(is_long).filter(|_| lines.len() > 1)
}

/// What a model must know of a text that is not the whole file. `cut` is the offset of a line that was cut.
async fn header(path: &str, first: usize, last: usize, cut: Option<usize>, cx: &ToolContext) -> String {
    // A file that is too long to be counted is cut all the same.
    let counted = cx.env.read_file(Path::new(path), None, None).await.map(|text| text.lines().count());
    let total = counted.as_ref().map_or_else(|_| "many".to_owned(), usize::to_string);
    let mut action = if counted.is_ok_and(|total| total <= last) {
        "This is the end of the file.".to_owned()
    } else {
        format!("To go on, call 'read_file' with offset: {last} and a 'limit'.")
    };
    if let Some(offset) = cut {
        action.push_str(&format!(
            " To read a long line whole, read it alone, such as with offset: {offset} and limit: 1."
        ));
    }
    format!(
        "IMPORTANT: The file content has been truncated.\n\
         Status: Showing lines {first}-{last} of {total} total lines.\n\
         Action: {action}\n\n\
         --- FILE CONTENT (truncated) ---\n"
    )
}
