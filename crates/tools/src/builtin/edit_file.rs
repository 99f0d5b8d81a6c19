//! `edit_file`: replaces text in a file.

mod replace;
mod whitespace;

use std::fmt;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;

pub(crate) use self::replace::keep_line_ends;
use self::replace::{EditedContent, fold, list_lines, replace};
use super::diff::file_change;
use super::path::unreadable;
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::intent::DeclaredChange;
use crate::known_files::Comparison;
use crate::properties::tool_properties;
use crate::tool::{Effect, FileChange, Tool, ToolOutput};

/// Replaces an exact text in a file (loop specification, section 3.3).
///
/// Line ends follow the file: `\n` in the arguments matches a CRLF, and new lines get one. A byte-order mark and
/// invalid UTF-8 stay unchanged. If the text does not occur exactly, whole lines are matched loosely as in
/// `apply_patch`. The match must be the only one, and is reported. `I` is the type of the arguments.
pub struct EditFile<I = EditFileInput> {
    arguments: PhantomData<fn() -> I>,
}

/// The arguments of an edit.
pub trait EditRequest: DeserializeOwned + JsonSchema + Send + 'static {
    /// Returns the path of the file, as the call names it.
    fn file_path(&self) -> &str;

    /// Returns the replacement.
    fn edit(&self) -> Edit<'_>;
}

/// A replacement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Edit<'a> {
    /// The text to find.
    pub old: &'a str,
    /// The new text.
    pub new: &'a str,
    /// Whether to replace every occurrence; otherwise there must be exactly one.
    pub all: bool,
    /// The expected number of occurrences. All of them are replaced.
    pub expected: Option<usize>,
}

/// The arguments of `edit_file`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct EditFileInput {
    /// The absolute path of the file.
    #[schemars(description = "")]
    pub file_path: String,
    /// The exact text to find, with its indentation. It must occur once, unless `replace_all` is set.
    #[schemars(description = "")]
    pub old_string: String,
    /// The text to put in its place; empty to delete it.
    #[schemars(description = "")]
    pub new_string: String,
    /// Whether to replace every occurrence. Default: false.
    #[schemars(description = "")]
    pub replace_all: Option<bool>,
}

/// The arguments of `edit_file` in the Gemini profile (loop specification, section 3.6).
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct GeminiEditFileInput {
    /// The absolute path of the file.
    #[schemars(description = "")]
    pub file_path: String,
    /// The purpose of the change, for the user.
    pub instruction: Option<String>,
    /// The exact text to find, with its indentation. It must occur once, unless `expected_replacements` or
    /// `replace_all` is set.
    #[schemars(description = "")]
    pub old_string: String,
    /// The text to put in its place; empty to delete it.
    #[schemars(description = "")]
    pub new_string: String,
    /// Occurrences of `old_string`, which are all replaced. Default: 1.
    #[schemars(range(min = 1))]
    pub expected_replacements: Option<usize>,
    /// Whether to replace every occurrence, however many there are. Default: false.
    #[schemars(description = "")]
    pub replace_all: Option<bool>,
}

impl EditFile {
    /// Creates the tool of the shared core.
    #[must_use]
    pub fn new() -> Self {
        Self { arguments: PhantomData }
    }
}

impl EditFile<GeminiEditFileInput> {
    /// Creates the tool of the Gemini profile, which also accepts `instruction` and `expected_replacements`.
    #[must_use]
    pub fn gemini() -> Self {
        Self { arguments: PhantomData }
    }
}

impl<I: EditRequest> Tool for EditFile<I> {
    type Input = I;

    tool_properties! {
        name: "edit_file",
        description: include_str!("../../prompts/builtin/edit_file.md"),
        effect: Effect::Write,
        declares_changes: true,
        supports_dry_run: true,
    }

    fn writes(&self, input: &I) -> Vec<PathBuf> {
        vec![PathBuf::from(input.file_path())]
    }

