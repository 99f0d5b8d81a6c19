//! Writing a file in place, if replacing it would lose something: its other hard links, its owner, extended attributes
//! and access control lists, or a mount.
//!
//! Both contents are kept as temporary files until the new one is synchronised. If the process dies in between, the file has
//! bytes of both, and the copies decide: a declared change is reconciled with them.

use std::{
    fs::{File, OpenOptions, Permissions},
    io::{self, Read, Seek, SeekFrom},
    os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt},
    path::Path,
};

use tempfile::NamedTempFile;

use super::{NO_LINK, sync_directory, write_cancelled};
use crate::{
    blocking::CancelFlag,
    file::{COPIES_DIRECTORY, COPIES_MODE, TEMPORARY_PREFIX},
};

/// Replaces the content of a file that is open for writing; `target` is its name. Fails before the first change if the
/// content that is there cannot be copied. A failed write is undone.
pub(super) fn overwrite(
    target: &Path,
    writer: &File,
    bytes: &[u8],
    cancelled: &CancelFlag,
) -> io::Result<()> {
    let mut reader = OpenOptions::new().read(true).custom_flags(NO_LINK.bits()).open(target)?;
    let (old, judged) = (reader.metadata()?, writer.metadata()?);
    if (old.dev(), old.ino()) != (judged.dev(), judged.ino()) {
        return Err(io::Error::other("another file took its place meanwhile"));
    }
    let directory = target.parent().unwrap_or(Path::new("/"));
    let mut content = bytes;
    let mut before = copy(directory, &mut reader)?;
    let after = copy(directory, &mut content)?;
    if cancelled.get() {
        return Err(write_cancelled());
    }
    content = bytes;
    if let Err(error) = put(writer, &mut content) {
        if let Err(failure) = before.seek(SeekFrom::Start(0)).and_then(|_| put(writer, &mut before)) {
            let (_, kept) = before.keep().map_err(|error| error.error)?;
            let name = if kept.starts_with(COPIES_DIRECTORY) {
                kept.as_os_str()
            } else {
                kept.file_name().unwrap_or_default()
            };
            let name = name.display();
            let message =
                format!("{error}; the file is damaged ({failure}), and its former content is in {name}");
            return Err(io::Error::new(error.kind(), message));
        }
        return Err(error);
    }
    // A write clears the bits that let a program run as another user. Its owner may set them.
    if writer.metadata()?.mode() != old.mode()
        && let Err(error) = writer.set_permissions(Permissions::from_mode(old.mode() & 0o7777))
    {
        tracing::debug!(%error, "cannot keep the mode of a file");
    }
    drop((before, after));
    Ok(())
}

/// Writes a content from the start of a file to its new end.
fn put(mut file: &File, content: &mut dyn Read) -> io::Result<()> {
    file.seek(SeekFrom::Start(0))?;
    let length = io::copy(content, &mut file)?;
    file.set_len(length)?;
    file.sync_all()
}

/// Copies a content to a synchronised temporary file in a directory, or in [`COPIES_DIRECTORY`] if it accepts no file.
fn copy(directory: &Path, content: &mut dyn Read) -> io::Result<NamedTempFile> {
    let create = |directory: &Path| {
        let permissions = Permissions::from_mode(COPIES_MODE);
        tempfile::Builder::new().prefix(TEMPORARY_PREFIX).permissions(permissions).tempfile_in(directory)
    };
    let (mut file, directory) = match create(directory) {
        Ok(file) => (file, directory),
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem
            ) =>
        {
            let directory = Path::new(COPIES_DIRECTORY);
            (create(directory)?, directory)
        }
        Err(error) => return Err(error),
    };
    io::copy(content, file.as_file_mut())?;
    file.as_file().sync_all()?;
    sync_directory(directory)?;
    Ok(file)
}

/// Copies extended attributes, among them access control lists. Returns false if the two files differ in any afterwards.
#[cfg(target_os = "linux")]
pub(super) fn copy_attributes(from: &File, to: &File) -> bool {
    let Ok(old) = attributes(from) else { return false };
    for (name, value) in &old {
        let has_it = attribute(to, name).is_ok_and(|found| found == *value);
        if !has_it
            && let Err(error) =
                rustix::fs::fsetxattr(to, name.as_slice(), value, rustix::fs::XattrFlags::empty())
        {
            tracing::debug!(name = %name.escape_ascii(), %error, "cannot copy an attribute of a file");
            return false;
        }
    }
    // A directory can give a new file another access control list.
    attributes(to).is_ok_and(|new| new == old)
}

/// Attributes of other systems are not copied.
#[cfg(not(target_os = "linux"))]
pub(super) fn copy_attributes(_from: &File, _to: &File) -> bool {
    true
}

/// Returns the extended attributes of a file by name.
#[cfg(target_os = "linux")]
fn attributes(file: &File) -> io::Result<std::collections::BTreeMap<Vec<u8>, Vec<u8>>> {
    use rustix::io::Errno;
    let length = match rustix::fs::flistxattr_query(file) {
        // The file has no attributes, or the file system does not support them.
        Ok(0) | Err(Errno::OPNOTSUPP) => return Ok(std::collections::BTreeMap::new()),
        length => length?,
    };
    let mut names = vec![0; length];
    let length = rustix::fs::flistxattr(file, names.as_mut_slice())?;
    let names = names.get(..length).unwrap_or_default().split(|byte| *byte == 0);
    names
        .filter(|name| !name.is_empty())
        .map(|name| attribute(file, name).map(|value| (name.to_vec(), value)))
        .collect()
}

#[cfg(target_os = "linux")]
fn attribute(file: &File, name: &[u8]) -> io::Result<Vec<u8>> {
    let mut value = vec![0; rustix::fs::fgetxattr_query(file, name)?];
    let length = rustix::fs::fgetxattr(file, name, value.as_mut_slice())?;
    value.truncate(length);
    Ok(value)
}
