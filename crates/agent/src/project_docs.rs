//! The project's instruction files (loop specification, section 6.5).

use std::path::{Path, PathBuf};

use futures_util::{StreamExt, future, stream};
use pintle_env::{EnvError, ExecutionEnvironment};
use serde::{Deserialize, Serialize};

use crate::protocol::{LoadedDocument, LoadedProject, Skill, SkippedFile};
use crate::skills;

/// How many bytes of project documents a prompt holds: 32 KiB.
pub const PROJECT_DOC_BUDGET: usize = 32 * 1024;

/// One byte more than can be used tells that there is more.
const READ_LIMIT: u64 = PROJECT_DOC_BUDGET as u64 + 1;

/// How many directories are read at the same time. A remote environment answers each read after a round trip.
pub(crate) const READ_AHEAD: usize = 8;

/// What a project tells its agents: the instruction files between its root and the working directory, and its skills.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ProjectDocs {
    /// Those of the root first; within one directory in the order of the names that were asked for.
    pub documents: Vec<ProjectDoc>,
    /// The skills, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<Skill>,
    /// What was there and could not be taken.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<SkippedFile>,
    /// Whether the budget cut any of the documents.
    pub truncated: bool,
    /// The budget that they were read within, in bytes. Default [`PROJECT_DOC_BUDGET`].
    #[serde(default = "whole_budget")]
    pub budget: usize,
}

impl Default for ProjectDocs {
    fn default() -> Self {
        Self::new(Vec::new())
    }
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
    /// Reads the files named `file_names` in each directory from `git_root` down to the working directory; in the
    /// working directory alone if there is no root.
    ///
    /// Of all together at most [`PROJECT_DOC_BUDGET`] bytes are kept. The file nearest to the working directory, which
    /// has the highest precedence, is served first, so the root's is the first to be cut, always between two
    /// characters. It never fails: a file that is not there or blank is left out, and so is one with the same text as
    /// another in its directory, since projects link one name to the other. One that cannot be read, because it is a
    /// directory, a link to itself or binary, is listed as skipped, and so is a link that leads out of the project. However large a file is, no more than the budget
    /// is read of it.
    ///
    /// A root that is not above the working directory by name, because a link stands between them, is looked at
    /// without the directories on the way. Dropping the future stops the reading.
    pub async fn discover(
        env: &dyn ExecutionEnvironment,
        git_root: Option<&Path>,
        file_names: &[String],
    ) -> Self {
        Self::discover_within(env, git_root, file_names, PROJECT_DOC_BUDGET).await
    }

    /// As [`ProjectDocs::discover`], keeping at most `budget` bytes: [`PROJECT_DOC_BUDGET`], or less.
    pub async fn discover_within(
        env: &dyn ExecutionEnvironment,
        git_root: Option<&Path>,
        file_names: &[String],
        budget: usize,
    ) -> Self {
        let budget = budget.min(PROJECT_DOC_BUDGET);
        let nearest_first = directories(env, git_root);
        // The root's name may be none of the working directory's, because a link stands between them.
        let project = [Path::new("."), git_root.unwrap_or(Path::new("."))].map(|place| env.resolve(place));
        let reads: Vec<_> = nearest_first
            .iter()
            .map(|directory| read_directory(env, directory, file_names, &project))
            .collect();
        let mut found = stream::iter(reads).buffered(READ_AHEAD);
        let mut room = budget;
        let (mut documents, mut skipped) = (Vec::new(), Vec::new());
        while let Some((of_directory, of_no_use)) = found.next().await {
            documents.extend(of_directory.into_iter().rev().map(|document| document.cut_to(&mut room)));
            skipped.extend(of_no_use.into_iter().rev());
        }
        documents.reverse();
        skipped.reverse();
        Self { skipped, budget, ..Self::new(documents) }
    }

