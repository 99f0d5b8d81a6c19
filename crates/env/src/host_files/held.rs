//! File access that is pinned to the resolved targets of paths. Linux only; every function blocks.
//!
//! Between the check of a path by a gate and its use by a tool, another process can replace a file or directory by a
//! link. Here a path is resolved once. Its directory stays open from then on, no link is followed below it, and a file
//! is compared with the one that was there.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    ops::Range,
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use nix::sys::stat::{FileStat, SFlag, fstat};

use super::{
    beneath::{self, AllowedRoots, LastLink, replaced},
    canonicalize, tree,
    walk_cache::CachedWalk,
};
use crate::{
    blocking::CancelFlag,
    error::EnvError,
    file::{DirEntry, Metadata},
    search::ignore_rules::IgnoreRules,
    walk::{WalkOutput, WalkRequest},
};

/// Maximum number of directories that stay open. Paths in others are still resolved once and without links.
const MAX_DIRECTORIES: usize = 64;

/// Maximum number of attempts to resolve a path that changes concurrently.
const MAX_ATTEMPTS: usize = 16;

/// Resolved paths and their targets.
#[derive(Debug)]
pub(crate) struct HeldPaths {
    /// The canonical targets of the paths and of their parent directories.
    targets: BTreeMap<PathBuf, PathBuf>,
    /// Unresolvable paths, such as one below a file.
    unresolved: BTreeSet<PathBuf>,
    beneath: AllowedRoots,
    /// Identities of the targets, until an operation changes them.
    seen: Mutex<BTreeMap<PathBuf, Option<Identity>>>,
}

/// Identity of a file or directory, whatever its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
}

impl From<FileStat> for Identity {
    fn from(stat: FileStat) -> Self {
        Self { device: stat.st_dev, inode: stat.st_ino }
    }
}

/// The result of resolving one path.
struct ResolvedPath {
    /// The canonical parent directory.
    parent: PathBuf,
    /// The canonical target.
    target: PathBuf,
    /// Open directories: the parents of the path and of its target or their nearest existing ancestors, and a target directory.
    directories: Vec<(PathBuf, Arc<OwnedFd>)>,
    /// The target, if it exists.
    identity: Option<Identity>,
}

impl HeldPaths {
    /// Resolves absolute paths.
    ///
    /// # Errors
    ///
    /// [`EnvError::Refused`] if a path keeps changing.
    pub(crate) fn hold(paths: &[PathBuf]) -> Result<Self, EnvError> {
        let mut targets = BTreeMap::new();
        let (mut unresolved, mut seen) = (BTreeSet::new(), BTreeMap::new());
        let mut directories = BTreeMap::new();
        for path in paths {
            let Some(resolved) = ResolvedPath::resolve(path)? else {
                unresolved.insert(path.clone());
                continue;
            };
            let ResolvedPath { parent, target, directories: opened, identity } = resolved;
            for (path, directory) in opened {
                if directories.len() < MAX_DIRECTORIES {
                    directories.entry(path).or_insert(directory);
                }
            }
            seen.insert(target.clone(), identity);
            let own = path.file_name().map_or_else(|| parent.clone(), |name| parent.join(name));
            let above = target.parent().unwrap_or(&target).to_path_buf();
            // Callers also pass canonical paths, which must not be resolved again.
            targets.insert(above.clone(), above);
            targets.insert(own, target.clone());
            targets.insert(parent.clone(), parent.clone());
            targets.insert(target.clone(), target.clone());
            targets.insert(path.parent().unwrap_or(path).to_path_buf(), parent);
            targets.insert(path.clone(), target);
        }
        Ok(Self {
            targets,
            unresolved,
            beneath: AllowedRoots::without_links(directories),
            seen: Mutex::new(seen),
        })
    }

    /// Returns the recorded target of a path; resolves other paths.
    pub(crate) fn canonicalize(&self, path: &Path) -> Result<PathBuf, EnvError> {
        if let Some(target) = self.targets.get(path) {
            return Ok(target.clone());
        }
        let known = self.known(path).unwrap_or_else(|| path.to_path_buf());
        let as_requested = |found: &Path| if found == known { path } else { found }.to_path_buf();
        let target = canonicalize(&known).map_err(|error| error.map_path(as_requested))?;
        if self.is_unresolved(path) { Err(replaced("looking at", path)) } else { Ok(target) }
    }

    /// Returns the location of a path. Links below a held directory are not resolved yet.
    fn location(&self, path: &Path) -> Result<PathBuf, EnvError> {
        self.known(path).map_or_else(|| self.canonicalize(path), Ok)
    }

    pub(crate) fn read(&self, path: &Path, range: Option<Range<u64>>) -> Result<Vec<u8>, EnvError> {
        super::read_open(self.open(path)?, path, range)
    }

    /// Opens a regular file for reading.
    pub(crate) fn open(&self, path: &Path) -> Result<File, EnvError> {
        self.with_target(path, LastLink::Followed, |target| {
            let file = self.beneath.open_file(target)?;
            self.compare("reading", target, &file)?;
            Ok(file)
        })
    }

