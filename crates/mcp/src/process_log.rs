//! Standard error, unexpected output and end of a server process, for error messages.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum number of bytes of standard error that are kept, the last ones.
const MAX_STDERR: usize = 4 << 10;

/// Maximum number of characters of standard error in a message.
const SHOWN_CHARS: usize = 500;

/// Maximum number of characters of an unexpected line of standard output in a message.
const SHOWN_LINE: usize = 120;

/// Log of a server process. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProcessLog(Arc<Mutex<ProcessLogEntries>>);

#[derive(Debug, Default)]
struct ProcessLogEntries {
    stderr: VecDeque<u8>,
    /// First unexpected line of standard output, and the number of such lines.
    unexpected: Option<(String, u64)>,
    /// How the process ended.
    end: Option<String>,
}

impl ProcessLog {
    fn update<T>(&self, change: impl FnOnce(&mut ProcessLogEntries) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Clears the log for another process.
    pub(crate) fn clear(&self) {
        self.update(|entries| *entries = ProcessLogEntries::default());
    }

    pub(crate) fn stderr(&self, bytes: &[u8]) {
        self.update(|entries| {
            let kept = bytes.get(bytes.len().saturating_sub(MAX_STDERR)..).unwrap_or_default();
            let excess = (entries.stderr.len() + kept.len()).saturating_sub(MAX_STDERR);
            entries.stderr.drain(..excess.min(entries.stderr.len()));
            entries.stderr.extend(kept);
        });
    }

    pub(crate) fn unexpected(&self, line: &[u8]) {
        self.update(|entries| match &mut entries.unexpected {
            Some((_, number)) => *number += 1,
            None => entries.unexpected = Some((shorten(&String::from_utf8_lossy(line), SHOWN_LINE), 1)),
        });
    }

    /// Records how the process ended. Only the first call has an effect.
    pub(crate) fn end(&self, how: impl Into<String>) {
        self.update(|entries| {
            entries.end.get_or_insert(how.into());
        });
    }

    /// Returns how the process ended, if it did.
    pub(crate) fn how_it_ended(&self) -> Option<String> {
        self.update(|entries| entries.end.clone())
    }

    /// Returns possible explanations of a failure, each after a `; `. Empty without an explanation.
    pub(crate) fn explanation(&self) -> String {
        self.update(|entries| {
            let mut text = String::new();
            if let Some((line, number)) = &entries.unexpected {
                // Writing to a string cannot fail.
                let _ = write!(
                    text,
                    "; {number} lines on its standard output were no messages, the first: {line}"
                );
            }
            let bytes: Vec<u8> = entries.stderr.iter().copied().collect();
            let stderr = String::from_utf8_lossy(&bytes);
            let stderr = stderr.trim();
            if !stderr.is_empty() {
                let skipped = stderr.chars().count().saturating_sub(SHOWN_CHARS);
                let last: String = stderr.chars().skip(skipped).collect();
                let dots = if skipped > 0 { "…" } else { "" };
                let _ = write!(text, "; its standard error: {dots}{last}");
            }
            text
        })
    }
}

/// Returns the beginning of a text, with a mark if there is more.
pub(crate) fn shorten(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_explanation_has_the_end_of_what_was_printed() {
        let process_log = ProcessLog::default();
        assert_eq!(process_log.explanation(), "");
        process_log.unexpected(b"Listening \xff");
        process_log.unexpected(b"more");
        process_log.stderr(b"warning\n");
        process_log.stderr(&b"x".repeat(10_000));
        process_log.stderr(b"panic: no config\n");
        let text = process_log.explanation();
        assert!(
            text.starts_with(
                "; 2 lines on its standard output were no messages, the first: Listening \u{fffd}"
            )
        );
        assert!(text.ends_with("xxpanic: no config") && text.contains("its standard error: …x"), "{text}");
        assert!(text.chars().count() < 700 && !text.contains("warning"), "{text}");
    }

    #[test]
    fn the_first_end_counts() {
        let process_log = ProcessLog::default();
        process_log.end("it exited with code 3");
        process_log.end("it was ended");
        assert_eq!(process_log.how_it_ended().as_deref(), Some("it exited with code 3"));
    }
}
