//! The view of the file system that a command has at the level *full*.
//!
//! Everything is mounted read-only; the paths of the rules are mounted over it, parents before
//! children, so that the most specific one decides. A mount point cannot be removed or renamed by a
//! command, but a directory above it can, which would take the mount along and leave the path free:
//! the directories between a writable root and a hidden or protected path are therefore mounted on
//! themselves.

mod sockets;

use std::{
    collections::BTreeMap,
    fs::{self, Metadata},
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use super::{
    placeholders::{Placeholder, Placeholders},
    rules::{REPLACED, Rules},
};
use crate::{error::EnvError, host_files::MAX_LINKS};

/// Directories that are private to commands. All others of the host are visible.
pub(super) const TEMPORARY: [&str; 2] = ["/tmp", "/var/tmp"];

/// Directories of sockets and other state of services, empty for commands.
const RUNTIME: [&str; 2] = ["/run", "/var/run"];

/// Subdirectories of these that hold programs and libraries (NixOS).
const RUNTIME_PROGRAMS: [&str; 3] = ["/run/current-system", "/run/opengl-driver", "/run/wrappers"];

/// Names of hosts, looked up in the network.
const RESOLVER: &str = "/etc/resolv.conf";

/// How a path is mounted. The greatest one applies if there are several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum View {
    /// As its parent, but not to be renamed.
    Pinned,
    /// Of the host, read-only.
    ReadOnly,
    /// Empty and private to the command, writable.
    Temporary,
    /// Empty.
    Empty,
    /// Of the host, writable.
    Writable,
    /// Of the host, read-only even within a writable directory.
    Protected,
    HiddenDirectory,
    HiddenFile,
}

impl View {
    /// Returns true if the host's files below the path are not visible.
    fn covers(self) -> bool {
        match self {
            Self::Temporary | Self::Empty | Self::HiddenDirectory | Self::HiddenFile => true,
            Self::Pinned | Self::ReadOnly | Self::Writable | Self::Protected => false,
        }
    }
}

/// The mounts of a command, parents before children.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Mounts(BTreeMap<PathBuf, View>);

impl Mounts {
    /// Determines the mounts. Creates missing protected paths.
    ///
    /// # Errors
    ///
    /// [`EnvError::NotFound`] for a writable root; [`EnvError::Refused`] for a path that cannot be
    /// protected or hidden.
    pub(super) fn new(rules: &Rules, placeholders: &Placeholders) -> Result<Self, EnvError> {
        let mut mounts = Self::default();
        mounts.add_private_directories(rules)?;
        let mut roots = Vec::new();
        for root in rules.roots() {
            let canonical = canonical_root(rules, root)?;
            mounts.add(canonical.clone(), View::Writable);
            roots.push(canonical);
        }
        for root in &rules.readable {
            mounts.add(canonical_root(rules, root)?, View::ReadOnly);
        }
        // A command in a removed directory is refused earlier, a command elsewhere is not.
        if let Ok(directory) = rules.working_directory.canonicalize()
            && mounts.nearest(&directory).is_some_and(View::covers)
        {
            mounts.add(directory, View::ReadOnly);
        }
        for path in &rules.hidden {
            mounts.hide(path, &roots)?;
        }
        for path in &rules.protected {
            mounts.protect(path, &roots, placeholders)?;
        }
        if rules.unix_sockets {
            for socket in sockets::bound().into_iter().filter_map(|path| path.canonicalize().ok()) {
                placeholders.note_socket(&socket);
                mounts.cover(socket, View::HiddenFile);
            }
        }
        Ok(mounts)
    }

    /// Checks that commands cannot replace a program.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::PermissionDenied`] if they can.
    pub(super) fn refuse_writable(&self, program: &Path) -> io::Result<()> {
        let canonical = program.canonicalize()?;
        let is_writable = |path: &Path| self.nearest(path) == Some(View::Writable);
        if is_writable(program) || is_writable(&canonical) {
            let message = format!("{} is writable for sandboxed commands", program.display());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
        }
        Ok(())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Path, View)> {
        self.0.iter().map(|(path, view)| (path.as_path(), *view))
    }

