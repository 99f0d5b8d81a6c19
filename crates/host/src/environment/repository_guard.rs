//! Restores the history of a repository that a command has removed.

mod damage;
mod guarded_environment;
mod pack_index;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use pintle_agent::Count;
use pintle_env::{ExecutionEnvironment, LinkedBackup};
use pintle_governance::ProtectedPathWatch;
use pintle_tools::gate::{Gate, Verdict};
use pintle_tools::pipeline::PreparedCall;
use pintle_tools::{Effect, SandboxSide};
use tempfile::TempDir;
use tokio::sync::Mutex;

use self::damage::{RepositoryDamage, find_damage};
use self::guarded_environment::GuardedEnvironment;
use super::secrets;
use super::workspace_search::WorkspaceSearch;
use crate::notice::Notice;
use crate::process_env::{self, ProcessEnv};

/// Directory of the backups, below the state directory.
const DIRECTORY: &str = "repositories";

/// File with the paths of the repositories, in the directory of their backups.
const SOURCES: &str = "sources.json";

/// File that a session keeps locked, in the directory of its backups.
const LOCK: &str = "lock";

/// Hint at the ways to remove a repository that is guarded.
const REMOVAL_HINT: &str =
    "to remove a repository that existed when the session started, remove it outside of the session";

/// Another way in a session with a sandbox.
const REMOVAL_HINT_IN_SANDBOX: &str = " or allow the command to run outside of the sandbox";

/// Entries of a git directory with its history. Git replaces these files and never changes them in place.
const HISTORY_ENTRIES: [&str; 3] = ["index", "refs", "objects"];

/// Entries with small files, and those to which git appends or that users edit. At the level *full*, the sandbox keeps commands
/// from removing the latter.
const COPIED_ENTRIES: [&str; 11] = [
    "HEAD",
    "ORIG_HEAD",
    "packed-refs",
    "shallow",
    "logs",
    "config",
    "config.worktree",
    "hooks",
    "info",
    "commondir",
    "gitdir",
];

/// Maximum number of files of a repository. A larger one has no backup.
const MAX_FILES: usize = 50_000;

/// Backs up the git directories of a workspace while commands run, and restores files that a command removes.
///
/// Nothing is linked before the first command.
#[derive(Clone, Debug, Default)]
pub(crate) struct RepositoryGuard(Option<Arc<GuardState>>);

#[derive(Debug)]
struct GuardState {
    search: Arc<WorkspaceSearch>,
    /// Directory for the backups of the workspace.
    directory: PathBuf,
    /// Whether commands run in a sandbox, which the user can allow them to leave.
    has_sandbox: bool,
    process_env: ProcessEnv,
    session: Mutex<GuardedSession>,
}

#[derive(Debug, Default)]
struct GuardedSession {
    /// Whether the backups were created once, or an attempt failed.
    has_started: bool,
    /// Whether the backups cannot be created, which a notice has reported.
    has_failed: bool,
    backups: Option<SessionBackups>,
    /// Restored history that no call has reported yet.
    unreported: Option<String>,
}

/// Backups of one session.
#[derive(Debug)]
struct SessionBackups {
    backups: Vec<LinkedBackup>,
    directory: TempDir,
    /// Another session removes the backups of one that was killed.
    _lock: File,
}

impl RepositoryGuard {
    /// Guards the git directories that a search finds in a workspace. Does nothing without a directory for the state.
    pub(super) fn new(
        search: Arc<WorkspaceSearch>,
        workspace: &Path,
        has_sandbox: bool,
        process_env: &ProcessEnv,
    ) -> Self {
        let directory = secrets::workspace_state_path(DIRECTORY, workspace, process_env);
        Self(directory.map(|directory| {
            let process_env = process_env.clone();
            Arc::new(GuardState { search, directory, has_sandbox, process_env, session: Mutex::default() })
        }))
    }

    /// Returns the environment for programs that pass no gate, such as MCP servers. The backups are updated before each starts.
    pub(super) fn guard_programs(
        &self,
        environment: Arc<dyn ExecutionEnvironment>,
    ) -> Arc<dyn ExecutionEnvironment> {
        match self.0 {
            Some(_) => Arc::new(GuardedEnvironment { inner: environment, repositories: self.clone() }),
            None => environment,
        }
    }

    /// Returns the gate that guards the repositories and has this watch. The search runs before the first change.
    pub(super) fn with_watch(
        &self,
        watch: ProtectedPathWatch,
        search: Option<Arc<WorkspaceSearch>>,
    ) -> GuardedWatch {
        GuardedWatch { repositories: self.clone(), watch, search }
    }

