//! A file that is written next to its target and then replaces it as a whole.

use std::fs::{self, File, OpenOptions, Permissions};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use nix::fcntl::{AT_FDCWD, AtFlags};
use nix::unistd::linkat;
use tempfile::NamedTempFile;

use crate::file::TEMPORARY_PREFIX;

/// Number of names that are tried before giving up.
const ATTEMPTS: u32 = 100;

/// A file that has no target yet. Dropping it removes it.
#[derive(Debug)]
pub(super) enum Temporary {
    /// Without a name, so that nothing is left behind when the process dies.
    Unnamed { file: File, directory: PathBuf },
    /// Where the file system or the platform has no files without a name.
    Named(NamedTempFile),
}

impl Temporary {
    /// Creates a file with these permission bits, minus the umask.
    pub(super) fn create(directory: &Path, mode: u32) -> io::Result<Self> {
        if let Some(file) = unnamed(directory, mode)? {
            return Ok(Self::Unnamed { file, directory: directory.to_path_buf() });
        }
        let permissions = Permissions::from_mode(mode);
        let file = tempfile::Builder::new()
            .prefix(TEMPORARY_PREFIX)
            .permissions(permissions)
            .tempfile_in(directory)?;
        Ok(Self::Named(file))
    }

    pub(super) fn file(&self) -> &File {
        match self {
            Self::Unnamed { file, .. } => file,
            Self::Named(file) => file.as_file(),
        }
    }

    pub(super) fn file_mut(&mut self) -> &mut File {
        match self {
            Self::Unnamed { file, .. } => file,
            Self::Named(file) => file.as_file_mut(),
        }
    }

    /// Gives the file its place, instead of a file that may be there.
    pub(super) fn persist(self, target: &Path) -> io::Result<()> {
        match self {
            Self::Unnamed { file, directory } => persist_unnamed(&file, &directory, target),
            Self::Named(file) => file.persist(target).map(drop).map_err(|error| error.error),
        }
    }
}

/// Opens a file without a name; `None` where that is not supported.
#[cfg(target_os = "linux")]
fn unnamed(directory: &Path, mode: u32) -> io::Result<Option<File>> {
    use nix::errno::Errno;
    // A name is given through this directory.
    if !Path::new("/proc/self/fd").exists() {
        return Ok(None);
    }
    let flags = nix::fcntl::OFlag::O_TMPFILE.bits();
    match OpenOptions::new().write(true).mode(mode).custom_flags(flags).open(directory) {
        Ok(file) => Ok(Some(file)),
        Err(error) => match error.raw_os_error().map(Errno::from_raw) {
            Some(Errno::EOPNOTSUPP | Errno::EISDIR | Errno::EINVAL) => Ok(None),
            Some(_) | None => Err(error),
        },
    }
}

#[cfg(not(target_os = "linux"))]
fn unnamed(_directory: &Path, _mode: u32) -> io::Result<Option<File>> {
    Ok(None)
}

/// Gives an unnamed file the name of its target. If that exists, the file first gets another name, for as short as
/// possible, since only a rename replaces a file.
fn persist_unnamed(file: &File, directory: &Path, target: &Path) -> io::Result<()> {
    let source = format!("/proc/self/fd/{}", file.as_raw_fd());
    let link = |name: &Path| -> io::Result<()> {
        Ok(linkat(AT_FDCWD, source.as_str(), AT_FDCWD, name, AtFlags::AT_SYMLINK_FOLLOW)?)
    };
    match link(target) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        linked => return linked,
    }
    for _ in 0..ATTEMPTS {
        let name =
            directory.join(format!("{TEMPORARY_PREFIX}{:016x}", RandomState::new().build_hasher().finish()));
        match link(&name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            linked => linked?,
        }
        return fs::rename(&name, target).inspect_err(|_| {
            let _ = fs::remove_file(&name);
        });
    }
    Err(io::ErrorKind::AlreadyExists.into())
}
