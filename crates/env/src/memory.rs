//! In-memory environment for tests: files in memory, commands scripted by a function.

mod process;
mod script;
mod tree;

use std::{
    collections::BTreeMap,
    fmt, io,
    ops::Range,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;

pub use self::script::CommandScript;
use self::{process::MemoryProcess, tree::Tree};
use crate::{
    command::Command,
    environment::ExecutionEnvironment,
    error::EnvError,
    file::{DirEntry, Metadata},
    process::Process,
};

/// Returns the script of a command.
type ScriptFn = Arc<dyn Fn(&Command) -> CommandScript + Send + Sync>;

/// An environment with files in memory and commands scripted by a function.
///
/// Clones share all state. There are no symbolic links. Each write is one second later than the one
/// before. Without a function for commands, starting one fails with [`EnvError::Unsupported`].
#[derive(Clone)]
pub struct MemoryEnvironment {
    working_directory: PathBuf,
    home: Option<PathBuf>,
    script_for: Option<ScriptFn>,
    /// Environment outside of the sandbox, if it pretends to have one.
    outside: Option<Arc<MemoryEnvironment>>,
    state: Arc<Mutex<MemoryState>>,
}

/// Held by each process during its lifetime.
#[derive(Debug, Default)]
struct RunningToken;

#[derive(Debug, Default)]
struct MemoryState {
    tree: Tree,
    commands: Vec<Command>,
    running: Arc<RunningToken>,
}

impl MemoryEnvironment {
    /// Creates an environment in `directory`, which is absolute, exists and is empty.
    #[must_use]
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        let environment = Self {
            working_directory: directory.into(),
            home: None,
            script_for: None,
            outside: None,
            state: Arc::default(),
        };
        let directory = environment.working_directory.clone();
        environment.with_directory(directory)
    }

    /// Sets the home directory, which is absolute.
    #[must_use]
    pub fn with_home(mut self, home: impl Into<PathBuf>) -> Self {
        self.home = Some(home.into());
        self
    }

    /// Adds a file with its parent directories, replacing whatever is in the way.
    #[must_use]
    pub fn with_file(self, path: impl AsRef<Path>, content: impl Into<Vec<u8>>) -> Self {
        let path = self.resolve(path.as_ref());
        self.lock().tree.put_file(&path, content.into());
        self
    }

    /// Adds an empty directory with its parents, replacing whatever is in the way.
    #[must_use]
    pub fn with_directory(self, path: impl AsRef<Path>) -> Self {
        let path = self.resolve(path.as_ref());
        self.lock().tree.put_directory(&path);
        self
    }

    /// Runs every command by the script that `script_for` returns.
    #[must_use]
    pub fn with_commands(
        mut self,
        script_for: impl Fn(&Command) -> CommandScript + Send + Sync + 'static,
    ) -> Self {
        self.script_for = Some(Arc::new(script_for));
        self
    }

    /// Pretends that commands run in a sandbox, and outside of it in another environment.
    #[must_use]
    pub fn with_sandbox(mut self, outside: &Self) -> Self {
        self.outside = Some(Arc::new(outside.clone()));
        self
    }

    /// Returns all files with their content.
    #[must_use]
    pub fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        self.lock().tree.files()
    }

    /// Returns the commands started so far, in order.
    #[must_use]
    pub fn commands(&self) -> Vec<Command> {
        self.lock().commands.clone()
    }

    /// Returns the number of processes that were started and not yet dropped.
    #[must_use]
    pub fn running(&self) -> usize {
        Arc::strong_count(&self.lock().running) - 1
    }

    fn lock(&self) -> MutexGuard<'_, MemoryState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the absolute path, or an error for a path that no system accepts.
    fn checked(&self, path: &Path) -> Result<PathBuf, EnvError> {
        let path = self.resolve(path);
        if path.as_os_str().as_encoded_bytes().contains(&0) {
            return Err(EnvError::InvalidPath { path, source: io::ErrorKind::InvalidInput.into() });
        }
        Ok(path)
    }
}

