//! Answers the requests of a server to its client, and handles its notifications.
#![expect(deprecated, reason = "servers of versions before 2026-07-28 ask for roots and log")]

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use pintle_env::{OutputChunk, OutputSink, OutputStream};
use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationCapability,
    FormElicitationCapability, Implementation, ListRootsResult, LoggingMessageNotificationParam,
    ProgressNotificationParam, ProgressToken, ProtocolVersion, Root, UrlElicitationCapability,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ClientHandler, ErrorData, RoleClient};
use tokio::sync::watch;

use crate::elicitation::{Elicitation, Elicitor};
use crate::process_log::shorten;
use crate::spec::ServerName;

/// Maximum number of characters of a progress message that are forwarded.
const MAX_MESSAGE: usize = 500;

/// The client's side of a connection.
#[derive(Clone)]
pub(crate) struct ConnectionHandler {
    server: ServerName,
    root: PathBuf,
    elicitor: Arc<dyn Elicitor>,
    /// Number of open questions to the user.
    pub(crate) questions: Arc<watch::Sender<usize>>,
    /// Number of times that the server reported changed tools.
    pub(crate) changes: Arc<watch::Sender<u64>>,
    /// Number of times that the server reported changed prompts.
    pub(crate) prompt_changes: Arc<watch::Sender<u64>>,
    progress: Arc<Mutex<HashMap<ProgressToken, OutputSink>>>,
}

impl ConnectionHandler {
    pub(crate) fn new(server: ServerName, root: PathBuf, elicitor: Arc<dyn Elicitor>) -> Self {
        Self {
            server,
            root,
            elicitor,
            questions: Arc::new(watch::Sender::new(0)),
            changes: Arc::new(watch::Sender::new(0)),
            prompt_changes: Arc::new(watch::Sender::new(0)),
            progress: Arc::default(),
        }
    }

    /// Forwards the progress of a request, until the result is dropped.
    pub(crate) fn watch_progress(&self, token: ProgressToken, sink: OutputSink) -> ProgressWatch {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner).insert(token.clone(), sink);
        ProgressWatch { token, progress: Arc::clone(&self.progress) }
    }
}

/// Entry of a request whose progress is forwarded.
pub(crate) struct ProgressWatch {
    token: ProgressToken,
    progress: Arc<Mutex<HashMap<ProgressToken, OutputSink>>>,
}

impl Drop for ProgressWatch {
    fn drop(&mut self) {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.token);
    }
}

/// Counts a question while it is open.
struct PendingQuestion<'a>(&'a watch::Sender<usize>);

impl<'a> PendingQuestion<'a> {
    fn begin(questions: &'a watch::Sender<usize>) -> Self {
        questions.send_modify(|number| *number += 1);
        Self(questions)
    }
}

impl Drop for PendingQuestion<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|number| *number = number.saturating_sub(1));
    }
}

impl ConnectionHandler {
    /// Answers a question of the server.
    pub(crate) async fn answer(&self, params: ElicitRequestParams) -> Result<ElicitResult, ErrorData> {
        let Some(question) = Elicitation::from_params(&self.server, params) else {
            return Err(ErrorData::invalid_params("expected an elicitation of mode form or url", None));
        };
        let _asking = PendingQuestion::begin(&self.questions);
        Ok(self.elicitor.elicit(question.clone()).await.into_result(&question))
    }

    /// Returns the working directory of the session.
    pub(crate) fn roots(&self) -> ListRootsResult {
        ListRootsResult::new(vec![Root::new(file_url(&self.root.to_string_lossy()))])
    }
}

impl ClientHandler for ConnectionHandler {
    fn get_info(&self) -> ClientConfig {
        let elicitation = ElicitationCapability::new()
            .with_form(FormElicitationCapability::default())
            .with_url(UrlElicitationCapability::default());
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(elicitation);
        capabilities.roots = Some(Default::default());
        let name = Implementation::new("pintle", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(capabilities, name).with_protocol_version(ProtocolVersion::V_2025_11_25)
    }

    async fn list_roots(&self, _context: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        Ok(self.roots())
    }

    async fn create_elicitation(
        &self,
        params: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        self.answer(params).await
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let sink = {
            let progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
            progress.get(&params.progress_token).cloned()
        };
        if let Some(sink) = sink {
            sink(OutputChunk::new(OutputStream::Stderr, progress_line(&params)));
        }
    }

    async fn on_logging_message(
        &self,
        params: LoggingMessageNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let level = params.level;
        // The text of the log is arbitrary, so the trace omits it.
        tracing::debug!(server = %self.server, ?level, "the server logs");
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.changes.send_modify(|number| *number += 1);
    }

    async fn on_prompt_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.prompt_changes.send_modify(|number| *number += 1);
    }
}

/// Returns a line about progress: `3/10 message`.
fn progress_line(params: &ProgressNotificationParam) -> String {
    let total = params.total.map(|total| format!("/{total}")).unwrap_or_default();
    let message = params.message.as_deref().map(|text| format!(" {}", shorten(text.trim(), MAX_MESSAGE)));
    format!("{}{total}{}\n", params.progress, message.unwrap_or_default())
}

fn file_url(path: &str) -> String {
    const KEPT: &percent_encoding::AsciiSet =
        &percent_encoding::NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'.').remove(b'_').remove(b'~');
    format!("file://{}", percent_encoding::utf8_percent_encode(path, KEPT))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn progress_is_one_line() {
        for (params, line) in [
            (json!({"progressToken": 1, "progress": 3}), "3\n"),
            (json!({"progressToken": 1, "progress": 0.5, "total": 1, "message": "half\n"}), "0.5/1 half\n"),
        ] {
            assert_eq!(progress_line(&serde_json::from_value(params).unwrap()), line);
        }
    }

    #[test]
    fn a_root_is_a_url() {
        assert_eq!(file_url("/home of/a#b"), "file:///home%20of/a%23b");
    }
}
