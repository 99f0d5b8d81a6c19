//! Files that the command creates, writes, locks and removes.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tokio::time::sleep;

use super::{ProcessEnv, absolute};
use crate::failure::Failure;

/// Pause between two attempts to take a lock.
const LOCK_PAUSE: Duration = Duration::from_millis(20);

impl ProcessEnv {
    /// Creates a directory and its parents.
    pub fn create_directory(&self, path: &Path) -> Result<(), Failure> {
        std::fs::create_dir_all(path)
            .map_err(|error| Failure::failed(format!("cannot create {}", path.display())).caused_by(&error))
    }

    /// Removes a directory with everything in it.
    pub fn remove_directory(&self, path: &Path) -> Result<(), Failure> {
        std::fs::remove_dir_all(path)
            .map_err(|error| Failure::failed(format!("cannot remove {}", path.display())).caused_by(&error))
    }

    /// Writes a text file that only the user can read, whole or not at all. Its directory is created.
    pub fn write_private(&self, path: &Path, text: &str) -> Result<(), Failure> {
        use std::io::Write as _;
        let write = || {
            let directory = path.parent().unwrap_or(Path::new("."));
            std::fs::create_dir_all(directory)?;
            // A new file of this kind has mode 0600.
            let mut file = tempfile::NamedTempFile::new_in(directory)?;
            file.write_all(text.as_bytes())?;
            file.as_file().sync_all()?;
            file.persist(path).map(drop).map_err(|error| error.error)
        };
        write().map_err(|error| Failure::failed(format!("cannot write {}", path.display())).caused_by(&error))
    }

    /// Writes a file of the user's configuration as [`write_private`](Self::write_private) does. If it is a symbolic link, its
    /// target is written and the link stays.
    pub fn write_configuration(&self, path: &Path, text: &str) -> Result<(), Failure> {
        self.write_private(&self.real_path(path), text)
    }

    /// Locks a file as [`try_lock_private`](Self::try_lock_private) does, and waits for another process to release it.
    ///
    /// A file that is still locked at the end of `time` is a failure.
    pub async fn lock_private(&self, path: &Path, time: Duration) -> Result<File, Failure> {
        let until = Instant::now() + time;
        loop {
            if let Some(file) = self.try_lock_private(path)? {
                return Ok(file);
            }
            if Instant::now() >= until {
                return Err(Failure::failed(format!("another process keeps {} locked", path.display())));
            }
            sleep(LOCK_PAUSE).await;
        }
    }

    /// Locks a file that only the user can read, which is created, with its directory; `None` while another process has the lock.
    /// Dropping the file releases it.
    pub fn try_lock_private(&self, path: &Path) -> Result<Option<File>, Failure> {
        use std::fs::TryLockError;
        use std::os::unix::fs::OpenOptionsExt as _;
        let lock = || {
            std::fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
            let file = std::fs::OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(false)
                .mode(0o600)
                .open(path)?;
            match file.try_lock() {
                Ok(()) => Ok(Some(file)),
                Err(TryLockError::WouldBlock) => Ok(None),
                Err(TryLockError::Error(error)) => Err(error),
            }
        };
        lock().map_err(|error: io::Error| {
            Failure::failed(format!("cannot lock {}", path.display())).caused_by(&error)
        })
    }

    /// Removes a file. Returns whether it was there.
    pub fn remove_file(&self, path: &Path) -> Result<bool, Failure> {
        match std::fs::remove_file(path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(Failure::failed(format!("cannot remove {}", path.display())).caused_by(&error)),
        }
    }

