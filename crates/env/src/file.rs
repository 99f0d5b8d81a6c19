//! Metadata and directory entries of an environment's files.

use std::{path::PathBuf, time::SystemTime};

use serde::{Deserialize, Serialize};

/// Maximum number of bytes that one read returns: 256 MiB.
pub const MAX_READ: u64 = 256 << 20;

/// Maximum number of entries that one listing or glob returns.
pub const MAX_ENTRIES: usize = 100_000;

/// Directory for copies of files that are written in place, if their own directory accepts no file.
pub const COPIES_DIRECTORY: &str = "/tmp";

/// Permission bits of these copies.
pub const COPIES_MODE: u32 = 0o600;

/// Prefix of the names of temporary files.
pub const TEMPORARY_PREFIX: &str = ".pintle-";

/// The write permissions of owner, group and others.
const WRITE_BITS: u32 = 0o222;

/// The write permission of the owner.
const OWNER_WRITE_BIT: u32 = 0o200;

/// Type of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A device, pipe or socket.
    Other,
}

/// Identity of one state of a file: it differs once anybody has written, replaced or touched the file, even with the same
/// content.
///
/// Where the clock of the file system counts whole seconds, two changes within a second may have the same identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FileIdentity {
    /// The inode. The device is left out: its number may differ after the next mount.
    pub inode: u64,
    /// The time of the last change of content, name, owner or mode, in nanoseconds since 1970.
    pub changed_ns: i64,
}

/// Metadata of a path, with symbolic links followed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metadata {
    /// The type of the file.
    pub kind: FileKind,
    /// The size in bytes; system-dependent for anything but a regular file.
    pub len: u64,
    /// The time of the last modification of the content, if known.
    pub modified: Option<SystemTime>,
    /// The permission bits (`0o7777`), if there are any.
    pub mode: Option<u32>,
    /// Whether the file belongs to the user of the environment, if that is known.
    pub is_owned: Option<bool>,
    /// The identity of this state of the file, if the environment has identities.
    pub identity: Option<FileIdentity>,
}

impl Metadata {
    /// Creates metadata without modification time, permission bits, owner and identity.
    #[must_use]
    pub fn new(kind: FileKind, len: u64) -> Self {
        Self { kind, len, modified: None, mode: None, is_owned: None, identity: None }
    }

    /// Sets the time of the last modification.
    #[must_use]
    pub fn with_modified(mut self, modified: Option<SystemTime>) -> Self {
        self.modified = modified;
        self
    }

    /// Sets the permission bits.
    #[must_use]
    pub fn with_mode(mut self, mode: u32) -> Self {
        self.mode = Some(mode);
        self
    }

    /// Sets whether the file belongs to the user of the environment.
    #[must_use]
    pub fn with_owned(mut self, is_owned: Option<bool>) -> Self {
        self.is_owned = is_owned;
        self
    }

    /// Sets the identity.
    #[must_use]
    pub fn with_identity(mut self, identity: Option<FileIdentity>) -> Self {
        self.identity = identity;
        self
    }

    /// Returns true for a regular file.
    #[must_use]
    pub fn is_file(&self) -> bool {
        self.kind == FileKind::File
    }

    /// Returns the permission bits of a read-only file: it has no write permission at all, or it belongs to the user and lacks
    /// the write permission of its owner.
    #[must_use]
    pub fn read_only_mode(&self) -> Option<u32> {
        let is_owned = self.is_owned == Some(true);
        self.mode.filter(|mode| self.is_file() && is_read_only(*mode, is_owned))
    }

    /// Returns true for a directory.
    #[must_use]
    pub fn is_dir(&self) -> bool {
        self.kind == FileKind::Directory
    }
}

/// Returns whether a file with these permission bits is read-only for its owner or another user, also for the superuser.
pub(crate) fn is_read_only(mode: u32, is_owned: bool) -> bool {
    mode & WRITE_BITS == 0 || is_owned && mode & OWNER_WRITE_BIT == 0
}

/// One entry of a directory (loop specification, section 4.1).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DirEntry {
    /// The path relative to the listed directory. It need not be UTF-8.
    pub name: PathBuf,
    /// True for a directory, false for a link to one.
    pub is_dir: bool,
    /// True for a symbolic link.
    pub is_symlink: bool,
    /// The size in bytes; regular files only.
    pub size: Option<u64>,
}

impl DirEntry {
    /// Creates the entry of a regular file.
    #[must_use]
    pub fn file(name: impl Into<PathBuf>, size: u64) -> Self {
        Self { name: name.into(), is_dir: false, is_symlink: false, size: Some(size) }
    }

    /// Creates the entry of a directory.
    #[must_use]
    pub fn directory(name: impl Into<PathBuf>) -> Self {
        Self { name: name.into(), is_dir: true, is_symlink: false, size: None }
    }

    /// Creates the entry of a symbolic link, whatever its target.
    #[must_use]
    pub fn symlink(name: impl Into<PathBuf>) -> Self {
        Self { name: name.into(), is_dir: false, is_symlink: true, size: None }
    }

    /// Creates the entry of a device, pipe or socket.
    #[must_use]
    pub fn other(name: impl Into<PathBuf>) -> Self {
        Self { name: name.into(), is_dir: false, is_symlink: false, size: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_decides_whether_a_file_is_read_only() {
        for (mode, for_owner, for_others) in [
            (0o444, true, true),
            (0o000, true, true),
            (0o555, true, true),
            (0o466, true, false),
            (0o060, true, false),
            (0o644, false, false),
            (0o200, false, false),
        ] {
            for (is_owned, expected) in
                [(Some(true), for_owner), (Some(false), for_others), (None, for_others)]
            {
                let file = Metadata::new(FileKind::File, 0).with_mode(mode).with_owned(is_owned);
                assert_eq!(file.read_only_mode(), expected.then_some(mode), "{mode:o} {is_owned:?}");
                let directory = Metadata { kind: FileKind::Directory, ..file };
                assert_eq!(directory.read_only_mode(), None, "{mode:o}");
            }
        }
    }
}
