//! Repositories and directories with protected files, at any depth of a workspace.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use pintle_env::{
    EntryKind, EnvError, ExecutionEnvironment, ExecutionEnvironmentExt as _, FileContent, ReadLimits,
    WalkRequest,
};

/// Name of a repository's directory, or of the file that leads to it.
const GIT: &str = ".git";

/// Limits of the search for nested repositories.
const MAX_ENTRIES: usize = 50_000;
const MAX_TIME: Duration = Duration::from_secs(5);

/// Maximum number of git directories that are examined.
const MAX_GIT_DIRECTORIES: usize = 256;

/// Depth of the names of submodules, which may have slashes.
const MAX_NAME_DEPTH: usize = 4;

/// Maximum size of a file that names a directory, and of all such files.
const MAX_LINK: u64 = 4 << 10;
const MAX_LINKS: u64 = 1 << 20;

/// Locations of protected files.
#[derive(Clone, Debug, Default)]
pub(super) struct Locations {
    /// The working directory, with all links resolved.
    pub(super) root: PathBuf,
    /// Every path named `.git` that was ever found, with its current state.
    pub(super) entries: BTreeMap<PathBuf, GitEntry>,
    /// Git directories of repositories, submodules and worktrees.
    pub(super) git: BTreeSet<PathBuf>,
    /// Directories that the application names.
    pub(super) named: BTreeSet<PathBuf>,
}

/// State of a path named `.git`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum GitEntry {
    Missing,
    Directory,
    /// A symbolic link, which git follows.
    Link,
    /// A file, which names a directory.
    File(Vec<u8>),
    Unreadable,
}

/// Search for repositories and named directories below the working directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Search {
    None,
    /// By a walk, or by the latest one if the environment knows of no change since.
    Latest,
    /// By a walk in any case.
    Fresh,
}

impl Locations {
    /// Finds locations in the working directory and, if it is searched, below it. The `known` locations are included.
    ///
    /// # Errors
    ///
    /// Only errors of the environment as a whole, such as its loss.
    pub(super) async fn find(
        env: &dyn ExecutionEnvironment,
        names: &[PathBuf],
        known: &Self,
        search: Search,
    ) -> Result<Self, EnvError> {
        let working_directory = env.working_directory();
        let root = env.canonicalize(working_directory).await;
        let root = root.unwrap_or_else(|_| working_directory.to_path_buf());
        let mut found = Self { root, git: BTreeSet::new(), ..known.clone() };
        found.named.extend(names.iter().map(|name| found.root.join(name)));
        let mut candidates: BTreeSet<PathBuf> = known.entries.keys().cloned().collect();
        candidates.insert(found.root.join(GIT));
        if search != Search::None {
            found.walk(env, names, search == Search::Fresh, &mut candidates).await?;
        }
        found.read_entries(env, candidates.into_iter().collect()).await?;
        found.find_git_directories(env).await?;
        Ok(found)
    }

    /// Returns the git directory of the working directory itself, if that is the root of a repository.
    pub(super) fn own_git_directory(&self) -> Option<PathBuf> {
        let entry = self.root.join(GIT);
        match self.entries.get(&entry)? {
            GitEntry::Directory | GitEntry::Link => Some(entry),
            GitEntry::File(content) => named_in(&entry, "gitdir:", content),
            GitEntry::Missing | GitEntry::Unreadable => None,
        }
    }

