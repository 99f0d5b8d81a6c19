//! The client: one method for each operation of the server.

mod tasks;

use std::sync::Arc;

use pintle_agent::{Decision, SessionId, UserMessage};
use pintle_llm::Fingerprint;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::backoff::new_key;
use crate::changes::Changes;
use crate::error::ClientError;
use crate::journal::Journal;
use crate::operation::{self, ApiOperation};
use crate::options::ClientOptions;
use crate::requests::{
    AuditFormat, CreateBody, DecisionBody, ExportFormat, FilePoint, MessageBody, NewSession, RestoreBody,
    RestoreRequest, SessionQuery, SettingsChange, TurnsBody,
};
use crate::responses::{
    Approval, ApprovalList, CheckpointInfo, CheckpointList, CostReport, History, ModelInfo, ModelList,
    RestoreReport, SessionDiff, SessionInfo, SessionPage, ToolInfo, ToolInfoList,
};
use crate::session_events::{EventId, SessionEvents};
use crate::transport::{FailedRequest, ServerRequest, Transport};

/// Range of bytes, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteRange {
    /// First byte, from 0.
    pub first: u64,
    /// Last byte. Default: the last byte of the value.
    pub last: Option<u64>,
}

/// Client of one server. Cheap to clone.
///
/// Requests are repeated after a connection failure, a status 502, 503 or 504, and a status 429 with `retry-after`. If the
/// client has never connected to the server, a failure to connect is returned at once. A request that changes something keeps its idempotency key, so that the server performs it once.
#[derive(Clone, Debug)]
pub struct Client {
    transport: Transport,
    /// Idempotency key of changes. If it is `None`, each change gets a new key.
    key: Option<Arc<str>>,
}

impl Client {
    /// Creates a client of the server at `http://…`, `https://…` or `unix:PATH`. The line that `pintle serve` prints is an
    /// address. Without `token`, the token is read from its fragment.
    ///
    /// # Errors
    ///
    /// [`ClientError::InvalidUrl`] and [`ClientError::InvalidHeader`]; [`ClientError::Setup`] if this machine has no TLS.
    pub fn new(url: &str, token: Option<&str>) -> Result<Self, ClientError> {
        Self::with_options(url, token, ClientOptions::default())
    }

