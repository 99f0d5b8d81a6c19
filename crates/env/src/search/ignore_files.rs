//! Names of the files with ignore rules.

use std::ffi::OsStr;

/// Name of the directory, or file, that marks its parent as a repository.
pub(crate) const REPOSITORY: &str = ".git";

/// Ignore files of a directory, relative to it.
pub(crate) const IGNORE_FILE: &str = ".ignore";
pub(crate) const GITIGNORE_FILE: &str = ".gitignore";
pub(crate) const EXCLUDE_FILE: &str = ".git/info/exclude";

/// Returns true for the name of a file with ignore rules.
pub(crate) fn is_ignore_file(name: &OsStr) -> bool {
    name == IGNORE_FILE || name == GITIGNORE_FILE
}
