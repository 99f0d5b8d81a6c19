//! Failures for the model, and failures for whoever registers a tool.

use std::error::Error as StdError;
use std::fmt;

use pintle_env::EnvError;
use serde::{Deserialize, Serialize};

/// What kind of failure a call met (loop specification, appendix B).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolErrorKind {
    /// No tool of this name is registered.
    UnknownTool,
    /// The arguments do not fit the tool's schema.
    InvalidArguments,
    /// A gate or a person said no.
    Denied,
    /// A file or directory is not there.
    NotFound,
    /// The system refuses access.
    PermissionDenied,
    /// The text to replace is missing or stands in several places, or a patch does not apply.
    EditConflict,
    /// The call was cancelled while it ran.
    Cancelled,
    /// It ran over its limit of time and was stopped.
    TimedOut,
    /// The place where tools run is gone. The only kind that ends the turn.
    EnvironmentLost,
    /// Anything else.
    Failed,
}

/// A failed call, in words for the model.
#[derive(Debug)]
pub struct ToolError {
    kind: ToolErrorKind,
    message: String,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl ToolError {
    /// A failure with what the model should read.
    #[must_use]
    pub fn new(kind: ToolErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    /// What the model reads.
    #[must_use]
    pub fn for_model(&self) -> &str {
        &self.message
    }

    /// The kind of failure.
    #[must_use]
    pub fn kind(&self) -> ToolErrorKind {
        self.kind
    }

    /// Whether the turn cannot go on.
    #[must_use]
    pub fn is_fatal(&self) -> bool {
        self.kind == ToolErrorKind::EnvironmentLost
    }

    /// With the cause.
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
    /// The environment's sentence, with the system's own below it, since the model sees no `source`.
    fn from(error: EnvError) -> Self {
        #[expect(
            clippy::wildcard_enum_match_arm,
            reason = "whatever else there is or comes is a plain failure here"
        )]
        let kind = match &error {
            EnvError::NotFound { .. } => ToolErrorKind::NotFound,
            EnvError::PermissionDenied { .. } | EnvError::Refused { .. } => ToolErrorKind::PermissionDenied,
            EnvError::InvalidPattern { .. } | EnvError::InvalidPath { .. } => ToolErrorKind::InvalidArguments,
            EnvError::EnvironmentLost { .. } | EnvError::Unreachable { .. } => ToolErrorKind::EnvironmentLost,
            _ => ToolErrorKind::Failed,
        };
        let mut message = error.to_string();
        // "does not exist" needs no "No such file or directory" after it.
        if kind != ToolErrorKind::NotFound
            && let Some(source) = error.source()
        {
            message = format!("{message}: {source}");
        }
        Self::new(kind, message).with_source(error)
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
    /// The tool of this name, and why.
    #[must_use]
    pub fn refused(name: impl Into<String>, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self { name: name.into(), source: source.into() }
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::path::Path;

    use super::*;

    #[test]
    fn an_environments_error_keeps_its_kind_its_cause_and_what_the_system_said() {
        let from_io = |kind: io::ErrorKind| EnvError::from_io("read", Path::new("/f"), io::Error::from(kind));
        let lost =
            || EnvError::EnvironmentLost { environment: "box".into(), source: Some("cable cut".into()) };
        let rows = [
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
        for (error, kind, expected) in rows {
            let error = ToolError::from(error);
            assert_eq!((error.kind(), error.for_model()), (kind, expected));
            assert!(error.source().is_some_and(|source| source.is::<EnvError>()), "{expected}");
            assert_eq!(error.is_fatal(), kind == ToolErrorKind::EnvironmentLost, "{expected}");
        }
    }
}
