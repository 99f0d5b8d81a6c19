//! Task IDs, which are the ids of background commands.

use crate::error::{ToolError, ToolErrorKind};

/// Parses a task ID.
pub(super) fn parse_task_id(task_id: &str) -> Result<u64, ToolError> {
    task_id.trim().parse().map_err(|source: std::num::ParseIntError| {
        let message = format!(
            "`task_id`: expected the ID that Bash gave for a background command, such as \"1\", got {task_id:?}"
        );
        ToolError::new(ToolErrorKind::NotFound, message).with_source(source)
    })
}