#[async_trait]
impl ExecutionEnvironment for MemoryEnvironment {
    fn working_directory(&self) -> &Path {
        &self.working_directory
    }

    fn home_directory(&self) -> Option<&Path> {
        self.home.as_deref()
    }

    fn platform(&self) -> &str {
        "linux"
    }

    fn os_version(&self) -> &str {
        "memory"
    }

    fn command_limits(&self) -> Option<String> {
        self.outside.as_ref().map(|_| "they run in a sandbox.".to_owned())
    }

    fn outside_sandbox(&self) -> Option<Arc<dyn ExecutionEnvironment>> {
        self.outside.clone().map(|outside| outside as _)
    }

    async fn spawn(&self, command: Command) -> Result<Box<dyn Process>, EnvError> {
        let directory = command.working_dir.as_deref().unwrap_or(Path::new(""));
        let directory = self.checked(directory)?;
        if !self.lock().tree.metadata(&directory)?.is_dir() {
            return Err(EnvError::NotADirectory { path: directory });
        }
        let Some(script_for) = &self.script_for else {
            return Err(EnvError::Unsupported {
                operation: "running commands".to_owned(),
                environment: "a memory environment without a function for commands".to_owned(),
            });
        };
        let script = script_for(&command);
        let mut state = self.lock();
        let process = MemoryProcess::start(script, command.stdin, Arc::clone(&state.running));
        state.commands.push(command);
        Ok(Box::new(process))
    }

    async fn read(&self, path: &Path, range: Option<Range<u64>>) -> Result<Vec<u8>, EnvError> {
        let path = self.checked(path)?;
        let bytes = self.lock().tree.read(&path)?;
        let Range { start, end } = range.unwrap_or(0..u64::MAX);
        let start = usize::try_from(start).unwrap_or(usize::MAX).min(bytes.len());
        let end = usize::try_from(end).unwrap_or(usize::MAX).min(bytes.len());
        Ok(bytes.get(start..end).unwrap_or_default().to_vec())
    }

    async fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), EnvError> {
        let path = self.checked(path)?;
        self.lock().tree.write(&path, bytes.to_vec())
    }

    async fn metadata(&self, path: &Path) -> Result<Metadata, EnvError> {
        let path = self.checked(path)?;
        self.lock().tree.metadata(&path)
    }

    async fn list(&self, path: &Path) -> Result<Vec<DirEntry>, EnvError> {
        let path = self.checked(path)?;
        self.lock().tree.list(&path)
    }

    async fn remove(&self, path: &Path) -> Result<(), EnvError> {
        let path = self.checked(path)?;
        self.lock().tree.remove(&path)
    }

    /// There are no links to follow.
    async fn canonicalize(&self, path: &Path) -> Result<PathBuf, EnvError> {
        let path = self.checked(path)?;
        match self.lock().tree.metadata(&path) {
            Err(error @ EnvError::NotADirectory { .. }) => Err(error),
            Ok(_) | Err(_) => Ok(path),
        }
    }

    async fn create_directory(&self, path: &Path) -> Result<(), EnvError> {
        let path = self.checked(path)?;
        self.lock().tree.create_directory(&path)
    }

    async fn set_mode(&self, path: &Path, mode: u32) -> Result<(), EnvError> {
        let path = self.checked(path)?;
        self.lock().tree.set_mode(&path, mode)
    }

    async fn rename(&self, from: &Path, to: &Path) -> Result<(), EnvError> {
        let (from, to) = (self.checked(from)?, self.checked(to)?);
        self.lock().tree.rename(&from, &to)
    }
}

impl fmt::Debug for MemoryEnvironment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryEnvironment")
            .field("working_directory", &self.working_directory)
            .field("has_commands", &self.script_for.is_some())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
