//! File operations below fixed roots that no link can escape. Linux only; every function blocks.
//!
//! Where possible the kernel resolves a path in one step, with `openat2` and `RESOLVE_BENEATH`.
//! Otherwise (absolute links, files to be created, kernels before 5.6) the names are resolved one
//! by one from descriptor to descriptor, reading links instead of following them. A resolved file
//! or directory is held open while it is used, so that it cannot be replaced by a link meanwhile.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io,
    ops::Range,
    os::fd::{AsRawFd, OwnedFd},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use nix::{
    errno::Errno,
    fcntl::{OFlag, OpenHow, ResolveFlag, open, openat, openat2, readlinkat},
    sys::stat::{Mode, SFlag, fstat, mkdirat},
    unistd::{UnlinkatFlags, unlinkat},
};

use crate::{
    blocking::CancelFlag,
    error::EnvError,
    file::{DirEntry, Metadata},
    host_files::{self, tree},
    search::ignore_rules::IgnoreRules,
    walk::{WalkOutput, WalkRequest},
};

/// Opens a file as a location only, neither for reading nor for writing.
const LOCATION: OFlag = OFlag::O_PATH.union(OFlag::O_CLOEXEC);
const DIRECTORY: OFlag = LOCATION.union(OFlag::O_DIRECTORY);

/// Opens a file for reading, without waiting for the writer of a pipe.
const READING: OFlag = OFlag::O_RDONLY.union(OFlag::O_NONBLOCK).union(OFlag::O_CLOEXEC);

/// Permission bits of a new directory, before the umask.
const NEW_DIRECTORY_MODE: Mode = Mode::from_bits_truncate(0o777);

/// Whether a link as the last component is followed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum LastLink {
    Followed,
    Kept,
}

/// Handling of missing intermediate directories.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    Refused,
    Created,
}

/// Handling of links below a root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Links {
    /// They are followed within the roots.
    Within,
    /// They are refused: paths must be canonical.
    Refused,
}

/// The allowed roots, all absolute.
#[derive(Clone, Debug)]
pub(crate) struct AllowedRoots {
    roots: Vec<Root>,
    links: Links,
}

/// A directory that paths are below.
#[derive(Clone, Debug)]
struct Root {
    path: PathBuf,
    /// The directory itself; opened by its name if absent.
    held: Option<Arc<OwnedFd>>,
    /// Set once an operation removed or moved the directory. Its path is resolved by name from then on.
    is_forgotten: Arc<AtomicBool>,
}

/// A name in an open directory; without a name, the directory itself.
struct Location {
    directory: OwnedFd,
    name: Option<OsString>,
    created: CreatedDirectories,
}

/// Directories created during resolution, outermost first, each as a name in its open parent. They
/// are removed on drop unless they are kept or no longer empty.
#[derive(Default)]
struct CreatedDirectories(Vec<(OwnedFd, OsString)>);

impl AllowedRoots {
    /// Roots below which links are followed, unless they lead out of all roots.
    pub(crate) fn new(roots: Vec<PathBuf>) -> Self {
        let roots = roots.into_iter().map(Root::by_path).collect();
        Self { roots, links: Links::Within }
    }

    /// The whole file system, without following links. Paths below `held` start at these open directories, even if their names
    /// lead elsewhere by now.
    pub(crate) fn without_links(held: impl IntoIterator<Item = (PathBuf, Arc<OwnedFd>)>) -> Self {
        let held =
            held.into_iter().map(|(path, directory)| Root { held: Some(directory), ..Root::by_path(path) });
        let all = Root::by_path(PathBuf::from("/"));
        Self { roots: held.chain([all]).collect(), links: Links::Refused }
    }

    pub(crate) fn read(&self, path: &Path, range: Option<Range<u64>>) -> Result<Vec<u8>, EnvError> {
        host_files::read_open(self.open_file(path)?, path, range)
    }

    /// Opens a regular file for reading.
    pub(crate) fn open_file(&self, path: &Path) -> Result<File, EnvError> {
        if let Some(file) = self.open_with_openat2(path, READING) {
            return host_files::expect_regular_file(file.into(), path);
        }
        let location = self.open("reading", path)?;
        host_files::open(&proc_path(&location)).map_err(|error| error.map_path(|_| path.to_path_buf()))
    }

