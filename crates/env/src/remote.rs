//! What every far side with a POSIX shell has in common.
//!
//! A far side is reached by a [`Transport`]: a local client program that runs one shell line there. Each command is
//! such a line, with a wrapper that tells the start and the exit under a nonce; each file operation is one, with a
//! script of ours as the command. One more line runs the supervisor, to which the [`Channel`] speaks: it finds and
//! ends what commands have started, and ends everything when the channel is cut.

mod channel;
pub(crate) mod client;
mod facts;
mod files;
mod launch;
pub(crate) mod nonce;
mod places;
mod process;
mod quote;
mod records;
mod search;
mod streams;
#[cfg(test)]
pub(crate) mod tests;
mod tool;
pub(crate) mod transport;

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
    facts::Facts,
    launch::Launch,
    places::{Place, Places},
    process::{Setting, spawn},
    tool::{StatWords, Tool},
    transport::Transport,
};
use crate::{
    blocking::blocking,
    command::{Command, ExecRequest, ExecResult},
    environment::ExecutionEnvironment,
    error::EnvError,
    exec,
    file::{DirEntry, Metadata},
    local::EnvPolicy,
    output::OutputLimits,
    path::normalize,
    process::Process,
    search::{GlobRequest, GrepOutput, GrepRequest},
    secret::{self, SECRET_VALUE},
};

const FACTS: &str = include_str!("remote/scripts/facts.sh");

/// A place behind a transport.
pub(crate) struct Remote<T> {
    transport: Arc<T>,
    settings: Settings,
    /// Set once the far side has been asked.
    facts: OnceLock<(Facts, PathBuf)>,
    channel: Mutex<Option<Arc<Channel>>>,
    places: Places,
}

/// What a host chooses for a far side.
#[derive(Clone, Default)]
pub(crate) struct Settings {
    /// Absolute; else it is where a line starts.
    pub(crate) working_directory: Option<PathBuf>,
    /// Which of the far side's variables commands get.
    pub(crate) policy: EnvPolicy,
    /// For every command, whatever the policy.
    pub(crate) variables: BTreeMap<OsString, OsString>,
    pub(crate) output_limits: OutputLimits,
}

impl<T: Transport> Remote<T> {
    /// An environment that has not been reached yet.
    ///
    /// # Errors
    ///
    /// [`EnvError::InvalidPath`] if the working directory is not absolute.
    pub(crate) fn new(transport: T, mut settings: Settings) -> Result<Self, EnvError> {
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
        let places = Places::new(transport.concurrency());
        Ok(Self {
            transport: Arc::new(transport),
            settings,
            facts: OnceLock::new(),
            channel: Mutex::new(None),
            places,
        })
    }

    pub(crate) fn transport(&self) -> &T {
        &self.transport
    }

    /// The channel to the supervisor, opened if there is none or if it was lost.
    async fn channel(&self) -> Result<Arc<Channel>, EnvError> {
        let mut current = self.channel.lock().await;
        if let Some(channel) = current.as_ref().filter(|channel| !channel.is_lost()) {
            return Ok(Arc::clone(channel));
        }
        let channel = Arc::new(Channel::open(Arc::clone(&self.transport)).await?);
        *current = Some(Arc::clone(&channel));
        Ok(channel)
    }

    async fn facts(&self) -> Result<&Facts, EnvError> {
        if let Some((facts, _)) = self.facts.get() {
            return Ok(facts);
        }
        // One of the facts is where a line starts.
        let expression = secret::value_expression();
        let arguments = [expression.as_bytes()];
        let facts = Tool { directory: ".", ..Tool::new(FACTS, &arguments) };
        let answer = self.run_tool(facts, StatWords::default()).await?;
        let text = String::from_utf8_lossy(&answer.stdout);
        let facts = Facts::parse(&text).ok_or_else(|| {
            lost_error(
                self.transport.name(),
                format!("the far side said {text:?}, expected facts about itself"),
            )
        })?;
        let directory = self.settings.working_directory.clone().unwrap_or_else(|| facts.home.clone());
        Ok(&self.facts.get_or_init(|| (facts, directory)).0)
    }

    /// Waits for a place among the lines that may run at the same time.
    async fn place(
        &self,
        place: impl Future<Output = Result<Place, AcquireError>>,
    ) -> Result<Place, EnvError> {
        place.await.map_err(|closed| lost_error(self.transport.name(), closed))
    }

    async fn spawn_within(&self, place: Place, command: Command) -> Result<Box<dyn Process>, EnvError> {
        let facts = self.facts().await?;
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
            withheld: &self.withheld(facts),
            stdin: command.stdin,
        };
        let setting = Setting { transport: Arc::clone(&self.transport), channel, place };
        Ok(Box::new(spawn(&launch, setting).await?))
    }

    /// The names of the far side's variables that the policy does not let through.
    fn withheld(&self, facts: &Facts) -> Vec<String> {
        let policy = self.settings.policy;
        let is_withheld = |name: &&String| {
            // The value stays where it is: what it looks like is told by one that looks the same.
            let value = if facts.secrets.contains(*name) { SECRET_VALUE } else { "" };
            !policy.lets_through(name.as_ref(), value.as_ref())
        };
        facts.variables.iter().filter(is_withheld).cloned().collect()
    }
}

#[async_trait]
impl<T: Transport> ExecutionEnvironment for Remote<T> {
    fn working_directory(&self) -> &Path {
        match (self.facts.get(), &self.settings.working_directory) {
            (Some((_, directory)), _) | (None, Some(directory)) => directory,
            (None, None) => Path::new("/"),
        }
    }

