//! Requests that the host answers, each in a separate task.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::session_table::SessionTable;
use crate::client::Client;
use crate::error::HostError;
use crate::host::{AgentHost, AgentInfo, McpServerSpec, McpTransport, NewSession, OpenSession, SessionQuery};
use crate::requests::ClientRequests;
use crate::rpc::{self, RequestId, RpcError};
use crate::session::SessionTask;
use crate::session_entry::{OpenSessionKind, OpenSessionRequest, SessionEntry};
use crate::settings::OptionValue;
use crate::wire;
use crate::wire::{ConfigOptionsResult, ListSessionsResult, ListedSession, config_options};

/// Request that the host answers.
pub(super) enum HostRequest {
    Authenticate { method: String },
    New(NewSession),
    Open { id: String, session: NewSession, kind: OpenSessionKind },
    List(SessionQuery),
    Close { id: String },
    Delete { id: String },
    Logout,
    SetMode { id: String, mode: String },
    SetOption { id: String, option: String, value: OptionValue },
}

impl HostRequest {
    /// Parses a request.
    ///
    /// # Errors
    ///
    /// The error of the response.
    pub(super) fn parse(method: &str, params: Value, info: &AgentInfo) -> Result<Self, RpcError> {
        Ok(match method {
            "authenticate" => {
                let wire::AuthenticateParams { method_id } = rpc::params(params)?;
                Self::Authenticate { method: method_id }
            }
            "session/new" => {
                let wire::NewSessionParams { cwd, additional_directories, mcp_servers } =
                    rpc::params(params)?;
                Self::New(new_session(&cwd, additional_directories.is_empty(), mcp_servers, info)?)
            }
            "session/load" if info.loads_sessions => Self::open(params, OpenSessionKind::Load, info)?,
            "session/resume" if info.loads_sessions => Self::open(params, OpenSessionKind::Resume, info)?,
            "session/list" if info.lists_sessions => {
                let wire::ListSessionsParams { cwd, cursor } = rpc::params(params)?;
                Self::List(SessionQuery { directory: cwd, cursor })
            }
            "session/close" => {
                let wire::SessionIdParams { session_id } = rpc::params(params)?;
                Self::Close { id: session_id }
            }
            "session/delete" if info.deletes_sessions => {
                let wire::SessionIdParams { session_id } = rpc::params(params)?;
                Self::Delete { id: session_id }
            }
            "logout" if info.logs_out => Self::Logout,
            "session/set_mode" => {
                let wire::SetModeParams { session_id, mode_id } = rpc::params(params)?;
                Self::SetMode { id: session_id, mode: mode_id }
            }
            "session/set_config_option" => {
                let wire::SetConfigOptionParams { session_id, config_id, value } = rpc::params(params)?;
                let value = match value {
                    Value::Bool(is_on) => OptionValue::Switch(is_on),
                    Value::String(choice) => OptionValue::Choice(choice),
                    Value::Null | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                        return Err(RpcError::invalid_params(
                            "`value` is neither a string nor a truth value",
                        ));
                    }
                };
                Self::SetOption { id: session_id, option: config_id, value }
            }
            _ => {
                return Err(RpcError::new(
                    RpcError::METHOD_NOT_FOUND,
                    format!("there is no method `{method}`"),
                ));
            }
        })
    }

    fn open(params: Value, kind: OpenSessionKind, info: &AgentInfo) -> Result<Self, RpcError> {
        let wire::OpenSessionParams { session_id, cwd, additional_directories, mcp_servers } =
            rpc::params(params)?;
        let session = new_session(&cwd, additional_directories.is_empty(), mcp_servers, info)?;
        Ok(Self::Open { id: session_id, session, kind })
    }
}

fn new_session(
    cwd: &Path,
    has_one_directory: bool,
    mcp_servers: Vec<wire::McpServerParams>,
    info: &AgentInfo,
) -> Result<NewSession, RpcError> {
    if !cwd.is_absolute() {
        return Err(RpcError::invalid_params(format!("`cwd` is not absolute: {}", cwd.display())));
    }
    if !has_one_directory {
        return Err(RpcError::invalid_params("additional directories are not supported"));
    }
    let servers = mcp_servers.into_iter().map(|server| mcp_server(server, info));
    Ok(NewSession { directory: cwd.to_path_buf(), mcp_servers: servers.collect::<Result<_, _>>()? })
}

