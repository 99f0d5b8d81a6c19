//! Scripts for commands of a memory environment.

use std::{collections::VecDeque, time::Duration};

use crate::{
    output::{OutputChunk, OutputStream},
    process::ExitStatus,
};

/// The steps of a command and its exit status.
///
/// ```
/// use pintle_env::CommandScript;
/// use std::time::Duration;
///
/// let script = CommandScript::exit(1)
///     .stdout("compiling\n")
///     .pause(Duration::from_millis(10))
///     .stderr("error: it does not compile\n");
/// # assert_ne!(format!("{script:?}"), "");
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct CommandScript {
    pub(super) steps: VecDeque<Step>,
    pub(super) status: ExitStatus,
    pub(super) ignores_terminate: bool,
    pub(super) jobs: usize,
}

/// One step of a command.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Print(OutputChunk),
    Pause(Duration),
    /// Copies standard input to standard output until its end.
    CopyInput,
    /// Does nothing until a signal arrives.
    Hang,
}

impl CommandScript {
    /// Exits with `code` after all steps.
    pub fn exit(code: i32) -> Self {
        Self { steps: VecDeque::new(), status: ExitStatus::Exited(code), ignores_terminate: false, jobs: 0 }
    }

    /// Is killed by the signal with this number after all steps.
    pub fn killed_by(signal: i32) -> Self {
        Self { status: ExitStatus::Signaled(signal), ..Self::exit(0) }
    }

    /// Writes to standard output.
    pub fn stdout(self, bytes: impl Into<Vec<u8>>) -> Self {
        self.then(Step::Print(OutputChunk::new(OutputStream::Stdout, bytes)))
    }

    /// Writes to standard error.
    pub fn stderr(self, bytes: impl Into<Vec<u8>>) -> Self {
        self.then(Step::Print(OutputChunk::new(OutputStream::Stderr, bytes)))
    }

    /// Waits, by the runtime's clock.
    pub fn pause(self, time: Duration) -> Self {
        self.then(Step::Pause(time))
    }

    /// Copies standard input to standard output until its end.
    pub fn copy_input(self) -> Self {
        self.then(Step::CopyInput)
    }

    /// Does nothing until a signal terminates it.
    pub fn hang(self) -> Self {
        self.then(Step::Hang)
    }

    /// Ignores the interrupt and the terminate signal.
    pub fn ignoring_terminate(mut self) -> Self {
        self.ignores_terminate = true;
        self
    }

    /// Leaves this many jobs running at its exit.
    pub fn leaving_jobs(mut self, jobs: usize) -> Self {
        self.jobs = jobs;
        self
    }

    fn then(mut self, step: Step) -> Self {
        self.steps.push_back(step);
        self
    }
}
