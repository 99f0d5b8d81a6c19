//! The agent: serves connections.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, BufReader};

use crate::client::Client;
use crate::connection::ClientConnection;
use crate::error::ServeError;
use crate::host::AgentHost;
use crate::line_reader::LineReader;
use crate::outbox::{Outbox, write};

/// Default maximum length of a client's line, in bytes. A prompt with many images has about ten million.
const MAX_LINE: usize = 64 << 20;

/// Time that a client has to read the remaining messages after it closed its end.
const FLUSH_TIME: Duration = Duration::from_secs(5);

/// Agent of the Agent Client Protocol, version 1.
///
/// It serves any number of connections. An invalid message gets an error as response and ends neither the connection nor a
/// session.
#[derive(Clone, Debug)]
pub struct AcpAgent {
    host: Arc<dyn AgentHost>,
    max_line: usize,
}

impl AcpAgent {
    /// Creates an agent with the sessions of this host.
    #[must_use]
    pub fn new(host: impl AgentHost + 'static) -> Self {
        Self { host: Arc::new(host), max_line: MAX_LINE }
    }

    /// Sets the maximum length of a client's line, in bytes. The default is 64 MiB. A longer line is dropped and answered
    /// with an error.
    #[must_use]
    pub fn with_max_line(mut self, bytes: usize) -> Self {
        self.max_line = bytes;
        self
    }

    /// Serves a client until it closes `reader`. Then cancels turns, closes every session of the connection through its
    /// [controls](crate::SessionControls::close), and writes the remaining messages.
    ///
    /// Dropping the future drops the sessions and ends all work that they started.
    ///
    /// # Errors
    ///
    /// [`ServeError`] if reading or writing fails. The sessions are closed even then.
    pub async fn serve(
        &self,
        reader: impl AsyncRead + Unpin,
        writer: impl AsyncWrite + Unpin,
    ) -> Result<(), ServeError> {
        let (outbox, outgoing) = Outbox::new();
        let client = Client::new(outbox.clone());
        let mut connection = ClientConnection::new(Arc::clone(&self.host), client.clone());
        let mut lines = LineReader::new(BufReader::new(reader), self.max_line);
        let mut writing = std::pin::pin!(write(outgoing, writer));
        let mut written = None;
        let read = tokio::select! {
            read = connection.read(&mut lines) => read.map_err(ServeError::Read),
            result = &mut writing => {
                written = Some(result);
                Ok(())
            }
        };
        client.disconnect();
        let flushing = async {
            if written.is_none() {
                written = Some(writing.await);
            }
        };
        let closing = async {
            let in_time = tokio::time::timeout(FLUSH_TIME, connection.close()).await;
            if in_time.is_err() {
                // The client does not read. Sessions no longer wait for it.
                outbox.give_up();
                connection.close().await;
            }
            outbox.finish();
        };
        tokio::select! {
            ((), ()) = async { tokio::join!(closing, flushing) } => {}
        }
        read.and(written.unwrap_or(Ok(())).map_err(ServeError::Write))
    }
}
