//! Request of a tool call to spawn a subagent.

use pintle_tools::ToolError;

use crate::protocol::SubagentSettings;

/// Arguments of a spawning call, independent of the tool's own parameters.
#[derive(Clone, Debug)]
pub(super) struct SpawnRequest {
    pub(super) task: String,
    pub(super) settings: SubagentSettings,
}

impl SpawnRequest {
    /// Creates a request with the defaults of every tool.
    pub(super) fn new(task: String) -> Self {
        Self { task, settings: SubagentSettings::default() }
    }

    /// Checks the arguments, as far as this needs no state of the session.
    ///
    /// # Errors
    ///
    /// A blank task, with a message for the model.
    pub(super) fn validate(&self) -> Result<(), ToolError> {
        if self.task.trim().is_empty() {
            return Err(ToolError::invalid_arguments("the task is empty; say what the subagent should do"));
        }
        Ok(())
    }
}
