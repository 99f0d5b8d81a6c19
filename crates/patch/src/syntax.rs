//! The nouns of a v4a patch (coding agent loop specification, appendix A).

use crate::Diagnostic;

/// A patch: operations on files, in the order in which they are applied.
///
/// `Display` writes it in canonical v4a, which [`parse`](crate::parse) reads back to the same
/// operations.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Patch {
    /// The operations, first to last.
    pub operations: Vec<Operation>,
    /// What the parser tolerated, in the order in which that became certain.
    pub diagnostics: Vec<Diagnostic>,
}

/// One operation on a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// `*** Add File:`
    Add(AddFile),
    /// `*** Delete File:`
    Delete(DeleteFile),
    /// `*** Update File:`
    Update(UpdateFile),
}

/// Creates a file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AddFile {
    /// The path of the new file, as written apart from `.` segments.
    pub path: String,
    /// Its content in one text, since it may be megabytes long. Each line ends with an LF.
    pub content: String,
    /// Line of the header in the patch, from 1; 0 when the operation was not parsed.
    pub line: usize,
}

/// Deletes a file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeleteFile {
    /// The path of the file, as written apart from `.` segments.
    pub path: String,
    /// Line of the header in the patch, from 1; 0 when the operation was not parsed.
    pub line: usize,
}

/// Changes a file, moves it, or both.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UpdateFile {
    /// The path of the file, as written apart from `.` segments.
    pub path: String,
    /// Where the file goes, if it moves.
    pub move_to: Option<String>,
    /// The hunks; none is a plain rename.
    pub hunks: Vec<Hunk>,
    /// Line of the header in the patch, from 1; 0 when the operation was not parsed.
    pub line: usize,
}

/// One change inside a file: old lines to find, and what becomes of them.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Hunk {
    /// The texts of the `@@` lines before it, outermost first; each narrows the search.
    pub hints: Vec<String>,
    /// Its lines, in order.
    pub lines: Vec<HunkLine>,
    /// Whether `*** End of File` pins it to the end of the file.
    pub end_of_file: bool,
    /// Its first line in the patch, from 1; 0 when the hunk was not parsed.
    pub line: usize,
}

/// One line of a hunk, without its prefix and its end; it holds no line feed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HunkLine {
    /// A line that stays (prefix: a space).
    Context(String),
    /// A line that goes (prefix: `-`).
    Remove(String),
    /// A line that comes (prefix: `+`).
    Add(String),
}

impl Patch {
    /// A patch of these operations, without diagnostics.
    pub fn new(operations: Vec<Operation>) -> Self {
        Self { operations, diagnostics: Vec::new() }
    }

    /// Every path whose content [`plan`](crate::plan()) must be given if the file exists:
    /// sources, destinations and additions, each once, in the order of the patch.
    pub fn paths(&self) -> Vec<&str> {
        let mut seen = std::collections::HashSet::new();
        self.operations.iter().flat_map(Operation::paths).filter(|path| seen.insert(*path)).collect()
    }

    /// The same patch with every path passed through `resolve`, for a host whose files have
    /// canonical names: two spellings of one file must be one path before the patch is planned.
    ///
    /// # Errors
    ///
    /// The first error of `resolve`, which may refuse a path.
    pub fn resolve_paths<E>(mut self, mut resolve: impl FnMut(&str) -> Result<String, E>) -> Result<Self, E> {
        for operation in &mut self.operations {
            match operation {
                Operation::Add(AddFile { path, .. }) | Operation::Delete(DeleteFile { path, .. }) => {
                    *path = resolve(path)?
                }
                Operation::Update(update) => {
                    update.path = resolve(&update.path)?;
                    update.move_to = update.move_to.as_deref().map(&mut resolve).transpose()?;
                }
            }
        }
        Ok(self)
    }
}

impl Operation {
    /// The path that the header names.
    pub fn path(&self) -> &str {
        match self {
            Self::Add(AddFile { path, .. })
            | Self::Delete(DeleteFile { path, .. })
            | Self::Update(UpdateFile { path, .. }) => path,
        }
    }

    fn paths(&self) -> impl Iterator<Item = &str> {
        let destination = match self {
            Self::Update(update) => update.move_to.as_deref(),
            Self::Add(_) | Self::Delete(_) => None,
        };
        std::iter::once(self.path()).chain(destination)
    }
}

impl AddFile {
    /// Creates `path` with these lines, which have no line feeds; each is written with one. No lines make an empty file.
    pub fn new(path: impl Into<String>, lines: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
        let mut file = Self { path: path.into(), content: String::new(), line: 0 };
        lines.into_iter().for_each(|line| file.push_line(line.as_ref()));
        file
    }

    /// The lines, without their line feeds.
    pub fn lines(&self) -> impl Iterator<Item = &str> {
        self.content.split_terminator('\n')
    }

    pub(crate) fn push_line(&mut self, line: &str) {
        self.content.push_str(line);
        self.content.push('\n');
    }
}

impl DeleteFile {
    /// Deletes `path`.
    pub fn new(path: impl Into<String>) -> Self {
        Self { path: path.into(), line: 0 }
    }
}

impl UpdateFile {
    /// Changes `path` by these hunks.
    pub fn new(path: impl Into<String>, hunks: Vec<Hunk>) -> Self {
        Self { path: path.into(), move_to: None, hunks, line: 0 }
    }

    /// The same change, with the file moved to `path`.
    pub fn with_move_to(mut self, path: impl Into<String>) -> Self {
        self.move_to = Some(path.into());
        self
    }
}

impl Hunk {
    /// A hunk of these lines, without a hint.
    pub fn new(lines: Vec<HunkLine>) -> Self {
        Self { hints: Vec::new(), lines, end_of_file: false, line: 0 }
    }

    /// The same hunk, narrowed by one more hint. It stands alone on one line, so blanks around
    /// it do not count and it does not end in `@@`.
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// The same hunk, pinned to the end of the file.
    pub fn with_end_of_file(mut self) -> Self {
        self.end_of_file = true;
        self
    }
}
