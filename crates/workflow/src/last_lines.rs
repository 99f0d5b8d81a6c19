//! The end of a command's output, for messages.

use std::io;

use pintle_env::{Output, OutputLimits};
use pintle_evidence::command_run::CommandRun;
use pintle_store::Blobs;

use crate::repository::{RepositoryError, read_blob};

/// Number of last lines of output in a message.
const SHOWN_LINES: usize = 10;

/// Maximum number of consecutive frames of a trace.
const SHOWN_FRAMES: usize = 2;

/// Start of the line below a backtrace of Rust.
const OMITTED: &str = "note: Some details are omitted";

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
    let lines = without_frames(output.lines().filter(|line| !line.trim().is_empty()));
    let first = lines.len().saturating_sub(SHOWN_LINES);
    lines.iter().skip(first).map(|line| line.chars().take(SHOWN_CHARS).collect()).collect()
}

/// Removes the frames of backtraces, which follow the message of an error. Of a trace without numbers, as of Java and Node.js,
/// the first frames are in the code under test, and stay.
fn without_frames<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let (mut shown, mut is_backtrace, mut frames) = (Vec::new(), false, 0);
    for line in lines {
        let text = line.trim_start();
        if text.trim_end().eq_ignore_ascii_case("stack backtrace:") {
            is_backtrace = true;
            continue;
        }
        let is_location = text.len() < line.len() && text.starts_with("at ");
        let is_numbered = text.split_once(": ").is_some_and(|(number, _)| number.parse::<u32>().is_ok());
        if is_backtrace && (is_location || is_numbered) || text.starts_with(OMITTED) {
            continue;
        }
        is_backtrace = false;
        frames = if is_location { frames + 1 } else { 0 };
        if frames <= SHOWN_FRAMES {
            shown.push(line);
        }
    }
    shown
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

    #[test]
    fn frames_do_not_displace_the_message() {
        let numbers = (0..20).map(|number| {
            format!("  {number:>2}: core::panicking::panic\n             at /rustc/x.rs:1:5\n")
        });
        let rust = format!(
            "thread 'a' panicked at src/lib.rs:9:5:\nassertion failed\nstack backtrace:\n{}\
             note: Some details are omitted, run with `RUST_BACKTRACE=full` for a verbose backtrace.\n\nfailures:\n    a\n",
            numbers.collect::<String>()
        );
        let node = format!(
            "AssertionError: 1 !== 2\n{}  }}\nnot ok 1\n",
            "    at run (file:///a.js:1:2)\n".repeat(12)
        );
        for (output, expected) in [
            (
                rust.as_str(),
                &["thread 'a' panicked at src/lib.rs:9:5:", "assertion failed", "failures:", "    a"][..],
            ),
            (
                node.as_str(),
                &[
                    "AssertionError: 1 !== 2",
                    "    at run (file:///a.js:1:2)",
                    "    at run (file:///a.js:1:2)",
                    "  }",
                    "not ok 1",
                ],
            ),
            ("at the end\n1: one\n2: two\n", &["at the end", "1: one", "2: two"]),
        ] {
            assert_eq!(select_last_lines(output), expected);
        }
    }
}
