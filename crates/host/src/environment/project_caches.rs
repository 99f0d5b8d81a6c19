//! Package caches of workspaces, below the state directory.
#![expect(clippy::disallowed_methods, reason = "the caches are on this machine, whatever the environment")]

use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::task::JoinSet;

use super::temporary;
use crate::failure::{Failure, OrFailure as _};
use crate::process_env::ProcessEnv;

/// Directory of the caches, below the state directory.
const DIRECTORY: &str = "caches";

/// Extension of the record beside the caches of a workspace, which commands cannot change. It contains the path of the
/// workspace. Its modification time is the time of the last use. Each session that uses the caches has a shared lock on it.
const RECORD: &str = "used";

/// Time after which unused caches are removed.
const MAX_UNUSED: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Fills the caches of a sandbox.
pub(super) type FillCaches = Arc<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>;

/// Package caches of an open session.
#[derive(Default)]
pub(super) struct SessionCaches {
    /// Lock that keeps other processes from removing the caches.
    lock: Option<File>,
    fill: Option<FillCaches>,
    filling: Mutex<JoinSet<()>>,
}

impl SessionCaches {
    #[cfg(target_os = "linux")]
    pub(super) fn new(lock: Option<File>, fill: FillCaches) -> Self {
        Self { lock, fill: Some(fill), filling: Mutex::default() }
    }

    /// Fills the caches in the background once `is_needed` returns true.
    pub(super) fn fill_once(&self, is_needed: impl Future<Output = bool> + Send + 'static) {
        let Some(fill) = self.fill.clone() else { return };
        let mut filling = self.filling.lock().unwrap_or_else(PoisonError::into_inner);
        filling.spawn(async move {
            if is_needed.await {
                fill().await;
            }
        });
    }

    /// Stops filling them.
    pub(super) async fn stop(&self) {
        let mut filling = std::mem::take(&mut *self.filling.lock().unwrap_or_else(PoisonError::into_inner));
        filling.shutdown().await;
    }
}

impl fmt::Debug for SessionCaches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionCaches").field("lock", &self.lock).finish_non_exhaustive()
    }
}

/// Returns the directory for the caches of a workspace, and a lock that keeps other processes from removing them. Records the
/// use. `None` if there is no state directory that can be written, if `creates` is not set and the workspace has no caches yet,
/// or while another process removes them.
#[cfg(target_os = "linux")]
pub(super) fn lease(workspace: &Path, creates: bool, process_env: &ProcessEnv) -> Option<(PathBuf, File)> {
    use std::os::unix::fs::{FileExt as _, MetadataExt as _};

    let directory = super::secrets::workspace_state_path(DIRECTORY, workspace, process_env)?;
    if !creates && !directory.is_dir() {
        return None;
    }
    fs::create_dir_all(directory.parent()?).ok()?;
    let record = directory.with_extension(RECORD);
    let file = open_record(&record).ok()?;
    match file.try_lock_shared() {
        // A file system without locks has no lock that could be waited for.
        Ok(()) | Err(TryLockError::Error(_)) => {}
        Err(TryLockError::WouldBlock) => return None,
    }
    let (locked, named) = (file.metadata().ok()?, fs::symlink_metadata(&record).ok()?);
    // Another process may have removed it before the lock.
    if (locked.dev(), locked.ino()) != (named.dev(), named.ino()) {
        return None;
    }
    file.write_all_at(workspace.as_os_str().as_encoded_bytes(), 0).ok()?;
    Some((directory, file))
}

fn open_record(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}

/// Package caches that no session needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnusedCaches {
    /// The directory of the caches.
    pub directory: PathBuf,
    /// The workspace, if it is known.
    pub workspace: Option<PathBuf>,
}

/// Removes the package caches of workspaces that no longer exist, and caches that no session has used for 30 days. Caches that
/// a session uses are kept. A dry run removes nothing.
///
/// # Errors
///
/// Caches that cannot be removed. Part of them may be gone.
pub fn prune_caches(dry_run: bool, process_env: &ProcessEnv) -> Result<Vec<UnusedCaches>, Failure> {
    let Ok(state) = process_env.state_directory() else { return Ok(Vec::new()) };
    let mut removed = Vec::new();
    for entry in fs::read_dir(state.join(DIRECTORY)).into_iter().flatten().flatten() {
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        let pruned = remove_if_unused(&entry.path(), dry_run);
        removed.extend(pruned.or_failed(&format!("cannot remove the caches {}", entry.path().display()))?);
    }
    Ok(removed)
}

