//! Syntax tree of a v4a patch (coding agent loop specification, appendix A).

use crate::Diagnostic;

/// A patch: operations on files, in order of application.
///
/// `Display` writes it in canonical v4a, which [`parse`](crate::parse) reads back to the same
/// operations.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Patch {
    /// The operations, in order.
    pub operations: Vec<Operation>,
    /// Deviations that the parser accepted, in the order in which it recognized them.
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
    /// Path of the new file, as written except for `.` segments.
    pub path: String,
    /// Content as one string, since it may be megabytes long. Each line ends with an LF.
    pub content: String,
    /// Line of the header in the patch, from 1; 0 if the operation was not parsed.
    pub line: usize,
}

/// Deletes a file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeleteFile {
    /// Path of the file, as written except for `.` segments.
    pub path: String,
    /// Line of the header in the patch, from 1; 0 if the operation was not parsed.
    pub line: usize,
}

/// Changes a file, moves it, or both.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UpdateFile {
    /// Path of the file, as written except for `.` segments.
    pub path: String,
    /// Destination path, if the file is moved.
    pub move_to: Option<String>,
    /// The hunks. Without any, the update is a plain rename.
    pub hunks: Vec<Hunk>,
    /// Line of the header in the patch, from 1; 0 if the operation was not parsed.
    pub line: usize,
}

/// One change in a file: old lines to find, and their replacement.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Hunk {
    /// Texts of the `@@` lines before it, outermost first. Each narrows the search.
    pub hints: Vec<String>,
    /// Lines, in order.
    pub lines: Vec<HunkLine>,
    /// Whether `*** End of File` anchors it to the end of the file.
    pub end_of_file: bool,
    /// First line in the patch, from 1; 0 if the hunk was not parsed.
    pub line: usize,
}

/// One line of a hunk, without prefix and line end. It contains no line feed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HunkLine {
    /// An unchanged line (prefix: a space).
    Context(String),
    /// A removed line (prefix: `-`).
    Remove(String),
    /// An added line (prefix: `+`).
    Add(String),
}

impl Patch {
    /// Creates a patch from operations, without diagnostics.
    pub fn new(operations: Vec<Operation>) -> Self {
        Self { operations, diagnostics: Vec::new() }
    }

    /// Returns every path whose content [`plan`](crate::plan()) needs if the file exists: sources, destinations and
    /// additions, each once, in the order of the patch.
    pub fn paths(&self) -> Vec<&str> {
        let mut seen = std::collections::HashSet::new();
        self.operations.iter().flat_map(Operation::paths).filter(|path| seen.insert(*path)).collect()
    }

    /// Returns every path whose content the patch takes from the file: the paths that it updates, moves or deletes,
    /// each once, in the order of the patch.
    pub fn sources(&self) -> Vec<&str> {
        let mut seen = std::collections::HashSet::new();
        let changed = self.operations.iter().filter(|operation| !matches!(operation, Operation::Add(_)));
        changed.map(Operation::path).filter(|path| seen.insert(*path)).collect()
    }

    /// Maps every path through `resolve`, which should canonicalize it: two spellings of one file must be the
    /// same path before the patch is planned.
    ///
    /// # Errors
    ///
    /// The first error of `resolve`, which may reject a path.
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
    /// Returns the path in the header.
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
    /// Creates an addition of `path` with these lines, given without line feeds. Without lines the file is empty.
    pub fn new(path: impl Into<String>, lines: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
        let mut file = Self { path: path.into(), content: String::new(), line: 0 };
        lines.into_iter().for_each(|line| file.push_line(line.as_ref()));
        file
    }

    /// Returns the lines, without their line feeds.
    pub fn lines(&self) -> impl Iterator<Item = &str> {
        self.content.split_terminator('\n')
    }

    pub(crate) fn push_line(&mut self, line: &str) {
        self.content.push_str(line);
        self.content.push('\n');
    }
}

impl DeleteFile {
    /// Creates a deletion of `path`.
    pub fn new(path: impl Into<String>) -> Self {
        Self { path: path.into(), line: 0 }
    }
}

impl UpdateFile {
    /// Creates an update of `path` with these hunks.
    pub fn new(path: impl Into<String>, hunks: Vec<Hunk>) -> Self {
        Self { path: path.into(), move_to: None, hunks, line: 0 }
    }

    /// Also moves the file to `path`.
    pub fn with_move_to(mut self, path: impl Into<String>) -> Self {
        self.move_to = Some(path.into());
        self
    }
}

impl Hunk {
    /// Creates a hunk of these lines, without a hint.
    pub fn new(lines: Vec<HunkLine>) -> Self {
        Self { hints: Vec::new(), lines, end_of_file: false, line: 0 }
    }

    /// Adds a hint, inside the hints added before. It is one line. Whitespace around it is ignored, and it must not end
    /// in `@@`.
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Anchors the hunk to the end of the file.
    pub fn with_end_of_file(mut self) -> Self {
        self.end_of_file = true;
        self
    }
}
