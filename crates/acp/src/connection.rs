//! One connection, which reads and dispatches the client's messages.

mod host_request;
mod session_table;

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use pintle_env::LineTooLong;
use serde_json::{Value, json};
use tokio::io::AsyncBufRead;
use tokio::task::{Id as TaskId, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use self::host_request::{HostRequest, HostRequestTask};
use self::session_table::SessionTable;
use crate::client::Client;
use crate::host::AgentHost;
use crate::line_reader::LineReader;
use crate::prompt;
use crate::requests::{ClientRequests, RequestCancellation};
use crate::rpc::{self, IncomingMessage, RequestId, RpcError};
use crate::session::SessionTask;
use crate::session_entry::{PromptInput, SessionEntry};
use crate::wire::{
    AgentCapabilities, CancelParams, CancelRequestParams, Implementation, InitializeParams, InitializeResult,
    NamedItem, PROTOCOL_VERSION, PromptParams, SessionMethods, SupportedCapability,
};

/// Connection of a client.
pub(crate) struct ClientConnection {
    host: Arc<dyn AgentHost>,
    client: Client,
    requests: ClientRequests,
    table: SessionTable,
    is_initialized: bool,
    /// Tasks of requests. A task that opens a session returns it.
    asking: JoinSet<Option<Box<SessionTask>>>,
    /// Requests of `asking`, to be answered if the host panics.
    asked: HashMap<TaskId, RequestId>,
    /// Tasks of sessions.
    sessions: JoinSet<()>,
    /// Sessions of `sessions`.
    running: HashMap<TaskId, Arc<SessionEntry>>,
}

impl ClientConnection {
    pub(crate) fn new(host: Arc<dyn AgentHost>, client: Client) -> Self {
        Self {
            host,
            requests: ClientRequests::new(client.clone()),
            client,
            table: SessionTable::default(),
            is_initialized: false,
            asking: JoinSet::new(),
            asked: HashMap::new(),
            sessions: JoinSet::new(),
            running: HashMap::new(),
        }
    }

    /// Handles messages until the client closes its end.
    pub(crate) async fn read<R: AsyncBufRead + Unpin>(
        &mut self,
        lines: &mut LineReader<R>,
    ) -> io::Result<()> {
        loop {
            tokio::select! {
                Some(ended) = self.asking.join_next_with_id() => self.finish_request(ended).await,
                Some(ended) = self.sessions.join_next_with_id() => self.finish_session(ended).await,
                line = lines.next() => match line? {
                    Some(Ok(line)) => self.handle(rpc::parse(&line)).await,
                    Some(Err(LineTooLong { .. })) => {
                        self.refuse(&RequestId::Null, RpcError::invalid_request("the line is too long")).await;
                    }
                    None => return Ok(()),
                },
            }
        }
    }

    /// Cancels all work and waits until every session is closed. May be called again if the future was dropped.
    pub(crate) async fn close(&mut self) {
        self.table.entries().iter().for_each(|entry| entry.close());
        // A session that is being opened is closed by its host or with its task.
        self.asking.shutdown().await;
        while let Some(ended) = self.sessions.join_next_with_id().await {
            self.finish_session(ended).await;
        }
    }

    async fn handle(&mut self, incoming: IncomingMessage) {
        match incoming {
            IncomingMessage::Request { id, method, params } => {
                if let Err(error) = self.request(&id, &method, params).await {
                    self.refuse(&id, error).await;
                }
            }
            IncomingMessage::Notification { method, params } => self.handle_notification(&method, params),
            IncomingMessage::Response { id, result } => self.client.resolve_response(&id, result),
            IncomingMessage::Invalid { id, error } => self.refuse(&id, error).await,
        }
    }

    async fn refuse(&self, id: &RequestId, error: RpcError) {
        tracing::debug!(%id, code = error.code, message = error.message, "a message is refused");
        // If the client is gone, the response is dropped.
        let _ = self.client.reply(id, Err(error)).await;
    }

    /// Handles a request: answers it, or passes it to a task that answers it.
    ///
    /// # Errors
    ///
    /// The error of the response, if the request was not accepted.
    async fn request(&mut self, id: &RequestId, method: &str, params: Value) -> Result<(), RpcError> {
        if method == "initialize" {
            let initialized = self.initialize(&rpc::params(params)?);
            self.requests.register(id, RequestCancellation::Other(CancellationToken::new()))?;
            self.requests.answer(id, Ok(initialized)).await;
            return Ok(());
        }
        if !self.is_initialized {
            return Err(RpcError::invalid_request("the connection is not initialized"));
        }
        if method == "session/prompt" {
            return self.prompt(id, rpc::params(params)?);
        }
        let ask = HostRequest::parse(method, params, &self.host.info())?;
        let cancel = CancellationToken::new();
        self.requests.register(id, RequestCancellation::Other(cancel.clone()))?;
        let asking = HostRequestTask {
            host: Arc::clone(&self.host),
            client: self.client.clone(),
            requests: self.requests.clone(),
            table: self.table.clone(),
            request: id.clone(),
        };
        let task = self.asking.spawn(asking.run(ask, cancel));
        self.asked.insert(task.id(), id.clone());
        Ok(())
    }

    fn initialize(&mut self, params: &InitializeParams) -> InitializeResult {
        let info = self.host.info();
        self.client.set_capabilities(&params.client_capabilities);
        self.is_initialized = true;
        let (version, asked) = (PROTOCOL_VERSION, params.protocol_version);
        tracing::debug!(version, asked, "a client has connected");
        let session_capabilities = SessionMethods {
            close: SupportedCapability {},
            list: info.lists_sessions.then_some(SupportedCapability {}),
            delete: info.deletes_sessions.then_some(SupportedCapability {}),
            resume: info.loads_sessions.then_some(SupportedCapability {}),
        };
        InitializeResult {
            protocol_version: PROTOCOL_VERSION,
            agent_capabilities: AgentCapabilities {
                load_session: info.loads_sessions,
                prompt_capabilities: json!({"image": info.images, "audio": false, "embeddedContext": true}),
                mcp_capabilities: json!({"http": info.mcp_http, "sse": false}),
                session_capabilities,
                auth: info.logs_out.then(|| json!({"logout": {}})),
            },
            auth_methods: info.auth_methods.iter().map(NamedItem::by_id).collect(),
            agent_info: Implementation { name: info.name, title: info.title, version: info.version },
        }
    }

    fn prompt(
        &self,
        id: &RequestId,
        PromptParams { session_id, prompt }: PromptParams,
    ) -> Result<(), RpcError> {
        let entry = self.table.find(&session_id)?;
        let commands = entry.controls.settings().commands;
        let mut message = prompt::message(&prompt)?;
        let command = prompt::slash_command(&message.text)
            .filter(|(name, _)| commands.iter().any(|command| command.name == *name))
            .map(|(name, input)| (name.to_owned(), input.to_owned()));
        let input = match command {
            Some((name, input)) => {
                PromptInput::Command { name, input, images: std::mem::take(&mut message.images) }
            }
            None => PromptInput::Message(message),
        };
        self.requests.register(id, RequestCancellation::Prompt { session: session_id })?;
        entry.prompt(id.clone(), input).inspect_err(|_refused| self.requests.release(id))
    }

    /// Handles a notification. Unknown and invalid notifications are ignored, because they have no response.
    fn handle_notification(&self, method: &str, params: Value) {
        let handled = match method {
            "session/cancel" => {
                rpc::params(params).map(|CancelParams { session_id }| self.cancel(&session_id))
            }
            "$/cancel_request" => {
                rpc::params(params).map(|CancelRequestParams { request_id }| self.cancel_request(&request_id))
            }
            _ => Err(RpcError::new(RpcError::METHOD_NOT_FOUND, "unknown")),
        };
        if let Err(error) = handled {
            tracing::debug!(method, message = error.message, "a notification is ignored");
        }
    }

    fn cancel(&self, session: &str) {
        if let Ok(entry) = self.table.find(session) {
            entry.cancel();
        }
    }

    fn cancel_request(&self, id: &RequestId) {
        match self.requests.find(id) {
            Some(RequestCancellation::Prompt { session }) => {
                if let Ok(entry) = self.table.find(&session) {
                    entry.cancel_prompt(id);
                }
            }
            Some(RequestCancellation::Other(cancel)) => cancel.cancel(),
            None => {}
        }
    }

    /// Handles the end of a request's task.
    async fn finish_request(&mut self, ended: Result<(TaskId, Option<Box<SessionTask>>), JoinError>) {
        match ended {
            Ok((task, opened)) => {
                self.asked.remove(&task);
                if let Some(session) = opened {
                    let entry = session.entry();
                    let handle = self.sessions.spawn(session.run());
                    self.running.insert(handle.id(), entry);
                }
            }
            Err(error) => {
                tracing::error!(%error, "the host panicked");
                if let Some(request) = self.asked.remove(&error.id()) {
                    let failure = RpcError::new(RpcError::INTERNAL, "the request failed");
                    self.requests.answer(&request, Err::<(), _>(failure)).await;
                }
            }
        }
    }

    /// Handles the end of a session's task.
    async fn finish_session(&mut self, ended: Result<(TaskId, ()), JoinError>) {
        let (task, has_failed) = match &ended {
            Ok((task, ())) => (*task, false),
            Err(error) => (error.id(), true),
        };
        let Some(entry) = self.running.remove(&task) else { return };
        self.table.remove_entry(&entry);
        if has_failed {
            tracing::error!(session = entry.id, "the host panicked");
        }
        entry.closed.cancel();
        for request in entry.refuse_requests() {
            let failure = RpcError::new(RpcError::INTERNAL, "the session failed");
            self.requests.answer(&request, Err::<(), _>(failure)).await;
        }
    }
}
