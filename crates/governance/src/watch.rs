//! Watch on files that run programs later. They are compared after each command.

mod harmless;
mod locations;
mod snapshot;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use pintle_env::{EnvError, ExecutionEnvironment, ExecutionEnvironmentExt as _, ReadLimits};
use pintle_tools::gate::{Gate, Verdict};
use pintle_tools::pipeline::PreparedCall;
use pintle_tools::{Effect, SandboxSide};
use similar::TextDiff;
use tokio::sync::Mutex;

use self::harmless::is_harmless;
use self::locations::{GitEntry, Locations, Search};
pub use self::snapshot::WatchedFiles;
use self::snapshot::{Content, FileState, Snapshot};

/// Files of a git directory whose content runs programs or selects them.
const GIT_FILES: [&str; 4] = ["commondir", "config", "config.worktree", ATTRIBUTES];

/// Patterns that select drivers and filters. The other files in the same directory only list branches and patterns.
const ATTRIBUTES: &str = "info/attributes";

/// The steps of a rebase in progress. A step `exec` runs a program when the user continues it.
const REBASE: &str = "rebase-merge/git-rebase-todo";

/// Suffix of the file that keeps such steps of a command.
const REFUSED: &str = ".refused";

/// Directories of a git directory, with all files below them.
const GIT_DIRECTORIES: [&str; 1] = ["hooks"];

/// Maximum number of files whose content is compared. Of further files, only the number is compared.
const MAX_FILES: usize = 2048;

/// Maximum size of a file whose content is compared and shown, and of all such files. Of larger files, size and identity are
/// compared.
const MAX_FILE: u64 = 256 << 10;
const MAX_TOTAL: u64 = 4 << 20;

/// Maximum size of a shown diff, in bytes.
const MAX_DIFF: usize = 8 << 10;

/// Ends a run whose command has changed a protected file: the configuration, hooks and attributes of git, and the files
/// of directories that an application adds. The reason contains the diff. Nothing is restored. Only rebase steps that run
/// a program are moved to a file beside them, named `git-rebase-todo.refused`.
///
/// The watch covers the repository of the working directory with its submodules and worktrees, and the repositories below
/// it that are not ignored. Settings that name no program may change. A whole repository may appear or disappear. A new
/// repository must have no hooks and attributes, and only settings that name no program.
///
/// The files are read in the environment, once before the first command, after each, and when a run ends. [`check_final`]
/// finds later changes by commands in the background. After a change is reported, later commands are compared with the
/// new content. Content and mode are compared; for a file above 256 KiB, the size, and the identity, which changes with
/// each write.
///
/// [`check_final`]: Self::check_final
#[derive(Clone)]
pub struct ProtectedPathWatch {
    env: Arc<dyn ExecutionEnvironment>,
    directories: Vec<PathBuf>,
    /// Whether it looks for repositories below the working directory.
    searches: bool,
    /// Paths that commands in the sandbox cannot change.
    held: Arc<[PathBuf]>,
    /// Source of more such paths.
    found: Option<SandboxedPathsSource>,
    /// Source of the held paths that a command could change after all.
    replaced: Option<ReplacedPathsSource>,
    /// Whether a command ran outside the sandbox. Processes that it started may change held paths later.
    outside_ran: Arc<AtomicBool>,
    /// Record of an earlier session.
    earlier: Arc<WatchedFiles>,
    observer: Option<Observer>,
    /// State of the files at the previous check.
    known: Arc<Mutex<Option<Snapshot>>>,
}

/// Result of [`ProtectedPathWatch::check_final`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FinalCheck {
    /// There is no earlier state, since no command ran.
    Skipped,
    /// Nothing has changed that may run a program.
    Unchanged,
    /// This has changed since the previous check.
    Changed(String),
}

/// Returns the paths that a sandbox protects so far.
type SandboxedPathsSource = Arc<dyn Fn() -> Vec<PathBuf> + Send + Sync>;

/// Returns the held paths that a sandbox no longer protects.
type ReplacedPathsSource = Arc<dyn Fn() -> BTreeSet<PathBuf> + Send + Sync>;

/// Receives the state of the files after each check that finds a new state.
type Observer = Arc<dyn Fn(&WatchedFiles) + Send + Sync>;

