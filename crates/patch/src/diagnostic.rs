//! Diagnostics: deviations that were accepted while parsing and planning.

use std::fmt;

use crate::MatchLevel;
use crate::error::WhitespaceDifference;
use crate::excerpt::excerpt_of_path;

/// A deviation in a patch that was accepted rather than refused.
///
/// `Display` writes one sentence for a log or for the model.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Diagnostic {
    /// The deviation.
    pub kind: DiagnosticKind,
    /// The affected file; `None` for syntax.
    pub path: Option<String>,
    /// Number of the affected hunk within its section, from 1, if any.
    pub hunk: Option<usize>,
    /// Line of the patch, from 1; the first one if the parser saw the same deviation several times.
    pub line: usize,
    /// Number of occurrences.
    pub count: usize,
}

/// The kinds of [`Diagnostic`]. Lines of a file count from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum DiagnosticKind {
    /// Text before `*** Begin Patch` was ignored.
    TextBeforeBegin,
    /// Text after `*** End Patch` was ignored.
    TextAfterEnd,
    /// The patch was inside a shell here-document.
    Heredoc,
    /// The input ended without `*** End Patch`.
    MissingEnd,
    /// A marker ended in `***`.
    TrailingStars,
    /// A marker was indented.
    IndentedMarker,
    /// `*** Environment ID:` was ignored.
    EnvironmentId,
    /// A byte-order mark before the patch was ignored.
    ByteOrderMark,
    /// Carriage returns at the ends of the patch's lines were ignored.
    CarriageReturns,
    /// A marker's path followed the colon without a space.
    MissingSpaceBeforePath,
    /// `.` segments of a path were dropped.
    DotSegments,
    /// A blank line inside an addition was read as an empty line of the file.
    BlankLineInAdd,
    /// A blank line after the last line of an addition was ignored.
    BlankLineAfterAdd,
    /// A blank line before or after an operation was ignored.
    BlankLineBetweenOperations,
    /// The first hunk of a section had no `@@` line.
    MissingHunkHeader,
    /// A bare `@@` line beside another `@@` line was ignored.
    RepeatedHunkHeader,
    /// The line numbers of a git-style hunk header were ignored.
    GitHunkHeader,
    /// A hint followed `@@` without a space.
    MissingSpaceBeforeHint,
    /// A `@@` at the end of a hint was ignored.
    TrailingHintMarker,
    /// An empty line inside a hunk was read as an empty context line.
    EmptyContext,
    /// The old lines matched only loosely.
    LooseMatch {
        /// The level at which they matched.
        level: MatchLevel,
        /// Line of the file where they start.
        file_line: usize,
        /// First whitespace difference, if the first differing line differs in whitespace only.
        whitespace: Option<Box<WhitespaceDifference>>,
    },
    /// The new lines were re-indented, because the old lines are indented differently in the file.
    Reindented {
        /// Line of the file where the old lines start.
        file_line: usize,
        /// Indentation removed from every new line, as text such as `4 spaces`.
        removed: Option<String>,
        /// Indentation added instead, as text.
        added: Option<String>,
    },
    /// A hunk of additions only, without a hint, was appended to the file.
    AdditionsAtEnd {
        /// Last line of the file before the additions.
        file_line: usize,
    },
    /// The hint matched only loosely.
    LooseHint {
        /// The level at which it matched.
        level: MatchLevel,
        /// The line it matched.
        file_line: usize,
    },
    /// The hint matched only the start of a line.
    HintPrefix {
        /// The line it matched.
        file_line: usize,
    },
    /// The hunk matches exactly at several lines; the first was taken.
    MultipleMatches {
        /// The line that was taken.
        file_line: usize,
        /// The next line that matches.
        other: usize,
    },
    /// The hunk is out of file order.
    OutOfOrder {
        /// Line where it was applied.
        file_line: usize,
    },
    /// Empty context lines at the end of the hunk are not in the file and were ignored. With
    /// [`ApplyOptions::allow_missing_last_line`](crate::ApplyOptions::allow_missing_last_line) this also
    /// covers an empty removed line.
    MissingTrailingContext {
        /// Line where the remaining lines match.
        file_line: usize,
    },
    /// The file was moved onto itself, which is a plain update.
    MoveOntoItself,
    /// The operations on this file leave it unchanged.
    NoChange,
}

impl Diagnostic {
    pub(crate) fn new(kind: DiagnosticKind, line: usize) -> Self {
        Self { kind, path: None, hunk: None, line, count: 1 }
    }

