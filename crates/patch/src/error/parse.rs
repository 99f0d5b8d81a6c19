use std::fmt;

use crate::excerpt::{excerpt, excerpt_of_path};
use crate::limits::{MAX_HINTS, MAX_PATCH_BYTES};

/// Error for a text that is not a patch.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParseError {
    /// Line of the text, from 1.
    pub line: usize,
    /// The content of that line, shortened and with control characters escaped; empty if no line is at fault.
    pub found: String,
    /// Kind of error.
    pub kind: ParseErrorKind,
}

/// The kinds of [`ParseError`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParseErrorKind {
    /// The text is empty.
    Empty,
    /// The text is longer than [`MAX_PATCH_BYTES`].
    TooLong {
        /// Length of the text.
        bytes: usize,
    },
    /// No line is `*** Begin Patch`.
    MissingBegin,
    /// The patch is wrapped in other syntax.
    Wrapped(Wrapper),
    /// A file header is before the begin marker or after the end marker.
    OperationOutside,
    /// There is a second begin marker.
    SecondBegin,
    /// The patch has no operation.
    NoOperations,
    /// A line between operations is not a file header.
    NotAHeader,
    /// A line of an added file lacks its `+`.
    NotAnAddedLine,
    /// A line of a hunk lacks its prefix.
    NotAHunkLine,
    /// A line starts with `***` but is not a marker.
    UnknownMarker,
    /// `*** Move to:` does not directly follow `*** Update File:`.
    MisplacedMove,
    /// A header has no path.
    EmptyPath,
    /// A path contains a control character.
    ControlCharacterInPath,
    /// An update neither changes nor moves its file.
    NoHunks {
        /// Path of the file.
        path: String,
        /// Line of its header.
        line: usize,
    },
    /// A hunk has no lines.
    EmptyHunk,
    /// More than [`MAX_HINTS`] `@@` lines precede one hunk.
    TooManyHints,
    /// A hunk continues after `*** End of File`.
    LineAfterEndOfFile,
}

/// Syntax wrapped around a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Wrapper {
    /// `{"patch": "..."}`
    JsonObject,
    /// `["apply_patch", "..."]`
    CommandArray,
    /// `"..."`
    JsonString,
    /// `cd dir && apply_patch <<EOF`
    ShellCommand,
}

impl ParseError {
    pub(crate) fn new(line: usize, found: &str, kind: ParseErrorKind) -> Self {
        Self { line, found: excerpt(found.as_bytes()), kind }
    }

    /// Returns whether the line is a file header of a unified diff.
    fn is_unified_diff(&self) -> bool {
        let is_header = matches!(self.kind, ParseErrorKind::MissingBegin | ParseErrorKind::NotAHeader);
        is_header && ["--- ", "+++ ", "diff --git "].iter().any(|start| self.found.starts_with(start))
    }
}

impl Wrapper {
    /// Returns the wrapper opened by the text before a patch, whose first line is `line`.
    pub(crate) fn detect(line: &str) -> Option<Self> {
        let line = line.trim_start();
        let inner = |opening| line.strip_prefix(opening).map(str::trim_start);
        if inner('{').is_some_and(|rest| rest.is_empty() || rest.starts_with(['"', '\''])) {
            Some(Self::JsonObject)
        } else if inner('[').is_some_and(|rest| rest.is_empty() || rest.starts_with(['"', '\''])) {
            Some(Self::CommandArray)
        } else if inner('"').is_some_and(|rest| rest.starts_with("*** Begin Patch")) {
            Some(Self::JsonString)
        } else if line.starts_with("apply_patch ") && line.contains("*** Begin Patch") {
            Some(Self::ShellCommand)
        } else {
            None
        }
    }
}

impl std::error::Error for ParseError {}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "patch line {}: {}", self.line, self.kind)?;
        if !self.found.is_empty() {
            write!(f, "; found `{}`", self.found)?;
        }
        match self.is_unified_diff() {
            true => f.write_str(
                "; write `*** Update File: PATH` instead of the `---` and `+++` lines of a unified diff",
            ),
            false => Ok(()),
        }
    }
}

impl fmt::Display for ParseErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "the patch is empty; expected `*** Begin Patch`",
            Self::TooLong { bytes } => {
                return write!(f, "the patch has {bytes} bytes; at most {MAX_PATCH_BYTES} are read");
            }
            Self::MissingBegin => "expected `*** Begin Patch` alone on the first line",
            Self::Wrapped(wrapper) => {
                return write!(
                    f,
                    "the patch is wrapped in {wrapper}; send the text from `*** Begin Patch` to \
                     `*** End Patch` alone"
                );
            }
            Self::OperationOutside => {
                "expected every file header between `*** Begin Patch` and `*** End Patch`"
            }
            Self::SecondBegin => "there is a second `*** Begin Patch`; put all operations into one patch",
            Self::NoOperations => {
                "the patch has no operation; expected `*** Add File: `, `*** Delete File: ` or \
                 `*** Update File: `"
            }
            Self::NotAHeader => {
                "expected `*** Add File: `, `*** Delete File: `, `*** Update File: ` or \
                 `*** End Patch`"
            }
            Self::NotAnAddedLine => {
                "expected `+` before every line of an added file, or the next `*** ` marker"
            }
            Self::NotAHunkLine => {
                "expected a line of a hunk to start with ` ` (unchanged), `-` (removed) or `+` \
                 (added), `@@` or the next `*** ` marker"
            }
            Self::UnknownMarker => {
                "expected a marker of the format after `***`; an unchanged line of the file \
                 starts with a space"
            }
            Self::MisplacedMove => {
                "expected `*** Move to: ` only directly after `*** Update File: `, and once"
            }
            Self::EmptyPath => "expected a path after the colon",
            Self::ControlCharacterInPath => "expected a path without control characters",
            Self::NoHunks { path, line } => {
                return write!(
                    f,
                    "the update of {} (patch line {line}) has neither a hunk nor \
                     `*** Move to: `",
                    excerpt_of_path(path)
                );
            }
            Self::EmptyHunk => "expected at least one line that starts with ` `, `-` or `+` in the hunk",
            Self::TooManyHints => {
                return write!(f, "expected at most {MAX_HINTS} `@@` lines before one hunk");
            }
            Self::LineAfterEndOfFile => {
                "expected `@@`, a file header or `*** End Patch` after `*** End of File`"
            }
        })
    }
}

impl fmt::Display for Wrapper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::JsonObject => "a JSON object",
            Self::CommandArray => "a command array",
            Self::JsonString => "a JSON string",
            Self::ShellCommand => "a shell command",
        })
    }
}
