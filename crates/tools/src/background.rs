//! Commands that run on while the model does something else.

mod entry;
mod list;
mod read;
mod start;
mod stop;
mod write;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pintle_env::{Command, ExecutionEnvironment, OutputSink, Stdin};
use tokio::task::JoinSet;

use self::entry::Entry;
pub use self::list::{ShellList, ShellListInput};
pub use self::read::{ShellRead, ShellReadInput};
pub use self::start::{ShellStart, ShellStartInput};
pub use self::stop::{ShellStop, ShellStopInput};
pub use self::write::{ShellWrite, ShellWriteInput};
use crate::error::{DefinitionError, ToolError, ToolErrorKind};
use crate::registry::ToolRegistry;

/// The most commands that run at once, where nothing else is set. A remote environment runs eight in all, and those
/// in the foreground need their place.
const MAX_RUNNING: usize = 4;

/// The most commands that are remembered: above it the oldest that have ended are forgotten.
const MAX_KNOWN: usize = 32;

/// The background commands of one session.
///
/// A session makes one, hands a clone to the [`ToolContext`](crate::ToolContext) of each call, and calls
/// [`close`](Self::close) at its end. Clones share everything; when the last one is dropped, every command is ended.
/// Each command keeps up to 1 MiB of output that nobody has read, the newest.
#[derive(Clone)]
pub struct BackgroundCommands {
    shared: Arc<Shared>,
}

/// What a background command is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackgroundStatus {
    /// The number under which it was started; the first of a session is 1.
    pub id: u64,
    /// Its command line.
    pub command: String,
    /// Whether it runs.
    pub state: BackgroundState,
    /// From its start until now, or until its end.
    pub age: Duration,
    /// How many bytes of its output wait to be read.
    pub unread: u64,
}

/// Whether a background command runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BackgroundState {
    /// It runs.
    Running,
    /// It has ended by itself, with this exit code, or 128 plus the number of the signal that killed it.
    Exited(i32),
    /// It was ended by [`BackgroundCommands::stop`] or [`BackgroundCommands::close`].
    Stopped,
    /// What became of it is unknown, for this reason.
    Lost(String),
}

/// What a background command wrote since it was last read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackgroundOutput {
    /// What it is doing now.
    pub status: BackgroundStatus,
    /// The new output of both streams, in order of arrival. Bytes that are not UTF-8 are U+FFFD.
    pub text: String,
    /// How many bytes before it were dropped because nobody read them in time.
    pub dropped: u64,
}

struct Shared {
    max_running: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    last_id: u64,
    /// Starts that are under way.
    starting: usize,
    entries: BTreeMap<u64, Arc<Entry>>,
    /// One task for each command that runs; it owns the process.
    tasks: JoinSet<()>,
    closed: bool,
}

impl BackgroundCommands {
    /// No commands yet, and at most four at once.
    #[must_use]
    pub fn new() -> Self {
        Self::with_max_running(MAX_RUNNING)
    }

    /// No commands yet, and at most `max` at once.
    #[must_use]
    pub fn with_max_running(max: usize) -> Self {
        Self { shared: Arc::new(Shared { max_running: max, state: Mutex::default() }) }
    }

    /// Starts a line of the environment's shell, with a pipe as its standard input, and returns its number.
    ///
    /// Dropping the future before it is ready starts nothing that lasts.
    ///
    /// # Errors
    ///
    /// Those of the environment; and [`ToolErrorKind::Failed`] when too many run already, or after
    /// [`close`](Self::close).
    pub async fn start(&self, env: &dyn ExecutionEnvironment, command: &str) -> Result<u64, ToolError> {
        let line = Command::shell(command).with_stdin(Stdin::Piped);
        self.start_command(env, command, line).await
    }

    /// As [`start`](Self::start), for a command with a directory or an input of its own, which is listed as `told`.
    ///
    /// # Errors
    ///
    /// As for [`start`](Self::start).
    pub async fn start_command(
        &self,
        env: &dyn ExecutionEnvironment,
        told: &str,
        command: Command,
    ) -> Result<u64, ToolError> {
        let place = self.reserve()?;
        let process = env.spawn(command).await?;
        let mut state = self.lock();
        if state.closed {
            return Err(closed());
        }
        state.last_id += 1;
        let id = state.last_id;
        let (entry, running) = Entry::new(id, told, process);
        state.entries.insert(id, entry);
        // Those that have ended need no place in the set.
        while state.tasks.try_join_next().is_some() {}
        state.tasks.spawn(running);
        state.forget_oldest();
        drop(state);
        drop(place);
        Ok(id)
    }

