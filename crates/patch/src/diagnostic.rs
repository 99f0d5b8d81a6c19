//! What was tolerated on the way from text to plan.

use std::fmt;

use crate::MatchLevel;
use crate::error::BlankDifference;
use crate::excerpt::excerpt_of_path;

/// Something in a patch that is not quite right and was accepted all the same.
///
/// `Display` gives one sentence for a log or for the model.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Diagnostic {
    /// What was tolerated.
    pub kind: DiagnosticKind,
    /// The file, where the matter concerns one. Matters of syntax are not tied to a file.
    pub path: Option<String>,
    /// The hunk inside its section, from 1, where the matter concerns one.
    pub hunk: Option<usize>,
    /// Line of the patch, from 1: the first, where the parser saw the same matter several times.
    pub line: usize,
    /// How often it was seen.
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
    /// The patch stood in a shell's here-document.
    Heredoc,
    /// The input ended without `*** End Patch`.
    MissingEnd,
    /// A marker ended in `***`.
    StarredMarker,
    /// A marker was indented.
    PaddedMarker,
    /// `*** Environment ID:` was ignored.
    EnvironmentId,
    /// A byte-order mark before the patch was ignored.
    ByteOrderMark,
    /// Carriage returns at the ends of the patch's lines were ignored.
    CarriageReturns,
    /// The path of a marker followed on the colon without a blank.
    TightPath,
    /// `.` segments of a path were dropped.
    DotSegments,
    /// A blank line inside an addition was read as an empty line of the file.
    BlankLineInAdd,
    /// A blank line after the last line of an addition was ignored.
    BlankLineAfterAdd,
    /// A blank line before or after an operation was ignored.
    BlankLineBetween,
    /// The first hunk of a section had no `@@` line.
    MissingHunkHeader,
    /// A bare `@@` line beside another `@@` line was ignored.
    RepeatedHunkHeader,
    /// The line numbers of a git-style hunk header were ignored.
    GitHunkHeader,
    /// A hint followed on `@@` without a blank.
    TightHint,
    /// A `@@` at the end of a hint was ignored.
    ClosedHint,
    /// An empty line inside a hunk was read as an empty context line.
    EmptyContext,
    /// The old lines were found only loosely.
    LooseMatch {
        /// The level at which they matched.
        level: MatchLevel,
        /// Where they start in the file.
        file_line: usize,
        /// The first blanks that differ, where the first line that differs does so in blanks alone.
        blanks: Option<Box<BlankDifference>>,
    },
    /// The new lines were indented as the file is, because the old ones are indented differently there.
    Reindented {
        /// Where the old lines start in the file.
        file_line: usize,
        /// The blanks that every new line lost, in words, such as `4 spaces`.
        removed: Option<String>,
        /// Those that it got in their place.
        added: Option<String>,
    },
    /// New lines alone, without a hint, went to the end of the file.
    AdditionsAtEnd {
        /// The line below which they went.
        file_line: usize,
    },
    /// The hint was found only loosely.
    LooseHint {
        /// The level at which it matched.
        level: MatchLevel,
        /// The line that it named.
        file_line: usize,
    },
    /// The hint was only the start of a line.
    HintPrefix {
        /// The line that it named.
        file_line: usize,
    },
    /// The hunk fits several places exactly; the first was taken.
    SeveralPlaces {
        /// The place that was taken.
        file_line: usize,
        /// The next place that fits.
        other: usize,
    },
    /// The hunk is out of file order.
    OutOfOrder {
        /// Where it was placed.
        file_line: usize,
    },
    /// Empty context lines at the end of the hunk, or what else
    /// [`ApplyOptions::last_line_may_miss`](crate::ApplyOptions::last_line_may_miss) allows, were
    /// not in the file and were ignored.
    TrailingContext {
        /// Where the rest was placed.
        file_line: usize,
    },
    /// The file was moved onto itself: a plain update.
    MoveOntoItself,
    /// The operations on this file leave it as it was.
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
    /// Whether the reference implementation accepts this syntax too.
    pub(crate) fn is_reference_syntax(&self) -> bool {
        !matches!(
            self,
            Self::TextBeforeBegin
                | Self::TextAfterEnd
                | Self::MissingEnd
                | Self::StarredMarker
                | Self::ByteOrderMark
                | Self::TightPath
                | Self::BlankLineInAdd
                | Self::BlankLineAfterAdd
                | Self::BlankLineBetween
                | Self::RepeatedHunkHeader
                | Self::GitHunkHeader
                | Self::TightHint
                | Self::ClosedHint
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
            Self::StarredMarker => "the `***` at the end of a marker was ignored",
            Self::PaddedMarker => "the blanks before a marker were ignored",
            Self::EnvironmentId => "`*** Environment ID:` was ignored",
            Self::ByteOrderMark => "the byte-order mark of the patch was ignored",
            Self::CarriageReturns => "carriage returns at line ends of the patch were ignored",
            Self::TightPath => "a path without a blank after the colon was accepted",
            Self::DotSegments => "`.` segments of a path were dropped",
            Self::BlankLineInAdd => "a blank line inside an addition was read as an empty line",
            Self::BlankLineAfterAdd => "a blank line after an addition was ignored",
            Self::BlankLineBetween => "a blank line between operations was ignored",
            Self::MissingHunkHeader => "the first hunk has no `@@` line",
            Self::RepeatedHunkHeader => "a bare `@@` line beside another one was ignored",
            Self::GitHunkHeader => "the line numbers of a hunk header were ignored",
            Self::TightHint => "a hint without a blank after `@@` was accepted",
            Self::ClosedHint => "the `@@` at the end of a hint was ignored",
            Self::EmptyContext => "an empty line was read as an empty context line",
            Self::MoveOntoItself => "the file is moved onto itself, which is a plain update",
            Self::NoChange => "the file stays as it was",
            Self::LooseMatch { level, file_line, blanks } => {
                write!(f, "the old lines match at line {file_line} only {level}")?;
                return blanks.as_ref().map_or(Ok(()), |blanks| write!(f, ": {blanks}"));
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
            Self::SeveralPlaces { file_line, other } => {
                return write!(f, "both line {file_line} and line {other} fit; the first was taken");
            }
            Self::OutOfOrder { file_line } => {
                return write!(f, "out of file order; placed at line {file_line}, where alone it fits");
            }
            Self::TrailingContext { file_line } => {
                return write!(f, "empty context lines at the end were ignored to match at line {file_line}");
            }
        };
        f.write_str(text)
    }
}
