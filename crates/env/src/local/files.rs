//! Files of this machine; every function blocks.
#![expect(clippy::disallowed_methods, reason = "this module is where files belong to")]

use std::{
    fs::{self, File, OpenOptions, Permissions},
    io::{self, Read, Seek, SeekFrom, Write},
    ops::Range,
    os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use nix::{
    fcntl::OFlag,
    unistd::{Gid, Uid, fchown},
};

use crate::{
    environment::MAX_READ,
    error::EnvError,
    file::{DirEntry, FileKind, Metadata},
    path::normalize,
};

/// How many links are followed to the place where a file is written.
const MAX_LINKS: usize = 40;

/// The permission bits of a new file, before the process's mask.
const NEW_FILE_MODE: u32 = 0o666;

pub(super) fn check_directory(path: &Path) -> Result<(), EnvError> {
    if metadata(path)?.is_dir() {
        return Ok(());
    }
    Err(EnvError::NotADirectory { path: path.to_path_buf() })
}

pub(super) fn read(path: &Path, range: Option<Range<u64>>) -> Result<Vec<u8>, EnvError> {
    let failed = |source| EnvError::from_io("read", path, source);
    let mut file = open(path)?;
    let range = range.unwrap_or(0..u64::MAX);
    if range.start > 0 {
        file.seek(SeekFrom::Start(range.start)).map_err(failed)?;
    }
    let wanted = range.end.saturating_sub(range.start);
    // One byte more than allowed shows that there is more.
    let mut bytes = Vec::new();
    file.take(wanted.min(MAX_READ + 1)).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > MAX_READ {
        return Err(EnvError::TooLarge { path: path.to_path_buf(), limit: MAX_READ });
    }
    Ok(bytes)
}

/// Opens a regular file for reading, and nothing that could make a reader wait.
pub(super) fn open(path: &Path) -> Result<File, EnvError> {
    let failed = |source| EnvError::from_io("read", path, source);
    let file = OpenOptions::new()
        .read(true)
        // A pipe without a writer is not waited for.
        .custom_flags(OFlag::O_NONBLOCK.bits())
        .open(path)
        .map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    expect_regular(path, &metadata)?;
    Ok(file)
}

pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<(), EnvError> {
    let target = follow_links(path)?;
    let failed = |source| EnvError::from_io("write", path, source);
    let existing = match fs::metadata(&target) {
        Ok(metadata) => Some(metadata),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(failed(error)),
    };
    if let Some(metadata) = &existing {
        expect_regular(path, metadata)?;
    }
    let directory = create_parent(&target)?;
    let mut file = tempfile::Builder::new()
        .prefix(".pintle-")
        .permissions(Permissions::from_mode(NEW_FILE_MODE))
        .tempfile_in(directory)
        .map_err(failed)?;
    file.write_all(bytes).map_err(failed)?;
    if let Some(metadata) = &existing {
        keep_owner_and_mode(file.as_file(), metadata).map_err(failed)?;
    }
    file.as_file().sync_all().map_err(failed)?;
    file.persist(&target).map_err(|error| failed(error.error))?;
    sync_directory(directory).map_err(failed)
}

pub(super) fn metadata(path: &Path) -> Result<Metadata, EnvError> {
    let metadata = fs::metadata(path).map_err(|source| EnvError::from_io("look at", path, source))?;
    let kind = if metadata.is_file() {
        FileKind::File
    } else if metadata.is_dir() {
        FileKind::Directory
    } else {
        FileKind::Other
    };
    Ok(Metadata::new(kind, metadata.len())
        .with_modified(metadata.modified().ok())
        .with_mode(metadata.mode() & 0o7777))
}

pub(super) fn list(path: &Path) -> Result<Vec<DirEntry>, EnvError> {
    let failed = |source| EnvError::from_io("list", path, source);
    let mut entries = Vec::new();
    for entry in fs::read_dir(path).map_err(failed)? {
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
                // It went away since it was listed.
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

pub(super) fn remove(path: &Path) -> Result<(), EnvError> {
    let failed = |source| EnvError::from_io("remove", path, source);
    if fs::symlink_metadata(path).map_err(failed)?.is_dir() {
        return Err(EnvError::IsADirectory { path: path.to_path_buf() });
    }
    fs::remove_file(path).map_err(failed)
}

pub(super) fn rename(from: &Path, to: &Path) -> Result<(), EnvError> {
    let failed = |source| EnvError::from_io("rename", from, source);
    // A missing source must not leave new directories behind.
    fs::symlink_metadata(from).map_err(failed)?;
    if fs::symlink_metadata(to).is_ok_and(|metadata| metadata.is_dir()) {
        return Err(EnvError::IsADirectory { path: to.to_path_buf() });
    }
    let directory = create_parent(to)?;
    fs::rename(from, to).map_err(failed)?;
    sync_directory(directory).map_err(failed)
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

/// The place that a path names when links at its end are followed, even if nothing is there.
fn follow_links(path: &Path) -> Result<PathBuf, EnvError> {
    let mut target = path.to_path_buf();
    for _ in 0..MAX_LINKS {
        let Ok(next) = fs::read_link(&target) else {
            return Ok(target);
        };
        // The parent may itself be a link, through which `..` must not be resolved by name alone.
        let directory = target.parent().unwrap_or(Path::new("/"));
        target = match fs::canonicalize(directory) {
            Ok(directory) if !next.is_absolute() => directory.join(next),
            Ok(_) | Err(_) => normalize(&directory.join(next)),
        };
    }
    Err(EnvError::Io {
        action: "write",
        path: path.to_path_buf(),
        source: io::Error::other(format!("more than {MAX_LINKS} symbolic links")),
    })
}

/// Creates the directories above `path` and returns the nearest.
fn create_parent(path: &Path) -> Result<&Path, EnvError> {
    let parent = path.parent().unwrap_or(Path::new("/"));
    match fs::create_dir_all(parent) {
        Ok(()) => Ok(parent),
        // What stands in the way of a directory is reported as existing.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Err(EnvError::NotADirectory { path: parent.to_path_buf() })
        }
        Err(source) => Err(EnvError::from_io("create", parent, source)),
    }
}

fn keep_owner_and_mode(file: &File, old: &fs::Metadata) -> io::Result<()> {
    let new = file.metadata()?;
    let mut mode = old.mode() & 0o7777;
    if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
        let (uid, gid) = (Uid::from_raw(old.uid()), Gid::from_raw(old.gid()));
        // Only the superuser can give a file away; the group alone may still be possible.
        if let Err(error) = fchown(file, Some(uid), Some(gid)) {
            let group = fchown(file, None, Some(gid));
            tracing::debug!(%error, ?group, "the owner of a written file changes");
            // A program must not begin to run as somebody else than before.
            mode &= 0o1777;
        }
    }
    // After the owner, since a change of owner takes bits away.
    file.set_permissions(Permissions::from_mode(mode))
}

/// Makes a rename durable.
fn sync_directory(directory: &Path) -> io::Result<()> {
    match File::open(directory).and_then(|directory| directory.sync_all()) {
        // Some file systems cannot do it, and a directory may be writable and not readable.
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
