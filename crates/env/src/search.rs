//! Finds files by name and by content.
//!
//! The rules are the same in all environments: this module holds the patterns, the ignore rules and
//! the line search, which need the feature `search`. [`ExecutionEnvironment`](crate::ExecutionEnvironment) walks a tree through its
//! primitives; an environment that can walk faster does so with the same parts.

mod base;
pub(crate) mod ignore_files;
#[cfg(feature = "search")]
pub(crate) mod ignore_rules;
#[cfg(feature = "search")]
pub(crate) mod pattern;
#[cfg(feature = "search")]
pub(crate) mod query;
#[cfg(feature = "search")]
pub(crate) mod results;
mod scope;

use std::{
    cmp::Reverse,
    path::{Path, PathBuf},
    time::SystemTime,
};

pub use self::base::glob_base;
pub use self::scope::SearchScope;
use crate::{path::resolve, setters::setters};

/// Maximum number of results if the request sets none (loop specification, section 3.3).
pub const DEFAULT_MAX_RESULTS: usize = 100;

/// Output of a content search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GrepMode {
    /// The matching lines. The default.
    #[default]
    Content,
    /// The files with a matching line.
    FilesWithMatches,
    /// The files with their number of matching lines.
    Count,
}

/// A content search: the argument of [`grep`](crate::ExecutionEnvironment::grep).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GrepRequest {
    /// A regular expression of the `regex` crate, matched line by line.
    pub pattern: String,
    /// The file or directory to search; default the working directory. A file named here is
    /// searched regardless of the filter and the ignore rules.
    pub path: Option<PathBuf>,
    /// Restricts the search to files that match this glob. A glob without a slash is matched
    /// against the name, one with a slash against the path relative to the searched directory. A
    /// leading `!` negates it. Several globs are separated by commas.
    pub glob_filter: Option<String>,
    /// Ignores case; default false.
    pub case_insensitive: bool,
    /// Maximum number of lines in [`GrepMode::Content`], of files otherwise; default 100.
    pub max_results: usize,
    /// The kind of results; default the matching lines.
    pub output_mode: GrepMode,
    /// Number of context lines before each match; default 0.
    pub before_context: usize,
    /// Number of context lines after each match; default 0.
    pub after_context: usize,
    /// The files to visit; by default hidden ones are included and ignored ones are not.
    pub scope: SearchScope,
}

impl GrepRequest {
    /// Creates a request to search the working directory for `pattern`.
    #[must_use]
    pub fn new(pattern: impl Into<String>) -> Self {
        Self {
            pattern: pattern.into(),
            path: None,
            glob_filter: None,
            case_insensitive: false,
            max_results: DEFAULT_MAX_RESULTS,
            output_mode: GrepMode::Content,
            before_context: 0,
            after_context: 0,
            scope: SearchScope::default(),
        }
    }

    setters! {
        /// Sets the file or directory to search.
        pub fn with_path(path: impl Into<PathBuf>) => path = Some(path.into());
        /// Restricts the search to files that match `glob`.
        pub fn with_glob_filter(glob: impl Into<String>) => glob_filter = Some(glob.into());
        /// Sets whether case is ignored.
        pub fn with_case_insensitive(case_insensitive: bool) => case_insensitive = case_insensitive;
        /// Sets the maximum number of results.
        pub fn with_max_results(max_results: usize) => max_results = max_results;
        /// Sets the kind of results.
        pub fn with_output_mode(mode: GrepMode) => output_mode = mode;
    }

    /// Sets the number of context lines before and after each match.
    #[must_use]
    pub fn with_context(mut self, before: usize, after: usize) -> Self {
        self.before_context = before;
        self.after_context = after;
        self
    }

    /// Sets which files are visited.
    #[must_use]
    pub fn with_scope(mut self, scope: SearchScope) -> Self {
        self.scope = scope;
        self
    }
}

/// A search for files by name: the argument of
/// [`find_files`](crate::ExecutionEnvironment::find_files).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GlobRequest {
    /// The glob, relative to `path`; see [`find_files`](crate::ExecutionEnvironment::find_files).
    pub pattern: String,
    /// The directory to search; default the working directory.
    pub path: Option<PathBuf>,
    /// The files to visit; by default hidden ones are included and ignored ones are not.
    pub scope: SearchScope,
}

impl GlobRequest {
    /// Creates a request to find files in the working directory that match `pattern`.
    #[must_use]
    pub fn new(pattern: impl Into<String>) -> Self {
        Self { pattern: pattern.into(), path: None, scope: SearchScope::default() }
    }

    /// Sets the directory to search.
    #[must_use]
    pub fn with_path(mut self, path: impl Into<PathBuf>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// Sets which files are visited.
    #[must_use]
    pub fn with_scope(mut self, scope: SearchScope) -> Self {
        self.scope = scope;
        self
    }

    /// Returns the directory to search, relative to the working directory.
    pub(crate) fn directory(&self) -> &Path {
        self.path.as_deref().unwrap_or(Path::new(""))
    }

    /// Returns the directory below which all matches are, if the search starts in `root`.
    pub(crate) fn base(&self, root: &Path, home: Option<&Path>) -> PathBuf {
        resolve(Path::new(base::split_base(&self.pattern).0), root, home)
    }
}

/// Result of a content search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct GrepOutput {
    /// The files with a match, sorted by path.
    pub files: Vec<GrepFile>,
    /// True if there were more results than the request allowed.
    pub truncated: bool,
    /// Number of skipped binary files; if truncated, only up to the last file reported.
    pub binary_files: usize,
    /// Number of files that could not be read; if truncated, only up to the last file reported.
    pub unreadable_files: usize,
    /// Number of files and directories that were not searched because they are ignored.
    pub ignored: usize,
}

/// A file with a match.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GrepFile {
    /// The file, absolute.
    pub path: PathBuf,
    /// Number of matching lines. In [`GrepMode::FilesWithMatches`] it is 1, in
    /// [`GrepMode::Content`] the number of matching lines reported.
    pub matches: usize,
    /// The lines; [`GrepMode::Content`] only.
    pub lines: Vec<GrepLine>,
}

/// A line of a file with a match.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GrepLine {
    /// The line number, starting at 1.
    pub number: u64,
    /// The line without its line ending, with U+FFFD for invalid UTF-8. Of a line above 64 KiB, a part of that size: the
    /// first, or one with the start of the first match.
    pub text: String,
    /// Number of characters of the line before `text`.
    pub skipped: usize,
    /// Start of the first match in `text`, in bytes; 0 for context.
    pub match_start: usize,
    /// True for a match, false for context.
    pub is_match: bool,
}

/// Sorts paths by modification time, newest first, then by path.
pub(crate) fn newest_first(mut found: Vec<(Option<SystemTime>, PathBuf)>) -> Vec<PathBuf> {
    found.sort_by(|(left_time, left), (right_time, right)| {
        (Reverse(left_time), left).cmp(&(Reverse(right_time), right))
    });
    found.into_iter().map(|(_, path)| path).collect()
}
