//! File operations on this machine; every function blocks.
#![expect(clippy::disallowed_methods, reason = "this module owns file operations on this machine")]

#[cfg(target_os = "linux")]
pub(crate) mod beneath;
pub(crate) mod files;
#[cfg(target_os = "linux")]
pub(crate) mod held;
mod in_place;
mod parent_directory;
mod replacement;
mod temporary;
pub(crate) mod tree;
pub(crate) mod walk_cache;

use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions, Permissions},
    io::{self, Read, Seek, SeekFrom},
    ops::Range,
    os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use nix::{fcntl::OFlag, unistd::geteuid};

pub(crate) use self::replacement::replace;
use self::{
    parent_directory::{ParentDirectory, create_parent},
    walk_cache::CachedWalk,
};
use crate::{
    blocking::CancelFlag,
    error::EnvError,
    file::{DirEntry, FileIdentity, FileKind, MAX_READ, Metadata},
    search::ignore_rules::IgnoreRules,
    walk::{WalkOutput, WalkRequest},
};

/// Maximum number of links followed in one path.
pub(crate) const MAX_LINKS: usize = 40;

/// Opens a file itself, without following a link and without waiting for the other end of a pipe.
const NO_LINK: OFlag = OFlag::O_NOFOLLOW.union(OFlag::O_NONBLOCK);

pub(crate) fn check_directory(path: &Path) -> Result<(), EnvError> {
    if metadata(path)?.is_dir() {
        return Ok(());
    }
    Err(EnvError::NotADirectory { path: path.to_path_buf() })
}

pub(crate) fn read(path: &Path, range: Option<Range<u64>>) -> Result<Vec<u8>, EnvError> {
    read_open(open(path)?, path, range)
}

/// Reads an open file, whose path is for errors.
pub(crate) fn read_open(mut file: File, path: &Path, range: Option<Range<u64>>) -> Result<Vec<u8>, EnvError> {
    let failed = |source| EnvError::from_io("read", path, source);
    let range = range.unwrap_or(0..u64::MAX);
    if range.start > 0 {
        match file.seek(SeekFrom::Start(range.start)) {
            // The file system does not support such a large offset.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => return Ok(Vec::new()),
            sought => sought.map_err(failed)?,
        };
    }
    let wanted = range.end.saturating_sub(range.start);
    // One byte beyond the limit shows that there is more.
    let most = wanted.min(MAX_READ + 1);
    let size = file.metadata().map_err(failed)?.len().saturating_sub(range.start).min(most);
    let mut bytes = Vec::new();
    // A vector that grows during the read needs up to three times the memory. Files of the kernel have no size.
    let exact = usize::try_from(size).unwrap_or(usize::MAX);
    bytes.try_reserve_exact(exact).map_err(|_| failed(io::ErrorKind::OutOfMemory.into()))?;
    match file.take(most).read_to_end(&mut bytes) {
        // tmpfs refuses to read there, and not to go there.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput && range.start > 0 => {}
        Err(error) => return Err(failed(error)),
        Ok(_) => {}
    }
    if bytes.len() as u64 > MAX_READ {
        return Err(EnvError::TooLarge { path: path.to_path_buf(), limit: MAX_READ });
    }
    Ok(bytes)
}

/// Opens a regular file for reading; refuses anything that could block the reader.
pub(crate) fn open(path: &Path) -> Result<File, EnvError> {
    let file = OpenOptions::new()
        .read(true)
        // Do not wait for the writer of a pipe.
        .custom_flags(OFlag::O_NONBLOCK.bits())
        .open(path)
        .map_err(|source| EnvError::from_io("read", path, source))?;
    expect_regular_file(file, path)
}

/// Returns an open file if it is a regular one.
pub(crate) fn expect_regular_file(file: File, path: &Path) -> Result<File, EnvError> {
    let metadata = file.metadata().map_err(|source| EnvError::from_io("read", path, source))?;
    expect_regular(path, &metadata)?;
    Ok(file)
}

/// Writes a complete file. If it is cancelled before the new content is in place, the old file is unchanged.
pub(crate) fn write(path: &Path, bytes: &[u8], cancelled: &CancelFlag) -> Result<(), EnvError> {
    let target = follow_links(path)?;
    let as_requested = |found: &Path| if found == target { path } else { found }.to_path_buf();
    // A path that is resolved by name has no recorded identity.
    replace(&target, bytes, cancelled, &|_| Ok(())).map_err(|error| error.map_path(as_requested))
}

fn write_cancelled() -> io::Error {
    io::Error::other("the write was cancelled")
}

