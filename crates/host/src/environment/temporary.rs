//! The temporary directory of commands: it is locked by its session, and removed also if that was killed.
#![expect(clippy::disallowed_methods, reason = "the directory is on this machine, whatever the environment")]

use std::fs::{self, File, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{Mode, OFlags};
use tempfile::TempDir;
use tokio::task::JoinHandle;

/// Prefix of the names. Versions that did not lock their directories had another prefix.
const PREFIX: &str = "pintle-tmp-";

/// Maximum number of directories that another process removes before they are locked.
const MAX_ATTEMPTS: usize = 16;

/// Directory for temporary files of sandboxed commands, removed on drop. A lock on it shows other processes that its
/// session is alive.
#[derive(Debug)]
pub(super) struct TemporaryDirectory {
    directory: TempDir,
    /// `None` on a file system without locks.
    _lock: Option<File>,
}

impl TemporaryDirectory {
    /// Creates a directory in the temporary directory of the system.
    pub(super) fn create() -> io::Result<Self> {
        Self::create_in(&tempfile::env::temp_dir())
    }

    fn create_in(parent: &Path) -> io::Result<Self> {
        for _ in 0..MAX_ATTEMPTS {
            let directory = tempfile::Builder::new().prefix(PREFIX).tempdir_in(parent)?;
            match try_lock(directory.path()) {
                Ok(Lock::Held(lock)) => return Ok(Self { directory, _lock: Some(lock) }),
                Ok(Lock::Unsupported) => return Ok(Self { directory, _lock: None }),
                // Another process took it for one that was left behind.
                Ok(Lock::Taken) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::ResourceBusy.into())
    }

    pub(super) fn path(&self) -> &Path {
        self.directory.path()
    }
}

/// Lock of a directory.
enum Lock {
    Held(File),
    /// Another process holds it, or has removed the directory.
    Taken,
    /// The file system has no locks.
    Unsupported,
}

/// Locks a directory. A link is not followed.
fn try_lock(path: &Path) -> io::Result<Lock> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    match directory.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(Lock::Taken),
        Err(TryLockError::Error(_)) => return Ok(Lock::Unsupported),
    }
    let (locked, named) = (directory.metadata()?, fs::symlink_metadata(path)?);
    let is_same = (locked.dev(), locked.ino()) == (named.dev(), named.ino());
    Ok(if is_same { Lock::Held(directory) } else { Lock::Taken })
}

/// Removal of the directories of killed sessions. It runs concurrently with the session, because the system's temporary directory
/// may have any number of entries.
#[derive(Debug, Default)]
pub(super) struct AbandonedRemoval(Mutex<Option<JoinHandle<()>>>);

impl AbandonedRemoval {
    /// Starts the removal on a blocking thread. Dropping the value does not stop it.
    pub(super) fn start() -> Self {
        Self::start_in(tempfile::env::temp_dir())
    }

    fn start_in(parent: PathBuf) -> Self {
        Self(Mutex::new(Some(tokio::task::spawn_blocking(move || remove_abandoned_in(&parent)))))
    }

    /// Waits for the end of the removal. Idempotent.
    pub(super) async fn finish(&self) {
        let running = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(running) = running {
            // This session does not use directories that cannot be removed.
            let _ = running.await;
        }
    }
}

/// Removes the directories of this user whose sessions were killed. The system releases the lock of a process that ends.
fn remove_abandoned_in(parent: &Path) {
    let user = rustix::process::geteuid().as_raw();
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let is_named = entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes());
        // These are the metadata of a link itself.
        let is_own = || entry.metadata().is_ok_and(|found| found.is_dir() && found.uid() == user);
        if is_named
            && is_own()
            && let Ok(Lock::Held(_lock)) = try_lock(&entry.path())
        {
            // The next start removes the rest.
            let _ = remove(&entry.path());
        }
    }
}

/// Removes a directory with everything below it, also directories without permissions. No link is followed. Call it once no
/// command runs.
///
/// After an error of the file system, part of the directory may be gone.
pub(super) fn remove(directory: &Path) -> io::Result<()> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            grant_directory_access(directory);
            fs::remove_dir_all(directory)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Gives the user all permissions on the directories.
fn grant_directory_access(directory: &Path) {
    // Errors are ignored: the second removal reports them.
    let _ = fs::set_permissions(directory, Permissions::from_mode(0o700));
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            grant_directory_access(&entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_of_killed_sessions_are_removed() {
        let parent = tempfile::tempdir().unwrap();
        let at = |name: &str| parent.path().join(name);
        let alive = TemporaryDirectory::create_in(parent.path()).unwrap();
        for path in ["pintle-tmp-left/a/b", "pintle-older", "elsewhere/kept"] {
            fs::create_dir_all(at(path)).unwrap();
        }
        fs::write(at("pintle-tmp-file"), "").unwrap();
        std::os::unix::fs::symlink(at("elsewhere"), at("pintle-tmp-link")).unwrap();
        remove_abandoned_in(parent.path());
        assert!(!at("pintle-tmp-left").exists());
        for kept in ["pintle-older", "elsewhere/kept", "pintle-tmp-file", "pintle-tmp-link"] {
            assert!(at(kept).exists(), "{kept}");
        }
        assert!(alive.path().is_dir());
        let path = alive.path().to_path_buf();
        drop(alive);
        assert!(!path.exists());
        assert!(try_lock(&at("pintle-tmp-link")).is_err(), "a link is not followed");
    }

    #[test]
    fn the_removal_of_abandoned_directories_delays_no_start() {
        let parent = tempfile::tempdir().unwrap();
        let left = parent.path().join("pintle-tmp-left");
        fs::create_dir_all(left.join("a")).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().max_blocking_threads(1).build().unwrap();
        runtime.block_on(async {
            let (release, released) = std::sync::mpsc::channel::<()>();
            let before = tokio::task::spawn_blocking(move || released.recv());
            let removal = AbandonedRemoval::start_in(parent.path().to_path_buf());
            assert!(left.exists(), "it waits for the thread, and the caller does not");
            drop(release);
            before.await.unwrap().unwrap_err();
            removal.finish().await;
            assert!(!left.exists());
            removal.finish().await;
        });
    }

    #[test]
    fn directories_without_permissions_are_removed() {
        let directory = tempfile::tempdir().unwrap();
        let (inside, outside) = (directory.path().join("inside"), directory.path().join("outside"));
        for path in [inside.join("a/b/c"), outside.clone()] {
            fs::create_dir_all(path).unwrap();
        }
        fs::write(outside.join("file"), "kept").unwrap();
        std::os::unix::fs::symlink(&outside, inside.join("a/link")).unwrap();
        for path in ["a/b/c", "a/b", "a"] {
            fs::set_permissions(inside.join(path), Permissions::from_mode(0o000)).unwrap();
        }
        remove(&inside).unwrap();
        assert!(!inside.exists());
        assert_eq!(fs::read_to_string(outside.join("file")).unwrap(), "kept");
        remove(&inside).unwrap();
    }
}
