//! Commands on this machine: as the user, and in the sandbox for code that an agent wrote.

use std::path::{Path, PathBuf};
use std::time::Duration;

use pintle_env::{
    EnvPolicy, ExecRequest, ExecResult, ExecutionEnvironment, Git, LocalEnvironment, Output, shell_word,
};
use pintle_host::SandboxLevel;
use pintle_host::env_spec::{EnvSpec, EnvironmentChoice};
use pintle_host::environment::{Confinement, EnvSession, EnvTarget, SandboxRequirements, SandboxState};
use pintle_host::failure::{Failure, OrFailure as _};
use pintle_host::process_env::ProcessEnv;
use pintle_host::sessions::Sessions;

/// Time limit of git, of copies and of generators.
const TIME_LIMIT: Duration = Duration::from_secs(600);

/// Maximum size of a message of git, in bytes.
const MAX_MESSAGE: usize = 2_000;

/// This machine, with the variables and keys of its user.
#[derive(Clone, Debug)]
pub struct Machine {
    process_env: ProcessEnv,
    sandbox: SandboxLevel,
}

impl Machine {
    /// Creates a machine whose tests run in the strictest sandbox that it supports.
    #[must_use]
    pub const fn new(process_env: ProcessEnv) -> Self {
        Self { process_env, sandbox: SandboxLevel::Auto }
    }

    /// Runs tests with all permissions of the user.
    #[must_use]
    pub fn without_sandbox(mut self) -> Self {
        self.sandbox = SandboxLevel::Off;
        self
    }

    /// Returns whether tests run in a sandbox.
    #[must_use]
    pub fn has_sandbox(&self) -> bool {
        self.sandbox != SandboxLevel::Off
    }

    pub(crate) const fn process_env(&self) -> &ProcessEnv {
        &self.process_env
    }

    /// Runs a script of the suite's author without a sandbox. It must succeed.
    pub(crate) async fn run_trusted(
        &self,
        directory: &Path,
        script: &str,
        variables: &[(&str, &Path)],
    ) -> Result<(), Failure> {
        self.run_trusted_within(TIME_LIMIT, directory, script, variables).await
    }

    /// As [`run_trusted`](Self::run_trusted), with another time limit.
    pub(crate) async fn run_trusted_within(
        &self,
        limit: Duration,
        directory: &Path,
        script: &str,
        variables: &[(&str, &Path)],
    ) -> Result<(), Failure> {
        let request = ExecRequest::new(script).with_timeout(limit).with_working_dir(directory);
        let request = variables
            .iter()
            .fold(request, |request, (name, path)| request.with_env(*name, path.display().to_string()));
        let ended = execute(&self.process_env.local_environment(directory)?, request).await?;
        match ended.success() {
            true => Ok(()),
            false => Err(Failure::failed(format!("`{script}` failed: {}", describe_failure(&ended)))),
        }
    }

    /// Runs a program with all variables of the user, including keys.
    pub(crate) async fn run_as_user(
        &self,
        directory: &Path,
        request: ExecRequest,
    ) -> Result<ExecResult, Failure> {
        let builder = self.process_env.unsandboxed_builder(directory).with_env_policy(EnvPolicy::InheritAll);
        let environment = builder.build().or_failed("cannot use the execution environment")?;
        execute(&environment, request.with_working_dir(directory)).await
    }

    /// Runs a script in which `git` reads no settings of the user, and returns its standard output without the last line feed.
    pub(crate) async fn git(&self, directory: &Path, script: &str) -> Result<String, Failure> {
        let mut git = Git::new().without_user_settings();
        for role in ["AUTHOR", "COMMITTER"] {
            git = git
                .with_variable(format!("GIT_{role}_NAME"), "pintle")
                .with_variable(format!("GIT_{role}_EMAIL"), "")
                // The same files give the same commit.
                .with_variable(format!("GIT_{role}_DATE"), "1000000000 +0000");
        }
        let request = git.script(&format!("set -e\n{script}")).with_timeout(TIME_LIMIT);
        let environment: LocalEnvironment = self.process_env.local_environment(directory)?;
        let ended = execute(&environment, request.with_working_dir(directory)).await?;
        if !ended.success() {
            return Err(Failure::failed(format!("git failed: {}", describe_failure(&ended))));
        }
        let text = ended.stdout.to_text_lossy().or_failed("the output of git cannot be read")?;
        Ok(text.strip_suffix('\n').unwrap_or(&text).to_owned())
    }

