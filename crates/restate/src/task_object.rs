//! The virtual object of a task, and the worker that serves it.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use pintle_store::SessionId;
use pintle_workflow::contract::Contract;
use pintle_workflow::task::{GateAnswer, TaskSignal, WorkCost};
use pintle_workflow::{
    TaskEnd, TaskHostError, TaskStatus, TaskSupervisor, post_signal, read_inputs, read_task, run_to_end,
};
use restate_sdk::context::{
    ContextClient as _, ContextSideEffects as _, ObjectContext, RunFuture as _, SharedObjectContext,
};
use restate_sdk::endpoint::Endpoint;
use restate_sdk::errors::{HandlerError, TerminalError};
use restate_sdk::http_server::HttpServer;
use restate_sdk::serde::Json;
use serde::{Deserialize, Serialize};
use socket2::SockRef;
use tokio::net::TcpListener;

use crate::IdentityKeys;
use crate::host::{RestateHost, handler_error, wake};

/// Name of the virtual object. Its key is the id of the task.
pub const OBJECT_NAME: &str = "PintleTask";

/// Status checks per invocation. The next invocation continues, so that the journal that the engine replays stays short.
const MAX_STATUS_CHECKS: u32 = 100;

/// Status code for a request that the current state does not allow.
const CONFLICT: u16 = 409;

/// Input of `run`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunRequest {
    /// Contract of a new task. A task that is already in the store keeps its own contract.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contract: Option<Contract>,
}

/// Input of `steer`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SteerRequest {
    /// Number of the candidate, from 0. All candidates if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate: Option<usize>,
    /// Message to the candidates.
    pub text: String,
}

/// Input of `cancel`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CancelRequest {
    /// Reason, for the report.
    pub reason: String,
}

/// Answer of `status`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StatusResponse {
    /// Status of the task.
    #[serde(rename = "standing")]
    pub status: TaskStatus,
    /// Cost of the task so far, in US dollars, tokens and milliseconds.
    pub spent: WorkCost,
}

/// Handlers of a task. The engine has the names and the progress of its steps. Their results are in the store.
pub(crate) struct TaskObject {
    supervisor: Arc<TaskSupervisor>,
}

// A task survives a worker that is unavailable for days: the attempts last for months.
#[restate_sdk::object(
    name = "PintleTask",
    invocation_retry_policy(
        initial_interval = "200ms",
        factor = 2.0,
        max_interval = "30s",
        max_attempts = 1000000,
        on_max_attempts = "pause"
    )
)]
impl TaskObject {
    /// Runs a task until it ends, and returns its end. Returns `None` after 100 status checks: the task continues in a
    /// later invocation, which this one sends. A step of the engine lasts at most 20 s, and a task that waits for a
    /// decision is checked at least every 300 s. Repeating the handler does not repeat a finished phase.
    ///
    /// # Errors
    ///
    /// A terminal error with 404 for a task that is not in the store and for which no contract is given, and with 400
    /// for an invalid contract or id. The engine retries after any other error, such as an unreachable store.
    ///
    /// # Cancellation
    ///
    /// If the invocation is cancelled or fails, this worker stops the task, and no process of it is left here. The task
    /// has not ended: another `run` resumes it.
    #[handler]
    async fn run(
        &self,
        context: ObjectContext<'_>,
        request: Json<RunRequest>,
    ) -> Result<Json<Option<TaskEnd>>, HandlerError> {
        let (supervisor, id) = (Arc::clone(&self.supervisor), SessionId::new(context.key()));
        if let Some(contract) = request.into_inner().contract {
            let (supervisor, id) = (Arc::clone(&supervisor), id.clone());
            let created = || async move { supervisor.create(&id, contract).await.map_err(handler_error) };
            context.run(created).name("create").await?;
        }
        let mut host = RestateHost { context: &context, supervisor: Arc::clone(&supervisor), id: id.clone() };
        match run_to_end(&mut host, &supervisor, &id, MAX_STATUS_CHECKS).await {
            Ok(Some(ending)) => Ok(Json(Some(ending))),
            Ok(None) => {
                context
                    .object_client::<TaskObjectClient<'_>>(context.key())
                    .run(Json(RunRequest::default()))
                    .send();
                Ok(Json(None))
            }
            Err(error) => {
                // The invocation was cancelled, or the task failed. No part of it may continue to run without the engine.
                supervisor.stop(&id).await;
                Err(error.into())
            }
        }
    }

    /// Sends a message to one candidate, or to all candidates. Returns once it is in the store, not when a session
    /// reads it.
    ///
    /// # Errors
    ///
    /// A terminal error with 409 if the task has ended or has no such candidate, and with 404 or 400 as for `run`. The
    /// engine retries after any other error.
    ///
    /// # Cancellation
    ///
    /// The message is posted once for each invocation, however often the engine repeats it. A cancelled invocation may
    /// have posted it.
    #[handler]
    async fn steer(
        &self,
        context: SharedObjectContext<'_>,
        request: Json<SteerRequest>,
    ) -> Result<(), HandlerError> {
        let SteerRequest { candidate, text } = request.into_inner();
        self.send_signal(&context, TaskSignal::Steer { candidate, text }).await
    }

    /// Answers a task that waits for a decision.
    ///
    /// # Errors
    ///
    /// A terminal error with 409 if the task does not wait for this decision or has ended, and other errors as for
    /// `steer`.
    ///
    /// # Cancellation
    ///
    /// As for `steer`.
    #[handler]
    async fn decide(
        &self,
        context: SharedObjectContext<'_>,
        request: Json<GateAnswer>,
    ) -> Result<(), HandlerError> {
        self.send_signal(&context, TaskSignal::Decide(request.into_inner())).await
    }

