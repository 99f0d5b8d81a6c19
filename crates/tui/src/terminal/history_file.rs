//! Input history of each directory: a file with a JSON string per line.

use std::path::PathBuf;

use pintle_host::failure::{Failure, OrFailure as _};
use pintle_host::process_env::{self, ProcessEnv};
use pintle_store::Hash;

use super::history::MAX_ENTRIES;

/// Maximum size of the file, in bytes. Only the newest lines of a larger file are kept.
const MAX_BYTES: usize = 4 << 20;

/// File with the inputs of one directory.
#[derive(Clone, Debug)]
pub struct HistoryFile {
    path: PathBuf,
    process_env: ProcessEnv,
}

impl HistoryFile {
    /// Returns the file for a directory of an environment, or `None` if there is no directory for state.
    pub fn locate(environment: &str, directory: &str, process_env: &ProcessEnv) -> Option<Self> {
        let state = process_env.state_directory().ok()?;
        let hash = Hash::of(format!("{environment}\0{directory}").as_bytes()).to_string();
        let path = state.join("history").join(format!("{}.jsonl", hash.get(..16)?));
        Some(Self { path, process_env: process_env.clone() })
    }

    /// Returns the input history, the newest input last. Lines that cannot be read are omitted.
    pub(crate) fn read(&self) -> Vec<String> {
        let text = process_env::read_text_if_exists("history", &self.path).ok().flatten().unwrap_or_default();
        let entries: Vec<String> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let first = entries.len().saturating_sub(MAX_ENTRIES);
        let kept = entries.get(first..).unwrap_or_default().to_vec();
        if text.len() > MAX_BYTES || first > MAX_ENTRIES {
            let lines: String = kept.iter().filter_map(|entry| line(entry).ok()).collect();
            // A failed write is repeated next time.
            let _ = self.process_env.write_private(&self.path, &lines);
        }
        kept
    }

    /// Appends an input.
    pub(crate) fn append(&self, entry: &str) -> Result<(), Failure> {
        self.process_env.append_private(&self.path, &line(entry)?)
    }
}

fn line(entry: &str) -> Result<String, Failure> {
    Ok(serde_json::to_string(entry).or_failed("cannot keep the input")? + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_of_a_directory_are_kept() {
        let state = tempfile::tempdir().unwrap();
        let process_env = ProcessEnv::from_variables([("PINTLE_STATE_DIR", state.path().as_os_str())]);
        let file = |directory| HistoryFile::locate("local", directory, &process_env).unwrap();
        for entry in ["one", "two\nlines", "\u{1b}[2J \"three\""] {
            file("/a").append(entry).unwrap();
        }
        file("/b").append("other").unwrap();
        assert_eq!(file("/a").read(), ["one", "two\nlines", "\u{1b}[2J \"three\""]);
        assert_eq!(file("/b").read(), ["other"]);
        assert_eq!(file("/c").read(), <[String; 0]>::default());
    }
}
