//! Scope of a search: hidden and ignored files.

use std::{os::unix::ffi::OsStrExt, path::Path};

use super::ignore_rules::{IgnoreRules, REPOSITORY};

/// Which files below the starting directory a search visits. The starting directory itself is
/// searched whatever its name. `.git` is never searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SearchScope {
    /// Visit files and directories whose names start with a dot; default true.
    pub hidden: bool,
    /// Visit files and directories matched by `.gitignore`, `.ignore` or `.git/info/exclude`;
    /// default false.
    pub ignored: bool,
}

impl Default for SearchScope {
    fn default() -> Self {
        Self { hidden: true, ignored: false }
    }
}

impl SearchScope {
    /// Sets whether hidden files are visited.
    #[must_use]
    pub fn with_hidden(mut self, hidden: bool) -> Self {
        self.hidden = hidden;
        self
    }

    /// Sets whether ignored files are visited.
    #[must_use]
    pub fn with_ignored(mut self, ignored: bool) -> Self {
        self.ignored = ignored;
        self
    }

    /// Returns true if an entry of a directory with these rules is skipped.
    pub(crate) fn excludes(self, rules: Option<&IgnoreRules>, path: &Path, is_dir: bool) -> bool {
        let name = path.file_name().unwrap_or_default();
        name == REPOSITORY
            || (!self.hidden && name.as_bytes().starts_with(b"."))
            || (!self.ignored && rules.is_some_and(|rules| rules.excludes(path, is_dir)))
    }
}
