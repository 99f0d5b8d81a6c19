//! Runs a program on this machine to completion, without a shell, and collects its output.

use std::path::Path;
use std::time::Duration;

use pintle_env::{
    Command, EnvError, EnvPolicy, ExecutionEnvironment, OutputChunk, OutputStream, ProcessOutput,
};
use tokio::time::timeout;

use crate::process_env::ProcessEnv;

/// Maximum output of each stream that [`run`] keeps, in bytes. The rest is read and dropped.
const MAX_OUTPUT: usize = 64 << 10;

/// How long output may be idle once the program has exited: a process that it left running may hold the pipe.
const DRAIN_IDLE: Duration = Duration::from_millis(100);

/// Outcome of a program, with its output as text or as bytes.
#[derive(Debug)]
pub enum ProgramOutcome<T = String> {
    /// It exited, or was killed by a signal.
    Exited {
        /// Exit code, or 128 plus the number of the signal.
        code: i32,
        /// Standard output.
        stdout: T,
        /// Standard error.
        stderr: T,
    },
    /// It was terminated, since it ran too long.
    TimedOut,
}

/// Runs a program with its arguments. Standard input is empty. Processes that the program leaves running are
/// terminated.
pub async fn run(
    environment: &dyn ExecutionEnvironment,
    words: &[String],
    limit: Duration,
) -> Result<ProgramOutcome, EnvError> {
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ok(match run_within(MAX_OUTPUT, environment, words, limit).await? {
        ProgramOutcome::Exited { code, stdout, stderr } => {
            ProgramOutcome::Exited { code, stdout: text(stdout), stderr: text(stderr) }
        }
        ProgramOutcome::TimedOut => ProgramOutcome::TimedOut,
    })
}

/// Runs a program like [`run`], and keeps at most `max_output` bytes of each stream.
pub(crate) async fn run_within(
    max_output: usize,
    environment: &dyn ExecutionEnvironment,
    words: &[String],
    limit: Duration,
) -> Result<ProgramOutcome<Vec<u8>>, EnvError> {
    let (program, arguments) =
        words.split_first().map_or(("", words), |(first, rest)| (first.as_str(), rest));
    let mut process = environment.spawn(Command::argv(program, arguments)).await?;
    let mut output = process.take_output();
    let mut printed = ProgramOutput { max: max_output, stdout: Vec::new(), stderr: Vec::new() };
    let exited = async {
        loop {
            tokio::select! {
                chunk = next_chunk(&mut output) => printed.append(&chunk?),
                status = process.wait() => return status,
            }
        }
    };
    let Ok(status) = timeout(limit, exited).await else { return Ok(ProgramOutcome::TimedOut) };
    let code = status?.code();
    while let Some(open) = &mut output
        && let Ok(Ok(Some(chunk))) = timeout(DRAIN_IDLE, open.next_chunk()).await
    {
        printed.append(&chunk);
    }
    Ok(ProgramOutcome::Exited { code, stdout: printed.stdout, stderr: printed.stderr })
}

/// Runs a program of the user like [`run`], with the variables of this process, secrets too, which it may need. Keeps at most
/// `max_output` bytes of each stream.
///
/// Fails also if a process that the program left running cannot be ended.
pub async fn run_as_user(
    max_output: usize,
    process_env: &ProcessEnv,
    words: &[String],
    limit: Duration,
) -> Result<ProgramOutcome<Vec<u8>>, EnvError> {
    let environment =
        process_env.unsandboxed_builder(Path::new("/")).with_env_policy(EnvPolicy::InheritAll).build()?;
    let ended = run_within(max_output, &environment, words, limit).await;
    let cleaned = environment.cleanup().await;
    let ended = ended?;
    cleaned.map(|()| ended)
}

/// Returns the next chunk. Waits forever once the output has ended.
async fn next_chunk(output: &mut Option<Box<dyn ProcessOutput>>) -> Result<OutputChunk, EnvError> {
    if let Some(open) = output {
        if let Some(chunk) = open.next_chunk().await? {
            return Ok(chunk);
        }
        *output = None;
    }
    std::future::pending().await
}

struct ProgramOutput {
    /// Maximum number of bytes kept of each stream.
    max: usize,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl ProgramOutput {
    fn append(&mut self, chunk: &OutputChunk) {
        let kept = match chunk.stream {
            OutputStream::Stdout => &mut self.stdout,
            OutputStream::Stderr => &mut self.stderr,
        };
        let room = self.max.saturating_sub(kept.len()).min(chunk.bytes.len());
        kept.extend_from_slice(chunk.bytes.get(..room).unwrap_or_default());
    }
}
