//! The git work tree of a directory, found without a process.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use pintle_env::{EnvError, ExecutionEnvironment, FileContent, ReadLimits};

use super::sanitized;

/// Files of each ancestor that decide whether it is the root of a work tree.
const FILES: [&str; 3] = [".git", ".git/HEAD", ".git/config"];

/// Maximum size of one of these files, in bytes, and of all of them together. Only git reads larger ones.
const MAX_FILE: u64 = 64 << 10;
const MAX_FILES: u64 = 512 << 10;

/// Size of an index of some 5,000 files, in bytes. `git status` looks at each of them.
const LARGE_INDEX: u64 = 512 << 10;

/// A git work tree that contains the working directory. It is a guess: only git decides whether it is one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct WorkTree {
    /// The root, as an ancestor of the working directory if it has such a path.
    pub(super) root: PathBuf,
    /// The branch, or `(detached)`; `None` if only git can read it.
    pub(super) branch: Option<String>,
    /// The directory with `HEAD` and the index.
    git_directory: PathBuf,
}

/// Result of the search for a work tree.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum WorkTreeSearch {
    Found(WorkTree),
    /// The working directory and its ancestors have no `.git`.
    Outside,
    /// Only git can answer: a path cannot be read, or has an unusual form.
    Unknown,
}

/// The nearest `.git` of the working directory and its ancestors.
#[derive(Debug, PartialEq, Eq)]
enum DotGit {
    /// A directory this number of levels above, with its `HEAD`.
    Directory(usize, Vec<u8>),
    /// A file this number of levels above, as in linked work trees and submodules.
    File(usize, Vec<u8>),
    Missing,
    /// Only git can interpret it.
    Unusual,
}

impl WorkTree {
    /// Searches the working directory and its ancestors, nearest first, as git does.
    pub(super) async fn find(env: &dyn ExecutionEnvironment) -> WorkTreeSearch {
        match find(env).await {
            Ok(search) => search,
            Err(error) => {
                tracing::debug!(%error, "the work tree could not be searched");
                WorkTreeSearch::Unknown
            }
        }
    }

    /// Returns whether git needs long to compare the files with the index.
    pub(super) async fn is_large(&self, env: &dyn ExecutionEnvironment) -> bool {
        let index = env.metadata(&self.git_directory.join("index")).await;
        index.is_ok_and(|index| index.len >= LARGE_INDEX)
    }
}

async fn find(env: &dyn ExecutionEnvironment) -> Result<WorkTreeSearch, EnvError> {
    let working_directory = env.working_directory();
    // Git ascends from the directory to which links lead.
    let directory = match env.canonicalize(working_directory).await {
        Err(EnvError::Unsupported { .. }) => working_directory.to_path_buf(),
        found => found?,
    };
    let candidates: Vec<PathBuf> =
        directory.ancestors().flat_map(|ancestor| FILES.map(|name| ancestor.join(name))).collect();
    let contents = env.read_many(&candidates, ReadLimits::new(MAX_FILE, MAX_FILES)).await?;
    let (levels, git_directory, head) = match find_nearest(&contents) {
        DotGit::Missing => return Ok(WorkTreeSearch::Outside),
        DotGit::Unusual => return Ok(WorkTreeSearch::Unknown),
        DotGit::Directory(levels, head) => (levels, PathBuf::from(".git"), Some(head)),
        DotGit::File(levels, file) => {
            let Some(git_directory) = parse_dot_git(&file) else { return Ok(WorkTreeSearch::Unknown) };
            (levels, git_directory, None)
        }
    };
    let Some(root) = directory.ancestors().nth(levels) else { return Ok(WorkTreeSearch::Unknown) };
    let git_directory = root.join(git_directory);
    let head = match head {
        Some(head) => Some(head),
        None => read_one(env, git_directory.join("HEAD")).await?,
    };
    let prefix = directory.strip_prefix(root).unwrap_or(Path::new(""));
    Ok(WorkTreeSearch::Found(WorkTree {
        root: logical_root(working_directory, root, prefix),
        branch: head.as_deref().and_then(parse_head),
        git_directory,
    }))
}

/// Finds the nearest `.git` in the contents of the [`FILES`] of each ancestor, nearest first.
fn find_nearest(contents: &[FileContent]) -> DotGit {
    for (levels, files) in contents.chunks(FILES.len()).enumerate() {
        match files {
            [FileContent::Missing, FileContent::Missing, _] => {}
            [FileContent::Bytes(file), ..] => return DotGit::File(levels, file.clone()),
            [_, FileContent::Bytes(head), config] if !may_name_root(config) => {
                return DotGit::Directory(levels, head.clone());
            }
            _ => return DotGit::Unusual,
        }
    }
    DotGit::Missing
}

/// Returns whether the root may be elsewhere by the setting `core.worktree`.
fn may_name_root(config: &FileContent) -> bool {
    match config {
        FileContent::Missing => false,
        FileContent::Bytes(config) => {
            let name = b"worktree";
            config.windows(name.len()).any(|word| word.eq_ignore_ascii_case(name))
        }
        FileContent::TooLarge | FileContent::NotAFile | FileContent::Unreadable | FileContent::Skipped => {
            true
        }
    }
}

/// Returns the directory that a `.git` file names, relative to the directory of the file.
fn parse_dot_git(file: &[u8]) -> Option<PathBuf> {
    let path = file.strip_prefix(b"gitdir: ")?.trim_ascii_end();
    (!path.is_empty()).then(|| path_from_bytes(path))
}

/// Returns the branch that a `HEAD` names, as `git status` prints it.
fn parse_head(head: &[u8]) -> Option<String> {
    let head = head.trim_ascii_end();
    match head.strip_prefix(b"ref:") {
        Some(reference) => {
            let name = reference.trim_ascii_start().strip_prefix(b"refs/heads/")?;
            // Another file has the branch in the format `reftable`.
            (name != b".invalid").then(|| sanitized(name))
        }
        None => (!head.is_empty() && head.iter().all(u8::is_ascii_hexdigit)).then(|| "(detached)".to_owned()),
    }
}

async fn read_one(env: &dyn ExecutionEnvironment, path: PathBuf) -> Result<Option<Vec<u8>>, EnvError> {
    let contents = env.read_many(&[path], ReadLimits::new(MAX_FILE, MAX_FILE)).await?;
    Ok(contents.into_iter().find_map(|content| match content {
        FileContent::Bytes(bytes) => Some(bytes),
        FileContent::TooLarge
        | FileContent::Missing
        | FileContent::NotAFile
        | FileContent::Unreadable
        | FileContent::Skipped => None,
    }))
}

/// Returns the root as an ancestor of `working_directory`, from the root without links and the prefix below it.
///
/// If `/tmp` is a link to `/private/tmp`, the root without links is not an ancestor of `/tmp/project` by name.
/// If the working directory ends with the prefix, its path without the prefix is the root.
pub(super) fn logical_root(working_directory: &Path, root: &Path, prefix: &Path) -> PathBuf {
    let steps = prefix.components().filter(|step| matches!(step, Component::Normal(_))).count();
    let named = working_directory.ancestors().nth(steps);
    match named {
        Some(named) if !working_directory.starts_with(root) && working_directory.ends_with(prefix) => {
            named.to_path_buf()
        }
        Some(_) | None => root.to_path_buf(),
    }
}

pub(super) fn path_from_bytes(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}

#[cfg(test)]
mod tests;
