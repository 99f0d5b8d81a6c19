//! Local search: the ripgrep walker with the rules that all environments share.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError, RwLock,
        atomic::{AtomicUsize, Ordering},
    },
};

use ignore::{DirEntry, WalkBuilder, WalkState};

use crate::{
    blocking::{CancelFlag, blocking},
    error::EnvError,
    file::MAX_ENTRIES,
    host_files::{self, files::Files},
    search::{
        GrepOutput, GrepRequest, SearchScope,
        ignore_rules::{
            EXCLUDE_FILE, GITIGNORE_FILE, IGNORE_FILE, IgnoreFiles, IgnoreRules, REPOSITORY,
            governing_directories,
        },
        newest_first,
        pattern::GlobPattern,
        query::{FileOutcome, FileSearch, Query},
        results::Results,
    },
};

/// Finds the matching files below `root`.
pub(super) async fn find_files(
    files: &Files,
    pattern: GlobPattern,
    scope: SearchScope,
    root: PathBuf,
    working_directory: PathBuf,
) -> Result<Vec<PathBuf>, EnvError> {
    let files = files.clone();
    let scope = pattern.scope(scope);
    let cancelled = CancelFlag::default();
    let _guard = cancelled.on_drop();
    blocking(move || {
        files.metadata(&root)?;
        let found = Mutex::new(Vec::new());
        let tree = Tree::new(&files, &pattern.base, &working_directory, scope, &cancelled);
        tree.visit(pattern.max_depth, || {
            |entry: &DirEntry| {
                let metadata = || match entry.path_is_symlink() {
                    // A dangling link has no metadata and is not a file.
                    true => host_files::metadata(entry.path()),
                    false => files.metadata(entry.path()),
                };
                if pattern.matches(entry.path())
                    && let Ok(metadata) = metadata()
                    && !metadata.is_dir()
                {
                    let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                    found.push((metadata.modified, entry.path().to_path_buf()));
                    if pattern.check_count(found.len()).is_err() {
                        return WalkState::Quit;
                    }
                }
                WalkState::Continue
            }
        });
        let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
        pattern.check_count(found.len())?;
        Ok(newest_first(found))
    })
    .await?
}

/// Searches the file `root`, or the files below it.
pub(super) async fn grep(
    files: &Files,
    request: &GrepRequest,
    root: PathBuf,
    working_directory: PathBuf,
) -> Result<GrepOutput, EnvError> {
    let (files, request) = (files.clone(), request.clone());
    let cancelled = CancelFlag::default();
    let _guard = cancelled.on_drop();
    blocking(move || {
        // A large expression takes a while to compile.
        let query = Query::compile(&request)?;
        let mut results = Results::new(&request);
        if files.metadata(&root)?.is_file() {
            let content = files.open(&root)?;
            results.add(root.clone(), query.search(root, content, &cancelled));
            return Ok(results.finish(0));
        }
        let results = Mutex::new(results);
        let lock = || results.lock().unwrap_or_else(PoisonError::into_inner);
        let tree = Tree::new(&files, &root, &working_directory, request.scope, &cancelled);
        let ignored = tree.visit(None, || {
            let mut search = FileSearch::new(&query);
            let (files, query, root, cancelled) = (&files, &query, &root, &cancelled);
            move |entry: &DirEntry| {
                let path = entry.path();
                let is_file = entry.file_type().is_some_and(|kind| kind.is_file());
                if is_file && query.admits(root, path) && lock().wants(path) {
                    let outcome = match files.open(path) {
                        Ok(content) => search.search(path.to_path_buf(), content, cancelled),
                        Err(_unreadable) => FileOutcome::Unreadable,
                    };
                    lock().add(path.to_path_buf(), outcome);
                }
                WalkState::Continue
            }
        });
        let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(results.finish(ignored))
    })
    .await?
}

/// A directory tree to walk by the ignore rules.
struct Tree<'a> {
    root: &'a Path,
    rules: KnownRules,
    ignored: Arc<AtomicUsize>,
    cancelled: &'a CancelFlag,
}

