//! Files that run programs later, compared around each command.

mod harmless;
mod locations;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use pintle_env::{EnvError, ExecutionEnvironment, FileContent, ReadLimits};
use pintle_tools::gate::{Gate, Verdict};
use pintle_tools::pipeline::PreparedCall;
use pintle_tools::{Effect, SandboxSide};
use similar::TextDiff;
use tokio::sync::Mutex;

use self::harmless::is_harmless;
use self::locations::{GitEntry, Locations, is_lost};

/// Files of a git directory whose content runs programs, or decides which.
const GIT_FILES: [&str; 3] = ["commondir", "config", "config.worktree"];

/// Directories of it, with everything below.
const GIT_DIRECTORIES: [&str; 2] = ["hooks", "info"];

/// Most files whose content is compared. Of those beyond it only the number is.
const MAX_FILES: usize = 2048;

/// Largest files whose content is compared and shown, and the most of all of them; of others only the size is.
const MAX_FILE: u64 = 256 << 10;
const MAX_TOTAL: u64 = 4 << 20;

/// Longest diff that is shown, in bytes.
const MAX_DIFF: usize = 8 << 10;

/// Ends a run whose command has changed a protected file: the configuration, hooks and attributes of git, and the files of
/// directories that an application adds. The reason has the diff; nothing is restored.
///
/// Watched are the repository of the working directory with its submodules and worktrees, and the repositories below it that
/// are not ignored. A whole repository may come and go, if it comes without hooks and attributes, and with settings that name
/// no program.
///
/// The files are read in the environment, once before the first command and after each. What a command in the background
/// changes is found after the next one. Once a change was reported, the new content is what later commands are compared with.
#[derive(Clone, Debug)]
pub struct ProtectedPathWatch {
    env: Arc<dyn ExecutionEnvironment>,
    directories: Vec<PathBuf>,
    /// Whether it looks for repositories below the working directory.
    searches: bool,
    /// Paths that commands in the sandbox cannot change.
    held: Arc<[PathBuf]>,
    /// What the files were when they were last looked at.
    known: Arc<Mutex<Option<Snapshot>>>,
}

/// State of all watched files.
#[derive(Clone, Debug, Default)]
struct Snapshot {
    locations: Locations,
    files: BTreeMap<PathBuf, Content>,
}

/// Content of a file, as far as it is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Content {
    Bytes(Vec<u8>),
    TooLarge(Option<u64>),
    Link,
    Other,
}

