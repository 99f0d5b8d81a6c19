//! Recursive listing on top of [`ExecutionEnvironment::list`].

use std::path::Path;

use crate::{
    environment::ExecutionEnvironment,
    error::EnvError,
    file::{DirEntry, MAX_ENTRIES},
};

/// Lists the entries below `path`, each directory before its own entries.
pub(crate) async fn list_directory<E: ExecutionEnvironment + ?Sized>(
    env: &E,
    path: &Path,
    depth: usize,
) -> Result<Vec<DirEntry>, EnvError> {
    let root = env.resolve(path);
    let mut listed = Vec::new();
    // Entries to visit with their depth; the next one is last.
    let mut pending = children(env, &root, Path::new(""), 1).await?;
    while let Some((entry, level)) = pending.pop() {
        if listed.len() == MAX_ENTRIES {
            return Err(EnvError::TooManyEntries { path: root, limit: MAX_ENTRIES });
        }
        if entry.is_dir && level < depth {
            // A directory that disappears or cannot be read is listed without its entries.
            match children(env, &root, &entry.name, level + 1).await {
                Ok(below) => {
                    listed.push(entry);
                    pending.extend(below);
                    continue;
                }
                Err(EnvError::NotFound { .. } | EnvError::PermissionDenied { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        listed.push(entry);
    }
    Ok(listed)
}

/// Lists one directory with names relative to `root`; the first entry is last.
async fn children<E: ExecutionEnvironment + ?Sized>(
    env: &E,
    root: &Path,
    directory: &Path,
    level: usize,
) -> Result<Vec<(DirEntry, usize)>, EnvError> {
    let mut entries = env.list(&root.join(directory)).await?;
    for entry in &mut entries {
        entry.name = directory.join(&entry.name);
    }
    Ok(entries.into_iter().rev().map(|entry| (entry, level)).collect())
}
