//! One background command with its process and its output.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pintle_env::{EnvError, OutputChunk, OutputSink, OutputStream, Process, ProcessOutput, TERMINATE_GRACE};
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::{BackgroundOutput, BackgroundState, BackgroundStatus};
use crate::error::ToolError;

/// Maximum size of unread output, in bytes.
const MAX_UNREAD: usize = 1 << 20;

/// The time to read the remaining output of an ended command.
const DRAIN_LIMIT: Duration = Duration::from_millis(250);

/// The time that a command may take to read its input.
const WRITE_LIMIT: Duration = Duration::from_secs(5);

type Input = Box<dyn AsyncWrite + Send + Unpin>;

pub(super) struct BackgroundCommand {
    id: u64,
    command: String,
    started: Instant,
    stop: CancellationToken,
    input: tokio::sync::Mutex<Option<Input>>,
    log: Mutex<Log>,
    /// `true` once the command has ended.
    ended: watch::Sender<bool>,
}

struct Log {
    unread: VecDeque<u8>,
    dropped: u64,
    state: BackgroundState,
    /// The run time, once the command has ended.
    ran: Option<Duration>,
    /// The sink to which the output is streamed, with the number of its follower.
    sink: Option<(u64, OutputSink)>,
    /// The number of followers so far.
    followers: u64,
}

impl Log {
    /// Removes the sink, unless a later follower has replaced it.
    fn remove_sink(&mut self, number: u64) {
        self.sink.take_if(|(current, _)| *current == number);
    }
}

/// Streams output to a sink until the follower is dropped.
pub(super) struct Follower<'a> {
    entry: &'a BackgroundCommand,
    number: u64,
}

impl Drop for Follower<'_> {
    fn drop(&mut self) {
        self.entry.lock().remove_sink(self.number);
    }
}

impl BackgroundCommand {
    /// Returns the command, and the future that drives its process. Dropping the future terminates the process.
    pub(super) fn new(
        id: u64,
        command: &str,
        mut process: Box<dyn Process>,
    ) -> (Arc<Self>, impl Future<Output = ()> + Send + use<>) {
        let log = Log {
            unread: VecDeque::new(),
            dropped: 0,
            state: BackgroundState::Running,
            ran: None,
            sink: None,
            followers: 0,
        };
        let entry = Arc::new(Self {
            id,
            command: command.to_owned(),
            started: Instant::now(),
            stop: CancellationToken::new(),
            input: tokio::sync::Mutex::new(process.take_stdin()),
            log: Mutex::new(log),
            ended: watch::Sender::new(false),
        });
        let running = drive(Arc::clone(&entry), process);
        (entry, running)
    }

    pub(super) fn is_running(&self) -> bool {
        self.lock().state == BackgroundState::Running
    }

    pub(super) fn status(&self) -> BackgroundStatus {
        self.status_in(&self.lock())
    }