    fn add_private_directories(&mut self, rules: &Rules) -> Result<(), EnvError> {
        for (directories, view) in [(TEMPORARY, View::Temporary), (RUNTIME, View::Empty)] {
            for directory in directories.map(Path::new) {
                // Where it is a link, its target is covered.
                if metadata(directory)?.is_some_and(|metadata| metadata.is_dir()) {
                    self.add(directory.to_path_buf(), view);
                }
            }
        }
        let resolver = rules.network.then_some(RESOLVER);
        for visible in RUNTIME_PROGRAMS.into_iter().chain(resolver) {
            if let Ok(visible) = Path::new(visible).canonicalize()
                && self.nearest(&visible).is_some_and(View::covers)
            {
                self.add(visible, View::ReadOnly);
            }
        }
        Ok(())
    }

    fn add(&mut self, path: PathBuf, view: View) {
        let known = self.0.entry(path).or_insert(view);
        *known = view.max(*known);
    }

    /// Adds a view of a path unless the host's files there are already invisible.
    fn cover(&mut self, path: PathBuf, view: View) {
        if !path.parent().and_then(|parent| self.nearest(parent)).is_some_and(View::covers) {
            self.add(path, view);
        }
    }

    /// Returns the view that applies at a path: its own view, else the view of its nearest parent.
    fn nearest(&self, path: &Path) -> Option<View> {
        let views = path.ancestors().filter_map(|path| self.0.get(path).copied());
        views.into_iter().find(|view| *view != View::Pinned)
    }

    fn hide(&mut self, path: &Path, roots: &[PathBuf]) -> Result<(), EnvError> {
        let path = match resolve_existing(path) {
            Ok(Some(path)) => path,
            Ok(None) => return Ok(()),
            // Commands cannot read it either, unless they change the mode of the directory.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => match closed_directory(path) {
                Some(directory) => directory,
                None => return Ok(()),
            },
            Err(error) => return Err(refused("hiding", path, &error.to_string())),
        };
        let Some(metadata) = metadata(&path)? else { return Ok(()) };
        let view = if metadata.is_dir() { View::HiddenDirectory } else { View::HiddenFile };
        if let Some((root, names)) = within(&path, roots) {
            self.pin(root, names.parent().unwrap_or(Path::new("")));
        }
        self.cover(path, view);
        Ok(())
    }

    /// Mounts the directories below `root` on themselves.
    fn pin(&mut self, root: &Path, names: &Path) {
        let mut path = root.to_path_buf();
        for name in names {
            path.push(name);
            if self.nearest(&path) == Some(View::Writable) {
                self.add(path.clone(), View::Pinned);
            }
        }
    }

    /// Makes a path within a writable root read-only. Outside, it is already.
    fn protect(
        &mut self,
        path: &Path,
        roots: &[PathBuf],
        placeholders: &Placeholders,
    ) -> Result<(), EnvError> {
        let Some((root, names)) = locate(path, roots) else {
            return Ok(());
        };
        let (mut path, mut parents) = (root.clone(), PathBuf::new());
        let mut names = names.iter().peekable();
        if names.peek().is_none() {
            self.add(path, View::Protected);
            return Ok(());
        }
        while let Some(name) = names.next() {
            path.push(name);
            let is_last = names.peek().is_none();
            let found = match metadata(&path)? {
                Some(metadata) => metadata,
                None => {
                    let kind = if is_last { Placeholder::File } else { Placeholder::Directory };
                    placeholders.create(&path, kind)?;
                    break;
                }
            };
            if found.is_symlink() {
                return Err(refused("protecting", &path, "it is a link, which a command could replace"));
            }
            placeholders.adopt(&path, &found);
            // A file instead of a directory keeps everything below it from being created.
            if is_last || !found.is_dir() || placeholders.is_empty(&path, &found) {
                break;
            }
            parents.push(name);
        }
        self.pin(&root, &parents);
        self.cover(path, View::Protected);
        Ok(())
    }
}

