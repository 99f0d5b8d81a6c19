//! Shared implementation of environments behind a remote POSIX shell.
//!
//! A remote system is reached through a [`Transport`]: a local client program that runs one shell
//! line there. Each command is such a line, with a wrapper that reports the start and the exit
//! under a nonce; each file operation is one, with a helper script as the command. Another line
//! runs the supervisor, which the [`Channel`] talks to: it finds and terminates the processes of
//! commands, and terminates everything when the channel is cut.

mod channel;
pub(crate) mod client;
mod files;
mod launch;
pub(crate) mod nonce;
mod process;
mod quote;
mod records;
mod script;
mod search;
mod slots;
mod streams;
mod system_info;
#[cfg(test)]
#[cfg(feature = "local")]
pub(crate) mod tests;
pub(crate) mod transport;
mod walk;

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fmt,
    ops::Range,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use async_trait::async_trait;
use tokio::{
    sync::{AcquireError, Mutex},
    time::Instant,
};

use self::{
    channel::{Channel, lost_error},
    launch::Launch,
    process::{SpawnContext, spawn},
    script::{HelperScript, StatDialect},
    slots::{Slot, Slots},
    system_info::SystemInfo,
    transport::Transport,
};
use crate::{
    blocking::blocking,
    command::{Command, ExecRequest, ExecResult},
    environment::ExecutionEnvironment,
    error::EnvError,
    exec,
    file::{DirEntry, Metadata},
    output::OutputLimits,
    path::normalize,
    process::Process,
    search::{GlobRequest, GrepOutput, GrepRequest},
    secret::{self, SECRET_VALUE},
    variables::EnvPolicy,
    walk::{FileContent, ReadLimits, WalkOutput, WalkRequest},
};

const SYSTEM_INFO: &str = include_str!("remote/scripts/system_info.sh");

/// An environment behind a transport.
pub(crate) struct Remote<T> {
    transport: Arc<T>,
    settings: RemoteSettings,
    /// Set once the remote system was queried.
    system_info: OnceLock<(SystemInfo, PathBuf)>,
    channel: Mutex<Option<Arc<Channel>>>,
    slots: Slots,
}

/// Settings of a remote environment.
#[derive(Clone, Default)]
pub(crate) struct RemoteSettings {
    /// Absolute; default the directory in which a line starts.
    pub(crate) working_directory: Option<PathBuf>,
    /// Which of the remote system's variables commands inherit.
    pub(crate) policy: EnvPolicy,
    /// Variables for every command, regardless of the policy.
    pub(crate) variables: BTreeMap<OsString, OsString>,
    pub(crate) output_limits: OutputLimits,
}

impl<T: Transport> Remote<T> {
    /// Creates an environment that is not connected yet.
    ///
    /// # Errors
    ///
    /// [`EnvError::InvalidPath`] if the working directory is not absolute.
    pub(crate) fn new(transport: T, mut settings: RemoteSettings) -> Result<Self, EnvError> {
        if let Some(directory) = &mut settings.working_directory {
            files::check_path(directory)?;
            if !directory.is_absolute() {
                return Err(EnvError::InvalidPath {
                    path: directory.clone(),
                    source: std::io::Error::other("the working directory must be absolute"),
                });
            }
            *directory = normalize(directory);
        }
        let slots = Slots::new(transport.concurrency());
        Ok(Self {
            transport: Arc::new(transport),
            settings,
            system_info: OnceLock::new(),
            channel: Mutex::new(None),
            slots,
        })
    }

    pub(crate) fn transport(&self) -> &T {
        &self.transport
    }

    /// Returns the channel to the supervisor. Opens it if it is missing or lost.
    async fn channel(&self) -> Result<Arc<Channel>, EnvError> {
        let mut current = self.channel.lock().await;
        if let Some(channel) = current.as_ref().filter(|channel| !channel.is_lost()) {
            return Ok(Arc::clone(channel));
        }
        let channel = Arc::new(Channel::open(Arc::clone(&self.transport)).await?);
        *current = Some(Arc::clone(&channel));
        Ok(channel)
    }

