//! Local processes.

use std::{
    collections::BTreeMap, ffi::OsString, fmt, io, os::unix::process::ExitStatusExt, path::PathBuf,
    sync::Arc, time::Duration,
};

use async_trait::async_trait;
use nix::sys::signal::Signal as SystemSignal;
#[cfg(all(target_os = "linux", any(test, feature = "sandbox")))]
use tokio::io::AsyncWriteExt as _;
use tokio::{
    io::AsyncWrite,
    process::ChildStdin,
    time::{Instant, sleep, timeout},
};

use super::{
    admission::Slot,
    launch::{Child, Invocation, LaunchedProcess, Launcher},
    pid_sequence::Position,
    pipes::Pipes,
    reaper::{Reaper, Registration},
    scope::{Members, Scope},
};
#[cfg(all(target_os = "linux", any(test, feature = "sandbox")))]
use super::{
    pid_namespace::PidNamespace,
    start_report::{LaunchOutcome, StartReport},
};
use crate::{
    blocking::blocking,
    command::{Command, Program},
    error::EnvError,
    process::{ExitStatus, Process, ProcessOutput, Signal},
    shell::shell_arguments,
    variables::TAG_VARIABLE,
};

/// Poll interval for exited processes.
const POLL: Duration = Duration::from_millis(20);

/// Time that killed processes may take to exit.
const KILL_LIMIT: Duration = Duration::from_secs(5);

/// Maximum size of the message of a failed launcher, and the time to read it.
#[cfg(all(target_os = "linux", any(test, feature = "sandbox")))]
const MAX_MESSAGE: usize = 4 << 10;
#[cfg(all(target_os = "linux", any(test, feature = "sandbox")))]
const MESSAGE_LIMIT: Duration = Duration::from_secs(1);

/// Checks, and the wait between them, until the first process of a namespace has followed the last
/// other one.
const INIT_CHECKS: usize = 20;
const INIT_WAIT: Duration = Duration::from_millis(1);

/// Time for which the end of a namespace is awaited before its processes are searched for. Its first process follows the last
/// other one within a millisecond unless the machine is busy.
#[cfg(all(target_os = "linux", any(test, feature = "sandbox")))]
const NAMESPACE_WAIT: Duration = Duration::from_millis(20);

/// Settings of the environment for a new process.
pub(super) struct SpawnContext {
    pub(super) directory: PathBuf,
    pub(super) shell: PathBuf,
    pub(super) variables: Arc<BTreeMap<OsString, OsString>>,
    pub(super) tag: String,
    pub(super) reaper: Arc<Reaper>,
    pub(super) launcher: Launcher,
}

/// Starts a process in a separate session.
pub(super) fn spawn(command: Command, context: SpawnContext) -> Result<LocalProcess, EnvError> {
    let invocation = configure(command, &context);
    let program = invocation.program.to_string_lossy().into_owned();
    let before = Position::now();
    let launched = context.launcher.launch(&invocation).and_then(with_id);
    let (launched, id) = launched.map_err(|source| EnvError::Spawn { program, source })?;
    tracing::debug!(id, tag = context.tag, "process started");
    let scope = Scope::new(id, context.tag, before);
    let process = LocalProcess::new(launched, scope, context.reaper);
    // If this fails, dropping the process kills it at once.
    process.reaper.watch(&process.scope).map_err(not_watched)?;
    Ok(process)
}

/// Determines program, variables and directory of a process.
pub(super) fn configure(command: Command, context: &SpawnContext) -> Invocation {
    let (program, arguments) = match command.program {
        Program::Shell(line) => {
            let arguments = shell_arguments(&context.shell.to_string_lossy(), &line);
            (context.shell.clone().into(), arguments.into_iter().map(OsString::from).collect())
        }
        Program::Argv { program, arguments } => (program, arguments),
    };
    let mut variables = BTreeMap::clone(&context.variables);
    variables.insert("PWD".into(), context.directory.clone().into());
    variables.extend(command.env);
    variables.insert(TAG_VARIABLE.into(), (&context.tag).into());
    Invocation { program, arguments, variables, directory: context.directory.clone(), stdin: command.stdin }
}

