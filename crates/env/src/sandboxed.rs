//! A wrapper in which the kernel holds commands. Linux only.

mod kernel;

use std::{
    collections::BTreeSet,
    fmt,
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
};

use async_trait::async_trait;

use self::kernel::Rules;
use crate::{
    blocking::blocking,
    command::Command,
    environment::ExecutionEnvironment,
    error::EnvError,
    file::{DirEntry, Metadata},
    local::{Launcher, LocalEnvironment},
    output::OutputLimits,
    process::Process,
    search::{GlobRequest, GrepOutput, GrepRequest},
};

/// Something that the kernel keeps a sandboxed command from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Protection {
    /// Creating, changing, truncating, removing and renaming files outside of the writable roots.
    /// Modes, owners, times and extended attributes are none of it: see [`Sandboxed`]. Landlock of
    /// Linux 6.2.
    Writes,
    /// Control operations on devices. Landlock of Linux 6.10.
    Devices,
    /// Signals to processes outside of the sandbox, the host among them. Landlock of Linux 6.12.
    Signals,
    /// Sockets. A seccomp filter.
    Sockets,
}

/// Runs commands in a sandbox of the kernel: they can write only inside the roots, reach no network
/// unless it is allowed, and signal nobody outside.
///
/// Landlock rules and a seccomp filter are put on a thread that exists only to start the command;
/// whatever the command starts inherits them, and nothing takes them off again. The host stays free.
///
/// * **Writes** succeed below the roots and on `/dev/null` and its like. A build that needs a
///   temporary directory is given one: a root and the variable `TMPDIR`. Reading and running are not
///   limited.
/// * **Modes, owners, times and extended attributes** of files outside can be changed by whoever may
///   change them anyway, as a rule their owner: Landlock has no rules for these. No content changes by
///   that, but `chmod 777` outside succeeds. A host to whom that matters runs commands as another user.
/// * **Sockets** of every family are refused, TCP and UDP and those of local services, so that no daemon
///   does a command's work for it; connected pairs work. io_uring, which could open sockets behind the
///   filter's back, is refused with them.
/// * **Privileges** cannot be gained: set-user-ID programs run without theirs.
///
/// The sandbox holds commands, not file operations of the host: put [`Confined`](crate::Confined)
/// around it for those.
///
/// What the kernel cannot enforce is reported by [`initialize`](ExecutionEnvironment::initialize) as
/// [`EnvError::Unsupported`], and no command starts, unless the host has accepted it.
///
/// ```
/// use pintle_env::{ExecRequest, ExecutionEnvironment, LocalEnvironment, Protection, Sandboxed};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// let local = LocalEnvironment::with_host_env(directory.path(), std::env::vars_os())?;
/// let environment = Sandboxed::new(local).with_writable(directory.path());
/// if environment.unenforced().await?.is_empty() {
///     environment.initialize().await?;
///     let result = environment.exec_command(ExecRequest::new("echo x >inside; echo x >/outside")).await?;
///     assert!(!result.success());
///     assert!(directory.path().join("inside").exists());
/// }
/// environment.cleanup().await?;
/// # Ok(())
/// # }
/// ```
pub struct Sandboxed {
    inner: LocalEnvironment,
    rules: Arc<Rules>,
}

impl Sandboxed {
    /// Commands of `inner` can write nowhere and open no socket.
    #[must_use]
    pub fn new(inner: LocalEnvironment) -> Self {
        Self { inner, rules: Arc::default() }
    }

    /// Lets commands write below `root`, which must exist when one starts; a relative one is in the
    /// working directory.
    #[must_use]
    pub fn with_writable(self, root: impl Into<PathBuf>) -> Self {
        let root = self.inner.resolve(&root.into());
        self.with(|rules| rules.writable.push(root))
    }

    /// Whether commands may use the network, and with it every socket; default no.
    #[must_use]
    pub fn with_network(self, is_allowed: bool) -> Self {
        self.with(|rules| rules.network = is_allowed)
    }

    /// Whether commands may use sockets of local services (`AF_UNIX`) while the network is refused;
    /// default no. A service that they reach can act for them outside of the sandbox.
    #[must_use]
    pub fn with_unix_sockets(self, is_allowed: bool) -> Self {
        self.with(|rules| rules.unix_sockets = is_allowed)
    }

