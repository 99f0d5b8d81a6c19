//! Agent Skills: instructions for one kind of work, which a model reads when it needs them.
//!
//! A skill is a directory with a file `SKILL.md`, whose front matter says what it is called and what it is for. The
//! prompt lists that much; the rest the model reads by its own tools.

mod front_matter;

use std::path::{Path, PathBuf};

use futures_util::{StreamExt as _, stream};
use pintle_env::{EnvError, ExecutionEnvironment};

use self::front_matter::FrontMatter;
use crate::project_docs::{READ_AHEAD, because};
use crate::protocol::{Skill, SkippedFile};

/// What of a file is read for its front matter: 16 KiB.
const READ_LIMIT: u64 = 16 * 1024;

/// How many entries of one directory of skills are looked at.
const MAX_PER_DIRECTORY: usize = 200;

/// What was found, by name, and what was there but is no skill.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) skills: Vec<Skill>,
    pub(crate) skipped: Vec<SkippedFile>,
}

/// Looks in each of `skill_dirs` in each of `directories`, the nearest first.
///
/// Of two skills of one name the nearer one counts, and in one directory the one of the later name in `skill_dirs`. An
/// absolute name comes after all others. It never fails: what cannot be read is listed as skipped.
pub(crate) async fn discover(
    env: &dyn ExecutionEnvironment,
    directories: &[PathBuf],
    skill_dirs: &[String],
) -> Found {
    let (absolute, relative): (Vec<&Path>, Vec<&Path>) =
        skill_dirs.iter().rev().map(Path::new).partition(|name| name.is_absolute());
    let near = directories.iter().flat_map(|above| relative.iter().map(|name| above.join(name)));
    let places: Vec<PathBuf> = near.chain(absolute.iter().map(|name| name.to_path_buf())).collect();
    let mut found = Found::default();
    let lists: Vec<_> = places.iter().map(|place| candidates(env, place)).collect();
    let mut lists = stream::iter(lists).buffered(READ_AHEAD);
    let mut files = Vec::new();
    while let Some((of_place, skipped)) = lists.next().await {
        files.extend(of_place);
        found.skipped.extend(skipped);
    }
    let reads: Vec<_> = files.iter().map(|path| read(env, path)).collect();
    let mut reads = stream::iter(reads).buffered(READ_AHEAD);
    while let Some(result) = reads.next().await {
        match result {
            Ok(Some(skill)) if found.skills.iter().all(|nearer| nearer.name != skill.name) => {
                found.skills.push(skill);
            }
            Ok(Some(skill)) => tracing::debug!(path = skill.path, "a nearer skill has this name"),
            Ok(None) => {}
            Err(skipped) => found.skipped.push(skipped),
        }
    }
    found.skills.sort_by(|one, other| one.name.cmp(&other.name));
    found
}

/// The files that may be skills in one directory of skills.
async fn candidates(env: &dyn ExecutionEnvironment, place: &Path) -> (Vec<PathBuf>, Option<SkippedFile>) {
    let entries = match env.list(place).await {
        Ok(entries) => entries,
        Err(EnvError::NotFound { .. }) => return (Vec::new(), None),
        Err(error) => return (Vec::new(), Some(SkippedFile::new(place, because(&error)))),
    };
    let directories: Vec<_> = entries.iter().filter(|entry| entry.is_dir || entry.is_symlink).collect();
    let skipped = (directories.len() > MAX_PER_DIRECTORY).then(|| {
        let reason = format!(
            "holds {} directories: only the first {MAX_PER_DIRECTORY} are looked at",
            directories.len()
        );
        SkippedFile::new(place, reason)
    });
    let file = |name: &PathBuf| place.join(name).join("SKILL.md");
    (directories.iter().take(MAX_PER_DIRECTORY).map(|entry| file(&entry.name)).collect(), skipped)
}

/// The skill of this file, nothing if there is no such file.
async fn read(env: &dyn ExecutionEnvironment, path: &Path) -> Result<Option<Skill>, SkippedFile> {
    let bytes = match env.read(path, Some(0..READ_LIMIT)).await {
        Ok(bytes) => bytes,
        Err(EnvError::NotFound { .. } | EnvError::NotADirectory { .. }) => return Ok(None),
        Err(error) => return Err(SkippedFile::new(path, because(&error))),
    };
    let text = String::from_utf8_lossy(&bytes);
    match FrontMatter::read(&text) {
        Ok(FrontMatter { name, description }) => {
            Ok(Some(Skill::new(name, description, path.to_string_lossy())))
        }
        Err(error) => Err(SkippedFile::new(path, error.to_string())),
    }
}

#[cfg(test)]
mod tests;
