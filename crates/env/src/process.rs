//! A process that runs in an environment.

use std::{fmt, time::Duration};

use async_trait::async_trait;
use tokio::io::AsyncWrite;

use crate::{error::EnvError, output::OutputChunk};

/// How long a process may take to end after the terminate signal before it is killed (loop
/// specification, section 4.2).
pub const TERMINATE_GRACE: Duration = Duration::from_secs(2);

/// A started process, with everything that it starts in turn.
///
/// Dropping a process ends it: terminate, [`TERMINATE_GRACE`], kill, for every descendant. A drop
/// cannot wait, so the environment finishes the job in its own time and
/// [`cleanup`](crate::ExecutionEnvironment::cleanup) waits for it.
///
/// Implementers guarantee that [`wait`](Self::wait) is cancel safe, and that descendants that left
/// the process group are found wherever the system lets them be found.
#[async_trait]
pub trait Process: Send + Sync + fmt::Debug {
    /// The id of the process in its environment, if it has one.
    fn id(&self) -> Option<u32>;

    /// The writing end of the standard input, once, if the command asked for a pipe.
    ///
    /// Dropping it is the end of the input.
    fn take_stdin(&mut self) -> Option<Box<dyn AsyncWrite + Send + Unpin>>;

    /// The output, once.
    ///
    /// Nothing is read ahead: a process whose output nobody reads is held up by its full pipe.
    fn take_output(&mut self) -> Option<Box<dyn ProcessOutput>>;

    /// Waits until the process itself has exited; its jobs may still run.
    ///
    /// Cancel safe; a later call returns the same status again.
    ///
    /// # Errors
    ///
    /// [`EnvError::EnvironmentLost`] if the status cannot be known any more.
    async fn wait(&mut self) -> Result<ExitStatus, EnvError>;

    /// Sends a signal to the process and all its descendants.
    ///
    /// It is not an error if none is left.
    ///
    /// # Errors
    ///
    /// [`EnvError::EnvironmentLost`] if the signal cannot be delivered.
    async fn signal(&mut self, signal: Signal) -> Result<(), EnvError>;

    /// How many descendants still run, the process itself not counted.
    ///
    /// # Errors
    ///
    /// [`EnvError::EnvironmentLost`] if that cannot be known.
    async fn jobs(&mut self) -> Result<usize, EnvError>;

    /// Ends the process and all its descendants: terminate, wait up to `grace`, kill.
    ///
    /// Returns how many descendants ran when it was called. The output is not read meanwhile:
    /// read it concurrently, so that a process that says goodbye is not held up.
    ///
    /// # Errors
    ///
    /// [`EnvError::Stuck`] if the kernel does not let a process go, [`EnvError::EnvironmentLost`]
    /// if the other side cannot be reached.
    async fn end(&mut self, grace: Duration) -> Result<usize, EnvError>;
}

/// The two output streams of a process, merged in the order of arrival.
#[async_trait]
pub trait ProcessOutput: Send {
    /// The next piece, or `None` when both streams have ended. Cancel safe: no piece is lost.
    ///
    /// # Errors
    ///
    /// [`EnvError::EnvironmentLost`] if the rest cannot be had.
    async fn next_chunk(&mut self) -> Result<Option<OutputChunk>, EnvError>;
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitStatus {
    /// It exited with this code.
    Exited(i32),
    /// A signal of this number killed it.
    Signaled(i32),
}

impl ExitStatus {
    /// One number in the way of the shells: the exit code, or 128 plus the signal's number.
    #[must_use]
    pub fn code(self) -> i32 {
        match self {
            Self::Exited(code) => code,
            Self::Signaled(signal) => 128_i32.saturating_add(signal),
        }
    }
}

/// A signal that every environment can deliver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// `SIGINT`: what Ctrl-C sends.
    Interrupt,
    /// `SIGTERM`: please end.
    Terminate,
    /// `SIGKILL`: ends at once and cannot be refused.
    Kill,
}

// Both traits are used as trait objects only.
const _: fn(&dyn Process, &dyn ProcessOutput) = |_, _| {};
