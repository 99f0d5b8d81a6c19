//! The walk on top of the primitives, for environments that cannot do it faster.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::time::Instant;

use super::walk::{rules_above, rules_of};
use crate::{
    environment::{ExecutionEnvironment, expect_directory},
    error::EnvError,
    file::{DirEntry, FileKind},
    search::ignore_rules::{IgnoreRules, REPOSITORY},
    walk::{EntryKind, WalkEntry, WalkLimit, WalkOutput, WalkRequest},
};

/// A directory to visit.
struct Directory {
    relative: PathBuf,
    /// The rules of its parent.
    rules: Option<Arc<IgnoreRules>>,
}

/// Implements [`ExecutionEnvironment::walk`] on top of the primitives. The targets of links are not known.
pub(crate) async fn walk<E: ExecutionEnvironment + ?Sized>(
    env: &E,
    request: &WalkRequest,
) -> Result<WalkOutput, EnvError> {
    let root = env.resolve(&request.root);
    expect_directory(env, &root).await?;
    let deadline = request.time_limit.map(|limit| Instant::now() + limit);
    let is_late = || deadline.is_some_and(|deadline| Instant::now() >= deadline);
    let rules = rules_above(env, &root).await?;
    let mut output = WalkOutput::default();
    let mut pending = vec![Directory { relative: PathBuf::new(), rules }];
    while let Some(directory) = pending.pop() {
        // Joining an empty path would append a slash.
        let path = if directory.relative.as_os_str().is_empty() {
            root.clone()
        } else {
            root.join(&directory.relative)
        };
        let entries = match env.list(&path).await {
            Ok(entries) => entries,
            Err(lost) if lost.is_environment_failure() => return Err(lost),
            // It was removed since it was listed.
            Err(EnvError::NotFound { .. } | EnvError::NotADirectory { .. }) => continue,
            Err(_unreadable) => {
                output.unreadable.push(directory.relative);
                continue;
            }
        };
        let rules = rules_of(env, &path, directory.rules.as_ref(), &entries).await?;
        for entry in entries {
            let absolute = path.join(&entry.name);
            if entry.name == Path::new(REPOSITORY) {
                continue;
            }
            let is_ignored = rules.excludes(&absolute, entry.is_dir);
            let found = if is_ignored { output.ignored.len() } else { output.entries.len() };
            if is_late() {
                output.reached = Some(WalkLimit::Time);
            } else if found >= request.max_entries {
                output.reached = Some(WalkLimit::Entries);
            }
            if output.reached.is_some() {
                output.sort_and_limit(request.max_entries);
                return Ok(output);
            }
            let relative = directory.relative.join(&entry.name);
            if is_ignored {
                output.ignored.push(relative);
                continue;
            }
            let Some(found) = look_at(env, &absolute, &entry, relative).await? else { continue };
            if found.kind == EntryKind::Directory {
                let relative = found.path.clone();
                pending.push(Directory { relative, rules: Some(Arc::clone(&rules)) });
            }
            output.entries.push(found);
        }
    }
    output.sort_and_limit(request.max_entries);
    Ok(output)
}

/// Returns the entry of a walk for an entry of a directory; `None` if it has disappeared.
async fn look_at<E: ExecutionEnvironment + ?Sized>(
    env: &E,
    absolute: &Path,
    entry: &DirEntry,
    relative: PathBuf,
) -> Result<Option<WalkEntry>, EnvError> {
    if entry.is_symlink {
        return Ok(Some(WalkEntry::new(relative, EntryKind::Symlink)));
    }
    let kind = match (entry.is_dir, entry.size) {
        (true, _) => EntryKind::Directory,
        (false, Some(_)) => EntryKind::File,
        (false, None) => EntryKind::Other,
    };
    let found = WalkEntry::new(relative, kind).with_size(entry.size.unwrap_or(0));
    if kind == EntryKind::Other {
        return Ok(Some(found));
    }
    match env.metadata(absolute).await {
        Ok(metadata) => {
            // It may have become a link, or a file in place of a directory, since it was listed.
            let is_same = (metadata.kind == FileKind::Directory) == (kind == EntryKind::Directory);
            let found = found.with_mode(metadata.mode).with_identity(metadata.identity);
            let size = if kind == EntryKind::File { metadata.len } else { 0 };
            Ok(is_same.then(|| found.with_size(size)))
        }
        Err(lost) if lost.is_environment_failure() => Err(lost),
        Err(EnvError::NotFound { .. } | EnvError::NotADirectory { .. }) => Ok(None),
        Err(_unknown) => Ok(Some(found)),
    }
}