    /// Creates the backups, once per session. That restores missing files from the backups of sessions that were killed,
    /// which must precede the first comparison of protected files.
    async fn start(&self) {
        let Some(shared) = &self.0 else { return };
        if shared.session.lock().await.has_started {
            return;
        }
        let Some(repositories) = self.repositories().await else { return };
        self.blocking(move |shared, session| {
            if !session.has_started {
                session.create_backups(&repositories, shared);
            }
        })
        .await;
    }

    /// Returns the git directories that are guarded; `None` without one. If the search failed, no command starts.
    async fn repositories(&self) -> Option<Arc<[PathBuf]>> {
        let repositories = self.0.as_ref()?.search.repositories().await.ok()?;
        (!repositories.is_empty()).then_some(repositories)
    }

    /// Restores missing files, and updates the backups.
    async fn update(&self) {
        let Some(repositories) = self.repositories().await else { return };
        self.blocking(move |shared, session| {
            if session.update_complete_backups() {
                return;
            }
            // Other commands may be running. A backup that is updated no longer finds the files that are missing then.
            if !session.restore(false, shared) {
                return;
            }
            if session.backups.is_none() && !session.has_failed {
                session.create_backups(&repositories, shared);
            }
            let notices = shared.process_env.notices();
            let Some(SessionBackups { backups, .. }) = &mut session.backups else { return };
            backups.retain(|backup| match backup.update() {
                Ok(()) => true,
                Err(error) if error.kind() == io::ErrorKind::NotFound => true,
                Err(error) => {
                    notices.report(missing_backup_notice(&backup.source().display().to_string(), &error));
                    false
                }
            });
        })
        .await;
    }

    /// Restores missing files. Returns the reason to stop the run if branches or packs were missing.
    async fn restore(&self) -> Option<String> {
        self.restore_at(false).await
    }

    async fn restore_at(&self, all_have_ended: bool) -> Option<String> {
        let restored = self.blocking(move |shared, session| {
            session.restore(all_have_ended, shared);
            session.unreported.take()
        });
        restored.await.flatten()
    }

    /// Discards the backups if something is missing: a user has allowed the command that removed it.
    async fn accept_removal(&self) {
        self.blocking(|_, session| {
            let is_damaged = |backup: &LinkedBackup| matches!(find_damage(backup), Ok(Some(_)));
            if session.backups.as_ref().is_some_and(|session| session.backups.iter().any(is_damaged)) {
                session.backups = None;
            }
        })
        .await;
    }

    /// Compares the repositories once more when all commands have ended, and removes the backups. Returns a report of the
    /// restored history.
    pub(super) async fn close(&self) -> Option<String> {
        let reason = self.restore_at(true).await;
        self.blocking(|shared, session| {
            session.backups = None;
            // Other sessions may have theirs in it.
            let _ = std::fs::remove_dir(&shared.directory);
        })
        .await;
        reason
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&GuardState, &mut GuardedSession) -> T + Send + 'static,
    ) -> Option<T> {
        let shared = Arc::clone(self.0.as_ref()?);
        let worked = tokio::task::spawn_blocking(move || work(&shared, &mut shared.session.blocking_lock()));
        worked.await.ok()
    }
}

impl GuardedSession {
    fn create_backups(&mut self, repositories: &[PathBuf], shared: &GuardState) {
        self.has_started = true;
        match shared.start(repositories) {
            Ok(backups) => self.backups = Some(backups),
            Err(error) => {
                self.has_failed = true;
                let first = repositories.iter().take(1).map(|path| path.display().to_string());
                let more = repositories.len().saturating_sub(1);
                let more = (more > 0).then(|| format!("{more} more"));
                let named: Vec<String> = first.chain(more).collect();
                shared.process_env.notices().report(missing_backup_notice(&named.join(" and "), &error));
            }
        }
    }

    /// Updates the backups until a repository lacks a file or an update fails. Returns whether all backups are updated.
    fn update_complete_backups(&self) -> bool {
        let update = |backup: &LinkedBackup| {
            is_removed_as_a_whole(backup) || matches!(backup.update_if_complete(), Ok(true))
        };
        self.backups.as_ref().is_some_and(|session| session.backups.iter().all(update))
    }

