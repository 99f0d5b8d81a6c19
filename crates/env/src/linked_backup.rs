//! A backup of files by hard links, on the same file system. Unix only; every function blocks.

use std::collections::BTreeMap;
use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, open, openat};
use nix::sys::stat::{FileStat, Mode, SFlag, UtimensatFlags, fstat, fstatat, mkdirat, utimensat};
use nix::sys::time::TimeSpec;
use nix::unistd::{UnlinkatFlags, linkat, unlinkat};

const DIRECTORY: OFlag =
    OFlag::O_RDONLY.union(OFlag::O_DIRECTORY).union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC);

/// Nanoseconds in which a directory may change again without another time.
const CLOCK_TICK_NS: i64 = 100_000_000;

/// Time of a directory of the backup that is compared with its source in any case.
const NEVER: TimeSpec = TimeSpec::new(0, 0);

/// Largest file that is copied, in bytes.
const MAX_COPY: i64 = 16 << 20;

/// Deepest directory that is linked.
const MAX_DEPTH: usize = 32;

/// Hard links to the files of some entries of a directory, from which removed files are restored.
///
/// The backup has the contents of files that are removed or replaced by a rename. A file that is changed in place changes in
/// the backup as well, unless its entry is [copied](Self::copying). It is for files that their program never changes in
/// place, such as those of a git repository.
///
/// Links in the source are neither followed nor linked, whichever names a concurrent process exchanges.
#[derive(Clone, Debug)]
pub struct LinkedBackup {
    source: PathBuf,
    names: Vec<(&'static str, Method)>,
    directory: PathBuf,
    max_entries: usize,
}

/// How the files of an entry are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    Linked,
    Copied,
}

/// Directory of a source and of its backup.
struct Pair {
    source: OwnedFd,
    backup: OwnedFd,
}

impl LinkedBackup {
    /// Creates the backup of the entries with these names in `source`, in `directory`: an existing directory on the same file
    /// system, which nothing else may change. At most `max_entries` files are linked.
    #[must_use]
    pub fn new(
        source: impl Into<PathBuf>,
        names: impl IntoIterator<Item = &'static str>,
        directory: impl Into<PathBuf>,
        max_entries: usize,
    ) -> Self {
        Self {
            source: source.into(),
            names: names.into_iter().map(|name| (name, Method::Linked)).collect(),
            directory: directory.into(),
            max_entries,
        }
    }

    /// Adds an entry whose files are copied, since their program appends to them. Those above 16 MiB are linked.
    #[must_use]
    pub fn copying(mut self, name: &'static str) -> Self {
        self.names.push((name, Method::Copied));
        self
    }

    /// Returns the directory whose entries are linked.
    #[must_use]
    pub fn source(&self) -> &Path {
        &self.source
    }

    /// Makes the backup equal to the source: links new and replaced files, and removes the links to files that are gone.
    /// Directories that have not changed since the last update are not read.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::CrossesDevices`] for another file system, [`io::ErrorKind::QuotaExceeded`] for too many files, and
    /// others of the file system. The backup is incomplete then.
    pub fn update(&self) -> io::Result<()> {
        let pair = self.open()?;
        let mut left = self.max_entries;
        for (name, method) in &self.names {
            update_entry(&pair, OsStr::new(name), *method, &mut left, MAX_DEPTH)?;
        }
        Ok(())
    }

    /// Returns the names of the entries of a directory of the backup, and of the same directory of the source, by their path
    /// below the source; empty for one that is missing or is no directory.
    ///
    /// # Errors
    ///
    /// Those of the file system.
    pub fn names_in(&self, path: &str) -> io::Result<(Vec<OsString>, Vec<OsString>)> {
        let list = |root: &Path| -> io::Result<Vec<OsString>> {
            let mut directory = opened(open(root, DIRECTORY, Mode::empty()))?;
            for name in path.split('/').filter(|name| !name.is_empty()) {
                let Some(parent) = &directory else { break };
                directory = opened(openat(parent, name, DIRECTORY, Mode::empty()))?;
            }
            let found = directory.as_ref().map(entries).transpose()?;
            Ok(found.unwrap_or_default().into_keys().collect())
        };
        Ok((list(&self.directory)?, list(&self.source)?))
    }

