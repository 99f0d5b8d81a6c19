//! Finding files by name and by content.
//!
//! One set of rules for all environments: this module holds the patterns, the ignore rules and the
//! line search, and walks a tree through [`ExecutionEnvironment::list`]. An environment that can walk
//! faster does so with the same parts.

pub(crate) mod ignore_rules;
pub(crate) mod pattern;
pub(crate) mod query;
pub(crate) mod results;
mod scope;
mod walk;

use std::{
    cmp::Reverse,
    path::{Path, PathBuf},
    time::SystemTime,
};

pub use self::scope::SearchScope;
use self::{
    pattern::GlobPattern,
    query::{FileOutcome, Query},
    results::Results,
    walk::Walk,
};
use crate::{
    blocking::{Cancelled, blocking},
    environment::ExecutionEnvironment,
    error::EnvError,
};

/// How many results a search returns if the request does not say (loop specification, section 3.3).
pub const DEFAULT_MAX_RESULTS: usize = 100;

/// What a content search reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GrepMode {
    /// The matching lines. The default.
    #[default]
    Content,
    /// The files that have a matching line.
    FilesWithMatches,
    /// The files with the number of their matching lines.
    Count,
}

/// A content search: the argument of [`ExecutionEnvironment::grep`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GrepRequest {
    /// A regular expression of the `regex` crate, matched line by line.
    pub pattern: String,
    /// The file or directory to search; default the working directory. A file that is named here
    /// is searched whatever the filter and the ignore rules say.
    pub path: Option<PathBuf>,
    /// Only files that match this glob. Without a slash it is matched against the name, with one
    /// against the path relative to the searched directory; a leading `!` turns it around.
    pub glob_filter: Option<String>,
    /// Whether case is ignored; default no.
    pub case_insensitive: bool,
    /// The most lines in [`GrepMode::Content`], else the most files; default 100.
    pub max_results: usize,
    /// What is reported; default the matching lines.
    pub output_mode: GrepMode,
    /// How many lines before each matching line are reported too; default 0.
    pub before_context: usize,
    /// How many lines after each matching line are reported too; default 0.
    pub after_context: usize,
    /// Which files are looked at; default hidden ones and not ignored ones.
    pub scope: SearchScope,
}

impl GrepRequest {
    /// Searches the working directory for `pattern`.
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

    /// Searches this file or directory.
    #[must_use]
    pub fn with_path(mut self, path: impl Into<PathBuf>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// Searches only files that match `glob`.
    #[must_use]
    pub fn with_glob_filter(mut self, glob: impl Into<String>) -> Self {
        self.glob_filter = Some(glob.into());
        self
    }

    /// Says whether case is ignored.
    #[must_use]
    pub fn with_case_insensitive(mut self, case_insensitive: bool) -> Self {
        self.case_insensitive = case_insensitive;
        self
    }

    /// Sets the most results.
    #[must_use]
    pub fn with_max_results(mut self, max_results: usize) -> Self {
        self.max_results = max_results;
        self
    }

    /// Chooses what is reported.
    #[must_use]
    pub fn with_output_mode(mut self, mode: GrepMode) -> Self {
        self.output_mode = mode;
        self
    }

    /// Reports lines before and after each matching line too.
    #[must_use]
    pub fn with_context(mut self, before: usize, after: usize) -> Self {
        self.before_context = before;
        self.after_context = after;
        self
    }

    /// Chooses which files are looked at.
    #[must_use]
    pub fn with_scope(mut self, scope: SearchScope) -> Self {
        self.scope = scope;
        self
    }
}

/// A search for files by their names: the argument of [`ExecutionEnvironment::find_files`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GlobRequest {
    /// The glob, relative to `path`, as [`ExecutionEnvironment::glob`] reads it.
    pub pattern: String,
    /// The directory to search; default the working directory.
    pub path: Option<PathBuf>,
    /// Which files are looked at; default hidden ones and not ignored ones.
    pub scope: SearchScope,
}

impl GlobRequest {
    /// Looks in the working directory for files that match `pattern`.
    #[must_use]
    pub fn new(pattern: impl Into<String>) -> Self {
        Self { pattern: pattern.into(), path: None, scope: SearchScope::default() }
    }

