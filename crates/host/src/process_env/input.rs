//! Texts from files named on the command line, from files of the user, and from standard input.

use std::fs::File;
use std::io::{self, IsTerminal as _, Read, StdinLock};
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::failure::Failure;

/// Maximum size of a text read from a file or standard input: 8 MiB.
const MAX_TEXT: u64 = 8 << 20;

/// How long to wait for the first byte of input piped in addition to a prompt.
pub const PIPE_TIMEOUT: Duration = Duration::from_secs(3);

/// Reads a text file named on the command line. `what` describes it in errors.
pub fn read_text(what: &str, path: &Path) -> Result<String, Failure> {
    read_text_within(MAX_TEXT, what, path)
}

/// Reads a text file of the user's configuration or state; `None` if it does not exist. A dangling link is an error.
pub fn read_text_if_exists(what: &str, path: &Path) -> Result<Option<String>, Failure> {
    refuse_pipe(what, path)?;
    match File::open(path) {
        Err(error) if is_absent(&error, path) => Ok(None),
        Ok(_) | Err(_) => read_text(what, path).map(Some),
    }
}

/// Refuses a named pipe, which would block until another process writes to it.
fn refuse_pipe(what: &str, path: &Path) -> Result<(), Failure> {
    use std::os::unix::fs::FileTypeExt as _;
    if std::fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo()) {
        let path = path.display();
        return Err(Failure::usage(format!("the {what} {path} is a named pipe; expected a regular file")));
    }
    Ok(())
}

/// Returns whether opening failed because the file does not exist, and not because of a dangling link.
fn is_absent(error: &io::Error, path: &Path) -> bool {
    let is_missing = matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory);
    let nearest = path.ancestors().find(|above| std::fs::symlink_metadata(above).is_ok());
    is_missing && nearest.is_none_or(|found| !found.is_symlink() || found.exists())
}

/// Reads a text file that only its owner may read; `None` if it does not exist.
///
/// A file that other users can read or change is a usage failure.
pub fn read_private_if_exists(what: &str, path: &Path) -> Result<Option<String>, Failure> {
    use std::os::unix::fs::PermissionsExt as _;
    refuse_pipe(what, path)?;
    let what = format!("the {what} {}", path.display());
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if is_absent(&error, path) => return Ok(None),
        Err(error) => return Err(unreadable(&what, &error)),
    };
    let metadata = file.metadata().map_err(|error| unreadable(&what, &error))?;
    let mode = metadata.permissions().mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Err(Failure::usage(format!("{what} is open to others (mode {mode:04o}), so it is not used"))
            .with_hint(&format!(
                "`chmod 600 {}`, and replace keys that others may have read",
                path.display()
            )));
    }
    bounded_text(MAX_TEXT, &what, file).map(Some)
}

/// Reads a text file of at most `limit` bytes.
pub fn read_text_within(limit: u64, what: &str, path: &Path) -> Result<String, Failure> {
    let what = format!("the {what} {}", path.display());
    let file = File::open(path).map_err(|error| unreadable(&what, &error))?;
    bounded_text(limit, &what, file)
}

/// Reads standard input to its end.
pub fn read_stdin() -> Result<String, Failure> {
    read_stdin_within(MAX_TEXT)
}

/// Reads standard input of at most `limit` bytes to its end.
pub fn read_stdin_within(limit: u64) -> Result<String, Failure> {
    bounded_text(limit, "standard input", io::stdin().lock())
}

/// Standard input of a command that was also given a prompt.
#[derive(Debug)]
pub enum PipedStdin {
    /// Standard input is a terminal.
    Terminal,
    /// Nothing arrived within [`PIPE_TIMEOUT`]. Many programs start child processes with a pipe that they never write
    /// to.
    Silent,
    /// There is input, or the end of input.
    Ready(StdinLock<'static>),
}

/// Waits up to [`PIPE_TIMEOUT`] for input piped in addition to a prompt.
pub fn piped_stdin() -> PipedStdin {
    if stdin_is_terminal() {
        return PipedStdin::Terminal;
    }
    let timeout = Timespec { tv_sec: PIPE_TIMEOUT.as_secs().cast_signed(), tv_nsec: 0 };
    let stdin = io::stdin();
    let mut ready = [PollFd::new(&stdin, PollFlags::IN)];
    if let Ok(0) = poll(&mut ready, Some(&timeout)) {
        return PipedStdin::Silent;
    }
    PipedStdin::Ready(stdin.lock())
}

/// Returns whether standard input is a terminal.
pub fn stdin_is_terminal() -> bool {
    io::stdin().is_terminal()
}

fn bounded_text(limit: u64, what: &str, source: impl Read) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    source.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(|error| unreadable(what, &error))?;
    if bytes.len() as u64 > limit {
        return Err(Failure::usage(format!("{what} is larger than {} MiB", limit >> 20)));
    }
    utf8_text(what, bytes)
}

/// Returns bytes as text. `what` names their source in errors.
pub(crate) fn utf8_text(what: &str, bytes: Vec<u8>) -> Result<String, Failure> {
    String::from_utf8(bytes).map_err(|error| {
        let position = error.utf8_error().valid_up_to() + 1;
        Failure::usage(format!("{what} is not valid UTF-8 at byte {position}"))
    })
}

fn unreadable(what: &str, error: &io::Error) -> Failure {
    Failure::usage(format!("cannot read {what}")).caused_by(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_bounded_and_utf8() {
        assert_eq!(bounded_text(MAX_TEXT, "it", b"hello".as_slice()).unwrap(), "hello");
        let failure = bounded_text(MAX_TEXT, "it", b"a\xFF".as_slice()).unwrap_err();
        assert_eq!(failure.message(), "it is not valid UTF-8 at byte 2");
        let failure = bounded_text(MAX_TEXT, "it", io::repeat(b'a')).unwrap_err();
        assert_eq!(failure.message(), "it is larger than 8 MiB");
    }

    #[test]
    fn a_link_that_leads_nowhere_is_no_missing_file() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        std::os::unix::fs::symlink(at("nowhere"), at("link")).unwrap();
        std::fs::write(at("file"), "text").unwrap();
        std::os::unix::fs::symlink("file", at("good")).unwrap();
        std::os::unix::fs::symlink(directory.path(), at("here")).unwrap();
        for (path, expected) in [
            ("missing", Ok(None)),
            ("missing/file", Ok(None)),
            ("here/missing", Ok(None)),
            ("here/link", Err(())),
            ("file/below", Ok(None)),
            ("good", Ok(Some("text"))),
            ("link", Err(())),
            ("link/file", Err(())),
        ] {
            let read = read_text_if_exists("it", &at(path)).map_err(drop);
            assert_eq!(read.as_ref().map(Option::as_deref), expected.as_ref().map(|text| *text), "{path}");
            let private = read_private_if_exists("it", &at(path)).is_err();
            assert!(private == expected.is_err() || path == "good", "{path}");
        }
    }
}
