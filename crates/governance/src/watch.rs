//! Files that run programs later, compared around each command.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use pintle_env::{EnvError, ExecutionEnvironment, FileContent, ReadLimits};
use pintle_tools::Effect;
use pintle_tools::gate::{Gate, Verdict};
use pintle_tools::pipeline::PreparedCall;
use similar::TextDiff;
use tokio::sync::Mutex;

/// Files of a git repository whose content runs programs, or decides which.
const GIT_FILES: [&str; 2] = ["config", "config.worktree"];

/// Directories of it, with everything below.
const GIT_DIRECTORIES: [&str; 2] = ["hooks", "info"];

/// Most files whose content is compared. Of those beyond it only the number is.
const MAX_FILES: usize = 512;

/// Largest files whose content is compared and shown, and the most of all of them; of others only the size is.
const MAX_FILE: u64 = 256 << 10;
const MAX_TOTAL: u64 = 4 << 20;

/// Longest diff that is shown, in bytes.
const MAX_DIFF: usize = 8 << 10;

/// Ends a run whose command has changed a protected file: git's configuration, hooks and attributes, and the files of
/// directories that an application adds. The reason has the diff; nothing is restored.
///
/// It is for environments whose sandbox does not hold these files, such as the level *writes*. They are read in the
/// environment, once before the first command and after each. What a command in the background changes is found after the
/// next one. Once a change was reported, the new content is what later commands are compared with.
#[derive(Clone, Debug)]
pub struct ProtectedPathWatch {
    env: Arc<dyn ExecutionEnvironment>,
    directories: Vec<PathBuf>,
    /// What the files were when they were last looked at.
    known: Arc<Mutex<Option<Snapshot>>>,
}

type Snapshot = BTreeMap<PathBuf, Content>;

/// Content of a file, as far as it is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Content {
    Bytes(Vec<u8>),
    TooLarge(Option<u64>),
    Other,
}

impl ProtectedPathWatch {
    /// Watches the files of the git repository that `env` works in, and of these directories below its working directory.
    #[must_use]
    pub fn new<I>(env: Arc<dyn ExecutionEnvironment>, directories: I) -> Self
    where
        I: IntoIterator,
        I::Item: Into<PathBuf>,
    {
        Self { env, directories: directories.into_iter().map(Into::into).collect(), known: Arc::default() }
    }

    /// Reads all watched files.
    ///
    /// # Errors
    ///
    /// Only those of the environment as a whole, such as that it is lost.
    async fn look(&self) -> Result<Snapshot, EnvError> {
        let mut files: BTreeMap<PathBuf, Option<u64>> = BTreeMap::new();
        for git in self.git_directories().await? {
            files.extend(GIT_FILES.map(|name| (git.join(name), None)));
            for name in GIT_DIRECTORIES {
                self.find(&git.join(name), &mut files).await?;
            }
        }
        for directory in &self.directories {
            self.find(&self.env.resolve(directory), &mut files).await?;
        }
        files.insert(self.env.resolve(Path::new(".git")), None);
        let excess = files.len().saturating_sub(MAX_FILES) as u64;
        let paths: Vec<PathBuf> = files.keys().take(MAX_FILES).cloned().collect();
        let contents = self.env.read_many(&paths, ReadLimits::new(MAX_FILE, MAX_TOTAL)).await?;
        let mut snapshot: Snapshot = files
            .into_iter()
            .zip(contents)
            .filter_map(|((path, size), content)| {
                let content = match content {
                    FileContent::Bytes(bytes) => Content::Bytes(bytes),
                    FileContent::TooLarge | FileContent::Skipped => Content::TooLarge(size),
                    FileContent::Missing => return None,
                    FileContent::NotAFile | FileContent::Unreadable => Content::Other,
                };
                Some((path, content))
            })
            .collect();
        if excess > 0 {
            snapshot.insert(self.env.resolve(Path::new(".git/…")), Content::TooLarge(Some(excess)));
        }
        // Samples are never run.
        snapshot.retain(|path, _| path.extension().is_none_or(|extension| extension != "sample"));
        Ok(snapshot)
    }

    /// Returns the directories of the repository, if there is one: its own, or those that a worktree or a submodule points
    /// to.
    async fn git_directories(&self) -> Result<Vec<PathBuf>, EnvError> {
        let own = self.env.resolve(Path::new(".git"));
        let bytes = match self.small_file(&own).await? {
            FileContent::Missing => return Ok(Vec::new()),
            FileContent::Bytes(bytes) => bytes,
            FileContent::TooLarge
            | FileContent::Skipped
            | FileContent::NotAFile
            | FileContent::Unreadable => return Ok(vec![own]),
        };
        let Some(pointed) = named(&own, "gitdir:", bytes) else { return Ok(Vec::new()) };
        let file = pointed.join("commondir");
        let common = match self.small_file(&file).await? {
            FileContent::Bytes(bytes) => named(&file, "", bytes),
            FileContent::Missing
            | FileContent::TooLarge
            | FileContent::Skipped
            | FileContent::NotAFile
            | FileContent::Unreadable => None,
        };
        Ok(common.into_iter().chain([pointed]).collect())
    }

    async fn small_file(&self, path: &Path) -> Result<FileContent, EnvError> {
        let limits = ReadLimits::new(MAX_FILE, MAX_FILE);
        let content = self.env.read_many(&[path.to_path_buf()], limits).await?.pop();
        Ok(content.unwrap_or(FileContent::Missing))
    }

    /// Adds a file, or the files of a directory with everything below it.
    async fn find(&self, path: &Path, files: &mut BTreeMap<PathBuf, Option<u64>>) -> Result<(), EnvError> {
        match self.env.list_directory(path, 4).await {
            Ok(entries) => {
                let found = entries.into_iter().filter(|entry| !entry.is_dir);
                files.extend(found.map(|entry| (path.join(entry.name), entry.size)));
            }
            Err(error @ (EnvError::EnvironmentLost { .. } | EnvError::Unreachable { .. })) => {
                return Err(error);
            }
            Err(_) => {
                files.insert(path.to_path_buf(), None);
            }
        }
        Ok(())
    }
}

/// Returns the directory that a small file names after a prefix.
fn named(file: &Path, prefix: &str, content: Vec<u8>) -> Option<PathBuf> {
    let text = String::from_utf8(content).unwrap_or_default();
    let name = text.trim().strip_prefix(prefix)?.trim();
    (!name.is_empty()).then_some(file.parent()?.join(name))
}

/// Returns what differs, with the diff of each file; `None` if nothing does.
fn describe(before: &Snapshot, after: &Snapshot) -> Option<String> {
    let paths: std::collections::BTreeSet<&PathBuf> = before.keys().chain(after.keys()).collect();
    let changed = paths.into_iter().filter(|path| before.get(*path) != after.get(*path));
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
        let of = |snapshot: &Snapshot| match snapshot.get(*path) {
            None => Some(String::new()),
            Some(Content::Bytes(bytes)) => String::from_utf8(bytes.clone()).ok(),
            Some(Content::TooLarge(_) | Content::Other) => None,
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
                match self.look().await {
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
        let now = self.look().await.ok()?;
        let change = known.as_ref().and_then(|before| describe(before, &now));
        *known = Some(now);
        change
    }
}

#[cfg(test)]
mod tests;
