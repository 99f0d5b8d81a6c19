//! Runs helper scripts on the remote system.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    io,
    os::unix::ffi::OsStrExt,
    path::Path,
};

use tokio::{
    io::AsyncWriteExt,
    time::{Instant, timeout_at},
};

use crate::{
    command::{Program, Stdin},
    error::EnvError,
    file::MAX_READ,
    output::OutputStream,
    process::{ExitStatus, Process, ProcessOutput},
};

use super::{
    Remote,
    client::Tail,
    launch::Launch,
    process::{RemoteProcess, SpawnContext, spawn},
    transport::Transport,
};

const PRELUDE: &str = include_str!("scripts/prelude.sh");
const STAT_GNU: &str = include_str!("scripts/stat_gnu.sh");
const STAT_BSD: &str = include_str!("scripts/stat_bsd.sh");

/// Maximum size of the output of a script.
const MAX_OUTPUT: u64 = MAX_READ + (1 << 20);

/// Command-line dialect of the remote `stat`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum StatDialect {
    /// `-c`: GNU, busybox.
    #[default]
    Gnu,
    /// `-f`: BSD, macOS.
    Bsd,
}

/// A helper script and its arguments.
#[derive(Clone, Copy, Debug)]
pub(super) struct HelperScript<'a> {
    pub(super) script: &'static str,
    pub(super) arguments: &'a [&'a [u8]],
    /// The standard input.
    pub(super) input: Option<&'a [u8]>,
    /// The directory to run in.
    pub(super) directory: &'static str,
    /// Time at which the script is terminated; its output so far is the result, as if it had succeeded.
    pub(super) deadline: Option<Instant>,
}

/// Result of a script.
#[derive(Debug)]
pub(super) struct ScriptOutput {
    pub(super) status: ExitStatus,
    pub(super) stdout: Vec<u8>,
    /// The end of the standard error.
    pub(super) stderr_tail: String,
}

impl<'a> HelperScript<'a> {
    pub(super) fn new(script: &'static str, arguments: &'a [&'a [u8]]) -> Self {
        Self { script, arguments, input: None, directory: "/", deadline: None }
    }

    /// Returns the complete script as a program.
    fn program(&self, dialect: StatDialect) -> Program {
        let stat_functions = match dialect {
            StatDialect::Gnu => STAT_GNU,
            StatDialect::Bsd => STAT_BSD,
        };
        let script = [stat_functions, PRELUDE, self.script].concat();
        let fixed = ["-c", script.as_str(), "pintle"].map(OsString::from);
        let given = self.arguments.iter().map(|argument| OsStr::from_bytes(argument).to_os_string());
        Program::Argv { program: "/bin/sh".into(), arguments: fixed.into_iter().chain(given).collect() }
    }
}

impl<T: Transport> Remote<T> {
    /// Runs a script to completion. Dropping the future terminates it.
    pub(super) async fn run_script(
        &self,
        script: HelperScript<'_>,
        dialect: StatDialect,
    ) -> Result<ScriptOutput, EnvError> {
        let slot = self.acquire(self.slots.for_script()).await?;
        let channel = self.channel().await?;
        let program = script.program(dialect);
        // Fixes the language of messages and the character classes.
        let variables = BTreeMap::from([("LC_ALL".into(), "C".into())]);
        let launch = Launch {
            program: &program,
            directory: Path::new(script.directory),
            variables: &variables,
            withheld: &[],
            stdin: if script.input.is_some() { Stdin::Piped } else { Stdin::Null },
        };
        let context = SpawnContext { transport: self.transport.clone(), channel, slot };
        let mut process = spawn(&launch, context).await?;
        let ScriptResult { output, is_stopped } = self.collect(&mut process, &script).await?;
        if !is_stopped {
            // Helper scripts leave no process behind.
            process.settle();
        }
        Ok(output)
    }

    async fn collect(
        &self,
        process: &mut RemoteProcess<T>,
        script: &HelperScript<'_>,
    ) -> Result<ScriptResult, EnvError> {
        let output = process.take_output();
        let stdin = process.take_stdin();
        let feed = async {
            if let Some((bytes, mut pipe)) = script.input.zip(stdin)
                && let Err(error) = pipe.write_all(bytes).await
            {
                tracing::debug!(%error, "a script did not read all of its input");
            }
        };
        let (mut stdout, mut stderr_tail) = (Vec::new(), Tail::default());
        let all = async { tokio::join!(feed, read_all(output, &mut stdout, &mut stderr_tail)).1 };
        let read = match script.deadline {
            Some(deadline) => timeout_at(deadline, all).await,
            None => Ok(all.await),
        };
        let is_stopped = read.is_err();
        // The dropped process is terminated.
        let status = match read {
            Ok(read) => read.map(|()| process.wait())?.await?,
            Err(_elapsed) => ExitStatus::Exited(0),
        };
        let stderr_tail = stderr_tail.text();
        Ok(ScriptResult { output: ScriptOutput { status, stdout, stderr_tail }, is_stopped })
    }
}

/// Result of a script that may have been stopped at its deadline.
struct ScriptResult {
    output: ScriptOutput,
    is_stopped: bool,
}

async fn read_all(
    output: Option<Box<dyn ProcessOutput>>,
    stdout: &mut Vec<u8>,
    stderr_tail: &mut Tail,
) -> Result<(), EnvError> {
    let Some(mut output) = output else {
        return Ok(());
    };
    while let Some(chunk) = output.next_chunk().await? {
        match chunk.stream {
            OutputStream::Stdout if stdout.len() as u64 > MAX_OUTPUT => {
                return Err(EnvError::Io {
                    action: "read",
                    path: "/".into(),
                    source: io::Error::other(format!("more than {MAX_OUTPUT} bytes of output")),
                });
            }
            OutputStream::Stdout => stdout.extend(chunk.bytes),
            OutputStream::Stderr => stderr_tail.push(&chunk.bytes),
        }
    }
    Ok(())
}