    /// Cancels a task permanently. Returns once the signal is in the store; `run` then ends the task.
    ///
    /// # Errors
    ///
    /// A terminal error with 409 if the task has ended, and other errors as for `steer`.
    ///
    /// # Cancellation
    ///
    /// As for `steer`.
    #[handler]
    async fn cancel(
        &self,
        context: SharedObjectContext<'_>,
        request: Json<CancelRequest>,
    ) -> Result<(), HandlerError> {
        self.send_signal(&context, TaskSignal::Cancel { reason: request.into_inner().reason }).await
    }

    /// Wakes a run that waits for a signal, after an input was posted directly to the store. Has no effect if no run
    /// waits.
    ///
    /// # Errors
    ///
    /// Errors of the engine. The store is not read.
    ///
    /// # Cancellation
    ///
    /// A cancelled invocation may have woken the run.
    #[handler]
    async fn wake(&self, context: SharedObjectContext<'_>) -> Result<(), HandlerError> {
        Ok(wake(&context).await?)
    }

    /// Returns the status of a task, and its cost so far in US dollars, tokens and milliseconds.
    ///
    /// # Errors
    ///
    /// A terminal error with 404 for a task that is not in the store, and with 400 for an invalid id. The engine
    /// retries after any other error.
    ///
    /// # Cancellation
    ///
    /// Changes nothing, so that it can be cancelled at any time.
    #[handler]
    async fn status(&self, context: SharedObjectContext<'_>) -> Result<Json<StatusResponse>, HandlerError> {
        let (supervisor, id) = (Arc::clone(&self.supervisor), SessionId::new(context.key()));
        let status = || async move {
            let task = read_task(supervisor.store(), &id).await.map_err(handler_error)?;
            Ok(Json(StatusResponse { status: TaskStatus::from_task(&task), spent: task.spent().clone() }))
        };
        Ok(context.run(status).name("status").await?)
    }
}

impl TaskObject {
    /// Posts a signal, once per invocation, and wakes the run.
    async fn send_signal(
        &self,
        context: &SharedObjectContext<'_>,
        signal: TaskSignal,
    ) -> Result<(), HandlerError> {
        let (supervisor, id) = (Arc::clone(&self.supervisor), SessionId::new(context.key()));
        let input = format!("restate-{}", context.invocation_id());
        let post = || async move {
            // The engine retries after a worker has crashed, which may have posted already.
            let inputs = read_inputs(supervisor.store(), &id).await.map_err(handler_error)?;
            if inputs.iter().any(|recorded| recorded.posted.as_ref() == Some(&input)) {
                return Ok(());
            }
            let task = read_task(supervisor.store(), &id).await.map_err(handler_error)?;
            let refused = match (&signal, TaskStatus::from_task(&task)) {
                (_, TaskStatus::Ended(_)) => Some("the task has ended".to_owned()),
                (TaskSignal::Decide(decision), status) if status != TaskStatus::Asked(decision.gate) => {
                    Some("the task does not wait for this decision".to_owned())
                }
                (TaskSignal::Steer { candidate: Some(candidate), .. }, _)
                    if *candidate >= task.candidates().len() =>
                {
                    Some(format!("candidate {candidate}: expected less than {}", task.candidates().len()))
                }
                _ => None,
            };
            if let Some(refused) = refused {
                return Err(TerminalError::new_with_code(CONFLICT, refused).into());
            }
            let posted = post_signal(supervisor.store(), &id, &input, &signal, None).await;
            posted.map(|_| ()).map_err(|error| handler_error(TaskHostError::Store(error)))
        };
        context.run(post).name("post").await?;
        Ok(wake(context).await?)
    }
}

impl fmt::Debug for TaskObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskObject").field("supervisor", &self.supervisor).finish_non_exhaustive()
    }
}

/// Serves the tasks of a supervisor to an engine until `stop` ends. Then closes the supervisor: the steps end, their
/// tasks stop, and another worker resumes them. Open connections have 10 s to end.
///
/// Errors of single connections and requests are logged, or answered to the engine. If the future is dropped, no
/// further connection is accepted. Open connections continue, and the supervisor stays open: end its tasks with
/// [`TaskSupervisor::close`].
///
/// Requests are not encrypted, and without `keys` they are not authenticated either. Any client that can connect can run
/// tasks: either listen on the loopback interface only, or pass keys.
pub async fn serve(
    listener: TcpListener,
    supervisor: Arc<TaskSupervisor>,
    keys: &IdentityKeys,
    stop: impl Future<Output = ()>,
) {
    let mut endpoint = Endpoint::builder().bind(TaskObject { supervisor: Arc::clone(&supervisor) });
    for key in keys.iter() {
        // `IdentityKeys::new` has checked the keys.
        match endpoint.identity_key(key) {
            Ok(with_key) => endpoint = with_key,
            Err(error) => return tracing::error!(key, %error, "invalid identity key"),
        }
    }
    let endpoint = endpoint.build();
    // Accepted connections inherit the option, and the SDK's server does not set it. Without it, each step waits 40 ms for a
    // delayed acknowledgement of the engine.
    if let Err(error) = SockRef::from(&listener).set_tcp_nodelay(true) {
        tracing::warn!(%error, "TCP_NODELAY cannot be set: each step may wait for a delayed acknowledgement");
    }
    let stopping = async {
        stop.await;
        // Ends the steps that an invocation waits for. The engine retries them on another worker.
        supervisor.close().await;
    };
    HttpServer::new(endpoint).serve_with_cancel(listener, stopping).await;
}