    async fn system_info(&self) -> Result<&SystemInfo, EnvError> {
        if let Some((info, _)) = self.system_info.get() {
            return Ok(info);
        }
        // The query returns the directory in which a line starts, so it must not change it.
        let expression = secret::value_expression();
        let arguments = [expression.as_bytes()];
        let script = HelperScript { directory: ".", ..HelperScript::new(SYSTEM_INFO, &arguments) };
        let output = self.run_script(script, StatDialect::default()).await?;
        let text = String::from_utf8_lossy(&output.stdout);
        let info = SystemInfo::parse(&text).ok_or_else(|| {
            lost_error(self.transport.name(), format!("unexpected system information {text:?}"))
        })?;
        let directory = self.settings.working_directory.clone().unwrap_or_else(|| info.directory.clone());
        Ok(&self.system_info.get_or_init(|| (info, directory)).0)
    }

    /// Waits for a slot among the lines that may run at the same time.
    async fn acquire(
        &self,
        slot: impl Future<Output = Result<Slot, AcquireError>>,
    ) -> Result<Slot, EnvError> {
        slot.await.map_err(|closed| lost_error(self.transport.name(), closed))
    }

    async fn spawn_in_slot(&self, slot: Slot, command: Command) -> Result<Box<dyn Process>, EnvError> {
        let info = self.system_info().await?;
        let channel = self.channel().await?;
        let directory = match &command.working_dir {
            Some(directory) => self.resolve(directory),
            None => self.working_directory().to_path_buf(),
        };
        files::check_path(&directory)?;
        let mut variables = self.settings.variables.clone();
        variables.extend(command.env);
        let launch = Launch {
            program: &command.program,
            directory: &directory,
            variables: &variables,
            withheld: &self.withheld(info),
            stdin: command.stdin,
        };
        let context = SpawnContext { transport: Arc::clone(&self.transport), channel, slot };
        Ok(Box::new(spawn(&launch, context).await?))
    }

    /// Returns the names of remote variables that the policy does not pass on.
    fn withheld(&self, info: &SystemInfo) -> Vec<String> {
        let policy = self.settings.policy;
        let is_withheld = |name: &&String| {
            // Values stay remote: a recognized secret is represented by a value that is recognized
            // too.
            let value = if info.secrets.contains(*name) { SECRET_VALUE } else { "" };
            !policy.lets_through(name.as_ref(), value.as_ref())
        };
        info.variables.iter().filter(is_withheld).cloned().collect()
    }
}

#[async_trait]
impl<T: Transport> ExecutionEnvironment for Remote<T> {
    fn working_directory(&self) -> &Path {
        match (self.system_info.get(), &self.settings.working_directory) {
            (Some((_, directory)), _) | (None, Some(directory)) => directory,
            (None, None) => Path::new("/"),
        }
    }

    fn home_directory(&self) -> Option<&Path> {
        let set = self.settings.variables.get("HOME".as_ref() as &std::ffi::OsStr).map(Path::new);
        let home = set.or_else(|| self.system_info.get()?.0.home.as_deref());
        home.filter(|home| home.is_absolute())
    }

    fn platform(&self) -> &str {
        self.system_info.get().map_or("unknown", |(info, _)| &info.platform)
    }

    fn os_version(&self) -> &str {
        self.system_info.get().map_or("unknown", |(info, _)| &info.os_version)
    }

    async fn initialize(&self) -> Result<(), EnvError> {
        self.system_info().await?;
        let directory = self.working_directory();
        if self.stat(directory).await?.is_dir() {
            return Ok(());
        }
        Err(EnvError::NotADirectory { path: directory.to_path_buf() })
    }

    async fn cleanup(&self) -> Result<(), EnvError> {
        if let Some(channel) = self.channel.lock().await.take() {
            blocking(move || channel.finish()).await?;
        }
        self.transport.close().await
    }

    fn output_limits(&self) -> OutputLimits {
        self.settings.output_limits.clone()
    }

    async fn spawn(&self, command: Command) -> Result<Box<dyn Process>, EnvError> {
        let slot = self.acquire(self.slots.for_process()).await?;
        self.spawn_in_slot(slot, command).await
    }

