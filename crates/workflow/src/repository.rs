//! The repository of a task: the commit that it starts from, and clean working trees with what candidates changed.
//!
//! Candidates never see this repository. They work in separate clones, in which nothing is trusted: their changes are read from
//! their files alone, into this one. So a candidate's settings of git, its hooks, filters and ignored files have no effect
//! on what is judged, and neither have the time stamps of its files.

mod raw;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pintle_agent::SessionId;
use pintle_env::{EnvError, ExecRequest, ExecutionEnvironment, shell_word};
use pintle_store::{Blobs, Hash, StoreError};
use thiserror::Error;

use crate::command_run::Reference;
use crate::diff::{ChangedFile, Diff};
use crate::git::{Git, GitError};

/// Most bytes of new and changed files that are taken from a candidate.
const MAX_CHANGED_BYTES: u64 = 64 << 20;

/// Longest time in which a worktree is removed.
const REMOVAL: Duration = Duration::from_secs(600);

/// Number of commits of the history that candidates see.
const HISTORY: &str = "--depth=50";

/// Name of the commit from which a task starts, in its repository.
const BASE: &str = "refs/pintle/base";

/// Directories that tools leave behind, links to such directories, and files in them. They are not part of a change.
const EXCLUDED: &str = "__pycache__\n*.pyc\n.pytest_cache\n.mypy_cache\n.ruff_cache\n/target\nnode_modules\n";

/// Directory of build output, in which a project may have other files as well.
const TARGET: &str = "target";

/// File that marks a directory whose contents can be built again. Cargo marks its target directory.
const CACHE_TAG: &str = "CACHEDIR.TAG";

/// Entries that cargo makes in its target directory: directories, hidden files and the tag. Git does not read directories that
/// are excluded, which have many files.
const CACHE_ENTRIES: [&str; 3] =
    ["--exclude=/target/*/", "--exclude=/target/.*", "--exclude=/target/CACHEDIR.TAG"];

/// Most paths that are kept of those that a change leaves out.
const MAX_DROPPED: usize = 50;

/// Mode of a repository inside of another one, in a tree.
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
    /// No temporary directory could be made.
    #[error("cannot create a temporary directory")]
    Temporary(#[from] io::Error),
    /// The store failed.
    #[error("the store failed")]
    Store(#[from] StoreError),
    /// It is no repository from which a task can start. The text says what was expected.
    #[error("{0}")]
    Unusable(String),
    /// A change cannot be taken over. The text is for people and for the candidate.
    #[error("{0}")]
    Unfit(String),
}

/// A repository of the user, seen from one of its directories.
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
    /// Number of files with changes that are not committed, and of files that git does not know.
    pub changed: usize,
}

/// Commit of a working tree with its local changes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkingTreeSnapshot {
    /// The commit.
    pub commit: String,
    /// Repositories inside of the working tree whose files are not in the commit: untracked ones, and submodules with local
    /// changes.
    pub left_out: Vec<String>,
}

/// The repository of a task.
#[derive(Clone, Debug)]
pub struct TaskRepository {
    machine: Arc<dyn ExecutionEnvironment>,
    directory: PathBuf,
}

