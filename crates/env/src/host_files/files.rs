//! Access to local files, by name or by held paths.

#[cfg(target_os = "linux")]
use std::sync::Arc;
use std::{
    fs::File,
    ops::Range,
    path::{Path, PathBuf},
};

#[cfg(target_os = "linux")]
use super::held::HeldPaths;
use super::{tree, walk_cache::WalkCache};
use crate::{
    blocking::CancelFlag,
    error::EnvError,
    file::{DirEntry, Metadata},
    host_files,
    walk::{FileContent, ReadLimits, WalkOutput, WalkRequest},
};

/// Files of this machine. Every function blocks.
#[derive(Clone, Debug)]
pub(crate) enum Files {
    /// Paths are resolved at each operation.
    Named,
    /// Paths were resolved once.
    #[cfg(target_os = "linux")]
    Held(Arc<HeldPaths>),
}

/// Dispatches to the named or the held implementation.
macro_rules! by {
    ($files:ident, $function:ident($($argument:expr),*)) => {
        match $files {
            Files::Named => host_files::$function($($argument),*),
            #[cfg(target_os = "linux")]
            Files::Held(held) => held.$function($($argument),*),
        }
    };
}

impl Files {
    /// Returns these files with absolute paths resolved now; `None` where that is impossible.
    #[cfg(target_os = "linux")]
    pub(crate) fn hold(paths: &[PathBuf]) -> Result<Option<Self>, EnvError> {
        if !super::beneath::is_available() {
            return Ok(None);
        }
        Ok(Some(Self::Held(Arc::new(HeldPaths::hold(paths)?))))
    }

    /// Returns these files with absolute paths resolved now; `None` where that is impossible.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn hold(_paths: &[PathBuf]) -> Result<Option<Self>, EnvError> {
        Ok(None)
    }

    pub(crate) fn read(&self, path: &Path, range: Option<Range<u64>>) -> Result<Vec<u8>, EnvError> {
        by!(self, read(path, range))
    }

    /// Opens a regular file for reading.
    pub(crate) fn open(&self, path: &Path) -> Result<File, EnvError> {
        by!(self, open(path))
    }

    pub(crate) fn write(&self, path: &Path, bytes: &[u8], cancelled: &CancelFlag) -> Result<(), EnvError> {
        by!(self, write(path, bytes, cancelled))
    }

    pub(crate) fn metadata(&self, path: &Path) -> Result<Metadata, EnvError> {
        by!(self, metadata(path))
    }

    pub(crate) fn list(&self, path: &Path, limit: usize) -> Result<Vec<DirEntry>, EnvError> {
        by!(self, list(path, limit))
    }

    pub(crate) fn remove(&self, path: &Path) -> Result<(), EnvError> {
        by!(self, remove(path))
    }

    pub(crate) fn rename(&self, from: &Path, to: &Path) -> Result<(), EnvError> {
        by!(self, rename(from, to))
    }

    pub(crate) fn canonicalize(&self, path: &Path) -> Result<PathBuf, EnvError> {
        by!(self, canonicalize(path))
    }

    pub(crate) fn create_directory(&self, path: &Path) -> Result<(), EnvError> {
        by!(self, create_directory(path))
    }

    pub(crate) fn create_symlink(&self, path: &Path, target: &Path) -> Result<(), EnvError> {
        by!(self, create_symlink(path, target))
    }

    pub(crate) fn set_mode(&self, path: &Path, mode: u32) -> Result<(), EnvError> {
        by!(self, set_mode(path, mode))
    }

    /// Reads files without following a link as the last component of a path.
    pub(crate) fn read_many(
        &self,
        paths: &[PathBuf],
        limits: ReadLimits,
        cancelled: &CancelFlag,
    ) -> Result<Vec<FileContent>, EnvError> {
        match self {
            Self::Named => tree::read_many(paths, limits, &tree::open_file, cancelled),
            #[cfg(target_os = "linux")]
            Self::Held(held) => tree::read_many(paths, limits, &|path| held.open_itself(path), cancelled),
        }
    }

    /// Walks the tree below a root, which is absolute. The walk of the working directory may be the latest one in `cache`.
    pub(crate) fn walk(
        &self,
        request: &WalkRequest,
        working_directory: &Path,
        cancelled: &CancelFlag,
        cache: Option<&WalkCache>,
    ) -> Result<WalkOutput, EnvError> {
        let cache = cache.filter(|_| request.root == working_directory);
        // Before the rules above are read, so that a later change of them is found.
        let mut cached = cache.and_then(|cache| cache.start(&request.root));
        let above = tree::rules_above(&request.root, working_directory);
        by!(self, walk(request, above.as_ref(), cancelled, cached.as_mut()))
    }
}
