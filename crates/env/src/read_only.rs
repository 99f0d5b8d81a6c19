//! The read-only wrapper.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use async_trait::async_trait;

use crate::{
    command::{Command, ExecRequest, ExecResult},
    environment::{ExecutionEnvironment, IntoEnvironment},
    error::EnvError,
    forward::forward,
    process::Process,
    write_switch::WriteSwitch,
};

/// Decides whether a command may run; `Err` refuses it with the reason.
pub type CommandClassifier = Arc<dyn Fn(&Command) -> Result<(), String> + Send + Sync>;

/// Refuses every write with [`EnvError::Refused`]; files can still be read, listed and searched.
///
/// The files that a command writes cannot be known in advance, so commands are refused as well unless the
/// embedding application allows or classifies them. Allowed commands are trusted; use `SandboxedEnvironment`
/// where the kernel must restrict them.
///
/// ```
/// use pintle_env::{ExecutionEnvironment, LocalEnvironment, Program, ReadOnlyEnvironment};
/// use std::sync::Arc;
///
/// # fn main() -> Result<(), pintle_env::EnvError> {
/// let local = Arc::new(LocalEnvironment::with_host_env("/", std::env::vars_os())?);
/// let reviewer = ReadOnlyEnvironment::new(local).with_command_classifier(|command| match &command.program {
///     Program::Argv { program, .. } if program == "git" => Ok(()),
///     Program::Argv { .. } | Program::Shell(_) => Err("only git runs in a review".to_owned()),
/// });
/// # assert_eq!(reviewer.working_directory(), std::path::Path::new("/"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ReadOnlyEnvironment {
    inner: Arc<dyn ExecutionEnvironment>,
    commands: Commands,
    /// Allows changes while it is on.
    switch: Option<WriteSwitch>,
}

#[derive(Clone)]
enum Commands {
    Refused,
    Allowed,
    Classified(CommandClassifier),
}

impl ReadOnlyEnvironment {
    /// Creates a read-only view of `inner` that refuses commands.
    #[must_use]
    pub fn new(inner: impl IntoEnvironment) -> Self {
        Self { inner: inner.into_environment(), commands: Commands::Refused, switch: None }
    }

    /// Allows everything that `inner` allows while the switch is on.
    #[must_use]
    pub fn with_write_switch(mut self, switch: &WriteSwitch) -> Self {
        self.switch = Some(switch.clone());
        self
    }

    /// Allows every command.
    #[must_use]
    pub fn allow_commands(mut self) -> Self {
        self.commands = Commands::Allowed;
        self
    }

    /// Allows the commands that `classify` accepts. It receives the complete command: program,
    /// working directory and variables.
    #[must_use]
    pub fn with_command_classifier(
        mut self,
        classify: impl Fn(&Command) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.commands = Commands::Classified(Arc::new(classify));
        self
    }

    fn is_writable(&self) -> bool {
        self.switch.as_ref().is_some_and(WriteSwitch::is_on)
    }

    fn check_command(&self, command: &Command) -> Result<(), EnvError> {
        if self.is_writable() {
            return Ok(());
        }
        let verdict = match &self.commands {
            Commands::Allowed => Ok(()),
            Commands::Refused => Err("the environment is read-only and runs no commands".to_owned()),
            Commands::Classified(classify) => classify(command),
        };
        verdict.map_err(|reason| EnvError::Refused { operation: "running the command".to_owned(), reason })
    }

    fn check_change(&self, action: &str, path: &Path) -> Result<(), EnvError> {
        if self.is_writable() {
            return Ok(());
        }
        Err(EnvError::Refused {
            operation: format!("{action} {}", self.resolve(path).display()),
            reason: "the environment is read-only".to_owned(),
        })
    }
}

#[async_trait]
impl ExecutionEnvironment for ReadOnlyEnvironment {
    forward! {
        inner:
        working_directory, home_directory, platform, os_version, initialize, cleanup, output_limits, command_limits, read, metadata, list,
        canonicalize, canonicalize_many, place, read_file, find_files, grep, walk, read_many, resolve,
    }

    async fn spawn(&self, command: Command) -> Result<Box<dyn Process>, EnvError> {
        self.check_command(&command)?;
        self.inner.spawn(command).await
    }

    fn outside_sandbox(&self) -> Option<Arc<dyn ExecutionEnvironment>> {
        let inner = self.inner.outside_sandbox()?;
        Some(Arc::new(Self { inner, ..self.clone() }))
    }

    async fn hold(&self, paths: &[PathBuf]) -> Result<Option<Arc<dyn ExecutionEnvironment>>, EnvError> {
        let held = self.inner.hold(paths).await?;
        Ok(held.map(|inner| Arc::new(Self { inner, ..self.clone() }) as _))
    }

    async fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), EnvError> {
        self.check_change("writing", path)?;
        self.inner.write(path, bytes).await
    }

    async fn remove(&self, path: &Path) -> Result<(), EnvError> {
        self.check_change("removing", path)?;
        self.inner.remove(path).await
    }

    async fn rename(&self, from: &Path, to: &Path) -> Result<(), EnvError> {
        self.check_change("renaming", from)?;
        self.inner.rename(from, to).await
    }

    async fn create_directory(&self, path: &Path) -> Result<(), EnvError> {
        self.check_change("creating", path)?;
        self.inner.create_directory(path).await
    }

    async fn create_symlink(&self, path: &Path, target: &Path) -> Result<(), EnvError> {
        self.check_change("creating", path)?;
        self.inner.create_symlink(path, target).await
    }

    async fn set_mode(&self, path: &Path, mode: u32) -> Result<(), EnvError> {
        self.check_change("changing the mode of", path)?;
        self.inner.set_mode(path, mode).await
    }

    async fn exec_command(&self, request: ExecRequest) -> Result<ExecResult, EnvError> {
        self.check_command(&Command::from(&request))?;
        self.inner.exec_command(request).await
    }
}