    pub(crate) fn metadata(&self, path: &Path) -> Result<Metadata, EnvError> {
        metadata_of(&self.open("looking at", path)?, path)
    }

    pub(crate) fn list(&self, path: &Path, limit: usize) -> Result<Vec<DirEntry>, EnvError> {
        Self::list_open(&self.open("listing", path)?, path, limit)
    }

    /// Lists an open directory. Errors contain `path`.
    pub(crate) fn list_open(
        directory: &OwnedFd,
        path: &Path,
        limit: usize,
    ) -> Result<Vec<DirEntry>, EnvError> {
        host_files::list(&proc_path(directory), limit).map_err(|error| error.map_path(|_| path.to_path_buf()))
    }

    pub(crate) fn write(&self, path: &Path, bytes: &[u8], cancelled: &CancelFlag) -> Result<(), EnvError> {
        // Without recorded identities, only the directories are checked.
        self.write_checked(path, bytes, cancelled, &|_| Ok(()))
    }

    /// Writes a file, unless `check_identity` refuses the existing one, which is open for writing.
    pub(super) fn write_checked(
        &self,
        path: &Path,
        bytes: &[u8],
        cancelled: &CancelFlag,
        check_identity: &dyn Fn(&File) -> Result<(), EnvError>,
    ) -> Result<(), EnvError> {
        let location = self.resolve("writing", path, LastLink::Followed, Missing::Created)?;
        let target = location.path().ok_or_else(|| EnvError::IsADirectory { path: path.to_path_buf() })?;
        host_files::replace(&target, bytes, cancelled, check_identity)
            .map_err(|error| error.map_path(|_| path.to_path_buf()))?;
        location.created.keep();
        Ok(())
    }

    pub(crate) fn remove(&self, path: &Path) -> Result<(), EnvError> {
        let location = self.resolve("removing", path, LastLink::Kept, Missing::Refused)?;
        let target = location.path().ok_or_else(|| refused("removing the root", path))?;
        host_files::remove(&target).map_err(|error| error.map_path(|_| path.to_path_buf()))
    }

    pub(crate) fn create_directory(&self, path: &Path) -> Result<(), EnvError> {
        let location = self.resolve("creating", path, LastLink::Followed, Missing::Created)?;
        if let Some(target) = location.path() {
            host_files::create_directory(&target).map_err(|error| error.map_path(|_| path.to_path_buf()))?;
        }
        location.created.keep();
        Ok(())
    }

    /// The target of the link is not checked here. It is checked when the link is followed.
    pub(crate) fn create_symlink(&self, path: &Path, target: &Path) -> Result<(), EnvError> {
        let location = self.resolve("creating", path, LastLink::Kept, Missing::Created)?;
        let link = location.path().ok_or_else(|| EnvError::IsADirectory { path: path.to_path_buf() })?;
        host_files::create_symlink(&link, target).map_err(|error| error.map_path(|_| path.to_path_buf()))?;
        location.created.keep();
        Ok(())
    }

    pub(crate) fn set_mode(&self, path: &Path, mode: u32) -> Result<(), EnvError> {
        let file = self.open("changing the mode of", path)?;
        host_files::set_mode(&proc_path(&file), mode).map_err(|error| error.map_path(|_| path.to_path_buf()))
    }

    pub(crate) fn walk(
        &self,
        request: &WalkRequest,
        above: Option<&Arc<IgnoreRules>>,
        cancelled: &CancelFlag,
    ) -> Result<WalkOutput, EnvError> {
        let root = &request.root;
        let directory = tree::reopen(&self.open("walking", root)?, root)?;
        let read = |path: &Path| self.read(path, None).unwrap_or_default();
        tree::walk(directory, root, request, above, &read, cancelled, None)
    }

    pub(crate) fn rename(&self, from: &Path, to: &Path) -> Result<(), EnvError> {
        let old = self.resolve("renaming", from, LastLink::Kept, Missing::Refused)?;
        let source = old.path().ok_or_else(|| refused("renaming the root", from))?;
        // A missing source must not leave new directories behind.
        old.open().map_err(|errno| EnvError::from_io("rename", from, errno.into()))?;
        let new = self.resolve("renaming to", to, LastLink::Kept, Missing::Created)?;
        let target = new.path().ok_or_else(|| EnvError::IsADirectory { path: to.to_path_buf() })?;
        let as_requested = |found: &Path| if found == source { from } else { to }.to_path_buf();
        host_files::rename(&source, &target).map_err(|error| error.map_path(as_requested))?;
        new.created.keep();
        Ok(())
    }