    /// Restores missing files of the repositories. That may fail while a command removes files. If it fails when all have
    /// ended, the backups are kept. Returns whether nothing is missing.
    fn restore(&mut self, all_have_ended: bool, shared: &GuardState) -> bool {
        let Some(SessionBackups { backups, .. }) = &self.backups else { return true };
        let (mut failure, mut is_complete) = (None, true);
        // Directories of worktrees and submodules are inside the directory of their repository, which precedes them.
        let mut lost: Vec<&Path> = Vec::new();
        for backup in backups {
            let is_lost_with_another = lost.iter().any(|lost| backup.source().starts_with(lost));
            if !is_lost_with_another && is_removed_as_a_whole(backup) {
                continue;
            }
            let source = backup.source().display();
            let restored = find_damage(backup).and_then(|damage| match damage {
                None => Ok(None),
                // Deleted branches stay deleted.
                Some(RepositoryDamage::Objects) => backup.restore("objects").map(|_| None),
                Some(RepositoryDamage::Packs) => backup.restore("objects").map(Some),
                Some(RepositoryDamage::History) => backup.restore("").map(Some),
            });
            match restored {
                Ok(None) => {}
                Ok(Some(files)) => {
                    lost.push(backup.source());
                    let files = Count(files as u64, "file");
                    let also = if shared.has_sandbox { REMOVAL_HINT_IN_SANDBOX } else { "" };
                    let restored = format!(
                        "a command removed part of the git history of {source}; restored {files}; {REMOVAL_HINT}{also}"
                    );
                    self.unreported = join_reasons(self.unreported.take(), Some(restored));
                }
                Err(_) if !all_have_ended => is_complete = false,
                Err(error) => {
                    failure = Some(format!(
                        "a command removed part of the git history of {source}, and it cannot be restored: {error}"
                    ));
                }
            }
        }
        if let Some(failure) = failure
            && let Some(SessionBackups { directory, .. }) = self.backups.take()
        {
            let kept = directory.keep();
            // Without the lock file, no session removes it.
            let _ = shared.process_env.remove_file(&kept.join(LOCK));
            let failure = format!("{failure}; the backup is in {}", kept.display());
            self.unreported = join_reasons(self.unreported.take(), Some(failure));
            is_complete = false;
        }
        is_complete
    }
}

impl GuardState {
    fn start(&self, repositories: &[PathBuf]) -> io::Result<SessionBackups> {
        let failed = |failure: crate::failure::Failure| io::Error::other(failure.message());
        self.remove_abandoned();
        self.process_env.create_directory(&self.directory).map_err(failed)?;
        let directory = tempfile::Builder::new().prefix("session-").tempdir_in(&self.directory)?;
        let lock = self.process_env.try_lock_private(&directory.path().join(LOCK)).map_err(failed)?;
        let lock = lock.ok_or(io::ErrorKind::ResourceBusy)?;
        let sources = serde_json::to_string(repositories)?;
        self.process_env.write_private(&directory.path().join(SOURCES), &sources).map_err(failed)?;
        let backups = backups_in(directory.path(), repositories);
        for number in 0..backups.len() {
            let path = directory.path().join(number.to_string());
            self.process_env.create_directory(&path).map_err(failed)?;
        }
        Ok(SessionBackups { backups, directory, _lock: lock })
    }

    /// Removes the backups of sessions that were killed, in any directory, after restoring missing files from them. A
    /// repository that is gone as a whole is not created again: its user may have removed it since.
    fn remove_abandoned(&self) {
        let workspaces =
            self.directory.parent().map(|all| self.process_env.paths_in(all)).unwrap_or_default();
        for workspace in &workspaces {
            self.remove_abandoned_in(workspace);
            // Other sessions may have theirs in it.
            let _ = std::fs::remove_dir(workspace);
        }
    }

    fn remove_abandoned_in(&self, workspace: &Path) {
        for session in self.process_env.paths_in(workspace) {
            let lock = session.join(LOCK);
            if !lock.exists() {
                continue;
            }
            let Ok(Some(_lock)) = self.process_env.try_lock_private(&lock) else { continue };
            let sources = process_env::read_text_if_exists("list of repositories", &session.join(SOURCES));
            let sources = sources.ok().flatten().and_then(|text| serde_json::from_str(&text).ok());
            let sources: Vec<PathBuf> = sources.unwrap_or_default();
            let backups = backups_in(&session, &sources);
            let notices = self.process_env.notices();
            let mut existing = backups.iter().filter(|backup| backup.source().exists());
            let restored = existing.try_for_each(|backup| {
                restore_abandoned(backup).map(|restored| notices.report_all(restored))
            });
            match restored {
                Ok(()) => {
                    let _ = std::fs::remove_dir_all(&session);
                }
                Err(error) => {
                    let session = session.display();
                    notices.report(format!(
                        "an earlier session left a backup of git histories in {session}, which cannot be restored: {error}"
                    ));
                }
            }
        }
    }
}

