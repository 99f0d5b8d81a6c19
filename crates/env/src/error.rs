//! The error of this crate.

use std::{
    error::Error,
    io,
    path::{Path, PathBuf},
};

/// A cause that a back-end reports in its own type.
pub type BoxError = Box<dyn Error + Send + Sync + 'static>;

/// What can go wrong in an execution environment.
///
/// A command that exits with a failure is not an error: see [`ExecResult`](crate::ExecResult).
/// The text names this level only; the cause is in [`source`](Error::source).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EnvError {
    /// Nothing exists at the path.
    #[error("{} does not exist", path.display())]
    NotFound {
        /// The path that was asked for, absolute.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The system refuses access to the path.
    #[error("permission denied for {}", path.display())]
    PermissionDenied {
        /// The path that was asked for, absolute.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file was expected and a directory found.
    #[error("{} is a directory, expected a file", path.display())]
    IsADirectory {
        /// The directory.
        path: PathBuf,
    },
    /// A directory was expected and something else found.
    #[error("{} is not a directory", path.display())]
    NotADirectory {
        /// The path that was asked for, absolute.
        path: PathBuf,
    },
    /// A file was expected and a device, pipe or socket found.
    #[error("{} is not a regular file", path.display())]
    NotARegularFile {
        /// The device, pipe or socket.
        path: PathBuf,
    },
    /// The path cannot name a file here, for instance because it contains a zero byte.
    #[error("{path:?} is not a valid path")]
    InvalidPath {
        /// The path as it was given.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A glob or a regular expression that does not parse.
    #[error("invalid pattern {pattern:?}")]
    InvalidPattern {
        /// The pattern as it was given.
        pattern: String,
        /// Where and why it fails.
        source: BoxError,
    },
    /// Text was asked for and the file is binary.
    #[error("{} is a binary file (zero byte at offset {offset}), expected text", path.display())]
    NotText {
        /// The file.
        path: PathBuf,
        /// The offset of the first zero byte, in bytes.
        offset: u64,
    },
    /// The answer would not fit the limit for one read.
    #[error("{} holds more than {limit} bytes, the limit for one read: ask for a part", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The limit, in bytes.
        limit: u64,
    },
    /// A listing would not fit the limit for one answer.
    #[error("more than {limit} entries below {}: narrow the pattern, the path or the depth", path.display())]
    TooManyEntries {
        /// The directory that was listed.
        path: PathBuf,
        /// The limit, in entries.
        limit: usize,
    },
    /// A process could not be started.
    #[error("cannot start {program:?}")]
    Spawn {
        /// The program, without its arguments.
        program: String,
        /// What the system said.
        source: io::Error,
    },
    /// A process did not go away although it was killed.
    ///
    /// The kernel holds it, as a rule in an operation on a dead file system.
    #[error("process {id} was killed and is still there")]
    Stuck {
        /// The id of the process.
        id: u32,
    },
    /// There is no way to the environment: nothing was run there.
    #[error("cannot reach {environment}")]
    Unreachable {
        /// Which environment, for instance a container or a host.
        environment: String,
        /// Why not; for a host a [`SshError`](crate::SshError).
        source: Option<BoxError>,
    },
    /// The connection to the environment is gone, and with it the call that ran. Whether a later call connects again
    /// is told by the environment.
    ///
    /// An environment never falls back to another one instead.
    #[error("the connection to {environment} is lost")]
    EnvironmentLost {
        /// Which environment, for instance a container or a host.
        environment: String,
        /// What was noticed.
        source: Option<BoxError>,
    },
    /// The environment has no such operation.
    #[error("{environment} does not support {operation}")]
    Unsupported {
        /// The operation.
        operation: String,
        /// Which environment.
        environment: String,
    },
    /// A wrapper forbids the operation.
    #[error("{operation} is refused: {reason}")]
    Refused {
        /// The operation.
        operation: String,
        /// The rule that forbids it.
        reason: String,
    },
    /// Any other failure of the system.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What was tried, as a verb: `read`, `write`, `list`.
        action: &'static str,
        /// The path that it was tried on.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl EnvError {
    /// Sorts a failure of the system into the variant for its kind.
    ///
    /// `action` is a verb that completes "cannot … PATH".
    #[must_use]
    #[expect(clippy::wildcard_enum_match_arm, reason = "the standard library's kinds grow")]
    pub fn from_io(action: &'static str, path: &Path, source: io::Error) -> Self {
        let path = path.to_path_buf();
        match source.kind() {
            io::ErrorKind::NotFound => Self::NotFound { path, source },
            io::ErrorKind::PermissionDenied => Self::PermissionDenied { path, source },
            io::ErrorKind::IsADirectory => Self::IsADirectory { path },
            io::ErrorKind::NotADirectory => Self::NotADirectory { path },
            io::ErrorKind::InvalidInput | io::ErrorKind::InvalidFilename => {
                Self::InvalidPath { path, source }
            }
            _ => Self::Io { action, path, source },
        }
    }

    /// Whether the environment itself is out of reach, so that whatever is tried next will fail as well.
    pub(crate) fn is_of_environment(&self) -> bool {
        matches!(self, Self::EnvironmentLost { .. } | Self::Unreachable { .. })
    }

    /// The same failure with another path in it.
    pub(crate) fn map_path(mut self, map: impl FnOnce(&Path) -> PathBuf) -> Self {
        match &mut self {
            Self::NotFound { path, .. }
            | Self::PermissionDenied { path, .. }
            | Self::IsADirectory { path }
            | Self::NotADirectory { path }
            | Self::NotARegularFile { path }
            | Self::InvalidPath { path, .. }
            | Self::NotText { path, .. }
            | Self::TooLarge { path, .. }
            | Self::TooManyEntries { path, .. }
            | Self::Io { path, .. } => *path = map(path),
            Self::InvalidPattern { .. }
            | Self::Spawn { .. }
            | Self::Stuck { .. }
            | Self::Unreachable { .. }
            | Self::EnvironmentLost { .. }
            | Self::Unsupported { .. }
            | Self::Refused { .. } => {}
        }
        self
    }

    /// Nothing exists at `path`, for environments that have no error of a system to pass on.
    #[must_use]
    pub fn not_found(path: &Path) -> Self {
        Self::NotFound { path: path.to_path_buf(), source: io::ErrorKind::NotFound.into() }
    }

    /// A pattern that does not parse, with the parser's own error as its cause.
    #[must_use]
    pub fn invalid_pattern(pattern: &str, source: impl Into<BoxError>) -> Self {
        Self::InvalidPattern { pattern: pattern.to_owned(), source: source.into() }
    }
}