fn with_id(launched: LaunchedProcess) -> io::Result<(LaunchedProcess, i32)> {
    let id = launched.child.id().and_then(|id| i32::try_from(id).ok());
    let id = id.ok_or_else(|| io::Error::other("the process has no id"))?;
    Ok((launched, id))
}

/// Returns the error for a process that the supervisor cannot watch.
pub(super) fn not_watched(source: io::Error) -> EnvError {
    EnvError::Spawn { program: "the lifeline, /bin/sh".to_owned(), source }
}

/// A local process.
pub(crate) struct LocalProcess {
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
    /// Not read yet: another program is starting this one.
    #[cfg(all(target_os = "linux", any(test, feature = "sandbox")))]
    start: Option<StartReport>,
    /// The command's own PID namespace, if its end can be observed.
    #[cfg(all(target_os = "linux", any(test, feature = "sandbox")))]
    namespace: Option<PidNamespace>,
}

impl LocalProcess {
    /// Takes the pipes of a process and registers it.
    fn new(launched: LaunchedProcess, scope: Scope, reaper: Arc<Reaper>) -> Self {
        Self {
            stdin: launched.stdin,
            pipes: Pipes::new(launched.stdout, launched.stderr),
            registration: reaper.register(scope.clone()),
            reaper,
            child: Some(launched.child),
            scope,
            status: None,
            is_settled: false,
            slot: None,
            #[cfg(all(target_os = "linux", any(test, feature = "sandbox")))]
            start: launched.start,
            #[cfg(all(target_os = "linux", any(test, feature = "sandbox")))]
            namespace: None,
        }
    }

    /// Waits until the program itself runs.
    #[cfg(not(all(target_os = "linux", any(test, feature = "sandbox"))))]
    pub(super) async fn started(self) -> Result<Self, EnvError> {
        Ok(self)
    }

    /// Waits until the program itself runs, if another one starts it. Cancelling terminates both.
    #[cfg(all(target_os = "linux", any(test, feature = "sandbox")))]
    pub(super) async fn started(mut self) -> Result<Self, EnvError> {
        let Some(mut report) = self.start.take() else {
            return Ok(self);
        };
        let start = report.read().await;
        let source = match start {
            Ok(LaunchOutcome::Running(init)) => {
                // It has a descriptor, as the namespace will have.
                drop(report);
                self.note_first_process(init);
                return Ok(self);
            }
            Ok(LaunchOutcome::Failed(kind)) => kind.into(),
            Ok(LaunchOutcome::Launcher) => self.launcher_error().await,
            Err(error) => error,
        };
        Err(EnvError::Spawn { program: report.into_program(), source })
    }

    /// Waits until the launcher waits for its program. Cancelling terminates the launcher.
    #[cfg(all(target_os = "linux", any(test, feature = "sandbox")))]
    pub(super) async fn waiting(mut self) -> Result<Self, EnvError> {
        let Some(mut report) = self.start.take() else {
            return Ok(self);
        };
        let source = match report.read_waiting().await {
            Ok(Some(init)) => {
                self.note_first_process(init);
                self.start = Some(report);
                return Ok(self);
            }
            Ok(None) => self.launcher_error().await,
            Err(error) => error,
        };
        Err(EnvError::Spawn { program: report.into_program(), source })
    }