    /// What the command wrote since it was last read, once it has ended or `wait` has passed.
    ///
    /// Dropping the future loses no output.
    ///
    /// # Errors
    ///
    /// [`ToolErrorKind::NotFound`] for a number that no command has.
    pub async fn read(&self, id: u64, wait: Duration) -> Result<BackgroundOutput, ToolError> {
        self.follow(id, wait, None).await
    }

    /// As [`read`](Self::read), with the new output going to `sink`, too, while it comes. Of two that follow one
    /// command at the same time the later one sees it come.
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
        let watch = sink.map(|sink| entry.watch(sink));
        entry.ended_within(wait).await;
        Ok(entry.take_output(watch.as_ref()))
    }

    /// Writes to the standard input of a command, and then closes it if `close` is set.
    ///
    /// # Errors
    ///
    /// [`ToolErrorKind::NotFound`] for a number that no command has; [`ToolErrorKind::Failed`] if the command has
    /// ended, its input is closed, or it does not read: after five seconds the call says how much it took.
    pub async fn write(&self, id: u64, bytes: &[u8], close: bool) -> Result<(), ToolError> {
        self.entry(id)?.write(bytes, close).await
    }

    /// Ends a command with everything that it started, and returns the rest of its output. A command that has ended
    /// already stays as it is.
    ///
    /// # Errors
    ///
    /// [`ToolErrorKind::NotFound`] for a number that no command has.
    pub async fn stop(&self, id: u64) -> Result<BackgroundOutput, ToolError> {
        let entry = self.entry(id)?;
        entry.stop();
        entry.ended().await;
        Ok(entry.take_output(None))
    }

    /// Every command that is remembered, the oldest first: those that run, and the newest that have ended, up to 32.
    #[must_use]
    pub fn list(&self) -> Vec<BackgroundStatus> {
        self.lock().entries.values().map(|entry| entry.status()).collect()
    }

    /// Ends every command and returns when the last one is gone. Nothing can be started afterwards.
    pub async fn close(&self) {
        let mut tasks = {
            let mut state = self.lock();
            state.closed = true;
            state.entries.values().for_each(|entry| entry.stop());
            std::mem::take(&mut state.tasks)
        };
        while tasks.join_next().await.is_some() {}
    }

    fn entry(&self, id: u64) -> Result<Arc<Entry>, ToolError> {
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

    /// Takes the place of a command that is about to start.
    fn reserve(&self) -> Result<Place<'_>, ToolError> {
        let mut state = self.lock();
        if state.closed {
            return Err(closed());
        }
        let running = state.entries.values().filter(|entry| entry.is_running()).count() + state.starting;
        if running >= self.shared.max_running {
            let message = format!(
                "{running} background commands run already, which is the most; stop one, or wait for its end"
            );
            return Err(ToolError::new(ToolErrorKind::Failed, message));
        }
        state.starting += 1;
        Ok(Place { shared: &self.shared })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.lock()
    }
}

/// Registers `shell_start`, `shell_read`, `shell_write`, `shell_stop` and `shell_list`.
///
/// They work on the [`BackgroundCommands`] of their call's context, so the session must share one among its calls.
///
/// # Errors
///
/// Those of [`ToolRegistry::register_static`]; the definitions are tested, so none is expected.
pub fn register_background(registry: &mut ToolRegistry) -> Result<(), DefinitionError> {
    registry.register_static(ShellStart::new())?;
    registry.register_static(ShellRead::new())?;
    registry.register_static(ShellWrite::new())?;
    registry.register_static(ShellStop::new())?;
    registry.register_static(ShellList::new())
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
    /// In words for the model: the output, what was dropped before it, and what the command is doing.
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

impl fmt::Display for BackgroundState {
    /// What follows the command's name: `is running`, `exited with code 0`.
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
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn forget_oldest(&mut self) {
        while self.entries.len() > MAX_KNOWN {
            let ended = self.entries.iter().find(|(_, entry)| !entry.is_running()).map(|(id, _)| *id);
            let Some(id) = ended else { return };
            self.entries.remove(&id);
        }
    }
}

/// A start under way; given back when it is dropped, so that a start that is cancelled counts no more.
struct Place<'a> {
    shared: &'a Shared,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.shared.lock().starting -= 1;
    }
}

fn closed() -> ToolError {
    ToolError::new(ToolErrorKind::Failed, "the session is ending, so no background command can be started")
}

#[cfg(test)]
mod tests;
