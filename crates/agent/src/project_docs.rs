//! Project documents: instruction files of a project (loop specification, section 6.5).

use std::path::{Path, PathBuf};

use futures_util::{StreamExt, future, stream};
use pintle_env::{EnvError, ExecutionEnvironment, leads_outside};
use pintle_llm::error_chain;
use serde::{Deserialize, Serialize};

use crate::discovery::READ_AHEAD;
use crate::protocol::{LoadedDocument, LoadedProject, Skill, SkippedFile};
use crate::skills;

/// Budget of all project documents in a prompt, in bytes: 32 KiB.
pub const PROJECT_DOC_BUDGET: usize = 32 * 1024;

/// Bytes read of one document: one more than the budget, to detect that it is longer.
const READ_LIMIT: u64 = PROJECT_DOC_BUDGET as u64 + 1;

/// Project documents between the root of a project and the working directory, and the project's skills.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ProjectDocs {
    /// The root's documents first; within one directory in the order of the requested names.
    pub documents: Vec<ProjectDoc>,
    /// Skills, sorted by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<Skill>,
    /// Files that exist and could not be used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<SkippedFile>,
    /// Whether any document was truncated to fit the budget.
    pub truncated: bool,
    /// Budget for all documents together, in bytes. Default: [`PROJECT_DOC_BUDGET`].
    #[serde(default = "default_budget")]
    pub budget: usize,
}

impl Default for ProjectDocs {
    fn default() -> Self {
        Self::new(Vec::new())
    }
}

/// One project document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ProjectDoc {
    /// Absolute path. Bytes that are not UTF-8 are replaced.
    pub path: String,
    /// Text, or its beginning, without a byte-order mark and without trailing white space. Empty if the budget was used
    /// up. Bytes that are not UTF-8 are replaced by U+FFFD.
    pub content: String,
    /// Whether the file is longer than `content`.
    pub truncated: bool,
}

impl From<&ProjectDocs> for LoadedProject {
    fn from(docs: &ProjectDocs) -> Self {
        let document = |document: &ProjectDoc| LoadedDocument {
            path: document.path.clone(),
            bytes: document.content.len(),
            truncated: document.truncated,
        };
        Self {
            documents: docs.documents.iter().map(document).collect(),
            skills: docs.skills.clone(),
            skipped: docs.skipped.clone(),
        }
    }
}

impl ProjectDocs {
    /// Reads the files named `file_names` in each directory from `git_root` down to the working directory. Without a
    /// root, only the working directory is read.
    ///
    /// At most [`PROJECT_DOC_BUDGET`] bytes are kept of all documents together, and at most as much is read of any one
    /// file. Documents nearest to the working directory take precedence and are served first, so that the root's are
    /// truncated first, always between two characters.
    ///
    /// Never fails. Missing and blank files are ignored, and so is a file with the same text as another one in its
    /// directory: projects often link one name to another. Files that cannot be read, are directories or binary, or are
    /// links out of the project are listed as skipped.
    ///
    /// If `git_root` is not an ancestor of the working directory by name, because of a link between them, the
    /// directories in between are not read. Dropping the future stops the reading.
    pub async fn discover(
        env: &dyn ExecutionEnvironment,
        git_root: Option<&Path>,
        file_names: &[String],
    ) -> Self {
        Self::discover_within(env, git_root, file_names, PROJECT_DOC_BUDGET).await
    }

    /// As [`ProjectDocs::discover`], with a budget of at most [`PROJECT_DOC_BUDGET`] bytes.
    pub async fn discover_within(
        env: &dyn ExecutionEnvironment,
        git_root: Option<&Path>,
        file_names: &[String],
        budget: usize,
    ) -> Self {
        let budget = budget.min(PROJECT_DOC_BUDGET);
        let nearest_first = directories(env, git_root);
        // Because of a link, the path of the root may not be a prefix of the working directory's path.
        let roots = [Path::new("."), git_root.unwrap_or(Path::new("."))].map(|path| env.resolve(path));
        let reads: Vec<_> = nearest_first
            .iter()
            .map(|directory| read_directory(env, directory, file_names, &roots))
            .collect();
        let mut reads = stream::iter(reads).buffered(READ_AHEAD);
        let mut remaining = budget;
        let (mut documents, mut skipped) = (Vec::new(), Vec::new());
        while let Some((found, unusable)) = reads.next().await {
            documents.extend(found.into_iter().rev().map(|document| document.truncate_to(&mut remaining)));
            skipped.extend(unusable.into_iter().rev());
        }
        documents.reverse();
        skipped.reverse();
        Self { skipped, budget, ..Self::new(documents) }
    }

    /// Adds the skills in the directories named `skill_dirs`, relative to the same directories as the documents.
    ///
    /// A skill is a directory with a `SKILL.md` that begins with front matter; at most 16 KiB of it are read. Of
    /// several skills with one name, the one nearest to the working directory is used, and within one directory the one
    /// from the later entry of `skill_dirs`. Absolute entries have the lowest precedence. Never fails: unusable skills
    /// are listed as skipped. Dropping the future stops the reading.
    #[must_use]
    pub async fn with_skills_of(
        mut self,
        env: &dyn ExecutionEnvironment,
        git_root: Option<&Path>,
        skill_dirs: &[String],
    ) -> Self {
        let found = skills::discover(env, &directories(env, git_root), skill_dirs).await;
        self.skipped.extend(found.skipped);
        self.with_skills(found.skills)
    }

