//! Instructions that outlive a session: files that the prompt of each session begins with.

use std::path::{Path, PathBuf};

use pintle_env::{EnvError, ExecutionEnvironment};

use crate::failure::Failure;
use crate::instructions::FILE;
use crate::process_env::ProcessEnv;

/// File for a line of the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemoryFile {
    /// Of the directory in which the tools work.
    Project,
    /// Of the user, for all projects.
    User,
}

impl MemoryFile {
    /// Returns the file that a word names, or its first letter.
    pub(crate) fn named(word: &str) -> Option<Self> {
        match word {
            "p" | "project" => Some(Self::Project),
            "u" | "user" => Some(Self::User),
            _ => None,
        }
    }
}

/// Returns the user's file; `None` if no variable names the directory of the configuration.
pub(crate) fn of_user(process_env: &ProcessEnv) -> Option<PathBuf> {
    Some(process_env.configuration_directory()?.join(FILE))
}

/// Adds a line to a file, and returns the name of the file.
///
/// # Errors
///
/// What could not be read or written.
pub(crate) async fn add(
    file: MemoryFile,
    line: &str,
    environment: &dyn ExecutionEnvironment,
    process_env: &ProcessEnv,
) -> Result<String, String> {
    match file {
        MemoryFile::User => {
            let path = of_user(process_env).ok_or("no variable names a directory of configuration")?;
            let before = match crate::process_env::read_text_if_there("instructions", &path) {
                Ok(text) => text.unwrap_or_default(),
                Err(failure) => return Err(failure.message()),
            };
            let text = appended(&before, line);
            process_env.write_private(&path, &text).map_err(|failure: Failure| failure.message())?;
            Ok(path.display().to_string())
        }
        MemoryFile::Project => {
            let before = match environment.read(Path::new(FILE), None).await {
                Ok(bytes) => String::from_utf8(bytes.to_vec()).map_err(|_| format!("{FILE} is not UTF-8"))?,
                Err(EnvError::NotFound { .. }) => String::new(),
                Err(error) => return Err(error.to_string()),
            };
            let text = appended(&before, line);
            environment.write(Path::new(FILE), text.as_bytes()).await.map_err(|error| error.to_string())?;
            Ok(FILE.to_owned())
        }
    }
}

/// Returns the text with another item of a list at its end.
fn appended(before: &str, line: &str) -> String {
    let is_list = before.trim_end().lines().next_back().is_some_and(|last| last.starts_with("- "));
    let between = match (before.trim_end().is_empty(), is_list) {
        (true, _) => "",
        (false, true) => "\n",
        (false, false) => "\n\n",
    };
    format!("{}{between}- {line}\n", before.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_items_of_a_list() {
        for (before, after) in [
            ("", "- use tabs\n"),
            ("# Rules\n", "# Rules\n\n- use tabs\n"),
            ("- one\n", "- one\n- use tabs\n"),
            ("- one\n\n\n", "- one\n- use tabs\n"),
            ("text", "text\n\n- use tabs\n"),
        ] {
            assert_eq!(appended(before, "use tabs"), after, "{before:?}");
        }
    }
}
