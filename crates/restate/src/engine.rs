//! Client of an engine.

use std::io;
use std::time::Duration;

use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::{Method, Request, Uri};
use hyper_util::rt::TokioIo;
use pintle_store::SessionId;
use pintle_workflow::TaskEnd;
use pintle_workflow::contract::Contract;
use pintle_workflow::task::GateAnswer;
use serde::Serialize;
use thiserror::Error;
use tokio::net::TcpStream;

use crate::task_object::{CancelRequest, OBJECT_NAME, RunRequest, StatusResponse, SteerRequest};

/// Time limit of a request, except for a request that waits for the end of a task.
const PATIENCE: Duration = Duration::from_secs(30);

/// Longest response, in bytes.
const MAX_ANSWER: usize = 1 << 20;

/// Longest part of a response in an error, in characters.
const MAX_SHOWN: usize = 300;

/// Error of a request to an engine.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The address is invalid.
    #[error("`{0}` is not an address of an engine; expected one such as `http://127.0.0.1:8080`")]
    Address(String),
    /// The engine cannot be reached.
    #[error("the engine at {authority} cannot be reached")]
    Unreachable {
        /// Host and port.
        authority: String,
        /// Reason.
        source: io::Error,
    },
    /// The connection was lost, or the engine does not speak HTTP.
    #[error("the engine did not answer")]
    Exchange(#[from] hyper::Error),
    /// The engine did not answer within 30 s.
    #[error("the engine did not answer within {} s", PATIENCE.as_secs())]
    TimedOut,
    /// The response is not from an engine.
    #[error("the response is not from an engine: {0}")]
    Answer(String),
    /// The engine has rejected the request.
    #[error("the engine refused with {status}: {response}")]
    Refused {
        /// HTTP status code.
        status: u16,
        /// Its response, truncated.
        response: String,
    },
}

/// An engine, at the address where it accepts invocations (Restate's ingress, port 8080 by default).
///
/// Each request has a separate connection, which is not encrypted. Use a tunnel to reach an engine on another host.
/// Except for [`run`](Self::run), a request has 30 s, and then fails with [`EngineError::TimedOut`]. Responses have up
/// to 1 MiB.
///
/// Dropping the future of a request closes its connection. The engine may have accepted the request already, and
/// carries it out then.
#[derive(Clone, Debug)]
pub struct RestateEngine {
    ingress: Uri,
}

impl RestateEngine {
    /// Creates a client.
    ///
    /// # Errors
    ///
    /// [`EngineError::Address`] unless it begins with `http://` and has a host.
    pub fn new(ingress: &str) -> Result<Self, EngineError> {
        Ok(Self { ingress: address(ingress)? })
    }

    /// Runs a task on the engine: a new task with this contract, or a task that is already in the store. A repeated call
    /// does not start it twice.
    ///
    /// # Errors
    ///
    /// [`EngineError`].
    pub async fn start(&self, id: &SessionId, contract: Option<Contract>) -> Result<(), EngineError> {
        self.send(id, "run/send", &RunRequest { contract }).await
    }

    /// As [`start`](Self::start), and waits for the end, without a time limit. Returns `None` if the task continues in
    /// a later invocation. If the future is dropped, the task continues.
    ///
    /// # Errors
    ///
    /// [`EngineError`], but never [`EngineError::TimedOut`].
    pub async fn run(
        &self,
        id: &SessionId,
        contract: Option<Contract>,
    ) -> Result<Option<TaskEnd>, EngineError> {
        read(
            &exchange(&self.ingress, Method::POST, &path(id, "run"), &json(&RunRequest { contract })?)
                .await?,
        )
    }

    /// Sends a message to one candidate, numbered from 0, or to all candidates if `candidate` is `None`. Returns once
    /// it is in the store.
    ///
    /// # Errors
    ///
    /// [`EngineError::Refused`] with 404 for an unknown task and with 409 for a task that has ended or has no such
    /// candidate, and other [`EngineError`]s.
    pub async fn steer(
        &self,
        id: &SessionId,
        candidate: Option<usize>,
        text: &str,
    ) -> Result<(), EngineError> {
        self.send(id, "steer", &SteerRequest { candidate, text: text.to_owned() }).await
    }

    /// Answers a task that waits for a decision.
    ///
    /// # Errors
    ///
    /// [`EngineError::Refused`] with 409 if the task does not wait for this decision, and other errors as for
    /// [`steer`](Self::steer).
    pub async fn decide(&self, id: &SessionId, decision: &GateAnswer) -> Result<(), EngineError> {
        self.send(id, "decide", decision).await
    }

    /// Cancels a task permanently. Returns once the signal is in the store, before the task has ended.
    ///
    /// # Errors
    ///
    /// As for [`steer`](Self::steer).
    pub async fn cancel(&self, id: &SessionId, reason: &str) -> Result<(), EngineError> {
        self.send(id, "cancel", &CancelRequest { reason: reason.to_owned() }).await
    }