    fn platform(&self) -> &str {
        self.facts.get().map_or("unknown", |(facts, _)| &facts.platform)
    }

    fn os_version(&self) -> &str {
        self.facts.get().map_or("unknown", |(facts, _)| &facts.os_version)
    }

    async fn initialize(&self) -> Result<(), EnvError> {
        self.facts().await?;
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
        let place = self.place(self.places.for_process()).await?;
        self.spawn_within(place, command).await
    }

    async fn exec_command(&self, request: ExecRequest) -> Result<ExecResult, EnvError> {
        let place = self.place(self.places.for_command()).await?;
        // A command's time begins when it is its turn.
        let started = Instant::now();
        let process = self.spawn_within(place, Command::from(&request)).await?;
        exec::run(process, request, self.output_limits(), started).await
    }

    async fn read(&self, path: &Path, range: Option<Range<u64>>) -> Result<Vec<u8>, EnvError> {
        self.facts().await?;
        self.read_bytes(&self.resolve(path), range).await
    }

    async fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), EnvError> {
        self.facts().await?;
        self.write_bytes(&self.resolve(path), bytes).await
    }

    async fn metadata(&self, path: &Path) -> Result<Metadata, EnvError> {
        self.facts().await?;
        self.stat(&self.resolve(path)).await
    }

    async fn list(&self, path: &Path) -> Result<Vec<DirEntry>, EnvError> {
        self.facts().await?;
        self.list_entries(&self.resolve(path)).await
    }

    async fn remove(&self, path: &Path) -> Result<(), EnvError> {
        self.facts().await?;
        self.remove_path(&self.resolve(path)).await
    }

    async fn rename(&self, from: &Path, to: &Path) -> Result<(), EnvError> {
        self.facts().await?;
        self.rename_path(&self.resolve(from), &self.resolve(to)).await
    }

    async fn canonicalize(&self, path: &Path) -> Result<PathBuf, EnvError> {
        self.facts().await?;
        self.real_path(&self.resolve(path)).await
    }

    async fn find_files(&self, request: &GlobRequest) -> Result<Vec<PathBuf>, EnvError> {
        self.facts().await?;
        self.match_names(request, &self.resolve(request.place())).await
    }

    async fn grep(&self, request: &GrepRequest) -> Result<GrepOutput, EnvError> {
        self.facts().await?;
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
impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("working_directory", &self.working_directory)
            .field("policy", &self.policy)
            .field("variables", &self.variables.keys().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

/// Makes a public type an environment that passes everything on to the `Remote` in its field `remote`.
macro_rules! pass_on_to_remote {
    ($environment:ty) => {
        #[async_trait::async_trait]
        impl $crate::ExecutionEnvironment for $environment {
            fn working_directory(&self) -> &std::path::Path {
                self.remote.working_directory()
            }

            fn platform(&self) -> &str {
                self.remote.platform()
            }

            fn os_version(&self) -> &str {
                self.remote.os_version()
            }

            async fn initialize(&self) -> Result<(), $crate::EnvError> {
                self.remote.initialize().await
            }

            async fn cleanup(&self) -> Result<(), $crate::EnvError> {
                self.remote.cleanup().await
            }

            fn output_limits(&self) -> $crate::OutputLimits {
                self.remote.output_limits()
            }

            async fn spawn(
                &self,
                command: $crate::Command,
            ) -> Result<Box<dyn $crate::Process>, $crate::EnvError> {
                self.remote.spawn(command).await
            }

            async fn read(
                &self,
                path: &std::path::Path,
                range: Option<std::ops::Range<u64>>,
            ) -> Result<Vec<u8>, $crate::EnvError> {
                self.remote.read(path, range).await
            }

            async fn write(&self, path: &std::path::Path, bytes: &[u8]) -> Result<(), $crate::EnvError> {
                self.remote.write(path, bytes).await
            }

            async fn metadata(&self, path: &std::path::Path) -> Result<$crate::Metadata, $crate::EnvError> {
                self.remote.metadata(path).await
            }

            async fn list(&self, path: &std::path::Path) -> Result<Vec<$crate::DirEntry>, $crate::EnvError> {
                self.remote.list(path).await
            }

            async fn remove(&self, path: &std::path::Path) -> Result<(), $crate::EnvError> {
                self.remote.remove(path).await
            }

            async fn rename(
                &self,
                from: &std::path::Path,
                to: &std::path::Path,
            ) -> Result<(), $crate::EnvError> {
                self.remote.rename(from, to).await
            }

            async fn canonicalize(
                &self,
                path: &std::path::Path,
            ) -> Result<std::path::PathBuf, $crate::EnvError> {
                self.remote.canonicalize(path).await
            }

            async fn exec_command(
                &self,
                request: $crate::ExecRequest,
            ) -> Result<$crate::ExecResult, $crate::EnvError> {
                self.remote.exec_command(request).await
            }

            async fn find_files(
                &self,
                request: &$crate::GlobRequest,
            ) -> Result<Vec<std::path::PathBuf>, $crate::EnvError> {
                self.remote.find_files(request).await
            }

            async fn grep(
                &self,
                request: &$crate::GrepRequest,
            ) -> Result<$crate::GrepOutput, $crate::EnvError> {
                self.remote.grep(request).await
            }
        }
    };
}
pub(crate) use pass_on_to_remote;
