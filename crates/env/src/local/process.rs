//! Local processes.
#![expect(clippy::disallowed_methods, reason = "this module starts and kills processes")]

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fmt, io,
    os::unix::process::ExitStatusExt,
    path::{Path, PathBuf},
    process::Stdio,
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use nix::sys::signal::Signal as SystemSignal;
use tokio::{
    io::AsyncWrite,
    process::{Child, ChildStdin},
    time::{Instant, sleep, timeout},
};

use super::{
    admission::Slot,
    pid_sequence::Position,
    pipes::Pipes,
    reaper::{Reaper, Registration},
    scope::{Members, Scope},
};
use crate::{
    blocking::blocking,
    command::{Command, Program, Stdin},
    error::EnvError,
    process::{ExitStatus, Process, ProcessOutput, Signal},
    variables::TAG_VARIABLE,
};

/// Poll interval for exited processes.
const POLL: Duration = Duration::from_millis(20);

/// Time that killed processes may take to exit.
const KILL_LIMIT: Duration = Duration::from_secs(5);

/// Settings of the environment for a new process.
pub(super) struct SpawnContext {
    pub(super) directory: PathBuf,
    pub(super) shell: PathBuf,
    pub(super) variables: Arc<BTreeMap<OsString, OsString>>,
    pub(super) tag: String,
    pub(super) reaper: Arc<Reaper>,
    pub(super) launcher: Launcher,
}

/// How a configured process is started.
#[derive(Clone)]
pub(crate) enum Launcher {
    /// Directly.
    Plain,
    /// By a function.
    #[cfg(all(target_os = "linux", any(test, feature = "sandbox")))]
    With(Arc<dyn Fn(tokio::process::Command) -> io::Result<Child> + Send + Sync>),
}

impl Launcher {
    fn launch(&self, mut command: tokio::process::Command) -> io::Result<Child> {
        match self {
            Self::Plain => command.spawn(),
            #[cfg(all(target_os = "linux", any(test, feature = "sandbox")))]
            Self::With(launch) => launch(command),
        }
    }
}

/// Starts a process in a group of its own.
pub(super) fn spawn(command: Command, context: SpawnContext) -> Result<LocalProcess, EnvError> {
    let configured = configure(command, &context);
    let program = configured.as_std().get_program().to_string_lossy().into_owned();
    let before = Position::now();
    let launched = context.launcher.launch(configured).and_then(with_id);
    let (child, id) = launched.map_err(|source| EnvError::Spawn { program, source })?;
    tracing::debug!(id, tag = context.tag, "process started");
    let process = LocalProcess::new(child, Scope::new(id, context.tag, before), context.reaper);
    // If this fails, dropping the process kills it at once.
    process.reaper.watch(&process.scope).map_err(not_watched)?;
    Ok(process)
}

/// Sets program, variables, directory, pipes and group of a process.
fn configure(command: Command, context: &SpawnContext) -> tokio::process::Command {
    let mut configured = program(command.program, &context.shell);
    configured
        .env_clear()
        .envs(context.variables.iter())
        .env("PWD", &context.directory)
        .envs(command.env)
        .env(TAG_VARIABLE, &context.tag)
        .current_dir(&context.directory)
        .stdin(match command.stdin {
            Stdin::Null => Stdio::null(),
            Stdin::Piped => Stdio::piped(),
        })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    configured
}

fn program(program: Program, shell: &Path) -> tokio::process::Command {
    match program {
        Program::Shell(line) => {
            let mut command = tokio::process::Command::new(shell);
            // The dashes keep a line that starts with one from being parsed as an option.
            command.arg("-c").arg("--").arg(line);
            command
        }
        Program::Argv { program, arguments } => {
            let mut command = tokio::process::Command::new(program);
            command.args(arguments);
            command
        }
    }
}

fn with_id(child: Child) -> io::Result<(Child, i32)> {
    let id = child.id().and_then(|id| i32::try_from(id).ok());
    let id = id.ok_or_else(|| io::Error::other("the process has no id"))?;
    Ok((child, id))
}

/// Returns the error for a process that the supervisor cannot watch.
pub(super) fn not_watched(source: io::Error) -> EnvError {
    EnvError::Spawn { program: "the lifeline, /bin/sh".to_owned(), source }
}

/// A local process.
pub(super) struct LocalProcess {
    /// Taken when the process is dropped, and not before.
    child: Option<Child>,
    stdin: Option<ChildStdin>,
    pipes: Pipes,
    status: Option<ExitStatus>,
    scope: Scope,
    reaper: Arc<Reaper>,
    registration: Registration,
    /// All its processes are gone.
    is_settled: bool,
    /// Its slot among the concurrent commands.
    slot: Option<Slot>,
}

