//! What a command of a memory environment does.

use std::{collections::VecDeque, time::Duration};

use crate::{
    output::{OutputChunk, OutputStream},
    process::ExitStatus,
};

/// What a command does, step by step, and how it ends.
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

/// One thing that a command does.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Print(OutputChunk),
    Pause(Duration),
    /// Copies the standard input to the standard output until it ends.
    CopyInput,
    /// Does nothing until a signal comes.
    Hang,
}

impl CommandScript {
    /// Exits with `code` when all steps are done.
    pub fn exit(code: i32) -> Self {
        Self { steps: VecDeque::new(), status: ExitStatus::Exited(code), ignores_terminate: false, jobs: 0 }
    }

    /// Is killed by the signal of this number when all steps are done.
    pub fn killed_by(signal: i32) -> Self {
        Self { status: ExitStatus::Signaled(signal), ..Self::exit(0) }
    }

    /// Writes to the standard output.
    pub fn stdout(self, bytes: impl Into<Vec<u8>>) -> Self {
        self.then(Step::Print(OutputChunk::new(OutputStream::Stdout, bytes)))
    }

    /// Writes to the standard error.
    pub fn stderr(self, bytes: impl Into<Vec<u8>>) -> Self {
        self.then(Step::Print(OutputChunk::new(OutputStream::Stderr, bytes)))
    }

    /// Waits, by the clock of the runtime.
    pub fn pause(self, time: Duration) -> Self {
        self.then(Step::Pause(time))
    }

    /// Copies the standard input to the standard output until it ends.
    pub fn copy_input(self) -> Self {
        self.then(Step::CopyInput)
    }

    /// Does nothing any more until a signal ends it.
    pub fn hang(self) -> Self {
        self.then(Step::Hang)
    }

    /// Goes on when it gets the interrupt or the terminate signal.
    pub fn ignoring_terminate(mut self) -> Self {
        self.ignores_terminate = true;
        self
    }

    /// Leaves this many jobs running when it exits.
    pub fn leaving_jobs(mut self, jobs: usize) -> Self {
        self.jobs = jobs;
        self
    }

    fn then(mut self, step: Step) -> Self {
        self.steps.push_back(step);
        self
    }
}
