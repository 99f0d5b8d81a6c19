//! Facts about the execution environment, for the prompt.

use std::path::{Path, PathBuf};

use pintle_env::ExecutionEnvironment;
use serde::{Deserialize, Serialize, Serializer};

use super::git;

/// Facts about the execution environment, gathered once per session (loop specification, sections 6.3 and 6.4).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EnvironmentContext {
    /// Absolute path of the working directory. Bytes that are not UTF-8 are replaced.
    pub working_directory: String,
    /// Whether the working directory belongs to the work tree of a git repository.
    pub is_git_repository: bool,
    /// State of the git work tree; `None` outside of a work tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<GitContext>,
    /// Platform, such as `linux` or `darwin`.
    pub platform: String,
    /// Name and version of the operating system.
    pub os_version: String,
    /// Current date, as `YYYY-MM-DD`.
    pub date: String,
    /// Restrictions on commands; `None` without restrictions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command_limits: Option<String>,
}

/// State of a git work tree. All texts are single lines of limited length without control characters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct GitContext {
    /// Branch, or `(detached)`; `None` if only git can read it and timed out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Number of tracked files that differ from the last commit, including conflicts; `None` if git was late.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modified: Option<usize>,
    /// Number of untracked files, where an untracked directory counts once; `None` if git was late.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untracked: Option<usize>,
    /// Short hash and subject of the last commits, newest first; at most ten.
    #[serde(default)]
    pub recent_commits: Vec<String>,
    /// Absolute path of the work tree's root. Serialised lossily if it is not UTF-8.
    #[serde(serialize_with = "lossy")]
    pub root: PathBuf,
}

impl EnvironmentContext {
    /// Creates the facts of an environment outside of any repository. `date` is the current date as `YYYY-MM-DD`.
    #[must_use]
    pub fn new(
        working_directory: impl Into<String>,
        platform: impl Into<String>,
        os_version: impl Into<String>,
        date: impl Into<String>,
    ) -> Self {
        Self {
            working_directory: working_directory.into(),
            is_git_repository: false,
            git: None,
            platform: platform.into(),
            os_version: os_version.into(),
            date: date.into(),
            command_limits: None,
        }
    }

    /// Gathers the facts of `env`. `date` is the current date as `YYYY-MM-DD`; the library reads no clock.
    ///
    /// In a work tree it runs one git command with a time-out of five seconds, elsewhere none. If the index is large, the
    /// status is left out unless git reports it within ten milliseconds of the commits. Never fails: without git, outside of a
    /// repository, or where commands are refused, `git` is `None`; facts that git did not report in time stay unknown.
    /// Dropping the future kills the command.
    pub async fn gather(env: &dyn ExecutionEnvironment, date: String) -> Self {
        let directory = env.working_directory();
        let mut context = Self::new(directory.to_string_lossy(), env.platform(), env.os_version(), date);
        context.command_limits = env.command_limits();
        match git::snapshot(env).await {
            Some(git) => context.with_git(git),
            None => context,
        }
    }

    /// Sets the state of the work tree.
    #[must_use]
    pub fn with_git(mut self, git: GitContext) -> Self {
        self.is_git_repository = true;
        self.git = Some(git);
        self
    }

    /// Returns the root of the work tree, if there is one.
    #[must_use]
    pub fn git_root(&self) -> Option<&Path> {
        self.git.as_ref().map(|git| git.root.as_path())
    }
}

impl GitContext {
    /// Creates the state of a work tree of which only the root is known.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { branch: None, modified: None, untracked: None, recent_commits: Vec::new(), root: root.into() }
    }

    /// Sets the branch.
    #[must_use]
    pub fn with_branch(mut self, branch: impl Into<String>) -> Self {
        self.branch = Some(branch.into());
        self
    }

    /// Sets the numbers of modified and untracked files.
    #[must_use]
    pub fn with_status(mut self, modified: usize, untracked: usize) -> Self {
        self.modified = Some(modified);
        self.untracked = Some(untracked);
        self
    }

    /// Sets the last commits, newest first.
    #[must_use]
    pub fn with_recent_commits<C: Into<String>>(mut self, commits: impl IntoIterator<Item = C>) -> Self {
        self.recent_commits = commits.into_iter().map(Into::into).collect();
        self
    }
}

/// Serialises a path lossily, so that a path that is not UTF-8 can be recorded.
fn lossy<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}

#[cfg(test)]
mod tests;