    /// Resolves a path and opens it with `O_PATH`.
    pub(super) fn open(&self, action: &str, path: &Path) -> Result<OwnedFd, EnvError> {
        if let Some(file) = self.open_with_openat2(path, LOCATION) {
            return Ok(file);
        }
        let failed = |errno: Errno| EnvError::from_io("look at", path, errno.into());
        let location = self.resolve(action, path, LastLink::Followed, Missing::Refused)?;
        let file = location.open().map_err(failed)?;
        let kind = SFlag::from_bits_truncate(fstat(&file).map_err(failed)?.st_mode);
        if kind & SFlag::S_IFMT == SFlag::S_IFLNK {
            // It was replaced by a link after it was checked.
            return Err(match self.links {
                Links::Within => refused(action, path),
                Links::Refused => replaced(action, path),
            });
        }
        Ok(file)
    }

    /// Resolves held directories at or below `path` by name again, after an operation removed or moved them.
    pub(super) fn forget_if_removed(&self, path: &Path) {
        for root in self.roots.iter().filter(|root| root.held.is_some() && root.path.starts_with(path)) {
            let is_same = |held: &Arc<OwnedFd>| {
                let by_name = open(&root.path, DIRECTORY | OFlag::O_NOFOLLOW, Mode::empty());
                match (by_name.map(|found| fstat(&found)), fstat(held)) {
                    (Ok(Ok(found)), Ok(held)) => (found.st_dev, found.st_ino) == (held.st_dev, held.st_ino),
                    (_, _) => false,
                }
            };
            if !root.held.as_ref().is_some_and(is_same) {
                root.is_forgotten.store(true, Ordering::Relaxed);
            }
        }
    }

    /// Returns the target of a link; `None` for anything else, and for what does not exist.
    pub(super) fn read_link(&self, path: &Path) -> Result<Option<PathBuf>, EnvError> {
        let location = match self.resolve("looking at", path, LastLink::Kept, Missing::Refused) {
            Err(EnvError::NotFound { .. }) => return Ok(None),
            location => location?,
        };
        let Some(name) = &location.name else { return Ok(None) };
        match readlinkat(&location.directory, name.as_os_str()) {
            Ok(target) => Ok(Some(target.into())),
            Err(Errno::EINVAL | Errno::ENOENT) => Ok(None),
            Err(errno) => Err(EnvError::from_io("look at", path, errno.into())),
        }
    }

    /// Opens a path with `O_PATH`, without following a link in the last component.
    pub(super) fn open_entry(&self, action: &str, path: &Path) -> Result<OwnedFd, EnvError> {
        let location = self.resolve(action, path, LastLink::Kept, Missing::Refused)?;
        location.open().map_err(|errno| EnvError::from_io("look at", path, errno.into()))
    }

    /// Resolves a path with `openat2` alone. Any failure is reported by the slow path instead.
    fn open_with_openat2(&self, path: &Path, flags: OFlag) -> Option<OwnedFd> {
        let (root, relative) = self.locate(path)?;
        let root = root.open().ok()?;
        let relative = if relative.as_os_str().is_empty() { Path::new(".") } else { &relative };
        let mut resolve = ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_MAGICLINKS;
        resolve.set(ResolveFlag::RESOLVE_NO_SYMLINKS, self.links == Links::Refused);
        openat2(&root, relative, OpenHow::new().flags(flags).resolve(resolve)).ok()
    }

