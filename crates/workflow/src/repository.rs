//! The repository of a task: its start commit, and clean working trees with the changes of candidates.
//!
//! Candidates never see this repository. They work in separate clones, in which nothing is trusted: only the contents of
//! their files are read into this repository. A candidate's git settings, hooks, filters, ignored files and time stamps
//! have no effect on the judged change.

mod raw;
mod shared_objects;
mod task;
mod template;
#[cfg(test)]
mod tests;
mod user;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pintle_env::{EnvError, ExecRequest, ExecutionEnvironment, ExecutionEnvironmentExt as _, shell_word};
use pintle_evidence::command_run::BlobReference;
use pintle_store::{Blobs, Hash, StoreError};
use thiserror::Error;

pub use self::task::TaskRepository;
pub use self::user::{UserRepository, WorkingTreeSnapshot};
use crate::git::{GitError, RepositoryGit};

/// Time limit for the removal of a worktree.
const REMOVAL: Duration = Duration::from_secs(600);

/// Mode of a nested repository in a tree.
const REPOSITORY: &str = "160000";

/// Error of the repository of a task.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RepositoryError {
    /// Git failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// A file or directory could not be used.
    #[error("{0}")]
    Files(#[from] EnvError),
    /// No temporary directory could be created.
    #[error("cannot create a temporary directory")]
    Temporary(#[from] io::Error),
    /// The store failed.
    #[error("the store failed")]
    Store(#[from] StoreError),
    /// It is not a repository from which a task can start. The text contains the expectation.
    #[error("{0}")]
    Unusable(String),
    /// A branch with this name exists, and has another commit.
    #[error("the branch {0} exists and has another commit")]
    BranchExists(String),
    /// A change cannot be used. The text is for users and for the candidate.
    #[error("{0}")]
    Unfit(String),
}

/// Explains a failure of git. If git could not be run, returns the error unchanged: the repository is not its cause.
fn explain_failure(error: GitError, explain: impl FnOnce(&GitError) -> RepositoryError) -> RepositoryError {
    match error {
        GitError::Failed { .. } => explain(&error),
        GitError::Run(_) => error.into(),
    }
}

/// Returns the bytes of a reference.
///
/// # Errors
///
/// [`RepositoryError::Unfit`] if the store no longer has them.
pub async fn read_blob(reference: &BlobReference, blobs: &dyn Blobs) -> Result<Vec<u8>, RepositoryError> {
    let lost = || RepositoryError::Unfit(format!("`{}` is not kept any more", reference.hash));
    let hash: Hash = reference.hash.parse().map_err(|_| lost())?;
    blobs.get(&hash).await?.ok_or_else(lost)
}

/// Returns the names in NUL-terminated output of git.
fn names(output: &[u8]) -> impl Iterator<Item = &[u8]> {
    output.split(|byte| *byte == 0).filter(|name| !name.is_empty())
}

/// Returns the untracked repositories of a working tree, each with a trailing slash. For any other directory, git lists the
/// files.
async fn untracked_repositories(git: &RepositoryGit) -> Result<Vec<String>, GitError> {
    let listing = git.bytes(&["ls-files", "-z", "--others", "--exclude-standard"], None).await?;
    Ok(repositories(&listing).collect())
}

/// Returns the untracked repositories in a listing of `git ls-files -z --others`, each with a trailing slash.
fn repositories(listing: &[u8]) -> impl Iterator<Item = String> {
    let repositories = names(listing).filter(|name| name.ends_with(b"/"));
    repositories.map(|name| String::from_utf8_lossy(name).into_owned())
}

/// Returns the error for a change with a nested repository.
fn nested_repository_error(path: &str) -> RepositoryError {
    RepositoryError::Unfit(format!(
        "`{path}` is a separate repository; expected files, which can be compared"
    ))
}

/// Applies a patch to the index. An empty patch changes nothing.
async fn apply_to_index(git: &RepositoryGit, patch: &[u8]) -> Result<(), GitError> {
    if !patch.is_empty() {
        git.bytes(&["apply", "--cached", "--binary", "--whitespace=nowarn", "-"], Some(patch)).await?;
    }
    Ok(())
}

/// Removes the directory with the files of a task, and the reference to its start commit in the user's repository, if it has one.
///
/// # Errors
///
/// [`RepositoryError::Unfit`] if a file is left, and [`RepositoryError::Git`] if the reference cannot be removed.
pub async fn remove_task_files(
    machine: &Arc<dyn ExecutionEnvironment>,
    directory: &Path,
    task: &str,
    repository: Option<&Path>,
) -> Result<(), RepositoryError> {
    remove_directory(machine.as_ref(), directory).await?;
    match repository {
        Some(root) => UserRepository::remove_snapshot(machine, root, task).await,
        None => Ok(()),
    }
}

/// Removes a directory recursively, including read-only contents. A missing directory is not an error.
///
/// # Errors
///
/// [`RepositoryError::Unfit`] if a part of it is left.
pub async fn remove_directory(
    machine: &dyn ExecutionEnvironment,
    path: &Path,
) -> Result<(), RepositoryError> {
    if matches!(machine.file_exists(path).await, Ok(false)) {
        return Ok(());
    }
    let path = shell_word(&path.display().to_string());
    let line = format!(
        "test ! -e {path} || rm -rf -- {path} 2>/dev/null || {{ chmod -R u+rwX -- {path}; rm -rf -- {path}; }}"
    );
    let done = machine.exec_command(ExecRequest::new(line).with_timeout(REMOVAL)).await?;
    if done.success() {
        return Ok(());
    }
    let message = done.stderr.head_text_lossy(200).unwrap_or_default();
    Err(RepositoryError::Unfit(format!("{path} cannot be removed: {}", message.trim())))
}
