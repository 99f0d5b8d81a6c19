//! A check before the process of a server starts.

use async_trait::async_trait;
use pintle_env::ExecutionEnvironment;

use crate::spec::ServerSpec;

/// Decides right before each start of a server's process whether it may start: at its first use, and after the server has
/// died. The server's files may have changed since it was declared.
#[async_trait]
pub trait StartCheck: Send + Sync + 'static {
    /// Returns why the server must not start, as the end of a sentence: "cannot be started: …". Dropping the future is safe.
    ///
    /// # Errors
    ///
    /// The reason.
    async fn check(&self, server: &ServerSpec, env: &dyn ExecutionEnvironment) -> Result<(), String>;
}
