//! Queue of messages to the client, of bounded size.

use std::io;
use std::sync::Arc;

use serde_json::Value;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

/// Maximum bytes in the queue. Senders wait for room.
const CAPACITY: u32 = 8 << 20;

/// Overhead of a message in addition to its bytes.
const OVERHEAD: usize = 256;

/// The client no longer reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the client is gone")]
pub(crate) struct Disconnected;

/// Sending end. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Outbox {
    // Bounded by `room`, which counts bytes.
    queue: mpsc::UnboundedSender<QueuedMessage>,
    room: Arc<Semaphore>,
    finished: CancellationToken,
}

/// Receiving end, for [`write`].
#[derive(Debug)]
pub(crate) struct OutgoingMessages {
    queue: mpsc::UnboundedReceiver<QueuedMessage>,
    room: Arc<Semaphore>,
    finished: CancellationToken,
}

#[derive(Debug)]
struct QueuedMessage {
    line: Vec<u8>,
    /// Releases the room once the line is written.
    _room: Option<OwnedSemaphorePermit>,
}

impl Outbox {
    pub(crate) fn new() -> (Self, OutgoingMessages) {
        let (sender, receiver) = mpsc::unbounded_channel();
        let room = Arc::new(Semaphore::new(CAPACITY as usize));
        let finished = CancellationToken::new();
        let outgoing =
            OutgoingMessages { queue: receiver, room: Arc::clone(&room), finished: finished.clone() };
        (Self { queue: sender, room, finished }, outgoing)
    }

    /// Makes [`write`] return after it has written the queued messages.
    pub(crate) fn finish(&self) {
        self.finished.cancel();
    }

    /// Gives up the client. Senders that wait for room get an error.
    pub(crate) fn give_up(&self) {
        self.room.close();
    }

    /// Sends a message once there is room for it. Messages of one task keep their order.
    pub(crate) async fn send(&self, message: &Value) -> Result<(), Disconnected> {
        let line = encode(message);
        let size = u32::try_from(line.len() + OVERHEAD).unwrap_or(CAPACITY).min(CAPACITY);
        let room = Arc::clone(&self.room).acquire_many_owned(size).await.map_err(|_closed| Disconnected)?;
        self.queue.send(QueuedMessage { line, _room: Some(room) }).map_err(|_closed| Disconnected)
    }

    /// Sends a short message without waiting, for destructors. Their number is bounded by the pending requests and
    /// terminals.
    pub(crate) fn send_now(&self, message: &Value) {
        // A client that is gone has nothing left to cancel or release.
        let _ = self.queue.send(QueuedMessage { line: encode(message), _room: None });
    }
}

impl OutgoingMessages {
    /// Returns the next message; `None` after the last one.
    async fn next(&mut self) -> Option<QueuedMessage> {
        tokio::select! {
            biased;
            queued = self.queue.recv() => queued,
            () = self.finished.cancelled() => None,
        }
    }
}

fn encode(message: &Value) -> Vec<u8> {
    let mut line = message.to_string().into_bytes();
    line.push(b'\n');
    line
}

/// Writes the messages until all senders are dropped or one calls `finish`.
///
/// # Errors
///
/// The first error of `writer`. Later messages of senders are refused.
pub(crate) async fn write(
    mut outgoing: OutgoingMessages,
    mut writer: impl AsyncWrite + Unpin,
) -> io::Result<()> {
    let result = async {
        while let Some(queued) = outgoing.next().await {
            writer.write_all(&queued.line).await?;
            if outgoing.queue.is_empty() {
                writer.flush().await?;
            }
        }
        writer.flush().await
    };
    let result = result.await;
    outgoing.room.close();
    result
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_read_makes_senders_wait() {
        let (outbox, _outgoing) = Outbox::new();
        let message = json!("x".repeat(1 << 20));
        let mut sent = 0;
        while tokio::time::timeout(Duration::from_secs(1), outbox.send(&message)).await.is_ok() {
            sent += 1;
        }
        assert_eq!(sent, 7, "the overhead leaves no room for the eighth");
    }

    #[tokio::test]
    async fn senders_learn_that_the_client_is_gone() {
        let (outbox, outgoing) = Outbox::new();
        let (near, far) = tokio::io::duplex(16);
        drop(far);
        outbox.send(&json!(1)).await.unwrap();
        assert!(write(outgoing, near).await.is_err());
        assert_eq!(outbox.send(&json!(2)).await, Err(Disconnected));
    }
}
