//! The wrapper that sandboxes commands. Linux only.

mod bubblewrap;
mod caches;
mod failure;
mod filter;
mod gateway;
mod held_mounts;
mod landlock;
mod listener;
mod mounts;
mod placeholders;
mod prepared;
mod record;
mod rules;
mod source;
mod support;
mod thread;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt, io,
    path::{Path, PathBuf},
    sync::{Arc, PoisonError},
};

use async_trait::async_trait;
use tokio::sync::OnceCell;

pub use self::caches::ProjectCaches;
pub use self::gateway::{NetworkGateway, SandboxGateway};
pub use self::listener::{ListenerHelper, listen_in_sandbox};
pub use self::source::ProtectedPathSource;
pub use self::support::{SandboxSupport, SandboxUnavailable};
use self::{
    caches::SwitchedCaches,
    failure::SandboxFailure,
    held_mounts::{HeldMounts, HeldProcess, ReplacedPaths},
    mounts::Mounts,
    placeholders::Placeholders,
    prepared::NextSandbox,
    rules::Rules,
    support::Bubblewrap,
};
use crate::{
    blocking::blocking,
    command::Command,
    environment::{ExecutionEnvironment, expect_directory},
    error::EnvError,
    forward::forward,
    local::{Invocation, Launcher, LocalEnvironment},
    process::{Process, TERMINATE_GRACE},
    write_switch::WriteSwitch,
};

/// Name of the variable for the directory of temporary files.
const TEMPORARY_VARIABLE: &str = "TMPDIR";

/// How often a launcher is tried. A file that a process outside replaces or removes at that moment, a socket of a
/// service for example, takes a mount away while bubblewrap sets it up.
const MAX_LAUNCHES: usize = 5;

/// How much of the machine a sandboxed command can reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SandboxLevel {
    /// bubblewrap and seccomp: own mounts, processes, network and IPC. Paths can be hidden and
    /// protected.
    Full,
    /// Landlock and seccomp: limits writes, sockets, signals and devices. Everything that the user
    /// can read can be read.
    Writes,
}

/// A restriction that the kernel enforces on sandboxed commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Protection {
    /// Creating, changing, truncating, removing and renaming files outside the writable roots.
    /// Modes, owners, times and extended attributes are not covered: see [`SandboxedEnvironment`]. Landlock of
    /// Linux 6.2. There is no sandbox without it: its absence cannot be accepted.
    Writes,
    /// Control operations on devices. Landlock of Linux 6.10.
    Devices,
    /// Signals to processes outside the sandbox, including the embedding process. Landlock of Linux
    /// 6.12.
    Signals,
    /// Sockets. A seccomp filter.
    Sockets,
    /// File descriptors that the embedding process has inherited, and the descriptors of other
    /// commands that are just starting. Containers may refuse the thread its own descriptors.
    Descriptors,
    /// Changes of protected paths below a writable root. Only the level *full* has it: Landlock
    /// cannot revoke a part of an allowed tree.
    ProtectedPaths,
}

