//! What a running line writes.

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
    records::{Announced, Mark, Piece, Preamble, Scanner},
};
use crate::{
    error::EnvError,
    output::{OutputChunk, OutputStream},
    process::ProcessOutput,
};

/// The most bytes of one piece of output: what a pipe holds.
const CHUNK: usize = 64 << 10;

/// How much of the standard error is read ahead by who waits for the exit and does not read.
const AHEAD: usize = 256 << 10;

/// The standard error of a line, with the far side's records in it. Who reads it and who waits for a record share it.
#[derive(Debug)]
pub(super) struct ErrorStream {
    reading: AsyncMutex<Reading>,
    records: Mutex<VecDeque<String>>,
    /// A record has come.
    recorded: Notify,
    tail: Mutex<Tail>,
    /// Something read ahead was taken.
    taken: Notify,
}

#[derive(Debug)]
struct Reading {
    /// `None` at the end.
    pipe: Option<ChildStderr>,
    scanner: Scanner,
    /// Text that nobody has taken yet.
    ahead: VecDeque<Vec<u8>>,
    buffer: Vec<u8>,
    /// There was a record; before it the client and the login shell speak, after it the command.
    is_announced: bool,
}

impl ErrorStream {
    pub(super) fn new(pipe: ChildStderr, mark: &Mark) -> Self {
        let reading = Reading {
            pipe: Some(pipe),
            scanner: Scanner::new(mark),
            ahead: VecDeque::new(),
            buffer: Vec::new(),
            is_announced: false,
        };
        Self {
            reading: AsyncMutex::new(reading),
            records: Mutex::default(),
            recorded: Notify::new(),
            tail: Mutex::default(),
            taken: Notify::new(),
        }
    }

    /// The next record, `None` if there will be none. Text before the first one is not
    /// the command's; later text is kept for who reads. Cancel safe.
    pub(super) async fn record(&self) -> Option<String> {
        loop {
            if let Some(record) = self.take_record() {
                return Some(record);
            }
            tokio::select! {
                reading = self.reading.lock() => if !self.read_ahead(reading).await {
                    return self.take_record();
                },
                // Who reads keeps the stream for himself until there is text.
                () = self.recorded.notified() => {}
            }
        }
    }

    /// Reads once, unless enough was read ahead; whether there can be more. Cancel safe.
    async fn read_ahead(&self, mut reading: MutexGuard<'_, Reading>) -> bool {
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

    /// The next text, `None` at the end. Cancel safe.
    async fn text(&self) -> Option<Vec<u8>> {
        loop {
            // Given up after each read: who waits for a record that this one has read takes its turn.
            let mut reading = self.reading.lock().await;
            if let Some(text) = reading.ahead.pop_front() {
                self.taken.notify_one();
                return Some(text);
            }
            reading.pipe.as_ref()?;
            self.advance(&mut reading).await;
        }
    }

    /// The last that was said.
    pub(super) fn tail(&self) -> String {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner).text()
    }

    /// Reads once. Cancel safe, as one read is.
    async fn advance(&self, reading: &mut Reading) {
        let Reading { pipe, scanner, ahead, buffer, is_announced } = reading;
        let bytes = match pipe {
            Some(pipe) => read(pipe, buffer).await,
            None => None,
        };
        let mut take = |piece| match piece {
            Piece::Text(text) => {
                self.tail.lock().unwrap_or_else(PoisonError::into_inner).push(&text);
                if *is_announced {
                    ahead.push_back(text);
                }
            }
            Piece::Record(record) => {
                *is_announced = true;
                self.records.lock().unwrap_or_else(PoisonError::into_inner).push_back(record);
                self.recorded.notify_one();
            }
        };
        if let Some(bytes) = bytes {
            scanner.feed(bytes, take);
        } else {
            let rest = scanner.finish();
            if !rest.is_empty() {
                take(Piece::Text(rest));
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

/// The standard output of a line, held by who reads it and by who lets its command say goodbye.
pub(super) type SharedStdout = Arc<AsyncMutex<ChildStdout>>;

/// The output of a remote process. `None` is a stream at its end.
pub(super) struct RemoteOutput {
    stdout: Option<SharedStdout>,
    preamble: Preamble,
    /// What came right behind the preamble.
    ahead: Vec<u8>,
    stderr: Option<Arc<ErrorStream>>,
    channel: Arc<Channel>,
    buffer: Vec<u8>,
}

impl RemoteOutput {
    pub(super) fn new(
        stdout: SharedStdout,
        stderr: Arc<ErrorStream>,
        mark: &Mark,
        channel: Arc<Channel>,
    ) -> Self {
        let (preamble, stderr) = (Preamble::new(mark), Some(stderr));
        Self { stdout: Some(stdout), preamble, ahead: Vec::new(), stderr, channel, buffer: Vec::new() }
    }

    /// The first record on the standard output; pending for ever if there is none. Cancel safe.
    pub(super) async fn announcement(&mut self) -> String {
        while !self.preamble.is_over()
            && let Some(bytes) = read_open(self.stdout.as_deref(), &mut self.buffer).await
        {
            if let Some(Announced { record, behind }) = self.preamble.feed(bytes) {
                self.ahead = behind;
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
                        self.ahead = self.preamble.feed(bytes).map(|announced| announced.behind).unwrap_or_default();
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

/// One read; `None` at the end. Cancel safe.
async fn read<'a>(pipe: &mut (impl AsyncRead + Unpin), buffer: &'a mut Vec<u8>) -> Option<&'a [u8]> {
    buffer.resize(CHUNK, 0);
    let read = match pipe.read(buffer).await {
        Ok(read) => read,
        Err(error) => {
            tracing::warn!(%error, "the output of a client ends early");
            0
        }
    };
    buffer.get(..read).filter(|bytes| !bytes.is_empty())
}
