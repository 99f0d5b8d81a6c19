//! Fills a directory that sandboxed commands can write to.
//!
//! They may have put links there, and put them there while this runs: every step goes from
//! descriptor to descriptor without following one.
#![expect(
    clippy::disallowed_methods,
    reason = "this module reads the caches of the user, outside of any environment"
)]

use std::{
    cell::Cell,
    ffi::{OsStr, OsString},
    fs::{self, File},
    io::{self, Write as _},
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
    rc::Rc,
    sync::atomic::{AtomicU64, Ordering},
};

use nix::{
    errno::Errno,
    fcntl::{AtFlags, OFlag, open, openat, readlinkat, renameat},
    sys::stat::{Mode, fstatat, mkdirat},
    unistd::{UnlinkatFlags, symlinkat, unlinkat},
};

use crate::{blocking::CancelFlag, error::EnvError, file::TEMPORARY_PREFIX};

/// Maximum number of entries that are linked or copied in total.
pub(in crate::sandboxed) const MAX_ENTRIES: usize = 500_000;

const DIRECTORY: OFlag =
    OFlag::O_RDONLY.union(OFlag::O_DIRECTORY).union(OFlag::O_CLOEXEC).union(OFlag::O_NOFOLLOW);

/// Number of files written by this process, for names of incomplete ones.
static WRITTEN: AtomicU64 = AtomicU64::new(0);

/// How commands use the caches.
#[derive(Clone, Debug)]
pub(in crate::sandboxed) struct Seeding {
    /// Whether commands can download packages.
    pub(in crate::sandboxed) downloads: bool,
    /// Whether npm may install archives of the project.
    pub(in crate::sandboxed) installs_archives: bool,
    /// Directories that commands can write to, or see otherwise than the user.
    pub(in crate::sandboxed) separate: Vec<PathBuf>,
    /// Maximum number of entries that are linked or copied in total.
    pub(in crate::sandboxed) max_entries: usize,
}

impl Seeding {
    /// Returns whether commands see a directory as the user does, and change nothing there.
    fn can_link(&self, directory: &Path) -> bool {
        let overlaps = |other: &PathBuf| directory.starts_with(other) || other.starts_with(directory);
        !self.downloads && !self.separate.iter().any(overlaps)
    }
}

/// A directory to fill.
pub(super) struct Seed<'a> {
    descriptor: OwnedFd,
    path: PathBuf,
    seeding: &'a Seeding,
    cancelled: &'a CancelFlag,
    /// Entries so far, shared by all directories.
    entries: Rc<Cell<usize>>,
}

impl<'a> Seed<'a> {
    /// Opens the first directory, whose parents no command can write to.
    pub(super) fn open(
        path: &Path,
        seeding: &'a Seeding,
        cancelled: &'a CancelFlag,
    ) -> Result<Self, EnvError> {
        let opened = open(path, DIRECTORY, Mode::empty());
        let descriptor = opened.map_err(|error| EnvError::from_io("open", path, error.into()))?;
        Ok(Self { descriptor, path: path.to_path_buf(), seeding, cancelled, entries: Rc::default() })
    }

    /// Opens a directory in this one; creates it, instead of anything else that has its name.
    pub(super) fn directory(&self, name: impl AsRef<OsStr>) -> Result<Self, EnvError> {
        let name = name.as_ref();
        let path = self.path.join(name);
        let open = || openat(&self.descriptor, name, DIRECTORY, Mode::empty());
        let opened = match open() {
            Err(Errno::ENOTDIR | Errno::ELOOP) => {
                unlinkat(&self.descriptor, name, UnlinkatFlags::NoRemoveDir).and_then(|()| self.make(name))
            }
            Err(Errno::ENOENT) => self.make(name),
            opened => opened,
        };
        let descriptor = opened.map_err(|error| EnvError::from_io("create", &path, error.into()))?;
        let entries = Rc::clone(&self.entries);
        Ok(Self { descriptor, path, seeding: self.seeding, cancelled: self.cancelled, entries })
    }

