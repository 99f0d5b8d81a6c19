//! The local machine.

mod admission;
#[cfg(target_os = "linux")]
mod adopted;
mod builder;
mod launch;
mod lifeline;
#[cfg(all(target_os = "linux", any(test, feature = "sandbox")))]
mod pid_namespace;
mod pid_sequence;
mod pipes;
mod process;
mod procfs;
#[cfg(target_os = "linux")]
mod program;
mod reaper;
mod scope;
mod search;
#[cfg(target_os = "linux")]
mod start;
#[cfg(all(target_os = "linux", any(test, feature = "sandbox")))]
mod start_report;
#[cfg(all(target_os = "linux", any(test, feature = "sandbox")))]
mod temporary_view;

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fmt,
    ops::Range,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use async_trait::async_trait;

pub use self::builder::LocalEnvironmentBuilder;
pub(crate) use self::launch::Launcher;
#[cfg(all(target_os = "linux", any(test, feature = "sandbox")))]
pub(crate) use self::launch::{Invocation, LaunchedProcess};
pub(crate) use self::process::LocalProcess;
use self::{process::SpawnContext, reaper::Reaper};
#[cfg(all(target_os = "linux", any(test, feature = "sandbox")))]
pub(crate) use self::{
    program::Program,
    start::{StandardPipes, on_own_thread},
    start_report::StartReport,
    temporary_view::TemporaryView,
};
use crate::{
    blocking::{CancelFlag, blocking},
    command::Command,
    environment::ExecutionEnvironment,
    error::EnvError,
    file::{DirEntry, MAX_ENTRIES, Metadata},
    host_files::{self, files::Files, walk_cache::WalkCache},
    output::OutputLimits,
    path::resolve,
    process::Process,
    search::{GlobRequest, GrepOutput, GrepRequest, pattern::GlobPattern},
    walk::{FileContent, ReadLimits, WalkOutput, WalkRequest},
};

/// Runs tools on the local machine (loop specification, section 4.2).
///
/// Unix only. Requires a tokio runtime with I/O and time enabled. Except for
/// [`current`](Self::current), it reads no process environment except the variables that the
/// embedding application passes.
///
/// Jobs that a command leaves running are found by their process group and, on Linux, by a tag in
/// their environment. A process that leaves the group *and* clears its environment *and* outlives
/// its parent is not found. On systems other than Linux only the group is known.
///
/// A small shell, the supervisor, terminates what still runs when the embedding process dies, even
/// from a kill signal. It starts with the first command and exits with
/// [`cleanup`](ExecutionEnvironment::cleanup) or with the environment. Commands receive the
/// terminate signal within half a second of the death, the kill signal two seconds later, and are
/// gone within five; those that left their group are found by their tag.
///
/// Commands need file descriptors, which are limited per process (`ulimit -n`). The number of
/// concurrent commands across all environments of the process is about a sixth of that limit, at
/// least 2 and at most 4,096. Others wait for a slot, which does not count towards their time
/// limit; if no command ends for five seconds, one more starts. A command or a read that finds no
/// free descriptor is retried when a command ends, for at most a minute; it fails at once if no
/// command is running.
#[derive(Clone)]
pub struct LocalEnvironment {
    working_directory: PathBuf,
    home: Option<PathBuf>,
    os_version: String,
    shell: PathBuf,
    variables: Arc<BTreeMap<OsString, OsString>>,
    output_limits: OutputLimits,
    reaper: Arc<Reaper>,
    /// Tag of the environment; the tag of a command appends a number.
    tag: String,
    commands: Arc<AtomicU64>,
    files: Files,
    /// The latest walk of the working directory, if it is kept.
    walk_cache: Option<Arc<WalkCache>>,
    /// Where temporary files are that commands in a sandbox share with file operations.
    #[cfg(all(target_os = "linux", any(test, feature = "sandbox")))]
    temporary: Option<TemporaryView>,
}

impl LocalEnvironment {
    /// Creates a builder for an environment that works in `directory`, which must be absolute.
    pub fn builder(directory: impl Into<PathBuf>) -> LocalEnvironmentBuilder {
        LocalEnvironmentBuilder::new(directory.into())
    }

