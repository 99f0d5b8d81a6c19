//! What a call may use.

use std::sync::Arc;
use std::time::Duration;

use pintle_env::{ExecutionEnvironment, OutputSink};
use tokio_util::sync::CancellationToken;

use crate::builtin::BackgroundCommands;
use crate::known::KnownFiles;

/// What a call is given besides its arguments.
#[derive(Clone)]
#[non_exhaustive]
pub struct ToolContext {
    /// Where files and processes are.
    pub env: Arc<dyn ExecutionEnvironment>,
    /// The id of the call.
    pub call_id: String,
    /// Fires when the call should stop in order; it is dropped soon after.
    pub cancel: CancellationToken,
    /// How long commands may run.
    pub timeouts: CommandTimeouts,
    /// Takes output as it comes, for people who watch.
    pub on_output: Option<OutputSink>,
    /// The session's background commands. Those of a context of its own end when it is dropped.
    pub background: BackgroundCommands,
    /// The state in which the session's calls have seen files.
    pub files: KnownFiles,
}

impl ToolContext {
    /// A context with default time-outs, that nobody cancels or watches.
    #[must_use]
    pub fn new(env: Arc<dyn ExecutionEnvironment>, call_id: impl Into<String>) -> Self {
        Self {
            env,
            call_id: call_id.into(),
            cancel: CancellationToken::new(),
            timeouts: CommandTimeouts::default(),
            on_output: None,
            background: BackgroundCommands::new(),
            files: KnownFiles::new(),
        }
    }

    /// With a token that stops the call.
    #[must_use]
    pub fn with_cancel(mut self, cancel: CancellationToken) -> Self {
        self.cancel = cancel;
        self
    }

    /// With other time-outs.
    #[must_use]
    pub fn with_timeouts(mut self, timeouts: CommandTimeouts) -> Self {
        self.timeouts = timeouts;
        self
    }

    /// With someone who watches the output.
    #[must_use]
    pub fn with_on_output(mut self, sink: OutputSink) -> Self {
        self.on_output = Some(sink);
        self
    }

    /// With the background commands that the calls of a session share.
    #[must_use]
    pub fn with_background(mut self, background: BackgroundCommands) -> Self {
        self.background = background;
        self
    }

    /// With the files that the calls of a session have seen.
    #[must_use]
    pub fn with_files(mut self, files: KnownFiles) -> Self {
        self.files = files;
        self
    }
}

impl std::fmt::Debug for ToolContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ToolContext")
            .field("env", &self.env)
            .field("call_id", &self.call_id)
            .field("timeouts", &self.timeouts)
            .finish_non_exhaustive()
    }
}

/// How long commands may run (loop specification, section 5.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandTimeouts {
    /// Where the call names none. Default 10 s.
    pub default: Duration,
    /// However long the call asks for. Default 10 min.
    pub max: Duration,
}

impl Default for CommandTimeouts {
    fn default() -> Self {
        Self { default: Duration::from_secs(10), max: Duration::from_secs(600) }
    }
}
