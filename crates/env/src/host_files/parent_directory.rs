//! Directories above a file that is created.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::error::EnvError;

/// An existing directory, possibly just created. Created directories are removed on drop unless
/// they are kept or no longer empty.
#[derive(Debug)]
pub(super) struct ParentDirectory {
    pub(super) path: PathBuf,
    /// The created directories, outermost first.
    created: Vec<PathBuf>,
}

impl ParentDirectory {
    /// Keeps the created directories.
    pub(super) fn keep(mut self) -> PathBuf {
        self.created.clear();
        std::mem::take(&mut self.path)
    }

    /// Creates the directory with its missing parents.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        let mut directory = Self { path: path.to_path_buf(), created: Vec::new() };
        let mut missing = Vec::new();
        for above in path.ancestors() {
            if directory.create_one(above)? {
                break;
            }
            missing.push(above);
        }
        for below in missing.into_iter().rev() {
            if !directory.create_one(below)? {
                return Err(io::ErrorKind::NotFound.into());
            }
        }
        Ok(directory)
    }

    /// Creates one directory unless it exists; returns false if its parent is missing.
    fn create_one(&mut self, path: &Path) -> io::Result<bool> {
        match fs::create_dir(path) {
            Ok(()) => {
                self.created.push(path.to_path_buf());
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(_) if path.is_dir() => Ok(true),
            Err(error) => Err(error),
        }
    }
}

impl Drop for ParentDirectory {
    fn drop(&mut self) {
        for path in self.created.iter().rev() {
            if let Err(error) = fs::remove_dir(path) {
                tracing::debug!(path = %path.display(), %error, "cannot remove a created directory");
            }
        }
    }
}

/// Creates the directories above `path`.
pub(super) fn create_parent(path: &Path) -> Result<ParentDirectory, EnvError> {
    let parent = path.parent().unwrap_or(Path::new("/"));
    match ParentDirectory::create(parent) {
        Ok(directory) => Ok(directory),
        // A file in place of a directory is reported as existing.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Err(EnvError::NotADirectory { path: parent.to_path_buf() })
        }
        Err(source) => Err(EnvError::from_io("create", parent, source)),
    }
}
