//! The steps of a transaction, and their inverses.

use std::path::{Path, PathBuf};

use pintle_env::{EnvError, ExecutionEnvironment};

use super::error::{ApplyPlanCause, UnrestoredFile};

/// The block size of most file systems, in bytes.
pub(super) const BLOCK: usize = 4096;

/// One operation on files, with the data to undo it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step<'a> {
    /// Reserves disk space for later writes with a temporary file; `path` is the largest of the written files.
    Reserve { path: &'a str, temporary: PathBuf, contents: Vec<&'a [u8]> },
    /// Releases that space.
    Release { path: &'a str, temporary: PathBuf },
    /// Checks that a file has the planned old content.
    Compare { path: &'a str, content: &'a [u8] },
    /// Renames a file that will be deleted to a temporary name.
    SetAside { path: &'a str, aside: PathBuf, content: &'a [u8] },
    /// Has no effect. Undoing it removes a directory that later writes create.
    Directory { path: &'a str, directory: PathBuf },
    /// Renames a file, which keeps its mode.
    Rename { from: &'a str, to: &'a str, content: &'a [u8] },
    /// Writes a file.
    Write { path: &'a str, old: Option<&'a [u8]>, new: &'a [u8] },
    /// Removes a file that was set aside.
    Discard { path: &'a str, aside: PathBuf, content: &'a [u8] },
    /// Removes a file directly, if no later step can fail.
    Remove { path: &'a str, content: &'a [u8] },
}

impl Step<'_> {
    /// Runs the step, if the files have the planned old contents.
    pub(super) async fn run(&self, env: &dyn ExecutionEnvironment) -> Result<(), ApplyPlanCause> {
        match self {
            Self::Reserve { temporary, contents, .. } => {
                ignore_closed(env.write(temporary, &padded_to_blocks(contents)).await)?;
            }
            Self::Release { temporary, .. } => ignore_missing(env.remove(temporary).await)?,
            Self::Compare { path, content } => expect(env, path, Some(content)).await?,
            Self::SetAside { path, aside, .. } => env.rename(Path::new(path), aside).await?,
            Self::Directory { .. } => {}
            Self::Rename { from, to, content } => {
                expect(env, from, Some(content)).await?;
                expect(env, to, None).await?;
                env.rename(Path::new(from), Path::new(to)).await?;
            }
            Self::Write { path, old, new } => {
                expect(env, path, *old).await?;
                env.write(Path::new(path), new).await?;
            }
            Self::Discard { aside, .. } => env.remove(aside).await?,
            Self::Remove { path, content } => {
                expect(env, path, Some(content)).await?;
                env.remove(Path::new(path)).await?;
            }
        }
        Ok(())
    }

    /// Undoes the step.
    pub(super) async fn undo(&self, env: &dyn ExecutionEnvironment) -> Result<(), EnvError> {
        match self {
            Self::Release { .. } | Self::Compare { .. } => Ok(()),
            // Usually the space was released already.
            Self::Reserve { temporary, .. } => ignore_missing(env.remove(temporary).await),
            Self::SetAside { path, aside, .. } => env.rename(aside, Path::new(path)).await,
            Self::Directory { directory, .. } => remove_if_empty(env, directory).await,
            Self::Rename { from, to, .. } => env.rename(Path::new(to), Path::new(from)).await,
            Self::Write { path, old: Some(old), .. } => env.write(Path::new(path), old).await,
            // Another process may have removed the file.
            Self::Write { path, old: None, .. } => ignore_missing(env.remove(Path::new(path)).await),
            Self::Discard { aside, content, .. } => env.write(aside, content).await,
            Self::Remove { path, content } => env.write(Path::new(path), content).await,
        }
    }

    /// Undoes a failed step that took effect, for example if the connection was lost before the response.
    pub(super) async fn retract(&self, env: &dyn ExecutionEnvironment) -> Result<(), EnvError> {
        let was_done = match self {
            // The temporary names are unique, so undoing is safe in any case.
            Self::Reserve { .. } | Self::SetAside { .. } => true,
            Self::Release { .. } | Self::Compare { .. } | Self::Directory { .. } => false,
            Self::Rename { from, to, content } => {
                has_content(env, from, None).await? && has_content(env, to, Some(content)).await?
            }
            Self::Write { path, old, new } => *old != Some(*new) && has_content(env, path, Some(new)).await?,
            Self::Discard { aside, .. } => has_content(env, aside, None).await?,
            Self::Remove { path, .. } => has_content(env, path, None).await?,
        };
        if was_done { ignore_missing(self.undo(env).await) } else { Ok(()) }
    }

    /// Returns the file of the plan.
    pub(super) fn path(&self) -> &str {
        match self {
            Self::Reserve { path, .. }
            | Self::Release { path, .. }
            | Self::Compare { path, .. }
            | Self::SetAside { path, .. }
            | Self::Directory { path, .. }
            | Self::Rename { to: path, .. }
            | Self::Write { path, .. }
            | Self::Discard { path, .. }
            | Self::Remove { path, .. } => path,
        }
    }

    /// Returns the file that stays changed if the step cannot be undone, with the path of its old content if it was
    /// only renamed.
    pub(super) fn left_changed(&self) -> Option<UnrestoredFile> {
        let (path, kept_at) = match self {
            Self::Reserve { .. } | Self::Release { .. } | Self::Compare { .. } | Self::Directory { .. } => {
                return None;
            }
            Self::SetAside { path, aside, .. } | Self::Discard { path, aside, .. } => {
                (path, Some(aside.clone()))
            }
            Self::Rename { from, to, .. } => (from, Some(PathBuf::from(to))),
            Self::Write { path, .. } | Self::Remove { path, .. } => (path, None),
        };
        Some(UnrestoredFile { path: (*path).to_owned(), kept_at })
    }

    /// Returns the content that the step writes.
    pub(super) fn written(&self) -> Option<&[u8]> {
        match self {
            Self::Write { new, .. } => Some(new),
            Self::Reserve { .. }
            | Self::Release { .. }
            | Self::Compare { .. }
            | Self::SetAside { .. }
            | Self::Directory { .. }
            | Self::Rename { .. }
            | Self::Discard { .. }
            | Self::Remove { .. } => None,
        }
    }

    /// Returns the number of bytes by which the file grows. Undoing the step frees them.
    pub(super) fn growth(&self) -> i64 {
        let length = |content: &[u8]| i64::try_from(content.len()).unwrap_or(i64::MAX);
        let old = if let Self::Write { old: Some(old), .. } = self { length(old) } else { 0 };
        self.written().map_or(0, length) - old
    }
}

/// Concatenates contents, each padded to whole blocks.
fn padded_to_blocks(contents: &[&[u8]]) -> Vec<u8> {
    let mut blocks = Vec::new();
    for content in contents {
        blocks.extend_from_slice(content);
        blocks.resize(blocks.len().next_multiple_of(BLOCK), 0);
    }
    blocks
}

/// Removes a directory, unless another process has put files into it.
async fn remove_if_empty(env: &dyn ExecutionEnvironment, directory: &Path) -> Result<(), EnvError> {
    // The directory may not have been created, or may be a file.
    if !env.metadata(directory).await.is_ok_and(|metadata| metadata.is_dir()) {
        return Ok(());
    }
    match env.remove(directory).await {
        Err(EnvError::IsADirectory { .. }) => Ok(()),
        removed => ignore_missing(removed),
    }
}

/// Treats a directory in which no file can be created as success. A file in it can still be written in place.
fn ignore_closed(done: Result<(), EnvError>) -> Result<(), EnvError> {
    match done {
        Err(EnvError::PermissionDenied { .. }) => Ok(()),
        Err(EnvError::Io { source, .. }) if source.kind() == std::io::ErrorKind::ReadOnlyFilesystem => Ok(()),
        done => done,
    }
}

/// Treats a missing file as success.
fn ignore_missing(done: Result<(), EnvError>) -> Result<(), EnvError> {
    match done {
        Err(EnvError::NotFound { .. }) => Ok(()),
        done => done,
    }
}

/// Compares the content of a path with the planned old content; `None` means no file.
async fn expect(
    env: &dyn ExecutionEnvironment,
    path: impl AsRef<Path>,
    content: Option<&[u8]>,
) -> Result<(), ApplyPlanCause> {
    if matches(env, path.as_ref(), content).await? { Ok(()) } else { Err(ApplyPlanCause::Changed) }
}

/// As [`matches`], but `false` for a directory or special file.
async fn has_content(
    env: &dyn ExecutionEnvironment,
    path: impl AsRef<Path>,
    content: Option<&[u8]>,
) -> Result<bool, EnvError> {
    match matches(env, path.as_ref(), content).await {
        Err(EnvError::IsADirectory { .. } | EnvError::NotARegularFile { .. }) => Ok(false),
        found => found,
    }
}

/// Returns whether a path has this content; `None` means no file.
async fn matches(
    env: &dyn ExecutionEnvironment,
    path: &Path,
    content: Option<&[u8]>,
) -> Result<bool, EnvError> {
    // One byte more detects a longer file.
    let enough = content.map_or(0, <[u8]>::len) as u64 + 1;
    match env.read(path, Some(0..enough)).await {
        Ok(found) => Ok(content == Some(found.as_slice())),
        Err(EnvError::NotFound { .. } | EnvError::NotADirectory { .. }) => Ok(content.is_none()),
        Err(error) => Err(error),
    }
}