    /// Returns a hash of the paths and contents of the files in a directory.
    pub(crate) async fn hash_tree(&self, directory: &Path) -> Result<String, Failure> {
        let script = "find . -name .git -prune -o -name __pycache__ -prune -o -type f -print | LC_ALL=C sort | \
                      while IFS= read -r file; do printf '%s\\n' \"$file\"; cat \"$file\"; done | \
                      git hash-object --stdin";
        self.git(directory, script).await
    }

    /// Returns the first of these programs that the user does not have.
    pub(crate) async fn missing_program<'n>(&self, names: &'n [String]) -> Result<Option<&'n str>, Failure> {
        for name in names {
            let request = ExecRequest::new(format!("command -v {}", shell_word(name)));
            let found = execute(&self.process_env.local_environment(Path::new("/"))?, request).await?;
            if !found.success() {
                return Ok(Some(name.as_str()));
            }
        }
        Ok(None)
    }

    /// Opens a sandboxed environment in a directory with code of an agent.
    pub(crate) async fn confine(&self, directory: &Path, network: bool) -> Result<EnvSession, Failure> {
        let process_env = self.process_env.clone().with_workspace(Some(directory));
        let choice = EnvironmentChoice { spec: EnvSpec::Local, directory: Some(directory.to_owned()) };
        let confinement =
            Confinement { level: self.sandbox, network: network.then_some(true), confine: false };
        let used = SandboxRequirements { is_disposable: true, ..SandboxRequirements::default() };
        let target = EnvTarget::new(choice, confinement, &process_env)?.with_requirements(used);
        let session = target.connect().await?;
        let refused = match session.sandbox() {
            SandboxState::Unavailable { reasons } => {
                Failure::usage(format!("tests of a suite need a sandbox: {reasons}"))
                    .with_hint("`--no-sandbox` runs them with all your permissions")
            }
            SandboxState::Off | SandboxState::Level(_) => return Ok(session),
        };
        session.close().await?;
        Err(refused)
    }

    /// Returns the directory of an attempt in this process. Commands of other attempts cannot read it at the sandbox level
    /// `full`. Removes directories that killed processes left. Their commands may still write to them for some seconds.
    pub(crate) fn work_directory(&self, name: &str) -> Result<PathBuf, Failure> {
        let parent = Sessions::directory(&self.process_env)?.join("worktrees");
        let start = format!("eval-{name}-");
        let left = self.process_env.directories_in(&parent).into_iter();
        for path in left.filter(|path| path.to_string_lossy().contains(&start)) {
            let _ = self.remove(&path);
        }
        Ok(parent.join(format!("{start}{}", std::process::id())))
    }

    /// Removes a directory, if it exists.
    pub(crate) fn remove(&self, directory: &Path) -> Result<(), Failure> {
        if self.process_env.is_directory(directory) {
            self.process_env.remove_directory(directory)?;
        }
        Ok(())
    }
}

/// Runs a command to its end, and ends the processes that it left.
pub(crate) async fn execute(
    environment: &dyn ExecutionEnvironment,
    request: ExecRequest,
) -> Result<ExecResult, Failure> {
    let ended = environment.exec_command(request).await;
    let cleaned = environment.cleanup().await;
    let ended = ended.or_failed("a command cannot be run")?;
    cleaned.or_failed("a command may still be running")?;
    Ok(ended)
}

/// Returns why a command failed: its time limit, and the end of its output or else its exit code.
fn describe_failure(ended: &ExecResult) -> String {
    let output = tail(&ended.output, MAX_MESSAGE);
    match (ended.timed_out, output.is_empty()) {
        (true, _) => format!("the command exceeded its time limit\n{output}").trim_end().to_owned(),
        (false, true) => format!("exit code {}", ended.exit_code),
        (false, false) => output,
    }
}

/// Returns the end of an output.
pub(crate) fn tail(output: &Output, max_bytes: usize) -> String {
    output.tail_text_lossy(max_bytes).unwrap_or_default().trim().to_owned()
}