    /// Opens a file for reading, unless it is a link.
    pub(crate) fn open_itself(&self, path: &Path) -> Result<File, EnvError> {
        self.with_target(path, LastLink::Kept, |target| match self.beneath.open_file(target) {
            Ok(file) => self.compare("reading", target, &file).map(|()| file),
            Err(EnvError::Refused { .. }) => Err(EnvError::NotARegularFile { path: target.to_path_buf() }),
            Err(error) => Err(error),
        })
    }

    pub(crate) fn metadata(&self, path: &Path) -> Result<Metadata, EnvError> {
        self.with_target(path, LastLink::Followed, |target| {
            let file = self.beneath.open("looking at", target)?;
            self.compare("looking at", target, &file)?;
            beneath::metadata_of(&file, target)
        })
    }

    pub(crate) fn list(&self, path: &Path, limit: usize) -> Result<Vec<DirEntry>, EnvError> {
        self.with_target(path, LastLink::Followed, |target| {
            let directory = self.beneath.open("listing", target)?;
            self.compare("listing", target, &directory)?;
            AllowedRoots::list_open(&directory, target, limit)
        })
    }

    pub(crate) fn write(&self, path: &Path, bytes: &[u8], cancelled: &CancelFlag) -> Result<(), EnvError> {
        self.change("writing", path, LastLink::Followed, |target| {
            // The entry was compared before. Another file may have its name by now, and must not be written in place.
            let check_identity = |file: &File| self.compare("writing", target, file);
            self.beneath.write_checked(target, bytes, cancelled, &check_identity)
        })
    }

    pub(crate) fn remove(&self, path: &Path) -> Result<(), EnvError> {
        self.change("removing", path, LastLink::Kept, |target| self.beneath.remove(target))
    }

    pub(crate) fn rename(&self, from: &Path, to: &Path) -> Result<(), EnvError> {
        self.change("renaming", from, LastLink::Kept, |source| {
            self.change("renaming to", to, LastLink::Kept, |target| {
                let as_requested = |found: &Path| if found == source { from } else { to }.to_path_buf();
                self.beneath.rename(source, target).map_err(|error| error.map_path(as_requested))
            })
        })
    }

    pub(crate) fn create_directory(&self, path: &Path) -> Result<(), EnvError> {
        self.change("creating", path, LastLink::Followed, |target| self.beneath.create_directory(target))
    }

    pub(crate) fn create_symlink(&self, path: &Path, leads_to: &Path) -> Result<(), EnvError> {
        self.change("creating", path, LastLink::Kept, |target| self.beneath.create_symlink(target, leads_to))
    }

    pub(crate) fn set_mode(&self, path: &Path, mode: u32) -> Result<(), EnvError> {
        self.change("changing the mode of", path, LastLink::Followed, |target| {
            self.beneath.set_mode(target, mode)
        })
    }

    pub(crate) fn walk(
        &self,
        request: &WalkRequest,
        above: Option<&Arc<IgnoreRules>>,
        cancelled: &CancelFlag,
        cached: Option<&mut CachedWalk<'_>>,
    ) -> Result<WalkOutput, EnvError> {
        let root = &request.root;
        let directory = self.with_target(root, LastLink::Followed, |target| {
            let directory = self.beneath.open("walking", target)?;
            self.compare("walking", target, &directory).map(|()| directory)
        })?;
        let read = |path: &Path| self.read(path, None).unwrap_or_default();
        tree::walk(tree::reopen(&directory, root)?, root, request, above, &read, cancelled, cached)
    }

    /// Runs `work` on the target of a path. Links below a held directory are followed within it. Errors contain the given path.
    fn with_target<T>(
        &self,
        path: &Path,
        last: LastLink,
        work: impl Fn(&Path) -> Result<T, EnvError>,
    ) -> Result<T, EnvError> {
        if self.is_unresolved(path) {
            // Returns an error: the path is still unresolvable, or its target was not checked.
            self.canonicalize(path)?;
        }
        let target = match (last, path.parent(), path.file_name()) {
            (LastLink::Kept, Some(parent), Some(name)) => self.location(parent)?.join(name),
            (LastLink::Kept | LastLink::Followed, _, _) => self.location(path)?,
        };
        let as_requested = |found: &Path| if found == target { path } else { found }.to_path_buf();
        let done = match work(&target) {
            Err(refused @ EnvError::Refused { .. }) if !self.targets.contains_key(path) => {
                match (last, target.parent(), target.file_name()) {
                    (LastLink::Kept, Some(parent), Some(name)) => {
                        work(&self.within_known_directory(path, parent)?.join(name))
                    }
                    (LastLink::Kept, _, _) => Err(refused),
                    (LastLink::Followed, _, _) => work(&self.within_known_directory(path, &target)?),
                }
            }
            done => done,
        };
        done.map_err(|error| error.map_path(as_requested))
    }

