//! The error type of this crate.

use std::{
    error::Error,
    io,
    path::{Path, PathBuf},
};

/// An underlying error of a backend, in the backend's own type.
pub type BoxError = Box<dyn Error + Send + Sync + 'static>;

/// An error of an execution environment.
///
/// A command that exits with a failure is not an error: see [`ExecResult`](crate::ExecResult).
/// `Display` covers this level only; the cause is in [`source`](Error::source).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EnvError {
    /// The path does not exist.
    #[error("{} does not exist", path.display())]
    NotFound {
        /// The requested path, absolute.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The operating system denies access to the path.
    #[error("permission denied for {}", path.display())]
    PermissionDenied {
        /// The requested path, absolute.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The file is read-only: it lacks every write permission, or it belongs to the user and lacks the write permission of its
    /// owner.
    ///
    /// The superuser could write it and is refused as well.
    #[error("{} is read-only (mode {mode:04o}); `chmod u+w` makes it writable, if it is meant to change", path.display())]
    ReadOnlyFile {
        /// The requested path, absolute.
        path: PathBuf,
        /// The permission bits of the file.
        mode: u32,
    },
    /// Expected a file, found a directory.
    #[error("{} is a directory, expected a file", path.display())]
    IsADirectory {
        /// The directory.
        path: PathBuf,
    },
    /// Expected a directory, found something else.
    #[error("{} is not a directory", path.display())]
    NotADirectory {
        /// The requested path, absolute.
        path: PathBuf,
    },
    /// Expected a file, found a device, pipe or socket.
    #[error("{} is not a regular file", path.display())]
    NotARegularFile {
        /// The device, pipe or socket.
        path: PathBuf,
    },
    /// The path cannot name a file here, for instance because it contains a zero byte.
    #[error("{path:?} is not a valid path")]
    InvalidPath {
        /// The path as given.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A glob or a regular expression that does not parse.
    #[error("invalid pattern {pattern:?}")]
    InvalidPattern {
        /// The pattern as given.
        pattern: String,
        /// The error of the parser, with its position.
        source: BoxError,
    },
    /// Expected text, found a binary file.
    #[error("{} is a binary file (zero byte at offset {offset}), expected text", path.display())]
    NotText {
        /// The file.
        path: PathBuf,
        /// The offset of the first zero byte, in bytes.
        offset: u64,
    },
    /// The result exceeds the limit for one read.
    #[error("{} holds more than {limit} bytes, the limit for one read: ask for a part", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The limit, in bytes.
        limit: u64,
    },
    /// A listing exceeds the limit on entries.
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
        /// The error of the operating system.
        source: io::Error,
    },
    /// A process did not exit after it was killed.
    ///
    /// The kernel is holding on to it, usually in an operation on a dead file system.
    #[error("process {id} was killed and is still there")]
    Stuck {
        /// The id of the process.
        id: u32,
    },
    /// The environment cannot be reached; nothing was run there.
    #[error("cannot reach {environment}")]
    Unreachable {
        /// The environment, for instance a container or a remote host.
        environment: String,
        /// The cause; an [`SshError`](crate::SshError) for a remote host.
        source: Option<BoxError>,
    },
    /// The connection to the environment is lost, and with it the call in progress. Whether a later
    /// call reconnects depends on the environment.
    ///
    /// An environment never falls back to another one.
    #[error("the connection to {environment} is lost")]
    EnvironmentLost {
        /// The environment, for instance a container or a remote host.
        environment: String,
        /// The cause, if known.
        source: Option<BoxError>,
    },
    /// The environment does not support the operation.
    #[error("{environment} does not support {operation}")]
    Unsupported {
        /// The operation.
        operation: String,
        /// The environment.
        environment: String,
    },
    /// A wrapper refused the operation.
    #[error("{operation} is refused: {reason}")]
    Refused {
        /// The operation.
        operation: String,
        /// The rule that refuses it.
        reason: String,
    },
    /// Any other error of the operating system.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// The attempted action, as a verb: `read`, `write`, `list`.
        action: &'static str,
        /// The path of the attempted action.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl EnvError {
    /// Maps an I/O error to the variant for its kind.
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

    /// Returns true if the environment itself is out of reach, so that further operations will fail
    /// too.
    #[must_use]
    pub fn is_environment_failure(&self) -> bool {
        matches!(self, Self::EnvironmentLost { .. } | Self::Unreachable { .. })
    }

    /// Returns true if the process or the system has run out of descriptors.
    #[cfg(feature = "local")]
    pub(crate) fn is_shortage(&self) -> bool {
        use nix::errno::Errno;
        let first: &(dyn Error + 'static) = self;
        std::iter::successors(Some(first), |error: &&(dyn Error + 'static)| (*error).source())
            .filter_map(|error| error.downcast_ref::<io::Error>()?.raw_os_error())
            .any(|code| [Errno::EMFILE as i32, Errno::ENFILE as i32].contains(&code))
    }

    /// Returns the same error with its path replaced.
    pub(crate) fn map_path(mut self, map: impl FnOnce(&Path) -> PathBuf) -> Self {
        match &mut self {
            Self::NotFound { path, .. }
            | Self::PermissionDenied { path, .. }
            | Self::ReadOnlyFile { path, .. }
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

    /// Creates [`NotFound`](Self::NotFound) for environments without an operating-system error to
    /// pass on.
    #[must_use]
    pub fn not_found(path: &Path) -> Self {
        Self::NotFound { path: path.to_path_buf(), source: io::ErrorKind::NotFound.into() }
    }

    /// Creates [`InvalidPattern`](Self::InvalidPattern) with the parser's error as its source.
    #[must_use]
    pub fn invalid_pattern(pattern: &str, source: impl Into<BoxError>) -> Self {
        Self::InvalidPattern { pattern: pattern.to_owned(), source: source.into() }
    }
}