fn mcp_server(server: wire::McpServerParams, info: &AgentInfo) -> Result<McpServerSpec, RpcError> {
    let wire::McpServerParams { name, transport, url, headers, command, args, env } = server;
    let pairs =
        |values: Vec<wire::NamedValue>| values.into_iter().map(|pair| (pair.name, pair.value)).collect();
    let transport = match (transport.as_deref(), url, command) {
        (Some("http"), Some(url), _) if info.mcp_http => McpTransport::Http { url, headers: pairs(headers) },
        (None | Some("stdio"), _, Some(command)) => {
            McpTransport::Stdio { command, arguments: args, variables: pairs(env) }
        }
        _ => {
            let message =
                format!("MCP server `{name}` has a transport that is not supported, or lacks a field");
            return Err(RpcError::invalid_params(message));
        }
    };
    Ok(McpServerSpec { name, transport })
}

/// Context for the response to a request.
pub(super) struct HostRequestTask {
    pub(super) host: Arc<dyn AgentHost>,
    pub(super) client: Client,
    pub(super) requests: ClientRequests,
    pub(super) table: SessionTable,
    pub(super) request: RequestId,
}

/// Result of a request: an answer, or a session whose task answers.
enum HostRequestResult {
    Answer(Value),
    Opened(Box<SessionTask>),
    /// The task of an open session answers.
    Delegated,
}

impl HostRequestTask {
    /// Answers the request. Returns the session that it opened.
    pub(super) async fn run(self, ask: HostRequest, cancel: CancellationToken) -> Option<Box<SessionTask>> {
        let result = tokio::select! {
            biased;
            () = cancel.cancelled() => Err(RpcError::cancelled()),
            result = self.carry_out(ask) => result,
        };
        match result {
            Ok(HostRequestResult::Answer(answer)) => self.requests.answer(&self.request, Ok(answer)).await,
            Ok(HostRequestResult::Opened(session)) => return Some(session),
            Ok(HostRequestResult::Delegated) => {}
            Err(error) => self.requests.answer(&self.request, Err::<(), _>(error)).await,
        }
        None
    }

    async fn carry_out(&self, ask: HostRequest) -> Result<HostRequestResult, RpcError> {
        match ask {
            HostRequest::Authenticate { method } => {
                self.host.authenticate(&method).await.map_err(|error| error.to_rpc())?;
                Ok(HostRequestResult::Answer(json!({})))
            }
            HostRequest::New(new) => self.new_session(new).await,
            HostRequest::Open { id, session, kind } => self.open(&id, session, kind).await,
            HostRequest::List(list) => self.list(list).await,
            HostRequest::Close { id } => self.close(&id).await,
            HostRequest::Delete { id } => self.delete(&id).await,
            HostRequest::Logout => {
                self.host.logout().await.map_err(|error| error.to_rpc())?;
                Ok(HostRequestResult::Answer(json!({})))
            }
            HostRequest::SetMode { id, mode } => {
                let entry = self.table.find(&id)?;
                entry.controls.set_mode(&mode).await.map_err(|error| error.to_rpc())?;
                self.set(&entry, json!({})).await
            }
            HostRequest::SetOption { id, option, value } => {
                let entry = self.table.find(&id)?;
                entry.controls.set_option(&option, value).await.map_err(|error| error.to_rpc())?;
                let options =
                    config_options(&entry.controls.settings().options, self.client.features().switches);
                self.set(&entry, json!(ConfigOptionsResult { config_options: options })).await
            }
        }
    }

    /// Answers a request that changed settings. The session's task then reports the other changes.
    async fn set(&self, entry: &SessionEntry, answer: Value) -> Result<HostRequestResult, RpcError> {
        self.requests.answer(&self.request, Ok(answer)).await;
        entry.settings_changed();
        Ok(HostRequestResult::Delegated)
    }

