use std::fmt;

use super::{BlankDifference, Difference};
use crate::MatchLevel;
use crate::excerpt::excerpt_of_path;

/// A patch that does not fit the files.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApplyError {
    /// The file.
    pub path: String,
    /// The hunk inside its section, from 1, if one is to blame.
    pub hunk: Option<usize>,
    /// Line of the patch, from 1; 0 when the patch was not parsed.
    pub line: usize,
    /// What is wrong. Lines of a file count from 1, in the file as the earlier operations of the
    /// same patch leave it.
    pub kind: Box<ApplyErrorKind>,
}

/// The kinds of [`ApplyError`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ApplyErrorKind {
    /// The file is not there.
    Missing {
        /// What was to be done with it.
        action: Action,
        /// Line of the earlier operation of this patch that took it away.
        taken_at: Option<usize>,
    },
    /// A file is there already.
    Exists {
        /// What was to be done.
        action: Action,
        /// It has the very content that was to be written.
        identical: bool,
    },
    /// The `@@` hint is not in the file.
    HintNotFound {
        /// The hint, shortened.
        hint: String,
        /// The lines most like it, best first, at most three.
        nearest: Vec<Candidate>,
        /// Where the old lines of the hunk are all the same, if in one place only.
        old_lines_at: Option<usize>,
    },
    /// The old lines are not where they can be.
    ContextNotFound {
        /// The first line that differs at the nearest place.
        difference: Option<Difference>,
        /// The places most like the old lines, best first, at most three; each is named by its first line, or
        /// where that is blank or above the file by one that matches.
        nearest: Vec<Candidate>,
        /// Where the old lines are instead.
        elsewhere: Option<Elsewhere>,
        /// They were in the file before an earlier part of this patch changed it.
        changed_earlier: bool,
    },
    /// Several places fit, and nothing says which is meant.
    Ambiguous {
        /// How the old lines match there.
        level: MatchLevel,
        /// The first places that fit.
        candidates: Vec<Candidate>,
    },
    /// The old lines match with other indentation, and how to indent the new ones cannot be told.
    Indentation {
        /// Where the old lines start in the file.
        file_line: usize,
        /// The first lines that are indented differently, at most three.
        differences: Vec<BlankDifference>,
        /// The new line that does not fit, shortened, where the difference is the same on every line.
        new_line: Option<String>,
    },
    /// The hint names several lines, and nothing says which is meant.
    AmbiguousHint {
        /// The first lines that fit.
        candidates: Vec<Candidate>,
    },
    /// Every line of the hunk occurs so often in the file that the search was given up.
    TooRepetitive,
    /// So many sections change this file, each as a whole, that it would take too long.
    TooManySections,
    /// The new lines are in the file, the old ones are not, unless as a part of the new ones.
    AlreadyApplied {
        /// Where the new lines start.
        file_line: usize,
    },
    /// The file is not UTF-8 and the hunk has characters beyond ASCII.
    NotUtf8 {
        /// The line of the hunk, shortened.
        found: String,
    },
    /// The file is UTF-16, which has no ASCII lines.
    Utf16,
    /// The chosen [`ApplyOptions`](crate::ApplyOptions) refuse what the patch asks for.
    Refused {
        /// What it asks for.
        what: String,
    },
}

/// What an operation was about to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Create the file.
    Add,
    /// Delete it.
    Delete,
    /// Change or move it.
    Update,
    /// Move another file to its path.
    MoveHere {
        /// The path of that file.
        from: String,
    },
}

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Candidate {
    /// Its first line.
    pub file_line: usize,
    /// That line, shortened.
    pub text: String,
}

/// Where the old lines of a hunk are, although they cannot be used there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Elsewhere {
    /// Above the hunk before it.
    BeforePreviousHunk {
        /// Their first line.
        file_line: usize,
    },
    /// Not below the line that the hint names.
    BeforeHint {
        /// Their first line.
        file_line: usize,
    },
    /// Not at the end of the file, as `*** End of File` asks.
    NotAtEnd {
        /// Their first line.
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
            Self::Missing { action, taken_at } => {
                write!(f, "cannot {action}: the file does not exist")?;
                match taken_at {
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
            Self::ContextNotFound { difference, nearest, elsewhere, changed_earlier } => {
                f.write_str("the old lines are not in the file")?;
                if let Some(elsewhere) = elsewhere {
                    write!(f, " where they must be: {elsewhere}")?;
                }
                if *changed_earlier {
                    f.write_str("; an earlier part of this patch changed or moved them")?;
                } else if elsewhere.is_none() && nearest.is_empty() && difference.is_none() {
                    f.write_str(", and no line of it is like them; is it the right file?")?;
                }
                if let Some(difference) = difference {
                    write!(f, "\n{difference}")?;
                }
                list(f, "nearest places", nearest)
            }
            Self::Ambiguous { level, candidates } => {
                write!(f, "the old lines match several places {level}; add context lines")?;
                list(f, "they match", candidates)
            }
            Self::Indentation { file_line, differences, new_line } => {
                write!(f, "the old lines are at line {file_line} with other indentation, ")?;
                match new_line {
                    Some(line) => write!(f, "and the new line `{line}` cannot be indented to fit")?,
                    None => f.write_str("not by the same on every line")?,
                }
                f.write_str("; give the old and the new lines with the indentation of the file")?;
                differences.iter().try_for_each(|difference| write!(f, "\n  {difference}"))
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

impl fmt::Display for Elsewhere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BeforePreviousHunk { file_line } => write!(
                f,
                "they are at line {file_line}, above the end of the hunk before; hunks that \
                 overlap must be one hunk, and out of file order each needs one fitting place"
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
        return write!(f, "cannot {action}: already applied, the file has this very content");
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
