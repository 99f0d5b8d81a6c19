//! Running one of our own scripts on the far side.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    io,
    os::unix::ffi::OsStrExt,
    path::Path,
};

use tokio::io::AsyncWriteExt;

use crate::{
    command::{Program, Stdin},
    environment::MAX_READ,
    error::EnvError,
    output::OutputStream,
    process::{ExitStatus, Process, ProcessOutput},
};

use super::{
    Remote,
    client::Tail,
    launch::Launch,
    process::{RemoteProcess, Setting, spawn},
    transport::Transport,
};

const PRELUDE: &str = include_str!("scripts/prelude.sh");
const STAT_C: &str = include_str!("scripts/stat_c.sh");
const STAT_F: &str = include_str!("scripts/stat_f.sh");

/// More than any answer but the content of a file may take.
const MAX_ANSWER: u64 = MAX_READ + (1 << 20);

/// How the far side's `stat` wants to be asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum StatWords {
    /// `-c`: GNU, busybox.
    #[default]
    C,
    /// `-f`: the BSDs, macOS.
    F,
}

/// A script with what it is given.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tool<'a> {
    pub(super) script: &'static str,
    pub(super) arguments: &'a [&'a [u8]],
    /// Its standard input.
    pub(super) input: Option<&'a [u8]>,
    /// Where it runs.
    pub(super) directory: &'static str,
}

/// What came of a script.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: ExitStatus,
    pub(super) stdout: Vec<u8>,
    /// The last of the standard error.
    pub(super) complaint: String,
}

impl<'a> Tool<'a> {
    pub(super) fn new(script: &'static str, arguments: &'a [&'a [u8]]) -> Self {
        Self { script, arguments, input: None, directory: "/" }
    }

    /// The whole script as a program.
    fn program(&self, words: StatWords) -> Program {
        let words = match words {
            StatWords::C => STAT_C,
            StatWords::F => STAT_F,
        };
        let script = [words, PRELUDE, self.script].concat();
        let fixed = ["-c", script.as_str(), "pintle"].map(OsString::from);
        let given = self.arguments.iter().map(|argument| OsStr::from_bytes(argument).to_os_string());
        Program::Argv { program: "/bin/sh".into(), arguments: fixed.into_iter().chain(given).collect() }
    }
}

impl<T: Transport> Remote<T> {
    /// Runs a script to its end. Dropping the future ends it.
    pub(super) async fn run_tool(&self, tool: Tool<'_>, words: StatWords) -> Result<Answer, EnvError> {
        let place = self.place(self.places.for_tool()).await?;
        let channel = self.channel().await?;
        let program = tool.program(words);
        // Messages and classes of characters are the same everywhere.
        let variables = BTreeMap::from([("LC_ALL".into(), "C".into())]);
        let launch = Launch {
            program: &program,
            directory: Path::new(tool.directory),
            variables: &variables,
            withheld: &[],
            stdin: if tool.input.is_some() { Stdin::Piped } else { Stdin::Null },
        };
        let setting = Setting { transport: self.transport.clone(), channel, place };
        let mut process = spawn(&launch, setting).await?;
        let answer = self.collect(&mut process, tool.input).await?;
        // Our scripts leave nothing running.
        process.settle();
        Ok(answer)
    }

    async fn collect(
        &self,
        process: &mut RemoteProcess<T>,
        input: Option<&[u8]>,
    ) -> Result<Answer, EnvError> {
        let output = process.take_output();
        let stdin = process.take_stdin();
        let feed = async {
            if let Some((bytes, mut pipe)) = input.zip(stdin)
                && let Err(error) = pipe.write_all(bytes).await
            {
                tracing::debug!(%error, "a script did not read all of its input");
            }
        };
        let ((), read) = tokio::join!(feed, read_all(output));
        let (stdout, complaint) = read?;
        Ok(Answer { status: process.wait().await?, stdout, complaint })
    }
}

async fn read_all(output: Option<Box<dyn ProcessOutput>>) -> Result<(Vec<u8>, String), EnvError> {
    let (mut stdout, mut complaint) = (Vec::new(), Tail::default());
    let Some(mut output) = output else {
        return Ok((stdout, String::new()));
    };
    while let Some(chunk) = output.next_chunk().await? {
        match chunk.stream {
            OutputStream::Stdout if stdout.len() as u64 > MAX_ANSWER => {
                return Err(EnvError::Io {
                    action: "read",
                    path: "/".into(),
                    source: io::Error::other(format!("an answer of more than {MAX_ANSWER} bytes")),
                });
            }
            OutputStream::Stdout => stdout.extend(chunk.bytes),
            OutputStream::Stderr => complaint.push(&chunk.bytes),
        }
    }
    Ok((stdout, complaint.text()))
}