    /// Returns the paths in a directory; none if it cannot be read.
    pub fn paths_in(&self, directory: &Path) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(directory).into_iter().flatten();
        entries.filter_map(|entry| Some(entry.ok()?.path())).collect()
    }

    /// Returns the directories in a directory, without links to directories; none if it cannot be read.
    pub fn directories_in(&self, directory: &Path) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        let directories = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        directories.map(|entry| entry.path()).collect()
    }

    /// Writes a text file, whole or not at all. An existing one keeps its mode, and a symbolic link its target; a new one has
    /// `new_mode`. Its directory is created.
    pub fn write_keeping_mode(&self, path: &Path, text: &str, new_mode: u32) -> Result<(), Failure> {
        use std::io::Write as _;
        use std::os::unix::fs::PermissionsExt as _;
        let write = || {
            let path = &self.real_path(path);
            let mode = std::fs::metadata(path).map_or(new_mode, |found| found.permissions().mode() & 0o777);
            let directory = path.parent().unwrap_or(Path::new("."));
            std::fs::create_dir_all(directory)?;
            let mut file = tempfile::NamedTempFile::new_in(directory)?;
            file.write_all(text.as_bytes())?;
            file.as_file().set_permissions(std::fs::Permissions::from_mode(mode))?;
            file.as_file().sync_all()?;
            file.persist(path).map(drop).map_err(|error| error.error)
        };
        write().map_err(|error| Failure::failed(format!("cannot write {}", path.display())).caused_by(&error))
    }

    /// Writes a text file that only the user can read and that does not exist yet. Returns its absolute path.
    pub fn write_new(&self, path: &Path, text: &str) -> Result<PathBuf, Failure> {
        use std::io::Write as _;
        let path = absolute(path)?;
        let write = || {
            let mut file = tempfile::NamedTempFile::new_in(path.parent().unwrap_or(Path::new(".")))?;
            file.write_all(text.as_bytes())?;
            file.persist_noclobber(&path).map(drop).map_err(|error| error.error)
        };
        match write() {
            Ok(()) => Ok(path),
            Err(error) => Err(Failure::failed(format!("cannot write {}", path.display())).caused_by(&error)),
        }
    }

    /// Appends to a text file that only the user can read. It is created, with its directory.
    pub fn append_private(&self, path: &Path, text: &str) -> Result<(), Failure> {
        use std::io::Write as _;
        use std::os::unix::fs::OpenOptionsExt as _;
        let append = || {
            std::fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
            let mut file = std::fs::OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
            // In one piece, since another process may append as well.
            file.write_all(text.as_bytes())
        };
        append()
            .map_err(|error| Failure::failed(format!("cannot write {}", path.display())).caused_by(&error))
    }

    /// Moves a file of at least this size aside, to its name with `.1` at the end, in place of the one before.
    pub fn rotate(&self, path: &Path, size: u64) -> Result<(), Failure> {
        if std::fs::metadata(path).map_or(0, |found| found.len()) < size {
            return Ok(());
        }
        std::fs::rename(path, rotated_path(path)).map_err(|error| {
            Failure::failed(format!("cannot move {} aside", path.display())).caused_by(&error)
        })
    }

    /// Copies a file or a link from below one directory to the same place below another, with its mode.
    pub(crate) fn copy_below(&self, from: &Path, to: &Path, name: &[u8]) -> Result<(), Failure> {
        use std::os::unix::ffi::OsStrExt as _;
        let name = Path::new(OsStr::from_bytes(name));
        let (source, target) = (from.join(name), to.join(name));
        let copy = || {
            if let Some(parent) = target.parent() {
                std::fs::create_dir_all(parent)?;
            }
            if std::fs::symlink_metadata(&source)?.is_symlink() {
                return std::os::unix::fs::symlink(std::fs::read_link(&source)?, &target);
            }
            std::fs::copy(&source, &target).map(drop)
        };
        copy().map_err(|error| Failure::failed(format!("cannot copy {}", source.display())).caused_by(&error))
    }
}

/// Returns where [`ProcessEnv::rotate`] moves a file.
pub fn rotated_path(path: &Path) -> PathBuf {
    let mut aside = path.as_os_str().to_owned();
    aside.push(".1");
    aside.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_in_the_place_of_a_file_stays() {
        use std::os::unix::fs::PermissionsExt as _;

        let process_env = ProcessEnv::from_variables([]);
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        std::fs::create_dir(at("elsewhere")).unwrap();
        std::fs::write(at("elsewhere/file"), "old").unwrap();
        std::os::unix::fs::symlink("elsewhere/file", at("link")).unwrap();
        process_env.write_configuration(&at("link"), "configuration").unwrap();
        assert!(std::fs::symlink_metadata(at("link")).unwrap().is_symlink());
        assert_eq!(std::fs::read_to_string(at("elsewhere/file")).unwrap(), "configuration");
        process_env.write_configuration(&at("new/file"), "configuration").unwrap();
        assert_eq!(std::fs::read_to_string(at("new/file")).unwrap(), "configuration");
        let mode = |name: &str| std::fs::metadata(at(name)).unwrap().permissions().mode() & 0o777;
        std::fs::set_permissions(at("elsewhere/file"), std::fs::Permissions::from_mode(0o640)).unwrap();
        process_env.write_keeping_mode(&at("link"), "shared", 0o600).unwrap();
        assert!(std::fs::symlink_metadata(at("link")).unwrap().is_symlink());
        assert_eq!(std::fs::read_to_string(at("elsewhere/file")).unwrap(), "shared");
        process_env.write_keeping_mode(&at("newer/file"), "shared", 0o600).unwrap();
        assert_eq!((mode("link"), mode("newer/file")), (0o640, 0o600));
    }
}
