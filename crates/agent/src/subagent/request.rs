//! Request of a tool call to spawn a subagent.

use pintle_tools::ToolError;

/// Arguments of a spawning call, independent of the tool's own parameters.
#[derive(Clone, Debug)]
pub(super) struct SpawnRequest {
    pub(super) task: String,
    /// Directory below the parent's working directory; the parent's by default.
    pub(super) working_dir: Option<String>,
    /// The parent's model by default.
    pub(super) model: Option<String>,
    /// Limit on model responses; 0 is unlimited.
    pub(super) max_turns: u64,
    pub(super) role: Role,
}

/// Permissions of a subagent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Has the same permissions as its parent.
    Worker,
    /// Must not change files.
    Explorer,
}

impl SpawnRequest {
    /// Creates a request with the defaults of every tool.
    pub(super) fn new(task: String) -> Self {
        Self { task, working_dir: None, model: None, max_turns: 0, role: Role::Worker }
    }

    /// Checks what needs no state of the session.
    ///
    /// # Errors
    ///
    /// A blank task, in words for the model.
    pub(super) fn validate(&self) -> Result<(), ToolError> {
        if self.task.trim().is_empty() {
            return Err(ToolError::invalid_arguments("the task is empty; say what the subagent should do"));
        }
        Ok(())
    }
}
