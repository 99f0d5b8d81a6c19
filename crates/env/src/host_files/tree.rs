//! Walk of a directory tree by descriptors: no link can lead it elsewhere. Every function blocks.

use std::{
    error::Error as _,
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, Read as _},
    os::{
        fd::OwnedFd,
        unix::{ffi::OsStrExt, fs::OpenOptionsExt as _},
    },
    path::{Path, PathBuf},
    sync::Arc,
    time::{Instant, SystemTime},
};

use nix::{
    dir::Dir,
    errno::Errno,
    fcntl::{AtFlags, OFlag, open, openat, readlinkat},
    sys::stat::{FileStat, Mode, SFlag, fstatat},
};

use crate::{
    blocking::CancelFlag,
    environment::walk::content_of_error,
    error::EnvError,
    file::FileIdentity,
    host_files::{
        self,
        walk_cache::{CachedWalk, WalkRecorder},
    },
    search::ignore_rules::{
        EXCLUDE_FILE, GITIGNORE_FILE, IGNORE_FILE, IgnoreFiles, IgnoreRules, REPOSITORY,
        governing_directories,
    },
    walk::{EntryKind, FileContent, ReadLimits, WalkEntry, WalkLimit, WalkOutput, WalkRequest},
};

const DIRECTORY: OFlag = OFlag::O_RDONLY.union(OFlag::O_DIRECTORY).union(OFlag::O_CLOEXEC);

/// Maximum depth of a walk: one descriptor is open per level. Deeper directories count as unreadable.
const MAX_DEPTH: usize = 128;

/// Reads an ignore file by its absolute path; one that cannot be read is empty.
pub(crate) type ReadRules<'a> = &'a dyn Fn(&Path) -> Vec<u8>;

/// Opens the root of a walk, following links.
pub(crate) fn open_root(root: &Path) -> Result<OwnedFd, EnvError> {
    open(root, DIRECTORY, Mode::empty()).map_err(|errno| EnvError::from_io("list", root, errno.into()))
}

/// Opens a directory for reading that is open as a location only.
#[cfg(target_os = "linux")]
pub(crate) fn reopen(directory: &OwnedFd, root: &Path) -> Result<OwnedFd, EnvError> {
    openat(directory, ".", DIRECTORY, Mode::empty())
        .map_err(|errno| EnvError::from_io("list", root, errno.into()))
}

/// Returns the rules in effect in the parent of `root`.
pub(crate) fn rules_above(root: &Path, working_directory: &Path) -> Option<Arc<IgnoreRules>> {
    let read = |path: &Path| host_files::read(path, None).unwrap_or_default();
    let exists = |path: &Path| std::fs::exists(path).unwrap_or(false);
    let repository = root.ancestors().find(|directory| exists(&directory.join(REPOSITORY)));
    let mut rules = None;
    for directory in governing_directories(root, working_directory, repository) {
        if directory != root {
            let is_there = |name: &str| exists(&directory.join(name));
            rules = Some(rules_of(&directory, rules.as_ref(), &is_there, &read));
        }
    }
    rules
}

/// Walks the tree below an open directory, whose absolute path is `root`, unless the latest walk in `cached` is current.
pub(crate) fn walk(
    directory: OwnedFd,
    root: &Path,
    request: &WalkRequest,
    above: Option<&Arc<IgnoreRules>>,
    read_rules: ReadRules<'_>,
    cancelled: &CancelFlag,
    mut cached: Option<&mut CachedWalk<'_>>,
) -> Result<WalkOutput, EnvError> {
    if let Some(output) = cached.as_ref().and_then(|cached| cached.recall(&directory, root, request)) {
        return Ok(output);
    }
    let recorder = cached.as_mut().and_then(|cached| cached.record(&directory));
    let mut output = WalkOutput { started_ns: now_ns(), ..WalkOutput::default() };
    let deadline = request.time_limit.and_then(|limit| Instant::now().checked_add(limit));
    let mut walker = Walker { request, deadline, read_rules, cancelled, recorder, output: &mut output };
    walker.enter(directory, Path::new(""), root, above, 0)?;
    let Walker { recorder, .. } = walker;
    output.sort_and_limit(request.max_entries);
    // A cancelled walk ends without a limit.
    if let (Some(cached), Some(recorder), false) = (cached, recorder, cancelled.get()) {
        cached.keep(recorder, root, &output);
    }
    Ok(output)
}

