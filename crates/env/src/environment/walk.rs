//! Reads and new directories on top of the primitives, for environments that cannot do them faster.

use std::path::{Path, PathBuf};

use super::ExecutionEnvironment;
use crate::{
    error::EnvError,
    walk::{FileContent, ReadLimits},
};

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