/// Runs commands in a sandbox: they can write only below the roots, have no network unless allowed,
/// and cannot signal processes outside. The embedding process remains unrestricted.
///
/// There are two levels; the default is [`SandboxLevel::Writes`]. [`SandboxSupport`] reports which
/// ones the machine supports.
///
/// | | full | writes |
/// |---|---|---|
/// | held by | bubblewrap 0.5 or newer, user namespaces, seccomp | Landlock (Linux 6.2 or newer) and seccomp |
/// | writes | read-only mounts, except the roots and the temporary directory | Landlock, except the roots, the temporary directory and `/dev/null` and similar devices |
/// | modes, owners, times and extended attributes outside | cannot be changed | can be changed by users who may change them anyway, usually their owner: `chmod 777` outside succeeds |
/// | [hidden paths](Self::with_hidden) | empty | refused by `initialize` |
/// | [protected paths](Self::with_protected) | read-only, and cannot be created | refused by `initialize` below a root, unless [accepted](Self::with_accepted) |
/// | `/tmp`, `/var/tmp` | [temporary directory](Self::with_temporary), else empty per command | host directories, not writable |
/// | `/run` | empty: no sockets of services | the host directory |
/// | network refused | own loopback: programs of one command reach each other over 127.0.0.1 | no IP sockets |
/// | [some hosts](Self::with_gateway) | by a proxy on that loopback | refused by `initialize` |
/// | processes | sees only its own | sees all, cannot signal or trace others, read their memory and variables, nor change their limits, priorities, processors and scheduling, which is refused for any thread that is named by its id, also one of the command; root gives up the capabilities for that |
/// | shared memory, semaphores and queues (System V), queues of POSIX | its own | refused |
/// | devices | `/dev/null` and similar ones | control operations refused (Linux 6.10) |
///
/// At both levels:
///
/// * **Local sockets** (`AF_UNIX`) are refused, so that no daemon can act for a command, unless they
///   are [allowed](Self::with_unix_sockets), or the network is at the level *writes*. Connected
///   pairs of streams work.
/// * **Privileges** cannot be gained: set-user-ID programs run without theirs, and new user
///   namespaces are refused. io_uring, which could bypass other refusals, and the kernel's keyrings
///   are refused too, and so are typing into a terminal and the calls by which root changes the
///   kernel or the clock.
/// * **File descriptors** of the embedding process are closed, inherited ones too.
/// * **Variables** reach the command and not bubblewrap, which would load code that some of them
///   name. It takes at most about 2,500 at the level *full*; with more a command is not started.
/// * **`TMPDIR`** is set to the [temporary directory](Self::with_temporary), if there is one.
///
/// The sandbox restricts commands, not file operations of the embedding application: wrap it in
/// [`ConfinedEnvironment`](crate::ConfinedEnvironment) for those. At the level *full*, file operations on `/tmp` and
/// `/var/tmp` act on the [temporary directory](Self::with_temporary) of commands, except on files that only the host has there.
///
/// If the machine cannot enforce something, [`initialize`](ExecutionEnvironment::initialize) fails
/// with [`EnvError::Unsupported`] and no command starts, unless the embedding application has
/// accepted it. Dropping a future terminates the command, as in the inner environment.
///
/// ```
/// use pintle_env::{ExecRequest, ExecutionEnvironment, LocalEnvironment, Protection, SandboxedEnvironment};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// let local = LocalEnvironment::with_host_env(directory.path(), std::env::vars_os())?;
/// let environment = SandboxedEnvironment::new(local).with_writable(directory.path());
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
///
/// Cheap to clone. Clones share the environment inside.
#[derive(Clone, Debug)]
pub struct SandboxedEnvironment {
    inner: Arc<LocalEnvironment>,
    can_be_left: bool,
    rules: Arc<Rules>,
    placeholders: Arc<Placeholders>,
    replaced: ReplacedPaths,
    support: OnceCell<SandboxSupport>,
    failure: Arc<SandboxFailure>,
    /// The sandbox of the next command, if sandboxes are started ahead.
    next: Option<Arc<NextSandbox>>,
}

impl SandboxedEnvironment {
    /// Creates a sandbox of the level *writes* in which commands of `inner` cannot write anywhere
    /// and cannot open sockets.
    #[must_use]
    pub fn new(inner: LocalEnvironment) -> Self {
        let mut rules = Rules {
            level: SandboxLevel::Writes,
            writable: Vec::new(),
            switched: Vec::new(),
            caches: None,
            identities: BTreeMap::new(),
            protected: Vec::new(),
            source: None,
            readable: Vec::new(),
            hidden: Vec::new(),
            temporary: None,
            shared: Vec::new(),
            working_directory: inner.working_directory().to_path_buf(),
            network: false,
            gateway: None,
            unix_sockets: false,
            accepted: BTreeSet::new(),
            filters: Arc::default(),
        };
        rules.note_shared(inner.working_directory());
        Self {
            inner: Arc::new(inner),
            can_be_left: false,
            rules: Arc::new(rules),
            placeholders: Arc::default(),
            replaced: ReplacedPaths::default(),
            support: OnceCell::new(),
            failure: Arc::default(),
            next: None,
        }
    }

