//! Commands to run, and their results.

use std::{collections::BTreeMap, ffi::OsString, fmt, path::PathBuf, sync::Arc, time::Duration};

use crate::{
    output::{Output, OutputChunk},
    setters::setters,
};

/// Time-out of a command that does not set one (loop specification, section 5.4).
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// Standard input of a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stdin {
    /// `/dev/null`: a command that reads its input sees end of file at once. The default.
    #[default]
    Null,
    /// A pipe, written through [`Process::take_stdin`](crate::Process::take_stdin).
    Piped,
}

/// The program of a [`Command`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Program {
    /// A line for the environment's shell: `/bin/bash -c`, else `/bin/sh -c`.
    Shell(String),
    /// A program and its arguments, run without a shell.
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
    /// The directory to run in. Relative paths start at the environment's working directory, the
    /// default.
    pub working_dir: Option<PathBuf>,
    /// Variables in addition to those the environment gives every command. They are not filtered.
    pub env: BTreeMap<OsString, OsString>,
    /// The standard input; default [`Stdin::Null`].
    pub stdin: Stdin,
    /// Whether a sandbox lets the command write only temporary files; default false.
    pub is_read_only: bool,
    /// Whether the command needs the caches of package managers of a sandbox; default true.
    pub package_caches: bool,
}

impl Command {
    /// Creates a command that runs `line` in the environment's shell.
    #[must_use]
    pub fn shell(line: impl Into<String>) -> Self {
        Self::new(Program::Shell(line.into()))
    }

    /// Creates a command that runs a program with its arguments, without a shell.
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

    /// Creates a command with the default working directory, variables and input.
    #[must_use]
    pub fn new(program: Program) -> Self {
        Self {
            program,
            working_dir: None,
            env: BTreeMap::new(),
            stdin: Stdin::Null,
            is_read_only: false,
            package_caches: true,
        }
    }

    /// Sets the directory to run in.
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

    /// Sets the standard input.
    #[must_use]
    pub fn with_stdin(mut self, stdin: Stdin) -> Self {
        self.stdin = stdin;
        self
    }

    /// Declares that the command writes nothing but temporary files. A sandbox enforces it; environments without a sandbox
    /// do not.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.is_read_only = true;
        self
    }

    /// Starts the command without the caches of package managers, and so without waiting until a sandbox has filled them.
    #[must_use]
    pub fn without_package_caches(mut self) -> Self {
        self.package_caches = false;
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
            .field("is_read_only", &self.is_read_only)
            .field("package_caches", &self.package_caches)
            .finish()
    }
}

/// Receives each chunk of output as it arrives.
///
/// Called on the task that drives the command, which is blocked meanwhile: forward the chunk and
/// return.
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
    /// Time after which the command is terminated; default [`DEFAULT_TIMEOUT`].
    pub timeout: Duration,
    /// The directory to run in; default the environment's working directory.
    pub working_dir: Option<PathBuf>,
    /// Variables in addition to those the environment gives every command. They are not filtered.
    pub env: BTreeMap<String, String>,
    /// The complete standard input; default none, which is `/dev/null`.
    pub stdin: Option<Vec<u8>>,
    /// Receives the output while the command runs. The result still holds all of it.
    pub on_output: Option<OutputSink>,
    /// Whether a sandbox lets the command write only temporary files; default false.
    pub is_read_only: bool,
    /// Whether the command needs the caches of package managers of a sandbox; default true.
    pub package_caches: bool,
}

impl ExecRequest {
    /// Creates a request to run `command` in the working directory with the default time-out and no
    /// input.
    #[must_use]
    pub fn new(command: impl Into<String>) -> Self {
        Self {
            command: command.into(),
            timeout: DEFAULT_TIMEOUT,
            working_dir: None,
            env: BTreeMap::new(),
            stdin: None,
            on_output: None,
            is_read_only: false,
            package_caches: true,
        }
    }

    /// Sets the time-out.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets the directory to run in.
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

    /// Sets the complete standard input.
    #[must_use]
    pub fn with_stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = Some(bytes.into());
        self
    }

    /// Forwards each chunk of output to `sink` as it arrives.
    #[must_use]
    pub fn with_on_output(mut self, sink: OutputSink) -> Self {
        self.on_output = Some(sink);
        self
    }

    /// As [`Command::read_only`].
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.is_read_only = true;
        self
    }

    /// As [`Command::without_package_caches`].
    #[must_use]
    pub fn without_package_caches(mut self) -> Self {
        self.package_caches = false;
        self
    }
}

impl From<&ExecRequest> for Command {
    /// Converts the request without its time-out, its input bytes and its sink, which are not part
    /// of the process.
    fn from(request: &ExecRequest) -> Self {
        let mut command = Self::shell(&request.command);
        command.working_dir = request.working_dir.clone();
        command.env = request.env.iter().map(|(name, value)| (name.into(), value.into())).collect();
        command.stdin = if request.stdin.is_some() { Stdin::Piped } else { Stdin::Null };
        command.is_read_only = request.is_read_only;
        command.package_caches = request.package_caches;
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
            .field("is_read_only", &self.is_read_only)
            .field("package_caches", &self.package_caches)
            .finish()
    }
}

/// Result of a command that ran (loop specification, section 4.1).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ExecResult {
    /// Standard output of the command.
    pub stdout: Output,
    /// Standard error of the command.
    pub stderr: Output,
    /// Both streams in the order of arrival.
    pub output: Output,
    /// The exit code, or 128 plus the number of the signal that killed the command.
    pub exit_code: i32,
    /// True if the command was terminated at the time-out. The outputs hold everything written
    /// until then.
    pub timed_out: bool,
    /// Time from before the start until all processes of the command were gone.
    pub duration: Duration,
    /// Number of processes that still ran after the command had exited and were terminated.
    ///
    /// Zero after a time-out, where all processes are terminated anyway.
    pub ended_jobs: usize,
    /// The id of a process that did not exit after it was killed, as in
    /// [`EnvError::Stuck`](crate::EnvError::Stuck). The outputs hold everything read until then.
    pub stuck: Option<u32>,
}

impl ExecResult {
    /// Creates the result of a command without output.
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

    /// Sets the three outputs; `output` holds both streams in the order of arrival.
    #[must_use]
    pub fn with_outputs(mut self, stdout: Output, stderr: Output, output: Output) -> Self {
        self.stdout = stdout;
        self.stderr = stderr;
        self.output = output;
        self
    }

    setters! {
        /// Sets whether the command was terminated at the time-out.
        pub fn with_timed_out(timed_out: bool) => timed_out = timed_out;
        /// Sets the duration of the command.
        pub fn with_duration(duration: Duration) => duration = duration;
        /// Sets the number of jobs terminated after the command had exited.
        pub fn with_ended_jobs(ended_jobs: usize) => ended_jobs = ended_jobs;
        /// Sets the id of a process that could not be killed.
        pub fn with_stuck(stuck: Option<u32>) => stuck = stuck;
    }

    /// Returns true if the command exited with 0 in time and left no stuck process.
    #[must_use]
    pub fn success(&self) -> bool {
        self.exit_code == 0 && !self.timed_out && self.stuck.is_none()
    }
}
