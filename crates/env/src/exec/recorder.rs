//! Records output of a command: in memory at once, on disk from another thread.

use std::{
    future::{Future, poll_fn},
    pin::Pin,
    task::Poll,
};

use crate::{
    blocking::blocking,
    error::EnvError,
    output::{CapturedOutput, OutputCapture, OutputChunk, OutputLimits},
};

/// Bytes written to disk per batch. Up to the same amount is buffered during the write.
const BATCH: usize = 1 << 20;

/// Overhead counted per chunk, so that many small chunks cannot bypass the limit.
const CHUNK_OVERHEAD: usize = 64;

/// Records output. One batch is written to disk while the next is buffered; when the buffer is full
/// too, the command has to wait.
pub(super) struct Recorder {
    state: RecorderState,
    /// Chunks received since the current write started.
    buffered: Vec<OutputChunk>,
    buffered_bytes: usize,
}

enum RecorderState {
    Idle(Box<OutputCapture>),
    Writing(Writing),
    /// A write did not return: the runtime is shutting down.
    Lost,
}

type Writing = Pin<Box<dyn Future<Output = Result<Box<OutputCapture>, EnvError>> + Send>>;

impl Recorder {
    pub(super) fn new(limits: OutputLimits) -> Self {
        let state = RecorderState::Idle(Box::new(OutputCapture::new(limits)));
        Self { state, buffered: Vec::new(), buffered_bytes: 0 }
    }

    /// Records a chunk. Waits only if the disk is a whole batch behind.
    pub(super) async fn record(&mut self, chunk: OutputChunk) -> Result<(), EnvError> {
        if let RecorderState::Idle(capture) = &mut self.state
            && self.buffered.is_empty()
            && !capture.spools(chunk.bytes.len())
        {
            capture.push(&chunk);
            return Ok(());
        }
        self.buffered_bytes += chunk.bytes.len() + CHUNK_OVERHEAD;
        self.buffered.push(chunk);
        if self.buffered_bytes < BATCH { Ok(()) } else { self.start_write().await }
    }

    /// Returns all recorded output.
    pub(super) async fn finish(mut self) -> Result<CapturedOutput, EnvError> {
        if !self.buffered.is_empty() {
            self.start_write().await?;
        }
        Ok(self.finish_write().await?.finish())
    }

    /// Starts writing the buffered chunks once the previous batch is on disk.
    async fn start_write(&mut self) -> Result<(), EnvError> {
        let mut capture = self.finish_write().await?;
        let batch = std::mem::take(&mut self.buffered);
        self.buffered_bytes = 0;
        let mut writing: Writing = Box::pin(blocking(move || {
            batch.iter().for_each(|chunk| capture.push(chunk));
            capture
        }));
        // The first poll starts the work.
        self.state = match poll_fn(|context| Poll::Ready(writing.as_mut().poll(context))).await {
            Poll::Ready(written) => RecorderState::Idle(written?),
            Poll::Pending => RecorderState::Writing(writing),
        };
        Ok(())
    }

    /// Waits for the current write and takes the capture out.
    async fn finish_write(&mut self) -> Result<Box<OutputCapture>, EnvError> {
        match std::mem::replace(&mut self.state, RecorderState::Lost) {
            RecorderState::Idle(capture) => Ok(capture),
            RecorderState::Writing(writing) => writing.await,
            RecorderState::Lost => Err(EnvError::EnvironmentLost {
                environment: "the asynchronous runtime".to_owned(),
                source: None,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::OutputStream;

    #[tokio::test]
    async fn chunks_written_in_the_background_stay_in_order() {
        let directory = tempfile::tempdir().unwrap();
        for (pieces, piece) in [(1, 10), (3, 400), (5_000, 100), (60, 70_000), (200_000, 1)] {
            let limits = OutputLimits::default().with_inline(1_000).with_spool_dir(directory.path());
            let mut recorder = Recorder::new(limits);
            let mut expected = Vec::new();
            for number in 0..pieces {
                // Small chunks between large ones must not overtake them.
                let len = if number % 3 == 1 { 1 } else { piece };
                let bytes = vec![u8::try_from(number % 251).unwrap(); len];
                expected.extend_from_slice(&bytes);
                recorder.record(OutputChunk::new(OutputStream::Stdout, bytes)).await.unwrap();
                assert!(recorder.buffered_bytes < BATCH + piece + CHUNK_OVERHEAD);
                assert!(recorder.buffered.len() <= BATCH / CHUNK_OVERHEAD);
            }
            let captured = recorder.finish().await.unwrap();
            assert_eq!(captured.output.is_spooled(), expected.len() > 1_000);
            assert!(captured.output.read_at(0, usize::MAX).unwrap() == expected, "{pieces} × {piece}");
        }
    }
}
