//! Ends what runs when the host itself is gone, by a kill signal or by anything else.
//!
//! A small shell runs beside the commands and reads a line that only the host holds: when the host
//! is gone the line ends, and the shell looks at the board where the commands stand. Nothing is ever said on the line:
//! a shell reads byte by byte, and to be told of each command would cost as much as many a command does. The
//! parent-death signal of Linux would not do, since it follows the thread that started a process and not the host.
#![expect(clippy::disallowed_methods, reason = "the supervisor is a process of the environment")]

mod board;

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

use self::board::{Board, Line};
use super::{TAG_VARIABLE, scope::Scope};

/// What the supervisor runs, and where it is found: every Unix has it.
const SHELL: &str = "/bin/sh";
const SCRIPT: &str = include_str!("lifeline.sh");

/// Where the supervisor looks for programs if the environment has no `PATH`.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

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
    /// Where the commands stand, as long as there is a supervisor or a command.
    board: Option<Board>,
    /// Who stands there, and in which line.
    watched: BTreeMap<String, Line>,
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
        if state.supervisor.as_mut().is_some_and(Supervisor::runs) {
            return Ok(());
        }
        state.supervisor.take().into_iter().for_each(Supervisor::end);
        state.supervisor = Some(self.spawn(state.board()?)?);
        Ok(())
    }

    /// Has a command ended with the host.
    pub(super) fn watch(&self, scope: &Scope) -> io::Result<()> {
        let entry = entry(scope);
        let mut state = self.lock();
        let line = state.board()?.write(&entry)?;
        state.watched.insert(entry, line);
        Ok(())
    }

    /// Takes note that nothing of a command is left.
    pub(super) fn forget(&self, scope: &Scope) {
        let mut state = self.lock();
        let State { board, watched, .. } = &mut *state;
        if let Some(line) = watched.remove(&entry(scope))
            && let Some(Err(error)) = board.as_mut().map(|board| board.wipe(line))
        {
            // Its number and its start go together: no later process is taken for it.
            tracing::warn!(%error, "a command that has ended stays on the board");
        }
    }

    /// Ends the supervisor if it has nothing to watch, and waits for it; blocks for a moment.
    pub(super) fn finish(&self) {
        let mut state = self.lock();
        if state.watched.is_empty() {
            state.supervisor.take().into_iter().for_each(Supervisor::end);
            state.board = None;
        }
    }

    fn spawn(&self, board: &Board) -> io::Result<Supervisor> {
        let (line, end) = UnixStream::pair()?;
        let mut command = Command::new(SHELL);
        command
            .args(["-c", SCRIPT, "pintle-lifeline"])
            .arg(format!("{TAG_VARIABLE}={}.", self.tag))
            .env_clear()
            .env("PATH", &self.path)
            .current_dir("/")
            .stdin(OwnedFd::from(end))
            .stdout(board.handle()?)
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
    fn board(&mut self) -> io::Result<&mut Board> {
        let board = match self.board.take() {
            Some(board) => board,
            None => Board::new()?,
        };
        Ok(self.board.insert(board))
    }
}

impl Supervisor {
    /// Whether nobody has ended it. What somebody else has waited for is ended.
    fn runs(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

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
