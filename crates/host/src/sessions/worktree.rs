//! A worktree of git for one session: its changes are merged back or dropped, and never lost silently.

mod git;
mod repositories;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use pintle_agent::SessionId;
use pintle_store::Summary;

use self::git::Git;
use self::repositories::{GitFileListing, LIST_IGNORED, ignored_in_submodules, lossy, submodules_with_work};
use crate::failure::Failure;
use crate::process_env::ProcessEnv;
use crate::sanitize::sanitize;
use crate::spec::WorktreeBase;

/// Properties of a summary: the root of the worktree, and the root of its repository.
const ROOT: &str = "worktree";
const REPOSITORY: &str = "repository";

/// A worktree of a session.
#[derive(Clone, Debug)]
pub struct Worktree {
    /// The session that works there.
    pub session: SessionId,
    /// Root of the worktree.
    pub root: PathBuf,
    /// Root of the repository's own working tree.
    pub repository: PathBuf,
}

/// Changes of a session in its worktree.
#[derive(Clone, Debug, Default)]
pub struct WorktreeChanges {
    /// Lines of `git diff --name-status`.
    pub files: Vec<String>,
    /// Patch that git can apply.
    pub patch: Vec<u8>,
    /// Number of commits that the session made.
    pub commits: u64,
    /// Repositories and submodules that the session created or changed. Their content is not in the patch.
    pub repositories: Vec<String>,
    /// Ignored files, which the patch does not contain. They exist only in the worktree.
    pub ignored: Vec<String>,
}

/// Files of a worktree in a separate index.
struct StagedFiles {
    git: Git,
    /// Tree of the files.
    tree: String,
    /// Paths of untracked repositories, which are not in the tree.
    repositories: Vec<String>,
    /// Whether `HEAD` is a commit.
    has_head: bool,
}

/// Result of a merge.
#[derive(Clone, Debug)]
pub struct MergeResult {
    /// Root of the working tree that has the changes now.
    pub repository: PathBuf,
    /// Branch that is kept: the session made commits, or checked out another branch than its own.
    pub branch: Option<String>,
}

impl WorktreeChanges {
    /// Returns whether the session has changed nothing. Ignored files do not count.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.commits == 0 && self.repositories.is_empty()
    }
}

