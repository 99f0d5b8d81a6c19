//! The latest walk of a working directory, which is used again until the kernel reports a change. Every function blocks.

mod changes;

use std::{
    fs, mem,
    os::{fd::OwnedFd, unix::fs::MetadataExt as _},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard},
    time::{Duration, Instant},
};

use nix::{
    libc::{dev_t, ino_t},
    sys::stat::{FileStat, fstat},
};

use self::changes::ChangeWatcher;
use crate::{
    search::ignore_rules::{EXCLUDE_FILE, GITIGNORE_FILE, IGNORE_FILE, REPOSITORY},
    walk::{EntryKind, WalkOutput, WalkRequest},
};

/// Maximum number of directories of a tree that is watched. Linux allows a user some tens of thousands.
const MAX_DIRECTORIES: usize = 8192;

/// Age of a file above which a later change gives it another identity, also where identities have whole seconds.
const SETTLING: Duration = Duration::from_secs(2);
const SETTLING_NS: i64 = 2_000_000_000;

/// The latest walk of a tree.
#[derive(Debug, Default)]
pub(crate) struct WalkCache(Mutex<CacheState>);

#[derive(Debug, Default)]
struct CacheState {
    watcher: Option<Arc<ChangeWatcher>>,
    walked: Option<WalkedTree>,
}

/// A walk that found everything, and the state of its sources that the watcher does not cover.
#[derive(Debug)]
struct WalkedTree {
    output: WalkOutput,
    root: PathBuf,
    identity: DirectoryIdentity,
    /// Ignore files above the root.
    above: Vec<RuleFile>,
    /// Exclude files of repositories at and below the root.
    excludes: Vec<RuleFile>,
    at: Instant,
    /// Whether a change since the walk gives every file another identity.
    is_settled: bool,
}

/// Device and inode of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct DirectoryIdentity(dev_t, ino_t);

/// An ignore file with its state; `None` if it is missing.
#[derive(Debug, PartialEq, Eq)]
struct RuleFile(PathBuf, Option<RuleFileState>);

#[derive(Debug, PartialEq, Eq)]
enum RuleFileState {
    /// The time of a directory changes with each entry, so only the type is compared.
    Directory,
    File {
        device: u64,
        inode: u64,
        changed: (i64, i64),
        size: u64,
    },
}

impl WalkCache {
    /// Starts a walk of `root` that may use the latest one. `None` while another walk runs.
    pub(crate) fn start(&self, root: &Path) -> Option<CachedWalk<'_>> {
        let state = self.0.try_lock().ok()?;
        let names = [REPOSITORY, IGNORE_FILE, GITIGNORE_FILE, EXCLUDE_FILE];
        let above = root.ancestors().skip(1).flat_map(|above| names.map(|name| above.join(name)));
        Some(CachedWalk { state, above: above.map(RuleFile::new).collect() })
    }
}

/// A walk that may use the latest one, or is kept for the next one.
pub(crate) struct CachedWalk<'a> {
    state: MutexGuard<'a, CacheState>,
    above: Vec<RuleFile>,
}