    /// Streams unread and new output to `sink`, until [`take_output`](Self::take_output).
    pub(super) fn follow(&self, sink: OutputSink) -> Follower<'_> {
        let mut log = self.lock();
        let unread: Vec<u8> = log.unread.iter().copied().collect();
        // Called under the lock, as in `keep`, so that the chunks stay in order.
        if !unread.is_empty() {
            sink(OutputChunk::new(OutputStream::Stdout, unread));
        }
        log.followers += 1;
        let number = log.followers;
        log.sink = Some((number, sink));
        drop(log);
        Follower { entry: self, number }
    }

    /// Takes the unread output, and ends the stream to `follower`. While the command runs, an incomplete character
    /// stays unread.
    pub(super) fn take_output(&self, follower: Option<&Follower<'_>>) -> BackgroundOutput {
        let mut log = self.lock();
        if let Some(follower) = follower {
            log.remove_sink(follower.number);
        }
        // Also releases the buffer, which may have grown to a megabyte.
        let mut bytes = Vec::from(std::mem::take(&mut log.unread));
        if log.state == BackgroundState::Running {
            let rest = bytes.split_off(bytes.len() - incomplete_len(&bytes));
            log.unread.extend(rest);
        }
        let dropped = std::mem::take(&mut log.dropped);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        BackgroundOutput { status: self.status_in(&log), text, dropped }
    }

    pub(super) fn stop(&self) {
        self.stop.cancel();
    }

    pub(super) async fn ended(&self) {
        // Cannot fail: the sender lives as long as the entry.
        let _ = self.ended.subscribe().wait_for(|ended| *ended).await;
    }

    pub(super) async fn ended_within(&self, wait: Duration) {
        // The caller does not need to know which came first.
        let _ = timeout(wait, self.ended()).await;
    }

    pub(super) async fn write(&self, bytes: &[u8], close: bool) -> Result<(), ToolError> {
        let mut input = self.input.lock().await;
        let failed = |reason: &str| {
            let message = format!("cannot write to background command {}: {reason}", self.id);
            ToolError::failed(message)
        };
        let state = self.lock().state.clone();
        if state != BackgroundState::Running {
            return Err(failed(&format!("it {state}")));
        }
        let Some(pipe) = input.as_mut() else { return Err(failed("its input is closed")) };
        let mut written = 0;
        let result = timeout(WRITE_LIMIT, write_all(pipe, bytes, &mut written)).await;
        match result {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return Err(failed("it does not read its input any more").with_source(error)),
            Err(_elapsed) => {
                let len = bytes.len();
                return Err(failed(&format!("it took {written} of {len} bytes and does not read the rest")));
            }
        }
        if close {
            *input = None;
        }
        Ok(())
    }

    fn status_in(&self, log: &Log) -> BackgroundStatus {
        BackgroundStatus {
            id: self.id,
            command: self.command.clone(),
            state: log.state.clone(),
            age: log.ran.unwrap_or_else(|| self.started.elapsed()),
            unread: log.unread.len() as u64,
        }
    }

    fn keep(&self, chunk: OutputChunk) {
        let mut log = self.lock();
        log.unread.extend(&chunk.bytes);
        let excess = log.unread.len().saturating_sub(MAX_UNREAD);
        log.unread.drain(..excess);
        log.dropped += excess as u64;
        if let Some((_, sink)) = &log.sink {
            sink(chunk);
        }
    }

    fn end(&self, state: BackgroundState) {
        {
            let mut log = self.lock();
            log.state = state;
            log.ran = Some(self.started.elapsed());
        }
        // A writer that holds the lock gets an error from the closed pipe.
        if let Ok(mut input) = self.input.try_lock() {
            *input = None;
        }
        self.ended.send_replace(true);
    }

    fn lock(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads the output until the process exits or is stopped, then terminates the remaining processes.
async fn drive(entry: Arc<BackgroundCommand>, mut process: Box<dyn Process>) {
    let mut output = process.take_output();
    let exited = loop {
        tokio::select! {
            () = entry.stop.cancelled() => break None,
            status = process.wait() => break Some(status),
            () = keep_next(&entry, &mut output), if output.is_some() => {}
        }
    };
    // Child processes may hold the output open; they are terminated with the command.
    let drain_limit = if exited.is_some() { DRAIN_LIMIT } else { Duration::ZERO };
    let _ = timeout(drain_limit, keep_all(&entry, &mut output)).await;
    let ended = {
        let mut ending = process.terminate(TERMINATE_GRACE);
        loop {
            tokio::select! {
                ended = &mut ending => break ended,
                () = keep_next(&entry, &mut output), if output.is_some() => {}
            }
        }
    };
    let _ = timeout(DRAIN_LIMIT, keep_all(&entry, &mut output)).await;
    entry.end(match (exited, ended) {
        (Some(Ok(status)), Ok(_)) => BackgroundState::Exited(status.code()),
        (None, Ok(_)) => BackgroundState::Stopped,
        (Some(Err(error)), _) | (_, Err(error)) => BackgroundState::Lost(reason(&error)),
    });
}

async fn keep_all(entry: &BackgroundCommand, output: &mut Option<Box<dyn ProcessOutput>>) {
    while output.is_some() {
        keep_next(entry, output).await;
    }
}

/// Keeps the next chunk, and sets `output` to `None` at the end. Cancel safe, like the trait's method.
async fn keep_next(entry: &BackgroundCommand, output: &mut Option<Box<dyn ProcessOutput>>) {
    let Some(open) = output else { return };
    match open.next_chunk().await {
        Ok(Some(chunk)) => entry.keep(chunk),
        Ok(None) => *output = None,
        Err(error) => {
            tracing::debug!(%error, "cannot read the rest of a background command's output");
            *output = None;
        }
    }
}

async fn write_all(pipe: &mut Input, bytes: &[u8], written: &mut usize) -> std::io::Result<()> {
    while let Some(rest) = bytes.get(*written..).filter(|rest| !rest.is_empty()) {
        match pipe.write(rest).await? {
            0 => return Err(std::io::ErrorKind::WriteZero.into()),
            more => *written += more,
        }
    }
    pipe.flush().await
}

/// Counts the bytes at the end that may be an incomplete character.
fn incomplete_len(bytes: &[u8]) -> usize {
    let tail = bytes.get(bytes.len().saturating_sub(3)..).unwrap_or_default();
    let start = tail.iter().rposition(|byte| *byte >= 0xC0);
    let Some(character) = start.and_then(|start| tail.get(start..)) else { return 0 };
    match std::str::from_utf8(character) {
        Err(error) if error.error_len().is_none() => character.len(),
        Ok(_) | Err(_) => 0,
    }
}

fn reason(error: &EnvError) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::incomplete_len;

    #[test]
    fn an_incomplete_character_is_told_from_invalid_bytes() {
        let cases: [(&[u8], usize); 8] = [
            (b"", 0),
            (b"abc", 0),
            ("é".as_bytes(), 0),
            (b"a\xC3", 1),
            (b"a\xE2\x82", 2),
            (b"\xF0\x9F\x98", 3),
            (b"a\xFF", 0),
            (b"a\x82\x82", 0),
        ];
        for (bytes, expected) in cases {
            assert_eq!(incomplete_len(bytes), expected, "{bytes:?}");
        }
    }
}