/// Returns the most specific root above a canonical path, and the names below it.
fn within<'a>(path: &'a Path, roots: &'a [PathBuf]) -> Option<(&'a PathBuf, &'a Path)> {
    let above = roots.iter().filter_map(|root| Some((root, path.strip_prefix(root).ok()?)));
    above.min_by_key(|(_, names)| names.components().count())
}

/// Returns the root above a path, and the names below it without following links among these.
pub(super) fn locate(path: &Path, roots: &[PathBuf]) -> Option<(PathBuf, PathBuf)> {
    let directly = path.ancestors().find_map(|above| {
        let canonical = above.canonicalize().ok()?;
        let root = roots.iter().find(|root| **root == canonical)?;
        Some((root.clone(), path.strip_prefix(above).ok()?.to_path_buf()))
    });
    directly.or_else(|| {
        let canonical = path.canonicalize().ok()?;
        within(&canonical, roots).map(|(root, names)| (root.clone(), names.to_path_buf()))
    })
}

/// Resolves all links of a path; `None` if it leads to nothing.
///
/// Most hidden paths do not exist, which one system call shows. Resolving links takes one for each directory.
pub(super) fn resolve_existing(path: &Path) -> io::Result<Option<PathBuf>> {
    match fs::symlink_metadata(path).and_then(|_| path.canonicalize()) {
        Ok(path) => Ok(Some(path)),
        Err(error) if is_missing(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns metadata of a path, without following a link; `None` if there is nothing.
fn metadata(path: &Path) -> Result<Option<Metadata>, EnvError> {
    match fs::symlink_metadata(path) {
        Ok(metadata) => Ok(Some(metadata)),
        Err(error) if is_missing(&error) => Ok(None),
        Err(error) => Err(EnvError::from_io("inspect", path, error)),
    }
}

/// Returns the directory that this process may not search on the way to a path, also through links; `None` if it may by now.
fn closed_directory(path: &Path) -> Option<PathBuf> {
    let mut path = path.to_path_buf();
    for _ in 0..MAX_LINKS {
        let mut parents = path.ancestors().zip(path.ancestors().skip(1));
        let (name, directory) =
            parents.find_map(|(name, parent)| Some((name, parent.canonicalize().ok()?)))?;
        match fs::symlink_metadata(name) {
            // Its target is behind the closed directory.
            Ok(found) if found.is_symlink() => {
                let target = directory.join(fs::read_link(name).ok()?);
                let rest = path.strip_prefix(name).ok()?;
                path = target.components().chain(rest.components()).collect();
            }
            Ok(_) => return None,
            Err(_) => return Some(directory),
        }
    }
    None
}

/// Returns the path of a root, unless it names another directory than when it was added.
fn canonical_root(rules: &Rules, root: &Path) -> Result<PathBuf, EnvError> {
    let canonical = canonicalize(root)?;
    match metadata(&canonical)? {
        Some(found) if rules.is_replaced(root, (found.dev(), found.ino())) => {
            Err(refused("writing below", root, REPLACED))
        }
        Some(_) | None => Ok(canonical),
    }
}

/// Returns the directories in which commands see other files than the user.
pub(super) fn private_directories() -> impl Iterator<Item = &'static Path> {
    TEMPORARY.into_iter().chain(RUNTIME).map(Path::new)
}

fn canonicalize(path: &Path) -> Result<PathBuf, EnvError> {
    path.canonicalize().map_err(|error| EnvError::from_io("mount", path, error))
}

fn is_missing(error: &io::Error) -> bool {
    [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory].contains(&error.kind())
}

fn refused(operation: &str, path: &Path, reason: &str) -> EnvError {
    EnvError::Refused { operation: format!("{operation} {}", path.display()), reason: reason.to_owned() }
}

#[cfg(test)]
mod tests;
