//! Text format of patches and plans.

use std::fmt::{self, Write as _};

use crate::plan::{Change, ChangeKind, Plan};
use crate::syntax::{Hunk, HunkLine, Operation, Patch, UpdateFile};

impl Plan {
    /// Renders one line per change, in order: `A path`, `M path`, `D path` or `R from -> to`, each ending
    /// with an LF.
    pub fn summary(&self) -> String {
        let mut summary = String::new();
        for Change { path, kind, .. } in &self.changes {
            let _infallible = match kind {
                ChangeKind::Added => writeln!(summary, "A {path}"),
                ChangeKind::Modified => writeln!(summary, "M {path}"),
                ChangeKind::Deleted => writeln!(summary, "D {path}"),
                ChangeKind::Renamed { from } => writeln!(summary, "R {from} -> {path}"),
            };
        }
        summary
    }

    /// Renders the changes as a unified diff for users, with three lines of context, git's headers for renames and
    /// git's quoting of names. Bytes that are not UTF-8 are shown as replacement characters. For a file that is binary
    /// or larger than 4 MiB, one line reports that it differs.
    pub fn unified_diff(&self) -> String {
        self.changes.iter().map(Change::unified_diff).collect()
    }
}

impl fmt::Display for Patch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "*** Begin Patch")?;
        for operation in &self.operations {
            write!(f, "{operation}")?;
        }
        writeln!(f, "*** End Patch")
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Add(add) => {
                writeln!(f, "*** Add File: {}", Path(&add.path))?;
                add.lines().try_for_each(|line| writeln!(f, "+{line}"))
            }
            Self::Delete(delete) => writeln!(f, "*** Delete File: {}", Path(&delete.path)),
            Self::Update(update) => write!(f, "{update}"),
        }
    }
}

impl fmt::Display for UpdateFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "*** Update File: {}", Path(&self.path))?;
        if let Some(path) = &self.move_to {
            writeln!(f, "*** Move to: {}", Path(path))?;
        }
        self.hunks.iter().try_for_each(|hunk| write!(f, "{hunk}"))
    }
}

/// Path at the end of a marker. The parser ignores whitespace around it and a trailing `***`, so a `.`
/// segment is added to keep them part of the path.
struct Path<'a>(&'a str);

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(path) = self;
        if path.starts_with(char::is_whitespace) {
            f.write_str("./")?;
        }
        f.write_str(path)?;
        let ends_in_whitespace = |text: &str| text.ends_with(char::is_whitespace);
        let ends_in_stars =
            path.strip_suffix("***").is_some_and(|before| before.is_empty() || ends_in_whitespace(before));
        match ends_in_whitespace(path) || ends_in_stars {
            true => f.write_str("/."),
            false => Ok(()),
        }
    }
}

impl fmt::Display for Hunk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.hints.is_empty() {
            writeln!(f, "@@")?;
        }
        for hint in &self.hints {
            writeln!(f, "@@ {hint}")?;
        }
        for line in &self.lines {
            writeln!(f, "{line}")?;
        }
        match self.end_of_file {
            true => writeln!(f, "*** End of File"),
            false => Ok(()),
        }
    }
}

impl fmt::Display for HunkLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Context(text) => write!(f, " {text}"),
            Self::Remove(text) => write!(f, "-{text}"),
            Self::Add(text) => write!(f, "+{text}"),
        }
    }
}