fn now_ns() -> Option<i64> {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok()?;
    i64::try_from(since.as_nanos()).ok()
}

struct Walker<'a> {
    request: &'a WalkRequest,
    deadline: Option<Instant>,
    read_rules: ReadRules<'a>,
    cancelled: &'a CancelFlag,
    /// Watches the directories that are entered.
    recorder: Option<WalkRecorder>,
    output: &'a mut WalkOutput,
}

impl Walker<'_> {
    /// Adds the entries below an open directory.
    fn enter(
        &mut self,
        directory: OwnedFd,
        relative: &Path,
        absolute: &Path,
        above: Option<&Arc<IgnoreRules>>,
        depth: usize,
    ) -> Result<(), EnvError> {
        if let Some(recorder) = &mut self.recorder {
            recorder.enter(&directory);
        }
        let (directory, names) = match Dir::from_fd(directory).and_then(names) {
            Ok(listed) => listed,
            Err(errno) => return self.unreadable(relative, absolute, errno),
        };
        let has =
            |name: &str| names.binary_search_by(|found| found.as_os_str().cmp(OsStr::new(name))).is_ok();
        if let Some(recorder) = &mut self.recorder {
            recorder.read_rules(absolute, &has);
        }
        let rules = rules_of(absolute, above, &has, self.read_rules);
        for name in names {
            if self.is_over() {
                return Ok(());
            }
            if name == REPOSITORY {
                continue;
            }
            let path = absolute.join(&name);
            let stat = match fstatat(&directory, name.as_os_str(), AtFlags::AT_SYMLINK_NOFOLLOW) {
                Ok(stat) => stat,
                // It was removed since it was listed.
                Err(Errno::ENOENT) => continue,
                // Without the permission to enter the directory, its entries have names only.
                Err(errno) => return self.unreadable(relative, absolute, errno),
            };
            let kind = kind_of(&stat);
            let is_ignored = rules.excludes(&path, kind == EntryKind::Directory);
            let found = if is_ignored { self.output.ignored.len() } else { self.output.entries.len() };
            if found >= self.request.max_entries {
                self.output.reached = Some(WalkLimit::Entries);
                return Ok(());
            }
            if is_ignored {
                self.output.ignored.push(relative.join(&name));
                continue;
            }
            let mut entry = entry_of(relative.join(&name), kind, &stat);
            if kind == EntryKind::Symlink {
                entry.target = readlinkat(&directory, name.as_os_str()).ok().map(PathBuf::from);
            }
            if let Some(recorder) = &mut self.recorder {
                recorder.find(kind, &stat);
            }
            let below = entry.path.clone();
            self.output.entries.push(entry);
            if kind != EntryKind::Directory {
                continue;
            }
            if depth >= MAX_DEPTH {
                self.output.unreadable.push(below);
                continue;
            }
            match openat(&directory, name.as_os_str(), DIRECTORY | OFlag::O_NOFOLLOW, Mode::empty()) {
                Ok(opened) => self.enter(opened, &below, &path, Some(&rules), depth + 1)?,
                // It was removed or replaced since it was listed.
                Err(Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP) => {}
                Err(errno) => self.unreadable(&below, &path, errno)?,
            }
        }
        Ok(())
    }

    /// Records a directory that cannot be read. Missing descriptors are an error: waiting helps against them.
    fn unreadable(&mut self, relative: &Path, absolute: &Path, errno: Errno) -> Result<(), EnvError> {
        if matches!(errno, Errno::EMFILE | Errno::ENFILE) {
            return Err(EnvError::from_io("list", absolute, errno.into()));
        }
        tracing::debug!(%errno, directory = %absolute.display(), "not walked");
        self.output.unreadable.push(relative.to_path_buf());
        Ok(())
    }

    fn is_over(&mut self) -> bool {
        let is_late = self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        if is_late && self.output.reached.is_none() {
            self.output.reached = Some(WalkLimit::Time);
        }
        self.output.reached.is_some() || self.cancelled.get()
    }
}

