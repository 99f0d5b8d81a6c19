//! Processes that run in an environment.

use std::{fmt, time::Duration};

use async_trait::async_trait;
use tokio::io::AsyncWrite;

use crate::{error::EnvError, output::OutputChunk};

/// Grace period between the terminate and the kill signal (loop specification, section 4.2).
pub const TERMINATE_GRACE: Duration = Duration::from_secs(2);

/// A started process with all its descendants.
///
/// Dropping a process terminates it and every descendant: terminate signal, [`TERMINATE_GRACE`],
/// kill signal. A drop cannot wait, so the environment completes this in the background, and
/// [`cleanup`](crate::ExecutionEnvironment::cleanup) waits for it.
///
/// Implementers guarantee that [`wait`](Self::wait) is cancel safe, and that descendants that left
/// the process group are found wherever the system makes that possible.
#[async_trait]
pub trait Process: Send + Sync + fmt::Debug {
    /// Returns the process id within the environment, if there is one.
    fn id(&self) -> Option<u32>;

    /// Takes the writing end of standard input, if the command asked for a pipe. Returns it once.
    ///
    /// Dropping it closes the input.
    fn take_stdin(&mut self) -> Option<Box<dyn AsyncWrite + Send + Unpin>>;

    /// Takes the output. Returns it once.
    ///
    /// Output is not read ahead: a process whose output is not read blocks on the full pipe.
    fn take_output(&mut self) -> Option<Box<dyn ProcessOutput>>;

    /// Waits until the process itself has exited; its jobs may still run.
    ///
    /// Cancel safe; later calls return the same status.
    ///
    /// # Errors
    ///
    /// [`EnvError::EnvironmentLost`] if the status can no longer be determined.
    async fn wait(&mut self) -> Result<ExitStatus, EnvError>;

    /// Sends a signal to the process and all its descendants.
    ///
    /// It is not an error if none of them is left.
    ///
    /// # Errors
    ///
    /// [`EnvError::EnvironmentLost`] if the signal cannot be delivered.
    async fn signal(&mut self, signal: Signal) -> Result<(), EnvError>;

    /// Returns the number of descendants that still run, not counting the process itself.
    ///
    /// # Errors
    ///
    /// [`EnvError::EnvironmentLost`] if the number cannot be determined.
    async fn jobs(&mut self) -> Result<usize, EnvError>;

    /// Terminates the process and all its descendants: sends the terminate signal, waits up to
    /// `grace`, then sends the kill signal.
    ///
    /// Returns the number of descendants at the time of the call. The output is not read meanwhile:
    /// read it concurrently, so that a process that prints while it exits is not blocked.
    ///
    /// # Errors
    ///
    /// [`EnvError::Stuck`] if a process does not exit after the kill, [`EnvError::EnvironmentLost`]
    /// if the environment cannot be reached.
    async fn terminate(&mut self, grace: Duration) -> Result<usize, EnvError>;
}

/// The two output streams of a process, merged in the order of arrival.
#[async_trait]
pub trait ProcessOutput: Send {
    /// Reads the next chunk, or `None` once both streams have ended. Cancel safe: no chunk is lost.
    ///
    /// # Errors
    ///
    /// [`EnvError::EnvironmentLost`] if the rest cannot be read.
    async fn next_chunk(&mut self) -> Result<Option<OutputChunk>, EnvError>;
}

/// Exit status of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitStatus {
    /// It exited with this code.
    Exited(i32),
    /// It was killed by the signal with this number.
    Signaled(i32),
}

impl ExitStatus {
    /// Returns the status as shells report it: the exit code, or 128 plus the signal number.
    #[must_use]
    pub fn code(self) -> i32 {
        match self {
            Self::Exited(code) => code,
            Self::Signaled(signal) => 128_i32.saturating_add(signal),
        }
    }
}

/// A signal that every environment can deliver.
///
/// A local command inherits which signals its application ignores: a shell starts background jobs with `SIGINT` ignored, and
/// `nohup` ignores `SIGHUP`. An application that handles a signal, as tokio's `ctrl_c` does, passes on the default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Signal {
    /// `SIGINT`, as sent by Ctrl-C.
    Interrupt,
    /// `SIGTERM`, a request to exit.
    Terminate,
    /// `SIGKILL`, which cannot be caught.
    Kill,
}

// Both traits are used as trait objects only.
const _: fn(&dyn Process, &dyn ProcessOutput) = |_, _| {};
