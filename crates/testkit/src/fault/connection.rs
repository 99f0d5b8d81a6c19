//! One scripted connection.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::yield_now;
use tokio::time::sleep;

use super::record::Recorder;
use super::script::{FaultScript, FaultStep};
use crate::http::Reader;

/// Maximum size of a request body, in bytes.
const MAX_BODY: usize = 64 * 1024 * 1024;
/// Size of one write or discarding read, in bytes.
const CHUNK: usize = 16 * 1024;

/// Runs the script until its end or until the client disconnects.
pub(super) async fn serve(stream: TcpStream, script: FaultScript, recorder: Recorder) {
    // Each write is sent immediately. Failure is harmless.
    let _ = stream.set_nodelay(true);
    let mut connection = Connection { stream, reader: Reader::new(MAX_BODY), recorder };
    for step in &script.steps {
        // A disconnected client ends the script. The record shows the completed steps.
        if connection.perform(step).await.is_err() {
            return;
        }
        connection.recorder.update(|record| record.steps += 1);
    }
    connection.recorder.update(|record| record.completed = true);
}

struct Connection {
    stream: TcpStream,
    reader: Reader,
    recorder: Recorder,
}

impl Connection {
    async fn perform(&mut self, step: &FaultStep) -> io::Result<()> {
        match step {
            FaultStep::ReadRequest => self.read_request().await,
            FaultStep::Read { bytes, piece, pause } => self.read(*bytes, *piece, *pause).await,
            FaultStep::Write(bytes) => self.write(bytes).await,
            FaultStep::Repeat { bytes, times, pause } => {
                for _ in 0..*times {
                    self.write(bytes).await?;
                    pause_or_yield(*pause).await;
                }
                Ok(())
            }
            FaultStep::Sleep(silence) => {
                sleep(*silence).await;
                Ok(())
            }
            FaultStep::Wait(gate) => {
                gate.pass().await;
                Ok(())
            }
            FaultStep::AwaitClose => self.await_close().await,
            FaultStep::Reset => self.stream.set_zero_linger(),
        }
    }

    async fn read_request(&mut self) -> io::Result<()> {
        let request = self.reader.next(&mut self.stream).await;
        request.map(drop).map_err(io::Error::other)
    }

    async fn read(&mut self, bytes: usize, piece: usize, pause: Duration) -> io::Result<()> {
        let mut scratch = vec![0; piece.max(1)];
        let mut left = bytes;
        while left > 0 {
            pause_or_yield(pause).await;
            let most = left.min(scratch.len());
            let read = self.stream.read(scratch.get_mut(..most).unwrap_or_default()).await?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            left -= read;
        }
        Ok(())
    }

    async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        for piece in bytes.chunks(CHUNK) {
            self.stream.write_all(piece).await?;
            let length = u64::try_from(piece.len()).unwrap_or(u64::MAX);
            self.recorder.update(|record| record.written = record.written.saturating_add(length));
        }
        Ok(())
    }

    /// Waits until the client closes or resets the connection.
    async fn await_close(&mut self) -> io::Result<()> {
        let mut scratch = vec![0; CHUNK];
        while matches!(self.stream.read(&mut scratch).await, Ok(1..)) {}
        Ok(())
    }
}

/// Pauses, or yields to other tasks if the pause is zero.
async fn pause_or_yield(pause: Duration) {
    if pause.is_zero() {
        yield_now().await;
    } else {
        sleep(pause).await;
    }
}