/// Returns the paths of a workspace that a sandbox should keep commands from changing: what [`ProtectedPathWatch`] watches,
/// as far as it exists. Of the repository of the working directory itself, some do not exist yet. Links are left out, except
/// those of that repository.
///
/// # Errors
///
/// Only those of the environment as a whole, such as that it is lost.
pub async fn protected_paths<I>(
    env: &dyn ExecutionEnvironment,
    directories: I,
) -> Result<Vec<PathBuf>, EnvError>
where
    I: IntoIterator,
    I::Item: Into<PathBuf>,
{
    let names: Vec<PathBuf> = directories.into_iter().map(Into::into).collect();
    let locations = Locations::find(env, &names, &Locations::default(), true).await?;
    let own = locations.own_git_directory();
    let mut paths = Vec::new();
    for git in &locations.git {
        let is_own = own.as_ref().is_some_and(|own| env.resolve(own) == *git);
        // A worktree has neither settings nor hooks of its own, and git fails over an empty `commondir`.
        let is_complete = is_own && git.parent() == Some(locations.root.as_path());
        for name in GIT_FILES.into_iter().chain(GIT_DIRECTORIES) {
            let path = git.join(name);
            let is_always = match name {
                "commondir" => false,
                "config.worktree" => is_own,
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
    Ok(paths)
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
        Self { env, directories, searches: true, held: Arc::default(), known: Arc::default() }
    }

    /// Says that a sandbox keeps commands from changing these paths and what is below, as [`protected_paths`] returns them. A
    /// change of them is that of somebody else, and ends the run only after a command outside of the sandbox.
    #[must_use]
    pub fn held(mut self, paths: impl IntoIterator<Item = PathBuf>) -> Self {
        self.held = paths.into_iter().collect();
        self
    }

    /// Leaves out repositories and directories below the working directory, other than submodules and worktrees. It is for
    /// environments where a walk of the workspace after each command takes too long.
    #[must_use]
    pub fn without_search(mut self) -> Self {
        self.searches = false;
        self
    }

    /// Reads all watched files, and those at locations that were known before.
    ///
    /// # Errors
    ///
    /// Only those of the environment as a whole, such as that it is lost.
    async fn look(&self, known: &Locations) -> Result<Snapshot, EnvError> {
        let locations = Locations::find(self.env.as_ref(), &self.directories, known, self.searches).await?;
        let mut sizes: BTreeMap<PathBuf, Option<u64>> = BTreeMap::new();
        for git in &locations.git {
            sizes.extend(GIT_FILES.map(|name| (git.join(name), None)));
            for name in GIT_DIRECTORIES {
                self.find(&git.join(name), &mut sizes).await?;
            }
        }
        for directory in &locations.named {
            self.find(directory, &mut sizes).await?;
        }
        // Samples are never run.
        sizes.retain(|path, _| path.extension().is_none_or(|extension| extension != "sample"));
        let excess = sizes.len().saturating_sub(MAX_FILES) as u64;
        let paths: Vec<PathBuf> = sizes.keys().take(MAX_FILES).cloned().collect();
        let contents = self.env.read_many(&paths, ReadLimits::new(MAX_FILE, MAX_TOTAL)).await?;
        let of_content = |((path, size), content)| {
            let content = match content {
                FileContent::Bytes(bytes) => Content::Bytes(bytes),
                FileContent::TooLarge | FileContent::Skipped => Content::TooLarge(size),
                FileContent::Missing => return None,
                FileContent::NotAFile | FileContent::Unreadable => Content::Other,
            };
            Some((path, content))
        };
        let mut files: BTreeMap<PathBuf, Content> =
            sizes.into_iter().zip(contents).filter_map(of_content).collect();
        files.extend(locations.entries.iter().filter_map(|(path, entry)| {
            let content = match entry {
                GitEntry::Missing => return None,
                GitEntry::Directory | GitEntry::Unreadable => Content::Other,
                GitEntry::Link => Content::Link,
                GitEntry::File(bytes) => Content::Bytes(bytes.clone()),
            };
            Some((path.clone(), content))
        }));
        if excess > 0 {
            files.insert(locations.root.join(".git/…"), Content::TooLarge(Some(excess)));
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
            Err(error) if is_lost(&error) => return Err(error),
            Err(_) => {
                files.insert(path.to_path_buf(), None);
            }
        }
        Ok(())
    }
}

/// Returns what differs and may run something later, with the diff of each file; `None` if nothing does.
fn describe(before: &Snapshot, after: &Snapshot, held: &[PathBuf]) -> Option<String> {
    let paths: BTreeSet<&PathBuf> = before.files.keys().chain(after.files.keys()).collect();
    let changed = paths
        .into_iter()
        .filter(|path| before.files.get(*path) != after.files.get(*path))
        .filter(|path| !held.iter().any(|held| path.starts_with(held)))
        .filter(|path| !is_harmless(path, before, after));
    let changed: Vec<&PathBuf> = changed.collect();
    let first = changed.first()?;
    let more = match changed.len() {
        1 => String::new(),
        more => format!(" and {} more", more - 1),
    };
    let mut text = format!(
        "a command changed the protected file {}{more}, from which programs are run later; look at the change and undo it unless you want it",
        first.display()
    );
    for path in &changed {
        let of = |snapshot: &Snapshot| match snapshot.files.get(*path) {
            None => Some(String::new()),
            Some(Content::Bytes(bytes)) => String::from_utf8(bytes.clone()).ok(),
            Some(Content::TooLarge(_) | Content::Link | Content::Other) => None,
        };
        let (Some(old), Some(new)) = (of(before), of(after)) else {
            let _ = write!(text, "\n{}: its content is not text, or too large to show", path.display());
            continue;
        };
        let diff = TextDiff::from_lines(&old, &new);
        let name = path.display().to_string();
        let _ = write!(text, "\n{}", diff.unified_diff().header(&name, &name));
    }
    if text.len() > MAX_DIFF {
        let end = (0..=MAX_DIFF).rev().find(|end| text.is_char_boundary(*end));
        text.truncate(end.unwrap_or(0));
        text.push_str("\n… the rest is not shown");
    }
    Some(text.trim_end().to_owned())
}

#[async_trait]
impl Gate for ProtectedPathWatch {
    fn name(&self) -> &'static str {
        "protected_path_watch"
    }

    async fn check(&self, call: &PreparedCall) -> Verdict {
        if call.effect() == Effect::Execute {
            let mut known = self.known.lock().await;
            if known.is_none() {
                match self.look(&Locations::default()).await {
                    Ok(snapshot) => *known = Some(snapshot),
                    Err(error) => {
                        return Verdict::deny(format!(
                            "protected files cannot be compared around it: {error}"
                        ));
                    }
                }
            }
        }
        Verdict::ALLOW
    }

    async fn stop_after(&self, call: &PreparedCall) -> Option<String> {
        if call.effect() != Effect::Execute {
            return None;
        }
        let mut known = self.known.lock().await;
        // A lost environment ends the run by itself.
        let locations = known.as_ref().map(|known| known.locations.clone()).unwrap_or_default();
        let now = self.look(&locations).await.ok()?;
        let held = if call.sandbox() == Some(SandboxSide::Outside) { &[] } else { &*self.held };
        let change = known.as_ref().and_then(|before| describe(before, &now, held));
        *known = Some(now);
        change
    }
}

#[cfg(test)]
mod tests;