    /// Sets the level; default [`SandboxLevel::Writes`].
    #[must_use]
    pub fn with_level(self, level: SandboxLevel) -> Self {
        self.with_rules(|rules| rules.level = level)
    }

    /// Uses the result of an earlier probe of this machine instead of probing it again.
    ///
    /// With a [recalled](SandboxSupport::recall) result, [`initialize`](ExecutionEnvironment::initialize) tries no sandbox at the
    /// level *full*: the first command does. See [`failure`](Self::failure).
    #[must_use]
    pub fn with_support(mut self, support: SandboxSupport) -> Self {
        self.support = OnceCell::new_with(Some(support));
        self
    }

    /// Allows commands to write below `root`, which must exist when one starts; a relative path is
    /// resolved in the working directory. If the root exists already, a command starts only as long as the path leads to the
    /// same directory. Blocks for a look at the directory.
    #[must_use]
    pub fn with_writable(self, root: impl Into<PathBuf>) -> Self {
        let root = self.inner.absolute(&root.into());
        self.with_rules(|rules| {
            rules.identify(&root);
            rules.note_shared(&root);
            rules.writable.push(root);
        })
    }

    /// As [`with_writable`](Self::with_writable), for commands that start while the switch is on.
    #[must_use]
    pub fn with_writable_while(self, root: impl Into<PathBuf>, switch: &WriteSwitch) -> Self {
        let root = self.inner.absolute(&root.into());
        self.with_rules(|rules| {
            rules.identify(&root);
            rules.note_shared(&root);
            rules.switched.push((root, switch.clone()));
        })
    }

    /// Lets commands that start while the switch is on write to these caches and find them by their variables. Commands
    /// that start while it is off have caches in `copies`, as have all commands if the others cannot be filled. These contain
    /// the user's packages, and nothing that a command left in `caches`. Place `copies` where commands can always write,
    /// such as in the [temporary directory](Self::with_temporary).
    ///
    /// The first command that [needs them](Command::package_caches) fills the caches that it uses, unless
    /// [`fill_caches`](Self::fill_caches) has done so.
    #[must_use]
    pub fn with_caches(
        self,
        caches: ProjectCaches,
        copies: impl Into<PathBuf>,
        switch: &WriteSwitch,
    ) -> Self {
        let copies = self.inner.absolute(&copies.into());
        let caches = SwitchedCaches::new(caches, copies, switch.clone());
        self.with_rules(|rules| {
            for directory in caches.directories() {
                rules.note_shared(directory);
            }
            rules.caches = Some(caches);
        })
    }

    /// Sets whether single commands may run outside of the sandbox, through
    /// [`outside_sandbox`](ExecutionEnvironment::outside_sandbox); default false. A session then offers this to its
    /// model, and asks about each such call.
    ///
    /// Commands outside have the variables of the inner environment, but for [paths that sandboxed commands can write
    /// to](crate::without_paths_below): no program there shadows a program of the user.
    #[must_use]
    pub fn with_outside_commands(mut self, can_be_left: bool) -> Self {
        self.can_be_left = can_be_left;
        self.next = self.next.map(|_| Arc::default());
        self
    }

    /// Sets whether a sandbox is set up for the next command when a command has ended, which makes the next command start
    /// faster; default false. Only at the level *full*.
    ///
    /// It runs one command, as any other sandbox. A command gets it if it runs in the working directory without an input and
    /// has the variables of the previous command, and if a sandbox that is set up now would have the same mounts of the same
    /// files. At most one sandbox waits, for at most two minutes. Clones share it, unless they are changed.
    /// [`cleanup`](ExecutionEnvironment::cleanup) ends it, and no other one is started after that.
    #[must_use]
    pub fn with_start_ahead(mut self, starts_ahead: bool) -> Self {
        self.next = starts_ahead.then(Arc::default);
        self
    }

