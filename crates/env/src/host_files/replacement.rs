//! Replacing a file as a whole.

use std::{
    fs::{self, File, OpenOptions, Permissions},
    io::{self, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt},
    path::Path,
};

use nix::{
    errno::Errno,
    unistd::{Gid, Uid, fchown},
};

use super::{
    NO_LINK, expect_regular, in_place, is_owned,
    parent_directory::{ParentDirectory, create_parent},
    sync_directory,
    temporary::Temporary,
    write_cancelled,
};
use crate::{blocking::CancelFlag, error::EnvError, file::is_read_only};

/// Permission bits of a new file, before the umask.
const NEW_FILE_MODE: u32 = 0o666;

/// Permission bits of a replacement file until it gets the bits of the original.
const REPLACEMENT_MODE: u32 = 0o600;

/// Writes a complete file without following a link at `target`. `check_identity` accepts or refuses the existing file,
/// which is open for writing.
///
/// The file is replaced as a whole. If that would lose something of the existing file, or is not possible, it is
/// [written in place](in_place::overwrite).
pub(crate) fn replace(
    target: &Path,
    bytes: &[u8],
    cancelled: &CancelFlag,
    check_identity: &dyn Fn(&File) -> Result<(), EnvError>,
) -> Result<(), EnvError> {
    let failed = |source| EnvError::from_io("write", target, source);
    let existing = ExistingFile::open(target, check_identity)?;
    if let Some(existing) = &existing
        && existing.metadata.nlink() > 1
    {
        return existing.overwrite(target, bytes, cancelled);
    }
    let (directory, mut file) = match (create_temporary(target, existing.is_some()), &existing) {
        (Ok(created), _) => created,
        (Err(error), Some(existing)) if is_directory_closed(&error) => {
            return existing.overwrite(target, bytes, cancelled);
        }
        (Err(error), _) => return Err(error),
    };
    file.file_mut().write_all(bytes).map_err(failed)?;
    if let Some(existing) = &existing
        && !existing.carry_over_metadata(file.file()).map_err(failed)?
    {
        return existing.overwrite(target, bytes, cancelled);
    }
    file.file().sync_all().map_err(failed)?;
    if cancelled.get() {
        return Err(failed(write_cancelled()));
    }
    match (file.persist(target), &existing) {
        (Ok(()), _) => sync_directory(&directory.keep()).map_err(failed),
        (Err(error), Some(existing)) if is_irreplaceable(&error) => {
            existing.overwrite(target, bytes, cancelled)
        }
        (Err(error), _) => Err(failed(error)),
    }
}

/// A file that is to be written.
struct ExistingFile {
    metadata: fs::Metadata,
    /// The file, open for writing; the error for a running program, which can only be replaced.
    writer: Result<File, Errno>,
}

impl ExistingFile {
    /// Opens a file without following a link; `None` if it does not exist.
    fn open(
        target: &Path,
        check_identity: &dyn Fn(&File) -> Result<(), EnvError>,
    ) -> Result<Option<Self>, EnvError> {
        let failed = |source| EnvError::from_io("write", target, source);
        let metadata = match fs::symlink_metadata(target) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        expect_regular(target, &metadata)?;
        let mode = metadata.mode() & 0o7777;
        if is_read_only(mode, is_owned(&metadata)) {
            return Err(EnvError::ReadOnlyFile { path: target.to_path_buf(), mode });
        }
        let opened = OpenOptions::new().write(true).custom_flags(NO_LINK.bits()).open(target);
        let file = match opened {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => {
                return Ok(Some(Self { metadata, writer: Err(Errno::ETXTBSY) }));
            }
            Err(error) => return Err(failed(error)),
        };
        // The open file is relevant, not an earlier file of the same name.
        let metadata = file.metadata().map_err(failed)?;
        expect_regular(target, &metadata)?;
        check_identity(&file)?;
        Ok(Some(Self { metadata, writer: Ok(file) }))
    }

    /// Gives a replacement the owner and mode of the file, and on Linux its extended attributes. Returns false if it cannot
    /// have them all.
    fn carry_over_metadata(&self, replacement: &File) -> io::Result<bool> {
        let is_owner_kept = keep_owner_and_mode(replacement, &self.metadata)?;
        // A running program is replaced in any case.
        let Ok(writer) = &self.writer else { return Ok(true) };
        Ok(is_owner_kept && in_place::copy_attributes(writer, replacement))
    }

    fn overwrite(&self, target: &Path, bytes: &[u8], cancelled: &CancelFlag) -> Result<(), EnvError> {
        let failed = |source| EnvError::from_io("write", target, source);
        let writer = self.writer.as_ref().map_err(|errno| failed((*errno).into()))?;
        in_place::overwrite(target, writer, bytes, cancelled).map_err(failed)
    }
}

/// Returns true if a directory accepts no new file, whatever its file.
fn is_directory_closed(error: &EnvError) -> bool {
    let is_closed = |source: &io::Error| {
        matches!(source.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
    };
    matches!(error, EnvError::PermissionDenied { .. })
        || matches!(error, EnvError::Io { source, .. } if is_closed(source))
}

/// Returns true if a file cannot be replaced at its name: it is a mount point, or its directory is closed or sticky.
fn is_irreplaceable(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ResourceBusy | io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem
    )
}

/// Creates the temporary file that will become or replace a file. A replacement is readable by its
/// owner alone while it is written: the file may be a secret.
pub(super) fn temporary_file(directory: &Path, is_replacement: bool) -> io::Result<Temporary> {
    Temporary::create(directory, if is_replacement { REPLACEMENT_MODE } else { NEW_FILE_MODE })
}

/// Creates the directories above `target`, and a temporary file beside it.
fn create_temporary(target: &Path, is_replacement: bool) -> Result<(ParentDirectory, Temporary), EnvError> {
    let attempt = || {
        let directory = create_parent(target)?;
        let file = temporary_file(&directory.path, is_replacement);
        Ok::<_, EnvError>((directory, file))
    };
    let mut attempted = attempt()?;
    // A concurrent write that created the directory and then failed has removed it again.
    if let (_, Err(error)) = &attempted
        && error.kind() == io::ErrorKind::NotFound
    {
        attempted = attempt()?;
    }
    let (directory, file) = attempted;
    Ok((directory, file.map_err(|source| EnvError::from_io("write", target, source))?))
}

/// Gives a new file the owner and mode of an old one. Returns false if it cannot have the same owner.
fn keep_owner_and_mode(file: &File, old: &fs::Metadata) -> io::Result<bool> {
    let new = file.metadata()?;
    let mut mode = old.mode() & 0o7777;
    let mut is_owner_kept = true;
    if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
        let (uid, gid) = (Uid::from_raw(old.uid()), Gid::from_raw(old.gid()));
        // Only the superuser can change the owner.
        if let Err(error) = fchown(file, Some(uid), Some(gid)) {
            tracing::debug!(%error, "cannot keep the owner of a file");
            is_owner_kept = false;
            // A setuid program must not start to run as another user.
            mode &= 0o1777;
        }
    }
    // After the owner, since changing the owner clears bits.
    file.set_permissions(Permissions::from_mode(mode))?;
    Ok(is_owner_kept)
}