    /// Sets the skills.
    #[must_use]
    pub fn with_skills(mut self, skills: Vec<Skill>) -> Self {
        self.skills = skills;
        self
    }

    /// Creates a set of documents, the root's first, without skills.
    #[must_use]
    pub fn new(documents: Vec<ProjectDoc>) -> Self {
        let truncated = documents.iter().any(|document| document.truncated);
        let (skills, skipped) = (Vec::new(), Vec::new());
        Self { documents, skills, skipped, truncated, budget: PROJECT_DOC_BUDGET }
    }

    /// Returns the marker at the end of a truncated document. It does not count towards the budget.
    pub(crate) fn truncation_marker(&self) -> String {
        format!("[Project instructions truncated at {}KB]", self.budget / 1024)
    }
}

impl ProjectDoc {
    /// Creates a complete document.
    #[must_use]
    pub fn new(path: impl Into<String>, content: impl Into<String>) -> Self {
        Self { path: path.into(), content: content.into(), truncated: false }
    }

    /// Sets whether the file is longer than the content.
    #[must_use]
    pub fn with_truncated(mut self, truncated: bool) -> Self {
        self.truncated = truncated;
        self
    }

    /// Truncates the content to the remaining budget, and subtracts its length.
    fn truncate_to(mut self, remaining: &mut usize) -> Self {
        if self.content.len() > *remaining {
            let end = (0..=*remaining).rev().find(|end| self.content.is_char_boundary(*end));
            self.content.truncate(end.unwrap_or(0));
            self.truncated = true;
        }
        *remaining -= self.content.len();
        self
    }
}

fn default_budget() -> usize {
    PROJECT_DOC_BUDGET
}

/// Lists the directories from the working directory up to the root.
fn directories(env: &dyn ExecutionEnvironment, git_root: Option<&Path>) -> Vec<PathBuf> {
    let working = env.resolve(Path::new("."));
    match git_root.map(|root| env.resolve(root)) {
        None => vec![working],
        Some(root) if working.starts_with(&root) => {
            let within = |directory: &&Path| directory.starts_with(&root);
            working.ancestors().take_while(within).map(Path::to_path_buf).collect()
        }
        Some(root) => vec![working, root],
    }
}

/// Reads the documents of one directory. Returns unusable files separately.
async fn read_directory(
    env: &dyn ExecutionEnvironment,
    directory: &Path,
    file_names: &[String],
    roots: &[PathBuf],
) -> (Vec<ProjectDoc>, Vec<SkippedFile>) {
    let reads = file_names.iter().map(|name| read_document(env, directory.join(name), roots));
    let (mut documents, mut skipped) = (Vec::<ProjectDoc>::new(), Vec::new());
    for read in future::join_all(reads).await {
        match read {
            Ok(None) => {}
            Ok(Some(document)) if documents.iter().any(|known| known.content == document.content) => {
                tracing::debug!(path = document.path, "ignored a project document with the text of another");
            }
            Ok(Some(document)) => documents.push(document),
            Err(unusable) => skipped.push(unusable),
        }
    }
    (documents, skipped)
}

/// Reads the document at `path`; `None` if it is missing or blank.
async fn read_document(
    env: &dyn ExecutionEnvironment,
    path: PathBuf,
    roots: &[PathBuf],
) -> Result<Option<ProjectDoc>, SkippedFile> {
    // Pins the path, so that the check below applies to the file that was read.
    let held = match env.hold(std::slice::from_ref(&path)).await {
        Ok(held) => held,
        Err(error) => return Err(SkippedFile::new(&path, error_chain(&error))),
    };
    let env = held.as_deref().unwrap_or(env);
    let bytes = match env.read(&path, Some(0..READ_LIMIT)).await {
        Ok(bytes) => bytes,
        Err(EnvError::NotFound { .. } | EnvError::NotADirectory { .. }) => return Ok(None),
        Err(error) => return Err(SkippedFile::new(&path, error_chain(&error))),
    };
    if bytes.contains(&0) {
        return Err(SkippedFile::new(&path, "it is binary: it contains a zero byte"));
    }
    let truncated = bytes.len() > PROJECT_DOC_BUDGET;
    let content = decode(&bytes, truncated);
    let document = ProjectDoc::new(path.to_string_lossy(), content).with_truncated(truncated);
    if document.content.is_empty() {
        return Ok(None);
    }
    // A project must not make the model read other files of the user.
    if leads_outside(env, &path, roots).await {
        return Err(SkippedFile::new(&path, "it is a link that leads out of the project"));
    }
    Ok(Some(document))
}

/// Decodes a document and removes the byte-order mark, leading blank lines and trailing white space.
fn decode(bytes: &[u8], truncated: bool) -> String {
    let text = String::from_utf8_lossy(bytes);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    // The read limit may split a character.
    let text = if truncated { text.trim_end_matches('\u{fffd}') } else { text };
    text.trim_start_matches(['\r', '\n']).trim_end().to_owned()
}

#[cfg(test)]
mod tests;