impl CachedWalk<'_> {
    /// Returns the latest walk of an open directory if another one would find the same.
    pub(super) fn recall(
        &self,
        directory: &OwnedFd,
        root: &Path,
        request: &WalkRequest,
    ) -> Option<WalkOutput> {
        let walked = self.state.walked.as_ref()?;
        let watcher = self.state.watcher.as_ref()?;
        let fits = request.max_entries >= walked.output.entries.len().max(walked.output.ignored.len());
        let is_valid = !request.is_fresh
            && fits
            && (walked.is_settled || walked.at.elapsed() < SETTLING)
            && walked.root == root
            && walked.above == self.above
            && DirectoryIdentity::new(directory) == Some(walked.identity)
            && walked.excludes.iter().all(RuleFile::is_unchanged)
            // Last, because a report is read only once. After a report, the next walk is recorded.
            && watcher.is_unchanged();
        is_valid.then(|| walked.output.clone())
    }

    /// Forgets the latest walk, and records the next one if changes of the tree are reported.
    pub(super) fn record(&mut self, directory: &OwnedFd) -> Option<WalkRecorder> {
        self.state.walked = None;
        if !ChangeWatcher::is_available(directory) {
            return None;
        }
        if self.state.watcher.is_none() {
            self.state.watcher = ChangeWatcher::new().map(Arc::new);
        }
        let watcher = Arc::clone(self.state.watcher.as_ref()?);
        let identity = DirectoryIdentity::new(directory)?;
        watcher.discard();
        Some(WalkRecorder {
            watcher,
            identity,
            at: Instant::now(),
            directories: 0,
            excludes: Vec::new(),
            is_watched: true,
        })
    }

    /// Keeps a walk that has ended, if it found everything and all of it is watched.
    pub(super) fn keep(&mut self, recorder: WalkRecorder, root: &Path, output: &WalkOutput) {
        let WalkRecorder { identity, at, excludes, is_watched, .. } = recorder;
        if !is_watched || !output.is_complete() {
            return;
        }
        let changes =
            output.entries.iter().filter_map(|entry| entry.identity).map(|identity| identity.changed_ns);
        let settled_at = changes.max().map(|newest| newest.saturating_add(SETTLING_NS));
        let is_settled =
            output.started_ns.is_some_and(|started| settled_at.is_none_or(|settled| settled <= started));
        self.state.walked = Some(WalkedTree {
            output: output.clone(),
            root: root.to_path_buf(),
            identity,
            above: mem::take(&mut self.above),
            excludes,
            at,
            is_settled,
        });
    }
}

/// Watches the directories that a walk enters.
pub(super) struct WalkRecorder {
    watcher: Arc<ChangeWatcher>,
    identity: DirectoryIdentity,
    at: Instant,
    directories: usize,
    excludes: Vec<RuleFile>,
    is_watched: bool,
}

impl WalkRecorder {
    /// Watches a directory whose entries are listed next.
    pub(super) fn enter(&mut self, directory: &OwnedFd) {
        self.directories += 1;
        self.is_watched =
            self.is_watched && self.directories <= MAX_DIRECTORIES && self.watcher.add(directory);
    }

    /// Watches the ignore files of a directory with these entries, which are read next. A link is not watched, because its
    /// target is elsewhere, and because walks by name and by held paths follow it differently.
    pub(super) fn read_rules(&mut self, directory: &Path, has: &dyn Fn(&str) -> bool) {
        for name in [IGNORE_FILE, GITIGNORE_FILE, REPOSITORY] {
            if has(name) {
                self.is_watched &= !is_link(&directory.join(name));
            }
        }
        if has(REPOSITORY) {
            let exclude = directory.join(EXCLUDE_FILE);
            self.is_watched &= !is_link(&exclude) && !exclude.parent().is_some_and(is_link);
            self.excludes.push(RuleFile::new(exclude));
        }
    }

    /// Checks that changes of an entry are reported: a directory must be in the same file system, and a file must have no
    /// other name, which may be in a directory that is not watched.
    pub(super) fn find(&mut self, kind: EntryKind, stat: &FileStat) {
        self.is_watched &= match kind {
            EntryKind::Directory => stat.st_dev == self.identity.0,
            EntryKind::File => stat.st_nlink <= 1,
            EntryKind::Symlink | EntryKind::Other => true,
        };
    }
}

fn is_link(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink())
}

impl DirectoryIdentity {
    fn new(directory: &OwnedFd) -> Option<Self> {
        fstat(directory).ok().map(|stat| Self(stat.st_dev, stat.st_ino))
    }
}

impl RuleFile {
    fn new(path: PathBuf) -> Self {
        let state = RuleFileState::of(&path);
        Self(path, state)
    }

    fn is_unchanged(&self) -> bool {
        RuleFileState::of(&self.0) == self.1
    }
}

impl RuleFileState {
    fn of(path: &Path) -> Option<Self> {
        let metadata = fs::metadata(path).ok()?;
        if metadata.is_dir() {
            return Some(Self::Directory);
        }
        Some(Self::File {
            device: metadata.dev(),
            inode: metadata.ino(),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
            size: metadata.len(),
        })
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;
