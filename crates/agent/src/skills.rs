//! Agent Skills: instructions for one kind of work that a model reads on demand.
//!
//! A skill is a directory with a `SKILL.md`, whose front matter has its name and description. The prompt lists these;
//! the model reads the rest with its tools.

mod front_matter;

use std::path::{Path, PathBuf};

use futures_util::{StreamExt as _, stream};
use pintle_env::{EnvError, ExecutionEnvironment};
use pintle_llm::error_chain;

use self::front_matter::FrontMatter;
use crate::discovery::READ_AHEAD;
use crate::protocol::{Skill, SkippedFile};

/// Bytes of a file that are read for its front matter: 16 KiB.
const READ_LIMIT: u64 = 16 * 1024;

/// Maximum number of entries that are read in a directory of skills.
const MAX_PER_DIRECTORY: usize = 200;

/// Skills, sorted by name, and files that could not be used.
#[derive(Debug, Default)]
pub(crate) struct FoundSkills {
    pub(crate) skills: Vec<Skill>,
    pub(crate) skipped: Vec<SkippedFile>,
}

/// Searches each of `skill_dirs` in each of `directories`, which are ordered by distance, the nearest first.
///
/// Of several skills with one name, the nearest is used, and within one directory the one from the later entry of
/// `skill_dirs`. Absolute entries have the lowest precedence. Never fails: unusable files are listed as skipped.
pub(crate) async fn discover(
    env: &dyn ExecutionEnvironment,
    directories: &[PathBuf],
    skill_dirs: &[String],
) -> FoundSkills {
    let (absolute, relative): (Vec<&Path>, Vec<&Path>) =
        skill_dirs.iter().rev().map(Path::new).partition(|name| name.is_absolute());
    let near = directories.iter().flat_map(|directory| relative.iter().map(|name| directory.join(name)));
    let roots: Vec<PathBuf> = near.chain(absolute.iter().map(|name| name.to_path_buf())).collect();
    let mut found = FoundSkills::default();
    let lists: Vec<_> = roots.iter().map(|root| candidates(env, root)).collect();
    let mut lists = stream::iter(lists).buffered(READ_AHEAD);
    let mut files = Vec::new();
    while let Some((candidates, skipped)) = lists.next().await {
        files.extend(candidates);
        found.skipped.extend(skipped);
    }
    let reads: Vec<_> = files.iter().map(|path| read(env, path)).collect();
    let mut reads = stream::iter(reads).buffered(READ_AHEAD);
    while let Some(result) = reads.next().await {
        match result {
            Ok(Some(skill)) if found.skills.iter().all(|nearer| nearer.name != skill.name) => {
                found.skills.push(skill);
            }
            Ok(Some(skill)) => {
                tracing::debug!(path = skill.path, "ignored a skill with the name of a nearer one")
            }
            Ok(None) => {}
            Err(skipped) => found.skipped.push(skipped),
        }
    }
    found.skills.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

/// Lists the `SKILL.md` files in one directory of skills, whether they exist or not.
async fn candidates(env: &dyn ExecutionEnvironment, directory: &Path) -> (Vec<PathBuf>, Option<SkippedFile>) {
    let entries = match env.list(directory).await {
        Ok(entries) => entries,
        Err(EnvError::NotFound { .. }) => return (Vec::new(), None),
        Err(error) => return (Vec::new(), Some(SkippedFile::new(directory, error_chain(&error)))),
    };
    let directories: Vec<_> = entries.iter().filter(|entry| entry.is_dir || entry.is_symlink).collect();
    let skipped = (directories.len() > MAX_PER_DIRECTORY).then(|| {
        let reason = format!(
            "it holds {} directories, of which only the first {MAX_PER_DIRECTORY} are read",
            directories.len()
        );
        SkippedFile::new(directory, reason)
    });
    let file = |name: &PathBuf| directory.join(name).join("SKILL.md");
    (directories.iter().take(MAX_PER_DIRECTORY).map(|entry| file(&entry.name)).collect(), skipped)
}

/// Reads the skill in this file; `None` if there is no such file.
async fn read(env: &dyn ExecutionEnvironment, path: &Path) -> Result<Option<Skill>, SkippedFile> {
    let bytes = match env.read(path, Some(0..READ_LIMIT)).await {
        Ok(bytes) => bytes,
        Err(EnvError::NotFound { .. } | EnvError::NotADirectory { .. }) => return Ok(None),
        Err(error) => return Err(SkippedFile::new(path, error_chain(&error))),
    };
    let text = String::from_utf8_lossy(&bytes);
    match FrontMatter::parse(&text) {
        Ok(FrontMatter { name, description }) => {
            Ok(Some(Skill::new(name, description, path.to_string_lossy())))
        }
        Err(error) => Err(SkippedFile::new(path, error.to_string())),
    }
}

/// Returns an error unless the text is a valid skill.
pub(crate) fn expect_skill(text: &str) -> Result<(), String> {
    FrontMatter::parse(text).map(drop).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests;