impl UserRepository {
    /// Finds the repository of a directory. `machine` is this machine as its user sees it: git runs there.
    ///
    /// # Errors
    ///
    /// [`RepositoryError::Unusable`] outside of a repository, in a bare one, and in one without a commit.
    pub async fn find(
        machine: Arc<dyn ExecutionEnvironment>,
        directory: &Path,
    ) -> Result<Self, RepositoryError> {
        let git = Git::of_user(&machine, directory);
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
        let root = root.map_err(|error| explained(error, outside))?;
        let git = Git::of_user(&machine, Path::new(&root));
        let empty = |_: &GitError| {
            RepositoryError::Unusable(format!("{root} has no commit yet; expected one to start from"))
        };
        let head = git.run(&["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).await;
        let head = head.map_err(|error| explained(error, empty))?;
        let branch = git.run(&["symbolic-ref", "--quiet", "--short", "HEAD"]).await.ok();
        let status = git.run(&["status", "--porcelain", "--untracked-files=normal"]).await?;
        let changed = status.lines().count();
        Ok(Self { machine, root: PathBuf::from(root), head, branch, changed })
    }

    /// Makes a commit of the working tree as it is now, whose parent is the commit that is checked out. Neither the working tree
    /// nor its index changes; `name` keeps the commit from being removed, until [`remove_snapshot`](Self::remove_snapshot).
    ///
    /// # Errors
    ///
    /// [`RepositoryError::Git`], and [`RepositoryError::Temporary`].
    pub async fn snapshot(&self, name: &str) -> Result<WorkingTreeSnapshot, RepositoryError> {
        let scratch = scratch()?;
        let git = Git::of_user(&self.machine, &self.root);
        // The user's own index knows new submodules.
        let mut left_out = untracked_repositories(&git).await?;
        let git = git.with_index(&scratch.path().join("index"));
        git.run(&["read-tree", &self.head]).await?;
        // Git would add the commit of such a repository without its files, and fails if it has none.
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
        left_out.extend(self.changed_submodules().await?);
        Ok(WorkingTreeSnapshot { commit, left_out })
    }

    /// Removes the name of a [snapshot](Self::snapshot) from the repository at `root`, so that git removes the commit once no
    /// branch has it. A name that does not exist is fine, and so is a repository that does not exist any more.
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
            Git::of_user(machine, root).run(&["update-ref", "-d", &snapshot_reference(name)]).await?;
        }
        Ok(())
    }

    /// Returns the submodules with changed or new files.
    async fn changed_submodules(&self) -> Result<Vec<String>, RepositoryError> {
        let git = Git::of_user(&self.machine, &self.root);
        let arguments =
            ["status", "--porcelain=v2", "-z", "--untracked-files=normal", "--ignore-submodules=none"];
        let listing = git.bytes(&arguments, None).await?;
        let mut fields = listing.split(|byte| *byte == 0).map(String::from_utf8_lossy);
        let mut changed = Vec::new();
        while let Some(field) = fields.next() {
            // A renamed file has one field more before its path, and its former path as the next entry.
            let count = match field.split_once(' ') {
                Some(("1", _)) => 9,
                Some(("2", _)) => {
                    fields.next();
                    10
                }
                Some(_) | None => continue,
            };
            let words: Vec<&str> = field.splitn(count, ' ').collect();
            let has_changes = words.get(2).is_some_and(|state| {
                state.starts_with('S') && (state.ends_with('U') || state.get(2..3) == Some("M"))
            });
            if let (true, Some(path)) = (has_changes, words.last()) {
                changed.push((*path).to_owned());
            }
        }
        Ok(changed)
    }

    /// Makes a branch with one commit: a patch on top of a commit. The working tree and its index stay as they are. Returns the
    /// commit.
    ///
    /// # Errors
    ///
    /// [`RepositoryError::Unusable`] if the repository does not have `base` any more, and [`RepositoryError::Git`] if the branch
    /// exists or the patch cannot be applied; nothing is changed then.
    pub async fn commit_to_branch(
        &self,
        base: &str,
        patch: &[u8],
        branch: &str,
        message: &str,
    ) -> Result<String, RepositoryError> {
        let scratch = scratch()?;
        let git = Git::of_user(&self.machine, &self.root).with_index(&scratch.path().join("index"));
        git.run(&["check-ref-format", "--branch", branch]).await?;
        let removed = |_: &GitError| {
            let root = self.root.display();
            RepositoryError::Unusable(format!("{root} does not have {base} any more, the commit of the task"))
        };
        let found = git.run(&["rev-parse", "--verify", "--quiet", &format!("{base}^{{commit}}")]).await;
        found.map_err(|error| explained(error, removed))?;
        git.run(&["read-tree", base]).await?;
        apply_to_index(&git, patch).await?;
        let tree = git.run(&["write-tree"]).await?;
        let commit = git.bytes(&["commit-tree", &tree, "-p", base], Some(message.as_bytes())).await?;
        let commit = String::from_utf8_lossy(&commit).trim().to_owned();
        // The zeros say that it must not exist.
        let none = "0".repeat(commit.len());
        git.run(&["update-ref", &format!("refs/heads/{branch}"), &commit, &none]).await?;
        Ok(commit)
    }

