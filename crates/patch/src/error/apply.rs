use std::fmt;

use super::{Difference, WhitespaceDifference};
use crate::MatchLevel;
use crate::excerpt::excerpt_of_path;

/// Error of a patch that does not apply to the files.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApplyError {
    /// Path of the file.
    pub path: String,
    /// Number of the hunk within its section, from 1, if one is at fault.
    pub hunk: Option<usize>,
    /// Line of the patch, from 1; 0 if the patch was not parsed.
    pub line: usize,
    /// Kind of error. Lines of a file count from 1, in the file after the earlier operations of the
    /// same patch.
    pub kind: Box<ApplyErrorKind>,
}

/// The kinds of [`ApplyError`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ApplyErrorKind {
    /// The file does not exist.
    Missing {
        /// The attempted operation.
        action: Action,
        /// Line of the earlier operation of this patch that deleted or moved the file.
        removed_at: Option<usize>,
    },
    /// The destination already exists.
    Exists {
        /// The attempted operation.
        action: Action,
        /// Whether it already has the content to be written.
        identical: bool,
    },
    /// The `@@` hint is not in the file.
    HintNotFound {
        /// The hint, shortened.
        hint: String,
        /// The most similar lines, best first, at most three.
        nearest: Vec<Candidate>,
        /// Line where the old lines of the hunk are, if they occur exactly once.
        old_lines_at: Option<usize>,
    },
    /// The old lines do not occur at a usable position.
    ContextNotFound {
        /// First differing line at the most similar position.
        difference: Option<Difference>,
        /// The most similar positions, best first, at most three. Each is shown by its first line, or by a
        /// matching line if the first is blank or above the file.
        nearest: Vec<Candidate>,
        /// Position at which the old lines do occur, but must not be changed.
        unusable_match: Option<UnusableMatch>,
        /// Whether the file contained them before an earlier part of this patch changed it.
        changed_earlier: bool,
    },
    /// The old lines match at several positions.
    Ambiguous {
        /// Level at which the old lines match there.
        level: MatchLevel,
        /// The first matching positions.
        candidates: Vec<Candidate>,
    },
    /// The old lines match with different indentation, from which the indentation of the new lines cannot be derived.
    Indentation {
        /// Line of the file where the old lines start.
        file_line: usize,
        /// The first differently indented lines, at most three.
        differences: Vec<WhitespaceDifference>,
        /// The new line that cannot be re-indented, shortened, if the difference is the same on every line.
        new_line: Option<String>,
    },
    /// The hint matches several lines.
    AmbiguousHint {
        /// The first matching lines.
        candidates: Vec<Candidate>,
    },
    /// Every line of the hunk occurs so often in the file that the search was aborted.
    TooRepetitive,
    /// So many sections update this file that re-reading it for each would take too long.
    TooManySections,
    /// The new lines are in the file, and the old ones are not, except within the new ones.
    AlreadyApplied {
        /// Line of the file where the new lines start.
        file_line: usize,
    },
    /// The file is not UTF-8 and the hunk has non-ASCII characters.
    NotUtf8 {
        /// The line of the hunk, shortened.
        found: String,
    },
    /// The file is UTF-16, which has no ASCII lines.
    Utf16,
    /// The [`ApplyOptions`](crate::ApplyOptions) do not allow an operation of the patch.
    Refused {
        /// Description of that operation.
        what: String,
    },
}

/// Operation that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Create the file.
    Add,
    /// Delete the file.
    Delete,
    /// Change or move the file.
    Update,
    /// Move another file to this path.
    MoveHere {
        /// Path of the other file.
        from: String,
    },
}

/// Candidate position in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Candidate {
    /// Its line, from 1.
    pub file_line: usize,
    /// Text of that line, shortened.
    pub text: String,
}

/// Position at which the old lines of a hunk occur but must not be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum UnusableMatch {
    /// Above the end of the previous hunk.
    BeforePreviousHunk {
        /// First of these lines.
        file_line: usize,
    },
    /// Not below the hinted line.
    BeforeHint {
        /// First of these lines.
        file_line: usize,
    },
    /// Not at the end of the file, as `*** End of File` requires.
    NotAtEnd {
        /// First of these lines.
        file_line: usize,
    },
}

impl ApplyError {
    pub(crate) fn new(path: &str, line: usize, kind: ApplyErrorKind) -> Self {
        Self { path: path.to_owned(), hunk: None, line, kind: Box::new(kind) }
    }

    pub(crate) fn with_hunk(mut self, hunk: usize) -> Self {
        self.hunk = Some(hunk);
        self
    }
}

impl Candidate {
    pub(crate) fn new(file_line: usize, text: String) -> Self {
        Self { file_line, text }
    }
}

impl std::error::Error for ApplyError {}

impl fmt::Display for ApplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&excerpt_of_path(&self.path))?;
        if let Some(hunk) = self.hunk {
            write!(f, ", hunk {hunk}")?;
        }
        if self.line > 0 {
            write!(f, " (patch line {})", self.line)?;
        }
        write!(f, ": {}", self.kind)
    }
}