    /// Creates a client with options.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn with_options(url: &str, token: Option<&str>, options: ClientOptions) -> Result<Self, ClientError> {
        Ok(Self { transport: Transport::new(url, token, options)?, key: None })
    }

    /// Returns a client for one change, with the application's idempotency key. A change that is sent again with the same
    /// key, even by another process, is performed once.
    #[must_use]
    pub fn with_key(&self, key: &str) -> Self {
        Self { transport: self.transport.clone(), key: Some(key.into()) }
    }

    /// Checks that the server responds. Needs no token.
    ///
    /// # Errors
    ///
    /// [`ClientError`].
    pub async fn health(&self) -> Result<(), ClientError> {
        self.get::<Value>(self.request(&operation::HEALTH, &[])?).await.map(drop)
    }

    /// Lists sessions, the newest change first.
    ///
    /// # Errors
    ///
    /// [`ClientError`], as for all methods that send a request.
    pub async fn list_sessions(&self, list: &SessionQuery) -> Result<SessionPage, ClientError> {
        let SessionQuery { limit, cursor, search, state, parent } = list;
        let state = state.and_then(|state| serde_json::to_value(state).ok());
        let request = self
            .request(&operation::LIST_SESSIONS, &[])?
            .query("limit", limit.map(|limit| limit.to_string()).as_deref())
            .query("cursor", cursor.as_deref())
            .query("search", search.as_deref())
            .query("state", state.as_ref().and_then(Value::as_str))
            .query("parent", parent.as_ref().map(SessionId::as_str));
        self.get(request).await
    }

    /// Creates a session.
    ///
    /// # Errors
    ///
    /// [`ClientError`].
    pub async fn create_session(&self, new: NewSession) -> Result<SessionInfo, ClientError> {
        let body = CreateBody::try_from(new)?;
        json(&self.change(self.request(&operation::CREATE_SESSION, &[])?.json(&body)?).await?)
    }

    /// Reads a session.
    ///
    /// # Errors
    ///
    /// [`ClientError`].
    pub async fn session(&self, session: &SessionId) -> Result<SessionInfo, ClientError> {
        self.get(self.session_request(&operation::READ_SESSION, session)?).await
    }

    /// Changes the settings of a session.
    ///
    /// # Errors
    ///
    /// [`ClientError`].
    pub async fn change_session(
        &self,
        session: &SessionId,
        change: &SettingsChange,
    ) -> Result<SessionInfo, ClientError> {
        json(&self.change(self.session_request(&operation::CHANGE_SESSION, session)?.json(change)?).await?)
    }

    /// Deletes a session with its record.
    ///
    /// # Errors
    ///
    /// [`ClientError`].
    pub async fn delete_session(&self, session: &SessionId) -> Result<(), ClientError> {
        match self.change(self.session_request(&operation::DELETE_SESSION, session)?).await {
            Ok(_) => Ok(()),
            // An earlier attempt deleted the session, its response was lost, and the server has restarted since.
            Err(failed) if failed.error.code() == Some("not_found") && failed.attempts > 1 => Ok(()),
            Err(failed) => Err(failed.error),
        }
    }

    /// Creates a session that starts with the first `entries` entries of another session's history.
    ///
    /// # Errors
    ///
    /// [`ClientError`].
    pub async fn fork(&self, session: &SessionId, entries: usize) -> Result<SessionInfo, ClientError> {
        json(
            &self
                .change(
                    self.session_request(&operation::FORK_SESSION, session)?
                        .json(&TurnsBody { turns: entries })?,
                )
                .await?,
        )
    }

    /// Sends the next message. During a run, the message waits for the end of the run.
    ///
    /// # Errors
    ///
    /// [`ClientError`].
    pub async fn submit(
        &self,
        session: &SessionId,
        message: impl Into<UserMessage>,
    ) -> Result<(), ClientError> {
        self.send_message(&operation::SUBMIT, session, message.into()).await
    }

    /// Sends a message that waits for the end of the run.
    ///
    /// # Errors
    ///
    /// [`ClientError`].
    pub async fn follow_up(
        &self,
        session: &SessionId,
        message: impl Into<UserMessage>,
    ) -> Result<(), ClientError> {
        self.send_message(&operation::FOLLOW_UP, session, message.into()).await
    }

    /// Sends a message into the current run, or starts a run with it.
    ///
    /// # Errors
    ///
    /// [`ClientError`].
    pub async fn say(&self, session: &SessionId, message: impl Into<UserMessage>) -> Result<(), ClientError> {
        self.send_message(&operation::SAY, session, message.into()).await
    }

    /// Sends a message into the current run. Without a run, it is added to the next message.
    ///
    /// # Errors
    ///
    /// [`ClientError`].
    pub async fn steer(
        &self,
        session: &SessionId,
        message: impl Into<UserMessage>,
    ) -> Result<(), ClientError> {
        self.send_message(&operation::STEER, session, message.into()).await
    }

    /// Stops the run and keeps the session.
    ///
    /// # Errors
    ///
    /// [`ClientError`].
    pub async fn interrupt(&self, session: &SessionId) -> Result<(), ClientError> {
        self.order(&operation::INTERRUPT, session).await
    }

    /// Stops all work and closes the session permanently.
    ///
    /// # Errors
    ///
    /// [`ClientError`].
    pub async fn abort(&self, session: &SessionId) -> Result<(), ClientError> {
        self.order(&operation::ABORT, session).await
    }

    /// Summarizes the older part of the conversation.
    ///
    /// # Errors
    ///
    /// [`ClientError`].
    pub async fn compact(&self, session: &SessionId) -> Result<(), ClientError> {
        self.order(&operation::COMPACT, session).await
    }

    /// Rewinds the session to the first `entries` entries of its history.
    ///
    /// # Errors
    ///
    /// [`ClientError`].
    pub async fn rewind(&self, session: &SessionId, entries: usize) -> Result<(), ClientError> {
        self.change(self.session_request(&operation::REWIND, session)?.json(&TurnsBody { turns: entries })?)
            .await?;
        Ok(())
    }

    /// Lists the calls that wait for a decision, in the session and in its subagents.
    ///
    /// # Errors
    ///
    /// [`ClientError`].
    pub async fn approvals(&self, session: &SessionId) -> Result<Vec<Approval>, ClientError> {
        let list: ApprovalList = self.get(self.session_request(&operation::LIST_APPROVALS, session)?).await?;
        Ok(list.approvals)
    }

    /// Decides on a call of `session`, the session of the approval. Only the first decision counts; a later decision fails
    /// with the code `conflict`.
    ///
    /// # Errors
    ///
    /// [`ClientError`].
    pub async fn decide(
        &self,
        session: &SessionId,
        call_id: &str,
        fingerprint: Fingerprint,
        decision: Decision,
    ) -> Result<(), ClientError> {
        let body = DecisionBody::new(fingerprint, decision)?;
        let request = self.request(&operation::DECIDE, &[session.as_str(), call_id])?.json(&body)?;
        self.change(request).await?;
        Ok(())
    }

    /// Reads the conversation.
    ///
    /// # Errors
    ///
    /// [`ClientError`].
    pub async fn history(&self, session: &SessionId) -> Result<History, ClientError> {
        self.get(self.session_request(&operation::READ_HISTORY, session)?).await
    }

    /// Reads the lines `from` to `to` of the journal, both included; the first line is 1. If the connection fails, reading
    /// resumes after the last line.
    #[must_use]
    pub fn journal(&self, session: &SessionId, from: u64, to: Option<u64>) -> Journal {
        Journal::new(self.transport.clone(), session.clone(), from, to)
    }

    /// Reads a large value of the journal, or a range of its bytes.
    ///
    /// # Errors
    ///
    /// [`ClientError`].
    pub async fn blob(
        &self,
        session: &SessionId,
        hash: &str,
        range: Option<ByteRange>,
    ) -> Result<Vec<u8>, ClientError> {
        let mut request = self.request(&operation::READ_BLOB, &[session.as_str(), hash])?;
        if let Some(ByteRange { first, last }) = range {
            let last = last.map(|last| last.to_string()).unwrap_or_default();
            request = request.header("range", "range", &format!("bytes={first}-{last}"))?;
        }
        Ok(self.transport.call(&request).await?)
    }

    /// Lists the states of the files that can be restored.
    ///
    /// # Errors
    ///
    /// [`ClientError`].
    pub async fn checkpoints(&self, session: &SessionId) -> Result<Vec<CheckpointInfo>, ClientError> {
        let list: CheckpointList =
            self.get(self.session_request(&operation::LIST_CHECKPOINTS, session)?).await?;
        Ok(list.checkpoints)
    }

    /// Compares the files with an earlier state.
    ///
    /// # Errors
    ///
    /// [`ClientError`].
    pub async fn diff(&self, session: &SessionId, since: &FilePoint) -> Result<SessionDiff, ClientError> {
        let request = self.session_request(&operation::DIFF, session)?;
        self.get(match since {
            FilePoint::Entries(entries) => request.query("turns", Some(&entries.to_string())),
            FilePoint::Checkpoint(id) => request.query("checkpoint", Some(id)),
        })
        .await
    }

    /// Restores files, or reports the effects of a planned restore.
    ///
    /// # Errors
    ///
    /// [`ClientError`].
    pub async fn restore(
        &self,
        session: &SessionId,
        restore: RestoreRequest,
    ) -> Result<RestoreReport, ClientError> {
        let body = RestoreBody::from(restore);
        json(&self.change(self.session_request(&operation::RESTORE, session)?.json(&body)?).await?)
    }

    /// Reads the session as a single document.
    ///
    /// # Errors
    ///
    /// [`ClientError`].
    pub async fn export(&self, session: &SessionId, format: ExportFormat) -> Result<String, ClientError> {
        let request = self.session_request(&operation::EXPORT_SESSION, session)?;
        self.text(request.query("format", Some(format.as_str()))).await
    }

    /// Reads the audit of the calls: the origin of each call, its approval and its effects.
    ///
    /// # Errors
    ///
    /// [`ClientError`].
    pub async fn audit(&self, session: &SessionId, format: AuditFormat) -> Result<String, ClientError> {
        let request = self.session_request(&operation::AUDIT_SESSION, session)?;
        self.text(request.query("format", Some(format.as_str()))).await
    }

    /// Lists models that sessions can use.
    ///
    /// # Errors
    ///
    /// [`ClientError`].
    pub async fn models(&self) -> Result<Vec<ModelInfo>, ClientError> {
        let list: ModelList = self.get(self.request(&operation::LIST_MODELS, &[])?).await?;
        Ok(list.models)
    }

    /// Lists the tools that are offered to the model of a session. This opens the session.
    ///
    /// # Errors
    ///
    /// [`ClientError`].
    pub async fn tools(&self, session: &SessionId) -> Result<Vec<ToolInfo>, ClientError> {
        let list: ToolInfoList = self.get(self.request(&operation::LIST_TOOLS, &[session.as_str()])?).await?;
        Ok(list.tools)
    }

    /// Adds up the cost of all sessions by day and model, for this many days up to today in UTC: 1 to 366.
    ///
    /// # Errors
    ///
    /// [`ClientError`].
    pub async fn costs(&self, days: u32) -> Result<CostReport, ClientError> {
        self.get(self.request(&operation::READ_COSTS, &[])?.query("days", Some(&days.to_string()))).await
    }

    /// Reads the metrics of the server, in the text format of Prometheus.
    ///
    /// # Errors
    ///
    /// [`ClientError`].
    pub async fn metrics(&self) -> Result<String, ClientError> {
        self.text(self.request(&operation::READ_METRICS, &[])?).await
    }

    /// Follows the events of a session, from the first event or after the event `after`. The stream reconnects
    /// automatically. It ends when the session is deleted, and after an error that a reconnect does not fix, such as a
    /// rejected token.
    #[must_use]
    pub fn events(&self, session: &SessionId, after: Option<EventId>) -> SessionEvents {
        SessionEvents::new(self.transport.clone(), session.clone(), after)
    }

    /// Follows the changes and deletions of all sessions. Starts with the open sessions, and reconnects automatically.
    #[must_use]
    pub fn changes(&self) -> Changes {
        Changes::new(self.transport.clone())
    }

    fn request(&self, operation: &ApiOperation, values: &[&str]) -> Result<ServerRequest, ClientError> {
        self.transport.request(operation, values)
    }

    fn session_request(
        &self,
        operation: &ApiOperation,
        session: &SessionId,
    ) -> Result<ServerRequest, ClientError> {
        self.request(operation, &[session.as_str()])
    }

    async fn get<T: DeserializeOwned>(&self, request: ServerRequest) -> Result<T, ClientError> {
        json(&self.transport.call(&request).await?)
    }

    async fn text(&self, request: ServerRequest) -> Result<String, ClientError> {
        let body = self.transport.call(&request).await?;
        String::from_utf8(body).map_err(|error| ClientError::unexpected("text", error))
    }

    /// Sends a request that changes something, with its idempotency key.
    async fn change(&self, request: ServerRequest) -> Result<Vec<u8>, FailedRequest> {
        let keyed = match &self.key {
            Some(key) => request.header("idempotency-key", "idempotency key", key),
            None => new_key().and_then(|key| request.header("idempotency-key", "idempotency key", &key)),
        };
        match keyed {
            Ok(request) => self.transport.call(&request).await,
            Err(error) => Err(FailedRequest { error, attempts: 0 }),
        }
    }

    async fn order(&self, operation: &ApiOperation, session: &SessionId) -> Result<(), ClientError> {
        self.change(self.session_request(operation, session)?).await?;
        Ok(())
    }

    async fn send_message(
        &self,
        operation: &ApiOperation,
        session: &SessionId,
        message: UserMessage,
    ) -> Result<(), ClientError> {
        let body = MessageBody::try_from(message)?;
        self.change(self.session_request(operation, session)?.json(&body)?).await?;
        Ok(())
    }
}

fn json<T: DeserializeOwned>(body: &[u8]) -> Result<T, ClientError> {
    serde_json::from_slice(body).map_err(|error| ClientError::unexpected("JSON of the server", error))
}
