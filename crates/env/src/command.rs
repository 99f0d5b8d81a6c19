//! What to run and what came of it.

use std::{collections::BTreeMap, ffi::OsString, fmt, path::PathBuf, sync::Arc, time::Duration};

use crate::output::{Output, OutputChunk};

/// The time-out of a command that names none (loop specification, section 5.4).
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// What a command's standard input is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stdin {
    /// `/dev/null`: a command that reads gets the end at once. The default.
    #[default]
    Null,
    /// A pipe, written through [`Process::take_stdin`](crate::Process::take_stdin).
    Piped,
}

/// What a [`Command`] runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Program {
    /// A line for the environment's shell: `/bin/bash -c`, else `/bin/sh -c`.
    Shell(String),
    /// A program and its arguments, as they are, without a shell.
    Argv {
        /// The program: a path, or a name that is looked up in the environment's `PATH`.
        program: OsString,
        /// The arguments after the program's own name.
        arguments: Vec<OsString>,
    },
}

/// A process to start: the argument of [`ExecutionEnvironment::spawn`](crate::ExecutionEnvironment::spawn).
///
/// `Debug` shows the names of variables and never their values.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Command {
    /// What to run.
    pub program: Program,
    /// Where to run it; relative paths start at the environment's working directory, which is also
    /// the default.
    pub working_dir: Option<PathBuf>,
    /// Variables on top of those that the environment gives every command. They are not filtered.
    pub env: BTreeMap<OsString, OsString>,
    /// The standard input; default [`Stdin::Null`].
    pub stdin: Stdin,
}

impl Command {
    /// A line for the environment's shell.
    #[must_use]
    pub fn shell(line: impl Into<String>) -> Self {
        Self::new(Program::Shell(line.into()))
    }

    /// A program with its arguments, without a shell.
    #[must_use]
    pub fn argv<A>(program: impl Into<OsString>, arguments: impl IntoIterator<Item = A>) -> Self
    where
        A: Into<OsString>,
    {
        Self::new(Program::Argv {
            program: program.into(),
            arguments: arguments.into_iter().map(Into::into).collect(),
        })
    }

    /// A command with the default place, variables and input.
    #[must_use]
    pub fn new(program: Program) -> Self {
        Self { program, working_dir: None, env: BTreeMap::new(), stdin: Stdin::Null }
    }

    /// Runs in `directory` instead of the environment's working directory.
    #[must_use]
    pub fn with_working_dir(mut self, directory: impl Into<PathBuf>) -> Self {
        self.working_dir = Some(directory.into());
        self
    }

    /// Adds one variable.
    #[must_use]
    pub fn with_env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// Chooses the standard input.
    #[must_use]
    pub fn with_stdin(mut self, stdin: Stdin) -> Self {
        self.stdin = stdin;
        self
    }
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Command")
            .field("program", &self.program)
            .field("working_dir", &self.working_dir)
            .field("env", &self.env.keys().collect::<Vec<_>>())
            .field("stdin", &self.stdin)
            .finish()
    }
}

/// Gets every piece of output as it arrives.
///
/// It is called on the task that drives the command and holds the command up while it runs: hand
/// the piece on and return.
pub type OutputSink = Arc<dyn Fn(OutputChunk) + Send + Sync>;

/// A shell line to run to its end: the argument of
/// [`ExecutionEnvironment::exec_command`](crate::ExecutionEnvironment::exec_command).
///
/// `Debug` shows the names of variables and never their values, nor the input.
#[derive(Clone)]
#[non_exhaustive]
pub struct ExecRequest {
    /// The line for the shell.
    pub command: String,
    /// How long it may run before it is ended; default [`DEFAULT_TIMEOUT`].
    pub timeout: Duration,
    /// Where to run it; default the environment's working directory.
    pub working_dir: Option<PathBuf>,
    /// Variables on top of those that the environment gives every command. They are not filtered.
    pub env: BTreeMap<String, String>,
    /// The whole standard input; default none, which is `/dev/null`.
    pub stdin: Option<Vec<u8>>,
    /// Gets the output while the command runs; the result holds the whole all the same.
    pub on_output: Option<OutputSink>,
}

