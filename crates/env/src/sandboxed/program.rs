//! A program to execute, and the two ways of starting it.
#![expect(clippy::disallowed_methods, reason = "this module starts commands, and opens the null device")]

use std::{
    collections::BTreeMap,
    ffi::{CString, OsStr, OsString},
    fs::File,
    io,
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd},
        unix::{
            ffi::{OsStrExt, OsStringExt},
            process::CommandExt,
        },
    },
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use nix::{
    errno::Errno,
    spawn::{PosixSpawnAttr, PosixSpawnFileActions, PosixSpawnFlags, posix_spawn},
    sys::signal::{SigSet, Signal},
    unistd::{Pid, chdir},
};

/// Directories that are searched if the variables name none, as in `execvp`.
const DEFAULT_SEARCH_PATH: &str = "/bin:/usr/bin";

/// Executes files that have no interpreter line, as in `execvp`.
const SHELL: &str = "/bin/sh";

/// A program with its arguments and all of its variables.
#[derive(Default)]
pub(super) struct Program {
    pub(super) name: OsString,
    pub(super) arguments: Vec<OsString>,
    pub(super) variables: BTreeMap<OsString, OsString>,
}

/// Standard streams of a program; without `stdin`, it reads the null device.
#[derive(Clone, Copy)]
pub(super) struct Streams<'a> {
    pub(super) stdin: Option<BorrowedFd<'a>>,
    pub(super) stdout: BorrowedFd<'a>,
    pub(super) stderr: BorrowedFd<'a>,
}

impl Program {
    /// Starts the program in its own process group with this signal mask.
    ///
    /// The working directory of the calling thread becomes `directory`; it must have its own.
    pub(super) fn spawn(&self, directory: &Path, streams: Streams<'_>, mask: &SigSet) -> io::Result<Pid> {
        let mut actions = PosixSpawnFileActions::init()?;
        let nothing = streams.stdin.is_none().then(|| File::open("/dev/null")).transpose()?;
        let stdin = streams.stdin.or(nothing.as_ref().map(AsFd::as_fd));
        if let Some(stdin) = stdin {
            actions.add_dup2(stdin.as_raw_fd(), 0)?;
        }
        actions.add_dup2(streams.stdout.as_raw_fd(), 1)?;
        actions.add_dup2(streams.stderr.as_raw_fd(), 2)?;
        let attributes = attributes(mask)?;
        let arguments = self.argument_list()?;
        let variables = self.variable_list()?;
        chdir(directory)?;
        let mut result = Errno::ENOENT;
        for file in self.files() {
            let spawned = match posix_spawn(&file, &actions, &attributes, &arguments, &variables) {
                Err(Errno::ENOEXEC) => {
                    let mut script = vec![c_string(SHELL.as_ref())?, c_string(file.as_os_str())?];
                    script.extend(arguments.iter().skip(1).cloned());
                    posix_spawn(SHELL, &actions, &attributes, &script, &variables)
                }
                other => other,
            };
            match spawned {
                Ok(process) => return Ok(process),
                Err(Errno::ENOENT | Errno::ENOTDIR) => {}
                // Another directory may have one that can be executed.
                Err(Errno::EACCES) => result = Errno::EACCES,
                Err(error) => return Err(error.into()),
            }
        }
        Err(result.into())
    }

    /// Starts the program in its own process group from a thread that shares everything with its
    /// process.
    pub(super) fn spawn_shared(&self, directory: &Path, streams: Streams<'_>) -> io::Result<Pid> {
        let stream = |stream: BorrowedFd<'_>| Ok::<_, io::Error>(Stdio::from(stream.try_clone_to_owned()?));
        let child = Command::new(&self.name)
            .args(&self.arguments)
            .env_clear()
            .envs(&self.variables)
            .current_dir(directory)
            .stdin(streams.stdin.map_or_else(|| Ok(Stdio::null()), stream)?)
            .stdout(stream(streams.stdout)?)
            .stderr(stream(streams.stderr)?)
            .process_group(0)
            .spawn()?;
        Ok(Pid::from_raw(child.id().cast_signed()))
    }

