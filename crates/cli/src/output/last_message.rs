//! The file that receives the final response: `pintle exec --output-last-message FILE`.
#![expect(clippy::disallowed_methods, reason = "the command writes a file that its command line names")]

use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;
use std::time::Duration;

use pintle_host::failure::Failure;
use rustix::fs::{Access, Mode, OFlags, access};
use rustix::io::Errno;
use tokio::time::sleep;

/// Pause between two attempts to open a named pipe or to write to it.
const RETRY_INTERVAL: Duration = Duration::from_millis(20);

/// Checks that the file can be written, without creating or opening it. Never blocks.
pub(crate) fn check(path: &Path) -> Result<(), Failure> {
    let is_directory = || io::Error::from(io::ErrorKind::IsADirectory);
    let checked = match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(is_directory()),
        Ok(_) => access(path, Access::WRITE_OK).map_err(io::Error::from),
        Err(_) if path.as_os_str().as_bytes().ends_with(b"/") => Err(is_directory()),
        Err(_) => {
            // Behind a file, the entry for the directory itself does not exist.
            let parent = path.parent().unwrap_or_else(|| Path::new("")).join(".");
            access(&parent, Access::WRITE_OK | Access::EXEC_OK).map_err(io::Error::from)
        }
    };
    checked.map_err(|error| Failure::usage(format!("cannot write {}", path.display())).caused_by(&error))
}

/// Writes the response to the file, which may be a device or a named pipe. An empty response makes an empty file.
///
/// Waits until another process reads the pipe. If dropped, only a part may be written to a pipe.
pub(crate) async fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let is_pipe = std::fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo());
    let written = if is_pipe { write_pipe(path, text.as_bytes()).await } else { std::fs::write(path, text) };
    written.map_err(|error| Failure::failed(format!("cannot write {}", path.display())).caused_by(&error))
}

async fn write_pipe(path: &Path, mut rest: &[u8]) -> io::Result<()> {
    let mut pipe = open_pipe(path).await?;
    while !rest.is_empty() {
        match pipe.write(rest) {
            Ok(count) => rest = rest.get(count..).unwrap_or_default(),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                sleep(RETRY_INTERVAL).await;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Opens a named pipe as soon as another process has opened it for reading.
async fn open_pipe(path: &Path) -> io::Result<File> {
    loop {
        match rustix::fs::open(path, OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty()) {
            Ok(pipe) => return Ok(File::from(pipe)),
            Err(Errno::NXIO | Errno::INTR) => sleep(RETRY_INTERVAL).await,
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_checked_and_not_created() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        std::fs::write(at("file"), "before").unwrap();
        for (name, problem) in [
            ("file", None),
            ("new", None),
            ("", Some("is a directory")),
            (".", Some("is a directory")),
            ("new/", Some("is a directory")),
            ("missing/new", Some("No such file or directory")),
            ("file/new", Some("Not a directory")),
        ] {
            let message = check(&at(name)).err().map(|failure| failure.message());
            let is_expected = match (&message, problem) {
                (Some(message), Some(problem)) => message.contains(problem),
                (None, None) => true,
                _ => false,
            };
            assert!(is_expected, "{name}: {message:?}");
        }
        assert!(!at("new").exists());
        assert_eq!(std::fs::read_to_string(at("file")).unwrap(), "before");
    }

    #[tokio::test]
    async fn an_empty_response_makes_an_empty_file() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("last.txt");
        for text in ["longer", "", "short"] {
            write(&file, text).await.unwrap();
            assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
        }
    }
}