    /// Follows the links below a directory that was resolved, unless they lead out of it.
    fn within_known_directory(&self, path: &Path, target: &Path) -> Result<PathBuf, EnvError> {
        let directory = path.ancestors().find_map(|above| self.targets.get(above));
        let real = canonicalize(target)?;
        match directory {
            Some(directory) if !real.starts_with(directory) => Err(EnvError::Refused {
                operation: format!("following {}", path.display()),
                reason: format!("it leads out of {}", directory.display()),
            }),
            Some(_) | None => Ok(real),
        }
    }

    /// Runs `work`, which changes the target of a path.
    fn change(
        &self,
        action: &str,
        path: &Path,
        last: LastLink,
        work: impl Fn(&Path) -> Result<(), EnvError>,
    ) -> Result<(), EnvError> {
        self.with_target(path, last, |target| {
            match self.beneath.open_entry(action, target) {
                Ok(file) => self.compare(action, target, file)?,
                // It was removed meanwhile: there is nothing to compare.
                Err(EnvError::NotFound { .. }) => {}
                Err(error) => return Err(error),
            }
            work(target)?;
            // A write in place does not replace the checked file.
            let entry = self.beneath.open_entry(action, target);
            if !entry.is_ok_and(|file| self.compare(action, target, file).is_ok()) {
                self.lock_seen().remove(target);
            }
            self.beneath.forget_if_removed(target);
            Ok(())
        })
    }

    /// Returns the location of a path if it, or a directory above it, was resolved.
    fn known(&self, path: &Path) -> Option<PathBuf> {
        if self.is_unresolved(path) {
            return None;
        }
        path.ancestors().find_map(|above| {
            let target = self.targets.get(above)?;
            let rest = path.strip_prefix(above).ok()?;
            Some(if rest.as_os_str().is_empty() { target.clone() } else { target.join(rest) })
        })
    }

    fn is_unresolved(&self, path: &Path) -> bool {
        path.ancestors().any(|above| self.unresolved.contains(above))
    }

    /// Fails unless the open file has the recorded identity.
    fn compare(&self, action: &str, target: &Path, file: impl AsFd) -> Result<(), EnvError> {
        let Some(seen) = self.lock_seen().get(target).copied() else { return Ok(()) };
        let found = fstat(file).map_err(|errno| EnvError::from_io("look at", target, errno.into()))?;
        if seen == Some(found.into()) { Ok(()) } else { Err(replaced(action, target)) }
    }

    fn lock_seen(&self) -> MutexGuard<'_, BTreeMap<PathBuf, Option<Identity>>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ResolvedPath {
    /// Resolves an absolute path; `None` if it is unresolvable or its directory is inaccessible.
    fn resolve(path: &Path) -> Result<Option<Self>, EnvError> {
        for _ in 0..MAX_ATTEMPTS {
            match Self::resolve_once(path) {
                Ok(resolved) => return Ok(Some(resolved)),
                // A component was replaced by a link: try again.
                Err(EnvError::Refused { .. }) => {}
                Err(error) if error.is_shortage() => return Err(error),
                Err(_inaccessible) => return Ok(None),
            }
        }
        Err(replaced("looking at", path))
    }

    fn resolve_once(path: &Path) -> Result<Self, EnvError> {
        let (parent, own) = match (path.parent(), path.file_name()) {
            (Some(parent), Some(name)) => {
                let parent = canonicalize(parent)?;
                let own = parent.join(name);
                (parent, own)
            }
            (_, _) => (path.to_path_buf(), path.to_path_buf()),
        };
        let of_name = nearest_directory(&parent)?;
        // The last name is looked up in that directory, not by the path again.
        let target = match AllowedRoots::without_links([of_name.clone()]).read_link(&own)? {
            Some(_) => canonicalize(&own)?,
            None => own,
        };
        let of_target = nearest_directory(target.parent().unwrap_or(&target))?;
        let held = AllowedRoots::without_links([of_name.clone(), of_target.clone()]);
        let object = match held.open("looking at", &target) {
            Ok(object) => Some(object),
            Err(EnvError::NotFound { .. }) => None,
            Err(error) => return Err(error),
        };
        let stat = object.as_ref().and_then(|object| fstat(object).ok());
        let mut directories = vec![of_name, of_target];
        // A search starts at the directory itself.
        if let Some(object) = object
            && stat
                .is_some_and(|stat| SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT == SFlag::S_IFDIR)
        {
            directories.push((target.clone(), Arc::new(object)));
        }
        Ok(Self { parent, target, directories, identity: stat.map(Identity::from) })
    }
}

/// Opens a directory whose path has no links, or the nearest one above that exists.
fn nearest_directory(path: &Path) -> Result<(PathBuf, Arc<OwnedFd>), EnvError> {
    let all = AllowedRoots::without_links([]);
    let mut above = path;
    loop {
        match (all.open("looking at", above), above.parent()) {
            (Err(EnvError::NotFound { .. }), Some(next)) => above = next,
            (opened, _) => return Ok((above.to_path_buf(), Arc::new(opened?))),
        }
    }
}
