//! Git for tasks: on separate directories, and without commands that a repository's settings could run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pintle_env::{EnvError, ExecRequest, ExecutionEnvironment, shell_word};
use thiserror::Error;

/// Longest run of one git command. A first checkout of a large repository takes minutes.
const TIMEOUT: Duration = Duration::from_secs(600);

/// Maximum size of git's message in an error, in bytes.
const MAX_MESSAGE: usize = 2_000;

/// Error of git.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum GitError {
    /// It could not be run.
    #[error("git cannot be run")]
    Run(#[from] EnvError),
    /// It failed, with this message.
    #[error("`git {command}` failed: {message}")]
    Failed {
        /// Subcommand.
        command: String,
        /// Message of git.
        message: String,
    },
}

impl GitError {
    /// Returns the command that allows git to use a repository of another user, if git refused it because of its owner.
    pub(crate) fn ownership_remedy(&self) -> Option<&str> {
        match self {
            Self::Failed { message, .. } => pintle_env::Git::ownership_remedy(message),
            Self::Run(_) => None,
        }
    }
}

/// Git on one repository.
#[derive(Clone, Debug)]
pub(crate) struct RepositoryGit {
    /// Environment in which git runs: this machine, as the user.
    machine: Arc<dyn ExecutionEnvironment>,
    directory: PathBuf,
    variables: BTreeMap<&'static str, String>,
    /// Whether the user's settings apply, as in the user's repository.
    uses_user_settings: bool,
    /// Whether commits have the author and committer of these settings.
    uses_user_identity: bool,
}

impl RepositoryGit {
    /// Git in a working tree of the user, with the user's settings but without hooks.
    pub(crate) fn for_user(machine: &Arc<dyn ExecutionEnvironment>, directory: &Path) -> Self {
        let (machine, directory) = (Arc::clone(machine), directory.to_owned());
        let (uses_user_settings, uses_user_identity) = (true, false);
        Self { machine, directory, variables: BTreeMap::new(), uses_user_settings, uses_user_identity }
    }

    /// With the author and committer of the user's settings, if they have a name and an address.
    pub(crate) async fn with_user_identity(mut self) -> Self {
        let mut is_known = true;
        for key in ["user.name", "user.email"] {
            let value = self.run(&["config", "--get", key]).await;
            is_known &= value.is_ok_and(|value| !value.trim().is_empty());
        }
        self.uses_user_identity = is_known;
        self
    }

    /// Git on a repository of a task. Nothing in its working tree is trusted, in particular not its `.git`.
    pub(crate) fn for_task(machine: &Arc<dyn ExecutionEnvironment>, git_directory: &Path) -> Self {
        let mut git = Self::for_user(machine, git_directory);
        git.uses_user_settings = false;
        git.set_variable("GIT_DIR", git_directory)
    }

    /// With a working tree.
    pub(crate) fn with_work_tree(mut self, work_tree: &Path) -> Self {
        self.directory = work_tree.to_owned();
        self.set_variable("GIT_WORK_TREE", work_tree)
    }

    /// With another index than the usual one.
    pub(crate) fn with_index(self, index: &Path) -> Self {
        self.set_variable("GIT_INDEX_FILE", index)
    }

    fn set_variable(mut self, name: &'static str, path: &Path) -> Self {
        self.variables.insert(name, path.display().to_string());
        self
    }

    /// Runs a command and returns its standard output, without the last line feed.
    ///
    /// Cancel safe: git ends with the future.
    pub(crate) async fn run(&self, arguments: &[&str]) -> Result<String, GitError> {
        Ok(output_text(&self.bytes(arguments, None).await?))
    }

    /// Runs a command with this standard input, and returns its standard output.
    pub(crate) async fn bytes(&self, arguments: &[&str], input: Option<&[u8]>) -> Result<Vec<u8>, GitError> {
        self.run_all(&[arguments], input).await
    }

    /// Runs commands one after the other in one shell, which starts slower than most of them, up to the first one that fails.
    /// They share this standard input. Returns their standard output.
    pub(crate) async fn run_all(
        &self,
        commands: &[&[&str]],
        input: Option<&[u8]>,
    ) -> Result<Vec<u8>, GitError> {
        let failed = |message: String| {
            let names: Vec<&str> =
                commands.iter().filter_map(|arguments| arguments.first().copied()).collect();
            GitError::Failed { command: names.join(" && git "), message }
        };
        let result = self.machine.exec_command(self.request(commands, input)).await?;
        if result.timed_out {
            return Err(failed(format!("no end within {} s", TIMEOUT.as_secs())));
        }
        if !result.success() {
            let message = result.stderr.head_text_lossy(MAX_MESSAGE).unwrap_or_default();
            return Err(failed(message.trim().to_owned()));
        }
        if result.stdout.dropped() > 0 {
            return Err(failed("the output is too large".to_owned()));
        }
        result.stdout.read_at(0, usize::MAX).map_err(|error| failed(error.to_string()))
    }

    fn request(&self, commands: &[&[&str]], input: Option<&[u8]>) -> ExecRequest {
        let mut git = pintle_env::Git::new();
        if !self.uses_user_settings {
            git = git.without_user_settings();
        }
        for role in ["AUTHOR", "COMMITTER"] {
            if !self.uses_user_identity {
                git = git
                    .with_variable(format!("GIT_{role}_NAME"), "pintle")
                    .with_variable(format!("GIT_{role}_EMAIL"), "");
            }
            if !self.uses_user_settings {
                // The same content gives the same commit on every host.
                git = git.with_variable(format!("GIT_{role}_DATE"), "1000000000 +0000");
            }
        }
        for (name, value) in &self.variables {
            git = git.with_variable(*name, value);
        }
        let script: Vec<String> = commands.iter().map(|arguments| command_line(arguments)).collect();
        let request = git.script(&script.join(" && "));
        let request = request.with_timeout(TIMEOUT).with_working_dir(&self.directory);
        match input {
            Some(input) => request.with_stdin(input),
            None => request,
        }
    }
}

/// Returns the command of git with these arguments, for a shell.
fn command_line(arguments: &[&str]) -> String {
    let words = arguments.iter().map(|word| shell_word(word));
    std::iter::once("git".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

/// Returns output as text, without the last line feed.
pub(crate) fn output_text(output: &[u8]) -> String {
    let text = String::from_utf8_lossy(output);
    text.strip_suffix('\n').unwrap_or(&text).to_owned()
}
