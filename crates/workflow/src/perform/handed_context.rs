//! Context of earlier sessions and of the driver for the next session: an excerpt in its message, and the whole text as files
//! in its clone. No session has to search for it again.

use std::path::Path;

use super::{RepositoryPerformer, RunningStep, StepError};
use crate::anchor::Anchor;
use crate::git::GitError;
use crate::prompts;
use crate::repository::{RepositoryError, TaskRepository, remove_directory};
use crate::repository_index::RepositoryIndex;
use crate::review_patch::{PatchLimits, shorten_patch};

/// Directory with files for the session of a clone: the output of failed commands, and the context of earlier sessions. It is
/// not part of the change.
pub(super) const OUTPUTS: &str = ".pintle-output";

/// Name of the file with the index.
const INDEX: &str = "repository-index.md";

/// Name of the file with the notes of earlier sessions.
const NOTES: &str = "notes.md";

/// Maximum size of each part of a message, and of the file with the index, in bytes.
const INDEX_EXCERPT: usize = 2_000;
const NOTES_EXCERPT: usize = 1_200;
const ANCHOR_EXCERPT: usize = 800;
const INDEX_FILE: usize = 256 << 10;

/// Directory of the indexes of a task, each with the id of its tree.
const INDEXES: &str = "index";

/// Context that a session may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ContextScope {
    /// The repository alone, for sessions that must not know what others think.
    Repository,
    /// The notes of earlier sessions as well.
    Notes,
    /// The anchor as well.
    All,
}

impl RepositoryPerformer {
    /// Returns the index of a commit. It is made once for each tree, and is in the files of the task. A commit that git cannot
    /// list has an empty index, because sessions can work without it.
    async fn find_index(
        &self,
        repository: &TaskRepository,
        commit: &str,
    ) -> Result<RepositoryIndex, StepError> {
        let tree = repository.tree_id(commit).await?;
        let directory = self.directory.join(INDEXES);
        let path = directory.join(format!("{tree}.json"));
        if let Ok(bytes) = self.machine.read(&path, None).await
            && let Ok(index) = serde_json::from_slice(&bytes)
        {
            return Ok(index);
        }
        let index = match repository.index_tree(&tree).await {
            Ok(index) => index,
            Err(error @ (RepositoryError::Files(_) | RepositoryError::Git(GitError::Run(_)))) => {
                return Err(error.into());
            }
            Err(error) => {
                tracing::warn!(%error, "the repository has no index");
                return Ok(RepositoryIndex::default());
            }
        };
        if let Ok(bytes) = serde_json::to_vec(&index) {
            self.machine.create_directory(&directory).await?;
            self.machine.write(&path, &bytes).await?;
        }
        Ok(index)
    }

    /// Removes the files for the session of a clone.
    pub(super) async fn clear_outputs(&self, working_directory: &Path) -> Result<(), StepError> {
        let (directory, machine) = (working_directory.join(OUTPUTS), self.machine.as_ref());
        // The session may have replaced the directory with a link, which this removes without following it. It fails for a
        // directory with files.
        let _ = machine.remove(&directory).await;
        Ok(remove_directory(machine, &directory).await?)
    }

    /// Writes a text to a file for the session of a clone, and returns its excerpt with a reference to the file.
    async fn hand_file(&self, directory: &Path, file: &HandedFile<'_>) -> Result<String, StepError> {
        let HandedFile { name, text, excerpt } = file;
        if text.is_empty() {
            return Ok(String::new());
        }
        let path = format!("{OUTPUTS}/{name}");
        self.machine.write(&directory.join(&path), text.as_bytes()).await?;
        Ok(prompts::handed_file(&path, excerpt))
    }

    /// Writes the index of a commit to a file for the session of a clone, and returns the text for its message.
    pub(super) async fn hand_index(
        &self,
        repository: &TaskRepository,
        directory: &Path,
        commit: &str,
    ) -> Result<String, StepError> {
        let index = self.find_index(repository, commit).await?;
        if index == RepositoryIndex::default() {
            return Ok(String::new());
        }
        let (text, excerpt) = (index.render(INDEX_FILE), index.render(INDEX_EXCERPT));
        self.hand_file(directory, &HandedFile { name: INDEX, text: &text, excerpt: &excerpt }).await
    }
}

/// A file for a session, and its excerpt for the message.
struct HandedFile<'a> {
    name: &'a str,
    text: &'a str,
    excerpt: &'a str,
}

impl RunningStep<'_> {
    /// Writes the context of earlier sessions to files in the working directory of a clone, and returns the text for the message
    /// of its session, with at most 4 KiB. `commit` is the one that the clone has. The same task and commit give the same text.
    /// The earlier files of the clone have to be [removed](RepositoryPerformer::clear_outputs) first.
    pub(super) async fn hand_context(
        &self,
        directory: &Path,
        commit: &str,
        scope: ContextScope,
    ) -> Result<String, StepError> {
        let mut text = self.performer.hand_index(&self.repository, directory, commit).await?;
        if scope == ContextScope::Repository {
            return Ok(text);
        }
        let notes = self.notes();
        let excerpt = excerpt_lines(&notes, NOTES_EXCERPT);
        let file = HandedFile { name: NOTES, text: &notes, excerpt: &excerpt };
        text.push_str(&self.performer.hand_file(directory, &file).await?);
        if scope == ContextScope::All {
            text.push_str(&self.describe_anchor().await?);
        }
        Ok(text)
    }

    /// Returns the notes of the sessions that drafted the contract and wrote the anchor.
    fn notes(&self) -> String {
        let drafted = self.contract().drafted.iter().flat_map(|drafted| &drafted.notes);
        let anchor = self.task.anchor().map(Anchor::notes).unwrap_or_default();
        prompts::notes(drafted.chain(anchor))
    }

    /// Returns an excerpt of the anchor, whose files are in the clone.
    async fn describe_anchor(&self) -> Result<String, StepError> {
        let Some(patch) = self.task.anchor().and_then(Anchor::patch) else { return Ok(String::new()) };
        let patch = self.read_blob(patch).await?;
        let shown = shorten_patch(&String::from_utf8_lossy(&patch), self.task.rules(), PatchLimits::CHANGE);
        Ok(prompts::anchor_excerpt(&excerpt_lines(&shown, ANCHOR_EXCERPT)))
    }
}

/// Returns the first lines of a text with at most `limit` bytes together.
fn excerpt_lines(text: &str, limit: usize) -> String {
    let mut excerpt = String::new();
    for line in text.split_inclusive('\n') {
        if excerpt.len() + line.len() > limit {
            break;
        }
        excerpt.push_str(line);
    }
    excerpt
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_has_whole_lines() {
        for (text, limit, expected) in
            [("one\ntwo\n", 8, "one\ntwo\n"), ("one\ntwo\n", 7, "one\n"), ("one", 2, ""), ("", 5, "")]
        {
            assert_eq!(excerpt_lines(text, limit), expected, "{text:?}, {limit}");
        }
    }
}
