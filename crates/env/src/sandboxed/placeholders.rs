//! Files and directories in place of protected paths that do not exist, and of sockets that are removed.
#![expect(
    clippy::disallowed_methods,
    reason = "this module creates mount points on the host and removes them"
)]

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    fs::{self, File, Metadata},
    io,
    os::unix::{ffi::OsStringExt, fs::MetadataExt},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use crate::error::EnvError;

/// Time of the last change of placeholders, in seconds since 1970, by which other processes know them: a time that no archive
/// gives its files.
const PLACEHOLDER_MTIME: Duration = Duration::from_secs(161_803_398);

/// Kind of file created in place of a missing path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Placeholder {
    /// For the path itself, since programs treat an empty file like a missing one more often than
    /// an empty directory.
    File,
    /// For a directory above it.
    Directory,
}

/// Placeholders that exist. A mount needs something to be mounted on; they stay until no command runs,
/// since removing a mount point removes the mount.
#[derive(Debug, Default)]
pub(super) struct Placeholders {
    /// With device and inode.
    created: Mutex<BTreeMap<PathBuf, (u64, u64)>>,
    /// Sockets to hide from commands that are starting.
    sockets: Mutex<BTreeSet<PathBuf>>,
}

impl Placeholders {
    /// Creates a placeholder unless something is there by now.
    ///
    /// # Errors
    ///
    /// Those of the file system.
    pub(super) fn create(&self, path: &Path, kind: Placeholder) -> Result<(), EnvError> {
        let created = match kind {
            Placeholder::File => File::create_new(path),
            Placeholder::Directory => fs::create_dir(path).and_then(|()| File::open(path)),
        };
        let found = created.and_then(|created| {
            created.set_modified(SystemTime::UNIX_EPOCH + PLACEHOLDER_MTIME)?;
            created.metadata()
        });
        match found {
            Ok(found) => {
                let mut known = self.created.lock().unwrap_or_else(PoisonError::into_inner);
                known.insert(path.to_path_buf(), (found.dev(), found.ino()));
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(EnvError::from_io("create", path, error)),
        }
    }

    /// Adopts the placeholder of another process, which may be gone. The last process to end removes it.
    pub(super) fn adopt(&self, path: &Path, found: &Metadata) {
        let mark = SystemTime::UNIX_EPOCH + PLACEHOLDER_MTIME;
        if found.modified().is_ok_and(|modified| modified == mark) {
            let mut known = self.created.lock().unwrap_or_else(PoisonError::into_inner);
            known.insert(path.to_path_buf(), (found.dev(), found.ino()));
        }
    }

    /// Returns true if a path is a placeholder directory in which nothing was created since.
    pub(super) fn is_empty(&self, path: &Path, found: &Metadata) -> bool {
        let known = self.created.lock().unwrap_or_else(PoisonError::into_inner);
        let is_ours = known.get(path) == Some(&(found.dev(), found.ino()));
        is_ours && fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
    }

    /// Removes those that are still empty and have not been replaced. Call it when no command runs;
    /// a drop cannot know that, and removes nothing.
    pub(super) fn remove(&self) {
        let known = std::mem::take(&mut *self.created.lock().unwrap_or_else(PoisonError::into_inner));
        let in_use = if known.is_empty() { BTreeSet::new() } else { mount_points_elsewhere() };
        for (path, identity) in known {
            // Its removal would lift the mount there. The other session removes it.
            if in_use.contains(&path) {
                continue;
            }
            let same = |found: &Metadata| (found.dev(), found.ino()) == identity;
            let removed = match fs::symlink_metadata(&path) {
                // A directory that is not empty is not removed.
                Ok(found) if same(&found) && found.is_dir() => fs::remove_dir(&path),
                Ok(found) if same(&found) && found.len() == 0 => fs::remove_file(&path),
                Ok(_) => Ok(()),
                Err(error) => Err(error),
            };
            if let Err(error) = removed {
                tracing::debug!(%error, path = %path.display(), "a placeholder is not removed");
            }
        }
    }

    /// Notes that something is about to be mounted over a socket.
    pub(super) fn note_socket(&self, path: &Path) {
        self.sockets.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_path_buf());
    }

    /// Removes the empty files that bubblewrap created because the socket there had just been removed. They would
    /// keep the service from binding its socket again. Call it after a start.
    pub(super) fn remove_files_of_sockets(&self) {
        let sockets = std::mem::take(&mut *self.sockets.lock().unwrap_or_else(PoisonError::into_inner));
        for path in sockets {
            let is_file = |found: &Metadata| found.is_file() && found.len() == 0;
            // A link on the way would lead to another file.
            let is_same = path.canonicalize().is_ok_and(|real| real == path);
            if is_same
                && fs::symlink_metadata(&path).is_ok_and(|found| is_file(&found))
                && let Err(error) = fs::remove_file(&path)
            {
                tracing::debug!(%error, path = %path.display(), "a file in place of a socket is not removed");
            }
        }
    }
}

/// Returns the mount points of all other mount namespaces that this user can see.
fn mount_points_elsewhere() -> BTreeSet<PathBuf> {
    let namespace = |process: &Path| fs::read_link(process.join("ns/mnt")).ok();
    let mut seen: BTreeSet<PathBuf> = namespace(Path::new("/proc/self")).into_iter().collect();
    let mut points = BTreeSet::new();
    for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let is_process = process.file_name().as_encoded_bytes().iter().all(u8::is_ascii_digit);
        let Some(namespace) = namespace(&process.path()).filter(|_| is_process) else { continue };
        // A process that has ended meanwhile leaves the namespace to the others in it.
        if !seen.contains(&namespace)
            && let Ok(table) = fs::read(process.path().join("mountinfo"))
            && !table.is_empty()
        {
            points.extend(table.split(|byte| *byte == b'\n').filter_map(mount_point));
            seen.insert(namespace);
        }
    }
    points
}

/// Returns the mount point of a line of `/proc/PID/mountinfo` (proc(5)).
fn mount_point(line: &[u8]) -> Option<PathBuf> {
    let mut rest = line.split(|byte| *byte == b' ').nth(4)?;
    let mut bytes = Vec::new();
    while let Some((first, after)) = rest.split_first() {
        let escaped = after.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        let escaped =
            escaped.filter(|_| *first == b'\\').and_then(|digits| u8::from_str_radix(digits, 8).ok());
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { after.get(3..).unwrap_or_default() } else { after };
    }
    Some(PathBuf::from(OsString::from_vec(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_points_are_read_from_the_table() {
        let line = br"36 35 98:0 /mnt1 /mnt/a\040path\134x rw,noatime master:1 - ext3 /dev/root rw";
        assert_eq!(mount_point(line), Some(PathBuf::from(r"/mnt/a path\x")));
        let other = OsString::from_vec(b"/mnt/\xff".to_vec());
        assert_eq!(mount_point(b"36 35 98:0 / /mnt/\xff rw"), Some(PathBuf::from(other)));
        assert_eq!(mount_point(b"36 35"), None);
    }
}
