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
    io::{self, Write},
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
    rc::Rc,
    sync::atomic::{AtomicU64, Ordering},
};

use nix::{
    errno::Errno,
    fcntl::{AtFlags, OFlag, open, openat, renameat},
    sys::stat::{Mode, fstatat, mkdirat},
    unistd::{UnlinkatFlags, symlinkat, unlinkat},
};

use crate::{blocking::CancelFlag, error::EnvError, file::TEMPORARY_PREFIX};

/// Maximum number of entries that are linked or copied in all.
const MAX_ENTRIES: usize = 500_000;

const DIRECTORY: OFlag =
    OFlag::O_RDONLY.union(OFlag::O_DIRECTORY).union(OFlag::O_CLOEXEC).union(OFlag::O_NOFOLLOW);

/// Number of files written by this process, for names of incomplete ones.
static WRITTEN: AtomicU64 = AtomicU64::new(0);

/// A directory to fill.
pub(super) struct Seed<'a> {
    descriptor: OwnedFd,
    path: PathBuf,
    cancelled: &'a CancelFlag,
    /// Entries so far, shared by all directories.
    entries: Rc<Cell<usize>>,
}

impl<'a> Seed<'a> {
    /// Opens the first directory, whose parents no command can write to.
    pub(super) fn open(path: &Path, cancelled: &'a CancelFlag) -> Result<Self, EnvError> {
        let opened = open(path, DIRECTORY, Mode::empty());
        let descriptor = opened.map_err(|error| EnvError::from_io("open", path, error.into()))?;
        Ok(Self { descriptor, path: path.to_path_buf(), cancelled, entries: Rc::default() })
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
        Ok(Self { descriptor, path, cancelled: self.cancelled, entries: Rc::clone(&self.entries) })
    }

    fn make(&self, name: &OsStr) -> nix::Result<OwnedFd> {
        match mkdirat(&self.descriptor, name, Mode::S_IRWXU) {
            Ok(()) | Err(Errno::EEXIST) => openat(&self.descriptor, name, DIRECTORY, Mode::empty()),
            Err(error) => Err(error),
        }
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
                && let Ok(content) = fs::read(&path)
            {
                self.replace(&name, &content)?;
            }
        }
        Ok(())
    }

    /// Writes a file, instead of anything else that has its name.
    pub(super) fn replace(&self, name: impl AsRef<OsStr>, content: &[u8]) -> Result<(), EnvError> {
        let name = name.as_ref();
        let number = WRITTEN.fetch_add(1, Ordering::Relaxed);
        let temporary = format!("{TEMPORARY_PREFIX}{}-{number}", std::process::id());
        let temporary = temporary.as_str();
        let write = || -> io::Result<()> {
            match unlinkat(&self.descriptor, temporary, UnlinkatFlags::NoRemoveDir) {
                Ok(()) | Err(Errno::ENOENT) => {}
                Err(error) => return Err(error.into()),
            }
            let flags =
                OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_CLOEXEC | OFlag::O_NOFOLLOW;
            let file = openat(&self.descriptor, temporary, flags, Mode::S_IRUSR | Mode::S_IWUSR)?;
            File::from(file).write_all(content)?;
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
        if self.entries.get() > MAX_ENTRIES {
            return Err(EnvError::TooManyEntries { path: source.to_path_buf(), limit: MAX_ENTRIES });
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
