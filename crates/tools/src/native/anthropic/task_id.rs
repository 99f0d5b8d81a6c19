//! The ID of a task, which is the number of a background command.

use crate::error::{ToolError, ToolErrorKind};

/// The number that an ID stands for.
pub(super) fn number_of(task_id: &str) -> Result<u64, ToolError> {
    task_id.trim().parse().map_err(|source: std::num::ParseIntError| {
        let message = format!(
            "`task_id`: expected the ID that Bash gave for a background command, such as \"1\", got {task_id:?}"
        );
        ToolError::new(ToolErrorKind::NotFound, message).with_source(source)
    })
}
