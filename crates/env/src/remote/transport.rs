//! The way to a far side.

use std::{
    fmt,
    process::{Command, ExitStatus},
};

use async_trait::async_trait;

use crate::error::EnvError;

/// The way to a far side: a local client program that runs one POSIX shell line there.
#[async_trait]
pub(crate) trait Transport: Send + Sync + fmt::Debug + 'static {
    /// Makes sure that lines can be run; called before the first one, and again before the next one when the
    /// connection was lost.
    async fn open(&self) -> Result<(), EnvError> {
        Ok(())
    }

    /// Gives up what [`open`](Self::open) made; called at the end of a cleanup, when no line runs any more.
    async fn close(&self) -> Result<(), EnvError> {
        Ok(())
    }

    /// A local command that runs `line` with the far side's `/bin/sh`, its three standard streams passed through
    /// byte for byte.
    ///
    /// The caller sets the streams and the process group.
    fn command(&self, line: &str) -> Command;

    /// What went wrong when the client program ended without the far side's word for it.
    ///
    /// `stderr_tail` is the last that the client wrote to its standard error.
    fn lost(&self, status: ExitStatus, stderr_tail: &str) -> EnvError;

    /// How many commands may run at the same time.
    ///
    /// Beside them run the supervisor's line and one line for files for every eight commands, at least one.
    fn concurrency(&self) -> usize;

    /// Names the far side in errors: `docker:NAME`, `ssh:HOST`.
    fn name(&self) -> &str;

    /// A shell command that the far side runs when the lifeline is cut and everything has been ended.
    fn last_words(&self) -> &str {
        ":"
    }
}
