//! A process whose exit is logged.

use std::{fmt, time::Duration};

use async_trait::async_trait;
use tokio::io::AsyncWrite;

use super::Entry;
use crate::{
    error::EnvError,
    process::{ExitStatus, Process, ProcessOutput, Signal},
};

/// Forwards to a process and logs the first exit that is awaited.
pub(super) struct LoggedProcess {
    inner: Box<dyn Process>,
    /// `None` once the exit was logged. If dropped before, that is logged.
    entry: Option<Entry>,
}

impl LoggedProcess {
    pub(super) fn new(inner: Box<dyn Process>, entry: Entry) -> Self {
        Self { inner, entry: Some(entry) }
    }

    fn tell<T>(
        &mut self,
        ended: Result<T, EnvError>,
        describe: impl FnOnce(&T) -> String,
    ) -> Result<T, EnvError> {
        match self.entry.take() {
            Some(entry) => entry.finish(ended, describe),
            None => ended,
        }
    }
}

#[async_trait]
impl Process for LoggedProcess {
    fn id(&self) -> Option<u32> {
        self.inner.id()
    }

    fn take_stdin(&mut self) -> Option<Box<dyn AsyncWrite + Send + Unpin>> {
        self.inner.take_stdin()
    }

    fn take_output(&mut self) -> Option<Box<dyn ProcessOutput>> {
        self.inner.take_output()
    }

    async fn wait(&mut self) -> Result<ExitStatus, EnvError> {
        let ended = self.inner.wait().await;
        self.tell(ended, |status| format!("exit code {}", status.code()))
    }

    async fn signal(&mut self, signal: Signal) -> Result<(), EnvError> {
        self.inner.signal(signal).await
    }

    async fn jobs(&mut self) -> Result<usize, EnvError> {
        self.inner.jobs().await
    }

    async fn terminate(&mut self, grace: Duration) -> Result<usize, EnvError> {
        let ended = self.inner.terminate(grace).await;
        self.tell(ended, |jobs| format!("ended with {jobs} jobs"))
    }
}

impl fmt::Debug for LoggedProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