/// Returns the identity of a directory; `None` if its file system keeps no times of birth.
pub(crate) fn place(path: &Path) -> Result<Option<String>, EnvError> {
    let metadata = fs::metadata(path).map_err(|source| EnvError::from_io("look at", path, source))?;
    let birth = metadata.created().ok().and_then(|birth| birth.duration_since(std::time::UNIX_EPOCH).ok());
    Ok(birth.and_then(|birth| {
        crate::place::identity(metadata.ino(), birth.as_secs(), u64::from(birth.subsec_nanos()))
    }))
}

/// Resolves every link in a path; missing components are appended unchanged.
pub(crate) fn canonicalize(path: &Path) -> Result<PathBuf, EnvError> {
    let failed = |source| EnvError::from_io("look at", path, source);
    let mut resolved = PathBuf::from("/");
    let mut pending = reversed_components(path);
    let mut links = 0;
    while let Some(component) = pending.pop() {
        if component == ".." {
            resolved.pop();
            continue;
        }
        let next = resolved.join(&component);
        match fs::symlink_metadata(&next) {
            Ok(metadata) if metadata.is_symlink() => {
                links += 1;
                if links > MAX_LINKS {
                    return Err(failed(too_many_links()));
                }
                let target = fs::read_link(&next).map_err(failed)?;
                if target.is_absolute() {
                    resolved = PathBuf::from("/");
                }
                pending.extend(reversed_components(&target));
            }
            Ok(_) => resolved = next,
            Err(error) if error.kind() == io::ErrorKind::NotFound => resolved = next,
            Err(error) => return Err(failed(error)),
        }
    }
    Ok(resolved)
}

/// Returns names and `..`, last one first.
pub(crate) fn reversed_components(path: &Path) -> Vec<OsString> {
    let names = path.components().filter_map(|component| match component {
        Component::Prefix(_) | Component::RootDir | Component::CurDir => None,
        Component::ParentDir | Component::Normal(_) => Some(component.as_os_str().to_owned()),
    });
    names.rev().collect()
}

pub(crate) fn metadata(path: &Path) -> Result<Metadata, EnvError> {
    let metadata = fs::metadata(path).map_err(|source| EnvError::from_io("look at", path, source))?;
    let kind = if metadata.is_file() {
        FileKind::File
    } else if metadata.is_dir() {
        FileKind::Directory
    } else {
        FileKind::Other
    };
    let identity = FileIdentity {
        inode: metadata.ino(),
        changed_ns: metadata.ctime().saturating_mul(1_000_000_000).saturating_add(metadata.ctime_nsec()),
    };
    Ok(Metadata::new(kind, metadata.len())
        .with_modified(metadata.modified().ok())
        .with_mode(metadata.mode() & 0o7777)
        .with_owned(Some(is_owned(&metadata)))
        .with_identity(Some(identity)))
}

/// Returns whether a file belongs to the user of this process.
fn is_owned(metadata: &fs::Metadata) -> bool {
    metadata.uid() == geteuid().as_raw()
}

/// Lists a directory; fails if it has more than `limit` entries.
pub(crate) fn list(path: &Path, limit: usize) -> Result<Vec<DirEntry>, EnvError> {
    let failed = |source| EnvError::from_io("list", path, source);
    let mut entries = Vec::new();
    for entry in fs::read_dir(path).map_err(failed)? {
        if entries.len() == limit {
            return Err(EnvError::TooManyEntries { path: path.to_path_buf(), limit });
        }
        let entry = entry.map_err(failed)?;
        let kind = entry.file_type().map_err(failed)?;
        let name = entry.file_name();
        entries.push(if kind.is_dir() {
            DirEntry::directory(name)
        } else if kind.is_symlink() {
            DirEntry::symlink(name)
        } else if kind.is_file() {
            match entry.metadata() {
                Ok(metadata) => DirEntry::file(name, metadata.len()),
                // It was removed since it was listed.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(failed(error)),
            }
        } else {
            DirEntry::other(name)
        });
    }
    entries.sort_by(|left, right| left.name.cmp(&right.name));
    Ok(entries)
}

pub(crate) fn remove(path: &Path) -> Result<(), EnvError> {
    let failed = |source| EnvError::from_io("remove", path, source);
    if !fs::symlink_metadata(path).map_err(failed)?.is_dir() {
        return fs::remove_file(path).map_err(failed);
    }
    fs::remove_dir(path).map_err(|error| {
        // The error depends on the system.
        if matches!(error.kind(), io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::AlreadyExists) {
            return EnvError::IsADirectory { path: path.to_path_buf() };
        }
        failed(error)
    })
}

