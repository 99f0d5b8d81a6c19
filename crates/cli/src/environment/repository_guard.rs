//! Restores the history of a repository that a command has removed.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use pintle_env::LinkedBackup;
use pintle_tools::gate::{Gate, Verdict};
use pintle_tools::pipeline::PreparedCall;
use pintle_tools::{Effect, SandboxSide};
use tempfile::TempDir;
use tokio::sync::Mutex;

use super::secrets;
use crate::console;
use crate::process_env::{self, ProcessEnv};

/// Directory of the backups, below the state directory.
const DIRECTORY: &str = "repositories";

/// File with the paths of the repositories, beside their backups.
const SOURCES: &str = "sources.json";

/// Files of a git directory with its history. Git replaces them and never changes them in place.
const NAMES: [&str; 6] = ["HEAD", "packed-refs", "shallow", "index", "refs", "objects"];

/// Files to which git appends, or that users edit. At the level *full*, the sandbox keeps commands from removing the latter.
const COPIED: [&str; 4] = ["logs", "config", "hooks", "info"];

/// Maximum number of files of a repository. A larger one has no backup.
const MAX_FILES: usize = 50_000;

/// Holds a backup of the repositories of a workspace while commands run, and restores what a command in the sandbox removes.
///
/// Nothing is linked before the first command.
#[derive(Clone, Debug, Default)]
pub(crate) struct RepositoryGuard(Option<Arc<Shared>>);

#[derive(Debug)]
struct Shared {
    repositories: Vec<PathBuf>,
    /// Directory for the backups of the workspace.
    directory: PathBuf,
    process_env: ProcessEnv,
    session: Mutex<Option<SessionBackups>>,
}

/// Backups of one session.
#[derive(Debug)]
struct SessionBackups {
    backups: Vec<LinkedBackup>,
    /// Removed on drop, unless something could not be restored from it.
    directory: TempDir,
    /// Held as long as the session lasts. Another session removes the backups of one that was killed.
    _lock: File,
}

/// Damage of a repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Damage {
    /// Objects are missing that no new pack replaces. They may have been unreachable.
    Objects,
    /// Branches or all objects are missing.
    History,
}

impl RepositoryGuard {
    /// Guards the git directories of a workspace. Does nothing without a directory for the state.
    pub(super) fn new(repositories: Vec<PathBuf>, workspace: &Path, process_env: &ProcessEnv) -> Self {
        let directory = secrets::of_workspace(DIRECTORY, workspace, process_env);
        let shared = directory.filter(|_| !repositories.is_empty()).map(|directory| {
            let process_env = process_env.clone();
            Arc::new(Shared { repositories, directory, process_env, session: Mutex::default() })
        });
        Self(shared)
    }

    /// Updates the backups.
    async fn update(&self) {
        self.blocking(|shared, session| {
            if session.is_none() {
                *session = shared.start().map_err(|error| unavailable(&shared.directory, &error)).ok();
            }
            let Some(session) = session else { return };
            session.backups.retain(|backup| match backup.update() {
                Ok(()) => true,
                Err(error) if error.kind() == io::ErrorKind::NotFound => false,
                Err(error) => {
                    unavailable(backup.source(), &error);
                    false
                }
            });
        })
        .await;
    }

    /// Restores what is missing. Returns the reason to stop the run if a history was gone.
    async fn restore(&self) -> Option<String> {
        self.blocking(|_, session| {
            let session = session.as_mut()?;
            let mut reason = None;
            for backup in &session.backups {
                let Some(damage) = damage(backup) else { continue };
                let source = backup.source().display();
                match backup.restore() {
                    Ok(_) if damage == Damage::Objects => {}
                    Ok(files) => {
                        reason.get_or_insert(format!(
                            "a command removed history of the repository {source}; {files} of its files were restored"
                        ));
                    }
                    Err(error) => {
                        session.directory.disable_cleanup(true);
                        let kept = session.directory.path().display();
                        reason = Some(format!(
                            "a command removed history of the repository {source}, which cannot be restored: {error}; \
                             its files are in {kept}"
                        ));
                    }
                }
            }
            reason
        })
        .await
        .flatten()
    }

    /// Discards the backups: a user has allowed what changed.
    async fn forget(&self) {
        self.blocking(|_, session| *session = None).await;
    }

    /// Compares the repositories once more when all commands have ended, and removes the backups. Returns the damage that was
    /// restored.
    pub(super) async fn close(&self) -> Option<String> {
        let reason = self.restore().await;
        self.forget().await;
        // Other sessions may have theirs in it.
        self.blocking(|shared, _| std::fs::remove_dir(&shared.directory).is_ok()).await;
        reason
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Shared, &mut Option<SessionBackups>) -> T + Send + 'static,
    ) -> Option<T> {
        let shared = Arc::clone(self.0.as_ref()?);
        let worked = tokio::task::spawn_blocking(move || work(&shared, &mut shared.session.blocking_lock()));
        worked.await.ok()
    }
}