    /// Makes a worktree of git at `path` with a branch that exists.
    ///
    /// # Errors
    ///
    /// [`RepositoryError::Git`], such as that the directory exists.
    pub async fn add_worktree(&self, path: &Path, branch: &str) -> Result<(), RepositoryError> {
        let path = path.display().to_string();
        Git::of_user(&self.machine, &self.root).run(&["worktree", "add", "--quiet", &path, branch]).await?;
        Ok(())
    }

    /// Applies a patch to the working tree, all of it or nothing. The index stays as it is.
    ///
    /// # Errors
    ///
    /// [`RepositoryError::Git`] if it cannot be applied.
    pub async fn apply(&self, patch: &[u8]) -> Result<(), RepositoryError> {
        let git = Git::of_user(&self.machine, &self.root);
        git.bytes(&["apply", "--whitespace=nowarn", "--binary", "-"], Some(patch)).await?;
        Ok(())
    }
}

impl TaskRepository {
    /// Opens the repository of a task below `directory`, and fetches the commit that it starts from unless it is there. Nobody
    /// else may open it meanwhile.
    ///
    /// # Errors
    ///
    /// [`RepositoryError::Git`] if the user's repository does not have the commit any more.
    pub async fn open(
        machine: Arc<dyn ExecutionEnvironment>,
        directory: &Path,
        source: &str,
        base: &str,
    ) -> Result<Self, RepositoryError> {
        let repository = Self { machine, directory: directory.join("git") };
        let machine = &repository.machine;
        let git = repository.git();
        if machine.file_exists(&repository.directory.join("HEAD")).await? {
            match git.run(&["rev-parse", "--verify", "--quiet", BASE]).await {
                Ok(found) if found == base => return Ok(repository),
                Ok(_) | Err(GitError::Failed { .. }) => {}
                Err(error @ GitError::Run(_)) => return Err(error.into()),
            }
        }
        // A process that was killed may have left a part of it, with locks that nobody removes.
        remove_directory(machine.as_ref(), &repository.directory).await?;
        machine.create_directory(&repository.directory).await?;
        git.run(&["init", "--quiet", "--bare", "--template="]).await?;
        machine.write(&repository.directory.join("info/exclude"), EXCLUDED.as_bytes()).await?;
        // The base comes last: it says that the repository is whole.
        git.run(&[
            "fetch",
            "--quiet",
            "--no-tags",
            "--update-shallow",
            HISTORY,
            source,
            &format!("+{base}:{BASE}"),
        ])
        .await?;
        Ok(repository)
    }

    fn git(&self) -> Git {
        Git::of_task(&self.machine, &self.directory)
    }

    /// Creates a temporary directory, which is removed with the repository if this process is killed.
    fn scratch(&self) -> Result<tempfile::TempDir, RepositoryError> {
        Ok(tempfile::tempdir_in(&self.directory)?)
    }

    /// Returns remarks about the base, for the report: parts of it that are not there.
    ///
    /// # Errors
    ///
    /// [`RepositoryError::Git`].
    pub async fn remarks(&self) -> Result<Vec<String>, RepositoryError> {
        let listing = self.git().run(&["ls-tree", "-r", "-z", BASE]).await?;
        let entries = listing.split('\0').filter_map(|entry| entry.split_once('\t'));
        let submodules = submodules(&listing);
        let mut remarks = Vec::new();
        if !submodules.is_empty() {
            let named = crate::names::named(&submodules);
            remarks.push(format!("submodules are empty in the clones of a task: {named}"));
        }
        let mut pointers = 0_usize;
        for (_, path) in entries.filter(|(_, path)| path.rsplit('/').next() == Some(".gitattributes")) {
            let text = self.git().run(&["cat-file", "blob", &format!("{BASE}:{path}")]).await?;
            pointers += text.lines().filter(|line| line.contains("filter=lfs")).count();
        }
        if pointers > 0 {
            remarks.push("files of LFS are pointers in the clones of a task".to_owned());
        }
        Ok(remarks)
    }

