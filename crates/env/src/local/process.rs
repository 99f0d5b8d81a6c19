//! Processes of this machine.
#![expect(clippy::disallowed_methods, reason = "this module is where processes are started and ended")]

use std::{
    collections::BTreeMap, ffi::OsString, fmt, io, os::unix::process::ExitStatusExt, path::PathBuf,
    process::Stdio, sync::Arc, time::Duration,
};

use async_trait::async_trait;
use nix::sys::signal::Signal as SystemSignal;
use tokio::{
    io::AsyncWrite,
    process::{Child, ChildStdin},
    time::{Instant, sleep, timeout},
};

use super::{
    TAG_VARIABLE,
    admission::Turn,
    numbers::Position,
    pipes::Pipes,
    reaper::{Reaper, Registration},
    scope::{Members, Scope},
};
use crate::{
    blocking::blocking,
    command::{Command, Program, Stdin},
    error::EnvError,
    process::{ExitStatus, Process, ProcessOutput, Signal},
};

/// How often it is looked whether processes have gone.
const POLL: Duration = Duration::from_millis(20);

/// How long killed processes may take to go.
const KILL_LIMIT: Duration = Duration::from_secs(5);

/// What the environment adds to a command.
pub(super) struct Setting {
    /// Where it runs.
    pub(super) directory: PathBuf,
    pub(super) shell: PathBuf,
    pub(super) variables: Arc<BTreeMap<OsString, OsString>>,
    pub(super) tag: String,
    pub(super) reaper: Arc<Reaper>,
    pub(super) launcher: Launcher,
}

/// How a prepared process is started.
#[derive(Clone)]
pub(crate) enum Launcher {
    /// As it is.
    Plain,
    /// By a function that starts it in its own way.
    #[cfg(all(target_os = "linux", any(test, feature = "sandbox")))]
    With(Arc<dyn Fn(tokio::process::Command) -> io::Result<Child> + Send + Sync>),
}

/// Starts a process in a group of its own.
pub(super) fn spawn(command: Command, setting: Setting) -> Result<LocalProcess, EnvError> {
    let mut system = match command.program {
        Program::Shell(line) => {
            let mut shell = tokio::process::Command::new(&setting.shell);
            // The dashes keep a line that begins with one from being taken for an option.
            shell.arg("-c").arg("--").arg(line);
            shell
        }
        Program::Argv { program, arguments } => {
            let mut system = tokio::process::Command::new(program);
            system.args(arguments);
            system
        }
    };
    system
        .env_clear()
        .envs(setting.variables.iter())
        .env("PWD", &setting.directory)
        .envs(command.env)
        .env(TAG_VARIABLE, &setting.tag)
        .current_dir(&setting.directory)
        .stdin(match command.stdin {
            Stdin::Null => Stdio::null(),
            Stdin::Piped => Stdio::piped(),
        })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    let program = system.as_std().get_program().to_string_lossy().into_owned();
    let failed = |source| EnvError::Spawn { program: program.clone(), source };
    let before = Position::now();
    let child = match &setting.launcher {
        Launcher::Plain => system.spawn(),
        #[cfg(all(target_os = "linux", any(test, feature = "sandbox")))]
        Launcher::With(launch) => launch(system),
    };
    let mut child = child.map_err(failed)?;
    let id = child.id().and_then(|id| i32::try_from(id).ok());
    let id = id.ok_or_else(|| failed(io::Error::other("the process has no id")))?;
    tracing::debug!(id, tag = setting.tag, "process started");
    let scope = Scope::new(id, setting.tag, before);
    let process = LocalProcess {
        stdin: child.stdin.take(),
        pipes: Pipes::new(child.stdout.take(), child.stderr.take()),
        registration: setting.reaper.register(scope.clone()),
        reaper: setting.reaper,
        child: Some(child),
        scope,
        status: None,
        is_settled: false,
        turn: None,
    };
    // What cannot be watched is ended at once, by the drop.
    process.reaper.watch(&process.scope).map_err(not_watched)?;
    Ok(process)
}

/// The error of a process that cannot be watched, and is not started for it.
pub(super) fn not_watched(source: io::Error) -> EnvError {
    EnvError::Spawn { program: "the lifeline, /bin/sh".to_owned(), source }
}

/// A process of this machine.
pub(super) struct LocalProcess {
    /// Taken when the process is dropped, and not before.
    child: Option<Child>,
    stdin: Option<ChildStdin>,
    pipes: Pipes,
    status: Option<ExitStatus>,
    scope: Scope,
    reaper: Arc<Reaper>,
    registration: Registration,
    /// Nothing of it is left.
    is_settled: bool,
    /// Among the commands that may run at a time.
    turn: Option<Turn>,
}

impl LocalProcess {
    /// With its turn, which ends with it.
    pub(super) fn with_turn(mut self, turn: Turn) -> Self {
        self.turn = Some(turn);
        self
    }

    async fn look(&mut self) -> Result<Members, EnvError> {
        if self.is_settled {
            return Ok(Members::default());
        }
        let members = if self.status.is_some() && self.scope.is_alone() {
            Members::default()
        } else {
            let scope = self.scope.clone();
            blocking(move || scope.look()).await?
        };
        if self.status.is_some() && members.is_empty() {
            self.is_settled = true;
            self.reaper.settled(self.registration);
        }
        Ok(members)
    }

    async fn send(&mut self, signal: SystemSignal) -> Result<Members, EnvError> {
        let members = self.look().await?;
        if !self.is_settled {
            self.scope.send(&members, signal);
        }
        Ok(members)
    }

    /// Waits until everything is gone. Cancel safe.
    async fn gone(&mut self) -> Result<(), EnvError> {
        self.wait().await?;
        while !self.look().await?.is_empty() {
            sleep(POLL).await;
        }
        Ok(())
    }

    /// Kills until nobody is left, since who is killed may just have started another.
    async fn kill(&mut self) -> Result<(), EnvError> {
        let deadline = Instant::now() + KILL_LIMIT;
        while Instant::now() < deadline {
            self.send(SystemSignal::SIGKILL).await?;
            if let Ok(status) = timeout(POLL, self.wait()).await {
                status?;
            }
            if self.status.is_some() && self.look().await?.is_empty() {
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
        let output = self.pipes.reader()?;
        Some(Box::new(output))
    }

    async fn wait(&mut self) -> Result<ExitStatus, EnvError> {
        if let Some(status) = self.status {
            return Ok(status);
        }
        let waited = match &mut self.child {
            Some(child) => child.wait().await,
            None => Err(io::Error::other("the process was given away")),
        };
        let status = waited.map_err(|source| EnvError::EnvironmentLost {
            environment: "the process".to_owned(),
            source: Some(source.into()),
        })?;
        let status = match (status.code(), status.signal()) {
            (Some(code), _) => ExitStatus::Exited(code),
            (None, signal) => ExitStatus::Signaled(signal.unwrap_or_default()),
        };
        self.scope.leader_was_reaped();
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
        Ok(self.look().await?.jobs)
    }

    async fn end(&mut self, grace: Duration) -> Result<usize, EnvError> {
        let members = self.send(SystemSignal::SIGTERM).await?;
        if !self.is_settled {
            // One that is stopped hears nothing until it goes on.
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
        drop(self.turn.take());
        if !self.is_settled {
            let (scope, child) = (self.scope.clone(), self.child.take());
            self.reaper.abandon(self.registration, scope, child, self.pipes.abandon());
        }
    }
}
