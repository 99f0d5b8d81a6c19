//! Ends what runs when the host itself is gone, by a kill signal or by anything else.
//!
//! A small shell runs beside the commands and reads a line that only the host holds: when the host
//! is gone the line ends. The parent-death signal of Linux would not do, since it follows the thread
//! that started a process and not the host.
#![expect(clippy::disallowed_methods, reason = "the supervisor is a process of the environment")]

use std::{
    collections::BTreeSet,
    ffi::OsString,
    io::{self, Write},
    os::{
        fd::OwnedFd,
        unix::{net::UnixStream, process::CommandExt},
    },
    process::{Child, Command, Stdio},
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use super::{TAG_VARIABLE, scope::Scope};

/// What the supervisor runs, and where it is found: every Unix has it.
const SHELL: &str = "/bin/sh";
const SCRIPT: &str = include_str!("lifeline.sh");

/// Where the supervisor looks for programs if the environment has no `PATH`.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// How long the supervisor may leave a full line unread before it is taken for lost.
const WRITE_LIMIT: Duration = Duration::from_secs(1);

/// The supervisor of an environment and what it knows. It is started with the first command and
/// started again if somebody ends it.
#[derive(Debug)]
pub(super) struct Lifeline {
    /// The mark of the environment: those of its commands begin with it.
    tag: String,
    /// The mark of the command that the host itself is, if it is one of another environment.
    outer_tag: Option<String>,
    path: OsString,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    supervisor: Option<Supervisor>,
    watched: BTreeSet<String>,
}

#[derive(Debug)]
struct Supervisor {
    child: Child,
    line: UnixStream,
}

impl Lifeline {
    /// For an environment whose marks begin with `tag`; starts nothing yet.
    pub(super) fn new(tag: String, outer_tag: Option<String>, path: Option<OsString>) -> Self {
        let path = path.unwrap_or_else(|| DEFAULT_PATH.into());
        Self { tag, outer_tag, path, state: Mutex::default() }
    }

    /// Starts the supervisor unless it runs.
    pub(super) fn start(&self) -> io::Result<()> {
        let mut state = self.lock();
        if state.supervisor.is_none() {
            self.restart(&mut state)?;
        }
        Ok(())
    }

    /// Has a command ended with the host.
    pub(super) fn watch(&self, scope: &Scope) -> io::Result<()> {
        let entry = entry(scope);
        let mut state = self.lock();
        state.watched.insert(entry.clone());
        if state.tell('+', &entry).is_err() {
            self.restart(&mut state)?;
        }
        Ok(())
    }

    /// Takes note that nothing of a command is left.
    pub(super) fn forget(&self, scope: &Scope) {
        let entry = entry(scope);
        let mut state = self.lock();
        if state.watched.remove(&entry)
            && state.tell('-', &entry).is_err()
            && let Err(error) = self.restart(&mut state)
        {
            tracing::warn!(%error, "what runs will not be ended with the host");
        }
    }

    /// Ends the supervisor if it has nothing to watch, and waits for it; blocks for a moment.
    pub(super) fn finish(&self) {
        let mut state = self.lock();
        if state.watched.is_empty() {
            state.supervisor.take().into_iter().for_each(Supervisor::end);
        }
    }

    /// A new supervisor that knows everything.
    fn restart(&self, state: &mut State) -> io::Result<()> {
        state.supervisor.take().into_iter().for_each(Supervisor::end);
        state.supervisor = Some(self.spawn()?);
        let watched = state.watched.clone();
        watched.iter().try_for_each(|entry| state.tell('+', entry))
    }

    fn spawn(&self) -> io::Result<Supervisor> {
        let (line, end) = UnixStream::pair()?;
        line.set_write_timeout(Some(WRITE_LIMIT))?;
        let mut command = Command::new(SHELL);
        command
            .args(["-c", SCRIPT, "pintle-lifeline"])
            .arg(format!("{TAG_VARIABLE}={}.", self.tag))
            .env_clear()
            .env("PATH", &self.path)
            .current_dir("/")
            .stdin(OwnedFd::from(end))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // What a terminal sends to the host's group does not reach it.
            .process_group(0);
        if let Some(tag) = &self.outer_tag {
            command.env(TAG_VARIABLE, tag);
        }
        let child = command.spawn()?;
        tracing::debug!(id = child.id(), tag = self.tag, "lifeline started");
        Ok(Supervisor { child, line })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Lifeline {
    fn drop(&mut self) {
        self.finish();
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(Supervisor { mut child, line }) = state.supervisor.take() {
            // Something could not be ended here: the end of the line leaves it to the supervisor.
            drop(line);
            let waiting = thread::Builder::new().name("pintle-lifeline".to_owned());
            if let Err(error) = waiting.spawn(move || child.wait()) {
                tracing::debug!(%error, "the lifeline is not waited for");
            }
        }
    }
}

impl State {
    fn tell(&mut self, sign: char, entry: &str) -> io::Result<()> {
        match &mut self.supervisor {
            Some(supervisor) => supervisor.line.write_all(format!("{sign} {entry}\n").as_bytes()),
            None => Err(io::ErrorKind::NotConnected.into()),
        }
    }
}

impl Supervisor {
    fn end(mut self) {
        if let Err(error) = self.child.kill().and_then(|()| self.child.wait()) {
            tracing::debug!(%error, "the lifeline is not waited for");
        }
    }
}

/// The leader of the group and its start, which tells it from a later process of the same number.
fn entry(scope: &Scope) -> String {
    format!("{}:{}", scope.leader(), scope.since().unwrap_or_default())
}
