//! Runs a command to completion on top of [`Process`], by the rules that all environments share.

mod recorder;

use std::{
    future::Future,
    pin::{Pin, pin},
    time::Duration,
};

use tokio::{
    io::{AsyncWrite, AsyncWriteExt},
    time::{Instant, sleep, sleep_until, timeout},
};

use self::recorder::Recorder;
use crate::{
    command::{ExecRequest, ExecResult, OutputSink},
    error::EnvError,
    output::{OutputChunk, OutputLimits},
    process::{ExitStatus, Process, ProcessOutput, TERMINATE_GRACE},
};

/// Time for which jobs may keep running, and hold the output open, after the command has exited.
const JOB_GRACE: Duration = Duration::from_millis(250);

/// Interval at which remaining jobs are counted during that time.
const JOB_POLL: Duration = Duration::from_millis(25);

/// How long the output may be idle once every known process has exited.
const DRAIN_IDLE: Duration = Duration::from_millis(100);

/// Limit on draining the pipes, in case an unrelated process holds them and keeps writing.
const DRAIN_LIMIT: Duration = Duration::from_secs(2);

/// Drives `process` to completion: input, output, time-out, and the jobs it leaves running.
///
/// Dropping the future drops the process, which terminates it.
pub(crate) async fn run(
    mut process: Box<dyn Process>,
    request: ExecRequest,
    limits: OutputLimits,
    started: Instant,
) -> Result<ExecResult, EnvError> {
    let mut reader =
        Reader { output: process.take_output(), recorder: Recorder::new(limits), sink: request.on_output };
    // Declared after the reader, so dropped before it: output of a terminating command is still
    // read.
    let mut process = process;
    let input = request.stdin.zip(process.take_stdin());
    let deadline = request.timeout.saturating_sub(started.elapsed());
    let in_time = until_exit(process.as_mut(), &mut reader, input, deadline).await?;
    let ended = match in_time {
        Some(_) => settle(process.as_mut(), &mut reader).await?,
        None => Leftovers { jobs: 0, ..terminate(process.as_mut(), &mut reader).await? },
    };
    let status = match (in_time, ended.stuck) {
        (Some(status), _) => status,
        (None, None) => process.wait().await?,
        // The status may never be known: the kernel is holding on to a killed process.
        (None, Some(_)) => timeout(Duration::ZERO, process.wait()).await.unwrap_or(Ok(KILLED))?,
    };
    let captured = reader.recorder.finish().await?;
    Ok(ExecResult::new(status.code())
        .with_outputs(captured.stdout, captured.stderr, captured.output)
        .with_timed_out(in_time.is_none())
        .with_duration(started.elapsed())
        .with_ended_jobs(ended.jobs)
        .with_stuck(ended.stuck))
}

/// Status reported for a killed process that has not exited; the one it will have when the kernel
/// releases it.
const KILLED: ExitStatus = ExitStatus::Signaled(9);

/// Processes that had to be terminated.
#[derive(Default)]
struct Leftovers {
    jobs: usize,
    /// A process that survived the kill signal.
    stuck: Option<u32>,
}

/// Reads output until the process itself has exited; returns `None` at the time-out.
async fn until_exit(
    process: &mut dyn Process,
    reader: &mut Reader,
    input: Option<(Vec<u8>, Box<dyn AsyncWrite + Send + Unpin>)>,
    deadline: Duration,
) -> Result<Option<ExitStatus>, EnvError> {
    let mut feed = pin!(feed(input));
    let mut fed = false;
    let mut time_out = pin!(sleep(deadline));
    loop {
        tokio::select! {
            () = &mut time_out => return Ok(None),
            status = process.wait() => return status.map(Some),
            chunk = reader.next(), if reader.is_open() => reader.keep(chunk?).await?,
            () = &mut feed, if !fed => fed = true,
        }
    }
}

/// Reads the remaining output after the exit and terminates jobs that do not exit in time.
async fn settle(process: &mut dyn Process, reader: &mut Reader) -> Result<Leftovers, EnvError> {
    let deadline = Instant::now() + JOB_GRACE;
    while reader.is_open() {
        tokio::select! {
            () = sleep_until(deadline) => break,
            chunk = reader.next() => reader.keep(chunk?).await?,
        }
    }
    while process.jobs().await? > 0 {
        if Instant::now() >= deadline {
            return terminate(process, reader).await;
        }
        sleep(JOB_POLL).await;
    }
    reader.drain().await?;
    Ok(Leftovers::default())
}

/// Terminates all processes while reading output, so that a full pipe blocks none of them.
async fn terminate(process: &mut dyn Process, reader: &mut Reader) -> Result<Leftovers, EnvError> {
    let ended = {
        let mut ending = pin!(process.terminate(TERMINATE_GRACE));
        loop {
            tokio::select! {
                ended = &mut ending => break ended,
                chunk = reader.next(), if reader.is_open() => reader.keep(chunk?).await?,
            }
        }
    };
    reader.drain().await?;
    match ended {
        Ok(jobs) => Ok(Leftovers { jobs, stuck: None }),
        // The output collected so far is worth more than the error alone.
        Err(EnvError::Stuck { id }) => Ok(Leftovers { jobs: 0, stuck: Some(id) }),
        Err(error) => Err(error),
    }
}

/// Writes the input. A command need not read all of it, so a closed pipe is not an error.
async fn feed(input: Option<(Vec<u8>, Box<dyn AsyncWrite + Send + Unpin>)>) {
    if let Some((bytes, mut pipe)) = input
        && let Err(error) = pipe.write_all(&bytes).await
    {
        tracing::debug!(%error, "the command did not read all of its input");
    }
}