    /// Sets the directory for temporary files of commands, which must exist when one starts; default none. They can
    /// write below it and find it in `TMPDIR`; at the level *full* it is also `/tmp` and `/var/tmp`. Use a directory
    /// that nothing else uses, and remove it at the end.
    #[must_use]
    pub fn with_temporary(self, directory: impl Into<PathBuf>) -> Self {
        let directory = self.inner.absolute(&directory.into());
        self.with_rules(|rules| {
            rules.note_shared(&directory);
            rules.temporary = Some(directory);
        })
    }

    /// Allows commands to read `root`, which must exist when one starts, wherever it is: at the level *full*, commands see
    /// other files below the directories for temporary files. They cannot write to it.
    #[must_use]
    pub fn with_readable(self, root: impl Into<PathBuf>) -> Self {
        let root = self.inner.absolute(&root.into());
        self.with_rules(|rules| rules.readable.push(root))
    }

    /// Hides a file or directory from commands, at the level *full* only: a directory is empty, a
    /// file is empty and cannot be read. A link is followed.
    ///
    /// What does not exist when a command starts is not hidden from it. A writable root inside a
    /// hidden directory is visible. Only the given name of a file is hidden: if the file has other
    /// hard links, commands can read it by these.
    #[must_use]
    pub fn with_hidden(self, path: impl Into<PathBuf>) -> Self {
        self.with_paths([path.into()], [])
    }

    /// Keeps commands from changing a path although it is below a writable root, at the level *full*.
    /// It can be read. A writable root below it stays writable.
    ///
    /// A path that does not exist cannot be created by a command. For this an empty file is created
    /// in its place, or an empty directory in place of the first missing one above it, which
    /// [`cleanup`](ExecutionEnvironment::cleanup) removes if it is still empty. The directories
    /// between the root and the path cannot be renamed or removed by commands, nor files moved
    /// across their boundaries other than by a copy. A path that is a link, or leads through one
    /// below the root, is refused with [`EnvError::Refused`], since a command could replace the
    /// link.
    #[must_use]
    pub fn with_protected(self, path: impl Into<PathBuf>) -> Self {
        self.with_paths([], [path.into()])
    }

    /// [Hides](Self::with_hidden) and [protects](Self::with_protected) several paths. Cheaper than one call for each path.
    #[must_use]
    pub fn with_paths(
        self,
        hidden: impl IntoIterator<Item = PathBuf>,
        protected: impl IntoIterator<Item = PathBuf>,
    ) -> Self {
        let hidden: Vec<PathBuf> = hidden.into_iter().map(|path| self.inner.absolute(&path)).collect();
        let protected: Vec<PathBuf> = protected.into_iter().map(|path| self.inner.absolute(&path)).collect();
        self.with_rules(|rules| {
            hidden.iter().chain(&protected).for_each(|path| rules.note_shared(path));
            rules.hidden.extend(hidden);
            rules.protected.extend(protected);
        })
    }

    /// Protects more paths, which `source` finds before the first change: every command and every file operation that
    /// changes something waits for them. [Read-only](Command::read_only) commands do not, since they cannot change anything.
    #[must_use]
    pub fn with_protected_source(self, source: Arc<dyn ProtectedPathSource>) -> Self {
        self.with_rules(|rules| rules.source = Some(source))
    }

    /// Sets whether commands may use the network of this machine; default false. At the level
    /// *writes* this allows all sockets, at the level *full* IP sockets.
    #[must_use]
    pub fn with_network(self, is_allowed: bool) -> Self {
        self.with_rules(|rules| rules.network = is_allowed)
    }

