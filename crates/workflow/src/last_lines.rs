//! The end of a command's output, for messages.

use pintle_store::Blobs;

use crate::command_run::CommandRun;
use crate::repository::{RepositoryError, kept};

/// Lines of output that a message contains, the last ones.
const SHOWN_LINES: usize = 10;

/// Characters of each of them.
const SHOWN_CHARS: usize = 300;

impl CommandRun {
    /// Returns the end of its output for a message: the last lines that are not blank, each shortened.
    ///
    /// # Errors
    ///
    /// The output is not kept any more, or cannot be read.
    pub async fn last_lines(&self, blobs: &dyn Blobs) -> Result<Vec<String>, RepositoryError> {
        let Some(output) = &self.output else { return Ok(Vec::new()) };
        let output = kept(output, blobs).await?;
        Ok(last_lines(&String::from_utf8_lossy(&output)))
    }
}

fn last_lines(output: &str) -> Vec<String> {
    let lines: Vec<&str> = output.lines().filter(|line| !line.trim().is_empty()).collect();
    let first = lines.len().saturating_sub(SHOWN_LINES);
    lines.iter().skip(first).map(|line| line.chars().take(SHOWN_CHARS).collect()).collect()
}