    /// Creates an environment in `directory` with the variables of the embedding application and
    /// all defaults.
    ///
    /// Pass the variables of the process: `LocalEnvironment::with_host_env(directory,
    /// std::env::vars_os())`.
    ///
    /// # Errors
    ///
    /// Those of [`LocalEnvironmentBuilder::build`].
    pub fn with_host_env(
        directory: impl Into<PathBuf>,
        variables: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Result<Self, EnvError> {
        Self::builder(directory).with_host_env(variables).build()
    }

    /// Creates an environment in the current directory of this process, with its variables and all
    /// defaults.
    ///
    /// # Errors
    ///
    /// [`EnvError::Io`] if there is no current directory, for example because it was removed;
    /// otherwise as for [`LocalEnvironmentBuilder::build`].
    #[expect(clippy::disallowed_methods, reason = "it is documented to read the state of the process")]
    pub fn current() -> Result<Self, EnvError> {
        let directory = std::env::current_dir().map_err(|source| EnvError::Io {
            action: "read",
            path: ".".into(),
            source,
        })?;
        Self::with_host_env(directory, std::env::vars_os())
    }

    /// Kills every process of this environment permanently and waits until all are gone, for an
    /// embedding application that must exit now. [`cleanup`](ExecutionEnvironment::cleanup) is the
    /// graceful alternative.
    ///
    /// A process that another thread is starting is waited for, up to five seconds, and killed as
    /// well. Later attempts to start a process fail with [`EnvError::Refused`].
    ///
    /// A process that is waited for meanwhile may report [`EnvError::EnvironmentLost`] instead of
    /// its exit status.
    ///
    /// Blocks the thread for some tens of milliseconds, longer only if the kernel does not release
    /// a process.
    pub fn kill_all(&self) {
        self.reaper.kill();
    }

    /// Returns this environment with paths resolved now, as [`hold`](ExecutionEnvironment::hold) does.
    pub(crate) async fn hold_paths(&self, paths: &[PathBuf]) -> Result<Option<Self>, EnvError> {
        let pinned = self.with_pinned_paths(paths);
        let paths: Vec<_> = paths.iter().map(|path| pinned.resolve(path)).collect();
        let files = admission::retry_on_shortage(None, || {
            let paths = paths.clone();
            async { blocking(move || Files::hold(&paths)).await? }
        })
        .await?;
        match files {
            Some(files) => Ok(Some(Self { files, ..pinned })),
            #[cfg(all(target_os = "linux", any(test, feature = "sandbox")))]
            None if pinned.temporary.is_some() => Ok(Some(pinned)),
            None => Ok(None),
        }
    }

    /// Returns this environment with temporary files where the paths lead now.
    fn with_pinned_paths(&self, paths: &[PathBuf]) -> Self {
        #[cfg(all(target_os = "linux", any(test, feature = "sandbox")))]
        if let Some(temporary) = &self.temporary {
            let paths: Vec<_> = paths.iter().map(|path| self.absolute(path)).collect();
            return self.with_temporary_view(Some(temporary.pinned(&paths)));
        }
        let _ = paths;
        self.clone()
    }

    /// Makes a path absolute, without a look at the file system.
    pub(crate) fn absolute(&self, path: &Path) -> PathBuf {
        resolve(path, &self.working_directory, self.home_directory())
    }

    /// Returns this environment with file operations on the temporary files of a view. It shares its processes.
    #[cfg(all(target_os = "linux", any(test, feature = "sandbox")))]
    pub(crate) fn with_temporary_view(&self, temporary: Option<TemporaryView>) -> Self {
        Self { temporary, ..self.clone() }
    }

    /// Returns this environment for commands outside of a sandbox: without the variables that name something below these
    /// directories, and with the temporary files of the machine. It shares its processes.
    #[cfg(all(target_os = "linux", any(test, feature = "sandbox")))]
    pub(crate) fn without_paths_below(&self, roots: &[PathBuf]) -> Self {
        let variables = BTreeMap::clone(&self.variables);
        let variables = Arc::new(crate::without_paths_below(variables, roots));
        Self { variables, temporary: None, ..self.clone() }
    }

    /// Works on the files on a blocking thread.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Files) -> Result<T, EnvError> + Send + 'static,
    ) -> Result<T, EnvError> {
        let files = self.files.clone();
        blocking(move || work(&files)).await?
    }

    /// Starts a process through `launcher`.
    pub(crate) async fn spawn_by(
        &self,
        command: Command,
        launcher: Launcher,
    ) -> Result<LocalProcess, EnvError> {
        self.launch(command, launcher).await?.started().await
    }

    /// Starts a launcher that waits for its program; see [`LocalProcess::release`].
    #[cfg(all(target_os = "linux", any(test, feature = "sandbox")))]
    pub(crate) async fn spawn_waiting(
        &self,
        command: Command,
        launcher: Launcher,
    ) -> Result<LocalProcess, EnvError> {
        self.launch(command, launcher).await?.waiting().await
    }

    /// Returns the process that a command starts. Its tag is not the tag of a process.
    #[cfg(all(target_os = "linux", any(test, feature = "sandbox")))]
    pub(crate) fn invocation(&self, command: Command) -> Invocation {
        let directory = self.directory_of(&command);
        process::configure(command, &self.spawn_context(directory, Launcher::Plain))
    }