    /// Lets commands that may not use the network reach some hosts through a gateway, at the level *full* only. Their network has
    /// nothing but a loopback interface, on which a proxy of the application listens, so programs that ignore the
    /// variables of the proxy have no way out. If the proxy fails, commands have no network.
    ///
    /// [Read-only](Command::read_only) commands and commands with an input have no gateway.
    #[must_use]
    pub fn with_gateway(self, gateway: Arc<dyn NetworkGateway>) -> Self {
        self.with_rules(|rules| rules.gateway = Some(gateway))
    }

    /// Sets whether commands may use local sockets (`AF_UNIX`); default false. A service that listens
    /// on one can act for them outside the sandbox.
    ///
    /// At the level *full* sockets of services that listen when a command starts are hidden from it.
    /// If the network is allowed too, abstract sockets of the host can be reached.
    #[must_use]
    pub fn with_unix_sockets(self, is_allowed: bool) -> Self {
        self.with_rules(|rules| rules.unix_sockets = is_allowed)
    }

    /// Allows commands to run even if `protection` cannot be enforced. It is still enforced as far
    /// as possible. Accepting [`Protection::Writes`] has no effect.
    #[must_use]
    pub fn with_accepted(self, protection: Protection) -> Self {
        self.with_rules(|rules| {
            rules.accepted.insert(protection);
        })
    }

    /// Returns the level.
    #[must_use]
    pub fn level(&self) -> SandboxLevel {
        self.rules.level
    }

    /// Returns what cannot be enforced at this level on this machine, accepted or not. Determined by
    /// testing, not by version. At the level *full* nothing is missing if it is available at all.
    ///
    /// # Errors
    ///
    /// [`EnvError::Spawn`] if the test thread cannot be started; [`EnvError::Unsupported`] if the
    /// level is not available.
    pub async fn unenforced(&self) -> Result<BTreeSet<Protection>, EnvError> {
        self.require_level().await?;
        match self.rules.level {
            SandboxLevel::Full => Ok(BTreeSet::new()),
            SandboxLevel::Writes => {
                let rules = self.rules.now();
                let newest = self.support.get().map_or(u32::MAX, SandboxSupport::landlock);
                blocking(move || landlock::unenforced(&rules, newest)).await?.map_err(sandbox_failed)
            }
        }
    }

    /// Returns the hidden and protected paths at which a process outside of the sandbox has put another file while a command
    /// ran, which lifts their mounts. Such a command is ended within a tenth of a second, but may have read or changed the new
    /// file before.
    #[must_use]
    pub fn replaced_paths(&self) -> BTreeSet<PathBuf> {
        self.replaced.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns why no sandbox can be set up any more, at the level *full*: one could not be set up for a command, and a new
    /// probe of the machine has failed too. No command starts after that, neither in this environment nor in its clones.
    /// Commands [outside](ExecutionEnvironment::outside_sandbox) of the sandbox still do.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        self.failure.reason()
    }

    /// Waits for a [failure](Self::failure), and returns the reason. Never completes without one.
    pub fn wait_for_failure(&self) -> impl Future<Output = String> + Send + use<> {
        self.failure.wait()
    }

    /// Fills the [caches](Self::with_caches) that commands use now, which the first command does otherwise. Does
    /// nothing if they are filled.
    ///
    /// Without network this takes about a millisecond, with network about a second per hundred thousand files. Dropping the
    /// future stops it, and the next call or command completes it.
    ///
    /// # Errors
    ///
    /// Errors of the file system.
    pub async fn fill_caches(&self) -> Result<(), EnvError> {
        if let Some(caches) = &self.rules.caches {
            caches.variables(&self.rules).await?;
        }
        Ok(())
    }

    /// See [`LocalEnvironment::kill_all`].
    pub fn kill_all(&self) {
        self.inner.kill_all();
    }