    /// Returns the commit from which the task starts.
    #[must_use]
    pub fn base(&self) -> &str {
        BASE
    }

    /// Returns the commit that a patch leads to from another one. The same patch gives the same commit.
    ///
    /// # Errors
    ///
    /// [`RepositoryError::Unfit`] if it cannot be applied.
    pub async fn with_patch(&self, from: &str, patch: &[u8]) -> Result<String, RepositoryError> {
        let scratch = self.scratch()?;
        let git = self.git().with_index(&scratch.path().join("index"));
        git.run(&["read-tree", from]).await?;
        let unfit = |error: &GitError| RepositoryError::Unfit(error.to_string());
        apply_to_index(&git, patch).await.map_err(|error| explained(error, unfit))?;
        let tree = git.run(&["write-tree"]).await?;
        Ok(git.run(&["commit-tree", &tree, "-p", from, "-m", "Change of a task"]).await?)
    }

    /// Makes a new clone of a commit at `root`, with a separate history and fresh time stamps. The previous contents are removed.
    ///
    /// # Errors
    ///
    /// [`RepositoryError`].
    pub async fn clone_to(&self, root: &Path, commit: &str) -> Result<(), RepositoryError> {
        remove_directory(self.machine.as_ref(), root).await?;
        self.machine.create_directory(root).await?;
        // The commit needs a name, to be fetched: a unique one, which no other process has locked.
        let commit = self.git().run(&["rev-parse", "--verify", &format!("{commit}^{{commit}}")]).await?;
        let name = format!("refs/pintle/clones/{}", SessionId::generate());
        self.git().run(&["update-ref", &name, &commit]).await?;
        // The clone is new, so its own settings are ours.
        let git = Git::of_task(&self.machine, &root.join(".git")).with_work_tree(root);
        git.run(&["init", "--quiet", "--template="]).await?;
        let source = self.directory.display().to_string();
        git.run(&["fetch", "--quiet", "--no-tags", "--update-shallow", &source, &name]).await?;
        git.run(&["update-ref", "--no-deref", "HEAD", &commit]).await?;
        git.run(&["read-tree", "HEAD"]).await?;
        git.run(&["checkout-index", "--all", "--force", "--quiet"]).await?;
        self.machine.write(&root.join(".git/info/exclude"), EXCLUDED.as_bytes()).await?;
        Ok(())
    }

    /// Applies a patch to the files of a clone that nobody else has been in.
    ///
    /// # Errors
    ///
    /// [`RepositoryError::Unfit`] if it cannot be applied.
    pub async fn apply_to(&self, root: &Path, from: &str, patch: &[u8]) -> Result<(), RepositoryError> {
        let commit = self.with_patch(from, patch).await?;
        let scratch = self.scratch()?;
        let git = self.git().with_work_tree(root).with_index(&scratch.path().join("index"));
        git.run(&["read-tree", from]).await?;
        git.run(&["update-index", "-q", "--refresh"]).await?;
        git.run(&["read-tree", "-m", "-u", from, &commit]).await?;
        Ok(())
    }

    /// Reads the files below `root`, and returns how they differ from a commit. Its patch is kept in `blobs`.
    ///
    /// # Errors
    ///
    /// [`RepositoryError::Unfit`] for changes that cannot be judged: above 64 MiB, with files that cannot be read, or with a
    /// repository inside.
    pub async fn diff(&self, root: &Path, from: &str, blobs: &dyn Blobs) -> Result<Diff, RepositoryError> {
        let tree = self.tree(root, from).await?;
        let files = self.changed(from, &tree).await?;
        let arguments =
            [&pintle_env::Git::DIFF[..], &["--patch", "--binary", "--full-index", from, &tree]].concat();
        let patch = self.git().bytes(&arguments, None).await?;
        let (bytes, hash) = (patch.len() as u64, blobs.put(patch).await?);
        let dropped = self.dropped(root, from).await?;
        Ok(Diff { patch: Reference { hash: hash.to_string(), bytes }, files, dropped })
    }

