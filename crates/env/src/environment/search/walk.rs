//! Walks a directory tree through [`ExecutionEnvironment::list`].

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{
    environment::{ExecutionEnvironment, ExecutionEnvironmentExt as _},
    error::EnvError,
    file::DirEntry,
    search::{
        SearchScope,
        ignore_rules::{
            EXCLUDE_FILE, GITIGNORE_FILE, IGNORE_FILE, IgnoreFiles, IgnoreRules, REPOSITORY,
            governing_directories,
        },
    },
};

/// A file or link visited by a walk.
#[derive(Debug)]
pub(super) struct FoundFile {
    pub(super) path: PathBuf,
    pub(super) is_symlink: bool,
}

/// Walks the files below a directory that are not ignored, including links, which are not followed.
pub(super) struct Walk<'a, E: ?Sized> {
    env: &'a E,
    max_depth: usize,
    scope: SearchScope,
    pending: Vec<Directory>,
    found: Vec<FoundFile>,
    /// Number of entries that were left out because they are ignored.
    ignored: usize,
}

struct Directory {
    path: PathBuf,
    depth: usize,
    /// The rules of its parent.
    rules: Option<Arc<IgnoreRules>>,
}

impl<'a, E: ExecutionEnvironment + ?Sized> Walk<'a, E> {
    /// Starts at `root`; a root that does not exist contains no files.
    pub(super) async fn new(
        env: &'a E,
        root: &Path,
        max_depth: Option<usize>,
        scope: SearchScope,
    ) -> Result<Self, EnvError> {
        let rules = rules_above(env, root).await?;
        let pending = match env.metadata(root).await {
            Ok(metadata) if metadata.is_dir() => {
                vec![Directory { path: root.to_path_buf(), depth: 1, rules }]
            }
            Ok(_) | Err(EnvError::NotFound { .. } | EnvError::NotADirectory { .. }) => Vec::new(),
            Err(error) => return Err(error),
        };
        let max_depth = max_depth.unwrap_or(usize::MAX);
        Ok(Self { env, max_depth, scope, pending, found: Vec::new(), ignored: 0 })
    }

    /// Returns how many of the entries visited so far were left out because they are ignored.
    pub(super) fn ignored(&self) -> usize {
        self.ignored
    }

    /// Returns the next file, in no particular order.
    pub(super) async fn next(&mut self) -> Result<Option<FoundFile>, EnvError> {
        loop {
            if let Some(found) = self.found.pop() {
                return Ok(Some(found));
            }
            match self.pending.pop() {
                Some(directory) => self.enter(directory).await?,
                None => return Ok(None),
            }
        }
    }

    async fn enter(&mut self, directory: Directory) -> Result<(), EnvError> {
        let entries = match self.env.list(&directory.path).await {
            Ok(entries) => entries,
            Err(lost) if lost.is_environment_failure() => return Err(lost),
            // A directory that disappears or cannot be read counts as empty.
            Err(_unreadable) => return Ok(()),
        };
        let mut rules = rules_of(self.env, &directory.path, directory.rules.as_ref(), &entries).await?;
        if directory.depth == 1 {
            let named = entries.iter().map(|entry| (directory.path.join(&entry.name), entry.is_dir));
            rules = self.scope.starting_in(rules, named);
        }
        for entry in entries {
            let path = directory.path.join(&entry.name);
            if self.scope.excludes(Some(&*rules), &path, entry.is_dir) {
                self.ignored += usize::from(self.scope.ignores(Some(&*rules), &path, entry.is_dir));
                continue;
            }
            if !entry.is_dir {
                if entry.is_symlink || entry.size.is_some() {
                    let is_symlink = entry.is_symlink;
                    self.found.push(FoundFile { path, is_symlink });
                }
            } else if directory.depth < self.max_depth {
                self.pending.push(Directory {
                    path,
                    depth: directory.depth + 1,
                    rules: Some(Arc::clone(&rules)),
                });
            }
        }
        Ok(())
    }
}

/// Returns the rules in effect in the parent of `root`.
pub(crate) async fn rules_above<E: ExecutionEnvironment + ?Sized>(
    env: &E,
    root: &Path,
) -> Result<Option<Arc<IgnoreRules>>, EnvError> {
    let repository = find_repository(env, root).await?;
    let governing = governing_directories(root, env.working_directory(), repository.as_deref());
    let mut rules = None;
    for directory in governing.iter().filter(|directory| *directory != root) {
        let entries = match env.list(directory).await {
            Err(lost) if lost.is_environment_failure() => return Err(lost),
            listed => listed.unwrap_or_default(),
        };
        rules = Some(rules_of(env, directory, rules.as_ref(), &entries).await?);
    }
    Ok(rules)
}

/// Returns the nearest ancestor of `path`, or `path` itself, that is the root of a repository.
async fn find_repository<E: ExecutionEnvironment + ?Sized>(
    env: &E,
    path: &Path,
) -> Result<Option<PathBuf>, EnvError> {
    for directory in path.ancestors() {
        match env.file_exists(&directory.join(REPOSITORY)).await {
            Ok(true) => return Ok(Some(directory.to_path_buf())),
            // A directory hidden by a wrapper has no rules for visible files.
            Ok(false) | Err(EnvError::Refused { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// Returns the rules in effect in a directory with these entries.
pub(crate) async fn rules_of<E: ExecutionEnvironment + ?Sized>(
    env: &E,
    directory: &Path,
    parent: Option<&Arc<IgnoreRules>>,
    entries: &[DirEntry],
) -> Result<Arc<IgnoreRules>, EnvError> {
    let has = |name: &str| entries.iter().any(|entry| entry.name == Path::new(name));
    let mut files = IgnoreFiles { is_repository: has(REPOSITORY), ..IgnoreFiles::default() };
    if has(IGNORE_FILE) {
        files.ignore = read_rules(env, &directory.join(IGNORE_FILE)).await?;
    }
    if has(GITIGNORE_FILE) {
        files.gitignore = read_rules(env, &directory.join(GITIGNORE_FILE)).await?;
    }
    if files.is_repository {
        files.exclude = read_rules(env, &directory.join(EXCLUDE_FILE)).await?;
    }
    Ok(IgnoreRules::below(parent, directory, &files))
}

/// Reads an ignore file; one that cannot be read has no rules.
async fn read_rules<E: ExecutionEnvironment + ?Sized>(env: &E, path: &Path) -> Result<Vec<u8>, EnvError> {
    match env.read(path, None).await {
        Ok(content) => Ok(content),
        Err(lost) if lost.is_environment_failure() => Err(lost),
        Err(_unreadable) => Ok(Vec::new()),
    }
}
