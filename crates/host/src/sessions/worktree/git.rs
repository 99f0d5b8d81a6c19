//! Git in one directory, as the command runs it itself.

use std::path::{Path, PathBuf};
use std::time::Duration;

use pintle_env::{ExecutionEnvironment as _, LocalEnvironment};
use tempfile::TempDir;

use crate::failure::Failure;
use crate::process_env::ProcessEnv;

/// Time limit of one git command. A first checkout of a large repository takes minutes.
const TIMEOUT: Duration = Duration::from_secs(600);

/// Most bytes of git's message in a failure.
const MAX_MESSAGE: usize = 4_000;

/// Git in one directory.
#[derive(Debug)]
pub(super) struct Git {
    env: LocalEnvironment,
    /// Temporary directory of the index that is used in place of the directory's own.
    index: Option<TempDir>,
    /// Git directory that is used, whatever its working tree is.
    git_directory: Option<PathBuf>,
}

impl Git {
    pub(super) fn new(directory: &Path, process_env: &ProcessEnv) -> Result<Self, Failure> {
        Ok(Self { env: process_env.local_environment(directory)?, index: None, git_directory: None })
    }

    /// Creates git for a git directory, whose working tree may be missing. Nothing is fetched from a remote.
    pub(super) fn with_git_directory(directory: &Path, process_env: &ProcessEnv) -> Result<Self, Failure> {
        let git_directory = Some(directory.to_path_buf());
        Ok(Self { git_directory, ..Self::new(directory, process_env)? })
    }

    /// Uses an empty index in a temporary directory, so that the index of the working tree is unchanged. The index is
    /// removed with this value.
    pub(super) fn with_temporary_index(mut self) -> Result<Self, Failure> {
        let directory = tempfile::tempdir().map_err(|error| {
            Failure::failed("cannot create a temporary directory for git").caused_by(&error)
        })?;
        self.index = Some(directory);
        Ok(self)
    }

    /// Runs a command and returns its standard output, without the last line feed.
    pub(super) async fn run(&self, arguments: &[&str]) -> Result<String, Failure> {
        Ok(text(&self.bytes(arguments).await?))
    }

    /// Runs a command and returns its standard output.
    pub(super) async fn bytes(&self, arguments: &[&str]) -> Result<Vec<u8>, Failure> {
        self.output(arguments).await?.map_err(|message| failure(arguments, &message))
    }

    /// Runs a command that may fail, and returns its standard output as [`Git::run`] does, or git's message.
    ///
    /// Fails only if git does not run, or not to its end.
    pub(super) async fn attempt(&self, arguments: &[&str]) -> Result<Result<String, String>, Failure> {
        Ok(self.output(arguments).await?.map(|output| text(&output)))
    }

    async fn output(&self, arguments: &[&str]) -> Result<Result<Vec<u8>, String>, Failure> {
        let mut git = pintle_env::Git::new();
        for role in ["AUTHOR", "COMMITTER"] {
            git = git
                .with_variable(format!("GIT_{role}_NAME"), "pintle")
                .with_variable(format!("GIT_{role}_EMAIL"), "");
        }
        if let Some(index) = &self.index {
            git = git.with_variable("GIT_INDEX_FILE", index.path().join("index").display().to_string());
        }
        if let Some(directory) = &self.git_directory {
            // Otherwise git changes to the working tree that its settings name.
            git = git
                .with_variable("GIT_DIR", directory.display().to_string())
                .with_variable("GIT_WORK_TREE", ".")
                .with_variable("GIT_NO_LAZY_FETCH", "1");
        }
        let request = git.request(arguments).with_timeout(TIMEOUT);
        let result = self.env.exec_command(request).await;
        let result = result.map_err(|error| failure(arguments, &error.to_string()))?;
        if result.timed_out {
            return Err(failure(arguments, &format!("no end within {} s", TIMEOUT.as_secs())));
        }
        if !result.success() {
            let message = result.stderr.head_text_lossy(MAX_MESSAGE).unwrap_or_default();
            return Ok(Err(message.trim().to_owned()));
        }
        if result.stdout.dropped() > 0 {
            return Err(failure(arguments, "the output is too large"));
        }
        result.stdout.read_at(0, usize::MAX).map(Ok).map_err(|error| failure(arguments, &error.to_string()))
    }
}

/// Returns the failure of a command with git's message, and with git's remedy for a repository of another user.
pub(super) fn failure(arguments: &[&str], message: &str) -> Failure {
    let command = arguments.first().copied().unwrap_or_default();
    match pintle_env::Git::ownership_remedy(message) {
        Some(remedy) => Failure::failed(format!(
            "`git {command}` failed: the repository belongs to another user (dubious ownership)"
        ))
        .with_hint(&format!("`{remedy}` allows git to use it")),
        None => Failure::failed(format!("`git {command}` failed: {message}")),
    }
}

fn text(output: &[u8]) -> String {
    let text = String::from_utf8_lossy(output);
    text.strip_suffix('\n').unwrap_or(&text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_of_another_user_is_named_with_the_remedy() {
        let message = "fatal: detected dubious ownership in repository at '/p'\nTo add an exception for this directory, call:\n\n\
            \tgit config --global --add safe.directory /p";
        for (message, expected) in [
            (
                message,
                "`git status` failed: the repository belongs to another user (dubious ownership); \
                 `git config --global --add safe.directory /p` allows git to use it",
            ),
            ("fatal: bad revision", "`git status` failed: fatal: bad revision"),
        ] {
            assert_eq!(failure(&["status", "--short"], message).message(), expected);
        }
    }
}
