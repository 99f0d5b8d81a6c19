//! Protected paths that are found after the sandbox was set up.

use std::{fmt, path::PathBuf, sync::Arc};

use async_trait::async_trait;

use crate::error::EnvError;

/// Finds paths to protect, such as the settings of repositories below a workspace.
///
/// [`SandboxedEnvironment::with_protected_source`](super::SandboxedEnvironment::with_protected_source) calls it before
/// anything can change, so that a large workspace need not be searched when a session starts.
#[async_trait]
pub trait ProtectedPathSource: fmt::Debug + Send + Sync {
    /// Returns the absolute paths. It is called for each change and each command: search once, and return the same paths
    /// again. Dropping the future ends the search, which the next call repeats.
    ///
    /// # Errors
    ///
    /// Errors of the environment as a whole. The command does not start then, and the file does not change.
    async fn protected_paths(&self) -> Result<Arc<[PathBuf]>, EnvError>;
}
