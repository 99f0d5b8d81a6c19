//! Errors of checkpoints.

use pintle_env::EnvError;

use crate::error::StoreError;
use crate::hash::Hash;

/// Reason why a checkpoint cannot be taken, loaded or restored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// An operation of the environment failed.
    #[error("the workspace is not accessible")]
    Environment(#[source] EnvError),
    /// An operation of the store failed.
    #[error("the contents of the checkpoint are not accessible")]
    Store(#[source] StoreError),
    /// A content, or the manifest, was removed from the store or was never in it.
    #[error("the value {0} of the checkpoint was removed")]
    Removed(Hash),
    /// The blob is not a manifest.
    #[error("invalid manifest of a checkpoint at line {line}: {problem}")]
    InvalidManifest {
        /// Number of the line, from 1.
        line: usize,
        /// The problem.
        problem: &'static str,
    },
    /// The manifest was written by a newer version.
    #[error("the manifest of the checkpoint has version {found}; this program reads up to {expected}")]
    Version {
        /// Version of the manifest.
        found: u64,
        /// Newest version that is read.
        expected: u64,
    },
    /// Git failed, with its message.
    #[error("git failed: {0}")]
    Git(String),
}

impl CheckpointError {
    /// Returns true if further operations will fail too.
    pub(super) fn is_environment_failure(&self) -> bool {
        matches!(self, Self::Environment(EnvError::EnvironmentLost { .. } | EnvError::Unreachable { .. }))
    }
}

impl From<EnvError> for CheckpointError {
    fn from(error: EnvError) -> Self {
        Self::Environment(error)
    }
}

impl From<StoreError> for CheckpointError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}