/// Paths of a workspace to protect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProtectedPaths {
    /// The paths.
    pub paths: Vec<PathBuf>,
    /// Git directories of the repositories, submodules and worktrees that were found.
    pub git_directories: Vec<PathBuf>,
    /// The repositories that were found, for later sessions.
    pub found: WatchedFiles,
}

/// Returns the paths of a workspace that a sandbox should protect from commands: the existing paths that
/// [`ProtectedPathWatch`] watches. Some paths of the repository of the working directory need not exist yet. Links are
/// left out, except in that repository. Repositories of an earlier session are included even if they are ignored by now.
/// # Errors
///
/// Only errors of the environment as a whole, such as its loss.
pub async fn protected_paths<I>(
    env: &dyn ExecutionEnvironment,
    directories: I,
    earlier: &WatchedFiles,
) -> Result<ProtectedPaths, EnvError>
where
    I: IntoIterator,
    I::Item: Into<PathBuf>,
{
    let names: Vec<PathBuf> = directories.into_iter().map(Into::into).collect();
    find_protected_paths(env, &names, earlier, Search::Latest).await
}

/// Returns the [`protected_paths`] that need no search: the paths of the repository of the working directory with its
/// submodules and worktrees, of the working directory itself, and of the repositories of an earlier session.
///
/// # Errors
///
/// Only errors of the environment as a whole, such as its loss.
pub async fn own_protected_paths<I>(
    env: &dyn ExecutionEnvironment,
    directories: I,
    earlier: &WatchedFiles,
) -> Result<ProtectedPaths, EnvError>
where
    I: IntoIterator,
    I::Item: Into<PathBuf>,
{
    let names: Vec<PathBuf> = directories.into_iter().map(Into::into).collect();
    find_protected_paths(env, &names, earlier, Search::None).await
}

/// Returns the paths to protect, also below the working directory if it is searched.
async fn find_protected_paths(
    env: &dyn ExecutionEnvironment,
    names: &[PathBuf],
    earlier: &WatchedFiles,
    search: Search,
) -> Result<ProtectedPaths, EnvError> {
    let locations = Locations::find(env, names, &earlier.locations(), search).await?;
    let own = locations.own_git_directory();
    let mut paths = Vec::new();
    for git in &locations.git {
        let is_own = own.as_ref().is_some_and(|own| env.resolve(own) == *git);
        // A worktree has no separate settings or hooks, and git fails on an empty `commondir`.
        let is_complete = is_own && git.parent() == Some(locations.root.as_path());
        for name in GIT_FILES.into_iter().chain(GIT_DIRECTORIES) {
            let path = git.join(name);
            let is_always = match name {
                "commondir" => false,
                "config.worktree" => is_own,
                // A mount point for a missing file requires the directory.
                ATTRIBUTES => is_complete || exists_without_links(env, &git.join("info")).await,
                _ => is_complete,
            };
            if is_always || exists_without_links(env, &path).await {
                paths.push(path);
            }
        }
    }
    let is_file = |entry: &GitEntry| matches!(entry, GitEntry::File(_));
    paths.extend(locations.entries.iter().filter(|(_, entry)| is_file(entry)).map(|(path, _)| path.clone()));
    for path in &locations.named {
        let is_own = path.parent() == Some(locations.root.as_path());
        let exists = env.file_exists(path).await.unwrap_or(false);
        if exists && (is_own || exists_without_links(env, path).await) {
            paths.push(path.clone());
        }
    }
    let git_directories = locations.git.iter().cloned().collect();
    let found = Snapshot { locations, ..Snapshot::default() }.recorded().without_states();
    Ok(ProtectedPaths { paths, git_directories, found })
}

async fn exists_without_links(env: &dyn ExecutionEnvironment, path: &Path) -> bool {
    env.file_exists(path).await.unwrap_or(false)
        && env.canonicalize(path).await.is_ok_and(|real| real == path)
}

impl ProtectedPathWatch {
    /// Watches the files of the git repository that `env` works in, and of directories with these names in its working
    /// directory and below.
    #[must_use]
    pub fn new<I>(env: Arc<dyn ExecutionEnvironment>, directories: I) -> Self
    where
        I: IntoIterator,
        I::Item: Into<PathBuf>,
    {
        let directories = directories.into_iter().map(Into::into).collect();
        Self {
            env,
            directories,
            searches: true,
            held: Arc::default(),
            found: None,
            replaced: None,
            outside_ran: Arc::default(),
            earlier: Arc::default(),
            observer: None,
            known: Arc::default(),
        }
    }

