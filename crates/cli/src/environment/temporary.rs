//! Removal of the temporary directory of commands, including directories without permissions.
#![expect(clippy::disallowed_methods, reason = "the directory is on this machine, whatever the environment")]

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Removes a directory with everything below it, also directories without permissions. No link is followed. Call it once no
/// command runs.
///
/// # Errors
///
/// The first error of the file system; what could be removed is gone.
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
