//! Running a command to its end on top of [`Process`]: the rules that all environments share.

use std::{
    future::Future,
    pin::{Pin, pin},
    time::Duration,
};

use tokio::{
    io::{AsyncWrite, AsyncWriteExt},
    time::{Instant, sleep, sleep_until, timeout},
};

use crate::{
    blocking::blocking,
    command::{ExecRequest, ExecResult, OutputSink},
    error::EnvError,
    output::{OutputCapture, OutputChunk, OutputLimits},
    process::{ExitStatus, Process, ProcessOutput, TERMINATE_GRACE},
};

/// How long jobs may run on, and hold the output open, after the command itself has returned.
const JOB_GRACE: Duration = Duration::from_millis(250);

/// How often the jobs are counted meanwhile.
const JOB_POLL: Duration = Duration::from_millis(25);

/// How long the output is waited for when every process that we know of is gone.
const DRAIN_IDLE: Duration = Duration::from_millis(100);

/// The most time for what is left in the pipes, in case a stranger holds them and keeps writing.
const DRAIN_LIMIT: Duration = Duration::from_secs(2);

/// Drives `process` to its end: input, output, time-out, and what it leaves running.
///
/// Dropping the future drops the process, which ends it.
pub(crate) async fn run(
    mut process: Box<dyn Process>,
    request: ExecRequest,
    limits: OutputLimits,
    started: Instant,
) -> Result<ExecResult, EnvError> {
    let mut reader = Reader {
        output: process.take_output(),
        capture: OutputCapture::new(limits),
        sink: request.on_output,
    };
    let input = request.stdin.zip(process.take_stdin());
    let deadline = request.timeout.saturating_sub(started.elapsed());
    let in_time = until_exit(process.as_mut(), &mut reader, input, deadline).await?;
    let (status, timed_out, ended_jobs) = match in_time {
        Some(status) => (status, false, settle(process.as_mut(), &mut reader).await?),
        None => {
            end(process.as_mut(), &mut reader).await?;
            (process.wait().await?, true, 0)
        }
    };
    let captured = reader.capture.finish();
    Ok(ExecResult::new(status.code())
        .with_outputs(captured.stdout, captured.stderr, captured.output)
        .with_timed_out(timed_out)
        .with_duration(started.elapsed())
        .with_ended_jobs(ended_jobs))
}

/// Reads until the process itself has exited; `None` at the time-out.
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

/// Reads the rest after the exit and ends the jobs that do not go by themselves.
async fn settle(process: &mut dyn Process, reader: &mut Reader) -> Result<usize, EnvError> {
    let deadline = Instant::now() + JOB_GRACE;
    while reader.is_open() {
        tokio::select! {
            () = sleep_until(deadline) => break,
            chunk = reader.next() => reader.keep(chunk?).await?,
        }
    }
    while process.jobs().await? > 0 {
        if Instant::now() >= deadline {
            return end(process, reader).await;
        }
        sleep(JOB_POLL).await;
    }
    reader.drain().await?;
    Ok(0)
}

/// Ends everything while the output is read on, so that nobody is held up saying goodbye.
async fn end(process: &mut dyn Process, reader: &mut Reader) -> Result<usize, EnvError> {
    let ended = {
        let mut ending = pin!(process.end(TERMINATE_GRACE));
        loop {
            tokio::select! {
                ended = &mut ending => break ended?,
                chunk = reader.next(), if reader.is_open() => reader.keep(chunk?).await?,
            }
        }
    };
    reader.drain().await?;
    Ok(ended)
}

/// Writes the input. A command need not read it all, so a closed pipe is no failure.
async fn feed(input: Option<(Vec<u8>, Box<dyn AsyncWrite + Send + Unpin>)>) {
    if let Some((bytes, mut pipe)) = input
        && let Err(error) = pipe.write_all(&bytes).await
    {
        tracing::debug!(%error, "the command did not read all of its input");
    }
}

/// The reading side: output, what is kept of it, and who else wants it.
struct Reader {
    /// `None` when both streams have ended.
    output: Option<Box<dyn ProcessOutput>>,
    capture: OutputCapture,
    sink: Option<OutputSink>,
}

impl Reader {
    fn is_open(&self) -> bool {
        self.output.is_some()
    }

    /// The next piece. Cancel safe, as the trait's method is.
    fn next(&mut self) -> Pin<Box<dyn Future<Output = Result<Option<OutputChunk>, EnvError>> + Send + '_>> {
        match &mut self.output {
            Some(output) => output.next_chunk(),
            None => Box::pin(async { Ok(None) }),
        }
    }

    /// Keeps a piece; `None` is the end of the output.
    async fn keep(&mut self, chunk: Option<OutputChunk>) -> Result<(), EnvError> {
        let Some(chunk) = chunk else {
            self.output = None;
            return Ok(());
        };
        let mut capture = std::mem::take(&mut self.capture);
        if capture.spools(chunk.bytes.len()) {
            let appended = blocking(move || {
                capture.push(&chunk);
                (capture, chunk)
            });
            let (capture, chunk) = appended.await?;
            self.capture = capture;
            self.pass_on(chunk);
        } else {
            capture.push(&chunk);
            self.capture = capture;
            self.pass_on(chunk);
        }
        Ok(())
    }

    /// Reads what is left in the pipes, for as long as something comes.
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

    fn pass_on(&self, chunk: OutputChunk) {
        if let Some(sink) = &self.sink {
            sink(chunk);
        }
    }
}