impl Shared {
    fn start(&self) -> io::Result<SessionBackups> {
        let failed = |failure: crate::failure::Failure| io::Error::other(failure.message());
        self.process_env.create_directory(&self.directory).map_err(failed)?;
        self.remove_abandoned();
        let directory = tempfile::Builder::new().prefix("session-").tempdir_in(&self.directory)?;
        let lock = self.process_env.try_lock_private(&directory.path().join("lock")).map_err(failed)?;
        let lock = lock.ok_or(io::ErrorKind::ResourceBusy)?;
        let sources = serde_json::to_string(&self.repositories)?;
        self.process_env.write_private(&directory.path().join(SOURCES), &sources).map_err(failed)?;
        let backups = backups_in(directory.path(), &self.repositories);
        for number in 0..backups.len() {
            let path = directory.path().join(number.to_string());
            self.process_env.create_directory(&path).map_err(failed)?;
        }
        Ok(SessionBackups { backups, directory, _lock: lock })
    }

    /// Removes the backups of sessions that were killed, after they have restored what is missing.
    fn remove_abandoned(&self) {
        for session in self.process_env.paths_in(&self.directory) {
            let Ok(Some(_lock)) = self.process_env.try_lock_private(&session.join("lock")) else { continue };
            let sources = process_env::read_text_if_there("list of repositories", &session.join(SOURCES));
            let sources =
                sources.ok().flatten().and_then(|text| serde_json::from_str::<Vec<PathBuf>>(&text).ok());
            let backups = backups_in(&session, &sources.unwrap_or_default());
            let is_whole = |backup: &LinkedBackup| damage(backup).is_none() || backup.restore().is_ok();
            if backups.iter().all(is_whole) {
                let _ = std::fs::remove_dir_all(&session);
            }
        }
    }
}

/// Prints a notice that a removed history cannot be restored.
fn unavailable(path: &Path, error: &io::Error) {
    let path = path.display();
    console::notice(&format!("what a command removes of a repository cannot be restored: {path}: {error}"));
}

/// Returns the backups of repositories in the directory of a session.
fn backups_in(directory: &Path, repositories: &[PathBuf]) -> Vec<LinkedBackup> {
    let numbered = (0..).zip(repositories);
    let backup = |(number, repository): (usize, &PathBuf)| {
        let backup = LinkedBackup::new(repository, NAMES, directory.join(number.to_string()), MAX_FILES);
        COPIED.into_iter().fold(backup, LinkedBackup::copying)
    };
    numbered.map(backup).collect()
}

/// Returns what is missing of a repository; `None` if nothing is, or a new pack may have the objects.
fn damage(backup: &LinkedBackup) -> Option<Damage> {
    let missing = |path: &str| -> Option<Missing> {
        let (backup, source) = backup.names_in(path).ok()?;
        let missing = backup.iter().filter(|name| !source.contains(name)).count();
        let has_new_pack = source.iter().any(|name| {
            !backup.contains(name) && Path::new(name).extension().is_some_and(|end| end == "pack")
        });
        Some(Missing { known: backup.len(), missing, has_new_pack })
    };
    let top = missing("")?;
    if top.missing > 0 {
        return Some(Damage::History);
    }
    let (objects, packs) = (missing("objects")?, missing("objects/pack")?);
    if packs.has_new_pack {
        return None;
    }
    let all_loose_are_missing =
        packs.known == 0 && objects.missing > 0 && objects.missing + 2 >= objects.known;
    if packs.missing > 0 || all_loose_are_missing {
        return Some(Damage::History);
    }
    (objects.missing > 0).then_some(Damage::Objects)
}

/// Entries of a directory of a backup that are missing in the source.
struct Missing {
    known: usize,
    missing: usize,
    has_new_pack: bool,
}

#[async_trait]
impl Gate for RepositoryGuard {
    fn name(&self) -> &'static str {
        "repository_guard"
    }

    async fn check(&self, call: &PreparedCall) -> Verdict {
        if call.effect() == Effect::Execute {
            self.update().await;
        }
        Verdict::ALLOW
    }

    async fn stop_after(&self, call: &PreparedCall) -> Option<String> {
        if call.effect() != Effect::Execute {
            return None;
        }
        if call.sandbox() == Some(SandboxSide::Outside) {
            self.forget().await;
            return None;
        }
        self.restore().await
    }

    async fn stop_at_end(&self) -> Option<String> {
        self.restore().await
    }
}
