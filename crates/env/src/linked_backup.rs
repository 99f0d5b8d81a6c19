//! A backup of files by hard links, on the same file system. Unix only; every function blocks.

mod update;

use std::collections::BTreeMap;
use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, open, openat};
use nix::sys::stat::{FileStat, Mode, SFlag, UtimensatFlags, fchmod, fstat, fstatat, mkdirat, utimensat};
use nix::sys::time::TimeSpec;
use nix::unistd::{UnlinkatFlags, linkat, unlinkat};

use self::update::BackupUpdate;

const DIRECTORY: OFlag =
    OFlag::O_RDONLY.union(OFlag::O_DIRECTORY).union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC);

/// Nanoseconds in which a directory may change again without another time.
const CLOCK_TICK_NS: i64 = 100_000_000;

/// Time of a directory of the backup that is compared with its source in any case.
const NEVER: TimeSpec = TimeSpec::new(0, 1);

/// Largest file that is copied, in bytes.
const MAX_COPY: i64 = 16 << 20;

/// Beginnings of the names of files that git has not completed.
const TEMPORARY: [&str; 4] = ["tmp_obj_", "tmp_pack_", "tmp_idx_", "tmp_rev_"];

/// Deepest directory that is linked.
const MAX_DEPTH: usize = 32;

/// Hard links to the files of some entries of a directory, from which removed files are restored.
///
/// The backup has the contents of files that are removed or replaced by a rename. A file that is changed in place changes in
/// the backup as well, unless its entry is [copied](Self::with_copied_entry). It is for files that their program never changes in
/// place, such as the objects of a git repository. Nothing is removed from a backup.
///
/// Links in the source are neither followed nor linked, whichever names a concurrent process exchanges.
#[derive(Clone, Debug)]
pub struct LinkedBackup {
    source: PathBuf,
    names: Vec<(&'static str, Method)>,
    directory: PathBuf,
    max_files: usize,
}

/// A side of a backup, to read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackupSide {
    /// The directory whose files are linked.
    Source,
    /// The directory with the links.
    Backup,
}

/// How the files of an entry are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    Linked,
    Copied,
}

/// Directory of a backup and the same directory of its source, which is `None` if it is missing or is no directory.
struct Pair {
    source: Option<OwnedFd>,
    backup: OwnedFd,
}

impl LinkedBackup {
    /// Describes the backup of the entries with these names in `source`, an absolute path without links, in `directory`: an
    /// existing directory on the same file system, which nothing else may change. At most `max_files` files are linked.
    #[must_use]
    pub fn new(
        source: impl Into<PathBuf>,
        names: impl IntoIterator<Item = &'static str>,
        directory: impl Into<PathBuf>,
        max_files: usize,
    ) -> Self {
        Self {
            source: source.into(),
            names: names.into_iter().map(|name| (name, Method::Linked)).collect(),
            directory: directory.into(),
            max_files,
        }
    }

    /// Adds an entry whose files are copied, since their program appends to them. Those above 16 MiB are linked.
    #[must_use]
    pub fn with_copied_entry(mut self, name: &'static str) -> Self {
        self.names.push((name, Method::Copied));
        self
    }

    /// Returns the directory whose entries are linked.
    #[must_use]
    pub fn source(&self) -> &Path {
        &self.source
    }

    /// Links new and replaced files. Directories that have not changed since the last update are not read.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::CrossesDevices`] for another file system, [`io::ErrorKind::QuotaExceeded`] for too many files,
    /// [`io::ErrorKind::NotFound`] without a source, and others of the file system. The backup is incomplete then.
    pub fn update(&self) -> io::Result<()> {
        self.walk(false).map(drop)
    }

    /// Links new and replaced files as [`update`](Self::update) does, in the same walk that compares the source with the
    /// backup. Returns whether the source has all files and directories of the backup.
    ///
    /// The walk ends at the first directory that lacks one. The backup of that directory and of those after it is unchanged,
    /// so [`missing`](Self::missing) finds the files.
    ///
    /// # Errors
    ///
    /// Those of [`update`](Self::update). Files may be missing then.
    pub fn update_if_complete(&self) -> io::Result<bool> {
        self.walk(true)
    }

    /// Returns the files of the backup that are missing in the source, by their paths below it. Directories of the source that
    /// have not changed since the last update are not read, so files that were missing then are not found again.
    ///
    /// # Errors
    ///
    /// Those of the file system.
    pub fn missing(&self) -> io::Result<Vec<PathBuf>> {
        let mut missing = Vec::new();
        add_missing(&self.open()?, Path::new(""), &mut missing)?;
        Ok(missing)
    }

