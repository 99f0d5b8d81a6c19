//! Which files a search looks at.

use std::{os::unix::ffi::OsStrExt, path::Path};

use super::ignore_rules::{IgnoreRules, REPOSITORY};

/// Which files a search looks at, of those below the place where it begins. That place itself is searched whatever
/// its name is. `.git` is never searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SearchScope {
    /// Whether files and directories are searched whose names begin with a dot; default yes.
    pub hidden: bool,
    /// Whether files and directories are searched that `.gitignore`, `.ignore` and `.git/info/exclude` name; default
    /// no.
    pub ignored: bool,
}

impl Default for SearchScope {
    fn default() -> Self {
        Self { hidden: true, ignored: false }
    }
}

impl SearchScope {
    /// Says whether what is hidden is searched.
    #[must_use]
    pub fn with_hidden(mut self, hidden: bool) -> Self {
        self.hidden = hidden;
        self
    }

    /// Says whether what is ignored is searched.
    #[must_use]
    pub fn with_ignored(mut self, ignored: bool) -> Self {
        self.ignored = ignored;
        self
    }

    /// Whether an entry of a directory with these rules is passed over.
    pub(crate) fn passes_over(self, rules: Option<&IgnoreRules>, path: &Path, is_dir: bool) -> bool {
        let name = path.file_name().unwrap_or_default();
        name == REPOSITORY
            || (!self.hidden && name.as_bytes().starts_with(b"."))
            || (!self.ignored && rules.is_some_and(|rules| rules.passes_over(path, is_dir)))
    }
}
