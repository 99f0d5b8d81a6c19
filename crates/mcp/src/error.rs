//! Errors of servers.

use std::error::Error as StdError;

use pintle_env::EnvError;
use pintle_tools::{ToolError, ToolErrorKind};
use rmcp::ServiceError;
use rmcp::service::ClientInitializeError;

use crate::diary::{Diary, shortened};
use crate::spec::ServerName;

/// Characters that a server's own message of an error may have.
const MAX_SERVER_TEXT: usize = 2_000;

/// Reason why a server did not do what it was asked for.
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
    /// It ended, or what it sends makes no sense, while it was asked. It is started again when it is next used.
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

    fn caused(mut self, source: impl StdError + Send + Sync + 'static) -> Self {
        self.source = Some(Box::new(source));
        self
    }

    /// Adds what the process did besides.
    pub(crate) fn explained(mut self, diary: &Diary) -> Self {
        self.explanation = diary.explanation();
        self
    }

    pub(crate) fn spawn(server: &ServerName, error: EnvError) -> Self {
        let is_lost = matches!(error, EnvError::EnvironmentLost { .. } | EnvError::Unreachable { .. });
        let kind = if is_lost { ServerErrorKind::EnvironmentLost } else { ServerErrorKind::Start };
        Self::new(server, kind, format!("could not be started: {}", with_cause(&error))).caused(error)
    }

    pub(crate) fn handshake(server: &ServerName, error: ClientInitializeError, diary: &Diary) -> Self {
        let why = match diary.how_it_ended() {
            Some(how) => format!("ended during the handshake: {how}"),
            None => format!("did not complete the handshake: {}", with_cause(&error)),
        };
        Self::new(server, ServerErrorKind::Start, why).caused(error).explained(diary)
    }

    pub(crate) fn service(server: &ServerName, error: ServiceError, diary: &Diary) -> Self {
        let lost = |what: String| Self::new(server, ServerErrorKind::Lost, what).explained(diary);
        #[expect(clippy::wildcard_enum_match_arm, reason = "whatever else fails is the connection")]
        let built = match &error {
            ServiceError::McpError(data) => {
                let text = shortened(&data.message, MAX_SERVER_TEXT);
                Self::new(
                    server,
                    ServerErrorKind::Answered,
                    format!("answered with error {}: {text}", data.code.0),
                )
            }
            ServiceError::Timeout { timeout } => {
                let what = format!("did not answer within {} s", timeout.as_secs_f64());
                Self::new(server, ServerErrorKind::TimedOut, what).explained(diary)
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
            other => match diary.how_it_ended() {
                Some(how) => lost(format!("is gone: {how}")),
                None => lost(format!("is gone: {}", with_cause(other))),
            },
        };
        built.caused(error)
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
            ServerErrorKind::Start | ServerErrorKind::Lost | ServerErrorKind::Answered => {
                ToolErrorKind::Failed
            }
        };
        Self::new(kind, error.to_string()).with_source(error)
    }
}

/// Returns the message of an error with those of its causes that it does not repeat.
fn with_cause(error: &(dyn StdError + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let message = cause.to_string();
        if !text.contains(&message) {
            text = format!("{text}: {message}");
        }
        next = cause.source();
    }
    shortened(&text, MAX_SERVER_TEXT)
}