/// Creates a directory with its missing parents, unless it exists.
pub(crate) fn create_directory(path: &Path) -> Result<(), EnvError> {
    match ParentDirectory::create(path) {
        Ok(directory) => {
            directory.keep();
            Ok(())
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Err(EnvError::NotADirectory { path: path.to_path_buf() })
        }
        Err(source) => Err(EnvError::from_io("create", path, source)),
    }
}

/// Creates a symbolic link with missing parents.
pub(crate) fn create_symlink(path: &Path, target: &Path) -> Result<(), EnvError> {
    let directory = create_parent(path)?;
    std::os::unix::fs::symlink(target, path).map_err(|source| EnvError::from_io("create", path, source))?;
    directory.keep();
    Ok(())
}

/// Walks the tree below a root, following a link only there.
pub(crate) fn walk(
    request: &WalkRequest,
    above: Option<&Arc<IgnoreRules>>,
    cancelled: &CancelFlag,
    cached: Option<&mut CachedWalk<'_>>,
) -> Result<WalkOutput, EnvError> {
    let root = &request.root;
    let read_rules = |path: &Path| read(path, None).unwrap_or_default();
    tree::walk(tree::open_root(root)?, root, request, above, &read_rules, cancelled, cached)
}

/// Sets the permission bits of a file or directory, following links.
pub(crate) fn set_mode(path: &Path, mode: u32) -> Result<(), EnvError> {
    fs::set_permissions(path, Permissions::from_mode(mode & 0o7777))
        .map_err(|source| EnvError::from_io("change the mode of", path, source))
}

pub(crate) fn rename(from: &Path, to: &Path) -> Result<(), EnvError> {
    let failed = |source| EnvError::from_io("rename", from, source);
    // A missing source must not leave new directories behind.
    fs::symlink_metadata(from).map_err(failed)?;
    if fs::symlink_metadata(to).is_ok_and(|metadata| metadata.is_dir()) {
        return Err(EnvError::IsADirectory { path: to.to_path_buf() });
    }
    let directory = create_parent(to)?;
    fs::rename(from, to).map_err(failed)?;
    sync_directory(&directory.keep()).map_err(failed)
}

fn expect_regular(path: &Path, metadata: &fs::Metadata) -> Result<(), EnvError> {
    let path = path.to_path_buf();
    if metadata.is_dir() {
        Err(EnvError::IsADirectory { path })
    } else if metadata.is_file() {
        Ok(())
    } else {
        Err(EnvError::NotARegularFile { path })
    }
}

/// Resolves links in the last component, even if the target is missing.
fn follow_links(path: &Path) -> Result<PathBuf, EnvError> {
    let mut target = path.to_path_buf();
    for _ in 0..MAX_LINKS {
        let Ok(next) = fs::read_link(&target) else {
            return Ok(target);
        };
        // Any `..` is left to the system: a name before it may itself be a link.
        target = target.parent().unwrap_or(Path::new("/")).join(next);
    }
    Err(EnvError::Io { action: "write", path: path.to_path_buf(), source: too_many_links() })
}

pub(crate) fn too_many_links() -> io::Error {
    io::Error::other(format!("more than {MAX_LINKS} symbolic links"))
}

