//! Notifications of the kernel about changes of directories.

use std::os::fd::OwnedFd;

#[cfg(target_os = "linux")]
use std::sync::atomic::{AtomicUsize, Ordering};

#[cfg(target_os = "linux")]
use nix::{
    errno::Errno,
    sys::{
        inotify::{AddWatchFlags, InitFlags, Inotify},
        statfs::{self, FsType, fstatfs},
    },
};

#[cfg(target_os = "linux")]
use crate::host_files::beneath::proc_path;

/// Maximum number of watchers of this process. Linux allows 128 per user by default, which other programs need as well.
#[cfg(target_os = "linux")]
const MAX_WATCHERS: usize = 32;

/// Maximum number of reads to discard pending events: more than the default queue of the kernel needs.
#[cfg(target_os = "linux")]
const MAX_READS: usize = 2048;

/// Changes of a directory and of its entries. Files that were open for writing are reported when they are closed, since
/// writes through a memory map are not.
#[cfg(target_os = "linux")]
const CHANGES: AddWatchFlags = AddWatchFlags::IN_MODIFY
    .union(AddWatchFlags::IN_ATTRIB)
    .union(AddWatchFlags::IN_CLOSE_WRITE)
    .union(AddWatchFlags::IN_CREATE)
    .union(AddWatchFlags::IN_DELETE)
    .union(AddWatchFlags::IN_MOVE)
    .union(AddWatchFlags::IN_DELETE_SELF)
    .union(AddWatchFlags::IN_MOVE_SELF)
    .union(AddWatchFlags::IN_ONLYDIR);

/// File systems that only this kernel changes. nix does not define XFS for all C libraries.
#[cfg(target_os = "linux")]
const LOCAL_FILE_SYSTEMS: [FsType; 5] = [
    statfs::EXT4_SUPER_MAGIC,
    statfs::BTRFS_SUPER_MAGIC,
    statfs::F2FS_SUPER_MAGIC,
    statfs::TMPFS_MAGIC,
    FsType(0x5846_5342),
];

/// Number of watchers of this process.
#[cfg(target_os = "linux")]
static WATCHERS: AtomicUsize = AtomicUsize::new(0);

/// Watches directories for changes.
#[cfg(target_os = "linux")]
#[derive(Debug)]
pub(super) struct ChangeWatcher(Inotify);

#[cfg(target_os = "linux")]
impl ChangeWatcher {
    /// Creates a watcher without directories; `None` if there are too many.
    pub(super) fn new() -> Option<Self> {
        let one_more = |count: usize| (count < MAX_WATCHERS).then_some(count + 1);
        WATCHERS.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).ok()?;
        match Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK) {
            Ok(inotify) => Some(Self(inotify)),
            Err(errno) => {
                WATCHERS.fetch_sub(1, Ordering::Relaxed);
                tracing::debug!(%errno, "changes of files are not watched");
                None
            }
        }
    }

    /// Returns whether the kernel reports all changes of the file system of a directory.
    pub(super) fn is_available(directory: &OwnedFd) -> bool {
        fstatfs(directory).is_ok_and(|system| LOCAL_FILE_SYSTEMS.contains(&system.filesystem_type()))
    }

    /// Adds an open directory. Returns false if it cannot be watched.
    pub(super) fn add(&self, directory: &OwnedFd) -> bool {
        self.0.add_watch(proc_path(directory).as_path(), CHANGES).is_ok()
    }

    /// Returns whether nothing was reported since the last [`discard`](Self::discard). May discard reported changes.
    pub(super) fn is_unchanged(&self) -> bool {
        matches!(self.0.read_events(), Err(Errno::EAGAIN))
    }

    /// Discards the changes that were reported so far. Any that remain only cost a walk.
    pub(super) fn discard(&self) {
        for _ in 0..MAX_READS {
            if self.0.read_events().is_err() {
                return;
            }
        }
    }
}

#[cfg(target_os = "linux")]
impl Drop for ChangeWatcher {
    fn drop(&mut self) {
        WATCHERS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Watches directories for changes: impossible on this system.
#[cfg(not(target_os = "linux"))]
#[derive(Debug)]
pub(super) enum ChangeWatcher {}

#[cfg(not(target_os = "linux"))]
impl ChangeWatcher {
    pub(super) fn new() -> Option<Self> {
        None
    }

    pub(super) fn is_available(_directory: &OwnedFd) -> bool {
        false
    }

    pub(super) fn add(&self, _directory: &OwnedFd) -> bool {
        match *self {}
    }

    pub(super) fn is_unchanged(&self) -> bool {
        match *self {}
    }

    pub(super) fn discard(&self) {
        match *self {}
    }
}