impl Worktree {
    /// Creates a worktree for a new session, from `HEAD` or with the local changes of `directory`'s repository, and returns
    /// it with the directory in it that corresponds to `directory`.
    ///
    /// A failure leaves nothing behind.
    pub async fn create(
        directory: &Path,
        base: WorktreeBase,
        state: &Path,
        process_env: &ProcessEnv,
    ) -> Result<(Self, PathBuf), Failure> {
        let here = Git::new(directory, process_env)?;
        let find = ["rev-parse", "--show-toplevel"];
        let repository = here.attempt(&find).await?.map_err(|message| {
            if pintle_env::Git::ownership_remedy(&message).is_some() {
                return git::failure(&find, &message);
            }
            let problem =
                format!("worktree: {} is not in a git repository; expected one", directory.display());
            Failure::usage(problem).with_setting("persistence.worktree")
        })?;
        let prefix = here.run(&["rev-parse", "--show-prefix"]).await?;
        if here.attempt(&["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).await?.is_err() {
            let problem = format!("worktree: {repository} has no commit yet; expected one to start from");
            return Err(Failure::usage(problem).with_setting("persistence.worktree"));
        }
        let session = SessionId::generate();
        let root = state.join("worktrees").join(session.as_str());
        process_env.create_directory(&state.join("worktrees"))?;
        let worktree = Self { session, root, repository: PathBuf::from(repository) };
        let main = Git::new(&worktree.repository, process_env)?;
        if let Err(failure) = worktree.add(base, &main, process_env).await {
            // It contains no work of the user yet.
            worktree.discard(&main).await;
            return Err(failure);
        }
        let inside = worktree.root.join(prefix);
        Ok((worktree, inside))
    }

    async fn add(&self, base: WorktreeBase, main: &Git, process_env: &ProcessEnv) -> Result<(), Failure> {
        let [usual, other] = self.branches();
        // A branch of this name has a file where the other branches need a directory.
        let is_taken = main.attempt(&["show-ref", "--verify", "--quiet", "refs/heads/pintle"]).await?.is_ok();
        let branch = if is_taken { other } else { usual };
        let path = self.root.display().to_string();
        main.run(&["worktree", "add", "--quiet", "-b", &branch, &path, "HEAD"]).await?;
        self.fill(base, main, process_env).await
    }

    /// Removes all parts of the worktree that exist in git.
    async fn discard(&self, main: &Git) {
        let (path, base) = (self.root.display().to_string(), self.base());
        let _ = main.run(&["worktree", "remove", "--force", "--force", &path]).await;
        let _ = main.run(&["update-ref", "-d", &base]).await;
        for branch in self.branches() {
            let _ = main.run(&["branch", "--quiet", "-D", &branch]).await;
        }
    }

    /// Returns the worktree of a session, if it was made with one.
    pub fn from_summary(summary: &Summary) -> Option<Self> {
        let property = |name: &str| summary.properties.get(name).map(PathBuf::from);
        let (root, repository) = (property(ROOT)?, property(REPOSITORY)?);
        Some(Self { session: summary.id.clone(), root, repository })
    }

    /// Records the worktree in the summary of its session.
    pub(crate) fn add_to_summary(&self, summary: Summary) -> Summary {
        summary
            .with_property(ROOT, self.root.display().to_string())
            .with_property(REPOSITORY, self.repository.display().to_string())
    }

    /// Returns whether the worktree has not been removed.
    pub fn exists(&self, process_env: &ProcessEnv) -> bool {
        process_env.directory(Some(&self.root)).is_ok()
    }

    /// Returns the failure of an operation that needs the worktree, which has been removed.
    pub fn missing_failure(&self, process_env: &ProcessEnv) -> Failure {
        let Self { session, root, repository } = self;
        let message =
            format!("session {session} no longer has a worktree: {} does not exist", root.display());
        let resume = |directory: &str| {
            format!("`pintle run --resume {session} --dir {directory}` continues the session without it")
        };
        if !process_env.is_directory(repository) {
            return Failure::usage(message).with_hint(&resume("DIR"));
        }
        let repository = repository.display().to_string();
        Failure::usage(message).with_hint(&resume(&repository)).with_hint(&format!(
            "`git -C {repository} branch --list '*{session}*'` shows the branches with its commits"
        ))
    }

    /// Names for the branch of the session: the second one is for repositories with a branch `pintle`.
    fn branches(&self) -> [String; 2] {
        [format!("pintle/{}", self.session), format!("pintle-{}", self.session)]
    }

    /// Returns the existing [branches](Self::branches) of the session. The session may have renamed its branch.
    async fn own_branches(&self, git: &Git) -> Result<Vec<String>, Failure> {
        let [usual, other] = self.branches().map(|branch| format!("refs/heads/{branch}"));
        let found = git.run(&["for-each-ref", "--format=%(refname)", &usual, &other]).await?;
        let names = found.lines().filter_map(|name| name.strip_prefix("refs/heads/"));
        Ok(names.map(str::to_owned).collect())
    }

    /// Returns the branch that is checked out in the worktree; `None` for a detached `HEAD` and a branch without a commit.
    async fn current_branch(&self, git: &Git) -> Result<Option<String>, Failure> {
        let Ok(branch) = git.attempt(&["symbolic-ref", "--quiet", "--short", "HEAD"]).await? else {
            return Ok(None);
        };
        let reference = format!("refs/heads/{branch}");
        let has_commit = git.attempt(&["show-ref", "--verify", "--quiet", &reference]).await?.is_ok();
        Ok(has_commit.then_some(branch))
    }

    /// Returns the branch that the session checked out instead of its own branch. It stays when the worktree is
    /// removed.
    pub async fn other_branch(&self, process_env: &ProcessEnv) -> Result<Option<String>, Failure> {
        let current = self.current_branch(&self.git(process_env)?).await?;
        Ok(current.filter(|branch| !self.branches().contains(branch)))
    }

    /// Reference to the commit of the worktree's first state, whose parent is the commit that it was made from.
    fn base(&self) -> String {
        format!("refs/pintle/worktrees/{}", self.session)
    }

    fn git(&self, process_env: &ProcessEnv) -> Result<Git, Failure> {
        Git::new(&self.root, process_env)
    }

    /// Stages all files of the worktree in a separate index.
    async fn stage_files(&self, process_env: &ProcessEnv) -> Result<StagedFiles, Failure> {
        let git = self.git(process_env)?.with_temporary_index()?;
        let has_head = git.attempt(&["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).await?.is_ok();
        let base = self.base();
        git.run(&["read-tree", if has_head { "HEAD" } else { base.as_str() }]).await?;
        let others = git.bytes(&["ls-files", "-z", "--others", "--exclude-standard"]).await?;
        let repositories = GitFileListing::read(&others, &self.root, process_env).repositories;
        // A repository would be staged without its content, or fail without a commit.
        let excluded: Vec<String> = repositories
            .iter()
            .map(|name| format!(":(exclude,top,literal){}", name.trim_end_matches('/')))
            .collect();
        let paths: Vec<&str> = excluded.iter().map(String::as_str).collect();
        let add: &[&str] = if paths.is_empty() { &["add", "--all"] } else { &["add", "--all", "--", "."] };
        git.run(&[add, &paths[..]].concat()).await?;
        let tree = git.run(&["write-tree"]).await?;
        Ok(StagedFiles { git, tree, repositories, has_head })
    }

    /// Copies the local changes, if requested, and records the first state.
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
            for name in GitFileListing::read(&untracked, &self.repository, process_env).files {
                process_env.copy_below(&self.repository, &self.root, name)?;
            }
        }
        let StagedFiles { git, tree, .. } = self.stage_files(process_env).await?;
        let message = format!("First state of session {}", self.session);
        let commit = git.run(&["commit-tree", &tree, "-p", "HEAD", "-m", &message]).await?;
        git.run(&["update-ref", &self.base(), &commit]).await?;
        Ok(())
    }

    /// Returns the differences from the first state. Ignored files are listed separately.
    pub async fn changes(&self, process_env: &ProcessEnv) -> Result<WorktreeChanges, Failure> {
        let failure = match self.read_changes(process_env).await {
            Ok(changes) => return Ok(changes),
            Err(failure) => failure,
        };
        if self.is_repository_unmoved(process_env).await? {
            return Err(failure);
        }
        Err(failure.with_hint(&format!(
            "{} is not its repository any more; `git worktree repair {}` in a repository that was moved reconnects it",
            self.repository.display(),
            self.root.display()
        )))
    }

    /// Returns whether the repository is where it was when the session started.
    async fn is_repository_unmoved(&self, process_env: &ProcessEnv) -> Result<bool, Failure> {
        if !process_env.is_directory(&self.repository) {
            return Ok(false);
        }
        let git = Git::new(&self.repository, process_env)?;
        let found = git.attempt(&["rev-parse", "--show-toplevel"]).await?;
        Ok(found.is_ok_and(|root| process_env.is_same_path(Path::new(&root), &self.repository)))
    }

    async fn read_changes(&self, process_env: &ProcessEnv) -> Result<WorktreeChanges, Failure> {
        let StagedFiles { git, tree, repositories, has_head } = self.stage_files(process_env).await?;
        let base = self.base();
        let with = |format: &[&'static str]| [&pintle_env::Git::DIFF[..], format].concat();
        let trees = [base.as_str(), tree.as_str()];
        let status = git.run(&[&with(&["--name-status"])[..], &trees].concat()).await?;
        let patch =
            git.bytes(&[&with(&["--patch", "--binary", "--full-index"])[..], &trees].concat()).await?;
        let raw = git.run(&[&with(&["--raw"])[..], &trees].concat()).await?;
        let mut files: Vec<String> = status.lines().map(str::to_owned).collect();
        let recorded: Vec<&str> = raw.lines().filter_map(repository_of_raw_line).collect();
        let listing = git.bytes(&LIST_IGNORED).await?;
        let ignored = GitFileListing::read(&listing, &self.root, process_env);
        let mut created: Vec<String> = repositories.into_iter().chain(ignored.repositories).collect();
        created.extend(ignored_in_submodules(&self.root, &tree, process_env).await?);
        // Other work in a submodule is neither in the tree nor in the patch.
        let submodules = git.bytes(&pintle_env::Git::SUBMODULE_STATUS).await?;
        let mut changed: BTreeSet<String> =
            pintle_env::Git::changed_submodules(&submodules).into_iter().collect();
        changed.extend(submodules_with_work(&self.root, &base, process_env).await?);
        changed.retain(|name| !recorded.contains(&name.as_str()));
        files.extend(created.iter().map(|name| format!("A\t{name}")));
        // A submodule that was removed is listed already.
        let listed: BTreeSet<&str> =
            status.lines().filter_map(|line| Some(line.split_once('\t')?.1)).collect();
        let unlisted = changed.iter().filter(|name| !listed.contains(name.as_str()));
        files.extend(unlisted.map(|name| format!("M\t{name}")));
        let recorded = recorded.into_iter().map(str::to_owned);
        let repositories = created.into_iter().chain(recorded).chain(changed).collect();
        let ignored = ignored.files.into_iter().map(lossy).collect();
        let commits = self.count_commits(&git, has_head).await?;
        Ok(WorktreeChanges { files, patch, commits, repositories, ignored })
    }

    /// Returns the number of commits that the session made.
    async fn count_commits(&self, git: &Git, has_head: bool) -> Result<u64, Failure> {
        let mut tips = self.own_branches(git).await?;
        tips.extend(has_head.then(|| "HEAD".to_owned()));
        if tips.is_empty() {
            return Ok(0);
        }
        let tips: Vec<&str> = tips.iter().map(String::as_str).collect();
        let exclusion = format!("^{}^", self.base());
        let count = [&["rev-list", "--count", &exclusion][..], &tips[..]].concat();
        Ok(git.run(&count).await?.parse().unwrap_or(0))
    }

    /// Returns the root of the repository's working tree, which may have moved since the session started.
    async fn main_root(&self, process_env: &ProcessEnv) -> Result<PathBuf, Failure> {
        if self.is_repository_unmoved(process_env).await? {
            return Ok(self.repository.clone());
        }
        let listed = self.git(process_env)?.run(&["worktree", "list", "--porcelain"]).await?;
        // The main working tree comes first.
        let first = listed.lines().next().and_then(|line| line.strip_prefix("worktree "));
        Ok(first.map_or_else(|| self.repository.clone(), PathBuf::from))
    }

    /// Applies the changes to the repository's working tree, all or none, and removes the worktree. The index of the
    /// repository is not touched.
    ///
    /// Changes nothing and fails if a change does not apply, or if the session created repositories.
    pub async fn merge(
        &self,
        changes: &WorktreeChanges,
        process_env: &ProcessEnv,
    ) -> Result<MergeResult, Failure> {
        if !changes.repositories.is_empty() {
            let names = changes.repositories.join(", ");
            return Err(Failure::failed(format!(
                "cannot merge git repositories and submodules that the session created or changed: {}",
                sanitize(&names)
            ))
            .with_hint(&format!("nothing was changed; {}", self.repositories_remedy())));
        }
        let repository = self.main_root(process_env).await?;
        let main = Git::new(&repository, process_env)?;
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
        let branch = if changes.commits > 0 {
            Some(self.branch_with_commits(process_env).await?)
        } else {
            self.other_branch(process_env).await?
        };
        self.remove_except(branch.as_deref(), &main).await?;
        Ok(MergeResult { repository, branch })
    }

    /// Returns the steps after which the changes can be merged in spite of repositories and submodules.
    pub fn repositories_remedy(&self) -> String {
        format!(
            "copy or push the work in them to a place outside of {}, then remove the repositories, and in the submodules reset \
             the files and delete the new branches and stashes; a new repository without its `.git` is merged as files",
            self.root.display()
        )
    }

    /// Returns the branch with the session's commits, which a detached `HEAD` gets now.
    async fn branch_with_commits(&self, process_env: &ProcessEnv) -> Result<String, Failure> {
        let git = self.git(process_env)?;
        if let Some(branch) = self.current_branch(&git).await? {
            return Ok(branch);
        }
        for branch in self.own_branches(&git).await? {
            let has_all = ["merge-base", "--is-ancestor", "HEAD", &format!("refs/heads/{branch}")];
            if git.attempt(&has_all).await?.is_ok() {
                return Ok(branch);
            }
        }
        let branch = format!("pintle-{}-detached", self.session);
        git.run(&["update-ref", &format!("refs/heads/{branch}"), "HEAD"]).await?;
        Ok(branch)
    }

    /// Removes the worktree with everything in it, and the session's branch.
    pub async fn remove(&self, process_env: &ProcessEnv) -> Result<(), Failure> {
        let found = self.git(process_env)?.attempt(&["rev-parse", "--show-toplevel"]).await?;
        if found.is_ok_and(|root| process_env.is_same_path(Path::new(&root), &self.root)) {
            let main = Git::new(&self.main_root(process_env).await?, process_env)?;
            return self.remove_except(None, &main).await;
        }
        // The repository was moved or removed, or does not know the worktree.
        process_env.remove_directory(&self.root)?;
        if self.is_repository_unmoved(process_env).await? {
            self.discard(&Git::new(&self.repository, process_env)?).await;
        }
        Ok(())
    }

    /// Removes the worktree, and each branch of the session without commits besides the commits of `kept`.
    async fn remove_except(&self, kept: Option<&str>, main: &Git) -> Result<(), Failure> {
        let path = self.root.display().to_string();
        main.run(&["worktree", "remove", "--force", "--force", &path]).await?;
        let _ = main.run(&["update-ref", "-d", &self.base()]).await;
        for branch in self.own_branches(main).await? {
            let is_removed = match kept {
                Some(kept) if kept == branch => false,
                Some(kept) => {
                    let (branch, kept) = (format!("refs/heads/{branch}"), format!("refs/heads/{kept}"));
                    main.attempt(&["merge-base", "--is-ancestor", &branch, &kept]).await?.is_ok()
                }
                None => true,
            };
            if is_removed {
                main.run(&["branch", "--quiet", "-D", &branch]).await?;
            }
        }
        Ok(())
    }
}

/// Returns the path in a line of `git diff-tree --raw` whose new mode is the mode of a nested repository.
fn repository_of_raw_line(line: &str) -> Option<&str> {
    let (modes, path) = line.split_once('\t')?;
    (modes.split(' ').nth(1) == Some("160000")).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repositories_are_found_by_their_mode() {
        for (line, expected) in [
            (":000000 160000 0000000 abcdef0 A\tvendor/lib", Some("vendor/lib")),
            (":160000 160000 abcdef0 abcdef1 M\tsub", Some("sub")),
            (":160000 000000 abcdef0 0000000 D\tsub", None),
            (":100644 100644 abcdef0 abcdef1 M\t160000", None),
            ("", None),
        ] {
            assert_eq!(repository_of_raw_line(line), expected, "{line}");
        }
    }
}
