//! Errors of servers.

use std::error::Error as StdError;
use std::io;
use std::path::Path;

use pintle_env::EnvError;
use pintle_tools::{ToolError, ToolErrorKind};
use rmcp::ServiceError;
use rmcp::service::ClientInitializeError;
use rmcp::transport::auth::WWWAuthenticateParams;
use rmcp::transport::streamable_http_client::StreamableHttpError;

use crate::http_client::origin;
use crate::process_log::{ProcessLog, shorten};
use crate::spec::{ServerName, ServerSpec, ServerTransport};

/// Maximum number of characters of a server's own error message.
const MAX_SERVER_TEXT: usize = 2_000;

/// Maximum number of characters of the scopes in a message.
const MAX_SCOPE: usize = 200;

/// Reason why a request to a server failed.
#[derive(Debug, thiserror::Error)]
#[error("MCP server `{server}` {what}{explanation}")]
pub struct ServerError {
    server: String,
    kind: ServerErrorKind,
    what: String,
    explanation: String,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

/// Kind of a [`ServerError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerErrorKind {
    /// It could not be started or reached, or did not complete the handshake.
    Start,
    /// A user must [log in](crate::login()) to it, for the first time or again. The next use tries again.
    LoginRequired,
    /// It ended or sent invalid data during a request. The next use starts it again.
    Lost,
    /// It did not answer in time.
    TimedOut,
    /// It answered with an error.
    Answered,
    /// The call was cancelled.
    Cancelled,
    /// The execution environment is gone.
    EnvironmentLost,
}

impl ServerError {
    pub(crate) fn new(server: &ServerName, kind: ServerErrorKind, what: impl Into<String>) -> Self {
        let (what, explanation) = (what.into(), String::new());
        Self { server: server.to_string(), kind, what, explanation, source: None }
    }

    fn with_source(mut self, source: impl StdError + Send + Sync + 'static) -> Self {
        self.source = Some(Box::new(source));
        self
    }

    /// Adds the explanations in the log of the process.
    pub(crate) fn with_process_log(mut self, process_log: &ProcessLog) -> Self {
        self.explanation = process_log.explanation();
        self
    }

    /// Adds that the sandbox hides a file of the server.
    pub(crate) fn with_hidden_path(mut self, path: &Path) -> Self {
        let path = path.display();
        self.explanation.push_str(&format!(
            "; `{path}` exists, but the sandbox hides it: move it to another directory, or run the server outside of the sandbox"
        ));
        self
    }

    pub(crate) fn spawn(server: &ServerName, error: EnvError) -> Self {
        let is_lost = matches!(error, EnvError::EnvironmentLost { .. } | EnvError::Unreachable { .. });
        let kind = if is_lost { ServerErrorKind::EnvironmentLost } else { ServerErrorKind::Start };
        Self::new(server, kind, format!("could not be started: {}", with_cause(&error))).with_source(error)
    }

    pub(crate) fn handshake(
        spec: &ServerSpec,
        error: ClientInitializeError,
        process_log: &ProcessLog,
    ) -> Self {
        if let Some(challenge) = error.auth_challenge() {
            return Self::refused(spec, challenge);
        }
        let start = |why: String| Self::new(&spec.name, ServerErrorKind::Start, why);
        if let Some(failure) = connect_failure(spec, failed_start(&error)) {
            // The transport error is not its source: it names Rust types, and the whole URL, which may contain a secret.
            return start(format!("cannot be reached: {failure}"));
        }
        let why = match process_log.how_it_ended() {
            Some(how) => format!("ended during the handshake: {how}"),
            None => format!("did not complete the handshake: {}", with_cause(failed_start(&error))),
        };
        start(why).with_source(error).with_process_log(process_log)
    }

    /// Returns the error for a request that the server does not authorize. The transport error is not its source, since
    /// it may contain a long text of the server.
    fn refused(spec: &ServerSpec, challenge: &str) -> Self {
        let has_header =
            matches!(&spec.transport, ServerTransport::Http(server) if server.has_authorization());
        if has_header {
            let what = "refuses its declared `Authorization` header";
            return Self::new(&spec.name, ServerErrorKind::Start, what);
        }
        let what = match challenge_of(spec, challenge) {
            Some(challenge) if challenge.is_insufficient_scope() => match challenge.scope {
                Some(scope) => {
                    format!("requires a new login with the scope `{}`", shorten(scope.trim(), MAX_SCOPE))
                }
                None => "requires a new login with further scopes".to_owned(),
            },
            _ => "requires a login".to_owned(),
        };
        let hint = match &spec.transport {
            ServerTransport::Http(server) => server.login_hint(),
            ServerTransport::Stdio(_) => None,
        };
        let hint = hint.map(|hint| format!(": {hint}")).unwrap_or_default();
        Self::new(&spec.name, ServerErrorKind::LoginRequired, what + &hint)
    }

