//! Removal of files that crashed processes left behind.

use std::io;
use std::path::Path;

use pintle_agent::Timestamp;

use super::layout::SessionFiles;
use super::{FileStore, NEW, TRASH, io_error};
use crate::error::StoreError;
use crate::hash::Hash;

/// Returns whether a session may have a file or directory of this name before its first line is written.
fn is_beginning(name: &str) -> bool {
    ["lock", "inherited", "blobs"].contains(&name)
}

impl FileStore {
    pub(super) fn sweep_now(&self, before: Timestamp) -> Result<u64, StoreError> {
        let mut removed = 0;
        let sessions = self.layout.sessions();
        for name in self.names(&sessions)? {
            let directory = sessions.join(&name);
            if !name.starts_with(TRASH) {
                removed += self.sweep_session(&SessionFiles { directory }, before)?;
            } else if self.is_older(&directory, before) {
                removed += Self::count_removed(&directory, self.disk.remove_dir_all(&directory))?;
            }
        }
        Ok(removed + self.sweep_values(before)?)
    }

    /// Removes temporary files of a session, and the session if it never had a first line.
    fn sweep_session(&self, files: &SessionFiles, before: Timestamp) -> Result<u64, StoreError> {
        let names = self.names(&files.directory)?;
        if names.iter().all(|name| is_beginning(name)) && self.is_older(&files.directory, before) {
            return self.sweep_unfinished(files);
        }
        let mut removed = 0;
        for directory in [&files.directory, &files.blobs(), &files.inbox()] {
            for name in self.names(directory)?.iter().filter(|name| name.starts_with(NEW)) {
                let path = directory.join(name);
                if self.is_older(&path, before) {
                    removed += Self::count_removed(&path, self.disk.remove_file(&path))?;
                }
            }
        }
        Ok(removed)
    }

    /// Removes the directory of a session whose process crashed while it created the session.
    fn sweep_unfinished(&self, files: &SessionFiles) -> Result<u64, StoreError> {
        let path = files.lock();
        // Another process may be creating the session.
        let Ok(Ok(_lock)) = self.disk.lock(&path, "") else { return Ok(0) };
        if !self.names(&files.directory)?.iter().all(|name| is_beginning(name)) {
            return Ok(0);
        }
        self.discard(&files.directory)?;
        Ok(1)
    }

    /// Removes values that no session has. A session that concurrently gets such a value keeps it under its own name.
    fn sweep_values(&self, before: Timestamp) -> Result<u64, StoreError> {
        let mut removed = 0;
        let blobs = self.layout.blobs();
        for group in self.names(&blobs)? {
            let directory = blobs.join(group);
            let names = self.names(&directory)?;
            for name in names.iter().filter(|name| name.parse::<Hash>().is_ok()) {
                let path = directory.join(name);
                if self.disk.links(&path).is_ok_and(|links| links == 1) && self.is_older(&path, before) {
                    removed += Self::count_removed(&path, self.disk.remove_file(&path))?;
                }
            }
        }
        Ok(removed)
    }

    /// Returns the names in a directory; empty if it is missing or a file.
    fn names(&self, directory: &Path) -> Result<Vec<String>, StoreError> {
        match self.disk.list(directory) {
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                Ok(Vec::new())
            }
            names => names.map_err(io_error("list", directory)),
        }
    }

    fn is_older(&self, path: &Path, before: Timestamp) -> bool {
        self.disk.modified(path).is_ok_and(|modified| modified < before)
    }

    /// Counts a removal, unless another process removed the file first.
    fn count_removed(path: &Path, result: io::Result<()>) -> Result<u64, StoreError> {
        match result {
            Ok(()) => Ok(1),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
            Err(error) => Err(io_error("remove", path)(error)),
        }
    }
}