    /// Returns what a change of the files below `root` leaves out although the project does not ignore it: new files below
    /// `target/`, and submodules with files. Build output of cargo is left out without a report.
    async fn dropped(&self, root: &Path, from: &str) -> Result<Vec<String>, RepositoryError> {
        let scratch = self.scratch()?;
        let git = self.git().with_work_tree(root).with_index(&scratch.path().join("index"));
        git.run(&["read-tree", from]).await?;
        // Files that this repository excludes are not files of the project.
        let mut arguments = vec!["ls-files", "-z", "--others", "--exclude-per-directory=.gitignore"];
        let tag = root.join(TARGET).join(CACHE_TAG);
        if self.machine.file_exists(&tag).await.unwrap_or(false) {
            arguments.extend(CACHE_ENTRIES);
        }
        arguments.extend(["--", TARGET]);
        let listing = git.bytes(&arguments, None).await?;
        let new = names(&listing).map(|name| String::from_utf8_lossy(name).into_owned());
        let mut dropped: Vec<String> = new.take(MAX_DROPPED).collect();
        for submodule in submodules(&git.run(&["ls-tree", "-r", "-z", from]).await?) {
            let has_files = match self.machine.list(&root.join(&submodule)).await {
                Ok(entries) => !entries.is_empty(),
                Err(EnvError::NotFound { .. } | EnvError::NotADirectory { .. }) => false,
                Err(_) => true,
            };
            if has_files {
                dropped.push(format!("{submodule}/"));
            }
        }
        Ok(dropped)
    }

    /// Reads the files below `root`, and returns which of them differ from a commit.
    ///
    /// # Errors
    ///
    /// As for [`diff`](Self::diff).
    pub async fn changes(&self, root: &Path, from: &str) -> Result<Vec<ChangedFile>, RepositoryError> {
        let tree = self.tree(root, from).await?;
        self.changed(from, &tree).await
    }

    /// Reads the files below `root` into a tree.
    async fn tree(&self, root: &Path, from: &str) -> Result<String, RepositoryError> {
        let scratch = self.scratch()?;
        let git = self.git().with_work_tree(root).with_index(&scratch.path().join("index"));
        // Without what an index knows about time stamps, each file is read.
        git.run(&["read-tree", from]).await?;
        if let Some(path) = untracked_repositories(&git).await?.first() {
            // One without a commit has nothing that git could add.
            return Err(repository_inside(path.trim_end_matches('/')));
        }
        self.check_size(&git, root).await?;
        let unfit = |error: &GitError| RepositoryError::Unfit(format!("its files cannot be read: {error}"));
        git.run(&["add", "--all"]).await.map_err(|error| explained(error, unfit))?;
        Ok(git.run(&["write-tree"]).await?)
    }

    async fn changed(&self, from: &str, tree: &str) -> Result<Vec<ChangedFile>, RepositoryError> {
        let arguments = [&pintle_env::Git::DIFF[..], &["--raw", "--numstat", "-z", from, tree]].concat();
        let (files, links) = raw::parse(&self.git().bytes(&arguments, None).await?)?;
        for (path, hash) in links {
            let target = self.git().run(&["cat-file", "blob", &hash]).await?;
            if raw::leads_out(&path, &target) {
                return Err(RepositoryError::Unfit(format!(
                    "`{path}` is a link that leads out of the repository; expected files, which can be compared"
                )));
            }
        }
        Ok(files)
    }

    /// Returns the size of a changed file; 0 if it is gone.
    async fn length(&self, root: &Path, name: &[u8]) -> u64 {
        use std::os::unix::ffi::OsStrExt as _;
        let path = root.join(std::ffi::OsStr::from_bytes(name));
        self.machine.metadata(&path).await.map_or(0, |found| found.len)
    }