    /// Checks that the level is available; the program of the level *full* is looked for once.
    async fn require_level(&self) -> Result<Option<Bubblewrap>, EnvError> {
        let level = self.rules.level;
        let probe = || async { SandboxSupport::probe(self.inner.as_ref()).await };
        let reason = match (level, self.support.get()) {
            (SandboxLevel::Writes, None) => blocking(support::landlock_unavailable).await?,
            (SandboxLevel::Writes, Some(support)) => support.unavailable(level).cloned(),
            (SandboxLevel::Full, _) => {
                let support = self.support.get_or_try_init(probe).await?;
                let reason = support.unavailable(level).cloned();
                if reason.is_none() {
                    return Ok(support.bubblewrap().cloned());
                }
                reason
            }
        };
        match reason {
            None => Ok(None),
            Some(reason) => Err(self.unsupported(format!("the sandbox level `{level}`: {reason}"))),
        }
    }

    /// Checks that the level can enforce the rules.
    fn require_rules(&self, rules: &Rules) -> Result<(), EnvError> {
        let is_accepted = rules.accepted.contains(&Protection::ProtectedPaths);
        match rules.level {
            SandboxLevel::Full => Ok(()),
            SandboxLevel::Writes if rules.gateway.is_some() => Err(self.unsupported(
                "limiting commands to some hosts at the sandbox level `writes`, only `full` has a separate network",
            )),
            SandboxLevel::Writes if !rules.hidden.is_empty() => {
                Err(self.unsupported("hiding paths at the sandbox level `writes`, only `full` can hide"))
            }
            SandboxLevel::Writes if !is_accepted && rules.protects_within_roots() => Err(self.unsupported(
                "protecting paths below a writable root at the sandbox level `writes`, only `full` can",
            )),
            SandboxLevel::Writes => Ok(()),
        }
    }

    fn unsupported(&self, operation: impl Into<String>) -> EnvError {
        EnvError::Unsupported { operation: operation.into(), environment: self.os_version().to_owned() }
    }

    /// Returns the paths of the [source](Self::with_protected_source).
    async fn find_protected(&self) -> Result<Arc<[PathBuf]>, EnvError> {
        match &self.rules.source {
            Some(source) => source.protected_paths().await,
            None => Ok(Arc::default()),
        }
    }

    /// Starts a command under these rules without adding variables. If its sandbox cannot be set up, the machine is probed.
    async fn start(&self, command: &Command, rules: &Arc<Rules>) -> Result<Box<dyn Process>, EnvError> {
        self.failure.require_none()?;
        let started = match rules.gateway_of(command) {
            Some(_) => self.launch_with_gateway(command, rules).await,
            None => self.launch(command, rules).await,
        };
        if let Err(error) = &started
            && self.rules.level == SandboxLevel::Full
            && is_launcher_error(error)
            && let Some(reason) =
                SandboxSupport::probe(self.inner.as_ref()).await?.unavailable(SandboxLevel::Full)
        {
            tracing::warn!(%reason, "no sandbox can be set up any more");
            self.failure.record(reason.to_string());
            self.failure.require_none()?;
        }
        started
    }

    /// Starts a command under these rules.
    async fn launch(&self, command: &Command, rules: &Arc<Rules>) -> Result<Box<dyn Process>, EnvError> {
        let launcher = self.launcher(Arc::clone(rules)).await?;
        let mut launches = 1;
        loop {
            let mounts = match self.rules.level {
                SandboxLevel::Full => {
                    let rules = Arc::clone(rules);
                    Some(blocking(move || HeldMounts::from_rules(&rules)).await?)
                }
                SandboxLevel::Writes => None,
            };
            let started = self.inner.spawn_by(command.clone(), launcher.clone()).await;
            self.remove_files_of_sockets().await?;
            match started {
                Err(error) if launches < MAX_LAUNCHES && is_launcher_error(&error) => launches += 1,
                Err(error) => return Err(error),
                Ok(process) => {
                    return Ok(match mounts {
                        Some(mounts) => {
                            let replaced = Arc::clone(&self.replaced);
                            let (mounts, lost) = blocking(move || mounts.after_start(&replaced)).await?;
                            let process = HeldProcess::new(process, mounts, Arc::clone(&self.replaced), lost);
                            Box::new(self.followed(process, command))
                        }
                        None => Box::new(process),
                    });
                }
            }
        }
    }

