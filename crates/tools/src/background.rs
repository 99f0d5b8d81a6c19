//! Commands that keep running between calls.

mod entry;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pintle_env::{Command, ExecutionEnvironment, OutputSink, Stdin};
use tokio::task::JoinSet;

use self::entry::BackgroundCommand;
use crate::error::{ToolError, ToolErrorKind};

/// Default limit on concurrent commands. A remote environment runs at most eight, including foreground commands.
const MAX_RUNNING: usize = 4;

/// Maximum number of listed commands. Above it, the oldest ended commands are removed.
const MAX_LISTED: usize = 32;

/// The background commands of one session.
///
/// A session creates one, puts a clone into the [`ToolContext`](crate::ToolContext) of each call, and calls
/// [`close`](Self::close) at its end. Clones share the commands. Dropping the last clone terminates all of them. Each
/// command keeps at most the newest 1 MiB of unread output.
#[derive(Clone)]
pub struct BackgroundCommands {
    shared: Arc<Shared>,
    /// Whether commands that are started through this clone have no standard input.
    without_input: bool,
}

/// The status of a background command.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackgroundStatus {
    /// The id of the command. The first one of a session is 1.
    pub id: u64,
    /// The command line.
    pub command: String,
    /// The state of the command.
    pub state: BackgroundState,
    /// The time since its start, up to its end.
    pub age: Duration,
    /// The number of unread bytes of output.
    pub unread: u64,
}

/// The state of a background command.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BackgroundState {
    /// The command runs.
    Running,
    /// The command exited with this code; 128 plus the signal number if a signal killed it.
    Exited(i32),
    /// [`BackgroundCommands::stop`] or [`BackgroundCommands::close`] terminated the command.
    Stopped,
    /// The outcome is unknown, for this reason.
    Lost(String),
}

/// The output of a background command since the last read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackgroundOutput {
    /// The status of the command.
    pub status: BackgroundStatus,
    /// The new output of both streams, in order of arrival. Invalid UTF-8 is replaced by U+FFFD.
    pub text: String,
    /// The number of preceding bytes that were dropped because they were not read in time.
    pub dropped: u64,
}

struct Shared {
    max_running: usize,
    state: Mutex<CommandTable>,
}

#[derive(Default)]
struct CommandTable {
    last_id: u64,
    /// The number of commands that are being started.
    starting: usize,
    entries: BTreeMap<u64, Arc<BackgroundCommand>>,
    /// One task for each running command, which owns the process.
    tasks: JoinSet<()>,
    closed: bool,
}

impl BackgroundCommands {
    /// Creates an empty set with a limit of four running commands.
    #[must_use]
    pub fn new() -> Self {
        Self::with_max_running(MAX_RUNNING)
    }

    /// Creates an empty set with a limit of `max` running commands.
    #[must_use]
    pub fn with_max_running(max: usize) -> Self {
        Self { shared: Arc::new(Shared { max_running: max, state: Mutex::default() }), without_input: false }
    }

    /// Returns a clone that starts commands without standard input. Commands of other clones are unchanged.
    #[must_use]
    pub(crate) fn without_input(&self) -> Self {
        Self { without_input: true, ..self.clone() }
    }

    /// Starts a command line in the environment's shell, with a pipe as its standard input, and returns its id.
    ///
    /// Dropping the future before it is ready leaves no process running.
    ///
    /// # Errors
    ///
    /// Errors of the environment; [`ToolErrorKind::Failed`] at the limit of running commands, and after
    /// [`close`](Self::close).
    pub async fn start(&self, env: &dyn ExecutionEnvironment, command: &str) -> Result<u64, ToolError> {
        let line = Command::shell(command).with_stdin(Stdin::Piped);
        self.start_command(env, command, line).await
    }

    /// As [`start`](Self::start), for a command with its own directory or input. It is listed as `command_line`.
    ///
    /// # Errors
    ///
    /// As for [`start`](Self::start).
    pub async fn start_command(
        &self,
        env: &dyn ExecutionEnvironment,
        command_line: &str,
        command: Command,
    ) -> Result<u64, ToolError> {
        let command = if self.without_input { command.with_stdin(Stdin::Null) } else { command };
        let reservation = self.reserve()?;
        let process = env.spawn(command).await?;
        let mut state = self.lock();
        if state.closed {
            return Err(closed());
        }
        state.last_id += 1;
        let id = state.last_id;
        let (entry, running) = BackgroundCommand::new(id, command_line, process);
        state.entries.insert(id, entry);
        // Remove the tasks of ended commands.
        while state.tasks.try_join_next().is_some() {}
        state.tasks.spawn(running);
        state.remove_oldest_ended();
        drop(state);
        drop(reservation);
        Ok(id)
    }

    /// Returns the output since the last read, once the command has ended or `wait` has passed.
    ///
    /// Dropping the future loses no output.
    ///
    /// # Errors
    ///
    /// [`ToolErrorKind::NotFound`] for an unknown id.
    pub async fn read(&self, id: u64, wait: Duration) -> Result<BackgroundOutput, ToolError> {
        self.follow(id, wait, None).await
    }