    /// Resolves a path component by component.
    fn resolve(
        &self,
        action: &str,
        path: &Path,
        last: LastLink,
        missing: Missing,
    ) -> Result<Location, EnvError> {
        let failed = |errno: Errno| EnvError::from_io("look at", path, errno.into());
        let position = Position::default();
        let mut walk =
            Walk { beneath: self, action, path, position, links: 0, created: CreatedDirectories::default() };
        walk.start(path)?;
        while let Some(name) = walk.position.pending.pop() {
            if name == ".." {
                walk.up()?;
                continue;
            }
            let is_last = walk.position.pending.is_empty();
            match readlinkat(walk.current()?, name.as_os_str()) {
                Ok(_) if is_last && last == LastLink::Kept => return walk.finish(Some(name)),
                Ok(_) if self.links == Links::Refused => return Err(replaced(action, path)),
                Ok(target) => walk.follow(target.as_ref())?,
                // Not a link, or missing.
                Err(Errno::EINVAL | Errno::ENOENT) if is_last => return walk.finish(Some(name)),
                Err(Errno::EINVAL) => walk.enter(&name)?,
                Err(Errno::ENOENT) if missing == Missing::Created => {
                    walk.create(&name).map_err(|source| EnvError::from_io("create", path, source))?;
                    walk.enter(&name)?;
                }
                Err(errno) => return Err(failed(errno)),
            }
        }
        walk.finish(None)
    }

    /// Returns the root that contains a path with the longest remainder, as given or canonical, and
    /// that remainder.
    fn locate(&self, path: &Path) -> Option<(Root, PathBuf)> {
        let roots = self.roots.iter().filter(|root| !root.is_forgotten.load(Ordering::Relaxed));
        let as_given = roots.filter_map(|root| Some((root.clone(), root.relative(path)?)));
        if self.links == Links::Refused {
            // The nearest open directory.
            return as_given.min_by_key(|(_, relative)| relative.components().count());
        }
        let canonical = self.roots.iter().filter_map(Root::canonical);
        let canonical = canonical.filter_map(|root| root.relative(path).map(|relative| (root, relative)));
        as_given.chain(canonical).max_by_key(|(_, relative)| relative.components().count())
    }
}

impl Root {
    fn by_path(path: PathBuf) -> Self {
        Self { path, held: None, is_forgotten: Arc::default() }
    }

    /// Returns the rest of a path below it.
    fn relative(&self, path: &Path) -> Option<PathBuf> {
        path.strip_prefix(&self.path).ok().map(Path::to_path_buf)
    }

    /// Returns it by its path without links.
    fn canonical(&self) -> Option<Self> {
        host_files::canonicalize(&self.path).ok().map(Self::by_path)
    }

    fn open(&self) -> io::Result<OwnedFd> {
        match &self.held {
            Some(directory) => directory.try_clone(),
            None => Ok(open(&self.path, DIRECTORY, Mode::empty())?),
        }
    }
}

impl Location {
    /// Opens the location with `O_PATH`, without following a link.
    fn open(&self) -> nix::Result<OwnedFd> {
        let name = self.name.as_deref().unwrap_or(OsStr::new("."));
        openat(&self.directory, name, LOCATION | OFlag::O_NOFOLLOW, Mode::empty())
    }

    /// Returns a path that stays valid if parents are renamed; `None` for the directory itself.
    fn path(&self) -> Option<PathBuf> {
        Some(proc_path(&self.directory).join(self.name.as_ref()?))
    }
}

impl CreatedDirectories {
    /// Keeps the directories.
    fn keep(mut self) {
        self.0.clear();
    }
}

impl Drop for CreatedDirectories {
    fn drop(&mut self) {
        for (parent, name) in self.0.iter().rev() {
            if let Err(error) = unlinkat(parent, name.as_os_str(), UnlinkatFlags::RemoveDir) {
                tracing::debug!(name = %name.display(), %error, "cannot remove a created directory");
            }
        }
    }
}

/// Path resolution in progress.
struct Walk<'a> {
    beneath: &'a AllowedRoots,
    action: &'a str,
    path: &'a Path,
    position: Position,
    links: usize,
    created: CreatedDirectories,
}

#[derive(Default)]
struct Position {
    root: PathBuf,
    /// The open directories from the root to the current one.
    directories: Vec<OwnedFd>,
    /// Remaining components, in reverse order.
    pending: Vec<OsString>,
}