    /// Lets commands run although the kernel may be unable to enforce `protection`. What it can enforce
    /// of it, it does.
    #[must_use]
    pub fn accepting(self, protection: Protection) -> Self {
        self.with(|rules| {
            rules.accepted.insert(protection);
        })
    }

    /// What this kernel cannot enforce, accepted or not. It is tried, not looked up.
    ///
    /// # Errors
    ///
    /// [`EnvError::Spawn`] if there is no thread to try it on.
    pub async fn unenforced(&self) -> Result<BTreeSet<Protection>, EnvError> {
        let rules = Arc::clone(&self.rules);
        blocking(move || kernel::unenforced(&rules)).await?.map_err(sandbox_failed)
    }

    /// As [`LocalEnvironment::kill_all`].
    pub fn kill_all(&self) {
        self.inner.kill_all();
    }

    fn with(mut self, change: impl FnOnce(&mut Rules)) -> Self {
        change(Arc::make_mut(&mut self.rules));
        self
    }
}

#[async_trait]
impl ExecutionEnvironment for Sandboxed {
    fn working_directory(&self) -> &Path {
        self.inner.working_directory()
    }

    fn platform(&self) -> &str {
        self.inner.platform()
    }

    fn os_version(&self) -> &str {
        self.inner.os_version()
    }

    async fn initialize(&self) -> Result<(), EnvError> {
        self.inner.initialize().await?;
        for root in &self.rules.writable {
            if !self.inner.metadata(root).await?.is_dir() {
                return Err(EnvError::NotADirectory { path: root.clone() });
            }
        }
        let unenforced = self.unenforced().await?;
        let missing: Vec<_> =
            unenforced.difference(&self.rules.accepted).map(Protection::to_string).collect();
        if !missing.is_empty() {
            return Err(EnvError::Unsupported {
                operation: format!("a sandbox against {}", missing.join(", ")),
                environment: self.os_version().to_owned(),
            });
        }
        let rules = Arc::clone(&self.rules);
        blocking(move || kernel::rehearse(&rules)).await?.map_err(sandbox_failed)
    }

    async fn cleanup(&self) -> Result<(), EnvError> {
        self.inner.cleanup().await
    }

    fn output_limits(&self) -> OutputLimits {
        self.inner.output_limits()
    }

    async fn spawn(&self, command: Command) -> Result<Box<dyn Process>, EnvError> {
        let rules = Arc::clone(&self.rules);
        let launch = move |command| kernel::spawn(&rules, command);
        self.inner.spawn_by(command, Launcher::With(Arc::new(launch))).await
    }

    async fn read(&self, path: &Path, range: Option<Range<u64>>) -> Result<Vec<u8>, EnvError> {
        self.inner.read(path, range).await
    }

    async fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), EnvError> {
        self.inner.write(path, bytes).await
    }

    async fn metadata(&self, path: &Path) -> Result<Metadata, EnvError> {
        self.inner.metadata(path).await
    }

    async fn list(&self, path: &Path) -> Result<Vec<DirEntry>, EnvError> {
        self.inner.list(path).await
    }

    async fn remove(&self, path: &Path) -> Result<(), EnvError> {
        self.inner.remove(path).await
    }

    async fn rename(&self, from: &Path, to: &Path) -> Result<(), EnvError> {
        self.inner.rename(from, to).await
    }

    async fn canonicalize(&self, path: &Path) -> Result<PathBuf, EnvError> {
        self.inner.canonicalize(path).await
    }

    fn shares_host_files(&self) -> bool {
        self.inner.shares_host_files()
    }

    async fn find_files(&self, request: &GlobRequest) -> Result<Vec<PathBuf>, EnvError> {
        self.inner.find_files(request).await
    }

    async fn grep(&self, request: &GrepRequest) -> Result<GrepOutput, EnvError> {
        self.inner.grep(request).await
    }
}

impl fmt::Display for Protection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Writes => "writes outside of its roots",
            Self::Devices => "control operations on devices",
            Self::Signals => "signals to processes outside",
            Self::Sockets => "sockets",
        })
    }
}

impl fmt::Debug for Sandboxed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sandboxed").field("inner", &self.inner).field("rules", &self.rules).finish()
    }
}

fn sandbox_failed(source: std::io::Error) -> EnvError {
    EnvError::Spawn { program: "the sandbox".to_owned(), source }
}

#[cfg(test)]
mod tests;