    /// Returns the names of the entries of a directory, by its path; empty for one that is missing or is no directory.
    ///
    /// # Errors
    ///
    /// Those of the file system.
    pub fn names_in(&self, side: BackupSide, path: &Path) -> io::Result<Vec<OsString>> {
        let directory = self.directory_of(side, path)?;
        Ok(directory.as_ref().map(entries).transpose()?.unwrap_or_default().into_keys().collect())
    }

    /// Reads a file, by its path; `None` for one that is missing, is no regular file, or is larger than `limit` bytes.
    ///
    /// # Errors
    ///
    /// Those of the file system.
    pub fn read(&self, side: BackupSide, path: &Path, limit: u64) -> io::Result<Option<Vec<u8>>> {
        let parent = self.directory_of(side, path.parent().unwrap_or(Path::new("")))?;
        let Some((parent, name)) = parent.zip(path.file_name()) else { return Ok(None) };
        let Some(file) = open_regular(&parent, name)? else { return Ok(None) };
        let mut content = Vec::new();
        file.take(limit.saturating_add(1)).read_to_end(&mut content)?;
        Ok((content.len() as u64 <= limit).then_some(content))
    }

    /// Restores the files below an entry, or all for an empty path, that are in the backup and missing in the source,
    /// and returns their number. Existing files are unchanged, and a link in place of a file is replaced. The source is
    /// created if it is missing.
    ///
    /// # Errors
    ///
    /// Those of the file system, such as [`io::ErrorKind::NotADirectory`] for a file in place of a directory.
    pub fn restore(&self, below: &str) -> io::Result<usize> {
        let source = open_without_links(&self.source, true)?.ok_or(io::ErrorKind::NotADirectory)?;
        let backup = open(&self.directory, DIRECTORY, Mode::empty())?;
        let mut restored = 0;
        for (name, method) in self.names.iter().filter(|(name, _)| below.is_empty() || *name == below) {
            restored += restore_entry(&source, &backup, OsStr::new(name), *method)?;
        }
        Ok(restored)
    }

