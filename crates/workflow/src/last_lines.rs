//! The end of a command's output, for messages.

use std::io;

use pintle_env::{Output, OutputLimits};
use pintle_evidence::command_run::CommandRun;
use pintle_store::Blobs;

use crate::repository::{RepositoryError, read_blob};

/// Number of last lines of output in a message.
const SHOWN_LINES: usize = 10;

/// Maximum length of each line, in characters.
const SHOWN_CHARS: usize = 300;

/// Returns the end of the output of a run for a message: the last lines that are not blank, each shortened.
///
/// # Errors
///
/// The store no longer has the output, or it cannot be read.
pub async fn read_last_lines(run: &CommandRun, blobs: &dyn Blobs) -> Result<Vec<String>, RepositoryError> {
    let Some(output) = &run.output else { return Ok(Vec::new()) };
    Ok(last_lines(Output::from(read_blob(output, blobs).await?))?)
}

/// Returns the end of output, as [`read_last_lines`].
pub(crate) fn last_lines(output: Output) -> io::Result<Vec<String>> {
    // Only the newest progress frame of each line shows how the command ended.
    let plain = output.plain_text(OutputLimits::default())?.unwrap_or(output);
    Ok(select_last_lines(&plain.to_text_lossy()?))
}

fn select_last_lines(output: &str) -> Vec<String> {
    let lines: Vec<&str> = output.lines().filter(|line| !line.trim().is_empty()).collect();
    let first = lines.len().saturating_sub(SHOWN_LINES);
    lines.iter().skip(first).map(|line| line.chars().take(SHOWN_CHARS).collect()).collect()
}

#[cfg(test)]
mod tests {
    use pintle_evidence::command_run::{BlobReference, CommandEnd};
    use pintle_store::{MemoryStore, SessionId, SessionStore as _, Summary, Timestamp};

    use super::*;

    #[tokio::test]
    async fn progress_frames_are_folded_before_lines_are_shortened() {
        let store = MemoryStore::new();
        let id = SessionId::new("t");
        let _writer = store.create(Summary::new(id.clone(), Timestamp::from_millis(0))).await.unwrap();
        let blobs = store.blobs(&id);
        let frames: String = (0..100).map(|percent| format!("Compiling {percent} %\r")).collect();
        let output = format!("{frames}\u{1b}[31merror: wrong\u{1b}[0m\n\nfailed\n");
        let hash = blobs.put(output.clone().into_bytes()).await.unwrap();
        let mut run = CommandRun::new(CommandEnd::Exited(1));
        run.output = Some(BlobReference { hash: hash.to_string(), bytes: output.len() as u64 });
        assert_eq!(read_last_lines(&run, blobs.as_ref()).await.unwrap(), ["error: wrong", "failed"]);
    }
}
