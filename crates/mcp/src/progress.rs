//! Progress of calls, for the client of our server.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use pintle_env::OutputSink;
use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::Peer;
use tokio::sync::watch;

use crate::process_log::shorten;

/// Maximum number of characters of a reported line.
const MAX_LINE: usize = 200;

/// Minimum time between two reports.
const PAUSE: Duration = Duration::from_millis(100);

/// Time after which a call without output is reported as running, since clients give up on silent calls.
const SILENCE: Duration = Duration::from_secs(10);

/// Progress of one call: the last line of its output.
pub(crate) struct ProgressReporter {
    token: ProgressToken,
    peer: Peer<RoleServer>,
    line: Arc<watch::Sender<String>>,
    lines: watch::Receiver<String>,
}

impl ProgressReporter {
    pub(crate) fn new(token: ProgressToken, peer: Peer<RoleServer>) -> Self {
        let (line, lines) = watch::channel(String::new());
        Self { token, peer, line: Arc::new(line), lines }
    }

    /// Returns the sink for the output of the call. It never waits: lines that arrive too fast are skipped.
    pub(crate) fn sink(&self) -> OutputSink {
        let line = Arc::clone(&self.line);
        Arc::new(move |chunk| {
            let text = String::from_utf8_lossy(&chunk.bytes);
            if let Some(last) = text.lines().rev().find(|line| !line.trim().is_empty()) {
                line.send_replace(shorten(last.trim(), MAX_LINE));
            }
        })
    }

    /// Reports until it is dropped.
    pub(crate) async fn report(&mut self) -> Infallible {
        for number in 1_u32.. {
            let message = match tokio::time::timeout(SILENCE, self.lines.changed()).await {
                Ok(_changed) => self.lines.borrow_and_update().clone(),
                Err(_silent) => "still running".to_owned(),
            };
            let params = ProgressNotificationParam::new(self.token.clone(), f64::from(number));
            // A disconnected client ends the call by other means.
            let _ = self.peer.notify_progress(params.with_message(message)).await;
            tokio::time::sleep(PAUSE).await;
        }
        std::future::pending().await
    }
}
