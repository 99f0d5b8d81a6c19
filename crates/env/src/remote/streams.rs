//! Output streams of a remote line.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    process::{ChildStderr, ChildStdout},
    sync::{Mutex as AsyncMutex, MutexGuard, Notify},
};

use super::{
    channel::Channel,
    client::Tail,
    records::{FirstRecord, Piece, PreambleScanner, RecordMarker, Scanner},
};
use crate::{
    error::EnvError,
    output::{OutputChunk, OutputStream},
    process::ProcessOutput,
};

/// Maximum size of a chunk of output: the capacity of a pipe.
const CHUNK: usize = 64 << 10;

/// Maximum amount of standard error read ahead while waiting for the exit.
const AHEAD: usize = 256 << 10;

/// Standard error of a line with embedded records, shared by the reader and by tasks waiting for a
/// record.
#[derive(Debug)]
pub(super) struct ErrorStream {
    reading: AsyncMutex<ReadState>,
    records: Mutex<VecDeque<String>>,
    /// Notified when a record arrives.
    recorded: Notify,
    tail: Mutex<Tail>,
    /// Notified when text that was read ahead is taken.
    taken: Notify,
}

#[derive(Debug)]
struct ReadState {
    /// `None` at the end.
    pipe: Option<ChildStderr>,
    scanner: Scanner,
    /// Text that was read ahead.
    ahead: VecDeque<Vec<u8>>,
    buffer: Vec<u8>,
    /// A record was seen: before it the client and the login shell write, after it the command.
    saw_record: bool,
}

impl ErrorStream {
    pub(super) fn new(pipe: ChildStderr, marker: &RecordMarker) -> Self {
        let reading = ReadState {
            pipe: Some(pipe),
            scanner: Scanner::new(marker),
            ahead: VecDeque::new(),
            buffer: Vec::new(),
            saw_record: false,
        };
        Self {
            reading: AsyncMutex::new(reading),
            records: Mutex::default(),
            recorded: Notify::new(),
            tail: Mutex::default(),
            taken: Notify::new(),
        }
    }

    /// Returns the next record, or `None` at the end. Discards text before the first record, which
    /// is not the command's; keeps later text for the reader. Cancel safe.
    pub(super) async fn record(&self) -> Option<String> {
        loop {
            if let Some(record) = self.take_record() {
                return Some(record);
            }
            tokio::select! {
                reading = self.reading.lock() => if !self.read_ahead(reading).await {
                    return self.take_record();
                },
                // The reader holds the stream until there is text.
                () = self.recorded.notified() => {}
            }
        }
    }

    /// Reads once, unless enough was read ahead; returns true if there can be more. Cancel safe.
    async fn read_ahead(&self, mut reading: MutexGuard<'_, ReadState>) -> bool {
        if self.has_record() {
            return true;
        }
        if reading.pipe.is_none() {
            return false;
        }
        if reading.ahead.iter().map(Vec::len).sum::<usize>() > AHEAD {
            drop(reading);
            self.taken.notified().await;
        } else {
            self.advance(&mut reading).await;
        }
        true
    }

    /// Returns the next text, or `None` at the end. Cancel safe.
    async fn text(&self) -> Option<Vec<u8>> {
        loop {
            // Unlocked after each read, so that a task waiting for a record gets its turn.
            let mut reading = self.reading.lock().await;
            if let Some(text) = reading.ahead.pop_front() {
                self.taken.notify_one();
                return Some(text);
            }
            reading.pipe.as_ref()?;
            self.advance(&mut reading).await;
        }
    }

    /// Returns the end of the stream so far.
    pub(super) fn tail(&self) -> String {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner).text()
    }

    /// Reads once. Cancel safe, as a single read is.
    async fn advance(&self, reading: &mut ReadState) {
        let ReadState { pipe, scanner, ahead, buffer, saw_record } = reading;
        let bytes = match pipe {
            Some(pipe) => read(pipe, buffer).await,
            None => None,
        };
        let mut emit = |piece| match piece {
            Piece::Text(text) => {
                self.tail.lock().unwrap_or_else(PoisonError::into_inner).push(&text);
                if *saw_record {
                    ahead.push_back(text);
                }
            }
            Piece::Record(record) => {
                *saw_record = true;
                self.records.lock().unwrap_or_else(PoisonError::into_inner).push_back(record);
                self.recorded.notify_one();
            }
        };
        if let Some(bytes) = bytes {
            scanner.feed(bytes, emit);
        } else {
            let rest = scanner.finish();
            if !rest.is_empty() {
                emit(Piece::Text(rest));
            }
            *pipe = None;
        }
    }

    fn take_record(&self) -> Option<String> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    fn has_record(&self) -> bool {
        !self.records.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }
}

