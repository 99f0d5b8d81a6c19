//! What the process was given: variables, current directory, files and standard input.
#![expect(
    clippy::disallowed_methods,
    reason = "the command is a host: it reads its own environment and files"
)]

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, IsTerminal as _, Read, StdinLock};
use std::path::{Path, PathBuf};
use std::time::Duration;

use pintle_env::{LocalEnvironment, LocalEnvironmentBuilder};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::console;
use crate::failure::Failure;

/// The largest text that is taken from a file or from standard input: 8 MiB.
const MAX_TEXT: u64 = 8 << 20;

/// How long something may take to come that is piped in beside a prompt.
pub(crate) const PIPE_PATIENCE: Duration = Duration::from_secs(3);

/// The process environment, read once.
#[derive(Clone)]
pub(crate) struct Host {
    variables: BTreeMap<OsString, OsString>,
}

impl Host {
    /// That of this process.
    pub(crate) fn of_process() -> Self {
        Self { variables: std::env::vars_os().collect() }
    }

    /// A variable's value; an empty one, and one that is not UTF-8, counts as unset.
    pub(crate) fn variable(&self, name: &str) -> Option<String> {
        let value = self.variables.get(OsStr::new(name))?.to_str()?;
        (!value.is_empty()).then(|| value.to_owned())
    }

    /// All variables, for an environment where commands run.
    pub(crate) fn variables(&self) -> impl Iterator<Item = (OsString, OsString)> + use<> {
        self.variables.clone().into_iter()
    }

    /// Where to work: the directory named, else the current one.
    ///
    /// # Errors
    ///
    /// A usage failure if it does not exist or is none.
    pub(crate) fn directory(&self, named: Option<&Path>) -> Result<PathBuf, Failure> {
        let Some(named) = named else {
            return std::env::current_dir()
                .map_err(|error| Failure::usage("the current directory cannot be used").because(&error));
        };
        let refused = |why: &str| {
            Failure::usage(format!("--dir {}: {why}; expected an existing directory", named.display()))
        };
        match std::fs::metadata(named) {
            Ok(metadata) if metadata.is_dir() => absolute(named),
            Ok(_) => Err(refused("is not a directory")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(refused("does not exist")),
            Err(error) => Err(refused("cannot be used").because(&error)),
        }
    }

    /// Starts to build an environment of this machine, with all variables.
    pub(crate) fn environment_builder(&self, directory: &Path) -> LocalEnvironmentBuilder {
        LocalEnvironment::builder(directory).host_env(self.variables())
    }

    /// This machine as the place where tools run.
    ///
    /// # Errors
    ///
    /// A failure if the directory is none that commands can run in.
    pub(crate) fn environment(&self, directory: &Path) -> Result<LocalEnvironment, Failure> {
        LocalEnvironment::with_host_env(directory, self.variables())
            .map_err(|error| Failure::failed("the place where tools run cannot be used").because(&error))
    }
}

impl std::fmt::Debug for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Host").field("variables", &self.variables.keys().collect::<Vec<_>>()).finish()
    }
}

/// The path from the root, links untouched.
///
/// # Errors
///
/// A usage failure for an empty path.
pub(crate) fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path)
        .map_err(|error| Failure::usage(format!("{} cannot be used", path.display())).because(&error))
}

/// A text file that the command line names; `what` says what it is.
///
/// # Errors
///
/// A usage failure if it cannot be read, is too large, or is not UTF-8.
pub(crate) fn read_text(what: &str, path: &Path) -> Result<String, Failure> {
    read_text_within(MAX_TEXT, what, path)
}

/// As [`read_text`], with another limit, in bytes.
///
/// # Errors
///
/// As [`read_text`].
pub(crate) fn read_text_within(limit: u64, what: &str, path: &Path) -> Result<String, Failure> {
    let what = format!("the {what} {}", path.display());
    let file = File::open(path).map_err(|error| unreadable(&what, &error))?;
    bounded_text(limit, &what, file)
}

/// All of standard input, waiting for its end.
///
/// # Errors
///
/// As [`read_text`].
pub(crate) fn read_stdin() -> Result<String, Failure> {
    read_stdin_within(MAX_TEXT)
}

/// As [`read_stdin`], with another limit, in bytes.
///
/// # Errors
///
/// As [`read_text`].
pub(crate) fn read_stdin_within(limit: u64) -> Result<String, Failure> {
    bounded_text(limit, "standard input", io::stdin().lock())
}

/// Standard input if something is piped into it. A pipe that stays open and silent is left alone, with a word about it:
/// many programs start others with one.
pub(crate) fn piped_stdin() -> Option<StdinLock<'static>> {
    if stdin_is_terminal() {
        return None;
    }
    let patience = Timespec { tv_sec: PIPE_PATIENCE.as_secs().cast_signed(), tv_nsec: 0 };
    let stdin = io::stdin();
    let mut ready = [PollFd::new(&stdin, PollFlags::IN)];
    if let Ok(0) = poll(&mut ready, Some(&patience)) {
        let seconds = PIPE_PATIENCE.as_secs();
        console::notice(&format!("standard input stayed silent for {seconds} s and is not read"));
        return None;
    }
    Some(stdin.lock())
}

/// Whether a person types there.
pub(crate) fn stdin_is_terminal() -> bool {
    io::stdin().is_terminal()
}

fn bounded_text(limit: u64, what: &str, source: impl Read) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    source.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(|error| unreadable(what, &error))?;
    if bytes.len() as u64 > limit {
        return Err(Failure::usage(format!("{what} is larger than {} MiB", limit >> 20)));
    }
    String::from_utf8(bytes).map_err(|error| {
        let place = error.utf8_error().valid_up_to() + 1;
        Failure::usage(format!("{what} is not UTF-8 text: its byte {place} is wrong"))
    })
}

fn unreadable(what: &str, error: &io::Error) -> Failure {
    Failure::usage(format!("cannot read {what}")).because(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_bounded_and_utf8() {
        assert_eq!(bounded_text(MAX_TEXT, "it", b"hello".as_slice()).unwrap(), "hello");
        let failure = bounded_text(MAX_TEXT, "it", b"a\xFF".as_slice()).unwrap_err();
        assert_eq!(failure.sentence(), "it is not UTF-8 text: its byte 2 is wrong");
        let failure = bounded_text(MAX_TEXT, "it", io::repeat(b'a')).unwrap_err();
        assert_eq!(failure.sentence(), "it is larger than 8 MiB");
    }

    #[test]
    fn a_directory_must_exist() {
        let host = Host { variables: BTreeMap::new() };
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(host.directory(Some(folder.path())).unwrap(), folder.path());
        let missing = folder.path().join("missing");
        let failure = host.directory(Some(&missing)).unwrap_err();
        assert!(
            failure.sentence().ends_with("does not exist; expected an existing directory"),
            "{failure:?}"
        );
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        let failure = host.directory(Some(&file)).unwrap_err();
        assert!(failure.sentence().contains("is not a directory"), "{failure:?}");
    }
}