    /// Returns whether so many commands may still start that a process may wait for one.
    #[cfg(all(target_os = "linux", any(test, feature = "sandbox")))]
    pub(crate) fn has_spare_slots() -> bool {
        admission::has_spare_slots()
    }

    /// Returns the directory that a command starts in.
    pub(crate) fn directory_of(&self, command: &Command) -> PathBuf {
        match &command.working_dir {
            Some(directory) => self.resolve(directory),
            None => self.working_directory.clone(),
        }
    }

    /// Returns the settings for a new process.
    fn spawn_context(&self, directory: PathBuf, launcher: Launcher) -> SpawnContext {
        SpawnContext {
            directory,
            shell: self.shell.clone(),
            variables: Arc::clone(&self.variables),
            tag: self.next_tag(),
            reaper: Arc::clone(&self.reaper),
            launcher,
        }
    }

    /// Starts a process through `launcher`, without waiting for its program.
    async fn launch(&self, command: Command, launcher: Launcher) -> Result<LocalProcess, EnvError> {
        let directory = self.directory_of(&command);
        let slot = admission::acquire_slot().await;
        let spawned = admission::retry_on_shortage(Some(&slot), || {
            let context = self.spawn_context(directory.clone(), launcher.clone());
            // The guard is held until the process is registered.
            let started =
                self.reaper.prepare().and_then(|_starting| process::spawn(command.clone(), context));
            std::future::ready(started)
        });
        match spawned.await {
            Ok(process) => Ok(process.with_slot(slot)),
            Err(error) => {
                // The error does not distinguish between a missing program and a missing directory.
                blocking(move || host_files::check_directory(&directory)).await??;
                Err(error)
            }
        }
    }

    /// Returns the search path of commands.
    #[cfg(all(target_os = "linux", any(test, feature = "sandbox")))]
    pub(crate) fn search_path(&self) -> Option<&OsString> {
        self.variables.get("PATH".as_ref() as &std::ffi::OsStr)
    }

    /// Returns true if a dropped process is being terminated, or has been.
    #[cfg(all(test, target_os = "linux"))]
    pub(crate) fn has_reaper_thread(&self) -> bool {
        self.reaper.has_thread()
    }

    /// Returns a tag that no other command has.
    fn next_tag(&self) -> String {
        let number = self.commands.fetch_add(1, Ordering::Relaxed);
        format!("{}.{number}", self.tag)
    }
}

#[async_trait]
impl ExecutionEnvironment for LocalEnvironment {
    fn working_directory(&self) -> &Path {
        &self.working_directory
    }

    fn home_directory(&self) -> Option<&Path> {
        self.home.as_deref()
    }

    fn platform(&self) -> &str {
        match std::env::consts::OS {
            "macos" => "darwin",
            other => other,
        }
    }

    fn os_version(&self) -> &str {
        &self.os_version
    }

    async fn initialize(&self) -> Result<(), EnvError> {
        let directory = self.working_directory.clone();
        blocking(move || host_files::check_directory(&directory)).await?
    }

    async fn cleanup(&self) -> Result<(), EnvError> {
        let reaper = Arc::clone(&self.reaper);
        blocking(move || reaper.finish()).await
    }

    fn output_limits(&self) -> OutputLimits {
        self.output_limits.clone()
    }

    async fn spawn(&self, command: Command) -> Result<Box<dyn Process>, EnvError> {
        Ok(Box::new(self.spawn_by(command, Launcher::Plain).await?))
    }

    async fn read(&self, path: &Path, range: Option<Range<u64>>) -> Result<Vec<u8>, EnvError> {
        let path = self.resolve(path);
        admission::retry_on_shortage(None, || {
            let (files, path, range) = (self.files.clone(), path.clone(), range.clone());
            async { blocking(move || files.read(&path, range)).await? }
        })
        .await
    }