/// Returns the names in a directory, sorted by their bytes.
fn names(mut directory: Dir) -> nix::Result<(Dir, Vec<OsString>)> {
    let mut names = Vec::new();
    for entry in directory.iter() {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name != "." && name != ".." {
            names.push(name.to_owned());
        }
    }
    names.sort();
    Ok((directory, names))
}

/// Returns the rules of a directory; an ignore file that cannot be read has none.
fn rules_of(
    directory: &Path,
    above: Option<&Arc<IgnoreRules>>,
    has: &dyn Fn(&str) -> bool,
    read: ReadRules<'_>,
) -> Arc<IgnoreRules> {
    let content = |name: &str| if has(name) { read(&directory.join(name)) } else { Vec::new() };
    let is_repository = has(REPOSITORY);
    let files = IgnoreFiles {
        ignore: content(IGNORE_FILE),
        gitignore: content(GITIGNORE_FILE),
        exclude: if is_repository { read(&directory.join(EXCLUDE_FILE)) } else { Vec::new() },
        is_repository,
    };
    IgnoreRules::below(above, directory, &files)
}

fn kind_of(stat: &FileStat) -> EntryKind {
    let format = SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT;
    if format == SFlag::S_IFREG {
        EntryKind::File
    } else if format == SFlag::S_IFDIR {
        EntryKind::Directory
    } else if format == SFlag::S_IFLNK {
        EntryKind::Symlink
    } else {
        EntryKind::Other
    }
}

fn entry_of(path: PathBuf, kind: EntryKind, stat: &FileStat) -> WalkEntry {
    let size = if kind == EntryKind::File { u64::try_from(stat.st_size).unwrap_or(0) } else { 0 };
    let changed_ns = stat.st_ctime.saturating_mul(1_000_000_000).saturating_add(stat.st_ctime_nsec);
    // The type of modes depends on the system.
    let mode = u32::try_from(u64::from(stat.st_mode) & 0o7777).ok();
    WalkEntry::new(path, kind)
        .with_mode(mode)
        .with_size(size)
        .with_identity(Some(FileIdentity { inode: stat.st_ino, changed_ns }))
}

/// Opens a file for reading, unless it is a link.
pub(crate) type OpenFile<'a> = &'a dyn Fn(&Path) -> Result<File, EnvError>;

/// Opens a file by its name, without following a link as the last component of a path.
pub(crate) fn open_file(path: &Path) -> Result<File, EnvError> {
    let mut options = File::options();
    // Neither follow a link nor wait for the writer of a pipe.
    options.read(true).custom_flags((OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits());
    options.open(path).map_err(|error| EnvError::from_io("read", path, error))
}

/// Reads files without following a link as the last component of a path.
pub(crate) fn read_many(
    paths: &[PathBuf],
    limits: ReadLimits,
    open: OpenFile<'_>,
    cancelled: &CancelFlag,
) -> Result<Vec<FileContent>, EnvError> {
    let mut contents = Vec::with_capacity(paths.len());
    let mut read = 0_u64;
    for path in paths {
        if cancelled.get() || (read > 0 && read >= limits.total) {
            contents.push(FileContent::Skipped);
            continue;
        }
        let content = read_one(path, limits, read, open)?;
        match &content {
            FileContent::Bytes(bytes) => read = read.saturating_add(bytes.len() as u64),
            FileContent::Skipped => read = limits.total,
            FileContent::TooLarge
            | FileContent::Missing
            | FileContent::NotAFile
            | FileContent::Unreadable => {}
        }
        contents.push(content);
    }
    Ok(contents)
}

fn read_one(path: &Path, limits: ReadLimits, read: u64, open: OpenFile<'_>) -> Result<FileContent, EnvError> {
    let failed = |error| EnvError::from_io("read", path, error);
    let content = open(path).and_then(|file| {
        let content = || -> io::Result<FileContent> {
            let metadata = file.metadata()?;
            if !metadata.is_file() {
                return Ok(FileContent::NotAFile);
            }
            let limit = limits.file.min(host_files::MAX_READ);
            if metadata.len() > limit {
                return Ok(FileContent::TooLarge);
            }
            if read > 0 && read.saturating_add(metadata.len()) > limits.total {
                return Ok(FileContent::Skipped);
            }
            let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or(0));
            // One byte beyond the limit shows that it has grown.
            file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
            Ok(if bytes.len() as u64 > limit { FileContent::TooLarge } else { FileContent::Bytes(bytes) })
        };
        content().map_err(failed)
    });
    content.or_else(of_error)
}

