//! The stored session of a conversation.

use std::fmt;

use async_trait::async_trait;
use pintle_agent::SessionId;
use pintle_host::failure::Failure;

/// Stored session in which a conversation takes place, and the other sessions of its store.
///
/// Dropping a future cancels its work. All functions fail if the store cannot be read.
#[async_trait]
pub trait StoredSession: fmt::Debug + Send + Sync {
    /// Returns the id of the only session whose id starts with `prefix`, if no other process runs it.
    ///
    /// The session of this conversation and running sessions are refused.
    async fn find(&self, prefix: &str) -> Result<SessionId, Failure>;

    /// Returns the changes in the directory since the beginning of the session, as a unified diff.
    async fn diff(&self) -> Result<String, Failure>;

    /// Returns the effects of a rewind to the first entries of the history, without doing it.
    async fn preview_rewind(&self, turns: usize) -> Result<String, Failure>;

    /// Returns the session as text, in the format of a file with this name.
    ///
    /// Fails for names without a known extension.
    async fn export(&self, name: &str) -> Result<String, Failure>;

    /// Returns a line for each of the newest sessions of the same directory.
    async fn neighbours(&self) -> Result<Vec<String>, Failure>;
}