impl Walk<'_> {
    /// Starts at the root that contains `path`, keeping the remaining components.
    fn start(&mut self, path: &Path) -> Result<(), EnvError> {
        let found = match self.beneath.links {
            Links::Within => self.beneath.locate(path),
            // An open directory can be removed or renamed only by its name in another one.
            Links::Refused => path
                .parent()
                .and_then(|parent| self.beneath.locate(parent))
                .map(|(root, _)| (root.clone(), root.relative(path).unwrap_or_default()))
                .or_else(|| self.beneath.locate(path)),
        };
        let (root, relative) = found.ok_or_else(|| self.refused())?;
        let directory = root.open().map_err(|source| EnvError::from_io("look at", &root.path, source))?;
        self.position.pending.extend(host_files::reversed_components(&relative));
        self.position.directories = vec![directory];
        self.position.root = root.path;
        Ok(())
    }

    fn current(&self) -> Result<&OwnedFd, EnvError> {
        self.position.directories.last().ok_or_else(|| self.refused())
    }

    /// Creates a directory here, unless it was just created concurrently.
    fn create(&mut self, name: &OsString) -> io::Result<()> {
        let Some(current) = self.position.directories.last() else { return Ok(()) };
        match mkdirat(current, name.as_os_str(), NEW_DIRECTORY_MODE) {
            Ok(()) => self.created.0.push((current.try_clone()?, name.clone())),
            Err(Errno::EEXIST) => {}
            Err(errno) => return Err(errno.into()),
        }
        Ok(())
    }

    fn enter(&mut self, name: &OsString) -> Result<(), EnvError> {
        let entered = openat(self.current()?, name.as_os_str(), DIRECTORY | OFlag::O_NOFOLLOW, Mode::empty());
        let entered = entered.map_err(|errno| EnvError::from_io("look at", self.path, errno.into()))?;
        self.position.directories.push(entered);
        Ok(())
    }

    fn up(&mut self) -> Result<(), EnvError> {
        self.position.directories.pop();
        if !self.position.directories.is_empty() {
            return Ok(());
        }
        // Another root may contain the parent of this one.
        let root = host_files::canonicalize(&self.position.root)?;
        let above = root.parent().ok_or_else(|| self.refused())?;
        let rest: PathBuf =
            above.components().map(|name| name.as_os_str().to_owned()).chain(self.take_pending()).collect();
        self.start(&rest)
    }

    fn follow(&mut self, target: &Path) -> Result<(), EnvError> {
        self.links += 1;
        if self.links > host_files::MAX_LINKS {
            return Err(EnvError::Io {
                action: "look at",
                path: self.path.to_path_buf(),
                source: host_files::too_many_links(),
            });
        }
        if target.is_absolute() {
            return self.start(target);
        }
        self.position.pending.extend(host_files::reversed_components(target));
        Ok(())
    }

    /// Takes the remaining components, in order.
    fn take_pending(&mut self) -> impl Iterator<Item = OsString> + use<> {
        std::mem::take(&mut self.position.pending).into_iter().rev()
    }

    fn finish(mut self, name: Option<OsString>) -> Result<Location, EnvError> {
        let directory = self.position.directories.pop().ok_or_else(|| self.refused())?;
        Ok(Location { directory, name, created: self.created })
    }

    fn refused(&self) -> EnvError {
        refused(self.action, self.path)
    }
}

/// Returns the metadata of an open file, whose path is for errors.
pub(super) fn metadata_of(file: &OwnedFd, path: &Path) -> Result<Metadata, EnvError> {
    host_files::metadata(&proc_path(file)).map_err(|error| error.map_path(|_| path.to_path_buf()))
}

/// Returns the path of an open file under `/proc`.
pub(super) fn proc_path(file: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// Creates the error for a path outside the roots.
fn refused(action: &str, path: &Path) -> EnvError {
    EnvError::Refused {
        operation: format!("{action} {}", path.display()),
        reason: "the path is outside the allowed roots".to_owned(),
    }
}

/// Creates the error for a path whose target was replaced after it was checked.
pub(super) fn replaced(action: &str, path: &Path) -> EnvError {
    EnvError::Refused {
        operation: format!("{action} {}", path.display()),
        reason: "the file or directory was replaced after it was judged".to_owned(),
    }
}

/// Returns true if open files have paths here, which requires a mounted `/proc`.
pub(crate) fn is_available() -> bool {
    std::fs::exists("/proc/self/fd").unwrap_or(false)
}