    async fn new_session(&self, new: NewSession) -> Result<HostRequestResult, RpcError> {
        let directory = new.directory.clone();
        let opened = self.host.new_session(new, &self.client).await.map_err(|error| error.to_rpc())?;
        self.register(opened, &directory, OpenSessionKind::New, None).await
    }

    async fn open(
        &self,
        id: &str,
        session: NewSession,
        kind: OpenSessionKind,
    ) -> Result<HostRequestResult, RpcError> {
        if let Some(entry) = self.table.get(id) {
            if entry.directory != session.directory {
                return Err(other_directory(id, &entry.directory));
            }
            if entry.open(OpenSessionRequest { request: self.request.clone(), kind }).is_ok() {
                return Ok(HostRequestResult::Delegated);
            }
            // The session is being closed. It can be opened again afterwards.
            entry.closed.cancelled().await;
            self.table.remove_entry(&entry);
        }
        let reserved = self.table.reserve(id)?;
        let directory = session.directory.clone();
        let mut opened =
            self.host.load_session(id, session, &self.client).await.map_err(|error| error.to_rpc())?;
        // The client did not ask to continue the unfinished run of the record. Dropping the run interrupts it.
        drop(opened.session.resumed());
        self.register(opened, &directory, kind, Some(reserved)).await
    }

    /// Registers a session that the host opened.
    async fn register(
        &self,
        opened: OpenSession,
        directory: &Path,
        kind: OpenSessionKind,
        reserved: Option<super::session_table::SessionReservation>,
    ) -> Result<HostRequestResult, RpcError> {
        let OpenSession { session, controls, directory: actual } = opened;
        let id = session.id().to_string();
        if actual != directory {
            controls.close(session).await;
            return Err(other_directory(&id, &actual));
        }
        let reserved = match reserved {
            Some(reserved) => reserved,
            None => self.table.reserve(&id)?,
        };
        let entry = Arc::new(SessionEntry::new(session.handle(), id, controls, actual));
        entry.open(OpenSessionRequest { request: self.request.clone(), kind })?;
        reserved.put(Arc::clone(&entry));
        let task = SessionTask::new(session, entry, self.client.clone(), self.requests.clone());
        Ok(HostRequestResult::Opened(Box::new(task)))
    }

    async fn list(&self, list: SessionQuery) -> Result<HostRequestResult, RpcError> {
        let page = self.host.list_sessions(list).await.map_err(|error| error.to_rpc())?;
        let sessions = page.sessions.into_iter().map(|session| ListedSession {
            session_id: session.id,
            cwd: session.directory,
            title: session.title,
            updated_at: session.updated_at,
        });
        let listed = ListSessionsResult { sessions: sessions.collect(), next_cursor: page.next };
        Ok(HostRequestResult::Answer(json!(listed)))
    }

    async fn close(&self, id: &str) -> Result<HostRequestResult, RpcError> {
        let entry = self.table.find(id)?;
        self.close_entry(&entry).await;
        Ok(HostRequestResult::Answer(json!({})))
    }

    async fn delete(&self, id: &str) -> Result<HostRequestResult, RpcError> {
        if let Some(entry) = self.table.get(id) {
            self.close_entry(&entry).await;
        }
        // Prevents other requests from opening the session meanwhile.
        let _reserved = self.table.reserve(id)?;
        match self.host.delete_session(id).await {
            // The session is gone, as requested.
            Ok(()) | Err(HostError::NoSuchSession(_)) => {
                self.table.forget_ended(id);
                Ok(HostRequestResult::Answer(json!({})))
            }
            Err(error) => Err(error.to_rpc()),
        }
    }

    async fn close_entry(&self, entry: &Arc<SessionEntry>) {
        entry.close();
        entry.closed.cancelled().await;
        self.table.remove_entry(entry);
    }
}

fn other_directory(id: &str, directory: &Path) -> RpcError {
    HostError::OtherDirectory { id: id.to_owned(), directory: directory.to_path_buf() }.to_rpc()
}
