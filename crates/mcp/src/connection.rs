//! One connection to a server: its handshake and its requests.

mod changes;
mod requests;

use std::sync::Arc;
use std::time::Duration;

use pintle_env::{ExecutionEnvironment, OutputSink};
use rmcp::model::{
    ClientRequest, InputRequest, InputRequiredResult, InputResponses, ProtocolVersion, ServerResult,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt as _, Peer, PeerRequestOptions,
    RequestHandle, RunningService,
};
use rmcp::{RoleClient, ServiceError};
use serde_json::{Value, json};
use tokio::sync::{Mutex, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::changes::ChangeWatcher;
pub(crate) use self::requests::ListEntry;
use crate::auth::TokenStore;
use crate::elicitation::Elicitor;
use crate::error::{ServerError, ServerErrorKind};
use crate::handler::ConnectionHandler;
use crate::hidden::hidden_path;
use crate::http;
use crate::probe::{LateDiscovery, ProbingTransport};
use crate::process_log::ProcessLog;
use crate::spec::{ServerSpec, ServerTransport};
use crate::stdio::StdioTransport;

/// Maximum number of times that one call may ask for input.
const MAX_ROUNDS: usize = 10;

/// Time limit for sending a cancellation to a server.
const CANCEL_TIME: Duration = Duration::from_secs(1);

/// Time limit for closing a connection. The server is killed earlier.
const CLOSE_TIME: Duration = Duration::from_secs(10);

/// Time limit for the search for a path that the sandbox hides, which delays the error of a server.
const HIDDEN_PATH_TIME: Duration = Duration::from_secs(5);

/// Connection to a server after the handshake.
pub(crate) struct ServerConnection {
    spec: Arc<ServerSpec>,
    peer: Peer<RoleClient>,
    handler: ConnectionHandler,
    process_log: ProcessLog,
    /// The task that reads the messages of the server; `None` once it is closed.
    running: Mutex<Option<RunningService<RoleClient, ConnectionHandler>>>,
    /// Handles the changes that the server reports; ends with the connection.
    _changes: ChangeWatcher,
}

impl ServerConnection {
    /// Starts a server or connects to it, and completes the handshake.
    ///
    /// # Errors
    ///
    /// [`ServerErrorKind::Start`], [`ServerErrorKind::LoginRequired`] or [`ServerErrorKind::EnvironmentLost`].
    pub(crate) async fn open(
        spec: &Arc<ServerSpec>,
        env: &dyn ExecutionEnvironment,
        elicitor: &Arc<dyn Elicitor>,
        tokens: Option<&Arc<dyn TokenStore>>,
    ) -> Result<Self, ServerError> {
        let process_log = ProcessLog::default();
        match Self::negotiate(spec, env, elicitor, tokens, &process_log).await {
            Err(error) if error.kind() == ServerErrorKind::Start => {
                let hidden = tokio::time::timeout(HIDDEN_PATH_TIME, hidden_path(spec, env)).await;
                Err(match hidden.ok().flatten() {
                    Some(path) => error.with_hidden_path(&path),
                    None => error,
                })
            }
            opened => opened,
        }
    }

    async fn negotiate(
        spec: &Arc<ServerSpec>,
        env: &dyn ExecutionEnvironment,
        elicitor: &Arc<dyn Elicitor>,
        tokens: Option<&Arc<dyn TokenStore>>,
        process_log: &ProcessLog,
    ) -> Result<Self, ServerError> {
        let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
        let newest = ClientLifecycleMode::Auto {
            preferred_versions: preferred_versions.clone(),
            legacy_version: Some(ProtocolVersion::V_2025_11_25),
        };
        let late = LateDiscovery::default();
        // Each attempt has the whole time for a start.
        let attempt = async |lifecycle: ClientLifecycleMode| {
            let serving = Self::serve(spec, env, elicitor, tokens, process_log, &late, lifecycle);
            match tokio::time::timeout(spec.start_timeout, serving).await {
                Ok(served) => served,
                Err(_elapsed) => {
                    let seconds = spec.start_timeout.as_secs_f64();
                    let what = format!("did not complete the handshake within {seconds} s");
                    Err(ServerError::new(&spec.name, ServerErrorKind::Start, what)
                        .with_process_log(process_log))
                }
            }
        };
        let served = match attempt(newest).await? {
            Err(error) if error.auth_challenge().is_some() => Err(error),
            // It has no `initialize`, and its start took longer than the probe waits.
            Err(_error) if late.has_happened() => {
                process_log.clear();
                attempt(ClientLifecycleMode::Discover { preferred_versions }).await?
            }
            // Some servers exit at a request before the handshake that they know, or answer it arbitrarily.
            Err(
                ClientInitializeError::ConnectionClosed(_)
                | ClientInitializeError::TransportError { .. }
                | ClientInitializeError::ExpectedInitResult(_),
            ) => {
                process_log.clear();
                attempt(ClientLifecycleMode::Initialize).await?
            }
            served => served,
        };
        let service = served.map_err(|error| ServerError::handshake(spec, error, process_log))?;
        let (peer, handler) = (service.peer().clone(), service.service().clone());
        let running = Mutex::new(Some(service));
        let changes = ChangeWatcher::watch(&peer, &handler).await;
        Ok(Self {
            spec: Arc::clone(spec),
            peer,
            handler,
            running,
            process_log: process_log.clone(),
            _changes: changes,
        })
    }

    /// Starts a server or connects to it, and makes one attempt at the handshake.
    async fn serve(
        spec: &ServerSpec,
        env: &dyn ExecutionEnvironment,
        elicitor: &Arc<dyn Elicitor>,
        tokens: Option<&Arc<dyn TokenStore>>,
        process_log: &ProcessLog,
        late: &LateDiscovery,
        lifecycle: ClientLifecycleMode,
    ) -> Result<Result<RunningService<RoleClient, ConnectionHandler>, ClientInitializeError>, ServerError>
    {
        let root = env.working_directory().to_path_buf();
        let handler = ConnectionHandler::new(spec.name.clone(), root, Arc::clone(elicitor));
        match &spec.transport {
            ServerTransport::Stdio(server) => {
                let started = StdioTransport::start(server, env, process_log.clone()).await;
                let transport = started.map_err(|error| ServerError::spawn(&spec.name, error))?;
                let transport = ProbingTransport::new(transport, late.clone());
                Ok(handler.serve_with_lifecycle(transport, lifecycle).await)
            }
            ServerTransport::Http(server) => {
                let transport = http::transport(server, tokens).map_err(|error| {
                    let what = format!("cannot be reached: {error}");
                    ServerError::new(&spec.name, ServerErrorKind::Start, what)
                })?;
                let transport = ProbingTransport::new(transport, late.clone());
                Ok(handler.serve_with_lifecycle(transport, lifecycle).await)
            }
        }
    }

    /// Returns whether the connection is closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.peer.is_transport_closed()
    }

    /// Returns the number of times that the server reported changed tools.
    pub(crate) fn changes(&self) -> u64 {
        *self.handler.changes.borrow()
    }

    /// Returns the number of times that the server reported changed prompts.
    pub(crate) fn prompt_changes(&self) -> u64 {
        *self.handler.prompt_changes.borrow()
    }

    async fn in_time<T>(
        &self,
        work: impl Future<Output = Result<T, ServiceError>>,
    ) -> Result<T, ServerError> {
        let timeout = self.spec.start_timeout;
        let done =
            tokio::time::timeout(timeout, work).await.unwrap_or(Err(ServiceError::Timeout { timeout }));
        done.map_err(|error| self.failed(error))
    }

    fn failed(&self, error: ServiceError) -> ServerError {
        ServerError::service(&self.spec, error, &self.process_log)
    }

    /// Sends a request to the server. If the server requires input, the request is repeated with the answers and the
    /// server's state. `cancel` stops the request and notifies the server.
    ///
    /// # Errors
    ///
    /// All kinds but [`ServerErrorKind::Start`].
    async fn ask(
        &self,
        request: impl Fn(Option<InputResponses>, Option<String>) -> ClientRequest,
        cancel: &CancellationToken,
        progress: Option<&OutputSink>,
    ) -> Result<ServerResult, ServerError> {
        let failed = |error| self.failed(error);
        let (mut responses, mut state) = (None, None);
        for _round in 0..MAX_ROUNDS {
            let request = request(responses.take(), state.take());
            let answered = self.request(request, cancel, progress).await.map_err(failed)?;
            let ServerResult::InputRequiredResult(required) = answered else { return Ok(answered) };
            state.clone_from(&required.request_state);
            responses = Some(self.inputs(required).await.map_err(failed)?);
        }
        Err(failed(ServiceError::InputRequiredRoundsExceeded { max_rounds: MAX_ROUNDS }))
    }

    /// Sends a request and waits for the answer. Progress restarts the time limit, and a question to the user suspends
    /// it.
    async fn request(
        &self,
        request: ClientRequest,
        cancel: &CancellationToken,
        progress: Option<&OutputSink>,
    ) -> Result<ServerResult, ServiceError> {
        let handler = &self.handler;
        let sent = self.peer.send_request_with_option(request, PeerRequestOptions::no_options());
        let mut request = sent.await?;
        let (alive, mut signs) = watch::channel(());
        let sink = progress.cloned();
        let _watch = handler.watch_progress(
            request.progress_token.clone(),
            Arc::new(move |chunk| {
                alive.send_replace(());
                sink.iter().for_each(|sink| sink(chunk.clone()));
            }),
        );
        let mut questions = handler.questions.subscribe();
        let timeout = self.spec.call_timeout;
        let mut deadline = Instant::now() + timeout;
        loop {
            let is_asking = *questions.borrow_and_update() > 0;
            let why = tokio::select! {
                biased;
                answer = &mut request.rx => return answer.unwrap_or(Err(ServiceError::TransportClosed)),
                () = cancel.cancelled() => ServiceError::Cancelled { reason: None },
                Ok(()) = signs.changed() => {
                    deadline = Instant::now() + timeout;
                    continue;
                }
                Ok(()) = questions.changed() => {
                    deadline = Instant::now() + timeout;
                    continue;
                }
                () = tokio::time::sleep_until(deadline), if !is_asking => ServiceError::Timeout { timeout },
            };
            cancel_at_server(request, &why).await;
            return Err(why);
        }
    }

    /// Returns the inputs that a server requires before it continues.
    async fn inputs(&self, required: InputRequiredResult) -> Result<InputResponses, ServiceError> {
        let handler = &self.handler;
        let mut responses = InputResponses::new();
        for (key, request) in required.input_requests.unwrap_or_default() {
            #[expect(
                clippy::wildcard_enum_match_arm,
                reason = "no model answers servers, and versions to come may ask more"
            )]
            let response = match request {
                InputRequest::Elicitation(request) => {
                    json_of(handler.answer(request.params).await.map_err(ServiceError::McpError)?)?
                }
                InputRequest::ListRoots(_) => json_of(handler.roots())?,
                _ => return Err(ServiceError::UnexpectedResponse),
            };
            responses.insert(key, response);
        }
        Ok(responses)
    }

    /// Closes the connection, and ends the server with it.
    pub(crate) async fn close(&self) {
        if let Some(mut service) = self.running.lock().await.take() {
            // The result makes no difference.
            let _ = service.close_with_timeout(CLOSE_TIME).await;
        }
    }
}

fn json_of(value: impl serde::Serialize) -> Result<Value, ServiceError> {
    let failed = |error: serde_json::Error| {
        ServiceError::McpError(rmcp::ErrorData::internal_error(error.to_string(), Some(json!({}))))
    };
    serde_json::to_value(value).map_err(failed)
}

/// Notifies the server that its answer is no longer awaited.
async fn cancel_at_server(request: RequestHandle<RoleClient>, why: &ServiceError) {
    // A server that reads no messages does not receive it.
    let _ = tokio::time::timeout(CANCEL_TIME, request.cancel(Some(why.to_string()))).await;
}
