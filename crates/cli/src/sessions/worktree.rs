//! A worktree of git for one session: its changes are merged back or dropped, and never lost silently.

mod command;
mod git;

use std::path::{Path, PathBuf};

use pintle_agent::SessionId;
use pintle_store::Summary;

pub(crate) use self::command::command;
use self::git::Git;
use crate::args::WorktreeBase;
use crate::failure::Failure;
use crate::process_env::ProcessEnv;

/// Properties of a summary: the root of the worktree, and that of the repository that it belongs to.
const ROOT: &str = "worktree";
const REPOSITORY: &str = "repository";

/// A worktree of a session.
#[derive(Clone, Debug)]
pub(crate) struct Worktree {
    pub(crate) session: SessionId,
    pub(crate) root: PathBuf,
    /// Root of the repository's own working tree.
    repository: PathBuf,
}

/// Changes of a session in its worktree.
#[derive(Clone, Debug, Default)]
pub(crate) struct Changes {
    /// Lines of `git diff --name-status`.
    pub(crate) files: Vec<String>,
    /// Patch that git can apply.
    patch: Vec<u8>,
    /// Number of commits that the session made.
    pub(crate) commits: u64,
}

impl Changes {
    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty() && self.commits == 0
    }
}

impl Worktree {
    /// Creates a worktree for a new session, from `HEAD` or with the local changes of `directory`'s repository, and returns
    /// it with the directory in it that corresponds to `directory`.
    ///
    /// # Errors
    ///
    /// A usage failure outside of a repository, otherwise one with git's own message. Nothing is left behind then.
    pub(crate) async fn create(
        directory: &Path,
        base: WorktreeBase,
        state: &Path,
        process_env: &ProcessEnv,
    ) -> Result<(Self, PathBuf), Failure> {
        let here = Git::new(directory, process_env)?;
        let repository = here.run(&["rev-parse", "--show-toplevel"]).await.map_err(|_| {
            Failure::usage(format!("--worktree: {} is not in a git repository", directory.display()))
        })?;
        let prefix = here.run(&["rev-parse", "--show-prefix"]).await?;
        if here.run(&["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).await.is_err() {
            return Err(Failure::usage(format!("--worktree: {repository} has no commit yet")));
        }
        let session = SessionId::generate();
        let root = state.join("worktrees").join(session.as_str());
        process_env.create_directory(&state.join("worktrees"))?;
        let worktree = Self { session, root, repository: PathBuf::from(repository) };
        let path = worktree.root.display().to_string();
        let main = Git::new(&worktree.repository, process_env)?;
        main.run(&["worktree", "add", "--quiet", "-b", &worktree.branch(), &path, "HEAD"]).await?;
        if let Err(failure) = worktree.fill(base, &main, process_env).await {
            // Nothing of the user's is in it yet.
            let _ = worktree.remove(process_env).await;
            return Err(failure);
        }
        let inside = worktree.root.join(prefix);
        Ok((worktree, inside))
    }

    /// Returns the worktree of a session, if it was made with one.
    pub(crate) fn of(summary: &Summary) -> Option<Self> {
        let property = |name: &str| summary.properties.get(name).map(PathBuf::from);
        let (root, repository) = (property(ROOT)?, property(REPOSITORY)?);
        Some(Self { session: summary.id.clone(), root, repository })
    }

    pub(crate) fn describe(&self, summary: Summary) -> Summary {
        summary
            .with_property(ROOT, self.root.display().to_string())
            .with_property(REPOSITORY, self.repository.display().to_string())
    }

    /// Returns whether the worktree has not been removed.
    pub(crate) fn exists(&self, process_env: &ProcessEnv) -> bool {
        process_env.directory(Some(&self.root)).is_ok()
    }

    fn branch(&self) -> String {
        format!("pintle/{}", self.session)
    }

    /// Reference to the commit of the worktree's first state, whose parent is the commit that it was made from.
    fn base(&self) -> String {
        format!("refs/pintle/worktrees/{}", self.session)
    }

    fn git(&self, process_env: &ProcessEnv) -> Result<Git, Failure> {
        Git::new(&self.root, process_env)
    }

    /// Git with an index of its own, in which all files of the worktree are staged.
    async fn staged(&self, process_env: &ProcessEnv) -> Result<(Git, tempfile::TempDir), Failure> {
        let directory = tempfile::tempdir().map_err(|error| {
            Failure::failed("cannot create a temporary directory for git").caused_by(&error)
        })?;
        let git = self.git(process_env)?.with_index(directory.path().join("index"));
        git.run(&["read-tree", "HEAD"]).await?;
        git.run(&["add", "--all"]).await?;
        Ok((git, directory))
    }

    /// Takes over the local changes, if they are wanted, and remembers the first state.
    async fn fill(&self, base: WorktreeBase, main: &Git, process_env: &ProcessEnv) -> Result<(), Failure> {
        if base == WorktreeBase::Changes {
            let git = self.git(process_env)?;
            // A commit of everything that is tracked, which leaves index and working tree alone.
            let changed = main.run(&["stash", "create"]).await?;
            if !changed.is_empty() {
                git.run(&["read-tree", "--reset", "-u", &changed]).await?;
                git.run(&["reset", "--quiet", "HEAD"]).await?;
            }
            let untracked = main.bytes(&["ls-files", "-z", "--others", "--exclude-standard"]).await?;
            for name in untracked.split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
                process_env.copy_below(&self.repository, &self.root, name)?;
            }
        }
        let (git, _index) = self.staged(process_env).await?;
        let tree = git.run(&["write-tree"]).await?;
        let message = format!("First state of session {}", self.session);
        let commit = git.run(&["commit-tree", &tree, "-p", "HEAD", "-m", &message]).await?;
        git.run(&["update-ref", &self.base(), &commit]).await?;
        Ok(())
    }

