//! The result of one call, before truncation.

use pintle_env::setters;
use std::time::Duration;

use pintle_env::Output;
use pintle_llm::ImageData;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::ToolError;
use crate::truncate::ShortenedText;

/// The complete result of a call. The pipeline truncates it for the model.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ToolOutput {
    /// The complete text, which events contain.
    pub text: Output,
    /// The text with long lines cut, if the model reads it in that form. The output limits apply to it as well.
    pub shortened: Option<Output>,
    /// A few lines that only the model reads, before the text, such as an exit code. The output limits do not apply to
    /// them, but more than 2,000 characters are cut.
    pub preface: String,
    /// The maximum number of characters of the text that the call itself requested. The output limits apply as well.
    pub max_chars: Option<usize>,
    /// Images for the model.
    pub images: Vec<ImageData>,
    /// Whether the call failed. A command that exits with a non-zero code has not failed: the code is its result.
    pub is_error: bool,
    /// The time-out that a command exceeded. The application gets a failure; the tool chooses the text for the model.
    pub timed_out: Option<Duration>,
    /// The exit code of a command that exited. A non-zero code is a result and not a failure.
    pub exit_code: Option<i32>,
    /// The files that changed, for users and applications.
    pub changes: Vec<FileChange>,
    /// A question to the user. The run ends after this round, and the next submitted message is the answer.
    pub question: Option<String>,
}

impl ToolOutput {
    /// Creates a successful result with this text.
    #[must_use]
    pub fn new(text: impl Into<Output>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Sets the lines that the model reads before the text.
    #[must_use]
    pub fn with_preface(mut self, preface: impl Into<String>) -> Self {
        self.preface = preface.into();
        self
    }

    /// Sets the maximum number of characters that the call requested.
    #[must_use]
    pub fn with_max_chars(mut self, max_chars: Option<usize>) -> Self {
        self.max_chars = max_chars;
        self
    }

    /// Adds an image.
    #[must_use]
    pub fn with_image(mut self, image: ImageData) -> Self {
        self.images.push(image);
        self
    }

    setters! {
        /// Sets [`ToolOutput::is_error`].
        pub fn with_error(is_error: bool) => is_error = is_error;
        /// Sets the time-out that a command exceeded, if it did.
        pub fn with_timed_out(limit: Option<Duration>) => timed_out = limit;
        /// Sets the exit code of a command, if it exited.
        pub fn with_exit_code(exit_code: Option<i32>) => exit_code = exit_code;
        /// Sets a question to the user, which ends the run.
        pub fn with_question(question: impl Into<String>) => question = Some(question.into());
    }

    /// Adds a changed file.
    #[must_use]
    pub fn with_change(mut self, change: FileChange) -> Self {
        self.changes.push(change);
        self
    }
}

/// Output of a closure that is a tool: any value that implements [`Serialize`], or a [`ToolOutput`]. A string is the text
/// of the result, and any other value is written as JSON.
pub trait IntoToolOutput {
    /// Converts the output.
    ///
    /// # Errors
    ///
    /// The value cannot be serialised, for instance because a key of a map is not a string.
    fn into_tool_output(self) -> Result<ToolOutput, ToolError>;
}

impl<T: Serialize> IntoToolOutput for T {
    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        match serde_json::to_value(self) {
            Ok(Value::String(text)) => Ok(ToolOutput::new(text)),
            Ok(value) => Ok(ToolOutput::new(value.to_string())),
            Err(error) => Err(ToolError::failed("the output cannot be written as JSON").with_source(error)),
        }
    }
}

impl IntoToolOutput for ToolOutput {
    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        Ok(self)
    }
}

impl From<String> for ToolOutput {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

impl From<&str> for ToolOutput {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<ShortenedText> for ToolOutput {
    fn from(text: ShortenedText) -> Self {
        let ShortenedText { full, shortened } = text;
        Self { shortened: shortened.map(Output::from), ..Self::new(full) }
    }
}

/// One file that a call changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct FileChange {
    /// The path as the call named it.
    pub path: String,
    /// The kind of change.
    pub kind: ChangeKind,
    /// A unified diff; empty if there is no text to show.
    pub diff: String,
}

impl FileChange {
    /// Creates a change with its diff.
    #[must_use]
    pub fn new(path: impl Into<String>, kind: ChangeKind, diff: impl Into<String>) -> Self {
        Self { path: path.into(), kind, diff: diff.into() }
    }
}

/// The kind of a change to a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// The file is new.
    Added,
    /// Its content changed.
    Modified,
    /// The file was deleted.
    Deleted,
    /// The file has a new name, and possibly new content.
    Renamed {
        /// The previous name.
        from: String,
    },
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn kinds_of_change_have_their_names_in_json() {
        let cases = [
            (ChangeKind::Added, json!("added")),
            (ChangeKind::Modified, json!("modified")),
            (ChangeKind::Deleted, json!("deleted")),
            (ChangeKind::Renamed { from: "a.rs".to_owned() }, json!({"renamed": {"from": "a.rs"}})),
        ];
        for (kind, written) in cases {
            assert_eq!(serde_json::to_value(&kind).unwrap(), written);
            assert_eq!(serde_json::from_value::<ChangeKind>(written).unwrap(), kind);
        }
    }
}