    /// Continues from the record of an earlier session: its repositories, even if they are ignored by now, and the last
    /// state of its files. The first check compares the files with that state, if there is one.
    #[must_use]
    pub fn with_record(mut self, earlier: WatchedFiles) -> Self {
        self.earlier = Arc::new(earlier);
        self
    }

    /// Sets the function that receives the state of the files after the first check, and after each check that finds a
    /// new state. Keep the state and pass it to the next session if this session does not reach its [last
    /// check](Self::check_final). The function must not block for long.
    #[must_use]
    pub fn with_observer(mut self, observer: impl Fn(&WatchedFiles) + Send + Sync + 'static) -> Self {
        self.observer = Some(Arc::new(observer));
        self
    }

    /// Sets the source of [sandboxed paths](Self::with_sandboxed_paths) that a process outside the sandbox has replaced,
    /// such as `SandboxedEnvironment::replaced_paths`. Commands could change these paths.
    #[must_use]
    pub fn with_replaced_paths(
        mut self,
        replaced: impl Fn() -> BTreeSet<PathBuf> + Send + Sync + 'static,
    ) -> Self {
        self.replaced = Some(Arc::new(replaced));
        self
    }

    /// Compares the files with their state in an earlier session that did not reach its last check. Returns the changes
    /// that a command of that session may have made.
    ///
    /// # Errors
    ///
    /// Only errors of the environment as a whole, such as its loss.
    pub async fn check_recorded(&self) -> Result<Option<String>, EnvError> {
        let mut known = self.known.lock().await;
        if known.is_some() {
            return Ok(None);
        }
        let mut now = self.look(&self.earlier.locations(), Search::Latest).await?;
        let before = self.earlier.snapshot();
        let mut change = None;
        if !self.earlier.is_final() {
            change = describe(&before, &now, &[], &BTreeSet::new());
            self.refuse_steps(&before, &mut now).await;
        }
        self.keep(&mut known, now);
        Ok(change)
    }

    /// Checks once more when the session and all commands have ended.
    ///
    /// # Errors
    ///
    /// Only errors of the environment as a whole, such as its loss.
    pub async fn check_final(&self) -> Result<FinalCheck, EnvError> {
        self.compare(None, Search::Latest).await
    }

    /// Returns the changes since the previous check that may run a program.
    async fn changed_since(&self, call: Option<&PreparedCall>, search: Search) -> Option<String> {
        match self.compare(call, search).await {
            Ok(FinalCheck::Changed(change)) => Some(change),
            // The next call reports a lost environment.
            Ok(FinalCheck::Skipped | FinalCheck::Unchanged) | Err(_) => None,
        }
    }

    async fn compare(&self, call: Option<&PreparedCall>, search: Search) -> Result<FinalCheck, EnvError> {
        let mut known = self.known.lock().await;
        let Some(before) = known.as_ref() else { return Ok(FinalCheck::Skipped) };
        let mut now = self.look(&before.locations, search).await?;
        let replaced = self.replaced.as_ref().map(|replaced| replaced()).unwrap_or_default();
        if call.is_some_and(|call| call.sandbox() == Some(SandboxSide::Outside)) {
            self.outside_ran.store(true, Ordering::Relaxed);
        }
        let is_outside = self.outside_ran.load(Ordering::Relaxed);
        let is_held = |path: &&PathBuf| !is_outside && !replaced.contains(*path);
        let found = self.found.as_ref().map(|found| found()).unwrap_or_default();
        let held: Vec<PathBuf> = self.held.iter().chain(&found).filter(is_held).cloned().collect();
        let change = describe(before, &now, &held, &replaced);
        self.refuse_steps(before, &mut now).await;
        self.keep(&mut known, now);
        Ok(change.map_or(FinalCheck::Unchanged, FinalCheck::Changed))
    }

    /// Moves rebase steps that run a program away, since git runs them when the user continues the rebase. They are
    /// removed from `now`, so that another file with the same steps is a change.
    async fn refuse_steps(&self, before: &Snapshot, now: &mut Snapshot) {
        let is_changed = |(path, state): &(&PathBuf, &FileState)| before.files.get(*path) != Some(*state);
        let changed = now.files.iter().filter(is_changed).map(|(path, _)| path);
        let is_refused = |path: &&PathBuf| path.ends_with(REBASE) && !is_harmless(path, before, now);
        let steps: Vec<PathBuf> = changed.filter(is_refused).cloned().collect();
        for path in steps {
            let mut refused = path.clone().into_os_string();
            refused.push(REFUSED);
            match self.env.rename(&path, Path::new(&refused)).await {
                Ok(()) => drop(now.files.remove(&path)),
                Err(error) => {
                    tracing::warn!(%error, path = %path.display(), "the steps of a rebase cannot be moved away");
                }
            }
        }
    }

