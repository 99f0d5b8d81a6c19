//! Checkpoints of the files that a session works on.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// State of all files of a workspace at one moment, kept outside the session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Checkpoint {
    /// Id.
    pub id: String,
    /// Number of files, directories and links that it contains.
    pub entries: u64,
    /// Description of the missing parts; `None` if it is complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial: Option<String>,
}

/// Why a checkpoint was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CheckpointReason {
    /// A call is about to change files, or to run a command.
    BeforeCall,
    /// Such a call has ended. Later changes are not attributed to it.
    AfterCall,
    /// Files are about to be restored from another checkpoint. This checkpoint can undo that.
    BeforeRewind,
    /// Files were restored from another checkpoint.
    AfterRewind,
}

impl Checkpoint {
    /// Creates a complete checkpoint.
    #[must_use]
    pub fn new(id: impl Into<String>, entries: u64) -> Self {
        Self { id: id.into(), entries, partial: None }
    }

    /// Sets the description of the missing parts.
    #[must_use]
    pub fn with_partial(mut self, partial: Option<String>) -> Self {
        self.partial = partial;
        self
    }
}