impl LocalProcess {
    /// Takes the pipes of `child` and registers the process.
    fn new(mut child: Child, scope: Scope, reaper: Arc<Reaper>) -> Self {
        Self {
            stdin: child.stdin.take(),
            pipes: Pipes::new(child.stdout.take(), child.stderr.take()),
            registration: reaper.register(scope.clone()),
            reaper,
            child: Some(child),
            scope,
            status: None,
            is_settled: false,
            slot: None,
        }
    }

    /// Holds `slot` for the lifetime of the process.
    pub(super) fn with_slot(mut self, slot: Slot) -> Self {
        self.slot = Some(slot);
        self
    }

    /// Finds the live processes; records when all are gone.
    async fn scan(&mut self) -> Result<Members, EnvError> {
        if self.is_settled {
            return Ok(Members::default());
        }
        let members = if self.status.is_some() && self.scope.is_alone() {
            Members::default()
        } else {
            let scope = self.scope.clone();
            blocking(move || scope.scan()).await?
        };
        if self.status.is_some() && members.is_empty() {
            self.is_settled = true;
            self.reaper.unregister(self.registration);
        }
        Ok(members)
    }

    async fn send(&mut self, signal: SystemSignal) -> Result<Members, EnvError> {
        let members = self.scan().await?;
        if !self.is_settled {
            self.scope.send(&members, signal);
        }
        Ok(members)
    }

    /// Waits until all processes are gone. Cancel safe.
    async fn gone(&mut self) -> Result<(), EnvError> {
        self.wait().await?;
        while !self.scan().await?.is_empty() {
            sleep(POLL).await;
        }
        Ok(())
    }

    /// Repeats the kill signal until none is left, since a killed process may just have started
    /// another.
    async fn kill(&mut self) -> Result<(), EnvError> {
        let deadline = Instant::now() + KILL_LIMIT;
        while Instant::now() < deadline {
            self.send(SystemSignal::SIGKILL).await?;
            if let Ok(status) = timeout(POLL, self.wait()).await {
                status?;
            }
            if self.status.is_some() && self.scan().await?.is_empty() {
                return Ok(());
            }
        }
        Err(EnvError::Stuck { id: self.scope.leader().unsigned_abs() })
    }
}

#[async_trait]
impl Process for LocalProcess {
    fn id(&self) -> Option<u32> {
        Some(self.scope.leader().unsigned_abs())
    }

    fn take_stdin(&mut self) -> Option<Box<dyn AsyncWrite + Send + Unpin>> {
        let stdin = self.stdin.take()?;
        Some(Box::new(stdin))
    }

    fn take_output(&mut self) -> Option<Box<dyn ProcessOutput>> {
        let output = self.pipes.take_reader()?;
        Some(Box::new(output))
    }

    async fn wait(&mut self) -> Result<ExitStatus, EnvError> {
        if let Some(status) = self.status {
            return Ok(status);
        }
        let waited = match &mut self.child {
            Some(child) => child.wait().await,
            None => Err(io::Error::other("the process was released")),
        };
        let status = waited.map_err(|source| EnvError::EnvironmentLost {
            environment: "the process".to_owned(),
            source: Some(source.into()),
        })?;
        let status = match (status.code(), status.signal()) {
            (Some(code), _) => ExitStatus::Exited(code),
            (None, signal) => ExitStatus::Signaled(signal.unwrap_or_default()),
        };
        self.scope.mark_leader_reaped();
        self.status = Some(status);
        Ok(status)
    }

    async fn signal(&mut self, signal: Signal) -> Result<(), EnvError> {
        let signal = match signal {
            Signal::Interrupt => SystemSignal::SIGINT,
            Signal::Terminate => SystemSignal::SIGTERM,
            Signal::Kill => SystemSignal::SIGKILL,
        };
        self.send(signal).await.map(drop)
    }

    async fn jobs(&mut self) -> Result<usize, EnvError> {
        Ok(self.scan().await?.jobs)
    }

    async fn terminate(&mut self, grace: Duration) -> Result<usize, EnvError> {
        let members = self.send(SystemSignal::SIGTERM).await?;
        if !self.is_settled {
            // A stopped process handles no signal until it continues.
            self.scope.send(&members, SystemSignal::SIGCONT);
        }
        match timeout(grace, self.gone()).await {
            Ok(gone) => gone?,
            Err(_elapsed) => self.kill().await?,
        }
        Ok(members.jobs)
    }
}

impl fmt::Debug for LocalProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalProcess")
            .field("id", &self.scope.leader())
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}

impl Drop for LocalProcess {
    fn drop(&mut self) {
        drop(self.slot.take());
        if !self.is_settled {
            let (scope, child) = (self.scope.clone(), self.child.take());
            self.reaper.abandon(self.registration, scope, child, self.pipes.abandon());
        }
    }
}