    /// Updates the backup. Returns whether the walk was completed.
    fn walk(&self, ends_at_missing: bool) -> io::Result<bool> {
        let pair = self.open()?;
        if pair.source.is_none() {
            return Err(io::ErrorKind::NotFound.into());
        }
        if ends_at_missing && pair.lacks_entry()? {
            return Ok(false);
        }
        let mut update = BackupUpdate { files_left: self.max_files, ends_at_missing };
        for (name, method) in &self.names {
            if !update.update_entry(&pair, OsStr::new(name), *method, MAX_DEPTH)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn open(&self) -> io::Result<Pair> {
        let source = open_without_links(&self.source, false)?;
        Ok(Pair { source, backup: open(&self.directory, DIRECTORY, Mode::empty())? })
    }

    fn directory_of(&self, side: BackupSide, path: &Path) -> io::Result<Option<OwnedFd>> {
        let mut directory = match side {
            BackupSide::Source => open_without_links(&self.source, false)?,
            BackupSide::Backup => opened(open(&self.directory, DIRECTORY, Mode::empty()))?,
        };
        for name in path {
            let Some(parent) = &directory else { break };
            directory = opened(openat(parent, name, DIRECTORY, Mode::empty()))?;
        }
        Ok(directory)
    }
}

impl Pair {
    /// Opens a directory of the backup and of the source.
    fn enter(&self, name: &OsStr) -> io::Result<Self> {
        let source = match &self.source {
            Some(source) => opened(openat(source, name, DIRECTORY, Mode::empty()))?,
            None => None,
        };
        Ok(Self { source, backup: openat(&self.backup, name, DIRECTORY, Mode::empty())? })
    }

    /// Returns whether a directory is an [unchanged leaf](is_unchanged_leaf).
    fn has_unchanged_leaf(&self, name: &OsStr) -> io::Result<bool> {
        let Some(source) = &self.source else { return Ok(false) };
        let states = state(source, name)?.zip(state(&self.backup, name)?);
        Ok(states.is_some_and(|(source, backup)| is_unchanged_leaf(&source, &backup)))
    }

    /// Returns whether the source lacks a file or directory of this directory of the backup.
    fn lacks_entry(&self) -> io::Result<bool> {
        for (name, is_kept_directory) in entries(&self.backup)? {
            let found = self.source.as_ref().map(|source| state(source, &name)).transpose()?.flatten();
            let is_same_kind: fn(&FileStat) -> bool =
                if is_kept_directory { is_directory } else { is_regular };
            if !found.is_some_and(|found| is_same_kind(&found)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns whether the source has not changed since the last update of the backup.
    fn is_unchanged(&self) -> io::Result<bool> {
        let Some(source) = &self.source else { return Ok(false) };
        Ok(changed_at(&fstat(source)?) == modified_at(&fstat(&self.backup)?))
    }
}

/// Opens a directory by its absolute path, of which no component may be a link. Creates missing ones on request;
/// otherwise `None` if one is missing or is something else.
fn open_without_links(path: &Path, creates: bool) -> io::Result<Option<OwnedFd>> {
    let mut directory = open("/", DIRECTORY, Mode::empty())?;
    for component in path.components() {
        let name = match component {
            Component::RootDir | Component::CurDir => continue,
            Component::Normal(name) => name,
            Component::ParentDir | Component::Prefix(_) => return Err(io::ErrorKind::InvalidInput.into()),
        };
        let mut next = opened(openat(&directory, name, DIRECTORY, Mode::empty()))?;
        if next.is_none() && creates && make_directory(&directory, name, Mode::from_bits_truncate(0o777))? {
            next = opened(openat(&directory, name, DIRECTORY, Mode::empty()))?;
        }
        match next {
            Some(next) => directory = next,
            None => return Ok(None),
        }
    }
    Ok(Some(directory))
}

/// Returns an opened directory; `None` if it is missing, or something else is there.
fn opened(result: nix::Result<OwnedFd>) -> io::Result<Option<OwnedFd>> {
    match result {
        Ok(directory) => Ok(Some(directory)),
        Err(Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

fn set_time(directory: &OwnedFd, name: &OsStr, time: TimeSpec) -> io::Result<()> {
    Ok(utimensat(directory, name, &time, &time, UtimensatFlags::NoFollowSymlink)?)
}

fn add_missing(pair: &Pair, path: &Path, missing: &mut Vec<PathBuf>) -> io::Result<()> {
    let is_unchanged = pair.is_unchanged()?;
    for (name, is_directory) in entries(&pair.backup)? {
        let path = path.join(&name);
        if is_directory {
            if !pair.has_unchanged_leaf(&name)? {
                add_missing(&pair.enter(&name)?, &path, missing)?;
            }
        } else if !is_unchanged && !has_regular(pair.source.as_ref(), &name)? {
            missing.push(path);
        }
    }
    Ok(())
}

fn has_regular(directory: Option<&OwnedFd>, name: &OsStr) -> io::Result<bool> {
    let found = directory.map(|directory| state(directory, name)).transpose()?.flatten();
    Ok(found.is_some_and(|found| is_regular(&found)))
}

fn restore_entry(source: &OwnedFd, backup: &OwnedFd, name: &OsStr, method: Method) -> io::Result<usize> {
    let Some(kept) = state(backup, name)? else { return Ok(0) };
    let mut found = state(source, name)?;
    if found.is_some_and(|found| kind(&found) == SFlag::S_IFLNK) {
        unlinkat(source, name, UnlinkatFlags::NoRemoveDir)?;
        found = None;
    }
    if !is_directory(&kept) {
        if found.is_some() {
            return Ok(0);
        }
        let is_restored = match method {
            Method::Copied if kept.st_size <= MAX_COPY => copy(backup, source, name, &kept)?,
            Method::Copied | Method::Linked => link(backup, source, name)?,
        };
        return Ok(is_restored.into());
    }
    make_directory(source, name, Mode::from_bits_truncate(kept.st_mode & 0o777))?;
    let below = opened(openat(source, name, DIRECTORY, Mode::empty()))?.ok_or_else(|| {
        io::Error::new(io::ErrorKind::NotADirectory, format!("{} is no directory", name.display()))
    })?;
    let kept = openat(backup, name, DIRECTORY, Mode::empty())?;
    let mut restored = 0;
    for name in entries(&kept)?.into_keys() {
        restored += restore_entry(&below, &kept, &name, method)?;
    }
    Ok(restored)
}

/// Opens a regular file for reading; `None` if it is missing or is something else.
fn open_regular(directory: &OwnedFd, name: &OsStr) -> io::Result<Option<File>> {
    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let file = match openat(directory, name, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(Errno::ENOENT | Errno::ELOOP | Errno::ENXIO) => return Ok(None),
        Err(errno) => return Err(errno.into()),
    };
    Ok(file.metadata()?.is_file().then_some(file))
}

/// Copies a file with its mode and time. Returns whether it did: the file may be gone or replaced by then, and another process
/// may have created it.
fn copy(from: &OwnedFd, to: &OwnedFd, name: &OsStr, stat: &FileStat) -> io::Result<bool> {
    let Some(original) = open_regular(from, name)? else { return Ok(false) };
    let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let mut copied = match openat(to, name, flags, Mode::S_IRUSR | Mode::S_IWUSR) {
        Ok(copied) => File::from(copied),
        Err(Errno::EEXIST) => return Ok(false),
        Err(errno) => return Err(errno.into()),
    };
    io::copy(&mut original.take(MAX_COPY.unsigned_abs()), &mut copied)?;
    fchmod(&copied, Mode::from_bits_truncate(stat.st_mode & 0o7777))?;
    set_time(to, name, modified_at(stat))?;
    Ok(true)
}

/// Links a file. Returns whether it did, as [`copy`] does.
fn link(from: &OwnedFd, to: &OwnedFd, name: &OsStr) -> io::Result<bool> {
    match linkat(from, name, to, name, AtFlags::empty()) {
        Ok(()) => {}
        Err(Errno::ENOENT | Errno::EEXIST) => return Ok(false),
        Err(errno) => return Err(errno.into()),
    }
    match state(to, name)? {
        Some(stat) if is_regular(&stat) => Ok(true),
        Some(_) => {
            unlinkat(to, name, UnlinkatFlags::NoRemoveDir)?;
            Ok(false)
        }
        None => Ok(false),
    }
}

/// Returns whether the directory was created.
fn make_directory(parent: &OwnedFd, name: &OsStr, mode: Mode) -> io::Result<bool> {
    match mkdirat(parent, name, mode) {
        Ok(()) => Ok(true),
        Err(Errno::EEXIST) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

fn state(directory: &OwnedFd, name: &OsStr) -> io::Result<Option<FileStat>> {
    #[cfg(test)]
    tests::count_call();
    match fstatat(directory, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::ENOENT) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

fn kind(stat: &FileStat) -> SFlag {
    SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT
}

/// Returns the time at which the entries, mode or owner last changed.
fn changed_at(stat: &FileStat) -> TimeSpec {
    TimeSpec::new(stat.st_ctime, stat.st_ctime_nsec)
}

fn modified_at(stat: &FileStat) -> TimeSpec {
    TimeSpec::new(stat.st_mtime, stat.st_mtime_nsec)
}

fn is_directory(stat: &FileStat) -> bool {
    kind(stat) == SFlag::S_IFDIR
}

/// Returns whether a directory has no subdirectories and has not changed since the last update of the backup. Most directories
/// of a git repository are such leaves, and need not be opened. On file systems with a constant link count, no directory counts
/// as a leaf.
fn is_unchanged_leaf(source: &FileStat, backup: &FileStat) -> bool {
    let is_leaf = is_directory(source) && is_directory(backup) && backup.st_nlink == 2;
    is_leaf && changed_at(source) == modified_at(backup)
}

fn is_regular(stat: &FileStat) -> bool {
    kind(stat) == SFlag::S_IFREG
}

fn is_same(one: &FileStat, other: &FileStat, method: Method) -> bool {
    let identity = |stat: &FileStat| (stat.st_dev, stat.st_ino);
    let state = |stat: &FileStat| (stat.st_size, modified_at(stat));
    identity(one) == identity(other) || method == Method::Copied && state(one) == state(other)
}

/// Returns whether a file is one that git renames or removes when it is complete.
fn is_temporary(name: &OsStr) -> bool {
    let name = name.as_bytes();
    name.ends_with(b".lock") || TEMPORARY.iter().any(|start| name.starts_with(start.as_bytes()))
}

#[expect(clippy::disallowed_methods, reason = "the clock of the file system is compared")]
fn is_recent(time: TimeSpec) -> bool {
    let Ok(now) = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH) else { return true };
    let changed = time.tv_sec().saturating_mul(1_000_000_000).saturating_add(time.tv_nsec());
    i64::try_from(now.as_nanos()).unwrap_or(i64::MAX).saturating_sub(changed) < CLOCK_TICK_NS
}

/// Returns the names in a directory, each with whether it is a directory.
fn entries(directory: &OwnedFd) -> io::Result<BTreeMap<OsString, bool>> {
    #[cfg(test)]
    tests::count_call();
    let reopened = openat(directory, ".", DIRECTORY, Mode::empty())?;
    let mut opened = Dir::from_fd(reopened)?;
    let mut found = BTreeMap::new();
    for entry in opened.iter() {
        let entry = entry?;
        let name: CString = entry.file_name().to_owned();
        if matches!(name.as_bytes(), b"." | b"..") {
            continue;
        }
        let name = OsStr::from_bytes(name.as_bytes()).to_os_string();
        let is_directory = match entry.file_type() {
            Some(known) => known == nix::dir::Type::Directory,
            None => state(directory, &name)?.is_some_and(|stat| self::is_directory(&stat)),
        };
        found.insert(name, is_directory);
    }
    Ok(found)
}

#[cfg(test)]
mod tests;