    /// Returns the innermost git directory that a path is in.
    pub(super) fn git_directory_of<'path>(&self, path: &'path Path) -> Option<&'path Path> {
        path.ancestors().skip(1).find(|above| self.git.contains(*above))
    }

    /// Adds the named directories below the root, and the places where a repository may be.
    async fn walk(
        &mut self,
        env: &dyn ExecutionEnvironment,
        names: &[PathBuf],
        is_fresh: bool,
        candidates: &mut BTreeSet<PathBuf>,
    ) -> Result<(), EnvError> {
        let request = WalkRequest::new(&self.root)
            .with_max_entries(MAX_ENTRIES)
            .with_time_limit(MAX_TIME)
            .with_fresh(is_fresh);
        let walked = match env.walk(&request).await {
            Ok(walked) => walked,
            Err(error) if error.is_environment_failure() => return Err(error),
            Err(_) => return Ok(()),
        };
        for entry in walked.entries {
            let path = self.root.join(&entry.path);
            if names.iter().any(|name| entry.path.ends_with(name)) {
                self.named.insert(path);
            } else if entry.kind == EntryKind::Directory {
                candidates.insert(path.join(GIT));
            }
        }
        Ok(())
    }

    async fn read_entries(
        &mut self,
        env: &dyn ExecutionEnvironment,
        candidates: Vec<PathBuf>,
    ) -> Result<(), EnvError> {
        let contents = env.read_many(&candidates, ReadLimits::new(MAX_LINK, MAX_LINKS)).await?;
        for (path, content) in candidates.into_iter().zip(contents) {
            let entry = match content {
                FileContent::Missing => GitEntry::Missing,
                FileContent::Bytes(bytes) => GitEntry::File(bytes),
                FileContent::NotAFile => match env.canonicalize(&path).await {
                    Ok(real) if real != path => GitEntry::Link,
                    Ok(_) | Err(_) => GitEntry::Directory,
                },
                FileContent::TooLarge | FileContent::Skipped | FileContent::Unreadable => {
                    GitEntry::Unreadable
                }
            };
            // A path that was found once stays known, even if it is ignored later.
            if entry != GitEntry::Missing || self.entries.contains_key(&path) {
                self.entries.insert(path, entry);
            }
        }
        Ok(())
    }

    /// Adds the directories of the entries, and the directories of their submodules and worktrees.
    async fn find_git_directories(&mut self, env: &dyn ExecutionEnvironment) -> Result<(), EnvError> {
        let mut pending = Vec::new();
        for (path, entry) in &self.entries {
            match entry {
                GitEntry::Directory | GitEntry::Link => pending.push(path.clone()),
                GitEntry::File(content) => {
                    pending.extend(named_in(path, "gitdir:", content).map(|path| env.resolve(&path)));
                }
                GitEntry::Missing | GitEntry::Unreadable => {}
            }
        }
        // The repository of the working directory comes first, in case there are too many.
        pending.sort_by_key(|path| std::cmp::Reverse(path.components().count()));
        while let Some(git) = pending.pop() {
            if self.git.len() >= MAX_GIT_DIRECTORIES || !self.git.insert(git.clone()) {
                continue;
            }
            let file = git.join("commondir");
            if let Some(FileContent::Bytes(content)) =
                env.read_many(std::slice::from_ref(&file), ReadLimits::new(MAX_LINK, MAX_LINK)).await?.pop()
            {
                pending.extend(named_in(&file, "", &content).map(|path| env.resolve(&path)));
            }
            pending.extend(directories(env, &git.join("worktrees")).await?);
            pending.extend(submodules(env, &git.join("modules")).await?);
        }
        Ok(())
    }
}

/// Returns the git directories of submodules below `modules`.
async fn submodules(env: &dyn ExecutionEnvironment, modules: &Path) -> Result<Vec<PathBuf>, EnvError> {
    let mut found = Vec::new();
    let mut pending = vec![(modules.to_path_buf(), 1)];
    while let Some((directory, depth)) = pending.pop() {
        let below = directories(env, &directory).await?;
        let heads: Vec<PathBuf> = below.iter().map(|path| path.join("HEAD")).collect();
        let heads = env.read_many(&heads, ReadLimits::new(MAX_LINK, MAX_LINKS)).await?;
        for (path, head) in below.into_iter().zip(heads) {
            if head != FileContent::Missing {
                found.push(path);
            } else if depth < MAX_NAME_DEPTH {
                pending.push((path, depth + 1));
            }
        }
        if found.len() >= MAX_GIT_DIRECTORIES {
            break;
        }
    }
    Ok(found)
}

/// Returns the directories in a directory; none if it cannot be listed.
async fn directories(env: &dyn ExecutionEnvironment, path: &Path) -> Result<Vec<PathBuf>, EnvError> {
    match env.list_directory(path, 1).await {
        Ok(entries) => {
            let directories = entries.into_iter().filter(|entry| entry.is_dir);
            Ok(directories.take(MAX_GIT_DIRECTORIES).map(|entry| path.join(entry.name)).collect())
        }
        Err(error) if error.is_environment_failure() => Err(error),
        Err(_) => Ok(Vec::new()),
    }
}

/// Returns the directory that a small file names after a prefix.
pub(super) fn named_in(file: &Path, prefix: &str, content: &[u8]) -> Option<PathBuf> {
    let text = std::str::from_utf8(content).unwrap_or_default();
    let name = text.trim().strip_prefix(prefix)?.trim();
    (!name.is_empty()).then_some(file.parent()?.join(name))
}