    fn make(&self, name: &OsStr) -> nix::Result<OwnedFd> {
        match mkdirat(&self.descriptor, name, Mode::S_IRWXU) {
            Ok(()) | Err(Errno::EEXIST) => openat(&self.descriptor, name, DIRECTORY, Mode::empty()),
            Err(error) => Err(error),
        }
    }

    /// Links to a directory of the user as a whole, instead of anything else that has its name. Returns false without a link if
    /// commands need a separate directory, if the directory of the user cannot be read, or if commands have added files to theirs.
    pub(super) fn link_directory(&self, name: &str, source: &Path) -> Result<bool, EnvError> {
        let Ok(source) = source.canonicalize() else { return Ok(false) };
        if !self.seeding.can_link(&source) || fs::read_dir(&source).is_err() {
            return Ok(false);
        }
        let unlink = |flag| match unlinkat(&self.descriptor, name, flag) {
            // Another session has replaced it.
            Err(Errno::ENOENT) => Ok(()),
            unlinked => unlinked,
        };
        let unlinked = match readlinkat(&self.descriptor, name) {
            Ok(target) if target.as_os_str() == source.as_os_str() => return Ok(true),
            Err(Errno::ENOENT) => Ok(()),
            // It is not a link.
            Err(Errno::EINVAL) => match unlink(UnlinkatFlags::RemoveDir) {
                Err(Errno::ENOTEMPTY | Errno::EEXIST) => return Ok(false),
                Err(Errno::ENOTDIR) => unlink(UnlinkatFlags::NoRemoveDir),
                unlinked => unlinked,
            },
            Ok(_) => unlink(UnlinkatFlags::NoRemoveDir),
            Err(error) => Err(error),
        };
        unlinked.map_err(|error| EnvError::from_io("replace", &self.path.join(name), error.into()))?;
        self.link(OsStr::new(name), &source)?;
        Ok(true)
    }

    /// Links to the entries of the directories in `source`, and removes links that lead nowhere.
    pub(super) fn link_entries_below(&self, source: &Path) -> Result<(), EnvError> {
        for (name, is_directory) in self.read(source)? {
            if is_directory {
                self.directory(&name)?.link_entries(&source.join(&name))?;
            }
        }
        Ok(())
    }

    /// Links to the entries of `source`, and removes links that lead nowhere.
    pub(super) fn link_entries(&self, source: &Path) -> Result<(), EnvError> {
        self.remove_dangling()?;
        for (name, _) in self.read(source)? {
            self.link(&name, &source.join(&name))?;
        }
        Ok(())
    }

    /// Links to the files below `source`, in separate directories.
    pub(super) fn link_files(&self, source: &Path) -> Result<(), EnvError> {
        self.remove_dangling()?;
        for (name, is_directory) in self.read(source)? {
            let path = source.join(&name);
            if is_directory {
                self.directory(&name)?.link_files(&path)?;
            } else {
                self.link(&name, &path)?;
            }
        }
        Ok(())
    }

    /// Copies the files below `source` that are not here yet or have another size.
    pub(super) fn copy_files(&self, source: &Path) -> Result<(), EnvError> {
        for (name, is_directory) in self.read(source)? {
            let path = source.join(&name);
            if is_directory {
                self.directory(&name)?.copy_files(&path)?;
                continue;
            }
            let found = fstatat(&self.descriptor, name.as_os_str(), AtFlags::AT_SYMLINK_NOFOLLOW);
            let size = found.ok().and_then(|found| u64::try_from(found.st_size).ok());
            // One that the user removes meanwhile is not needed.
            if let Ok(metadata) = fs::metadata(&path)
                && size.is_none_or(|size| size < metadata.len())
                && let Ok(mut file) = File::open(&path)
            {
                // Where the file system can, both files share their blocks.
                self.replace_by(&name, |copy| io::copy(&mut file, copy).map(drop))?;
            }
        }
        Ok(())
    }