    fn keep(&self, known: &mut Option<Snapshot>, now: Snapshot) {
        let is_new = known.as_ref().is_none_or(|before| before.files != now.files);
        if is_new && let Some(observer) = &self.observer {
            observer(&now.recorded());
        }
        *known = Some(now);
    }

    /// Declares that a sandbox protects these paths and the paths below them from commands; [`protected_paths`] returns
    /// them. Another process made any change of them, which ends the run only after a command outside of the sandbox.
    #[must_use]
    pub fn with_sandboxed_paths(mut self, paths: impl IntoIterator<Item = PathBuf>) -> Self {
        self.held = paths.into_iter().collect();
        self
    }

    /// Sets the source of more [sandboxed paths](Self::with_sandboxed_paths), which the sandbox finds before its first command.
    #[must_use]
    pub fn with_found_paths(mut self, found: impl Fn() -> Vec<PathBuf> + Send + Sync + 'static) -> Self {
        self.found = Some(Arc::new(found));
        self
    }

    /// Leaves out repositories and directories below the working directory, other than submodules and worktrees. Use it
    /// in environments where a walk of the workspace after each command takes too long.
    #[must_use]
    pub fn without_search(mut self) -> Self {
        self.searches = false;
        self
    }

    /// Reads all watched files, including files at previously known locations. Searches the workspace unless the search is
    /// left out.
    ///
    /// # Errors
    ///
    /// Only errors of the environment as a whole, such as its loss.
    async fn look(&self, known: &Locations, search: Search) -> Result<Snapshot, EnvError> {
        let search = if self.searches { search } else { Search::None };
        let locations = Locations::find(self.env.as_ref(), &self.directories, known, search).await?;
        let mut sizes: BTreeMap<PathBuf, Option<u64>> = BTreeMap::new();
        for git in &locations.git {
            sizes.extend(GIT_FILES.into_iter().chain([REBASE]).map(|name| (git.join(name), None)));
            for name in GIT_DIRECTORIES {
                self.find(&git.join(name), &mut sizes).await?;
            }
        }
        for directory in &locations.named {
            self.find(directory, &mut sizes).await?;
        }
        // Git never runs samples.
        sizes.retain(|path, _| path.extension().is_none_or(|extension| extension != "sample"));
        let excess = sizes.len().saturating_sub(MAX_FILES) as u64;
        let paths: Vec<PathBuf> = sizes.keys().take(MAX_FILES).cloned().collect();
        let contents = self.env.read_many(&paths, ReadLimits::new(MAX_FILE, MAX_TOTAL)).await?;
        let mut files = BTreeMap::new();
        for (path, content) in paths.into_iter().zip(contents) {
            // Remote environments need one command per file for the mode.
            if let Some(state) = FileState::read(self.env.as_ref(), &path, content, self.searches).await
                && !state.is_empty()
            {
                files.insert(path, state);
            }
        }
        files.extend(locations.entries.iter().filter_map(|(path, entry)| {
            let content = match entry {
                GitEntry::Missing => return None,
                GitEntry::Directory | GitEntry::Unreadable => Content::Other,
                GitEntry::Link => Content::Link,
                GitEntry::File(bytes) => Content::Bytes(bytes.clone()),
            };
            Some((path.clone(), content.into()))
        }));
        if excess > 0 {
            files.insert(locations.root.join(".git/…"), Content::Counted(excess).into());
        }
        Ok(Snapshot { locations, files })
    }

    /// Adds a file, or the files of a directory with everything below it.
    async fn find(&self, path: &Path, files: &mut BTreeMap<PathBuf, Option<u64>>) -> Result<(), EnvError> {
        match self.env.list_directory(path, 4).await {
            Ok(entries) => {
                let found = entries.into_iter().filter(|entry| !entry.is_dir);
                files.extend(found.map(|entry| (path.join(entry.name), entry.size)));
            }
            Err(error) if error.is_environment_failure() => return Err(error),
            Err(_) => {
                files.insert(path.to_path_buf(), None);
            }
        }
        Ok(())
    }
}