    /// Removes the files that the start of a sandbox has left in place of sockets.
    async fn remove_files_of_sockets(&self) -> Result<(), EnvError> {
        if self.rules.level == SandboxLevel::Full && self.rules.unix_sockets {
            let placeholders = Arc::clone(&self.placeholders);
            blocking(move || placeholders.remove_files_of_sockets()).await?;
        }
        Ok(())
    }

    /// Returns how commands are started at this level under these rules.
    async fn launcher(&self, rules: Arc<Rules>) -> Result<Launcher, EnvError> {
        self.require_rules(&rules)?;
        let bubblewrap = self.require_level().await?;
        let bubblewrap = match (self.rules.level, bubblewrap) {
            (SandboxLevel::Full, Some(found)) => found.path,
            (SandboxLevel::Full, None) => return Err(self.unsupported("the sandbox level `full`")),
            (SandboxLevel::Writes, _) => {
                let launch = move |invocation: &Invocation| landlock::spawn(&rules, invocation);
                return Ok(Launcher::With(Arc::new(launch)));
            }
        };
        let placeholders = Arc::clone(&self.placeholders);
        let launch = move |invocation: &Invocation| {
            let mounts = Mounts::new(&rules, &placeholders).map_err(io::Error::other)?;
            mounts.refuse_writable(&bubblewrap)?;
            bubblewrap::spawn(&bubblewrap, &rules, &mounts, invocation)
        };
        Ok(Launcher::With(Arc::new(launch)))
    }

    /// Changes the rules, and with them where file operations find temporary files; blocks.
    fn with_rules(mut self, change: impl FnOnce(&mut Rules)) -> Self {
        let rules = Arc::make_mut(&mut self.rules);
        change(rules);
        // They depend on the rules.
        rules.filters = Arc::default();
        self.next = self.next.map(|_| Arc::default());
        self.inner = Arc::new(self.inner.with_temporary_view(self.rules.temporary_view()));
        self
    }
}

#[async_trait]
impl ExecutionEnvironment for SandboxedEnvironment {
    forward! {
        inner:
        working_directory, home_directory, platform, os_version, output_limits, place, read, metadata, list,
        canonicalize, canonicalize_many, shares_host_files, find_files, grep, walk, read_many, resolve,
    }