    pub(crate) fn service(spec: &ServerSpec, error: ServiceError, process_log: &ProcessLog) -> Self {
        if let Some(challenge) = error.auth_challenge() {
            return Self::refused(spec, challenge);
        }
        let server = &spec.name;
        let lost =
            |what: String| Self::new(server, ServerErrorKind::Lost, what).with_process_log(process_log);
        #[expect(clippy::wildcard_enum_match_arm, reason = "whatever else fails is the connection")]
        let built = match &error {
            ServiceError::McpError(data) => {
                let text = shorten(&data.message, MAX_SERVER_TEXT);
                Self::new(
                    server,
                    ServerErrorKind::Answered,
                    format!("answered with error {}: {text}", data.code.0),
                )
            }
            ServiceError::Timeout { timeout } => {
                let what = format!("did not answer within {} s", timeout.as_secs_f64());
                Self::new(server, ServerErrorKind::TimedOut, what).with_process_log(process_log)
            }
            ServiceError::Cancelled { .. } => {
                Self::new(server, ServerErrorKind::Cancelled, "was told to stop the call")
            }
            ServiceError::InputRequiredRoundsExceeded { max_rounds } => Self::new(
                server,
                ServerErrorKind::Answered,
                format!("asked for input more than {max_rounds} times"),
            ),
            ServiceError::UnexpectedResponse => Self::new(
                server,
                ServerErrorKind::Answered,
                "answered with something else than the result that was asked for",
            ),
            other => match process_log.how_it_ended() {
                Some(how) => lost(format!("is gone: {how}")),
                None => {
                    let failed = failed_request(other);
                    if let Some(failure) = connect_failure(spec, failed) {
                        return lost(format!("is gone: {failure}"));
                    }
                    lost(format!("is gone: {}", with_cause(failed)))
                }
            },
        };
        built.with_source(error)
    }

    /// Returns the kind of the error.
    #[must_use]
    pub fn kind(&self) -> ServerErrorKind {
        self.kind
    }
}

impl From<ServerError> for ToolError {
    fn from(error: ServerError) -> Self {
        let kind = match error.kind {
            ServerErrorKind::TimedOut => ToolErrorKind::TimedOut,
            ServerErrorKind::Cancelled => ToolErrorKind::Cancelled,
            ServerErrorKind::EnvironmentLost => ToolErrorKind::EnvironmentLost,
            ServerErrorKind::Start
            | ServerErrorKind::LoginRequired
            | ServerErrorKind::Lost
            | ServerErrorKind::Answered => ToolErrorKind::Failed,
        };
        Self::new(kind, error.to_string()).with_source(error)
    }
}

/// Returns the parameters of a server's refusal to authorize a request.
fn challenge_of(spec: &ServerSpec, challenge: &str) -> Option<WWWAuthenticateParams> {
    let ServerTransport::Http(server) = &spec.transport else { return None };
    Some(WWWAuthenticateParams::parse(challenge, server.parsed_url()))
}

/// Returns the error of the transport, if it is the cause: the message of the outer error names Rust types.
fn failed_start(error: &ClientInitializeError) -> &(dyn StdError + 'static) {
    if let ClientInitializeError::TransportError { error, .. } = error {
        return error.error.as_ref();
    }
    if let ClientInitializeError::LegacyFallbackFailed { fallback, .. } = error {
        return failed_start(fallback);
    }
    error
}

/// As [`failed_start`], for a request.
fn failed_request(error: &ServiceError) -> &(dyn StdError + 'static) {
    if let ServiceError::TransportSend(failed) = error {
        return failed.error.as_ref();
    }
    error
}

/// Returns why a server could not be connected to; `None` for other errors. The path of its URL may contain a secret.
fn connect_failure(spec: &ServerSpec, error: &(dyn StdError + 'static)) -> Option<String> {
    let ServerTransport::Http(server) = &spec.transport else { return None };
    let StreamableHttpError::Client(failed) = error.downcast_ref::<StreamableHttpError<reqwest::Error>>()?
    else {
        return None;
    };
    if !failed.is_connect() {
        return None;
    }
    let mut cause: &(dyn StdError + 'static) = failed;
    while let Some(next) = cause.source() {
        cause = next;
    }
    Some(format!("cannot connect to {}: {}", origin(server.parsed_url()), message_of(cause)))
}

/// Returns the message of a cause. The message of an `io::Error` with only a kind calls a missing file an entity.
fn message_of(cause: &(dyn StdError + 'static)) -> String {
    let is_bare = |error: &&io::Error| error.raw_os_error().is_none() && error.get_ref().is_none();
    match cause.downcast_ref::<io::Error>().filter(is_bare).map(io::Error::kind) {
        Some(io::ErrorKind::NotFound) => "no such file or directory".to_owned(),
        Some(_) | None => cause.to_string(),
    }
}

/// Returns the message of an error with the messages of its causes, without repetitions.
fn with_cause(error: &(dyn StdError + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let message = message_of(cause);
        if !text.contains(&message) {
            text = format!("{text}: {message}");
        }
        next = cause.source();
    }
    shorten(&text, MAX_SERVER_TEXT)
}
