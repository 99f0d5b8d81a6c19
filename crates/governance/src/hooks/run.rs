//! Runs of commands.

use std::future::poll_fn;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use pintle_agent::SessionId;
use pintle_env::{EnvError, ExecRequest, ExecutionEnvironment, OutputChunk, OutputSink, OutputStream};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::commands::HookCommand;
use super::event::HookEvent;

/// Maximum output of one stream, in bytes.
const MAX_OUTPUT: usize = 64 << 10;

/// Exit code of a hook that blocks.
const BLOCKS: i32 = 2;

/// One run of an external hook, for a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct HookRun {
    /// Session that it ran for.
    pub session: SessionId,
    /// Event.
    pub event: HookEvent,
    /// Id of the call that the event is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
    /// Where the command comes from, such as `hooks.toml:3`.
    pub hook: String,
    /// The command.
    pub command: String,
    /// Exit code, or 128 plus the number of the signal that killed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Reason why the hook did not answer; `None` if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<HookFailure>,
    /// Milliseconds that it took.
    pub duration_ms: u64,
    /// Kind of its answer.
    pub answer: HookAnswer,
    /// Text for the user: the message of the hook, or the beginning of its error output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// Kind of a hook's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum HookAnswer {
    /// No answer, or an answer without effect.
    Nothing,
    /// The call may run.
    Allow,
    /// A user must decide.
    Ask,
    /// It must not happen, or the model has more to do.
    Deny,
    /// Other arguments, or another result.
    Change,
    /// Text for the model.
    Add,
    /// The agent must not continue.
    Stop,
}

/// Reason why a hook did not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum HookFailure {
    /// It exited with a code other than 0 and 2, or was killed by a signal.
    Exit,
    /// It did not exit in time, and was terminated.
    TimedOut,
    /// It wrote more than 64 KiB to a stream, and was terminated.
    Flooded,
    /// Its output starts as JSON and is not an answer to this event.
    Garbage,
    /// It could not be started, or was lost.
    Lost,
    /// One of its programs has changed since it was trusted, so it did not run.
    Changed,
    /// The turn was stopped before it answered, and it was terminated.
    Stopped,
}

impl HookFailure {
    /// Returns the failure as the end of a sentence.
    #[must_use]
    pub fn describe(self) -> &'static str {
        match self {
            Self::Exit => "it failed",
            Self::TimedOut => "it timed out",
            Self::Flooded => "it wrote too much",
            Self::Garbage => "its answer is not understood",
            Self::Lost => "it could not be run",
            Self::Changed => "its program has changed since it was trusted",
            Self::Stopped => "it was stopped",
        }
    }
}

/// Result of a command.
#[derive(Debug)]
pub(super) struct HookResult {
    pub(super) end: HookEnd,
    pub(super) exit_code: Option<i32>,
    pub(super) stderr: String,
}

/// How a command ended.
#[derive(Debug)]
pub(super) enum HookEnd {
    /// It exited with 0 and wrote this.
    Answered(String),
    /// It exited with the code that blocks.
    Blocked,
    Failed(HookFailure),
}

/// Output so far.
#[derive(Debug, Default)]
struct Streams {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    is_flooded: bool,
}

impl Streams {
    fn push(&mut self, chunk: &OutputChunk) {
        let stream = match chunk.stream {
            OutputStream::Stdout => &mut self.stdout,
            OutputStream::Stderr => &mut self.stderr,
        };
        let free = MAX_OUTPUT.saturating_sub(stream.len());
        self.is_flooded |= chunk.bytes.len() > free;
        stream.extend(chunk.bytes.iter().take(free));
    }
}

/// Directories of a command.
#[derive(Clone, Copy)]
pub(super) struct HookDirectories<'a> {
    /// Directory of the project, for the variables.
    pub(super) project: &'a Path,
    /// Start directory.
    pub(super) start: &'a Path,
}

/// Runs a command with `input` as its standard input. All its processes are terminated at the time-out, when it writes too
/// much, and when the future is dropped.
pub(super) async fn run(
    env: &dyn ExecutionEnvironment,
    places: HookDirectories<'_>,
    command: &HookCommand,
    input: Vec<u8>,
) -> HookResult {
    let streams: Arc<Mutex<Streams>> = Arc::default();
    let sink: OutputSink = {
        let streams = Arc::clone(&streams);
        Arc::new(move |chunk| lock(&streams).push(&chunk))
    };
    let project = places.project.to_string_lossy().into_owned();
    let request = ExecRequest::new(&command.command)
        .with_timeout(command.timeout)
        .with_working_dir(places.start)
        .with_env("PINTLE_PROJECT_DIR", &project)
        // Hooks that were written for other agents find their scripts by this name.
        .with_env("CLAUDE_PROJECT_DIR", project)
        .with_stdin(input)
        .with_on_output(sink);
    let mut running = env.exec_command(request);
    // The sink is called while the command is polled.
    let result = poll_fn(|context| {
        let polled = running.as_mut().poll(context);
        if lock(&streams).is_flooded { Poll::Ready(None) } else { polled.map(Some) }
    })
    .await;
    drop(running);
    let Streams { stdout, stderr, .. } = std::mem::take(&mut *lock(&streams));
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let (end, exit_code) = match result {
        None => (HookEnd::Failed(HookFailure::Flooded), None),
        Some(Err(error)) => {
            log_lost(command, &error);
            (HookEnd::Failed(HookFailure::Lost), None)
        }
        Some(Ok(result)) if result.timed_out => (HookEnd::Failed(HookFailure::TimedOut), None),
        Some(Ok(result)) => {
            let end = match result.exit_code {
                0 => HookEnd::Answered(text(stdout)),
                BLOCKS => HookEnd::Blocked,
                _ => HookEnd::Failed(HookFailure::Exit),
            };
            (end, Some(result.exit_code))
        }
    };
    HookResult { end, exit_code, stderr: text(stderr) }
}

fn lock(streams: &Mutex<Streams>) -> MutexGuard<'_, Streams> {
    streams.lock().unwrap_or_else(PoisonError::into_inner)
}

fn log_lost(command: &HookCommand, error: &EnvError) {
    tracing::warn!(hook = command.source, %error, "a hook could not be run");
}