/// Describes the differences that may run a program later, with the diff of each file; `None` without such differences.
/// `replaced` contains the paths that a process outside of the sandbox has replaced.
fn describe(
    before: &Snapshot,
    after: &Snapshot,
    held: &[PathBuf],
    replaced: &BTreeSet<PathBuf>,
) -> Option<String> {
    let paths: BTreeSet<&PathBuf> = before.files.keys().chain(after.files.keys()).collect();
    let changed = paths
        .into_iter()
        .filter(|path| before.files.get(*path) != after.files.get(*path))
        .filter(|path| !held.iter().any(|held| path.starts_with(held)))
        .filter(|path| !is_harmless(path, before, after));
    let changed: Vec<&PathBuf> = changed.collect();
    if changed.is_empty() {
        return None;
    }
    let cause = match changed.iter().all(|path| replaced.contains(*path)) {
        true => "a process outside the sandbox, or a command after it,",
        false => "a command",
    };
    let is_repository = |path: &PathBuf| before.locations.entries.get(path) == Some(&GitEntry::Directory);
    let lost = changed.iter().copied().filter(|path| is_repository(path) && !after.files.contains_key(*path));
    let lost: Vec<&PathBuf> = lost.collect();
    let is_lost = |path: &PathBuf| lost.iter().any(|lost| path.starts_with(lost));
    let rest: Vec<&PathBuf> = changed.into_iter().filter(|path| !is_lost(path)).collect();
    let mut text = String::new();
    for repository in &lost {
        let repository = repository.display();
        let _ = writeln!(
            text,
            "{cause} removed or moved the repository {repository} with its history; move it back or clone it again"
        );
    }
    text.push_str(&describe_files(&rest, cause, before, after));
    if text.len() > MAX_DIFF {
        let end = (0..=MAX_DIFF).rev().find(|end| text.is_char_boundary(*end));
        text.truncate(end.unwrap_or(0));
        text.push_str("\n… the rest is not shown");
    }
    Some(text.trim_end().to_owned())
}

/// Describes the differences of these files; empty without files.
fn describe_files(changed: &[&PathBuf], cause: &str, before: &Snapshot, after: &Snapshot) -> String {
    let Some(first) = changed.first() else { return String::new() };
    let more = match changed.len() {
        1 => String::new(),
        more => format!(" and {} more", more - 1),
    };
    let mut text = format!(
        "{cause} changed the protected file {}{more}, which can run programs later; review the change and revert it unless you want it",
        first.display()
    );
    for path in changed {
        let (old, new) = (before.files.get(*path), after.files.get(*path));
        if let (Some(old), Some(new)) = (old, new)
            && let Some((old, new)) = old.differing_modes(new)
        {
            let _ = write!(text, "\n{}: mode {old:o}, now {new:o}", path.display());
        }
        let (Some(old), Some(new)) = (FileState::text(old), FileState::text(new)) else {
            let _ = write!(
                text,
                "\n{}: its content is not text, too large to show, or of an earlier session",
                path.display()
            );
            continue;
        };
        let diff = TextDiff::from_lines(&old, &new);
        let name = path.display().to_string();
        let _ = write!(text, "\n{}", diff.unified_diff().header(&name, &name));
    }
    text
}

#[async_trait]
impl Gate for ProtectedPathWatch {
    fn name(&self) -> &'static str {
        "protected_path_watch"
    }

    async fn check(&self, call: &PreparedCall) -> Verdict {
        if call.effect() != Effect::Execute {
            return Verdict::ALLOW;
        }
        match self.check_recorded().await {
            Ok(None) => Verdict::ALLOW,
            Ok(Some(change)) => Verdict::deny(change),
            Err(error) => Verdict::deny(format!("protected files cannot be compared around it: {error}")),
        }
    }

    async fn stop_after(&self, call: &PreparedCall) -> Option<String> {
        if call.effect() == Effect::Execute {
            self.changed_since(Some(call), Search::Latest).await
        } else {
            None
        }
    }

    async fn stop_at_end(&self) -> Option<String> {
        // Also finds changes that the environment does not report.
        self.changed_since(None, Search::Fresh).await
    }
}

impl fmt::Debug for ProtectedPathWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProtectedPathWatch").field("env", &self.env).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