    /// Refuses changes that would fill the repository.
    async fn check_size(&self, git: &Git, root: &Path) -> Result<(), RepositoryError> {
        let arguments = ["ls-files", "-z", "--others", "--modified", "--exclude-standard"];
        let listing = git.bytes(&arguments, None).await?;
        let mut total = 0_u64;
        for name in names(&listing) {
            total = total.saturating_add(self.length(root, name).await);
        }
        if total > MAX_CHANGED_BYTES {
            return Err(RepositoryError::Unfit(format!(
                "its new and changed files have {} MiB; expected at most {} MiB",
                total >> 20,
                MAX_CHANGED_BYTES >> 20
            )));
        }
        Ok(())
    }
}

/// Explains a failure of git. The error of a git that could not be run is returned as it is: its cause is not the repository.
fn explained(error: GitError, explain: impl FnOnce(&GitError) -> RepositoryError) -> RepositoryError {
    match error {
        GitError::Failed { .. } => explain(&error),
        GitError::Run(_) => error.into(),
    }
}

/// Returns bytes that are kept elsewhere.
///
/// # Errors
///
/// [`RepositoryError::Unfit`] if they are not kept any more.
pub async fn kept(reference: &Reference, blobs: &dyn Blobs) -> Result<Vec<u8>, RepositoryError> {
    let lost = || RepositoryError::Unfit(format!("`{}` is not kept any more", reference.hash));
    let hash: Hash = reference.hash.parse().map_err(|_| lost())?;
    blobs.get(&hash).await?.ok_or_else(lost)
}

/// Returns the name that keeps a snapshot.
fn snapshot_reference(name: &str) -> String {
    format!("refs/pintle/tasks/{name}")
}

/// Returns the names in output of git that ends each with a zero byte.
fn names(output: &[u8]) -> impl Iterator<Item = &[u8]> {
    output.split(|byte| *byte == 0).filter(|name| !name.is_empty())
}

/// Returns the untracked repositories of a working tree, each with a slash at its end: git lists the files of any other
/// directory.
async fn untracked_repositories(git: &Git) -> Result<Vec<String>, GitError> {
    let listing = git.bytes(&["ls-files", "-z", "--others", "--exclude-standard"], None).await?;
    let repositories = names(&listing).filter(|name| name.ends_with(b"/"));
    Ok(repositories.map(|name| String::from_utf8_lossy(name).into_owned()).collect())
}

/// Returns the submodules in output of `git ls-tree -r -z`.
fn submodules(listing: &str) -> Vec<String> {
    let entries = listing.split('\0').filter_map(|entry| entry.split_once('\t'));
    let submodules = entries.filter(|(kind, _)| kind.split(' ').next() == Some(REPOSITORY));
    submodules.map(|(_, path)| path.to_owned()).collect()
}

/// Returns the refusal of a change with a repository inside.
fn repository_inside(path: &str) -> RepositoryError {
    RepositoryError::Unfit(format!(
        "`{path}` is a separate repository; expected files, which can be compared"
    ))
}

/// Puts a patch into the index. An empty one changes nothing.
async fn apply_to_index(git: &Git, patch: &[u8]) -> Result<(), GitError> {
    if !patch.is_empty() {
        git.bytes(&["apply", "--cached", "--binary", "--whitespace=nowarn", "-"], Some(patch)).await?;
    }
    Ok(())
}

fn scratch() -> Result<tempfile::TempDir, RepositoryError> {
    Ok(tempfile::tempdir()?)
}

/// Removes a directory with everything in it, also what its owner may not change. One that is not there is fine.
///
/// # Errors
///
/// [`RepositoryError::Unfit`] if something is left.
pub async fn remove_directory(
    machine: &dyn ExecutionEnvironment,
    path: &Path,
) -> Result<(), RepositoryError> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_failures_of_git_are_explained() {
        let failed = GitError::Failed { command: "rev-parse".to_owned(), message: String::new() };
        let not_run = GitError::Run(EnvError::not_found(Path::new("git")));
        for (error, is_explained) in [(failed, true), (not_run, false)] {
            let shown = error.to_string();
            let error = explained(error, |_| RepositoryError::Unusable("no commit".to_owned()));
            assert_eq!(matches!(error, RepositoryError::Unusable(_)), is_explained, "{shown}");
            assert_eq!(matches!(error, RepositoryError::Git(GitError::Run(_))), !is_explained, "{shown}");
        }
    }
}
