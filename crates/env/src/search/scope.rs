//! Scope of a search: hidden and ignored files.

#[cfg(feature = "search")]
use std::{os::unix::ffi::OsStrExt, path::Path, sync::Arc};

#[cfg(feature = "search")]
use super::{
    ignore_files::{REPOSITORY, is_ignore_file},
    ignore_rules::{IgnoreRules, NamedEntry},
};

/// Which files below the starting directory a search visits. The starting directory itself is
/// searched whatever its name, and if everything in it is ignored, the rules that ignore it do not apply
/// below it. `.git` is never searched.
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
}

#[cfg(feature = "search")]
impl SearchScope {
    /// Returns true if an entry of a directory with these rules is skipped.
    pub(crate) fn excludes(self, rules: Option<&IgnoreRules>, path: &Path, is_dir: bool) -> bool {
        !self.may_visit(path) || self.ignores(rules, path, is_dir)
    }

    /// Returns true if an entry of a directory with these rules is skipped because of the rules.
    pub(crate) fn ignores(self, rules: Option<&IgnoreRules>, path: &Path, is_dir: bool) -> bool {
        self.may_visit(path) && !self.ignored && rules.is_some_and(|rules| rules.excludes(path, is_dir))
    }

    /// Returns the rules of a search that starts in a directory with these rules and entries. Those that exclude all of them
    /// do not apply, since the directory is named.
    pub(crate) fn starting_in(
        self,
        rules: Arc<IgnoreRules>,
        entries: impl IntoIterator<Item = NamedEntry>,
    ) -> Arc<IgnoreRules> {
        if self.ignored {
            return rules;
        }
        let judged = entries.into_iter().filter(|(path, _)| {
            let name = path.file_name().unwrap_or_default();
            name != REPOSITORY && !is_ignore_file(name)
        });
        rules.without_those_for_all(&judged.collect::<Vec<_>>())
    }

    fn may_visit(self, path: &Path) -> bool {
        let name = path.file_name().unwrap_or_default();
        name != REPOSITORY && (self.hidden || !name.as_bytes().starts_with(b"."))
    }
}
