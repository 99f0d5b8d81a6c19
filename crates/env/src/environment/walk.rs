//! Walk and reads on top of the primitives, for environments that cannot do them faster.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::time::Instant;

use super::{
    ExecutionEnvironment, expect_directory,
    search::walk::{rules_above, rules_of},
};
use crate::{
    error::EnvError,
    file::{DirEntry, FileKind},
    search::ignore_rules::{IgnoreRules, REPOSITORY},
    walk::{EntryKind, FileContent, ReadLimits, WalkEntry, WalkLimit, WalkOutput, WalkRequest},
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

/// Implements [`ExecutionEnvironment::read_many`] on top of the primitives.
pub(crate) async fn read_many<E: ExecutionEnvironment + ?Sized>(
    env: &E,
    paths: &[PathBuf],
    limits: ReadLimits,
) -> Result<Vec<FileContent>, EnvError> {
    let mut contents = Vec::with_capacity(paths.len());
    let mut read = 0_u64;
    for path in paths {
        if read > 0 && read >= limits.total {
            contents.push(FileContent::Skipped);
            continue;
        }
        let content = read_one(env, path, limits.file).await?;
        if let FileContent::Bytes(bytes) = &content {
            let total = read.saturating_add(bytes.len() as u64);
            if total > limits.total && read > 0 {
                contents.push(FileContent::Skipped);
                read = limits.total;
                continue;
            }
            read = total;
        }
        contents.push(content);
    }
    Ok(contents)
}

async fn read_one<E: ExecutionEnvironment + ?Sized>(
    env: &E,
    path: &Path,
    limit: u64,
) -> Result<FileContent, EnvError> {
    let path = env.resolve(path);
    if is_link(env, &path).await? {
        return Ok(FileContent::NotAFile);
    }
    // One byte beyond the limit shows that there is more.
    match env.read(&path, Some(0..limit.saturating_add(1))).await {
        Ok(bytes) if bytes.len() as u64 > limit => Ok(FileContent::TooLarge),
        Ok(bytes) => Ok(FileContent::Bytes(bytes)),
        Err(lost) if lost.is_environment_failure() => Err(lost),
        Err(error) => Ok(content_of_error(&error)),
    }
}

/// Returns whether the path is a link. The primitives that look at one path follow links, so its directory is listed.
async fn is_link<E: ExecutionEnvironment + ?Sized>(env: &E, path: &Path) -> Result<bool, EnvError> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Ok(false) };
    match env.canonicalize(path).await {
        Ok(canonical) => match env.canonicalize(parent).await {
            Ok(parent) => Ok(canonical != parent.join(name)),
            Err(lost) if lost.is_environment_failure() => Err(lost),
            Err(_unknown) => Ok(false),
        },
        Err(lost) if lost.is_environment_failure() => Err(lost),
        Err(_unsupported) => match env.list(parent).await {
            Ok(entries) => Ok(entries.iter().any(|entry| entry.is_symlink && entry.name == Path::new(name))),
            Err(lost) if lost.is_environment_failure() => Err(lost),
            Err(_unknown) => Ok(false),
        },
    }
}

/// Converts the error of a read.
pub(crate) fn content_of_error(error: &EnvError) -> FileContent {
    match error {
        EnvError::NotFound { .. } | EnvError::NotADirectory { .. } => FileContent::Missing,
        EnvError::IsADirectory { .. } | EnvError::NotARegularFile { .. } => FileContent::NotAFile,
        EnvError::TooLarge { .. } => FileContent::TooLarge,
        EnvError::PermissionDenied { .. }
        | EnvError::ReadOnlyFile { .. }
        | EnvError::InvalidPath { .. }
        | EnvError::InvalidPattern { .. }
        | EnvError::NotText { .. }
        | EnvError::TooManyEntries { .. }
        | EnvError::Spawn { .. }
        | EnvError::Stuck { .. }
        | EnvError::Unreachable { .. }
        | EnvError::EnvironmentLost { .. }
        | EnvError::Unsupported { .. }
        | EnvError::Refused { .. }
        | EnvError::Io { .. } => FileContent::Unreadable,
    }
}

/// Implements [`ExecutionEnvironment::create_directory`] on top of the primitives: a file is written into the directory
/// and removed again, which leaves its parents.
pub(crate) async fn create_directory<E: ExecutionEnvironment + ?Sized>(
    env: &E,
    path: &Path,
) -> Result<(), EnvError> {
    let path = env.resolve(path);
    match env.metadata(&path).await {
        Ok(metadata) if metadata.is_dir() => return Ok(()),
        Ok(_) => return Err(EnvError::NotADirectory { path }),
        Err(EnvError::NotFound { .. }) => {}
        Err(error) => return Err(error),
    }
    let file = path.join(".pintle-directory");
    env.write(&file, b"").await.map_err(|error| error.map_path(|_| path.clone()))?;
    env.remove(&file).await
}