    async fn exec_command(&self, request: ExecRequest) -> Result<ExecResult, EnvError> {
        let slot = self.acquire(self.slots.for_command()).await?;
        // The time limit starts once the command has its slot.
        let started = Instant::now();
        let process = self.spawn_in_slot(slot, Command::from(&request)).await?;
        exec::run(process, request, self.output_limits(), started).await
    }

    async fn read(&self, path: &Path, range: Option<Range<u64>>) -> Result<Vec<u8>, EnvError> {
        self.system_info().await?;
        self.read_bytes(&self.resolve(path), range).await
    }

    async fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), EnvError> {
        self.system_info().await?;
        self.write_bytes(&self.resolve(path), bytes).await
    }

    async fn metadata(&self, path: &Path) -> Result<Metadata, EnvError> {
        self.system_info().await?;
        self.stat(&self.resolve(path)).await
    }

    async fn list(&self, path: &Path) -> Result<Vec<DirEntry>, EnvError> {
        self.system_info().await?;
        self.list_entries(&self.resolve(path)).await
    }

    async fn remove(&self, path: &Path) -> Result<(), EnvError> {
        self.system_info().await?;
        self.remove_path(&self.resolve(path)).await
    }

    async fn rename(&self, from: &Path, to: &Path) -> Result<(), EnvError> {
        self.system_info().await?;
        self.rename_path(&self.resolve(from), &self.resolve(to)).await
    }

    async fn canonicalize(&self, path: &Path) -> Result<PathBuf, EnvError> {
        self.system_info().await?;
        self.real_path(&self.resolve(path)).await
    }

    async fn place(&self) -> Result<Option<String>, EnvError> {
        self.system_info().await?;
        self.place_of(&self.resolve(Path::new(""))).await
    }

    async fn create_directory(&self, path: &Path) -> Result<(), EnvError> {
        self.system_info().await?;
        self.create_directory_at(&self.resolve(path)).await
    }

    async fn create_symlink(&self, path: &Path, target: &Path) -> Result<(), EnvError> {
        self.system_info().await?;
        self.create_symlink_at(&self.resolve(path), target).await
    }

    async fn set_mode(&self, path: &Path, mode: u32) -> Result<(), EnvError> {
        self.system_info().await?;
        self.set_mode_of(&self.resolve(path), mode).await
    }

    async fn walk(&self, request: &WalkRequest) -> Result<WalkOutput, EnvError> {
        self.system_info().await?;
        self.walk_tree(&request.clone().with_root(self.resolve(&request.root))).await
    }

    async fn read_many(&self, paths: &[PathBuf], limits: ReadLimits) -> Result<Vec<FileContent>, EnvError> {
        self.system_info().await?;
        self.read_files(paths.iter().map(|path| self.resolve(path)).collect(), limits).await
    }

    async fn find_files(&self, request: &GlobRequest) -> Result<Vec<PathBuf>, EnvError> {
        self.system_info().await?;
        self.match_names(request, &self.resolve(request.directory())).await
    }

    async fn grep(&self, request: &GrepRequest) -> Result<GrepOutput, EnvError> {
        self.system_info().await?;
        let root = self.resolve(request.path.as_deref().unwrap_or(Path::new("")));
        self.search_files(request, &root).await
    }
}

impl<T: fmt::Debug> fmt::Debug for Remote<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote")
            .field("transport", &self.transport)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

/// Shows the names of variables and never their values.
impl fmt::Debug for RemoteSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteSettings")
            .field("working_directory", &self.working_directory)
            .field("policy", &self.policy)
            .field("variables", &self.variables.keys().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

/// Implements the environment for a public type by forwarding to the `Remote` in its field `remote`.
macro_rules! forward_to_remote {
    ($environment:ty) => {
        #[async_trait::async_trait]
        impl $crate::ExecutionEnvironment for $environment {
            $crate::forward! {
                remote:
                working_directory, home_directory, platform, os_version, output_limits, initialize, cleanup, place, spawn,
                exec_command, read, write, metadata, list, remove, rename, canonicalize, find_files, grep, create_directory,
                create_symlink, set_mode, walk, read_many,
            }
        }
    };
}
pub(crate) use forward_to_remote;
