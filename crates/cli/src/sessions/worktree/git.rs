//! Git, as the command runs it itself: without hooks, file monitors and external programs for diffs.

use std::path::{Path, PathBuf};
use std::time::Duration;

use pintle_env::{ExecRequest, ExecutionEnvironment as _, LocalEnvironment};

use crate::failure::Failure;
use crate::process_env::ProcessEnv;

/// Longest run of one git command. A first checkout of a large repository takes minutes.
const TIMEOUT: Duration = Duration::from_secs(600);

/// Most bytes of git's message in a failure.
const MAX_MESSAGE: usize = 4_000;

/// Settings that keep a repository's own configuration from running programs.
const NEUTRAL: &[&str] = &[
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "commit.gpgSign=false",
    "gc.auto=0",
    "core.quotePath=false",
];

/// Git in one directory.
#[derive(Debug)]
pub(super) struct Git {
    env: LocalEnvironment,
    /// Index to use in place of the directory's own.
    index: Option<PathBuf>,
}

impl Git {
    /// # Errors
    ///
    /// A failure if commands cannot run in the directory.
    pub(super) fn new(directory: &Path, process_env: &ProcessEnv) -> Result<Self, Failure> {
        Ok(Self { env: process_env.local_environment(directory)?, index: None })
    }

    /// Uses this file as the index, so that the directory's own stays as it is.
    pub(super) fn with_index(mut self, index: PathBuf) -> Self {
        self.index = Some(index);
        self
    }

    /// Runs a command and returns its standard output, without the last line feed.
    ///
    /// # Errors
    ///
    /// A failure with git's own message.
    pub(super) async fn run(&self, arguments: &[&str]) -> Result<String, Failure> {
        let output = self.bytes(arguments).await?;
        let text = String::from_utf8_lossy(&output).into_owned();
        Ok(text.strip_suffix('\n').unwrap_or(&text).to_owned())
    }

    /// Runs a command and returns its standard output.
    ///
    /// # Errors
    ///
    /// As for [`Git::run`].
    pub(super) async fn bytes(&self, arguments: &[&str]) -> Result<Vec<u8>, Failure> {
        let settings = NEUTRAL.iter().flat_map(|setting| ["-c", setting]);
        let words = ["git"].into_iter().chain(settings).chain(arguments.iter().copied());
        let line = words.map(quoted).collect::<Vec<_>>().join(" ");
        let mut request = ExecRequest::new(line).with_timeout(TIMEOUT).with_env("GIT_TERMINAL_PROMPT", "0");
        for (name, value) in [("GIT_AUTHOR", "pintle"), ("GIT_COMMITTER", "pintle")] {
            request = request.with_env(format!("{name}_NAME"), value).with_env(format!("{name}_EMAIL"), "");
        }
        if let Some(index) = &self.index {
            request = request.with_env("GIT_INDEX_FILE", index.display().to_string());
        }
        let failed = |message: String| {
            let command = arguments.first().copied().unwrap_or_default();
            Failure::failed(format!("`git {command}` failed: {message}"))
        };
        let result = self.env.exec_command(request).await.map_err(|error| failed(error.to_string()))?;
        if result.timed_out {
            return Err(failed(format!("no end within {} s", TIMEOUT.as_secs())));
        }
        if !result.success() {
            let message = result.stderr.read_at(0, MAX_MESSAGE).unwrap_or_default();
            return Err(failed(String::from_utf8_lossy(&message).trim().to_owned()));
        }
        result.stdout.read_at(0, usize::MAX).map_err(|error| failed(error.to_string()))
    }
}

/// Quotes a word for the shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_reach_git_as_they_are() {
        assert_eq!(quoted("it's $HOME"), r"'it'\''s $HOME'");
    }
}
