//! What an environment tells about files.

use std::{path::PathBuf, time::SystemTime};

/// What stands at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A device, pipe or socket.
    Other,
}

/// Facts about a path, with symbolic links followed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metadata {
    /// What stands there.
    pub kind: FileKind,
    /// The size in bytes; for anything but a file whatever the system says.
    pub len: u64,
    /// When the content changed last, where that is known.
    pub modified: Option<SystemTime>,
    /// The permission bits (`0o7777`), where there are some.
    pub mode: Option<u32>,
}

impl Metadata {
    /// Facts without a time and without permission bits.
    #[must_use]
    pub fn new(kind: FileKind, len: u64) -> Self {
        Self { kind, len, modified: None, mode: None }
    }

    /// Sets when the content changed last.
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

    /// Whether a regular file stands there.
    #[must_use]
    pub fn is_file(&self) -> bool {
        self.kind == FileKind::File
    }

    /// Whether a directory stands there.
    #[must_use]
    pub fn is_dir(&self) -> bool {
        self.kind == FileKind::Directory
    }
}

/// One entry of a directory (loop specification, section 4.1).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DirEntry {
    /// The path relative to the directory that was listed. It need not be UTF-8.
    pub name: PathBuf,
    /// Whether it is a directory; a link to a directory is not.
    pub is_dir: bool,
    /// Whether it is a symbolic link.
    pub is_symlink: bool,
    /// The size in bytes, for regular files only.
    pub size: Option<u64>,
}

impl DirEntry {
    /// A regular file of `size` bytes.
    #[must_use]
    pub fn file(name: impl Into<PathBuf>, size: u64) -> Self {
        Self { name: name.into(), is_dir: false, is_symlink: false, size: Some(size) }
    }

    /// A directory.
    #[must_use]
    pub fn directory(name: impl Into<PathBuf>) -> Self {
        Self { name: name.into(), is_dir: true, is_symlink: false, size: None }
    }

    /// A symbolic link, whatever it points to.
    #[must_use]
    pub fn symlink(name: impl Into<PathBuf>) -> Self {
        Self { name: name.into(), is_dir: false, is_symlink: true, size: None }
    }

    /// A device, pipe or socket.
    #[must_use]
    pub fn other(name: impl Into<PathBuf>) -> Self {
        Self { name: name.into(), is_dir: false, is_symlink: false, size: None }
    }
}