    async fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), EnvError> {
        let (path, bytes) = (self.resolve(path), bytes.to_vec());
        let cancelled = CancelFlag::default();
        let _guard = cancelled.on_drop();
        self.blocking(move |files| files.write(&path, &bytes, &cancelled)).await
    }

    async fn metadata(&self, path: &Path) -> Result<Metadata, EnvError> {
        let path = self.resolve(path);
        self.blocking(move |files| files.metadata(&path)).await
    }

    async fn list(&self, path: &Path) -> Result<Vec<DirEntry>, EnvError> {
        let path = self.resolve(path);
        admission::retry_on_shortage(None, || {
            let (files, path) = (self.files.clone(), path.clone());
            async { blocking(move || files.list(&path, MAX_ENTRIES)).await? }
        })
        .await
    }

    async fn remove(&self, path: &Path) -> Result<(), EnvError> {
        let path = self.resolve(path);
        self.blocking(move |files| files.remove(&path)).await
    }

    async fn rename(&self, from: &Path, to: &Path) -> Result<(), EnvError> {
        let (from, to) = (self.resolve(from), self.resolve(to));
        self.blocking(move |files| files.rename(&from, &to)).await
    }

    async fn canonicalize(&self, path: &Path) -> Result<PathBuf, EnvError> {
        let path = self.resolve(path);
        self.blocking(move |files| files.canonicalize(&path)).await
    }

    async fn canonicalize_many(&self, paths: &[PathBuf]) -> Result<Vec<Result<PathBuf, EnvError>>, EnvError> {
        if paths.is_empty() {
            return Ok(Vec::new());
        }
        let paths: Vec<PathBuf> = paths.iter().map(|path| self.resolve(path)).collect();
        self.blocking(move |files| Ok(paths.iter().map(|path| files.canonicalize(path)).collect())).await
    }

    async fn place(&self) -> Result<Option<String>, EnvError> {
        let path = self.working_directory().to_path_buf();
        blocking(move || host_files::place(&path)).await?
    }

    async fn create_directory(&self, path: &Path) -> Result<(), EnvError> {
        let path = self.resolve(path);
        self.blocking(move |files| files.create_directory(&path)).await
    }

    async fn create_symlink(&self, path: &Path, target: &Path) -> Result<(), EnvError> {
        let (path, target) = (self.resolve(path), target.to_path_buf());
        self.blocking(move |files| files.create_symlink(&path, &target)).await
    }

    async fn set_mode(&self, path: &Path, mode: u32) -> Result<(), EnvError> {
        let path = self.resolve(path);
        self.blocking(move |files| files.set_mode(&path, mode)).await
    }

    async fn walk(&self, request: &WalkRequest) -> Result<WalkOutput, EnvError> {
        let request = request.clone().with_root(self.resolve(&request.root));
        let working_directory = self.working_directory.clone();
        let cancelled = CancelFlag::default();
        let _guard = cancelled.on_drop();
        admission::retry_on_shortage(None, || {
            let (files, request) = (self.files.clone(), request.clone());
            let (working_directory, cancelled) = (working_directory.clone(), cancelled.clone());
            let cache = self.walk_cache.clone();
            async {
                let walk = move || files.walk(&request, &working_directory, &cancelled, cache.as_deref());
                blocking(walk).await?
            }
        })
        .await
    }

    async fn read_many(&self, paths: &[PathBuf], limits: ReadLimits) -> Result<Vec<FileContent>, EnvError> {
        let paths: Arc<[PathBuf]> = paths.iter().map(|path| self.resolve(path)).collect();
        let cancelled = CancelFlag::default();
        let _guard = cancelled.on_drop();
        admission::retry_on_shortage(None, || {
            let (files, paths, cancelled) = (self.files.clone(), Arc::clone(&paths), cancelled.clone());
            async { blocking(move || files.read_many(&paths, limits, &cancelled)).await? }
        })
        .await
    }

    fn shares_host_files(&self) -> bool {
        matches!(self.files, Files::Named)
    }

    async fn hold(&self, paths: &[PathBuf]) -> Result<Option<Arc<dyn ExecutionEnvironment>>, EnvError> {
        let held = self.hold_paths(paths).await?;
        Ok(held.map(|held| Arc::new(held) as _))
    }

    fn resolve(&self, path: &Path) -> PathBuf {
        let path = self.absolute(path);
        #[cfg(all(target_os = "linux", any(test, feature = "sandbox")))]
        if let Some(temporary) = &self.temporary {
            return temporary.resolve(path);
        }
        path
    }

    async fn find_files(&self, request: &GlobRequest) -> Result<Vec<PathBuf>, EnvError> {
        let root = self.resolve(request.directory());
        let mut pattern = GlobPattern::parse(&request.pattern, &root, self.home_directory())?;
        // The glob may have an absolute path.
        pattern.base = self.resolve(&pattern.base);
        search::find_files(&self.files, pattern, request.scope, root, self.working_directory.clone()).await
    }

    async fn grep(&self, request: &GrepRequest) -> Result<GrepOutput, EnvError> {
        let root = self.resolve(request.path.as_deref().unwrap_or(Path::new("")));
        search::grep(&self.files, request, root, self.working_directory.clone()).await
    }
}

impl fmt::Debug for LocalEnvironment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalEnvironment")
            .field("working_directory", &self.working_directory)
            .field("shell", &self.shell)
            .field("variables", &self.variables.keys().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
