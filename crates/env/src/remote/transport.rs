//! Transports to remote systems.

use std::{
    fmt,
    process::{Command, ExitStatus},
};

use async_trait::async_trait;

use crate::error::EnvError;

/// A way to reach a remote system: a local client program that runs one POSIX shell line there.
#[async_trait]
pub(crate) trait Transport: Send + Sync + fmt::Debug + 'static {
    /// Ensures that lines can be run. Called before the first line, and again before the next one
    /// after the connection was lost.
    async fn open(&self) -> Result<(), EnvError> {
        Ok(())
    }

    /// Releases what [`open`](Self::open) created. Called at the end of a cleanup, when no line is
    /// running.
    async fn close(&self) -> Result<(), EnvError> {
        Ok(())
    }

    /// Returns a local command that runs `line` with the remote `/bin/sh` and passes the three
    /// standard streams through unchanged.
    ///
    /// The caller sets the streams and the process group.
    fn command(&self, line: &str) -> Command;

    /// Returns the error for a client program that exited without a record from the remote side.
    ///
    /// `stderr_tail` is the end of the client's standard error.
    fn exit_error(&self, status: ExitStatus, stderr_tail: &str) -> EnvError;

    /// Maximum number of concurrent commands.
    ///
    /// In addition to these there are the supervisor's line and one line for helper scripts per
    /// eight commands, at least one.
    fn concurrency(&self) -> usize;

    /// Name of the remote system in errors: `docker:NAME`, `ssh:HOST`.
    fn name(&self) -> &str;

    /// A shell command that the remote side runs after the lifeline was cut and everything was
    /// terminated.
    fn exit_command(&self) -> &str {
        ":"
    }
}
