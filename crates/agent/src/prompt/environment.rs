//! What the model is told of the place that it works in.

use std::path::{Path, PathBuf};

use pintle_env::ExecutionEnvironment;
use serde::{Deserialize, Serialize, Serializer};

use super::git;

/// Facts about the place where tools run, taken once per session (loop specification, sections 6.3 and 6.4).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EnvironmentContext {
    /// Where commands start: absolute. What is not UTF-8 in it is replaced.
    pub working_directory: String,
    /// Whether the working directory belongs to the work tree of a git repository.
    pub is_git_repository: bool,
    /// What git says of the work tree; `None` outside of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<GitContext>,
    /// `linux`, `darwin` and the like.
    pub platform: String,
    /// The system's name and version.
    pub os_version: String,
    /// Today, as `YYYY-MM-DD`.
    pub date: String,
}

/// What git says of a work tree. Texts are single lines, bounded, without control characters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct GitContext {
    /// The branch, or `(detached)`; `None` if git did not say in time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// How many tracked files differ from the last commit, conflicts included; `None` if git did not say in time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modified: Option<usize>,
    /// How many untracked files there are, a directory of such files counting once; `None` if git did not say in time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untracked: Option<usize>,
    /// The last commits, newest first, ten at most: short hash and subject.
    #[serde(default)]
    pub recent_commits: Vec<String>,
    /// The root of the work tree: absolute. Serialised lossily where it is not UTF-8.
    #[serde(serialize_with = "lossy")]
    pub root: PathBuf,
}

impl EnvironmentContext {
    /// A place outside any repository. `date` is today as `YYYY-MM-DD`.
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
        }
    }

    /// Looks around in `env`. `date` is today as `YYYY-MM-DD`: the library has no clock of its own.
    ///
    /// Git is asked by one command, for five seconds at most. It never fails: without git, without a repository, or
    /// where commands are refused, the place counts as no repository; what git did not say in time stays unknown.
    /// Dropping the future ends the command.
    pub async fn gather(env: &dyn ExecutionEnvironment, date: String) -> Self {
        let directory = env.working_directory();
        let place = Self::new(directory.to_string_lossy(), env.platform(), env.os_version(), date);
        match git::snapshot(env).await {
            Some(git) => place.with_git(git),
            None => place,
        }
    }

    /// Puts the place inside a work tree.
    #[must_use]
    pub fn with_git(mut self, git: GitContext) -> Self {
        self.is_git_repository = true;
        self.git = Some(git);
        self
    }

    /// The root of the work tree, if there is one.
    #[must_use]
    pub fn git_root(&self) -> Option<&Path> {
        self.git.as_ref().map(|git| git.root.as_path())
    }
}

impl GitContext {
    /// A work tree of which nothing is known but its root.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { branch: None, modified: None, untracked: None, recent_commits: Vec::new(), root: root.into() }
    }

    /// With the name of the branch.
    #[must_use]
    pub fn with_branch(mut self, branch: impl Into<String>) -> Self {
        self.branch = Some(branch.into());
        self
    }

    /// With the numbers of modified and of untracked files.
    #[must_use]
    pub fn with_status(mut self, modified: usize, untracked: usize) -> Self {
        self.modified = Some(modified);
        self.untracked = Some(untracked);
        self
    }

    /// With the last commits, newest first.
    #[must_use]
    pub fn with_recent_commits<C: Into<String>>(mut self, commits: impl IntoIterator<Item = C>) -> Self {
        self.recent_commits = commits.into_iter().map(Into::into).collect();
        self
    }
}

/// A path that is not UTF-8 must not make a recording impossible.
fn lossy<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}

#[cfg(test)]
mod tests;