/// Standard output of a line, shared by the reader and by the termination of its command.
pub(super) type SharedStdout = Arc<AsyncMutex<ChildStdout>>;

/// Output of a remote process. A stream is `None` at its end.
pub(super) struct RemoteOutput {
    stdout: Option<SharedStdout>,
    preamble: PreambleScanner,
    /// Output that followed the preamble in the same block.
    ahead: Vec<u8>,
    stderr: Option<Arc<ErrorStream>>,
    channel: Arc<Channel>,
    buffer: Vec<u8>,
}

impl RemoteOutput {
    pub(super) fn new(
        stdout: SharedStdout,
        stderr: Arc<ErrorStream>,
        marker: &RecordMarker,
        channel: Arc<Channel>,
    ) -> Self {
        let (preamble, stderr) = (PreambleScanner::new(marker), Some(stderr));
        Self { stdout: Some(stdout), preamble, ahead: Vec::new(), stderr, channel, buffer: Vec::new() }
    }

    /// Returns the first record on standard output; pending forever without one. Cancel safe.
    pub(super) async fn first_record(&mut self) -> String {
        while !self.preamble.is_over()
            && let Some(bytes) = read_open(self.stdout.as_deref(), &mut self.buffer).await
        {
            if let Some(FirstRecord { record, after }) = self.preamble.feed(bytes) {
                self.ahead = after;
                return record;
            }
        }
        std::future::pending().await
    }
}

#[async_trait]
impl ProcessOutput for RemoteOutput {
    async fn next_chunk(&mut self) -> Result<Option<OutputChunk>, EnvError> {
        loop {
            if !self.ahead.is_empty() {
                let ahead = std::mem::take(&mut self.ahead);
                return Ok(Some(OutputChunk::new(OutputStream::Stdout, ahead)));
            }
            let (has_stdout, has_stderr) = (self.stdout.is_some(), self.stderr.is_some());
            if !has_stdout && !has_stderr {
                return Ok(None);
            }
            tokio::select! {
                bytes = read_open(self.stdout.as_deref(), &mut self.buffer), if has_stdout => match bytes {
                    Some(bytes) if self.preamble.is_over() => {
                        return Ok(Some(OutputChunk::new(OutputStream::Stdout, bytes)));
                    }
                    Some(bytes) => {
                        self.ahead = self.preamble.feed(bytes).map(|announced| announced.after).unwrap_or_default();
                    }
                    None => self.stdout = None,
                },
                text = text_open(self.stderr.as_deref()), if has_stderr => match text {
                    Some(text) => return Ok(Some(OutputChunk::new(OutputStream::Stderr, text))),
                    None => self.stderr = None,
                },
                lost = self.channel.lost() => return Err(lost),
            }
        }
    }
}

async fn read_open<'a>(pipe: Option<&AsyncMutex<ChildStdout>>, buffer: &'a mut Vec<u8>) -> Option<&'a [u8]> {
    read(&mut *pipe?.lock().await, buffer).await
}

async fn text_open(stream: Option<&ErrorStream>) -> Option<Vec<u8>> {
    stream?.text().await
}

/// Reads once; `None` at the end. Cancel safe.
async fn read<'a>(pipe: &mut (impl AsyncRead + Unpin), buffer: &'a mut Vec<u8>) -> Option<&'a [u8]> {
    buffer.resize(CHUNK, 0);
    let read = match pipe.read(buffer).await {
        Ok(read) => read,
        Err(error) => {
            tracing::warn!(%error, "cannot read the output of a client");
            0
        }
    };
    buffer.get(..read).filter(|bytes| !bytes.is_empty())
}
