//! Terminates running commands when the embedding process dies, for whatever reason.
//!
//! A small shell, the supervisor, runs beside the commands and reads a pipe whose other end only
//! the embedding process holds. When that process dies, the shell sees the end of input and reads
//! the table of running commands. Nothing is ever sent through the pipe: a shell reads byte by
//! byte, and sending each command would cost as much as running a short one. The parent-death
//! signal of Linux is no alternative, since it follows the thread that started a process and not
//! the embedding process.
#![expect(clippy::disallowed_methods, reason = "the supervisor is a process of the environment")]

mod watch_table;

use std::{
    collections::BTreeMap,
    ffi::OsString,
    io,
    os::{
        fd::OwnedFd,
        unix::{net::UnixStream, process::CommandExt},
    },
    process::{Child, Command, Stdio},
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
};

use self::watch_table::{LineNumber, WatchTable};
use super::scope::Scope;
use crate::variables::TAG_VARIABLE;

/// Shell and script of the supervisor; every Unix has the shell.
const SHELL: &str = "/bin/sh";
const SCRIPT: &str = include_str!("lifeline.sh");

/// Search path of the supervisor if the environment has no `PATH`.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The supervisor of an environment and its state. Started with the first command, and again if it
/// was killed.
#[derive(Debug)]
pub(super) struct Lifeline {
    /// Tag of the environment: a prefix of the tags of its commands.
    tag: String,
    /// Tag of the embedding process, if it is itself a command of another environment.
    outer_tag: Option<String>,
    path: OsString,
    state: Mutex<LifelineState>,
}

#[derive(Debug, Default)]
struct LifelineState {
    supervisor: Option<Supervisor>,
    /// Table of running commands; present while there is a supervisor or a command.
    table: Option<WatchTable>,
    /// The entries of the table with their lines.
    watched: BTreeMap<String, LineNumber>,
}

#[derive(Debug)]
struct Supervisor {
    child: Child,
    pipe: UnixStream,
}

impl Lifeline {
    /// Creates the lifeline of an environment with this tag; starts nothing yet.
    pub(super) fn new(tag: String, outer_tag: Option<String>, path: Option<OsString>) -> Self {
        let path = path.unwrap_or_else(|| DEFAULT_PATH.into());
        Self { tag, outer_tag, path, state: Mutex::default() }
    }

    /// Starts the supervisor unless it is running.
    pub(super) fn ensure_running(&self) -> io::Result<()> {
        let mut state = self.lock();
        if state.supervisor.as_mut().is_some_and(Supervisor::is_running) {
            return Ok(());
        }
        state.supervisor.take().into_iter().for_each(Supervisor::kill);
        state.supervisor = Some(self.spawn(state.table()?)?);
        Ok(())
    }

    /// Has the supervisor terminate a command if the embedding process dies.
    pub(super) fn watch(&self, scope: &Scope) -> io::Result<()> {
        let entry = entry(scope);
        let mut state = self.lock();
        let line = state.table()?.write(&entry)?;
        state.watched.insert(entry, line);
        Ok(())
    }

    /// Records that all processes of a command are gone.
    pub(super) fn forget(&self, scope: &Scope) {
        let mut state = self.lock();
        let LifelineState { table, watched, .. } = &mut *state;
        if let Some(line) = watched.remove(&entry(scope))
            && let Some(Err(error)) = table.as_mut().map(|table| table.clear(line))
        {
            // The entry includes the start time, so no later process is mistaken for it.
            tracing::warn!(%error, "cannot remove a finished command from the watch table");
        }
    }

    /// Stops the supervisor if it has nothing to watch, and waits for it; blocks briefly.
    pub(super) fn finish(&self) {
        let mut state = self.lock();
        if state.watched.is_empty() {
            state.supervisor.take().into_iter().for_each(Supervisor::kill);
            state.table = None;
        }
    }

    fn spawn(&self, table: &WatchTable) -> io::Result<Supervisor> {
        let (pipe, end) = UnixStream::pair()?;
        let mut command = Command::new(SHELL);
        command
            .args(["-c", SCRIPT, "pintle-lifeline"])
            .arg(format!("{TAG_VARIABLE}={}.", self.tag))
            .env_clear()
            .env("PATH", &self.path)
            .current_dir("/")
            .stdin(OwnedFd::from(end))
            .stdout(table.handle()?)
            .stderr(Stdio::null())
            // Out of reach of signals that a terminal sends to the process group.
            .process_group(0);
        if let Some(tag) = &self.outer_tag {
            command.env(TAG_VARIABLE, tag);
        }
        let child = command.spawn()?;
        tracing::debug!(id = child.id(), tag = self.tag, "supervisor started");
        Ok(Supervisor { child, pipe })
    }

    fn lock(&self) -> MutexGuard<'_, LifelineState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Lifeline {
    fn drop(&mut self) {
        self.finish();
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(Supervisor { mut child, pipe }) = state.supervisor.take() {
            // A process could not be killed here: closing the pipe leaves it to the supervisor.
            drop(pipe);
            let waiting = thread::Builder::new().name("pintle-lifeline".to_owned());
            if let Err(error) = waiting.spawn(move || child.wait()) {
                tracing::debug!(%error, "cannot wait for the supervisor");
            }
        }
    }
}

impl LifelineState {
    fn table(&mut self) -> io::Result<&mut WatchTable> {
        let table = match self.table.take() {
            Some(table) => table,
            None => WatchTable::new()?,
        };
        Ok(self.table.insert(table))
    }
}

impl Supervisor {
    /// Returns true if the supervisor is still running. One reaped elsewhere is not.
    fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    fn kill(mut self) {
        if let Err(error) = self.child.kill().and_then(|()| self.child.wait()) {
            tracing::debug!(%error, "cannot wait for the supervisor");
        }
    }
}

/// Formats the group leader and its start time, which distinguishes it from a later process with
/// the same id.
fn entry(scope: &Scope) -> String {
    format!("{}:{}", scope.leader(), scope.since().unwrap_or_default())
}
