//! A cache of facts about directories.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use pintle_env::ExecutionEnvironment;

/// Facts about directories, each requested only once.
pub(super) struct DirectoryCache<'a> {
    env: &'a dyn ExecutionEnvironment,
    /// Whether a path is a directory.
    directories: BTreeMap<PathBuf, bool>,
    /// The names of the symbolic links in each directory.
    links: BTreeMap<PathBuf, BTreeSet<OsString>>,
}

impl<'a> DirectoryCache<'a> {
    pub(super) fn new(env: &'a dyn ExecutionEnvironment) -> Self {
        Self { env, directories: BTreeMap::new(), links: BTreeMap::new() }
    }

    /// Returns the nearest existing ancestor of a path, and the missing directories below it, the outermost first.
    pub(super) async fn existing_ancestor(&mut self, path: &str) -> (PathBuf, Vec<PathBuf>) {
        let path = self.env.resolve(Path::new(path));
        let mut missing = Vec::new();
        for directory in path.ancestors().skip(1) {
            if self.is_directory(directory).await {
                missing.reverse();
                return (directory.to_path_buf(), missing);
            }
            missing.push(directory.to_path_buf());
        }
        // No ancestor exists, not even the root, so there is nothing to create.
        (self.env.working_directory().to_path_buf(), Vec::new())
    }

    /// Returns whether the path is a symbolic link.
    pub(super) async fn is_link(&mut self, path: &Path) -> bool {
        let path = self.env.resolve(path);
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return false };
        if !self.links.contains_key(parent) {
            // If the directory cannot be listed, assume that there are no links.
            let entries = self.env.list(parent).await.unwrap_or_default();
            let links = entries.into_iter().filter(|entry| entry.is_symlink);
            let names = links.map(|entry| entry.name.into_os_string()).collect();
            self.links.insert(parent.to_path_buf(), names);
        }
        self.links.get(parent).is_some_and(|links| links.contains(name))
    }

    async fn is_directory(&mut self, path: &Path) -> bool {
        if let Some(known) = self.directories.get(path) {
            return *known;
        }
        let found = self.env.metadata(path).await.is_ok_and(|metadata| metadata.is_dir());
        self.directories.insert(path.to_path_buf(), found);
        found
    }
}