    /// Writes the start of `program` to the standard input of a waiting launcher, closes the input, and waits until the
    /// program runs. Cancelling terminates both.
    #[cfg(all(target_os = "linux", any(test, feature = "sandbox")))]
    pub(crate) async fn release(mut self, program: &str, start: &[u8]) -> Result<Self, EnvError> {
        if let Some(report) = &mut self.start {
            report.set_program(program.to_owned());
        }
        let written = match self.stdin.take() {
            Some(mut stdin) => stdin.write_all(start).await,
            None => Err(io::ErrorKind::BrokenPipe.into()),
        };
        match written {
            Ok(()) => self.started().await,
            // The launcher has ended.
            Err(error) => {
                Err(EnvError::Spawn { program: program.to_owned(), source: io::Error::other(error) })
            }
        }
    }

    /// Records the first process of the command's own PID namespace.
    #[cfg(all(target_os = "linux", any(test, feature = "sandbox")))]
    fn note_first_process(&mut self, id: i32) {
        self.scope.set_init(id);
        if self.namespace.is_none() {
            self.namespace = PidNamespace::from_init(id);
        }
    }

    /// Returns the id of the first process of the command's own PID namespace, once the launcher has reported it.
    #[cfg(all(target_os = "linux", any(test, feature = "sandbox")))]
    pub(crate) fn first_process(&self) -> Option<i32> {
        self.scope.init()
    }

    /// Returns the standard error of a failed launcher.
    #[cfg(all(target_os = "linux", any(test, feature = "sandbox")))]
    async fn launcher_error(&mut self) -> io::Error {
        let mut message = Vec::new();
        let read = async {
            let Some(mut output) = self.take_output() else { return };
            while let Ok(Some(chunk)) = output.next_chunk().await
                && message.len() < MAX_MESSAGE
            {
                message.extend_from_slice(&chunk.bytes);
            }
        };
        if timeout(MESSAGE_LIMIT, read).await.is_err() {
            tracing::debug!("a failed launcher keeps its output open");
        }
        io::Error::other(String::from_utf8_lossy(&message).trim().to_owned())
    }

    /// Returns a function that kills all processes of the command at once, without waiting for them.
    #[cfg(all(target_os = "linux", any(test, feature = "sandbox")))]
    pub(crate) fn killer(&self) -> impl Fn() + Send + Sync + use<> {
        let scope = self.scope.clone();
        move || scope.send(&scope.scan(), SystemSignal::SIGKILL)
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
        let members = if self.status.is_some() && (self.has_ended_namespace() || self.scope.is_alone()) {
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

    /// Returns true if the command had a PID namespace that has ended, and all its processes with it.
    #[cfg(all(target_os = "linux", any(test, feature = "sandbox")))]
    fn has_ended_namespace(&self) -> bool {
        self.namespace.as_ref().is_some_and(PidNamespace::has_ended)
    }

    #[cfg(not(all(target_os = "linux", any(test, feature = "sandbox"))))]
    fn has_ended_namespace(&self) -> bool {
        false
    }

    /// Waits for the end of the command's PID namespace, for a moment. Returns at once if it has none. Cancel safe.
    #[cfg(all(target_os = "linux", any(test, feature = "sandbox")))]
    async fn await_namespace_end(&mut self) {
        if let Some(namespace) = &self.namespace {
            // A command has left jobs there otherwise, and these are searched for.
            let _ = timeout(NAMESPACE_WAIT, namespace.ended()).await;
        }
    }

    #[cfg(not(all(target_os = "linux", any(test, feature = "sandbox"))))]
    async fn await_namespace_end(&mut self) {}

    /// Returns how often processes of this command were searched for.
    #[cfg(all(test, target_os = "linux"))]
    pub(crate) fn searches(&self) -> usize {
        self.scope.searches()
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
        self.await_namespace_end().await;
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
            (Some(code), _) => self.scope.true_status(code),
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
        if self.status.is_some() && !self.is_settled {
            self.await_namespace_end().await;
        }
        for _ in 0..INIT_CHECKS {
            let members = self.scan().await?;
            if members.jobs > 0 || !members.has_only_init() {
                return Ok(members.jobs);
            }
            sleep(INIT_WAIT).await;
        }
        Ok(0)
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