    /// Writes a file, instead of anything else that has its name.
    pub(super) fn replace(&self, name: impl AsRef<OsStr>, content: &[u8]) -> Result<(), EnvError> {
        self.replace_by(name.as_ref(), |file| file.write_all(content))
    }

    fn replace_by(
        &self,
        name: &OsStr,
        fill: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> Result<(), EnvError> {
        let number = WRITTEN.fetch_add(1, Ordering::Relaxed);
        let temporary = format!("{TEMPORARY_PREFIX}{}-{number}", std::process::id());
        let temporary = temporary.as_str();
        let write = move || -> io::Result<()> {
            match unlinkat(&self.descriptor, temporary, UnlinkatFlags::NoRemoveDir) {
                Ok(()) | Err(Errno::ENOENT) => {}
                Err(error) => return Err(error.into()),
            }
            let flags =
                OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_CLOEXEC | OFlag::O_NOFOLLOW;
            let file = openat(&self.descriptor, temporary, flags, Mode::S_IRUSR | Mode::S_IWUSR)?;
            fill(&mut File::from(file))?;
            Ok(renameat(&self.descriptor, temporary, &self.descriptor, name)?)
        };
        write().map_err(|error| EnvError::from_io("write", &self.path.join(name), error))
    }

    fn link(&self, name: &OsStr, target: &Path) -> Result<(), EnvError> {
        match symlinkat(target, self.descriptor.as_fd(), name) {
            Ok(()) | Err(Errno::EEXIST) => Ok(()),
            Err(error) => Err(EnvError::from_io("link", &self.path.join(name), error.into())),
        }
    }

    /// Removes links to files that the user has removed: nothing could be created in their place.
    fn remove_dangling(&self) -> Result<(), EnvError> {
        let failed = |error: Errno| EnvError::from_io("list", &self.path, error.into());
        let mut directory =
            nix::dir::Dir::openat(&self.descriptor, ".", DIRECTORY, Mode::empty()).map_err(failed)?;
        for entry in directory.iter() {
            let entry = entry.map_err(failed)?;
            let is_link = entry.file_type() == Some(nix::dir::Type::Symlink);
            let leads_nowhere = || {
                fstatat(&self.descriptor, entry.file_name(), AtFlags::empty())
                    .is_err_and(is_closed_or_missing)
            };
            if is_link && leads_nowhere() {
                unlinkat(&self.descriptor, entry.file_name(), UnlinkatFlags::NoRemoveDir).map_err(failed)?;
            }
        }
        Ok(())
    }

    /// Lists a directory of the user: names, and whether each is a directory itself. It may be
    /// missing, or belong to another user and be unreadable.
    fn read(&self, source: &Path) -> Result<Vec<(OsString, bool)>, EnvError> {
        let entries = match fs::read_dir(source) {
            Ok(entries) => entries,
            Err(error)
                if [io::ErrorKind::NotFound, io::ErrorKind::PermissionDenied].contains(&error.kind()) =>
            {
                return Ok(Vec::new());
            }
            Err(error) => return Err(EnvError::from_io("read", source, error)),
        };
        let mut found = Vec::new();
        for entry in entries.flatten() {
            let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
            found.push((entry.file_name(), is_directory));
        }
        self.entries.set(self.entries.get().saturating_add(found.len()));
        let limit = self.seeding.max_entries;
        if self.entries.get() > limit {
            return Err(EnvError::TooManyEntries { path: source.to_path_buf(), limit });
        }
        if self.cancelled.get() {
            let source = io::ErrorKind::Interrupted.into();
            return Err(EnvError::Io { action: "fill", path: self.path.clone(), source });
        }
        Ok(found)
    }
}

/// Returns whether an error of a link's target means that commands cannot read it.
fn is_closed_or_missing(error: Errno) -> bool {
    [Errno::ENOENT, Errno::EACCES].contains(&error)
}
