//! One connection that follows its script.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::yield_now;
use tokio::time::sleep;

use super::record::Recorder;
use super::script::{FaultScript, FaultStep};
use crate::http::Reader;

/// The largest request body that is read whole.
const LARGEST_BODY: usize = 64 * 1024 * 1024;
/// Bytes written or thrown away at a time.
const PIECE: usize = 16 * 1024;

/// Follows the script as far as the client lets it.
pub(super) async fn serve(stream: TcpStream, script: FaultScript, recorder: Recorder) {
    // Each write is to leave as it is; a socket that cannot be told so works too.
    let _ = stream.set_nodelay(true);
    let mut connection = Connection { stream, reader: Reader::new(LARGEST_BODY), recorder };
    for step in &script.steps {
        // A client that went away ends the script; its record says how far it came.
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
                    rest(*pause).await;
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
            rest(pause).await;
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
        for piece in bytes.chunks(PIECE) {
            self.stream.write_all(piece).await?;
            let length = u64::try_from(piece.len()).unwrap_or(u64::MAX);
            self.recorder.update(|record| record.written = record.written.saturating_add(length));
        }
        Ok(())
    }

    /// Waits for the client's end; that it breaks the connection off is an end too.
    async fn await_close(&mut self) -> io::Result<()> {
        let mut scratch = vec![0; PIECE];
        while matches!(self.stream.read(&mut scratch).await, Ok(1..)) {}
        Ok(())
    }
}

/// A pause; where there is none, others get their turn all the same.
async fn rest(pause: Duration) {
    if pause.is_zero() {
        yield_now().await;
    } else {
        sleep(pause).await;
    }
}
