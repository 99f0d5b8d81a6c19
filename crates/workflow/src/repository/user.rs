//! The repository of the user.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pintle_env::{ExecutionEnvironment, ExecutionEnvironmentExt as _};

use super::{RepositoryError, apply_to_index, explain_failure, names, untracked_repositories};
use crate::git::{GitError, RepositoryGit};

/// References to snapshots in the repository of the user.
const SNAPSHOTS: &str = "refs/pintle/tasks";

/// A repository of the user.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct UserRepository {
    machine: Arc<dyn ExecutionEnvironment>,
    /// Root of its working tree.
    pub root: PathBuf,
    /// Commit that is checked out.
    pub head: String,
    /// Branch that is checked out; `None` for a detached head.
    pub branch: Option<String>,
    /// Number of files with uncommitted changes and of untracked files.
    pub changed: usize,
    /// Directory in which it was found, below the root, with `/` and without a final one. Empty for the root.
    pub directory: String,
}

/// Commit of a working tree with its local changes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkingTreeSnapshot {
    /// The commit.
    pub commit: String,
    /// Nested repositories whose files are not in the commit: untracked repositories, and submodules with local changes.
    pub left_out: Vec<String>,
}

impl UserRepository {
    /// Finds the repository of a directory. `machine` is this machine as its user sees it: git runs there.
    ///
    /// # Errors
    ///
    /// [`RepositoryError::Unusable`] outside of a repository, in a bare repository, and in a repository without a commit.
    pub async fn find(
        machine: Arc<dyn ExecutionEnvironment>,
        directory: &Path,
    ) -> Result<Self, RepositoryError> {
        let git = RepositoryGit::for_user(&machine, directory);
        let shown = directory.display();
        let outside = |error: &GitError| {
            let reason = match error.ownership_remedy() {
                Some(remedy) => format!(
                    "{shown} is in a repository of another user (dubious ownership); `{remedy}` allows git to use it"
                ),
                None => format!(
                    "{shown} is not in the working tree of a git repository; expected one, since candidates are compared by git"
                ),
            };
            RepositoryError::Unusable(reason)
        };
        let root = git.run(&["rev-parse", "--show-toplevel"]).await;
        let root = root.map_err(|error| explain_failure(error, outside))?;
        let prefix = git.run(&["rev-parse", "--show-prefix"]).await?;
        let git = RepositoryGit::for_user(&machine, Path::new(&root));
        let empty = |_: &GitError| {
            RepositoryError::Unusable(format!("{root} has no commit yet; expected one to start from"))
        };
        let head = git.run(&["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).await;
        let head = head.map_err(|error| explain_failure(error, empty))?;
        let branch = git.run(&["symbolic-ref", "--quiet", "--short", "HEAD"]).await.ok();
        let status = git.run(&["status", "--porcelain", "--untracked-files=normal"]).await?;
        let changed = status.lines().count();
        let directory = prefix.trim_end_matches('/').to_owned();
        Ok(Self { machine, root: PathBuf::from(root), head, branch, changed, directory })
    }

    /// Creates a commit of the current working tree, whose parent is the checked-out commit. Neither the working tree nor
    /// its index changes. The reference `name` protects the commit from garbage collection until
    /// [`remove_snapshot`](Self::remove_snapshot).
    ///
    /// # Errors
    ///
    /// [`RepositoryError::Git`], and [`RepositoryError::Temporary`].
    pub async fn snapshot(&self, name: &str) -> Result<WorkingTreeSnapshot, RepositoryError> {
        let scratch = scratch()?;
        let git = RepositoryGit::for_user(&self.machine, &self.root).with_user_identity().await;
        // Only the user's index contains new submodules.
        let mut left_out = untracked_repositories(&git).await?;
        let git = git.with_index(&scratch.path().join("index"));
        git.run(&["read-tree", &self.head]).await?;
        // Git would add the commit of such a repository without its files, and fails without a commit.
        let excluded: Vec<String> = left_out
            .iter()
            .map(|name| format!(":(exclude,top,literal){}", name.trim_end_matches('/')))
            .collect();
        let mut add = vec!["add", "--all", "--", "."];
        add.extend(excluded.iter().map(String::as_str));
        git.run(&add).await?;
        let tree = git.run(&["write-tree"]).await?;
        let commit = git.run(&["commit-tree", &tree, "-p", &self.head, "-m", "Local changes"]).await?;
        git.run(&["update-ref", &snapshot_reference(name), &commit]).await?;
        let git = RepositoryGit::for_user(&self.machine, &self.root);
        let status = git.bytes(&pintle_env::Git::SUBMODULE_STATUS, None).await?;
        left_out.extend(pintle_env::Git::changed_submodules(&status));
        Ok(WorkingTreeSnapshot { commit, left_out })
    }

    /// Protects a commit of the repository at `root` from garbage collection until
    /// [`remove_snapshot`](Self::remove_snapshot). A repository that this user cannot write to remains unprotected.
    ///
    /// # Errors
    ///
    /// [`RepositoryError::Git`] if git cannot be run.
    pub(super) async fn keep(
        machine: &Arc<dyn ExecutionEnvironment>,
        root: &Path,
        commit: &str,
        name: &str,
    ) -> Result<(), RepositoryError> {
        let git = RepositoryGit::for_user(machine, root);
        match git.run(&["update-ref", &snapshot_reference(name), commit]).await {
            // A missing commit is reported by the next use.
            Ok(_) | Err(GitError::Failed { .. }) => Ok(()),
            Err(error @ GitError::Run(_)) => Err(error.into()),
        }
    }

    /// Returns the names of the tasks whose start commits a repository protects. A missing repository has none.
    ///
    /// # Errors
    ///
    /// [`RepositoryError::Git`].
    pub async fn list_snapshots(
        machine: &Arc<dyn ExecutionEnvironment>,
        root: &Path,
    ) -> Result<Vec<String>, RepositoryError> {
        if !machine.file_exists(root).await? {
            return Ok(Vec::new());
        }
        let git = RepositoryGit::for_user(machine, root);
        let names = git.run(&["for-each-ref", "--format=%(refname:lstrip=3)", SNAPSHOTS]).await?;
        Ok(names.lines().map(str::to_owned).collect())
    }

    /// Removes the reference to the start commit of a task from the repository at `root`, so that git can remove the commit
    /// once no branch contains it. A missing reference or repository is not an error.
    ///
    /// # Errors
    ///
    /// [`RepositoryError::Git`].
    pub async fn remove_snapshot(
        machine: &Arc<dyn ExecutionEnvironment>,
        root: &Path,
        name: &str,
    ) -> Result<(), RepositoryError> {
        if machine.file_exists(root).await? {
            RepositoryGit::for_user(machine, root)
                .run(&["update-ref", "-d", &snapshot_reference(name)])
                .await?;
        }
        Ok(())
    }

    /// Returns whether a commit has this directory. Every commit has the root.
    ///
    /// # Errors
    ///
    /// [`RepositoryError::Git`] if git cannot be run.
    pub async fn has_directory(&self, commit: &str, directory: &str) -> Result<bool, RepositoryError> {
        let git = RepositoryGit::for_user(&self.machine, &self.root);
        match git.run(&["cat-file", "-t", &format!("{commit}:{directory}")]).await {
            Ok(kind) => Ok(kind == "tree"),
            Err(GitError::Failed { .. }) => Ok(false),
            Err(error @ GitError::Run(_)) => Err(error.into()),
        }
    }

    /// Returns the files of a commit below a directory, relative to it.
    ///
    /// # Errors
    ///
    /// [`RepositoryError::Git`], also for a directory that the commit does not have.
    pub async fn list_files(&self, commit: &str, directory: &str) -> Result<Vec<String>, RepositoryError> {
        let git = RepositoryGit::for_user(&self.machine, &self.root);
        let tree = format!("{commit}:{directory}");
        let listed = git.bytes(&["ls-tree", "-r", "-z", "--name-only", "--full-tree", &tree], None).await?;
        Ok(names(&listed).map(|name| String::from_utf8_lossy(name).into_owned()).collect())
    }

    /// Returns the files in which a commit differs from its parent.
    ///
    /// # Errors
    ///
    /// [`RepositoryError::Git`], also for a commit that the repository does not have.
    pub async fn list_changes(&self, commit: &str) -> Result<Vec<String>, RepositoryError> {
        let parent = format!("{commit}^");
        let mut arguments: Vec<&str> = pintle_env::Git::DIFF.to_vec();
        arguments.extend(["--name-only", "-z", &parent, commit]);
        let listed = RepositoryGit::for_user(&self.machine, &self.root).bytes(&arguments, None).await?;
        Ok(names(&listed).map(|name| String::from_utf8_lossy(name).into_owned()).collect())
    }

    /// Returns the names of its remotes.
    ///
    /// # Errors
    ///
    /// [`RepositoryError::Git`].
    pub async fn remotes(&self) -> Result<Vec<String>, RepositoryError> {
        let names = RepositoryGit::for_user(&self.machine, &self.root).run(&["remote"]).await?;
        Ok(names.lines().map(str::to_owned).collect())
    }

    /// Returns the number of tracked files with uncommitted changes.
    ///
    /// # Errors
    ///
    /// [`RepositoryError::Git`].
    pub async fn count_modified(&self) -> Result<usize, RepositoryError> {
        let git = RepositoryGit::for_user(&self.machine, &self.root);
        Ok(git.run(&["status", "--porcelain", "--untracked-files=no"]).await?.lines().count())
    }

    /// Creates a branch with one commit by the user: a patch on top of a commit. The working tree and its index do not change.
    /// Returns the commit. A branch that already has these contents on top of the commit is left unchanged.
    ///
    /// # Errors
    ///
    /// [`RepositoryError::Unusable`] if the repository no longer has `base`, [`RepositoryError::BranchExists`], and
    /// [`RepositoryError::Git`] if the patch cannot be applied; nothing is changed then.
    pub async fn commit_to_branch(
        &self,
        base: &str,
        patch: &[u8],
        branch: &str,
        message: &str,
    ) -> Result<String, RepositoryError> {
        let scratch = scratch()?;
        let git = RepositoryGit::for_user(&self.machine, &self.root).with_user_identity().await;
        let git = git.with_index(&scratch.path().join("index"));
        git.run(&["check-ref-format", "--branch", branch]).await?;
        let removed = |_: &GitError| {
            let root = self.root.display();
            RepositoryError::Unusable(format!("{root} does not have {base} any more, the commit of the task"))
        };
        let found = git.run(&["rev-parse", "--verify", "--quiet", &format!("{base}^{{commit}}")]).await;
        found.map_err(|error| explain_failure(error, removed))?;
        git.run(&["read-tree", base]).await?;
        apply_to_index(&git, patch).await?;
        let tree = git.run(&["write-tree"]).await?;
        let reference = format!("refs/heads/{branch}");
        let (its_tree, its_parent) = (format!("{reference}^{{tree}}"), format!("{reference}^"));
        if let Ok(found) = git.run(&["rev-parse", &its_tree, &its_parent, &reference]).await
            && let [found_tree, parent, commit] = found.lines().collect::<Vec<_>>().as_slice()
            && (*found_tree, *parent) == (tree.as_str(), base)
        {
            return Ok((*commit).to_owned());
        }
        let commit = git.bytes(&["commit-tree", &tree, "-p", base], Some(message.as_bytes())).await?;
        let commit = String::from_utf8_lossy(&commit).trim().to_owned();
        // Zeros require that the branch does not exist.
        let none = "0".repeat(commit.len());
        if let Err(error) = git.run(&["update-ref", &reference, &commit, &none]).await {
            // git reports the name of a reference, and not that the branch exists.
            return Err(match git.run(&["rev-parse", "--verify", "--quiet", &reference]).await {
                Ok(_) => RepositoryError::BranchExists(branch.to_owned()),
                Err(_) => error.into(),
            });
        }
        Ok(commit)
    }

    /// Creates a git worktree at `path` for an existing branch.
    ///
    /// # Errors
    ///
    /// [`RepositoryError::Git`], for example if the directory exists.
    pub async fn add_worktree(&self, path: &Path, branch: &str) -> Result<(), RepositoryError> {
        let path = path.display().to_string();
        RepositoryGit::for_user(&self.machine, &self.root)
            .run(&["worktree", "add", "--quiet", &path, branch])
            .await?;
        Ok(())
    }

    /// Applies a patch to the working tree, completely or not at all. The index does not change.
    ///
    /// # Errors
    ///
    /// [`RepositoryError::Git`] if it cannot be applied.
    pub async fn apply(&self, patch: &[u8]) -> Result<(), RepositoryError> {
        let git = RepositoryGit::for_user(&self.machine, &self.root);
        git.bytes(&["apply", "--whitespace=nowarn", "--binary", "-"], Some(patch)).await?;
        Ok(())
    }
}

/// Returns the reference that protects the start commit of a task.
fn snapshot_reference(name: &str) -> String {
    format!("{SNAPSHOTS}/{name}")
}

fn scratch() -> Result<tempfile::TempDir, RepositoryError> {
    Ok(tempfile::tempdir()?)
}
