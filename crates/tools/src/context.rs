//! The context of a call.

use pintle_env::setters;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use pintle_env::{ExecutionEnvironment, OutputSink};
use tokio_util::sync::CancellationToken;

use crate::background::BackgroundCommands;
use crate::error::{ToolError, ToolErrorKind};
use crate::intent::{DeclaredChange, IntentSink};
use crate::known_files::KnownFiles;

/// The resources of a call besides its arguments.
#[derive(Clone)]
#[non_exhaustive]
pub struct ToolContext {
    /// The execution environment, with its files and processes.
    pub env: Arc<dyn ExecutionEnvironment>,
    /// The id of the call.
    pub call_id: String,
    /// Fires when the call should stop; its future is dropped soon after.
    pub cancel: CancellationToken,
    /// The time-outs of commands.
    pub timeouts: CommandTimeouts,
    /// Receives output while the call runs.
    pub on_output: Option<OutputSink>,
    /// The session's background commands. By default they belong to the context and end when it is dropped.
    pub background: BackgroundCommands,
    /// The files that the session's calls have read or written.
    pub files: KnownFiles,
    /// The user or principal that approved the call, if known.
    pub approved_by: Option<String>,
    /// Receives the declared changes of the call. Without a sink, declarations are dropped.
    pub intents: Option<Arc<dyn IntentSink>>,
}

impl ToolContext {
    /// Creates a context with default time-outs, and without cancellation and output sink.
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
            approved_by: None,
            intents: None,
        }
    }

    setters! {
        /// Sets the token that cancels the call.
        pub fn with_cancel(cancel: CancellationToken) => cancel = cancel;
        /// Sets the time-outs.
        pub fn with_timeouts(timeouts: CommandTimeouts) => timeouts = timeouts;
        /// Sets the sink for output while the call runs.
        pub fn with_on_output(sink: OutputSink) => on_output = Some(sink);
        /// Sets the background commands that the calls of a session share.
        pub fn with_background(background: BackgroundCommands) => background = background;
        /// Sets the known files that the calls of a session share.
        pub fn with_files(files: KnownFiles) => files = files;
        /// Sets the user or principal that approved the call.
        pub fn with_approved_by(principal: Option<String>) => approved_by = principal;
        /// Sets the sink for declared changes.
        pub fn with_intents(intents: Arc<dyn IntentSink>) => intents = Some(intents);
    }

    /// Declares the changes that the call is about to make to files, and returns once the declaration is durable. A
    /// tool that [declares its changes](crate::Tool::declares_changes) calls this before the first change, with all of
    /// them.
    ///
    /// # Errors
    ///
    /// The declaration could not be recorded. The call must not change anything.
    pub async fn declare(&self, changes: &[DeclaredChange<'_>]) -> Result<(), ToolError> {
        let Some(sink) = &self.intents else { return Ok(()) };
        let mut files = Vec::with_capacity(changes.len());
        for change in changes {
            files.push(change.intent(self.env.as_ref()).await);
        }
        sink.declare(files).await
    }

    /// Runs `work` until it ends or the call is cancelled, in which case `work` is dropped.
    ///
    /// # Errors
    ///
    /// [`ToolErrorKind::Cancelled`] with this message, otherwise the error of `work`.
    pub(crate) async fn until_cancelled<T, E: Into<ToolError>>(
        &self,
        message: &str,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, ToolError> {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(ToolError::new(ToolErrorKind::Cancelled, message)),
            result = work => result.map_err(Into::into),
        }
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

/// The time-outs of commands (loop specification, section 5.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandTimeouts {
    /// The time-out of a call that does not set one. Default: 10 s.
    pub default: Duration,
    /// The longest time-out that a call may set. Default: 10 min.
    pub max: Duration,
}

impl Default for CommandTimeouts {
    fn default() -> Self {
        Self { default: Duration::from_secs(10), max: Duration::from_secs(600) }
    }
}