    /// Looks in this directory.
    #[must_use]
    pub fn with_path(mut self, path: impl Into<PathBuf>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// Chooses which files are looked at.
    #[must_use]
    pub fn with_scope(mut self, scope: SearchScope) -> Self {
        self.scope = scope;
        self
    }

    /// Where it looks, relative to the working directory.
    pub(crate) fn place(&self) -> &Path {
        self.path.as_deref().unwrap_or(Path::new(""))
    }
}

/// What a content search found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct GrepOutput {
    /// The files with a match, in the order of their paths.
    pub files: Vec<GrepFile>,
    /// Whether there is more than the request allowed.
    pub truncated: bool,
    /// How many binary files were skipped; if truncated, only up to the last file reported.
    pub binary_files: usize,
    /// How many files could not be read; if truncated, only up to the last file reported.
    pub unreadable_files: usize,
}

/// A file with a match.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GrepFile {
    /// The file, absolute.
    pub path: PathBuf,
    /// How many of its lines match. In [`GrepMode::FilesWithMatches`] it is 1, in
    /// [`GrepMode::Content`] the number of matching lines reported.
    pub matches: usize,
    /// The lines, in [`GrepMode::Content`] only.
    pub lines: Vec<GrepLine>,
}

/// A line of a file with a match.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GrepLine {
    /// The line number, from 1 on.
    pub number: u64,
    /// The line without its end, with U+FFFD for what is not UTF-8, cut after 64 KiB.
    pub text: String,
    /// Whether it matches; otherwise it is context.
    pub is_match: bool,
}

/// Sorts what a glob found: newest first, then in the order of the paths.
pub(crate) fn newest_first(mut found: Vec<(Option<SystemTime>, PathBuf)>) -> Vec<PathBuf> {
    found.sort_by(|(left_time, left), (right_time, right)| {
        (Reverse(left_time), left).cmp(&(Reverse(right_time), right))
    });
    found.into_iter().map(|(_, path)| path).collect()
}

/// [`ExecutionEnvironment::find_files`] through the primitives.
pub(crate) async fn find_files<E: ExecutionEnvironment + ?Sized>(
    env: &E,
    request: &GlobRequest,
) -> Result<Vec<PathBuf>, EnvError> {
    let root = env.resolve(request.place());
    env.metadata(&root).await?;
    let pattern = GlobPattern::parse(&request.pattern, &root)?;
    let mut walk = Walk::new(env, &pattern.base, pattern.max_depth, request.scope).await?;
    let mut found = Vec::new();
    while let Some(file) = walk.next().await? {
        if !pattern.matches(&file.path) {
            continue;
        }
        match env.metadata(&file.path).await {
            Ok(metadata) if metadata.is_dir() => {}
            Ok(metadata) => found.push((metadata.modified, file.path)),
            Err(lost) if lost.is_of_environment() => return Err(lost),
            // A link to nowhere is no file.
            Err(_gone) => {}
        }
        pattern.check_count(found.len())?;
    }
    Ok(newest_first(found))
}

/// [`ExecutionEnvironment::grep`] through the primitives.
pub(crate) async fn grep<E: ExecutionEnvironment + ?Sized>(
    env: &E,
    request: &GrepRequest,
) -> Result<GrepOutput, EnvError> {
    let query = Query::compile(request)?;
    let root = env.resolve(request.path.as_deref().unwrap_or(Path::new("")));
    let mut results = Results::new(request);
    if env.metadata(&root).await?.is_file() {
        let bytes = env.read(&root, None).await?;
        results.add(root.clone(), search_bytes(&query, root, bytes).await?);
        return Ok(results.finish());
    }
    let mut walk = Walk::new(env, &root, None, request.scope).await?;
    while let Some(file) = walk.next().await? {
        if file.is_symlink || !query.admits(&root, &file.path) || !results.wants(&file.path) {
            continue;
        }
        let outcome = match env.read(&file.path, None).await {
            Ok(bytes) => search_bytes(&query, file.path.clone(), bytes).await?,
            Err(lost) if lost.is_of_environment() => return Err(lost),
            Err(_unreadable) => FileOutcome::Unreadable,
        };
        results.add(file.path, outcome);
    }
    Ok(results.finish())
}

async fn search_bytes(query: &Query, path: PathBuf, bytes: Vec<u8>) -> Result<FileOutcome, EnvError> {
    let query = query.clone();
    let cancelled = Cancelled::default();
    let _guard = cancelled.on_drop();
    blocking(move || query.search(path, bytes.as_slice(), &cancelled)).await
}

#[cfg(test)]
mod tests;