    /// Wakes a run that waits for a signal, after an input was posted directly to the store. Has no effect if no run
    /// waits.
    ///
    /// # Errors
    ///
    /// [`EngineError`].
    pub async fn wake(&self, id: &SessionId) -> Result<(), EngineError> {
        limit_time(exchange(&self.ingress, Method::POST, &path(id, "wake"), &[])).await.map(|_| ())
    }

    /// Returns the status of a task and its cost.
    ///
    /// # Errors
    ///
    /// [`EngineError::Refused`] with 404 for an unknown task, and other [`EngineError`]s.
    pub async fn status(&self, id: &SessionId) -> Result<StatusResponse, EngineError> {
        read(&limit_time(exchange(&self.ingress, Method::POST, &path(id, "status"), &[])).await?)
    }

    /// Checks that the engine accepts invocations.
    ///
    /// # Errors
    ///
    /// [`EngineError`], with the reason.
    pub async fn check(&self) -> Result<(), EngineError> {
        limit_time(exchange(&self.ingress, Method::GET, "/restate/health", &[])).await.map(|_| ())
    }

    /// Registers a worker at the admin address of an engine (port 9070 by default). The engine discovers the handlers of a
    /// known worker again.
    ///
    /// # Errors
    ///
    /// [`EngineError`]; the engine has to reach the worker.
    pub async fn register(admin: &str, worker: &str) -> Result<(), EngineError> {
        #[derive(Serialize)]
        struct Deployment<'a> {
            uri: &'a str,
            force: bool,
        }
        let deployment = json(&Deployment { uri: worker, force: true })?;
        limit_time(exchange(&address(admin)?, Method::POST, "/deployments", &deployment)).await.map(|_| ())
    }

    async fn send(&self, id: &SessionId, handler: &str, request: &impl Serialize) -> Result<(), EngineError> {
        limit_time(exchange(&self.ingress, Method::POST, &path(id, handler), &json(request)?))
            .await
            .map(|_| ())
    }
}

fn path(id: &SessionId, handler: &str) -> String {
    format!("/{OBJECT_NAME}/{id}/{handler}")
}

fn address(text: &str) -> Result<Uri, EngineError> {
    let uri = text.parse::<Uri>().ok();
    let uri =
        uri.filter(|uri| uri.scheme_str() == Some("http") && uri.host().is_some_and(|host| !host.is_empty()));
    uri.ok_or_else(|| EngineError::Address(text.to_owned()))
}

fn json(value: &impl Serialize) -> Result<Vec<u8>, EngineError> {
    serde_json::to_vec(value).map_err(|error| EngineError::Answer(error.to_string()))
}

fn read<T: serde::de::DeserializeOwned>(answer: &[u8]) -> Result<T, EngineError> {
    serde_json::from_slice(answer).map_err(|error| EngineError::Answer(error.to_string()))
}

async fn limit_time<T>(exchange: impl Future<Output = Result<T, EngineError>>) -> Result<T, EngineError> {
    tokio::time::timeout(PATIENCE, exchange).await.unwrap_or(Err(EngineError::TimedOut))
}

/// Sends a request, and returns the body of the response. An empty `body` is sent without a content type.
async fn exchange(base: &Uri, method: Method, path: &str, body: &[u8]) -> Result<Bytes, EngineError> {
    let authority = base.authority().map(ToString::to_string).unwrap_or_default();
    let host = base.host().unwrap_or_default().trim_matches(['[', ']']);
    let connected = TcpStream::connect((host, base.port_u16().unwrap_or(80))).await;
    let stream =
        connected.map_err(|source| EngineError::Unreachable { authority: authority.clone(), source })?;
    let mut request = Request::builder().method(method).uri(path).header(HOST, authority);
    if !body.is_empty() {
        request = request.header(CONTENT_TYPE, "application/json");
    }
    let request = request.body(Full::new(Bytes::copy_from_slice(body)));
    let request = request.map_err(|error| EngineError::Address(error.to_string()))?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let asking = async move {
        let response = sender.send_request(request).await?;
        let status = response.status();
        let body = Limited::new(response.into_body(), MAX_ANSWER).collect().await.map_err(|error| {
            if error.is::<LengthLimitError>() {
                return EngineError::Answer(format!("it is longer than {MAX_ANSWER} bytes"));
            }
            EngineError::Answer(error.to_string())
        })?;
        Ok::<_, EngineError>((status, body.to_bytes()))
    };
    // The connection ends with its only sender. The request reports its errors as well.
    let (answer, _) = tokio::join!(asking, connection);
    let (status, body) = answer?;
    if status.is_success() {
        return Ok(body);
    }
    let response = String::from_utf8_lossy(&body).chars().take(MAX_SHOWN).collect();
    Err(EngineError::Refused { status: status.as_u16(), response })
}