impl fmt::Debug for ReadOnlyEnvironment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let commands = match self.commands {
            Commands::Refused => "refused",
            Commands::Allowed => "allowed",
            Commands::Classified(_) => "classified",
        };
        f.debug_struct("ReadOnlyEnvironment")
            .field("inner", &self.inner)
            .field("commands", &commands)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        CommandScript, ExecutionEnvironmentExt as _, FileContent, GrepRequest, MemoryEnvironment, Program,
        ReadLimits, WalkRequest,
    };

    fn memory() -> MemoryEnvironment {
        MemoryEnvironment::new("/project")
            .with_file("a/b.txt", "needle\n")
            .with_commands(|_| CommandScript::exit(0))
    }

    fn is_refused<T: fmt::Debug>(result: Result<T, EnvError>) -> bool {
        matches!(result.unwrap_err(), EnvError::Refused { .. })
    }

    #[tokio::test]
    async fn reads_are_allowed_and_writes_refused() {
        let memory = memory();
        let environment = ReadOnlyEnvironment::new(Arc::new(memory.clone())).allow_commands();
        let path = Path::new("a/b.txt");
        assert_eq!(environment.read(path, None).await.unwrap(), b"needle\n");
        assert_eq!(environment.read_file(path, None, None).await.unwrap(), "needle\n");
        assert_eq!(environment.metadata(path).await.unwrap().len, 7);
        assert_eq!(environment.list_directory(Path::new(""), 2).await.unwrap().len(), 2);
        assert_eq!(environment.glob("**/*.txt", Path::new("")).await.unwrap().len(), 1);
        assert_eq!(environment.grep(&GrepRequest::new("needle")).await.unwrap().files.len(), 1);
        assert_eq!(environment.walk(&WalkRequest::new("")).await.unwrap().entries.len(), 2);
        let read = environment.read_many(&["a/b.txt".into()], ReadLimits::new(9, 9)).await.unwrap();
        assert_eq!(read, [FileContent::Bytes(b"needle\n".to_vec())]);
        let before = memory.files();
        for path in ["a/b.txt", "a", "new/c.txt", "gone"].map(Path::new) {
            assert!(is_refused(environment.write(path, b"x").await));
            assert!(is_refused(environment.write_file(path, "x").await));
            assert!(is_refused(environment.remove(path).await));
            assert!(is_refused(environment.rename(path, Path::new("to")).await));
            assert!(is_refused(environment.rename(Path::new("a/b.txt"), path).await));
            assert!(is_refused(environment.create_directory(path).await));
            assert!(is_refused(environment.create_symlink(path, Path::new("b")).await));
            assert!(is_refused(environment.set_mode(path, 0o777).await));
        }
        assert_eq!(memory.files(), before);
        assert!(!environment.shares_host_files());
    }

    #[tokio::test]
    async fn switch_allows_changes_while_it_is_on() {
        let memory = memory();
        let switch = WriteSwitch::new(false);
        let environment = ReadOnlyEnvironment::new(Arc::new(memory.clone())).with_write_switch(&switch);
        let (path, link) = (Path::new("new/c.txt"), Path::new("link"));
        assert!(is_refused(environment.write(path, b"x").await));
        switch.set(true);
        environment.write(path, b"x").await.unwrap();
        environment.rename(path, Path::new("d.txt")).await.unwrap();
        environment.create_directory(Path::new("e")).await.unwrap();
        environment.remove(Path::new("d.txt")).await.unwrap();
        // What the inner environment lacks is its own error.
        let unsupported = environment.create_symlink(link, path).await;
        assert!(!matches!(unsupported, Err(EnvError::Refused { .. })));
        assert!(environment.exec_command(ExecRequest::new("ls")).await.unwrap().success());
        switch.set(false);
        assert!(is_refused(environment.write(path, b"x").await));
        assert!(is_refused(environment.exec_command(ExecRequest::new("ls")).await));
    }

    #[tokio::test]
    async fn commands_are_refused_allowed_or_classified() {
        let inner: Arc<dyn ExecutionEnvironment> = Arc::new(memory());
        let refusing = ReadOnlyEnvironment::new(Arc::clone(&inner));
        assert!(is_refused(refusing.exec_command(ExecRequest::new("ls")).await));
        assert!(is_refused(refusing.spawn(Command::shell("ls")).await));
        let allowing = refusing.clone().allow_commands();
        assert!(allowing.exec_command(ExecRequest::new("ls")).await.unwrap().success());
        let classifying = refusing.with_command_classifier(|command| match &command.program {
            Program::Shell(line)
                if line == "ls" && command.env.contains_key("OK".as_ref() as &std::ffi::OsStr) =>
            {
                Ok(())
            }
            Program::Shell(_) | Program::Argv { .. } => Err("only ls".to_owned()),
        });
        let request = ExecRequest::new("ls");
        assert!(classifying.exec_command(request.clone().with_env("OK", "1")).await.unwrap().success());
        assert!(classifying.spawn(Command::shell("ls").with_env("OK", "1")).await.is_ok());
        let error = classifying.exec_command(request).await.unwrap_err();
        assert_eq!(error.to_string(), "running the command is refused: only ls");
        assert!(is_refused(classifying.spawn(Command::argv("ls", ["-l"])).await));
    }
}