    /// As [`read`](Self::read), but also streams the output to `sink`. If several calls follow a command, only the
    /// latest one streams.
    ///
    /// # Errors
    ///
    /// As for [`read`](Self::read).
    pub async fn follow(
        &self,
        id: u64,
        wait: Duration,
        sink: Option<OutputSink>,
    ) -> Result<BackgroundOutput, ToolError> {
        let entry = self.entry(id)?;
        let follower = sink.map(|sink| entry.follow(sink));
        entry.ended_within(wait).await;
        Ok(entry.take_output(follower.as_ref()))
    }

    /// Writes to the standard input of a command, and then closes it if `close` is set.
    ///
    /// # Errors
    ///
    /// [`ToolErrorKind::NotFound`] for an unknown id; [`ToolErrorKind::Failed`] if the command has ended, its input is
    /// closed, or it does not read for five seconds. The message then contains the number of bytes written.
    pub async fn write(&self, id: u64, bytes: &[u8], close: bool) -> Result<(), ToolError> {
        self.entry(id)?.write(bytes, close).await
    }

    /// Terminates a command and its child processes, and returns its remaining output. Has no effect on a command that
    /// has ended.
    ///
    /// # Errors
    ///
    /// [`ToolErrorKind::NotFound`] for an unknown id.
    pub async fn stop(&self, id: u64) -> Result<BackgroundOutput, ToolError> {
        let entry = self.entry(id)?;
        entry.stop();
        entry.ended().await;
        Ok(entry.take_output(None))
    }

    /// Returns the running and the latest ended commands, up to 32, the oldest first.
    #[must_use]
    pub fn list(&self) -> Vec<BackgroundStatus> {
        self.lock().entries.values().map(|entry| entry.status()).collect()
    }

    /// Terminates all commands and waits until they are gone. No command can be started afterwards.
    pub async fn close(&self) {
        let mut tasks = {
            let mut state = self.lock();
            state.closed = true;
            state.entries.values().for_each(|entry| entry.stop());
            std::mem::take(&mut state.tasks)
        };
        while tasks.join_next().await.is_some() {}
    }

    fn entry(&self, id: u64) -> Result<Arc<BackgroundCommand>, ToolError> {
        let state = self.lock();
        state.entries.get(&id).cloned().ok_or_else(|| {
            let known: Vec<String> = state.entries.keys().map(u64::to_string).collect();
            let hint = if known.is_empty() {
                "none was started".to_owned()
            } else {
                format!("known are {}", known.join(", "))
            };
            ToolError::new(ToolErrorKind::NotFound, format!("there is no background command {id}: {hint}"))
        })
    }

    /// Counts a command that is about to start.
    fn reserve(&self) -> Result<Reservation<'_>, ToolError> {
        let mut state = self.lock();
        if state.closed {
            return Err(closed());
        }
        let running = state.entries.values().filter(|entry| entry.is_running()).count() + state.starting;
        if running >= self.shared.max_running {
            let message = format!(
                "{running} background commands run already, which is the most; stop one, or wait for its end"
            );
            return Err(ToolError::failed(message));
        }
        state.starting += 1;
        Ok(Reservation { shared: &self.shared })
    }

    fn lock(&self) -> MutexGuard<'_, CommandTable> {
        self.shared.lock()
    }
}

impl Default for BackgroundCommands {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for BackgroundCommands {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BackgroundCommands").field("commands", &self.list()).finish_non_exhaustive()
    }
}

impl BackgroundOutput {
    /// Returns the text for the model: dropped bytes, the output, and the state of the command.
    #[must_use]
    pub fn for_model(&self) -> String {
        let mut text = String::new();
        if self.dropped > 0 {
            text.push_str(&format!("[{} bytes of older output were dropped.]\n", self.dropped));
        }
        text.push_str(if self.text.is_empty() { "(no new output)" } else { &self.text });
        if !text.ends_with('\n') {
            text.push('\n');
        }
        text + &format!("[Background command {} {}.]", self.status.id, self.status.state)
    }
}

impl BackgroundState {
    /// Returns the exit code of a command that exited.
    #[must_use]
    pub fn exit_code(&self) -> Option<i32> {
        if let Self::Exited(code) = self { Some(*code) } else { None }
    }
}

impl fmt::Display for BackgroundState {
    /// A predicate such as `is running` or `exited with code 0`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Running => f.write_str("is running"),
            Self::Exited(code) => write!(f, "exited with code {code}"),
            Self::Stopped => f.write_str("was stopped"),
            Self::Lost(reason) => write!(f, "was lost: {reason}"),
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, CommandTable> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CommandTable {
    fn remove_oldest_ended(&mut self) {
        while self.entries.len() > MAX_LISTED {
            let ended = self.entries.iter().find(|(_, entry)| !entry.is_running()).map(|(id, _)| *id);
            let Some(id) = ended else { return };
            self.entries.remove(&id);
        }
    }
}

/// A command that is being started. Dropping it releases the count, including when the start is cancelled.
struct Reservation<'a> {
    shared: &'a Shared,
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        self.shared.lock().starting -= 1;
    }
}

fn closed() -> ToolError {
    ToolError::failed("the session is ending, so no background command can be started")
}

#[cfg(test)]
mod tests;
