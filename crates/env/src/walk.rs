//! Walks of a directory tree, and reads of many files at once.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{
    file::{FileIdentity, MAX_ENTRIES},
    search::ignore_files::is_ignore_file,
    setters::setters,
};

/// A walk of a directory tree: the argument of [`walk`](crate::ExecutionEnvironment::walk).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WalkRequest {
    /// The directory to walk; a relative path starts at the working directory. A link is followed.
    pub root: PathBuf,
    /// Maximum number of entries, and of ignored paths; default [`MAX_ENTRIES`].
    pub max_entries: usize,
    /// Time after which the walk ends with the entries found so far; default none.
    pub time_limit: Option<Duration>,
    /// Whether the tree is listed again even if the environment has the latest walk and knows of no change since; default
    /// false.
    pub is_fresh: bool,
}

impl WalkRequest {
    /// Creates a walk of `root` with the default limits.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), max_entries: MAX_ENTRIES, time_limit: None, is_fresh: false }
    }

    setters! {
        /// Sets the directory to walk.
        pub fn with_root(root: impl Into<PathBuf>) => root = root.into();
        /// Sets the maximum number of entries, and of ignored paths.
        pub fn with_max_entries(max_entries: usize) => max_entries = max_entries;
        /// Sets the time after which the walk ends with the entries found so far.
        pub fn with_time_limit(time_limit: Duration) => time_limit = Some(time_limit);
        /// Sets whether the tree is listed again in any case.
        pub fn with_fresh(is_fresh: bool) => is_fresh = is_fresh;
    }
}

/// Result of a walk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WalkOutput {
    /// The entries, sorted by path; a directory precedes its own entries.
    pub entries: Vec<WalkEntry>,
    /// Files and directories that were left out because they are ignored, relative to the root and sorted. Entries
    /// below an ignored directory are not listed, nor is anything named `.git`.
    pub ignored: Vec<PathBuf>,
    /// Directories whose entries could not be read, relative to the root.
    pub unreadable: Vec<PathBuf>,
    /// The limit that ended the walk. Without one, nothing is missing but the entries of unreadable directories.
    pub reached: Option<WalkLimit>,
    /// The time in the environment when the walk started, in nanoseconds since 1970, by the clock of its files; `None`
    /// if it is not known. It may be rounded down to seconds. An environment may return an earlier walk whose result is
    /// current, with the time of that walk.
    pub started_ns: Option<i64>,
}

impl WalkOutput {
    /// Returns true if every entry was found.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.reached.is_none() && self.unreadable.is_empty()
    }

    /// Returns true if everything in the root is ignored, ignore files aside. A [search](crate::SearchScope) that starts
    /// there visits all of it.
    #[must_use]
    pub fn is_all_ignored(&self) -> bool {
        let is_in_root = |path: &Path| path.components().count() == 1;
        let is_visited =
            |path: &Path| is_in_root(path) && path.file_name().is_none_or(|name| !is_ignore_file(name));
        self.ignored.iter().any(|path| is_in_root(path))
            && !self.entries.iter().any(|entry| is_visited(&entry.path))
    }

    /// Sorts the paths and keeps as many as the request allows.
    pub(crate) fn sort_and_limit(&mut self, max_entries: usize) {
        self.entries.sort_by(|left, right| left.path.cmp(&right.path));
        self.ignored.sort();
        self.unreadable.sort();
        if self.entries.len() > max_entries || self.ignored.len() > max_entries {
            self.entries.truncate(max_entries);
            self.ignored.truncate(max_entries);
            self.reached = Some(WalkLimit::Entries);
        }
    }
}

/// A limit of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WalkLimit {
    /// [`WalkRequest::max_entries`].
    Entries,
    /// [`WalkRequest::time_limit`].
    Time,
}

/// A file, directory or link that a walk has found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WalkEntry {
    /// The path relative to the root. It need not be UTF-8.
    pub path: PathBuf,
    /// The type of the entry itself: links are not followed.
    pub kind: EntryKind,
    /// The permission bits (`0o7777`), if there are any. Those of a link have no meaning.
    pub mode: Option<u32>,
    /// The size in bytes; 0 for anything but a regular file.
    pub size: u64,
    /// The target of a link as it is stored, if the environment can read it.
    pub target: Option<PathBuf>,
    /// The identity of this state of the entry, if the environment has identities.
    pub identity: Option<FileIdentity>,
}

impl WalkEntry {
    /// Creates an entry without mode, size, target and identity.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>, kind: EntryKind) -> Self {
        Self { path: path.into(), kind, mode: None, size: 0, target: None, identity: None }
    }

    setters! {
        /// Sets the permission bits.
        pub fn with_mode(mode: Option<u32>) => mode = mode;
        /// Sets the size.
        pub fn with_size(size: u64) => size = size;
        /// Sets the target of a link.
        pub fn with_target(target: Option<PathBuf>) => target = target;
        /// Sets the identity.
        pub fn with_identity(identity: Option<FileIdentity>) => identity = identity;
    }
}

/// Type of an entry of a directory, with links not followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link, whatever its target.
    Symlink,
    /// A device, pipe or socket.
    Other,
}

/// Limits of [`read_many`](crate::ExecutionEnvironment::read_many).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReadLimits {
    /// Maximum size of one file, in bytes; at most [`MAX_READ`](crate::MAX_READ) has an effect.
    pub file: u64,
    /// Maximum size of all contents together, in bytes. The first file is read even if it is larger.
    pub total: u64,
}

impl ReadLimits {
    /// Creates limits in bytes: for one file, and for all of them together.
    #[must_use]
    pub fn new(file: u64, total: u64) -> Self {
        Self { file, total }
    }
}

/// Content of one of many files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileContent {
    /// The bytes.
    Bytes(Vec<u8>),
    /// The file is larger than [`ReadLimits::file`].
    TooLarge,
    /// The path does not exist.
    Missing,
    /// The path is not a regular file: a directory, a link, a device.
    NotAFile,
    /// The file cannot be read, for instance because permission is denied.
    Unreadable,
    /// Not read, since [`ReadLimits::total`] was reached: read it by another call.
    Skipped,
}
