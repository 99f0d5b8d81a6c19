//! Requests and notifications to the client.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use crate::error::ClientError;
use crate::outbox::{Disconnected, Outbox};
use crate::rpc::{self, RequestId, RpcError};
use crate::wire::{ClientCapabilities, SessionUpdate};

/// Client of a connection: an editor, for example. Cheap to clone.
///
/// A host passes it to an [`EditorEnvironment`](crate::EditorEnvironment). Dropping the future of a request cancels it at the
/// client.
#[derive(Clone, Debug)]
pub struct Client {
    shared: Arc<ClientShared>,
}

/// Capabilities of the client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientFeatures {
    /// The client returns the text of files with unsaved changes.
    pub reads_files: bool,
    /// The client writes text files and updates their open buffers.
    pub writes_files: bool,
    /// The client runs commands in its terminals.
    pub terminals: bool,
    pub(crate) notices: bool,
    pub(crate) compactions: bool,
    pub(crate) switches: bool,
}

#[derive(Debug)]
struct ClientShared {
    outbox: Outbox,
    next_id: AtomicI64,
    state: Mutex<ClientState>,
}

#[derive(Debug, Default)]
struct ClientState {
    features: ClientFeatures,
    waiting: HashMap<i64, oneshot::Sender<Result<Value, RpcError>>>,
    /// Sessions that the client knows. It refuses requests about other sessions.
    announced: HashSet<String>,
    /// Senders of questions about terminals, by session.
    terminals: HashMap<String, mpsc::UnboundedSender<TerminalQuestion>>,
}

/// Question about a command that may run in a terminal of the client.
#[derive(Debug)]
pub(crate) struct TerminalQuestion {
    pub(crate) command: String,
    /// Terminal in which the command runs. The client then shows it in the call.
    pub(crate) terminal: Option<String>,
    /// Receives whether a tool call runs the command.
    pub(crate) answer: oneshot::Sender<bool>,
}

impl Client {
    pub(crate) fn new(outbox: Outbox) -> Self {
        let shared = ClientShared { outbox, next_id: AtomicI64::new(1), state: Mutex::default() };
        Self { shared: Arc::new(shared) }
    }

    /// Returns the capabilities that the client declared in `initialize`.
    #[must_use]
    pub fn features(&self) -> ClientFeatures {
        self.state().features
    }

    /// Returns whether the client knows the session and therefore answers requests about it.
    #[must_use]
    pub fn knows(&self, session: &str) -> bool {
        self.state().announced.contains(session)
    }

    /// Returns the text of a file, including unsaved changes.
    ///
    /// # Errors
    ///
    /// An error of the client, for instance if there is no such file.
    pub(crate) async fn read_text_file(&self, session: &str, path: &Path) -> Result<String, ClientError> {
        let params = json!({"sessionId": session, "path": path});
        let result: Value = self.request("fs/read_text_file", &params).await?;
        let content = result.get("content").cloned().unwrap_or_default();
        serde_json::from_value(content).map_err(ClientError::Malformed)
    }

    /// Writes a text file and updates its open buffer.
    pub(crate) async fn write_text_file(
        &self,
        session: &str,
        path: &Path,
        text: &str,
    ) -> Result<(), ClientError> {
        let params = json!({"sessionId": session, "path": path, "content": text});
        self.request::<Value>("fs/write_text_file", &params).await.map(drop)
    }

    /// Sends a request and waits for its result.
    pub(crate) async fn request<T: DeserializeOwned>(
        &self,
        method: &str,
        params: &impl Serialize,
    ) -> Result<T, ClientError> {
        let id = self.shared.next_id.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = oneshot::channel();
        self.state().waiting.insert(id, sender);
        let mut waiting = PendingResponse { client: self, id, is_sent: false };
        self.shared.outbox.send(&rpc::request(id, method, params)).await?;
        waiting.is_sent = true;
        let result = receiver.await.map_err(|_dropped| ClientError::Disconnected)?;
        let result =
            result.map_err(|RpcError { code, message, .. }| ClientError::Refused { code, message })?;
        serde_json::from_value(result).map_err(ClientError::Malformed)
    }

    /// Sends a request from a destructor. Its result is ignored.
    pub(crate) fn request_now(&self, method: &str, params: &impl Serialize) {
        let id = self.shared.next_id.fetch_add(1, Ordering::Relaxed);
        self.shared.outbox.send_now(&rpc::request(id, method, params));
    }

    /// Handles the response to a request. Drops it if no caller waits for it any more.
    pub(crate) fn resolve_response(&self, id: &RequestId, result: Result<Value, RpcError>) {
        let RequestId::Number(id) = id else { return };
        if let Some(waiting) = self.state().waiting.remove(id) {
            // The waiting future may have been dropped.
            let _ = waiting.send(result);
        }
    }

    /// Fails all pending requests, because the client has disconnected.
    pub(crate) fn disconnect(&self) {
        self.state().waiting.clear();
    }

    pub(crate) async fn update(&self, session: &str, update: &SessionUpdate) -> Result<(), Disconnected> {
        let params = json!({"sessionId": session, "update": update});
        self.shared.outbox.send(&rpc::notification("session/update", &params)).await
    }

    pub(crate) async fn reply(
        &self,
        id: &RequestId,
        result: Result<Value, RpcError>,
    ) -> Result<(), Disconnected> {
        self.shared.outbox.send(&rpc::reply(id, result)).await
    }

    pub(crate) fn set_capabilities(&self, capabilities: &ClientCapabilities) {
        let session = &capabilities.session;
        self.state().features = ClientFeatures {
            reads_files: capabilities.fs.read_text_file,
            writes_files: capabilities.fs.write_text_file,
            terminals: capabilities.terminal,
            notices: session.notices.is_object(),
            compactions: session.compaction.is_object(),
            switches: session.config_options.get("boolean").is_some_and(Value::is_object),
        };
    }

    /// Records that the client knows a session. Returns the questions about terminals of the session's commands.
    pub(crate) fn announce(&self, session: &str) -> mpsc::UnboundedReceiver<TerminalQuestion> {
        let (sender, receiver) = mpsc::unbounded_channel();
        let mut state = self.state();
        state.announced.insert(session.to_owned());
        state.terminals.insert(session.to_owned(), sender);
        receiver
    }

    pub(crate) fn forget(&self, session: &str) {
        let mut state = self.state();
        state.announced.remove(session);
        state.terminals.remove(session);
    }

    /// Returns whether a tool call runs the command. If the command has a terminal, the client also shows it in the call.
    pub(crate) async fn runs_for_call(&self, session: &str, command: &str, terminal: Option<&str>) -> bool {
        let (sender, answer) = oneshot::channel();
        let (command, terminal) = (command.to_owned(), terminal.map(str::to_owned));
        let question = TerminalQuestion { command, terminal, answer: sender };
        let is_asked = self.state().terminals.get(session).is_some_and(|to| to.send(question).is_ok());
        is_asked && answer.await.unwrap_or(false)
    }

    fn state(&self) -> MutexGuard<'_, ClientState> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Pending request. Dropping it before the response arrives cancels it at the client.
struct PendingResponse<'a> {
    client: &'a Client,
    id: i64,
    is_sent: bool,
}

impl Drop for PendingResponse<'_> {
    fn drop(&mut self) {
        let was_waiting = self.client.state().waiting.remove(&self.id).is_some();
        if was_waiting && self.is_sent {
            let params = json!({"requestId": self.id});
            self.client.shared.outbox.send_now(&rpc::notification("$/cancel_request", &params));
        }
    }
}