fn of_error(error: EnvError) -> Result<FileContent, EnvError> {
    let cause = error.source().and_then(|source| source.downcast_ref::<io::Error>());
    match cause.and_then(io::Error::raw_os_error).map(Errno::from_raw) {
        Some(Errno::EMFILE | Errno::ENFILE) => Err(error),
        Some(Errno::ELOOP) => Ok(FileContent::NotAFile),
        Some(_) | None => Ok(content_of_error(&error)),
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use nix::unistd::Uid;

    use super::*;

    fn walk_at(root: &Path, request: &WalkRequest) -> WalkOutput {
        let read = |path: &Path| host_files::read(path, None).unwrap_or_default();
        walk(open_root(root).unwrap(), root, request, None, &read, &CancelFlag::default(), None).unwrap()
    }

    /// Nothing is denied to the superuser, so a thread changes its file system user.
    #[cfg(target_os = "linux")]
    #[test]
    fn unreadable_files_and_directories_are_reported() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        for name in ["open/file", "shut/file", "listed/file"] {
            fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
            fs::write(root.join(name), "content").unwrap();
        }
        for (name, mode) in [("", 0o755), ("open/file", 0), ("shut", 0), ("listed", 0o444)] {
            fs::set_permissions(root.join(name), fs::Permissions::from_mode(mode)).unwrap();
        }
        let (walked, read) = std::thread::scope(|scope| {
            let without_privileges = || {
                if Uid::effective().is_root() {
                    nix::unistd::setfsuid(Uid::from_raw(65_534));
                }
                let paths = ["open/file", "shut/file"].map(|name| root.join(name));
                let read =
                    read_many(&paths, ReadLimits::new(9, 9), &open_file, &CancelFlag::default()).unwrap();
                (walk_at(root, &WalkRequest::new(root)), read)
            };
            scope.spawn(without_privileges).join().unwrap()
        });
        for name in ["shut", "listed"] {
            fs::set_permissions(root.join(name), fs::Permissions::from_mode(0o700)).unwrap();
        }
        assert_eq!(walked.unreadable, ["listed", "shut"].map(PathBuf::from));
        let paths: Vec<_> = walked.entries.iter().map(|entry| entry.path.as_path()).collect();
        assert_eq!(paths, ["listed", "open", "open/file", "shut"].map(Path::new));
        assert_eq!(read, [FileContent::Unreadable, FileContent::Unreadable]);
    }

    #[test]
    fn depth_is_limited() {
        let directory = tempfile::tempdir().unwrap();
        let deep: PathBuf = std::iter::repeat_n("d", MAX_DEPTH + 5).collect();
        fs::create_dir_all(directory.path().join(&deep)).unwrap();
        let walked = walk_at(directory.path(), &WalkRequest::new(directory.path()));
        assert_eq!(walked.entries.len(), MAX_DEPTH + 1);
        assert_eq!(walked.unreadable, [std::iter::repeat_n("d", MAX_DEPTH + 1).collect::<PathBuf>()]);
        assert!(!walked.is_complete());
    }

    #[test]
    fn cancelled_walk_ends() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("file"), "").unwrap();
        let cancelled = CancelFlag::default();
        drop(cancelled.on_drop());
        let request = WalkRequest::new(directory.path());
        let read = |_: &Path| Vec::new();
        let root = open_root(directory.path()).unwrap();
        let walked = walk(root, directory.path(), &request, None, &read, &cancelled, None).unwrap();
        assert_eq!(walked.entries, []);
    }
}