    /// Links all files back that are in the backup and missing in the source, and returns their number. Files that are there
    /// stay as they are. The source is created if it is missing.
    ///
    /// # Errors
    ///
    /// Those of the file system, such as [`io::ErrorKind::NotADirectory`] for a file in place of a directory.
    pub fn restore(&self) -> io::Result<usize> {
        match std::fs::create_dir(&self.source) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
        restore_directory(&self.open()?)
    }

    fn open(&self) -> io::Result<Pair> {
        let source = open(&self.source, DIRECTORY, Mode::empty())?;
        let backup = open(&self.directory, DIRECTORY, Mode::empty())?;
        Ok(Pair { source, backup })
    }
}

impl Pair {
    /// Opens a directory in both. `None` if it is gone, or has been replaced by something else.
    fn enter(&self, name: &OsStr) -> io::Result<Option<Self>> {
        let source = opened(openat(&self.source, name, DIRECTORY, Mode::empty()))?;
        let backup = opened(openat(&self.backup, name, DIRECTORY, Mode::empty()))?;
        Ok(source.zip(backup).map(|(source, backup)| Self { source, backup }))
    }
}

/// Returns an opened directory; `None` if it is missing, or something else is there.
fn opened(result: nix::Result<OwnedFd>) -> io::Result<Option<OwnedFd>> {
    match result {
        Ok(directory) => Ok(Some(directory)),
        Err(Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

fn update_entry(pair: &Pair, name: &OsStr, method: Method, left: &mut usize, depth: usize) -> io::Result<()> {
    let found = state(&pair.source, name)?;
    let known = state(&pair.backup, name)?;
    match found.map(|stat| kind(&stat)) {
        Some(SFlag::S_IFDIR) if depth > 0 => {
            if known.is_some_and(|stat| kind(&stat) != SFlag::S_IFDIR) {
                remove(&pair.backup, name)?;
            }
            if make_directory(&pair.backup, name, Mode::S_IRWXU)? {
                // The time of its creation may be that of the source.
                set_time(&pair.backup, name, NEVER)?;
            }
            match pair.enter(name)? {
                Some(below) => update_directory(&below, method, left, depth - 1),
                None => Ok(()),
            }
        }
        Some(SFlag::S_IFREG) => {
            *left = left.checked_sub(1).ok_or(io::ErrorKind::QuotaExceeded)?;
            if found.zip(known).is_some_and(|(found, known)| is_same(&found, &known, method)) {
                return Ok(());
            }
            remove(&pair.backup, name)?;
            match found {
                Some(stat) if method == Method::Copied && stat.st_size <= MAX_COPY => copy(pair, name, &stat),
                _ => link(&pair.source, &pair.backup, name),
            }
        }
        _ => remove(&pair.backup, name),
    }
}

/// Updates the backup of a directory. One with the time of its backup has the same entries.
fn update_directory(pair: &Pair, method: Method, left: &mut usize, depth: usize) -> io::Result<()> {
    let (source, backup) = (fstat(&pair.source)?, fstat(&pair.backup)?);
    let is_unchanged = (source.st_mtime, source.st_mtime_nsec) == (backup.st_mtime, backup.st_mtime_nsec);
    let known = entries(&pair.backup)?;
    if is_unchanged {
        for (name, is_directory) in known {
            if is_directory || method == Method::Copied {
                update_entry(pair, &name, method, left, depth)?;
            } else {
                *left = left.checked_sub(1).ok_or(io::ErrorKind::QuotaExceeded)?;
            }
        }
        return Ok(());
    }
    let found = entries(&pair.source)?;
    for name in known.keys().filter(|name| !found.contains_key(*name)) {
        remove(&pair.backup, name)?;
    }
    for name in found.keys().filter(|name| !is_temporary(name)) {
        update_entry(pair, name, method, left, depth)?;
    }
    // Another change within the same tick of the clock would not change the time.
    let time = if is_recent(&source) { NEVER } else { TimeSpec::new(source.st_mtime, source.st_mtime_nsec) };
    set_time(&pair.backup, OsStr::new("."), time)
}

fn set_time(directory: &OwnedFd, name: &OsStr, time: TimeSpec) -> io::Result<()> {
    Ok(utimensat(directory, name, &time, &time, UtimensatFlags::NoFollowSymlink)?)
}

fn restore_directory(pair: &Pair) -> io::Result<usize> {
    let mut restored = 0;
    for (name, is_directory) in entries(&pair.backup)? {
        if !is_directory {
            if state(&pair.source, &name)?.is_none() {
                link(&pair.backup, &pair.source, &name)?;
                restored += 1;
            }
            continue;
        }
        make_directory(&pair.source, &name, Mode::S_IRWXU | Mode::S_IRWXG | Mode::S_IRWXO)?;
        let below = pair.enter(&name)?.ok_or_else(|| {
            io::Error::new(io::ErrorKind::NotADirectory, format!("{} is no directory", name.display()))
        })?;
        restored += restore_directory(&below)?;
    }
    Ok(restored)
}

/// Copies a file with its time, unless it is gone or is no regular file by then.
fn copy(pair: &Pair, name: &OsStr, stat: &FileStat) -> io::Result<()> {
    let reading = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let source = match openat(&pair.source, name, reading, Mode::empty()) {
        Ok(source) => File::from(source),
        Err(Errno::ENOENT | Errno::ELOOP) => return Ok(()),
        Err(errno) => return Err(errno.into()),
    };
    if !source.metadata()?.is_file() {
        return Ok(());
    }
    let writing = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_CLOEXEC;
    let mode = Mode::from_bits_truncate(stat.st_mode & 0o777);
    let mut backup = File::from(openat(&pair.backup, name, writing, mode)?);
    io::copy(&mut source.take(MAX_COPY.unsigned_abs()), &mut backup)?;
    set_time(&pair.backup, name, TimeSpec::new(stat.st_mtime, stat.st_mtime_nsec))
}

/// Links a file, unless it is gone or is no regular file by then.
fn link(from: &OwnedFd, to: &OwnedFd, name: &OsStr) -> io::Result<()> {
    match linkat(from, name, to, name, AtFlags::empty()) {
        Ok(()) => {}
        Err(Errno::ENOENT) => return Ok(()),
        Err(errno) => return Err(errno.into()),
    }
    match state(to, name)? {
        Some(stat) if kind(&stat) == SFlag::S_IFREG => Ok(()),
        _ => remove(to, name),
    }
}

/// Removes an entry with everything below it.
fn remove(directory: &OwnedFd, name: &OsStr) -> io::Result<()> {
    match unlinkat(directory, name, UnlinkatFlags::NoRemoveDir) {
        Ok(()) | Err(Errno::ENOENT) => return Ok(()),
        Err(Errno::EISDIR | Errno::EPERM) => {}
        Err(errno) => return Err(errno.into()),
    }
    let below = openat(directory, name, DIRECTORY, Mode::empty())?;
    for name in entries(&below)?.into_keys() {
        remove(&below, &name)?;
    }
    Ok(unlinkat(directory, name, UnlinkatFlags::RemoveDir)?)
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
    match fstatat(directory, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::ENOENT) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

fn kind(stat: &FileStat) -> SFlag {
    SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT
}

fn is_same(one: &FileStat, other: &FileStat, method: Method) -> bool {
    let identity = |stat: &FileStat| (stat.st_dev, stat.st_ino);
    let state = |stat: &FileStat| (stat.st_size, stat.st_mtime, stat.st_mtime_nsec);
    identity(one) == identity(other) || method == Method::Copied && state(one) == state(other)
}

/// Returns whether a file is one that git renames or removes when it is complete.
fn is_temporary(name: &OsStr) -> bool {
    let name = name.as_bytes();
    name.ends_with(b".lock") || name.starts_with(b"tmp_")
}

fn is_recent(stat: &FileStat) -> bool {
    let Ok(now) = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH) else { return true };
    let changed = stat.st_mtime.saturating_mul(1_000_000_000).saturating_add(stat.st_mtime_nsec);
    i64::try_from(now.as_nanos()).unwrap_or(i64::MAX).saturating_sub(changed) < CLOCK_TICK_NS
}

/// Returns the names in a directory, each with whether it is a directory.
fn entries(directory: &OwnedFd) -> io::Result<BTreeMap<OsString, bool>> {
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
            None => state(directory, &name)?.is_some_and(|stat| kind(&stat) == SFlag::S_IFDIR),
        };
        found.insert(name, is_directory);
    }
    Ok(found)
}

#[cfg(test)]
mod tests;
