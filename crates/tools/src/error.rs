//! Errors of calls, and errors of registration.

use std::error::Error as StdError;
use std::{fmt, io};

use pintle_env::EnvError;
use pintle_llm::error_chain;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The kind of a failed call (loop specification, appendix B).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolErrorKind {
    /// No tool with this name is registered.
    UnknownTool,
    /// The arguments do not fit the tool's schema.
    InvalidArguments,
    /// A gate or a person denied the call.
    Denied,
    /// A file or directory does not exist.
    NotFound,
    /// The system denied access.
    PermissionDenied,
    /// The text to replace is missing or occurs several times, or a patch does not apply.
    EditConflict,
    /// The call was cancelled while it ran.
    Cancelled,
    /// The call exceeded its time limit and was stopped.
    TimedOut,
    /// The execution environment is gone. The only kind that ends the turn.
    EnvironmentLost,
    /// Anything else.
    Failed,
}

/// An error of a call, with a message for the model.
#[derive(Debug)]
pub struct ToolError {
    kind: ToolErrorKind,
    message: String,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl ToolError {
    /// Creates an error with the message for the model.
    #[must_use]
    pub fn new(kind: ToolErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    /// Creates an error of kind [`ToolErrorKind::Failed`].
    #[must_use]
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(ToolErrorKind::Failed, message)
    }

    /// Creates an error of kind [`ToolErrorKind::InvalidArguments`].
    #[must_use]
    pub fn invalid_arguments(message: impl Into<String>) -> Self {
        Self::new(ToolErrorKind::InvalidArguments, message)
    }

    /// Returns the message for the model.
    #[must_use]
    pub fn for_model(&self) -> &str {
        &self.message
    }

    /// Returns the kind of the error.
    #[must_use]
    pub fn kind(&self) -> ToolErrorKind {
        self.kind
    }

    /// Returns whether the error ends the turn.
    #[must_use]
    pub fn is_fatal(&self) -> bool {
        self.kind == ToolErrorKind::EnvironmentLost
    }

    /// Creates the error of a tool that may return any error. A [`ToolError`], an [`EnvError`] and an [`io::Error`] keep
    /// their kind. The message of any other error includes its causes, since the model does not see them.
    pub(crate) fn from_boxed(error: Box<dyn StdError + Send + Sync>) -> Self {
        let error = match error.downcast::<Self>() {
            Ok(error) => return *error,
            Err(error) => error,
        };
        let error = match error.downcast::<EnvError>() {
            Ok(error) => return (*error).into(),
            Err(error) => error,
        };
        match error.downcast::<io::Error>() {
            Ok(error) => (*error).into(),
            Err(error) => Self::failed(error_chain(error.as_ref())).with_source(error),
        }
    }

    /// Sets the cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl StdError for ToolError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn StdError + 'static))
    }
}

impl From<EnvError> for ToolError {
    /// Includes the message of the source, since the model does not see it.
    fn from(error: EnvError) -> Self {
        #[expect(
            clippy::wildcard_enum_match_arm,
            reason = "any other kind, now or later, is a plain failure"
        )]
        let kind = match &error {
            EnvError::NotFound { .. } => ToolErrorKind::NotFound,
            EnvError::PermissionDenied { .. } | EnvError::ReadOnlyFile { .. } | EnvError::Refused { .. } => {
                ToolErrorKind::PermissionDenied
            }
            EnvError::InvalidPattern { .. } | EnvError::InvalidPath { .. } => ToolErrorKind::InvalidArguments,
            EnvError::EnvironmentLost { .. } | EnvError::Unreachable { .. } => ToolErrorKind::EnvironmentLost,
            _ => ToolErrorKind::Failed,
        };
        let mut message = error.to_string();
        // "does not exist" needs no "No such file or directory".
        if kind != ToolErrorKind::NotFound
            && let Some(source) = error.source()
        {
            message = format!("{message}: {source}");
        }
        Self::new(kind, message).with_source(error)
    }
}

impl From<io::Error> for ToolError {
    fn from(error: io::Error) -> Self {
        #[expect(clippy::wildcard_enum_match_arm, reason = "any other kind is a plain failure")]
        let kind = match error.kind() {
            io::ErrorKind::NotFound => ToolErrorKind::NotFound,
            io::ErrorKind::PermissionDenied => ToolErrorKind::PermissionDenied,
            _ => ToolErrorKind::Failed,
        };
        Self::new(kind, error_chain(&error)).with_source(error)
    }
}

/// A tool that cannot be registered.
#[derive(Debug, thiserror::Error)]
#[error("tool `{name}` cannot be registered")]
pub struct DefinitionError {
    name: String,
    source: Box<dyn StdError + Send + Sync>,
}

impl DefinitionError {
    /// Creates the error for the tool with this name, with its cause.
    #[must_use]
    pub fn refused(name: impl Into<String>, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self { name: name.into(), source: source.into() }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("the ticket cannot be read")]
    struct TicketError(#[source] io::Error);

    #[test]
    fn any_error_of_a_tool_becomes_a_message_with_its_causes() {
        let not_found = || io::Error::from(io::ErrorKind::NotFound);
        let denied = ToolError::new(ToolErrorKind::Denied, "not today");
        let lost = EnvError::EnvironmentLost { environment: "box".into(), source: None };
        let cases: [(Box<dyn StdError + Send + Sync>, ToolErrorKind, &str); 6] = [
            (denied.into(), ToolErrorKind::Denied, "not today"),
            (lost.into(), ToolErrorKind::EnvironmentLost, "the connection to box is lost"),
            (not_found().into(), ToolErrorKind::NotFound, "entity not found"),
            (io::Error::other("cable cut").into(), ToolErrorKind::Failed, "cable cut"),
            (
                TicketError(not_found()).into(),
                ToolErrorKind::Failed,
                "the ticket cannot be read: entity not found",
            ),
            ("There is no ticket 70.".into(), ToolErrorKind::Failed, "There is no ticket 70."),
        ];
        for (error, kind, message) in cases {
            let error = ToolError::from_boxed(error);
            assert_eq!((error.kind(), error.for_model()), (kind, message));
        }
    }

    #[test]
    fn an_environment_error_keeps_kind_cause_and_message() {
        let from_io = |kind: io::ErrorKind| EnvError::from_io("read", Path::new("/f"), io::Error::from(kind));
        let lost =
            || EnvError::EnvironmentLost { environment: "box".into(), source: Some("cable cut".into()) };
        let cases = [
            (from_io(io::ErrorKind::NotFound), ToolErrorKind::NotFound, "/f does not exist"),
            (
                from_io(io::ErrorKind::PermissionDenied),
                ToolErrorKind::PermissionDenied,
                "permission denied for /f: permission denied",
            ),
            (from_io(io::ErrorKind::StorageFull), ToolErrorKind::Failed, "cannot read /f: no storage space"),
            (
                EnvError::invalid_pattern("a(", "unclosed group"),
                ToolErrorKind::InvalidArguments,
                "invalid pattern \"a(\": unclosed group",
            ),
            (lost(), ToolErrorKind::EnvironmentLost, "the connection to box is lost: cable cut"),
            (
                EnvError::IsADirectory { path: "/f".into() },
                ToolErrorKind::Failed,
                "/f is a directory, expected a file",
            ),
        ];
        for (error, kind, expected) in cases {
            let error = ToolError::from(error);
            assert_eq!((error.kind(), error.for_model()), (kind, expected));
            assert!(error.source().is_some_and(|source| source.is::<EnvError>()), "{expected}");
            assert_eq!(error.is_fatal(), kind == ToolErrorKind::EnvironmentLost, "{expected}");
        }
    }
}