impl fmt::Display for ApplyErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { action, removed_at } => {
                write!(f, "cannot {action}: the file does not exist")?;
                match removed_at {
                    Some(line) => write!(f, "; patch line {line} deletes or moves it"),
                    None => Ok(()),
                }
            }
            Self::Exists { action, identical } => exists(f, action, *identical),
            Self::HintNotFound { hint, nearest, old_lines_at } => {
                write!(f, "no line of the file matches the hint `{hint}`")?;
                if let Some(line) = old_lines_at {
                    write!(f, "; the old lines are at line {line}: correct or drop the hint")?;
                }
                list(f, "most like it", nearest)
            }
            Self::ContextNotFound { difference, nearest, unusable_match, changed_earlier } => {
                context_not_found(f, difference.as_ref(), nearest, *unusable_match, *changed_earlier)
            }
            Self::Ambiguous { level, candidates } => {
                write!(f, "the old lines match several places {level}; add context lines")?;
                list(f, "they match", candidates)
            }
            Self::Indentation { file_line, differences, new_line } => {
                indentation(f, *file_line, differences, new_line.as_deref())
            }
            Self::AmbiguousHint { candidates } => {
                f.write_str("the hint names several lines; add an outer `@@` line or context")?;
                list(f, "it matches", candidates)
            }
            Self::TooRepetitive => f.write_str(
                "the lines of the hunk occur too often to find the place; add a line that is rare in the file",
            ),
            Self::TooManySections => f.write_str(
                "too many sections change this file; put all its hunks under one `*** Update File: `",
            ),
            Self::AlreadyApplied { file_line } => {
                write!(
                    f,
                    "already applied: the old lines are not in the file, the new ones are, at line {file_line}"
                )
            }
            Self::NotUtf8 { found } => {
                write!(f, "the file is not UTF-8, so only ASCII lines of it can be patched; found `{found}`")
            }
            Self::Utf16 => f.write_str("the file is UTF-16; only UTF-8 and ASCII can be patched"),
            Self::Refused { what } => write!(f, "refused by the chosen options: {what}"),
        }
    }
}

fn context_not_found(
    f: &mut fmt::Formatter<'_>,
    difference: Option<&Difference>,
    nearest: &[Candidate],
    unusable_match: Option<UnusableMatch>,
    changed_earlier: bool,
) -> fmt::Result {
    f.write_str("the old lines are not in the file")?;
    if let Some(unusable_match) = unusable_match {
        write!(f, " where they must be: {unusable_match}")?;
    }
    if changed_earlier {
        f.write_str("; an earlier part of this patch changed or moved them")?;
    } else if unusable_match.is_none() && nearest.is_empty() && difference.is_none() {
        f.write_str(", and no line of it is like them; is it the right file?")?;
    }
    if let Some(difference) = difference {
        write!(f, "\n{difference}")?;
    }
    list(f, "nearest places", nearest)
}

fn indentation(
    f: &mut fmt::Formatter<'_>,
    file_line: usize,
    differences: &[WhitespaceDifference],
    new_line: Option<&str>,
) -> fmt::Result {
    write!(f, "the old lines are at line {file_line} with different indentation, ")?;
    match new_line {
        Some(line) => write!(f, "and the new line `{line}` cannot be indented to fit")?,
        None => f.write_str("but the difference varies from line to line")?,
    }
    f.write_str("; give the old and the new lines with the indentation of the file")?;
    differences.iter().try_for_each(|difference| write!(f, "\n  {difference}"))
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Add => f.write_str("add"),
            Self::Delete => f.write_str("delete"),
            Self::Update => f.write_str("update"),
            Self::MoveHere { from } => write!(f, "move {} here", excerpt_of_path(from)),
        }
    }
}

impl fmt::Display for UnusableMatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BeforePreviousHunk { file_line } => write!(
                f,
                "they are at line {file_line}, above the end of the previous hunk; \
                 merge hunks that overlap, and out of file order each hunk must match in one place only"
            ),
            Self::BeforeHint { file_line } => {
                write!(f, "they are at line {file_line}, not below the line that the hint names")
            }
            Self::NotAtEnd { file_line } => {
                write!(f, "they are at line {file_line}, not at the end of the file")
            }
        }
    }
}

fn exists(f: &mut fmt::Formatter<'_>, action: &Action, identical: bool) -> fmt::Result {
    if identical {
        return write!(f, "cannot {action}: already applied, the file has exactly this content");
    }
    let advice = match action {
        Action::Add => "update it, or delete it first in the same patch to replace it",
        Action::MoveHere { .. } | Action::Delete | Action::Update => {
            "delete it first in the same patch to replace it"
        }
    };
    write!(f, "cannot {action}: the file exists; {advice}")
}

fn list(f: &mut fmt::Formatter<'_>, title: &str, candidates: &[Candidate]) -> fmt::Result {
    if candidates.is_empty() {
        return Ok(());
    }
    write!(f, "\n{title}:")?;
    for candidate in candidates {
        write!(f, "\n  line {}: `{}`", candidate.file_line, candidate.text)?;
    }
    Ok(())
}