impl<'a> Tree<'a> {
    fn new(
        files: &Files,
        root: &'a Path,
        working_directory: &Path,
        scope: SearchScope,
        cancelled: &'a CancelFlag,
    ) -> Self {
        let repository = root.ancestors().find(|directory| directory.join(REPOSITORY).exists());
        let mut rules = None;
        for directory in governing_directories(root, working_directory, repository) {
            rules = Some(read_rules(rules.as_ref(), &directory));
        }
        let ignored = Arc::new(AtomicUsize::new(0));
        let known = rules.map(|rules| (root.to_path_buf(), starting_rules(files, root, rules, scope)));
        let of = RwLock::new(known.into_iter().collect());
        let rules = KnownRules { scope, of, ignored: Arc::clone(&ignored) };
        Self { root, rules, ignored, cancelled }
    }

    /// Passes every file and link to a visitor; each thread creates its own. Returns the number of entries that were left
    /// out because they are ignored.
    fn visit<V: FnMut(&DirEntry) -> WalkState + Send>(
        self,
        max_depth: Option<usize>,
        visitor: impl Fn() -> V,
    ) -> usize {
        // With a trailing slash a root that is a link is followed.
        let walker = WalkBuilder::new(self.root.join(""))
            .standard_filters(false)
            .max_depth(max_depth)
            .filter_entry(move |entry| self.rules.admit(entry))
            .build_parallel();
        walker.run(|| {
            let (mut visit, cancelled) = (visitor(), self.cancelled);
            Box::new(move |entry| match entry {
                _ if cancelled.get() => WalkState::Quit,
                Ok(entry) if is_file_or_link(&entry) => visit(&entry),
                Ok(_) => WalkState::Continue,
                Err(error) => {
                    tracing::debug!(%error, "not searched");
                    WalkState::Continue
                }
            })
        });
        self.ignored.load(Ordering::Relaxed)
    }
}

/// Returns the rules of a search that starts in a directory with these rules.
fn starting_rules(
    files: &Files,
    root: &Path,
    rules: Arc<IgnoreRules>,
    scope: SearchScope,
) -> Arc<IgnoreRules> {
    if scope.ignored {
        return rules;
    }
    // A directory that cannot be listed has nothing to find.
    let entries = files.list(root, MAX_ENTRIES).unwrap_or_default();
    scope.starting_in(rules, entries.iter().map(|entry| (root.join(&entry.name), entry.is_dir)))
}

/// The ignore rules of the directories visited so far.
struct KnownRules {
    scope: SearchScope,
    of: RwLock<HashMap<PathBuf, Arc<IgnoreRules>>>,
    /// Number of entries that were left out because they are ignored.
    ignored: Arc<AtomicUsize>,
}

impl KnownRules {
    /// Returns true if an entry is to be visited; reads the rules of a directory.
    fn admit(&self, entry: &DirEntry) -> bool {
        let path = entry.path();
        let Some(parent) = path.parent().filter(|_| entry.depth() > 0) else {
            return true;
        };
        let is_dir = entry.file_type().is_some_and(|kind| kind.is_dir());
        let known = self.of.read().unwrap_or_else(PoisonError::into_inner);
        let rules = known.get(parent).cloned();
        drop(known);
        if self.scope.excludes(rules.as_deref(), path, is_dir) {
            if self.scope.ignores(rules.as_deref(), path, is_dir) {
                self.ignored.fetch_add(1, Ordering::Relaxed);
            }
            return false;
        }
        if is_dir {
            let own = read_rules(rules.as_ref(), path);
            let mut known = self.of.write().unwrap_or_else(PoisonError::into_inner);
            known.insert(path.to_path_buf(), own);
        }
        true
    }
}

fn is_file_or_link(entry: &DirEntry) -> bool {
    entry.depth() > 0 && entry.file_type().is_some_and(|kind| kind.is_file() || kind.is_symlink())
}

/// Reads the rules of a directory; an ignore file that cannot be read has none.
fn read_rules(parent: Option<&Arc<IgnoreRules>>, directory: &Path) -> Arc<IgnoreRules> {
    let read = |name: &str| host_files::read(&directory.join(name), None).unwrap_or_default();
    let is_repository = directory.join(REPOSITORY).exists();
    let files = IgnoreFiles {
        ignore: read(IGNORE_FILE),
        gitignore: read(GITIGNORE_FILE),
        exclude: if is_repository { read(EXCLUDE_FILE) } else { Vec::new() },
        is_repository,
    };
    IgnoreRules::below(parent, directory, &files)
}
