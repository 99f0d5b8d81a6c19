//! The reading ends of a process's output pipes.

use std::{
    fmt,
    future::Future,
    io::{self, Read},
    os::fd::OwnedFd,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};

use async_trait::async_trait;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    process::{ChildStderr, ChildStdout},
};

use crate::{
    error::EnvError,
    output::{OutputChunk, OutputStream},
    process::ProcessOutput,
};

/// Maximum size of a chunk of output: the capacity of a pipe.
const CHUNK: usize = 64 << 10;

/// Maximum number of bytes discarded per pipe and call.
const DISCARD_LIMIT: usize = 16 * CHUNK;

/// The output pipes, shared by the process and the reader of its output.
///
/// A dropped process is yet to be terminated, and one that writes to a pipe without a reader is
/// killed by `SIGPIPE`. The pipes therefore stay open, and are drained, until it is gone.
#[derive(Clone, Debug)]
pub(super) struct Pipes(Arc<Mutex<Shared>>);

#[derive(Debug)]
struct Shared {
    /// `None` once the reader no longer needs them.
    ends: Option<Ends>,
    has_reader: bool,
    /// The reader was taken; there is only one.
    is_taken: bool,
    /// The process was dropped.
    is_abandoned: bool,
}

#[derive(Debug)]
struct Ends {
    stdout: Pipe<ChildStdout>,
    stderr: Pipe<ChildStderr>,
    /// Polled first next time, so that neither stream starves the other.
    stderr_is_first: bool,
}

impl Pipes {
    pub(super) fn new(stdout: Option<ChildStdout>, stderr: Option<ChildStderr>) -> Self {
        let ends = Ends {
            stdout: Pipe::new(stdout, OutputStream::Stdout),
            stderr: Pipe::new(stderr, OutputStream::Stderr),
            stderr_is_first: false,
        };
        Self(Arc::new(Mutex::new(Shared {
            ends: Some(ends),
            has_reader: false,
            is_taken: false,
            is_abandoned: false,
        })))
    }

    /// Returns the output, once.
    pub(super) fn take_reader(&self) -> Option<LocalOutput> {
        let mut shared = self.lock();
        if std::mem::replace(&mut shared.is_taken, true) {
            return None;
        }
        shared.has_reader = true;
        Some(LocalOutput(self.clone()))
    }

    /// Keeps the pipes open for a process that is yet to be terminated, until the result is
    /// dropped.
    pub(super) fn abandon(&self) -> Discard {
        self.lock().is_abandoned = true;
        Discard { pipes: self.clone(), ends: Vec::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Output of a local process.
pub(super) struct LocalOutput(Pipes);

#[async_trait]
impl ProcessOutput for LocalOutput {
    async fn next_chunk(&mut self) -> Result<Option<OutputChunk>, EnvError> {
        let chunk = std::future::poll_fn(|context| match &mut self.0.lock().ends {
            Some(ends) => ends.poll_next(context),
            None => Poll::Ready(None),
        });
        Ok(chunk.await)
    }
}

impl Drop for LocalOutput {
    fn drop(&mut self) {
        let mut shared = self.0.lock();
        shared.has_reader = false;
        if !shared.is_abandoned {
            shared.ends = None;
        }
    }
}

/// Drains the pipes of a dropped process while it is terminated, once they have no reader.
#[derive(Debug)]
pub(super) struct Discard {
    pipes: Pipes,
    ends: Vec<std::fs::File>,
}

impl Discard {
    /// Discards available output without waiting for more.
    pub(super) fn discard(&mut self) {
        let mut shared = self.pipes.lock();
        if !shared.has_reader
            && let Some(ends) = shared.ends.take()
        {
            let stdout = ends.stdout.end.map(ChildStdout::into_owned_fd);
            let stderr = ends.stderr.end.map(ChildStderr::into_owned_fd);
            let open = [stdout, stderr].into_iter().flatten();
            self.ends.extend(open.filter_map(|end| end.and_then(set_nonblocking).ok()));
        }
        drop(shared);
        let mut buffer = vec![0; if self.ends.is_empty() { 0 } else { CHUNK }];
        self.ends.retain_mut(|end| discard_available(end, &mut buffer));
    }
}

/// Discards output; returns true if more may follow.
fn discard_available(end: &mut std::fs::File, buffer: &mut [u8]) -> bool {
    let mut discarded = 0;
    while discarded < DISCARD_LIMIT {
        match end.read(buffer) {
            Ok(0) => return false,
            Ok(read) => discarded += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
        }
    }
    true
}

fn set_nonblocking(end: OwnedFd) -> io::Result<std::fs::File> {
    let flags = OFlag::from_bits_retain(fcntl(&end, FcntlArg::F_GETFL)?);
    fcntl(&end, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK))?;
    Ok(end.into())
}

impl Ends {
    /// Polls for the next chunk of either stream; `None` once both have ended.
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<OutputChunk>> {
        self.stderr_is_first = !self.stderr_is_first;
        let Self { stdout, stderr, stderr_is_first } = self;
        let (first, second): (&mut dyn PollNext, &mut dyn PollNext) =
            if *stderr_is_first { (stderr, stdout) } else { (stdout, stderr) };
        match (first.poll_next(context), second) {
            (Poll::Ready(Some(chunk)), _) => Poll::Ready(Some(chunk)),
            (Poll::Ready(None), second) => second.poll_next(context),
            (Poll::Pending, second) => match second.poll_next(context) {
                Poll::Ready(Some(chunk)) => Poll::Ready(Some(chunk)),
                Poll::Ready(None) | Poll::Pending => Poll::Pending,
            },
        }
    }
}

trait PollNext {
    /// Polls for the next chunk; `None` at the end.
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<OutputChunk>>;
}

struct Pipe<R> {
    /// `None` at the end of the stream.
    end: Option<R>,
    stream: OutputStream,
    buffer: Vec<u8>,
}

impl<R> Pipe<R> {
    fn new(end: Option<R>, stream: OutputStream) -> Self {
        Self { end, stream, buffer: Vec::new() }
    }
}

impl<R: AsyncRead + Unpin> PollNext for Pipe<R> {
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<OutputChunk>> {
        let Some(end) = &mut self.end else {
            return Poll::Ready(None);
        };
        self.buffer.reserve(CHUNK);
        match pin!(end.read_buf(&mut self.buffer)).poll(context) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Ok(_)) => {}
            Poll::Ready(Err(error)) => tracing::warn!(%error, "cannot read the output of a process"),
        }
        if self.buffer.is_empty() {
            self.end = None;
            return Poll::Ready(None);
        }
        Poll::Ready(Some(OutputChunk { stream: self.stream, bytes: self.take() }))
    }
}

impl<R> Pipe<R> {
    /// Returns the bytes read. A mostly full buffer is moved out, since copying it would take as
    /// long as reading did.
    fn take(&mut self) -> Vec<u8> {
        if self.buffer.len() >= CHUNK / 2 {
            return std::mem::take(&mut self.buffer);
        }
        let bytes = self.buffer.as_slice().to_vec();
        self.buffer.clear();
        bytes
    }
}

impl<R> fmt::Debug for Pipe<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pipe")
            .field("stream", &self.stream)
            .field("is_open", &self.end.is_some())
            .finish_non_exhaustive()
    }
}
