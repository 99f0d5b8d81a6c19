//! The wrapper that sandboxes commands in the kernel. Linux only.

mod kernel;

use std::{collections::BTreeSet, fmt, path::PathBuf, sync::Arc};

use async_trait::async_trait;

use self::kernel::Rules;
use crate::{
    blocking::blocking,
    command::Command,
    environment::{ExecutionEnvironment, expect_directory},
    error::EnvError,
    forward::forward,
    local::{Launcher, LocalEnvironment},
    process::Process,
};

/// A restriction that the kernel enforces on sandboxed commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Protection {
    /// Creating, changing, truncating, removing and renaming files outside the writable roots.
    /// Modes, owners, times and extended attributes are not covered: see [`Sandboxed`]. Landlock of
    /// Linux 6.2.
    Writes,
    /// Control operations on devices. Landlock of Linux 6.10.
    Devices,
    /// Signals to processes outside the sandbox, including the embedding process. Landlock of Linux
    /// 6.12.
    Signals,
    /// Sockets. A seccomp filter.
    Sockets,
}

/// Runs commands in a kernel sandbox: they can write only below the roots, have no network unless
/// allowed, and cannot signal processes outside.
///
/// Landlock rules and a seccomp filter are applied to a thread that exists only to start the
/// command. All processes of the command inherit them and cannot remove them. The embedding process
/// remains unrestricted.
///
/// * **Writes** succeed below the roots and on `/dev/null` and similar devices. A build that needs
///   a temporary directory gets a root and the variable `TMPDIR`. Reading and executing are not
///   restricted.
/// * **Modes, owners, times and extended attributes** of files outside can be changed by users who
///   may change them anyway, usually their owner: Landlock has no rules for these. No content
///   changes this way, but `chmod 777` outside succeeds. Run commands as another user where that
///   matters.
/// * **Sockets** of all families are refused, TCP, UDP and local ones, so that no daemon can act
///   for a command; connected pairs work. io_uring, which could open sockets despite the filter, is
///   refused too.
/// * **Privileges** cannot be gained: set-user-ID programs run without theirs.
///
/// The sandbox restricts commands, not file operations of the embedding application: wrap it in
/// [`Confined`](crate::Confined) for those.
///
/// If the kernel cannot enforce a restriction, [`initialize`](ExecutionEnvironment::initialize)
/// fails with [`EnvError::Unsupported`] and no command starts, unless the embedding application has
/// accepted it.
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
#[derive(Debug)]
pub struct Sandboxed {
    inner: LocalEnvironment,
    rules: Arc<Rules>,
}

impl Sandboxed {
    /// Creates a sandbox in which commands of `inner` cannot write anywhere and cannot open
    /// sockets.
    #[must_use]
    pub fn new(inner: LocalEnvironment) -> Self {
        Self { inner, rules: Arc::default() }
    }

    /// Allows commands to write below `root`, which must exist when one starts; a relative path is
    /// resolved in the working directory.
    #[must_use]
    pub fn with_writable(self, root: impl Into<PathBuf>) -> Self {
        let root = self.inner.resolve(&root.into());
        self.with(|rules| rules.writable.push(root))
    }

    /// Sets whether commands may use the network, and with it all sockets; default false.
    #[must_use]
    pub fn with_network(self, is_allowed: bool) -> Self {
        self.with(|rules| rules.network = is_allowed)
    }

    /// Sets whether commands may use sockets of local services (`AF_UNIX`) while the network is
    /// refused; default false. Such a service can act for them outside the sandbox.
    #[must_use]
    pub fn with_unix_sockets(self, is_allowed: bool) -> Self {
        self.with(|rules| rules.unix_sockets = is_allowed)
    }

    /// Allows commands to run even if the kernel cannot enforce `protection`. It is still enforced
    /// as far as possible.
    #[must_use]
    pub fn accepting(self, protection: Protection) -> Self {
        self.with(|rules| {
            rules.accepted.insert(protection);
        })
    }

    /// Returns what this kernel cannot enforce, accepted or not. Determined by testing, not by
    /// version.
    ///
    /// # Errors
    ///
    /// [`EnvError::Spawn`] if the test thread cannot be started.
    pub async fn unenforced(&self) -> Result<BTreeSet<Protection>, EnvError> {
        let rules = Arc::clone(&self.rules);
        blocking(move || kernel::unenforced(&rules)).await?.map_err(sandbox_failed)
    }

    /// See [`LocalEnvironment::kill_all`].
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
    forward! {
        inner:
        working_directory, platform, os_version, cleanup, output_limits, place, read, write, metadata, list,
        remove, rename, canonicalize, shares_host_files, find_files, grep, create_directory, create_symlink,
        set_mode, walk, read_many,
    }

    async fn initialize(&self) -> Result<(), EnvError> {
        self.inner.initialize().await?;
        for root in &self.rules.writable {
            expect_directory(&self.inner, root).await?;
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
        blocking(move || kernel::dry_run(&rules)).await?.map_err(sandbox_failed)
    }

    async fn spawn(&self, command: Command) -> Result<Box<dyn Process>, EnvError> {
        let rules = Arc::clone(&self.rules);
        let launch = move |command| kernel::spawn(&rules, command);
        self.inner.spawn_by(command, Launcher::With(Arc::new(launch))).await
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

fn sandbox_failed(source: std::io::Error) -> EnvError {
    EnvError::Spawn { program: "the sandbox".to_owned(), source }
}

#[cfg(test)]
mod tests;