    /// With the skills that stand in the directories named `skill_dirs`, in the same places as the documents.
    ///
    /// A skill is a directory with a `SKILL.md` that begins with front matter; of each at most 16 KiB are read. Of two
    /// that have one name the nearer to the working directory counts, and in one place the one that stands in the
    /// later of `skill_dirs`. An absolute name in `skill_dirs` is the farthest place of all. It never fails: what is
    /// no skill is listed as skipped. Dropping the future stops the reading.
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

    /// With these skills.
    #[must_use]
    pub fn with_skills(mut self, skills: Vec<Skill>) -> Self {
        self.skills = skills;
        self
    }

    /// These documents, those of the root first.
    #[must_use]
    pub fn new(documents: Vec<ProjectDoc>) -> Self {
        let truncated = documents.iter().any(|document| document.truncated);
        let (skills, skipped) = (Vec::new(), Vec::new());
        Self { documents, skills, skipped, truncated, budget: PROJECT_DOC_BUDGET }
    }

    /// Stands where a document was cut. It comes on top of the budget.
    pub(crate) fn truncation_marker(&self) -> String {
        format!("[Project instructions truncated at {}KB]", self.budget / 1024)
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

fn whole_budget() -> usize {
    PROJECT_DOC_BUDGET
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

/// The documents of one directory, and what is none.
async fn read_directory(
    env: &dyn ExecutionEnvironment,
    directory: &Path,
    file_names: &[String],
    project: &[PathBuf],
) -> (Vec<ProjectDoc>, Vec<SkippedFile>) {
    let reads = file_names.iter().map(|name| read_document(env, directory.join(name), project));
    let (mut documents, mut skipped) = (Vec::<ProjectDoc>::new(), Vec::new());
    for read in future::join_all(reads).await {
        match read {
            Ok(None) => {}
            Ok(Some(document)) if documents.iter().any(|known| known.content == document.content) => {
                tracing::debug!(
                    path = document.path,
                    "the text stands in another project document beside it"
                );
            }
            Ok(Some(document)) => documents.push(document),
            Err(of_no_use) => skipped.push(of_no_use),
        }
    }
    (documents, skipped)
}

/// The document at `path`, nothing if there is none or it is blank.
async fn read_document(
    env: &dyn ExecutionEnvironment,
    path: PathBuf,
    project: &[PathBuf],
) -> Result<Option<ProjectDoc>, SkippedFile> {
    let bytes = match env.read(&path, Some(0..READ_LIMIT)).await {
        Ok(bytes) => bytes,
        Err(EnvError::NotFound { .. } | EnvError::NotADirectory { .. }) => return Ok(None),
        Err(error) => return Err(SkippedFile::new(&path, because(&error))),
    };
    if bytes.contains(&0) {
        return Err(SkippedFile::new(&path, "it is binary: a zero byte stands in it"));
    }
    let truncated = bytes.len() > PROJECT_DOC_BUDGET;
    let content = text_of(&bytes, truncated);
    let document = ProjectDoc::new(path.to_string_lossy(), content).with_truncated(truncated);
    if document.content.is_empty() {
        return Ok(None);
    }
    if leads_out(env, &path, project).await {
        return Err(SkippedFile::new(&path, "it is a link that leads out of the project"));
    }
    Ok(Some(document))
}

/// Whether a link takes a document from elsewhere. Whoever wrote the project may not have what it shows to the model
/// be a file of the person who works in it. A place that cannot tell links has none to follow.
async fn leads_out(env: &dyn ExecutionEnvironment, path: &Path, project: &[PathBuf]) -> bool {
    let Ok(document) = env.canonicalize(path).await else { return false };
    for place in project {
        if env.canonicalize(place).await.is_ok_and(|place| document.starts_with(place)) {
            return false;
        }
    }
    true
}

/// An error with its causes, in one line.
pub(crate) fn because(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    std::iter::once(error.to_string()).chain(causes.map(ToString::to_string)).collect::<Vec<_>>().join(": ")
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
