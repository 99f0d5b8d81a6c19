//! Checkpoints of the workspace, taken around calls that change it.

use std::fmt;
use std::io;

use async_trait::async_trait;
use pintle_env::ExecutionEnvironment;

use crate::protocol::Checkpoint;

/// Takes checkpoints of the files that a session works on, so that they can be compared and restored later.
///
/// A session takes a checkpoint before and after each call that changes files, runs a command or spawns a subagent.
/// Concurrent calls share one where possible. A checkpoint is recorded before the call that it precedes.
#[async_trait]
pub trait Checkpoints: fmt::Debug + Send + Sync + 'static {
    /// Takes a checkpoint of the working directory of `env`, with everything below it. Must be bounded in time: the call
    /// waits for it.
    ///
    /// # Errors
    ///
    /// Any error; it is logged, and the call runs without a checkpoint.
    async fn take(&self, env: &dyn ExecutionEnvironment) -> io::Result<Checkpoint>;
}
