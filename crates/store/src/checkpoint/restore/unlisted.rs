//! Finds the entries of a directory that are missing from its checkpoint, such as ignored files.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use pintle_env::{EnvError, ExecutionEnvironment};

use super::super::error::CheckpointError;
use super::super::manifest::{Manifest, ManifestEntry, Presence};

/// Names in the directories of a workspace, which are listed on demand.
pub(in crate::checkpoint) struct UnlistedPaths<'a> {
    env: &'a dyn ExecutionEnvironment,
    root: &'a Path,
    names: HashMap<PathBuf, Names>,
}

/// Names in a directory; `None` if they cannot be listed.
type Names = Option<BTreeSet<PathBuf>>;

impl<'a> UnlistedPaths<'a> {
    pub(in crate::checkpoint) fn new(env: &'a dyn ExecutionEnvironment, root: &'a Path) -> Self {
        Self { env, root, names: HashMap::new() }
    }

    /// Returns the path that prevents the creation of `path`: an existing unlisted path that is `path` or above it.
    ///
    /// `is_directory` returns whether a listed path is a directory, and `None` for an unlisted path.
    pub(in crate::checkpoint) async fn in_the_way(
        &mut self,
        path: &Path,
        is_directory: &(dyn Fn(&Path) -> Option<bool> + Sync),
    ) -> Result<Option<PathBuf>, CheckpointError> {
        let mut above: Vec<_> = path.ancestors().filter(|part| !part.as_os_str().is_empty()).collect();
        above.reverse();
        for part in above {
            match is_directory(part) {
                Some(true) => {}
                // The plan replaces it.
                Some(false) => return Ok(None),
                None => {
                    let parent = part.parent().unwrap_or(Path::new(""));
                    let exists = match (self.names_in(parent).await?, part.file_name()) {
                        (Some(names), Some(name)) => names.contains(Path::new(name)),
                        // A path that cannot be listed may exist.
                        (None, _) | (_, None) => true,
                    };
                    return Ok(exists.then(|| part.to_path_buf()));
                }
            }
        }
        Ok(None)
    }

    /// Returns a path below a directory that a restore does not remove.
    pub(in crate::checkpoint) async fn remaining(
        &mut self,
        directory: &Path,
        present: &Manifest,
        target: &Manifest,
    ) -> Result<Option<PathBuf>, CheckpointError> {
        let mut pending = vec![directory.to_path_buf()];
        while let Some(directory) = pending.pop() {
            let Some(names) = self.names_in(&directory).await? else { return Ok(Some(directory)) };
            let paths: Vec<_> = names.iter().map(|name| directory.join(name)).collect();
            for path in paths {
                let is_removed = target.presence(&path) == Presence::Absent;
                match present.presence(&path) {
                    Presence::Known(entry) if is_removed => {
                        if ManifestEntry::is_directory(entry) {
                            pending.push(path);
                        }
                    }
                    Presence::Known(_)
                    | Presence::Opaque(_)
                    | Presence::Unlisted
                    | Presence::Ignored(_)
                    | Presence::Absent => {
                        return Ok(Some(path));
                    }
                }
            }
        }
        Ok(None)
    }

    async fn names_in(&mut self, directory: &Path) -> Result<&Names, CheckpointError> {
        if !self.names.contains_key(directory) {
            let names = match self.env.list(&self.root.join(directory)).await {
                Ok(entries) => Some(entries.into_iter().map(|entry| entry.name).collect()),
                Err(EnvError::NotFound { .. } | EnvError::NotADirectory { .. }) => Some(BTreeSet::new()),
                Err(error @ (EnvError::EnvironmentLost { .. } | EnvError::Unreachable { .. })) => {
                    return Err(error.into());
                }
                Err(_unreadable) => None,
            };
            self.names.insert(directory.to_path_buf(), names);
        }
        Ok(self.names.get(directory).unwrap_or(&None))
    }
}