    /// The edit needs the content, and a failed edit shows lines of it.
    fn reads(&self, input: &I) -> Vec<PathBuf> {
        self.writes(input)
    }

    async fn call(&self, input: I, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let file_path = input.file_path();
        let edited = edit_file(file_path, &input.edit(), cx).await?;
        Ok(ToolOutput::new(edited.report(file_path)).with_change(edited.change))
    }
}

/// The outcome of an edit.
pub(crate) struct EditReport {
    /// The first line of each replaced text, from 1.
    pub(crate) lines: Vec<usize>,
    /// Notes for the model about a loose match.
    pub(crate) notes: Vec<String>,
    pub(crate) change: FileChange,
}

/// Edits a file. Tools with other names share it.
pub(crate) async fn edit_file(
    file_path: &str,
    edit: &Edit<'_>,
    cx: &ToolContext,
) -> Result<EditReport, ToolError> {
    check(edit)?;
    let path = Path::new(file_path);
    let old = match cx.env.read(path, None).await {
        Ok(bytes) => bytes,
        Err(error) => return Err(unreadable(cx.env.as_ref(), path, error).await),
    };
    let EditedContent { content, lines, notes } = replace(file_path, &old, edit)?;
    write_edited(cx, path, &old, &content).await?;
    Ok(EditReport { lines, notes, change: file_change(file_path, Some(old), &content) })
}

/// Writes the content of an edited file.
///
/// The session knows the new content only if it knew the old one, since an edit does not show the other lines.
pub(crate) async fn write_edited(
    cx: &ToolContext,
    path: &Path,
    old: &[u8],
    new: &[u8],
) -> Result<(), ToolError> {
    let env = cx.env.as_ref();
    let before = cx.files.compare(env, path, Some(old)).await;
    cx.declare(&[DeclaredChange { path, before: Some(old), after: Some(new) }]).await?;
    env.write(path, new).await?;
    if before == Comparison::Current {
        cx.files.wrote(env, path, new).await;
    }
    Ok(())
}

impl EditReport {
    fn report(&self, path: &str) -> String {
        let count = self.lines.len();
        let noun = if count == 1 { "occurrence" } else { "occurrences" };
        let mut report = format!("Replaced {count} {noun} in {path} (at {})", list_lines(&self.lines));
        self.append_notes(&mut report);
        report
    }

    /// Appends a line for each note.
    pub(crate) fn append_notes(&self, report: &mut String) {
        for note in &self.notes {
            report.push_str("\nNote: ");
            report.push_str(note);
        }
    }
}

impl EditRequest for EditFileInput {
    fn file_path(&self) -> &str {
        &self.file_path
    }

    fn edit(&self) -> Edit<'_> {
        let all = self.replace_all.unwrap_or(false);
        Edit { old: &self.old_string, new: &self.new_string, all, expected: None }
    }
}

impl EditRequest for GeminiEditFileInput {
    fn file_path(&self) -> &str {
        &self.file_path
    }

    fn edit(&self) -> Edit<'_> {
        let all = self.replace_all.unwrap_or(false);
        Edit { old: &self.old_string, new: &self.new_string, all, expected: self.expected_replacements }
    }
}

impl Default for EditFile {
    fn default() -> Self {
        Self::new()
    }
}

impl<I> Clone for EditFile<I> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<I> Copy for EditFile<I> {}

impl<I> fmt::Debug for EditFile<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EditFile")
    }
}

/// Refuses edits that cannot apply to any file.
fn check(edit: &Edit<'_>) -> Result<(), ToolError> {
    let message = if edit.old.is_empty() {
        "old_string is empty, so it does not say what to replace; to create a file or to replace all of one, write the whole file"
    } else if fold(edit.old) == fold(edit.new) {
        "old_string and new_string are identical, so there is nothing to change"
    } else {
        return Ok(());
    };
    Err(ToolError::invalid_arguments(message))
}

#[cfg(test)]
mod tests;