/// Output stream of a process, with the recorder and the sink that receive it.
struct Reader {
    /// `None` once both streams have ended.
    output: Option<Box<dyn ProcessOutput>>,
    recorder: Recorder,
    sink: Option<OutputSink>,
}

impl Reader {
    fn is_open(&self) -> bool {
        self.output.is_some()
    }

    /// Reads the next chunk. Cancel safe, as [`ProcessOutput::next_chunk`] is.
    fn next(&mut self) -> Pin<Box<dyn Future<Output = Result<Option<OutputChunk>, EnvError>> + Send + '_>> {
        match &mut self.output {
            Some(output) => output.next_chunk(),
            None => Box::pin(async { Ok(None) }),
        }
    }

    /// Forwards a chunk to the sink and records it; `None` marks the end of the output.
    async fn keep(&mut self, chunk: Option<OutputChunk>) -> Result<(), EnvError> {
        let Some(chunk) = chunk else {
            self.output = None;
            return Ok(());
        };
        if let Some(sink) = &self.sink {
            sink(chunk.clone());
        }
        self.recorder.record(chunk).await
    }

    /// Reads the remaining output until the pipes are idle.
    async fn drain(&mut self) -> Result<(), EnvError> {
        let limit = Instant::now() + DRAIN_LIMIT;
        while self.is_open() && Instant::now() < limit {
            match timeout(DRAIN_IDLE, self.next()).await {
                Ok(chunk) => self.keep(chunk?).await?,
                Err(_elapsed) => self.output = None,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;

    use super::*;
    use crate::{output::OutputStream, process::Signal};

    /// A process that the kernel does not release, or one that has left such a job.
    #[derive(Debug)]
    struct StuckProcess {
        status: Option<ExitStatus>,
        output: Vec<OutputChunk>,
    }

    struct ScriptedOutput(Vec<OutputChunk>);

    #[async_trait]
    impl Process for StuckProcess {
        fn id(&self) -> Option<u32> {
            Some(7)
        }

        fn take_stdin(&mut self) -> Option<Box<dyn AsyncWrite + Send + Unpin>> {
            None
        }

        fn take_output(&mut self) -> Option<Box<dyn ProcessOutput>> {
            Some(Box::new(ScriptedOutput(std::mem::take(&mut self.output))))
        }

        async fn wait(&mut self) -> Result<ExitStatus, EnvError> {
            match self.status {
                Some(status) => Ok(status),
                None => std::future::pending().await,
            }
        }

        async fn signal(&mut self, _: Signal) -> Result<(), EnvError> {
            Ok(())
        }

        async fn jobs(&mut self) -> Result<usize, EnvError> {
            Ok(1)
        }

        async fn terminate(&mut self, _: Duration) -> Result<usize, EnvError> {
            Err(EnvError::Stuck { id: 7 })
        }
    }

    #[async_trait]
    impl ProcessOutput for ScriptedOutput {
        async fn next_chunk(&mut self) -> Result<Option<OutputChunk>, EnvError> {
            match self.0.pop() {
                Some(chunk) => Ok(Some(chunk)),
                None => std::future::pending().await,
            }
        }
    }

    /// A process without output that exits at the given time.
    #[derive(Debug)]
    struct SilentProcess(Instant);

    #[async_trait]
    impl Process for SilentProcess {
        fn id(&self) -> Option<u32> {
            Some(7)
        }

        fn take_stdin(&mut self) -> Option<Box<dyn AsyncWrite + Send + Unpin>> {
            None
        }

        fn take_output(&mut self) -> Option<Box<dyn ProcessOutput>> {
            Some(Box::new(ScriptedOutput(Vec::new())))
        }

        async fn wait(&mut self) -> Result<ExitStatus, EnvError> {
            sleep_until(self.0).await;
            Ok(ExitStatus::Exited(0))
        }

        async fn signal(&mut self, signal: Signal) -> Result<(), EnvError> {
            panic!("{signal:?}")
        }

        async fn jobs(&mut self) -> Result<usize, EnvError> {
            Ok(0)
        }

        async fn terminate(&mut self, _: Duration) -> Result<usize, EnvError> {
            panic!("no process is left to terminate")
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_command_may_be_silent_for_hours() {
        let hours = Duration::from_secs(3 * 3_600);
        let request = ExecRequest::new("quiet").with_timeout(hours + Duration::from_secs(1));
        let process = Box::new(SilentProcess(Instant::now() + hours));
        let result = run(process, request, OutputLimits::default(), Instant::now()).await.unwrap();
        assert!(result.success());
        assert!(result.duration >= hours);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stuck_process_loses_no_output() {
        for (status, exit_code, timed_out) in [(None, 137, true), (Some(ExitStatus::Exited(0)), 0, false)] {
            let output = vec![OutputChunk::new(OutputStream::Stdout, "so far")];
            let request = ExecRequest::new("held").with_timeout(Duration::from_secs(1));
            let running = run(
                Box::new(StuckProcess { status, output }),
                request,
                OutputLimits::default(),
                Instant::now(),
            );
            let result = running.await.unwrap();
            assert_eq!(result.stdout.to_text_lossy().unwrap(), "so far");
            assert_eq!((result.exit_code, result.timed_out), (exit_code, timed_out));
            assert_eq!(result.stuck, Some(7));
            assert!(!result.success());
        }
    }
}