    /// Returns the files that may be meant, in the order of the search path of the program itself.
    fn files(&self) -> Vec<PathBuf> {
        if self.name.as_bytes().contains(&b'/') {
            return vec![PathBuf::from(&self.name)];
        }
        let search_path = self.variables.get(OsStr::new("PATH"));
        let search_path = search_path.map_or(OsStr::new(DEFAULT_SEARCH_PATH), OsString::as_os_str);
        // An empty entry is the working directory; without a slash the path would be searched for.
        std::env::split_paths(search_path)
            .map(|directory| match directory.as_os_str().is_empty() {
                true => Path::new(".").join(&self.name),
                false => directory.join(&self.name),
            })
            .collect()
    }

    fn argument_list(&self) -> io::Result<Vec<CString>> {
        let arguments = self.arguments.iter().map(OsString::as_os_str);
        std::iter::once(self.name.as_os_str()).chain(arguments).map(c_string).collect()
    }

    fn variable_list(&self) -> io::Result<Vec<CString>> {
        let join = |(name, value): (&OsString, &OsString)| {
            let mut variable = name.clone().into_vec();
            variable.push(b'=');
            variable.extend_from_slice(value.as_bytes());
            c_string(OsStr::from_bytes(&variable))
        };
        self.variables.iter().map(join).collect()
    }
}

impl<'a> Streams<'a> {
    /// Returns the streams for these ends of pipes.
    pub(super) fn new<Read: AsFd, Write: AsFd>(
        stdin: Option<&'a Read>,
        stdout: &'a Write,
        stderr: &'a Write,
    ) -> Self {
        Self { stdin: stdin.map(AsFd::as_fd), stdout: stdout.as_fd(), stderr: stderr.as_fd() }
    }
}

/// Returns the attributes of a process in its own group. The library ignores broken pipes; programs
/// expect to be terminated by them.
fn attributes(mask: &SigSet) -> io::Result<PosixSpawnAttr> {
    let mut default = SigSet::empty();
    default.add(Signal::SIGPIPE);
    let mut attributes = PosixSpawnAttr::init()?;
    attributes.set_pgroup(Pid::from_raw(0))?;
    attributes.set_sigdefault(&default)?;
    attributes.set_sigmask(mask)?;
    attributes.set_flags(
        PosixSpawnFlags::POSIX_SPAWN_SETPGROUP
            | PosixSpawnFlags::POSIX_SPAWN_SETSIGDEF
            | PosixSpawnFlags::POSIX_SPAWN_SETSIGMASK,
    )?;
    Ok(attributes)
}

fn c_string(text: &OsStr) -> io::Result<CString> {
    CString::new(text.as_bytes()).map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str, search_path: Option<&str>) -> Program {
        let variables = search_path.map(|path| ("PATH".into(), path.into()));
        Program { name: name.into(), variables: variables.into_iter().collect(), ..Program::default() }
    }

    #[test]
    fn files_follow_the_search_path_of_the_program() {
        for (name, search_path, files) in [
            ("make", Some("/a:/b"), vec!["/a/make", "/b/make"]),
            ("make", None, vec!["/bin/make", "/usr/bin/make"]),
            ("make", Some("/a::rel"), vec!["/a/make", "./make", "rel/make"]),
            ("./make", Some("/a"), vec!["./make"]),
            ("/opt/make", Some("/a"), vec!["/opt/make"]),
        ] {
            let found = named(name, search_path).files();
            assert_eq!(
                found,
                files.iter().map(PathBuf::from).collect::<Vec<_>>(),
                "{name} in {search_path:?}"
            );
        }
    }

    #[test]
    fn zero_bytes_are_refused() {
        let program = Program { arguments: vec!["a\0b".into()], ..named("echo", None) };
        assert_eq!(program.argument_list().unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}