/// Restores missing files of a repository from the backup of a session that was killed. Returns a notice about them;
/// `None` if none were missing.
fn restore_abandoned(backup: &LinkedBackup) -> io::Result<Option<Notice>> {
    let Some(damage) = find_damage(backup)? else { return Ok(None) };
    // The user may have deleted branches since.
    let below = if damage == RepositoryDamage::History { "" } else { "objects" };
    let (files, source) = (Count(backup.restore(below)? as u64, "file"), backup.source().display());
    Ok(Some(Notice::from(format!(
        "an earlier session ended after a command removed part of the git history of {source}; restored {files}"
    ))))
}

/// Returns whether a repository was removed with its working tree, or a worktree by git: they are not restored.
fn is_removed_as_a_whole(backup: &LinkedBackup) -> bool {
    let is_worktree = backup.source().parent().is_some_and(|parent| parent.ends_with("worktrees"));
    let has_parent = backup.source().parent().is_some_and(Path::exists);
    !backup.source().exists() && (is_worktree || !has_parent)
}

/// Returns the notice that the git history of these repositories has no backup.
fn missing_backup_notice(repositories: &str, error: &io::Error) -> Notice {
    let reason = if error.kind() == io::ErrorKind::QuotaExceeded {
        format!("it has more than {MAX_FILES} files")
    } else if error.kind() == io::ErrorKind::CrossesDevices {
        "the state directory is on another file system".to_owned()
    } else {
        error.to_string()
    };
    Notice::from(format!(
        "cannot back up the git history of {repositories}: {reason}; it is not restored if a command removes it"
    ))
}

/// Returns the backups of repositories in the directory of a session.
fn backups_in(directory: &Path, repositories: &[PathBuf]) -> Vec<LinkedBackup> {
    let numbered = (0..).zip(repositories);
    let backup = |(number, repository): (usize, &PathBuf)| {
        let backup =
            LinkedBackup::new(repository, HISTORY_ENTRIES, directory.join(number.to_string()), MAX_FILES);
        COPIED_ENTRIES.into_iter().fold(backup, LinkedBackup::with_copied_entry)
    };
    numbered.map(backup).collect()
}

/// Gate that compares protected files around each command, and restores histories before that.
#[derive(Clone, Debug)]
pub struct GuardedWatch {
    repositories: RepositoryGuard,
    watch: ProtectedPathWatch,
    search: Option<Arc<WorkspaceSearch>>,
}

impl GuardedWatch {
    /// Runs a command of the user, which passes no gate, with the guard of the histories. Also returns a report of the restored
    /// history and of the protected files that changed since the previous check; a later command is not stopped for them.
    ///
    /// If the future is dropped, the next command or the end of the run restores missing files.
    pub async fn run_user_command<T: Send>(
        &self,
        command: impl Future<Output = T> + Send,
    ) -> (T, Option<String>) {
        let earlier = self.stop_at_end().await;
        self.repositories.update().await;
        let result = command.await;
        (result, join_reasons(earlier, self.stop_at_end().await))
    }
}

#[async_trait]
impl Gate for GuardedWatch {
    fn name(&self) -> &'static str {
        self.watch.name()
    }

    async fn check(&self, call: &PreparedCall) -> Verdict {
        if call.effect() != Effect::Read
            && let Some(search) = &self.search
            // A change could keep the search from finding a repository, such as a line in an ignore file.
            && let Err(error) = search.run().await
        {
            return Verdict::deny(format!("the workspace cannot be searched for protected files: {error}"));
        }
        if call.effect() == Effect::Execute {
            self.repositories.start().await;
        }
        self.watch.check(call).await
    }

    async fn before_run(&self, call: &PreparedCall) {
        if call.effect() == Effect::Execute {
            self.repositories.update().await;
        }
        self.watch.before_run(call).await;
    }

    async fn stop_after(&self, call: &PreparedCall) -> Option<String> {
        if call.effect() != Effect::Execute {
            return None;
        }
        let restored = match call.sandbox() {
            Some(SandboxSide::Outside) => {
                self.repositories.accept_removal().await;
                None
            }
            Some(SandboxSide::Inside) | None => self.repositories.restore().await,
        };
        join_reasons(restored, self.watch.stop_after(call).await)
    }

    async fn stop_at_end(&self) -> Option<String> {
        let restored = self.repositories.restore().await;
        join_reasons(restored, self.watch.stop_at_end().await)
    }
}

/// Joins two reasons to stop.
pub(super) fn join_reasons(first: Option<String>, second: Option<String>) -> Option<String> {
    match (first, second) {
        (Some(first), Some(second)) => Some(format!("{first}\n{second}")),
        (first, second) => first.or(second),
    }
}

#[cfg(test)]
mod tests;
