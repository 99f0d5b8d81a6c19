//! The project's instruction files (loop specification, section 6.5).

use std::path::{Path, PathBuf};

use futures_util::{StreamExt, future, stream};
use pintle_env::{EnvError, ExecutionEnvironment};
use serde::{Deserialize, Serialize};

/// How many bytes of project documents a prompt holds: 32 KiB.
pub const PROJECT_DOC_BUDGET: usize = 32 * 1024;

/// Stands where a document was cut. It comes on top of the budget.
pub(crate) const TRUNCATION_MARKER: &str = "[Project instructions truncated at 32KB]";

/// One byte more than can be used tells that there is more.
const READ_LIMIT: u64 = PROJECT_DOC_BUDGET as u64 + 1;

/// How many directories are read at the same time. A remote environment answers each read after a round trip.
const READ_AHEAD: usize = 8;

/// The instruction files between the root of a project and the working directory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ProjectDocs {
    /// Those of the root first; within one directory in the order of the names that were asked for.
    pub documents: Vec<ProjectDoc>,
    /// Whether the budget cut any of them.
    pub truncated: bool,
}

/// One instruction file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ProjectDoc {
    /// Where it stands: absolute. What is not UTF-8 in it is replaced.
    pub path: String,
    /// Its text, or the start of it, without a byte-order mark and without white space at the end. Empty if the budget
    /// had nothing left. Bytes that are not UTF-8 became U+FFFD.
    pub content: String,
    /// Whether there is more of it.
    pub truncated: bool,
}

impl ProjectDocs {
    /// Reads the files named `file_names` in each directory from `git_root` down to the working directory; in the
    /// working directory alone if there is no root.
    ///
    /// Of all together at most [`PROJECT_DOC_BUDGET`] bytes are kept. The file nearest to the working directory, which
    /// has the highest precedence, is served first, so the root's is the first to be cut, always between two
    /// characters. It never fails: a file that is not there, cannot be read, is binary or blank is left out, and so is
    /// one with the same text as another in its directory, since projects link one name to the other.
    ///
    /// A root that is not above the working directory by name, because a link stands between them, is looked at
    /// without the directories on the way. Dropping the future stops the reading.
    pub async fn discover(
        env: &dyn ExecutionEnvironment,
        git_root: Option<&Path>,
        file_names: &[String],
    ) -> Self {
        let nearest_first = directories(env, git_root);
        let reads: Vec<_> =
            nearest_first.iter().map(|directory| read_directory(env, directory, file_names)).collect();
        let mut found = stream::iter(reads).buffered(READ_AHEAD);
        let mut room = PROJECT_DOC_BUDGET;
        let mut documents = Vec::new();
        while let Some(of_directory) = found.next().await {
            documents.extend(of_directory.into_iter().rev().map(|document| document.cut_to(&mut room)));
        }
        documents.reverse();
        Self::new(documents)
    }

    /// These documents, those of the root first.
    #[must_use]
    pub fn new(documents: Vec<ProjectDoc>) -> Self {
        let truncated = documents.iter().any(|document| document.truncated);
        Self { documents, truncated }
    }
}

impl ProjectDoc {
    /// A whole document.
    #[must_use]
    pub fn new(path: impl Into<String>, content: impl Into<String>) -> Self {
        Self { path: path.into(), content: content.into(), truncated: false }
    }

    /// Says whether there is more of it.
    #[must_use]
    pub fn with_truncated(mut self, truncated: bool) -> Self {
        self.truncated = truncated;
        self
    }

    /// Takes what it needs from `room`, or what there is.
    fn cut_to(mut self, room: &mut usize) -> Self {
        if self.content.len() > *room {
            let end = (0..=*room).rev().find(|end| self.content.is_char_boundary(*end));
            self.content.truncate(end.unwrap_or(0));
            self.truncated = true;
        }
        *room -= self.content.len();
        self
    }
}

/// From the working directory up to the root.
fn directories(env: &dyn ExecutionEnvironment, git_root: Option<&Path>) -> Vec<PathBuf> {
    let working = env.resolve(Path::new("."));
    match git_root.map(|root| env.resolve(root)) {
        None => vec![working],
        Some(root) if working.starts_with(&root) => {
            working.ancestors().take_while(|above| above.starts_with(&root)).map(Path::to_path_buf).collect()
        }
        Some(root) => vec![working, root],
    }
}

async fn read_directory(
    env: &dyn ExecutionEnvironment,
    directory: &Path,
    file_names: &[String],
) -> Vec<ProjectDoc> {
    let reads = file_names.iter().map(|name| read_document(env, directory.join(name)));
    let mut documents: Vec<ProjectDoc> = Vec::new();
    for document in future::join_all(reads).await.into_iter().flatten() {
        if documents.iter().any(|known| known.content == document.content) {
            tracing::debug!(path = document.path, "the text stands in another project document beside it");
        } else {
            documents.push(document);
        }
    }
    documents
}

async fn read_document(env: &dyn ExecutionEnvironment, path: PathBuf) -> Option<ProjectDoc> {
    let bytes = match env.read(&path, Some(0..READ_LIMIT)).await {
        Ok(bytes) => bytes,
        Err(EnvError::NotFound { .. } | EnvError::NotADirectory { .. }) => return None,
        Err(error) => {
            tracing::debug!(path = %path.display(), %error, "a project document was skipped");
            return None;
        }
    };
    if bytes.contains(&0) {
        tracing::debug!(path = %path.display(), "a project document was skipped: it is binary");
        return None;
    }
    let truncated = bytes.len() > PROJECT_DOC_BUDGET;
    let content = text_of(&bytes, truncated);
    let document = ProjectDoc::new(path.to_string_lossy(), content).with_truncated(truncated);
    (!document.content.is_empty()).then_some(document)
}

/// The text for people, without what frames it.
fn text_of(bytes: &[u8], truncated: bool) -> String {
    let text = String::from_utf8_lossy(bytes);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    // The limit of the read may stand inside a character.
    let text = if truncated { text.trim_end_matches('\u{fffd}') } else { text };
    text.trim_start_matches(['\r', '\n']).trim_end().to_owned()
}

#[cfg(test)]
mod tests;