/// Removes caches that no session needs, and returns them.
fn remove_if_unused(directory: &Path, dry_run: bool) -> io::Result<Option<UnusedCaches>> {
    let path = directory.with_extension(RECORD);
    // Caches of versions without records get one, for the lock.
    let mut record = open_record(&path)?;
    if matches!(record.try_lock(), Err(TryLockError::WouldBlock)) {
        return Ok(None);
    }
    let mut workspace = Vec::new();
    record.read_to_end(&mut workspace)?;
    let workspace = (!workspace.is_empty()).then(|| PathBuf::from(OsString::from_vec(workspace)));
    let used = match workspace {
        Some(_) => record.metadata()?.modified()?,
        None => fs::metadata(directory)?.modified()?,
    };
    let is_gone = workspace.as_ref().is_some_and(|workspace| matches!(workspace.try_exists(), Ok(false)));
    let is_old = used.elapsed().is_ok_and(|age| age > MAX_UNUSED);
    if !is_gone && !is_old {
        return Ok(None);
    }
    if !dry_run {
        temporary::remove(directory)?;
        fs::remove_file(&path)?;
    }
    Ok(Some(UnusedCaches { directory: directory.to_path_buf(), workspace }))
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::time::SystemTime;

    use super::*;

    struct State {
        directory: tempfile::TempDir,
        process_env: ProcessEnv,
    }

    impl State {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let state = directory.path().join("state");
            let process_env = ProcessEnv::from_variables([("PINTLE_STATE_DIR", state.as_os_str())]);
            Self { directory, process_env }
        }

        /// Creates a workspace with caches, and returns its path and the lock of its session.
        fn used(&self, name: &str) -> (PathBuf, File) {
            let workspace = self.directory.path().join(name);
            fs::create_dir_all(&workspace).unwrap();
            let (caches, lock) = lease(&workspace, true, &self.process_env).unwrap();
            fs::create_dir_all(caches.join("cargo")).unwrap();
            (workspace, lock)
        }

        fn pruned(&self, dry_run: bool) -> Vec<PathBuf> {
            let mut removed: Vec<_> = prune_caches(dry_run, &self.process_env)
                .unwrap()
                .into_iter()
                .map(|unused| unused.workspace.unwrap())
                .collect();
            removed.sort();
            removed
        }
    }

    #[test]
    fn unused_caches_are_removed_unless_a_session_has_them() {
        let state = State::new();
        let (gone, _) = state.used("gone");
        let (old, lock) = state.used("old");
        lock.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        drop(lock);
        let (_current, _) = state.used("current");
        let (open, lock) = state.used("open");
        for workspace in [&gone, &open] {
            fs::remove_dir(workspace).unwrap();
        }
        assert_eq!(state.pruned(true), [gone.clone(), old.clone()]);
        assert_eq!(state.pruned(false), [gone, old]);
        assert_eq!(state.pruned(false), [] as [PathBuf; 0]);
        drop(lock);
        assert_eq!(state.pruned(false), [open]);
        let left = fs::read_dir(state.directory.path().join("state/caches")).unwrap().count();
        assert_eq!(left, 2, "one directory and its record");
    }

    #[test]
    fn sessions_share_caches_and_create_none_unless_asked() {
        let state = State::new();
        let workspace = state.directory.path().join("workspace");
        assert!(lease(&workspace, false, &state.process_env).is_none());
        assert!(!state.directory.path().join("state").exists());
        let (workspace, _lock) = state.used("workspace");
        let (directory, _other) = lease(&workspace, false, &state.process_env).unwrap();
        assert!(directory.join("cargo").is_dir());
    }

    #[test]
    fn caches_without_a_record_are_kept_as_long_as_they_are_new() {
        let state = State::new();
        let caches = state.directory.path().join("state/caches/0123456789abcdef");
        fs::create_dir_all(&caches).unwrap();
        assert_eq!(prune_caches(false, &state.process_env).unwrap(), Vec::new());
        File::open(&caches).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
        let unused = UnusedCaches { directory: caches.clone(), workspace: None };
        assert_eq!(prune_caches(false, &state.process_env).unwrap(), [unused]);
        assert!(!caches.exists());
    }

    #[tokio::test]
    async fn caches_are_filled_once_they_are_needed() {
        let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
        let fill: FillCaches = Arc::new(move || {
            let sender = sender.clone();
            Box::pin(async move { sender.send(()).unwrap() })
        });
        let caches = SessionCaches::new(None, fill);
        let (request, requested) = tokio::sync::oneshot::channel();
        caches.fill_once(async move { requested.await.is_ok() });
        assert!(receiver.try_recv().is_err());
        request.send(()).unwrap();
        assert_eq!(receiver.recv().await, Some(()));
        // A session that ends without a request needs none.
        caches.fill_once(std::future::pending());
        caches.stop().await;
        assert!(receiver.try_recv().is_err());
    }
}