/// Makes a rename durable.
fn sync_directory(directory: &Path) -> io::Result<()> {
    match File::open(directory).and_then(|directory| directory.sync_all()) {
        // Some file systems do not support this, and a directory may be writable but not readable.
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported | io::ErrorKind::PermissionDenied
            ) =>
        {
            Ok(())
        }
        done => done,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use nix::unistd::Uid;

    use super::replacement::temporary_file;
    use super::temporary::Temporary;
    use super::*;

    fn mode(file: &Temporary) -> u32 {
        file.file().metadata().unwrap().mode() & 0o777
    }

    /// A name that no file system accepts, which fails only at the rename.
    fn too_long() -> String {
        "n".repeat(300)
    }

    #[test]
    fn a_failed_write_or_rename_removes_created_directories() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::create_dir(at("old")).unwrap();
        fs::write(at("file"), "").unwrap();
        for above in ["new/a/b", "old/a", "old"] {
            let target = at(above).join(too_long());
            write(&target, b"x", &CancelFlag::default()).unwrap_err();
            rename(&at("file"), &target).unwrap_err();
            let cancelled = CancelFlag::default();
            drop(cancelled.on_drop());
            write(&at(above).join("file"), b"x", &cancelled).unwrap_err();
        }
        let names =
            |path: PathBuf| list(&path, 9).unwrap().into_iter().map(|entry| entry.name).collect::<Vec<_>>();
        assert_eq!(names(at("")), [Path::new("file"), Path::new("old")]);
        assert!(names(at("old")).is_empty());
        // Files added by others meanwhile are kept, as are directories of a successful write.
        let created = ParentDirectory::create(&at("new/a/b")).unwrap();
        fs::write(at("new/a/theirs"), "").unwrap();
        drop(created);
        assert_eq!(names(at("new/a")), [Path::new("theirs")]);
        write(&at("new/a/c/file"), b"x", &CancelFlag::default()).unwrap();
        assert!(at("new/a/c/file").exists());
    }

    #[test]
    fn a_replacement_is_private_until_complete() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("secret");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        assert_eq!(mode(&temporary_file(directory.path(), true).unwrap()), 0o600);
        // A new file has the usual permission bits, minus the umask.
        File::create(directory.path().join("usual")).unwrap();
        let usual = fs::metadata(directory.path().join("usual")).unwrap().mode() & 0o777;
        assert_eq!(mode(&temporary_file(directory.path(), false).unwrap()), usual);
        write(&path, b"new", &CancelFlag::default()).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o640);
    }

    #[test]
    fn a_cancelled_write_changes_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        fs::write(&path, "old").unwrap();
        let cancelled = CancelFlag::default();
        drop(cancelled.on_drop());
        write(&path, b"new", &cancelled).unwrap_err();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn dots_in_links_are_resolved_by_the_system() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::create_dir_all(at("real/below")).unwrap();
        symlink("real/below", at("short")).unwrap();
        symlink(at("short/../absolute"), at("one")).unwrap();
        symlink("short/../relative", at("two")).unwrap();
        for (link, target) in [("one", "real/absolute"), ("two", "real/relative")] {
            write(&at(link), b"x", &CancelFlag::default()).unwrap();
            assert_eq!(fs::read(at(target)).unwrap(), b"x", "{link}");
        }
    }

    #[test]
    fn removing_a_link_keeps_its_directory() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::create_dir(at("empty")).unwrap();
        symlink("empty", at("link")).unwrap();
        remove(&at("link")).unwrap();
        assert!(at("empty").is_dir() && !at("link").is_symlink());
        remove(&at("empty")).unwrap();
        assert!(!at("empty").exists());
    }

    /// Nothing is denied to the superuser, so a thread changes its file system user.
    #[test]
    fn permission_denied_names_the_path() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).unwrap();
        fs::write(at("closed"), "secret").unwrap();
        fs::create_dir(at("shut")).unwrap();
        fs::write(at("shut/file"), "secret").unwrap();
        for name in ["closed", "shut/file", "shut"] {
            fs::set_permissions(at(name), Permissions::from_mode(0o000)).unwrap();
        }
        let is_root = pintle_test_conditions::ROOT.is_present();
        if is_root {
            // The directory itself must belong to another user too.
            nix::unistd::chown(directory.path(), Some(Uid::from_raw(1)), None).unwrap();
        }
        let denied = std::thread::scope(|scope| {
            let tries = || {
                if is_root {
                    nix::unistd::setfsuid(Uid::from_raw(65_534));
                }
                let none = CancelFlag::default();
                let mut denied = vec![
                    ("closed", read(&at("closed"), None).map(drop)),
                    ("shut/file", read(&at("shut/file"), None).map(drop)),
                    ("shut/file", metadata(&at("shut/file")).map(drop)),
                    ("shut", list(&at("shut"), 9).map(drop)),
                    ("shut/file", write(&at("shut/file"), b"new", &none)),
                    ("shut/file", remove(&at("shut/file"))),
                    ("shut/file", rename(&at("shut/file"), &at("moved"))),
                    ("shut/file", canonicalize(&at("shut/file")).map(drop)),
                ];
                if is_root {
                    denied.push(("new", write(&at("new"), b"new", &none)));
                    denied.push(("closed", remove(&at("closed"))));
                }
                denied
            };
            scope.spawn(tries).join().unwrap()
        });
        for (number, (name, result)) in denied.into_iter().enumerate() {
            let error = result.unwrap_err();
            assert!(
                matches!(&error, EnvError::PermissionDenied { path, .. } if *path == at(name)),
                "{number}: {error:?}"
            );
        }
        fs::set_permissions(at("shut"), Permissions::from_mode(0o700)).unwrap();
        fs::set_permissions(at("shut/file"), Permissions::from_mode(0o600)).unwrap();
        assert_eq!(fs::read(at("shut/file")).unwrap(), b"secret");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
    }

    #[test]
    fn listings_are_limited() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["a", "b", "c"] {
            fs::write(directory.path().join(name), "").unwrap();
        }
        assert_eq!(list(directory.path(), 3).unwrap().len(), 3);
        let error = list(directory.path(), 2).unwrap_err();
        assert!(matches!(error, EnvError::TooManyEntries { limit: 2, .. }), "{error:?}");
    }
}