    pub(crate) fn with_path(mut self, path: &str) -> Self {
        self.path = Some(path.to_owned());
        self
    }

    pub(crate) fn with_hunk(mut self, hunk: usize) -> Self {
        self.hunk = Some(hunk);
        self
    }
}

impl DiagnosticKind {
    /// Returns whether the reference implementation accepts this syntax as well.
    pub(crate) fn is_reference_syntax(&self) -> bool {
        !matches!(
            self,
            Self::TextBeforeBegin
                | Self::TextAfterEnd
                | Self::MissingEnd
                | Self::TrailingStars
                | Self::ByteOrderMark
                | Self::MissingSpaceBeforePath
                | Self::BlankLineInAdd
                | Self::BlankLineAfterAdd
                | Self::BlankLineBetweenOperations
                | Self::RepeatedHunkHeader
                | Self::GitHunkHeader
                | Self::MissingSpaceBeforeHint
                | Self::TrailingHintMarker
        )
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(path) = &self.path {
            write!(f, "{}, ", excerpt_of_path(path))?;
        }
        if let Some(hunk) = self.hunk {
            write!(f, "hunk {hunk}, ")?;
        }
        write!(f, "patch line {}: {}", self.line, self.kind)?;
        match self.count {
            0 | 1 => Ok(()),
            count => write!(f, " ({count} times)"),
        }
    }
}

impl fmt::Display for DiagnosticKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::TextBeforeBegin => "text before `*** Begin Patch` was ignored",
            Self::TextAfterEnd => "text after `*** End Patch` was ignored",
            Self::Heredoc => "the here-document around the patch was ignored",
            Self::MissingEnd => "`*** End Patch` was missing at the end of the input",
            Self::TrailingStars => "the `***` at the end of a marker was ignored",
            Self::IndentedMarker => "the blanks before a marker were ignored",
            Self::EnvironmentId => "`*** Environment ID:` was ignored",
            Self::ByteOrderMark => "the byte-order mark of the patch was ignored",
            Self::CarriageReturns => "carriage returns at line ends of the patch were ignored",
            Self::MissingSpaceBeforePath => "a path without a blank after the colon was accepted",
            Self::DotSegments => "`.` segments of a path were dropped",
            Self::BlankLineInAdd => "a blank line inside an addition was read as an empty line",
            Self::BlankLineAfterAdd => "a blank line after an addition was ignored",
            Self::BlankLineBetweenOperations => "a blank line between operations was ignored",
            Self::MissingHunkHeader => "the first hunk has no `@@` line",
            Self::RepeatedHunkHeader => "a bare `@@` line beside another one was ignored",
            Self::GitHunkHeader => "the line numbers of a hunk header were ignored",
            Self::MissingSpaceBeforeHint => "a hint without a blank after `@@` was accepted",
            Self::TrailingHintMarker => "the `@@` at the end of a hint was ignored",
            Self::EmptyContext => "an empty line was read as an empty context line",
            Self::MoveOntoItself => "the file is moved onto itself, which is a plain update",
            Self::NoChange => "the file stays as it was",
            Self::LooseMatch { level, file_line, whitespace } => {
                write!(f, "the old lines match at line {file_line} only {level}")?;
                return whitespace.as_ref().map_or(Ok(()), |difference| write!(f, ": {difference}"));
            }
            Self::Reindented { file_line, removed, added } => {
                write!(f, "the new lines at line {file_line} were indented as the file is: ")?;
                return match (removed, added) {
                    (Some(removed), Some(added)) => write!(f, "{added} in place of {removed}"),
                    (Some(removed), None) => write!(f, "{removed} less"),
                    (None, Some(added)) => write!(f, "{added} more"),
                    (None, None) => f.write_str("no change"),
                };
            }
            Self::AdditionsAtEnd { file_line } => {
                return write!(
                    f,
                    "nothing says where the new lines go; they were added at the end, below line {file_line}"
                );
            }
            Self::LooseHint { level, file_line } => {
                return write!(f, "the hint matches line {file_line} only {level}");
            }
            Self::HintPrefix { file_line } => {
                return write!(f, "the hint is only the start of line {file_line}");
            }
            Self::MultipleMatches { file_line, other } => {
                return write!(f, "both line {file_line} and line {other} fit; the first was taken");
            }
            Self::OutOfOrder { file_line } => {
                return write!(
                    f,
                    "out of file order; applied at line {file_line}, the only place where it fits"
                );
            }
            Self::MissingTrailingContext { file_line } => {
                return write!(f, "empty context lines at the end were ignored to match at line {file_line}");
            }
        };
        f.write_str(text)
    }
}