    /// Returns what differs from the first state. Ignored files are no part of it.
    ///
    /// # Errors
    ///
    /// A failure with git's own message.
    pub(crate) async fn changes(&self, process_env: &ProcessEnv) -> Result<Changes, Failure> {
        let (git, _index) = self.staged(process_env).await?;
        let base = self.base();
        let diff = ["diff", "--cached", "--no-ext-diff", "--no-textconv", "--no-color", "--no-renames"];
        let with = |more: &[&'static str]| [&diff[..], more].concat();
        let names = git.run(&[&with(&["--name-status"])[..], &[&base]].concat()).await?;
        let patch = git.bytes(&[&with(&["--binary", "--full-index"])[..], &[&base]].concat()).await?;
        let range = format!("{base}^..{}", self.branch());
        let commits = git.run(&["rev-list", "--count", &range]).await?;
        Ok(Changes {
            files: names.lines().map(str::to_owned).collect(),
            patch,
            commits: commits.parse().unwrap_or(0),
        })
    }

    /// Applies the changes to the repository's working tree, all or none, and removes the worktree. The index of the
    /// repository is not touched. Returns the branch that is kept because the session made commits.
    ///
    /// # Errors
    ///
    /// A failure if a change does not apply; nothing is changed then.
    async fn merge(&self, changes: &Changes, process_env: &ProcessEnv) -> Result<Option<String>, Failure> {
        let main = Git::new(&self.repository, process_env)?;
        if !changes.patch.is_empty() {
            let file = tempfile::NamedTempFile::new()
                .and_then(|mut file| std::io::Write::write_all(&mut file, &changes.patch).map(|()| file))
                .map_err(|error| Failure::failed("cannot write the changes").caused_by(&error))?;
            let path = file.path().display().to_string();
            let apply = ["apply", "--whitespace=nowarn"];
            main.run(&[&apply[..], &["--check", &path]].concat()).await.map_err(|failure| {
                failure.with_hint(&format!(
                    "nothing was changed; the work is still in {}, where the repository's own changes can be merged",
                    self.root.display()
                ))
            })?;
            main.run(&[&apply[..], &[&path]].concat()).await?;
        }
        let kept = (changes.commits > 0).then(|| self.branch());
        self.remove_but(kept.is_some(), process_env).await?;
        Ok(kept)
    }

    /// Removes the worktree with everything in it.
    ///
    /// # Errors
    ///
    /// A failure with git's own message.
    pub(crate) async fn remove(&self, process_env: &ProcessEnv) -> Result<(), Failure> {
        self.remove_but(false, process_env).await
    }

    async fn remove_but(&self, keep_branch: bool, process_env: &ProcessEnv) -> Result<(), Failure> {
        let main = Git::new(&self.repository, process_env)?;
        let path = self.root.display().to_string();
        main.run(&["worktree", "remove", "--force", "--force", &path]).await?;
        let _ = main.run(&["update-ref", "-d", &self.base()]).await;
        if !keep_branch {
            main.run(&["branch", "--quiet", "-D", &self.branch()]).await?;
        }
        Ok(())
    }
}