impl ExecRequest {
    /// Runs `command` in the working directory with the default time-out and no input.
    #[must_use]
    pub fn new(command: impl Into<String>) -> Self {
        Self {
            command: command.into(),
            timeout: DEFAULT_TIMEOUT,
            working_dir: None,
            env: BTreeMap::new(),
            stdin: None,
            on_output: None,
        }
    }

    /// Sets the time-out.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Runs in `directory` instead of the environment's working directory.
    #[must_use]
    pub fn with_working_dir(mut self, directory: impl Into<PathBuf>) -> Self {
        self.working_dir = Some(directory.into());
        self
    }

    /// Adds one variable.
    #[must_use]
    pub fn with_env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// Gives the command `bytes` as its whole standard input.
    #[must_use]
    pub fn with_stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = Some(bytes.into());
        self
    }

    /// Passes every piece of output to `sink` as it arrives.
    #[must_use]
    pub fn with_on_output(mut self, sink: OutputSink) -> Self {
        self.on_output = Some(sink);
        self
    }
}

impl From<&ExecRequest> for Command {
    /// The process that a request starts. The time-out, the input itself and the sink are no part of it.
    fn from(request: &ExecRequest) -> Self {
        let mut command = Self::shell(&request.command);
        command.working_dir = request.working_dir.clone();
        command.env = request.env.iter().map(|(name, value)| (name.into(), value.into())).collect();
        command.stdin = if request.stdin.is_some() { Stdin::Piped } else { Stdin::Null };
        command
    }
}

impl fmt::Debug for ExecRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExecRequest")
            .field("command", &self.command)
            .field("timeout", &self.timeout)
            .field("working_dir", &self.working_dir)
            .field("env", &self.env.keys().collect::<Vec<_>>())
            .field("stdin_bytes", &self.stdin.as_ref().map(Vec::len))
            .field("on_output", &self.on_output.is_some())
            .finish()
    }
}

/// What came of a command that ran (loop specification, section 4.1).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ExecResult {
    /// What the command wrote to its standard output.
    pub stdout: Output,
    /// What the command wrote to its standard error.
    pub stderr: Output,
    /// Both, in the order in which they arrived.
    pub output: Output,
    /// The exit code, or 128 plus the number of the signal that killed the command.
    pub exit_code: i32,
    /// Whether the time-out ended the command. The outputs then hold what came before.
    pub timed_out: bool,
    /// From before the start until everything of the command was gone.
    pub duration: Duration,
    /// How many processes of the command still ran after it had returned and were ended.
    ///
    /// Zero after a time-out, where everything is ended anyway.
    pub ended_jobs: usize,
    /// The id of a process that was killed and did not go, as [`EnvError::Stuck`](crate::EnvError::Stuck)
    /// would tell it. The outputs hold what came until it was given up.
    pub stuck: Option<u32>,
}

impl ExecResult {
    /// The result of a command that wrote nothing.
    #[must_use]
    pub fn new(exit_code: i32) -> Self {
        Self {
            stdout: Output::default(),
            stderr: Output::default(),
            output: Output::default(),
            exit_code,
            timed_out: false,
            duration: Duration::ZERO,
            ended_jobs: 0,
            stuck: None,
        }
    }

    /// Sets the three outputs; `output` is both streams in the order of arrival.
    #[must_use]
    pub fn with_outputs(mut self, stdout: Output, stderr: Output, output: Output) -> Self {
        self.stdout = stdout;
        self.stderr = stderr;
        self.output = output;
        self
    }

    /// Says whether the time-out ended the command.
    #[must_use]
    pub fn with_timed_out(mut self, timed_out: bool) -> Self {
        self.timed_out = timed_out;
        self
    }

    /// Sets how long the command took.
    #[must_use]
    pub fn with_duration(mut self, duration: Duration) -> Self {
        self.duration = duration;
        self
    }

    /// Sets how many jobs were ended after the command had returned.
    #[must_use]
    pub fn with_ended_jobs(mut self, ended_jobs: usize) -> Self {
        self.ended_jobs = ended_jobs;
        self
    }

    /// Says which process could not be ended.
    #[must_use]
    pub fn with_stuck(mut self, stuck: Option<u32>) -> Self {
        self.stuck = stuck;
        self
    }

    /// Whether the command exited with 0 in time, and nothing of it is still there.
    #[must_use]
    pub fn success(&self) -> bool {
        self.exit_code == 0 && !self.timed_out && self.stuck.is_none()
    }
}
