//! File system operations of a file store.
//!
//! They are a trait, so that tests can simulate a power failure between any two of them.
#![expect(clippy::disallowed_methods, reason = "the files of a store are local, not files of an environment")]

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, UNIX_EPOCH};

use pintle_agent::Timestamp;

/// Further attempts to lock a file that another process has locked, and the pause between them.
const LOOKS: u32 = 3;
const LOOK: Duration = Duration::from_millis(10);

/// Operations of a file system. All of them block.
pub(crate) trait Disk: std::fmt::Debug + Send + Sync {
    /// Creates a directory that only its owner can enter.
    fn create_dir(&self, path: &Path) -> io::Result<()>;

    /// Creates a file for appending that only its owner can read. The file must not exist.
    fn create_new(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;

    /// Opens a file for reading.
    fn open(&self, path: &Path) -> io::Result<Box<dyn ReadSeek>>;

    /// Makes the bytes of a file survive a crash of the machine, including bytes that another process wrote.
    fn sync_file(&self, path: &Path) -> io::Result<()>;

    /// Makes the entries of a directory survive a crash of the machine.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;

    /// Makes the bytes of a file and the entries of directories survive a crash of the machine, in any order. The disk
    /// handles them together, so that the caller waits once.
    fn sync_together(&self, file: &mut dyn DiskFile, directories: &[PathBuf]) -> io::Result<()>;

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Gives a file a second name, which must not exist.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()>;

    fn remove_file(&self, path: &Path) -> io::Result<()>;

    fn remove_dir_all(&self, path: &Path) -> io::Result<()>;

    /// Returns the names in a directory, unordered. Names that are not UTF-8 are left out.
    fn list(&self, path: &Path) -> io::Result<Vec<String>>;

    /// Returns the time of the last change of a file's bytes, or of a directory's names.
    fn modified(&self, path: &Path) -> io::Result<Timestamp>;

    /// Returns the number of names of a file.
    fn links(&self, path: &Path) -> io::Result<u64>;

    /// Locks a file and replaces its text. Creates the file if necessary. Returns the lock, or the text of the process
    /// that has it.
    fn lock(&self, path: &Path, text: &str) -> io::Result<Result<Box<dyn DiskLock>, String>>;

    /// Returns the text of the process that has the lock; `None` if no process has it.
    fn lock_holder(&self, path: &Path) -> io::Result<Option<String>>;
}

/// File that is being appended to.
pub(crate) trait DiskFile: std::fmt::Debug + Send {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Makes the bytes so far survive a crash of the machine.
    fn sync(&mut self) -> io::Result<()>;
}

pub(crate) trait ReadSeek: Read + Seek + Send {}

impl<T: Read + Seek + Send> ReadSeek for T {}

/// Lock of a file, until it is dropped.
pub(crate) trait DiskLock: std::fmt::Debug + Send + Sync {}

/// The file system of this machine.
#[derive(Debug)]
pub(crate) struct LocalDisk;

impl Disk for LocalDisk {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        DirBuilder::new().mode(0o700).create(path)
    }

    fn create_new(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(OpenOptions::new().append(true).create_new(true).mode(0o600).open(path)?))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn ReadSeek>> {
        let file = File::open(path)?;
        // Reading a pipe would wait for a writer, and reading a directory would only fail later.
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
        }
        Ok(Box::new(file))
    }

    fn sync_file(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_data()
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }

    fn sync_together(&self, file: &mut dyn DiskFile, directories: &[PathBuf]) -> io::Result<()> {
        thread::scope(|scope| {
            let started: Vec<_> = directories
                .iter()
                .map(|directory| thread::Builder::new().spawn_scoped(scope, move || self.sync_dir(directory)))
                .collect();
            let synced = file.sync();
            let others = directories.iter().zip(started).map(|(directory, started)| match started {
                Ok(syncing) => syncing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
                // The system has no thread left.
                Err(_) => self.sync_dir(directory),
            });
            others.fold(synced, Result::and)
        })
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::hard_link(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir_all(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(path)? {
            names.extend(entry?.file_name().into_string());
        }
        Ok(names)
    }

    fn modified(&self, path: &Path) -> io::Result<Timestamp> {
        let modified = fs::symlink_metadata(path)?.modified()?;
        let since = modified.duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX)))
    }

    fn links(&self, path: &Path) -> io::Result<u64> {
        Ok(fs::symlink_metadata(path)?.nlink())
    }

    fn lock(&self, path: &Path, text: &str) -> io::Result<Result<Box<dyn DiskLock>, String>> {
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
        match try_lock(&file) {
            Ok(()) => {
                file.set_len(0)?;
                file.write_all(text.as_bytes())?;
                Ok(Ok(Box::new(LockedFile(file))))
            }
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                file.read_to_string(&mut text)?;
                Ok(Err(text))
            }
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn lock_holder(&self, path: &Path) -> io::Result<Option<String>> {
        let mut file = File::open(path)?;
        match file.try_lock_shared() {
            Ok(()) => Ok(None),
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                file.read_to_string(&mut text)?;
                Ok(Some(text))
            }
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

/// Locks a file. Repeats the attempt, since another process may have the lock for a moment to look up its holder.
fn try_lock(file: &File) -> Result<(), TryLockError> {
    for _ in 0..LOOKS {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => thread::sleep(LOOK),
            result => return result,
        }
    }
    file.try_lock()
}

impl DiskFile for File {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        io::Write::write_all(self, bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }
}

/// A locked file. A process that this one is starting has the file open as well until its program runs, so that closing the
/// file alone would not end the lock.
#[derive(Debug)]
struct LockedFile(File);

impl Drop for LockedFile {
    fn drop(&mut self) {
        if let Err(error) = self.0.unlock() {
            tracing::warn!(%error, "a lock of a session stays until the file is closed");
        }
    }
}

impl DiskLock for LockedFile {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_ends_with_its_owner_also_while_another_process_has_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let file = File::create(&path).unwrap();
        file.try_lock().unwrap();
        // A process that is being started has such a copy.
        let inherited = file.try_clone().unwrap();
        drop(LockedFile(file));
        assert_eq!(LocalDisk.lock_holder(&path).unwrap(), None);
        drop(inherited);
    }
}