    async fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), EnvError> {
        self.find_protected().await?;
        self.inner.write(path, bytes).await
    }

    async fn remove(&self, path: &Path) -> Result<(), EnvError> {
        self.find_protected().await?;
        self.inner.remove(path).await
    }

    async fn rename(&self, from: &Path, to: &Path) -> Result<(), EnvError> {
        self.find_protected().await?;
        self.inner.rename(from, to).await
    }

    async fn create_directory(&self, path: &Path) -> Result<(), EnvError> {
        self.find_protected().await?;
        self.inner.create_directory(path).await
    }

    async fn create_symlink(&self, path: &Path, target: &Path) -> Result<(), EnvError> {
        self.find_protected().await?;
        self.inner.create_symlink(path, target).await
    }

    async fn set_mode(&self, path: &Path, mode: u32) -> Result<(), EnvError> {
        self.find_protected().await?;
        self.inner.set_mode(path, mode).await
    }

    fn command_limits(&self) -> Option<String> {
        Some(self.rules.now().described())
    }

    fn outside_sandbox(&self) -> Option<Arc<dyn ExecutionEnvironment>> {
        if !self.can_be_left {
            return None;
        }
        Some(Arc::new(self.inner.without_paths_below(&self.rules.all_roots())))
    }

    async fn hold(&self, paths: &[PathBuf]) -> Result<Option<Arc<dyn ExecutionEnvironment>>, EnvError> {
        let held = self.inner.hold_paths(paths).await?;
        Ok(held.map(|inner| Arc::new(Self { inner: Arc::new(inner), ..self.clone() }) as _))
    }

    async fn initialize(&self) -> Result<(), EnvError> {
        self.inner.initialize().await?;
        let switched = self.rules.switched.iter().map(|(root, _)| root);
        for root in self.rules.roots().chain(switched) {
            expect_directory(self.inner.as_ref(), root).await?;
        }
        let rules = self.rules.now();
        self.require_rules(&rules)?;
        let unenforced = self.unenforced().await?;
        let accepted = |protection: &&Protection| {
            **protection != Protection::Writes && self.rules.accepted.contains(protection)
        };
        let missing: Vec<_> =
            unenforced.iter().filter(|one| !accepted(one)).map(Protection::to_string).collect();
        if !missing.is_empty() {
            return Err(self.unsupported(format!("a sandbox against {}", missing.join(", "))));
        }
        let placeholders = Arc::clone(&self.placeholders);
        match self.rules.level {
            SandboxLevel::Writes => {
                blocking(move || landlock::dry_run(&rules)).await?.map_err(sandbox_failed)
            }
            SandboxLevel::Full => {
                let mounted = Arc::clone(&rules);
                blocking(move || Mounts::new(&mounted, &placeholders)).await??;
                if self.support.get().is_some_and(SandboxSupport::is_recalled) {
                    // The first command is the trial.
                    return Ok(());
                }
                let trial = Command::argv("/bin/sh", ["-c", ":"]).read_only();
                let mut process = self.start(&trial, &rules).await?;
                process.wait().await?;
                // A process that is dropped before its namespace has ended is left to the reaper, which reads the process table.
                process.terminate(TERMINATE_GRACE).await.map(drop)
            }
        }
    }

    async fn cleanup(&self) -> Result<(), EnvError> {
        if let Some(next) = &self.next {
            next.close().await;
        }
        self.inner.cleanup().await?;
        if let Some(caches) = &self.rules.caches {
            caches.settle().await;
        }
        let placeholders = Arc::clone(&self.placeholders);
        blocking(move || placeholders.remove()).await
    }

    async fn spawn(&self, mut command: Command) -> Result<Box<dyn Process>, EnvError> {
        if let Some(temporary) = &self.rules.temporary {
            command.env.entry(TEMPORARY_VARIABLE.into()).or_insert_with(|| temporary.into());
        }
        if command.is_read_only {
            let rules = Arc::new(self.rules.now().without_writes());
            return self.start(&command, &rules).await;
        }
        let found = self.find_protected().await?;
        if let Some(caches) = self.rules.caches.as_ref().filter(|_| command.package_caches) {
            for (name, value) in caches.variables(&self.rules).await? {
                command.env.entry(name.clone()).or_insert_with(|| value.clone());
            }
        }
        let rules = self.rules.now().with_protected(&found);
        match self.run_ahead(&command, &rules).await? {
            Some(process) => Ok(Box::new(self.followed(process, &command))),
            None => self.start(&command, &rules).await,
        }
    }
}

impl fmt::Display for SandboxLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "full",
            Self::Writes => "writes",
        })
    }
}

impl fmt::Display for Protection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Writes => "writes outside of its roots",
            Self::Devices => "control operations on devices",
            Self::Signals => "signals to processes outside",
            Self::Sockets => "sockets",
            Self::Descriptors => "inherited file descriptors",
            Self::ProtectedPaths => "changes of protected paths",
        })
    }
}

/// Returns true if the launcher failed before it started the program.
fn is_launcher_error(error: &EnvError) -> bool {
    matches!(error, EnvError::Spawn { source, .. } if source.kind() == io::ErrorKind::Other)
}

fn sandbox_failed(source: io::Error) -> EnvError {
    EnvError::Spawn { program: "the sandbox".to_owned(), source }
}

#[cfg(test)]
mod tests;
