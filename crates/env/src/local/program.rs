//! A program to execute in a separate session, which has no controlling terminal, and the two ways of starting it.
#![expect(clippy::disallowed_methods, reason = "this module opens the null device")]

use std::{
    collections::BTreeMap,
    ffi::{CString, OsStr, OsString},
    fs::File,
    io,
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd},
        unix::ffi::{OsStrExt, OsStringExt},
    },
    path::{Path, PathBuf},
};

use nix::{
    errno::Errno,
    libc,
    spawn::{PosixSpawnAttr, PosixSpawnFileActions, PosixSpawnFlags, posix_spawn},
    sys::signal::{SigSet, Signal},
    unistd::{AccessFlags, Pid, access, chdir},
};

use super::launch::Invocation;

/// Directories that are searched if the variables name none, as in `execvp`.
const DEFAULT_SEARCH_PATH: &str = "/bin:/usr/bin";

/// Executes files that have no interpreter line, as in `execvp`.
const SHELL: &str = "/bin/sh";

/// Changes the working directory and executes a program.
const CHANGE_DIRECTORY: &str = r#"cd -- "$1" && shift && unset OLDPWD && exec "$@""#;

/// A program with its arguments and all of its variables.
#[derive(Default)]
pub(crate) struct Program {
    pub(crate) name: OsString,
    pub(crate) arguments: Vec<OsString>,
    pub(crate) variables: BTreeMap<OsString, OsString>,
}

/// Standard streams of a program; without `stdin`, it reads the null device.
#[derive(Clone, Copy)]
pub(crate) struct Streams<'a> {
    pub(crate) stdin: Option<BorrowedFd<'a>>,
    pub(crate) stdout: BorrowedFd<'a>,
    pub(crate) stderr: BorrowedFd<'a>,
}

impl Program {
    /// Returns the program of an invocation.
    pub(crate) fn from_invocation(invocation: &Invocation) -> Self {
        Self {
            name: invocation.program.clone(),
            arguments: invocation.arguments.clone(),
            variables: invocation.variables.clone(),
        }
    }

    /// Starts the program in its own session with this signal mask.
    ///
    /// The working directory of the calling thread becomes `directory`; it must have its own.
    pub(crate) fn spawn(&self, directory: &Path, streams: Streams<'_>, mask: &SigSet) -> io::Result<Pid> {
        let null_device = streams.open_null_device()?;
        let actions = streams.actions(null_device.as_ref())?;
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

    /// Starts the program in its own session from a thread that shares its working directory with its process. A shell
    /// changes the directory and executes the program.
    pub(crate) fn spawn_shared(&self, directory: &Path, streams: Streams<'_>) -> io::Result<Pid> {
        if !directory.metadata()?.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        let file = self.find(directory)?;
        let null_device = streams.open_null_device()?;
        let actions = streams.actions(null_device.as_ref())?;
        let attributes = attributes(&SigSet::thread_get_mask()?)?;
        let start = [SHELL, "-c", CHANGE_DIRECTORY, "pintle-start"].map(OsStr::new);
        let words = start.into_iter().chain([directory.as_os_str(), file.as_os_str()]);
        let words = words.chain(self.arguments.iter().map(OsString::as_os_str));
        let words = words.map(c_string).collect::<io::Result<Vec<CString>>>()?;
        Ok(posix_spawn(SHELL, &actions, &attributes, &words, &self.variable_list()?)?)
    }

    /// Returns the file that the program is executed from in a directory.
    fn find(&self, directory: &Path) -> io::Result<PathBuf> {
        let mut result = Errno::ENOENT;
        for file in self.files() {
            let path = directory.join(&file);
            match access(&path, AccessFlags::X_OK) {
                Ok(()) if path.is_file() => return Ok(file),
                Ok(()) | Err(Errno::EACCES) => result = Errno::EACCES,
                Err(Errno::ENOENT | Errno::ENOTDIR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(result.into())
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
    pub(crate) fn new<Read: AsFd, Write: AsFd>(
        stdin: Option<&'a Read>,
        stdout: &'a Write,
        stderr: &'a Write,
    ) -> Self {
        Self { stdin: stdin.map(AsFd::as_fd), stdout: stdout.as_fd(), stderr: stderr.as_fd() }
    }

    /// Opens the null device for a program without an input.
    fn open_null_device(&self) -> io::Result<Option<File>> {
        self.stdin.is_none().then(|| File::open("/dev/null")).transpose()
    }

    fn actions(&self, null_device: Option<&File>) -> io::Result<PosixSpawnFileActions> {
        let mut actions = PosixSpawnFileActions::init()?;
        if let Some(stdin) = self.stdin.or(null_device.map(AsFd::as_fd)) {
            actions.add_dup2(stdin.as_raw_fd(), 0)?;
        }
        actions.add_dup2(self.stdout.as_raw_fd(), 1)?;
        actions.add_dup2(self.stderr.as_raw_fd(), 2)?;
        Ok(actions)
    }
}

/// Returns the attributes of a process in its own session, whose process group has the same id. The library ignores broken pipes; programs
/// expect to be terminated by them.
fn attributes(mask: &SigSet) -> io::Result<PosixSpawnAttr> {
    let mut default = SigSet::empty();
    default.add(Signal::SIGPIPE);
    let mut attributes = PosixSpawnAttr::init()?;
    attributes.set_sigdefault(&default)?;
    attributes.set_sigmask(mask)?;
    attributes.set_flags(
        PosixSpawnFlags::from_bits_retain(libc::POSIX_SPAWN_SETSID.into())
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

    /// Returns the output of a started shell that prints its session, its process group and its directory.
    fn output_of(start: impl FnOnce(&Program, Streams<'_>) -> io::Result<Pid>) -> (Pid, String) {
        let line = "read -r stat </proc/$$/stat; set -- ${stat##*)}; echo $3 $4; pwd; cat";
        let mut program = named("sh", Some("/usr/local/bin:/usr/bin:/bin"));
        program.arguments = vec!["-c".into(), line.into()];
        let (mut reader, writer) = io::pipe().unwrap();
        let process = start(&program, Streams::new(None::<&File>, &writer, &writer)).unwrap();
        drop(writer);
        let mut text = String::new();
        io::Read::read_to_string(&mut reader, &mut text).unwrap();
        nix::sys::wait::waitpid(process, None).unwrap();
        (process, text)
    }

    #[test]
    fn a_program_leads_its_own_session() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path().canonicalize().unwrap();
        let expected = |id: Pid| format!("{id} {id}\n{}\n", directory.display());
        let (id, text) = output_of(|program, streams| {
            crate::local::on_own_thread(|| {
                nix::sched::unshare(nix::sched::CloneFlags::CLONE_FS)?;
                program.spawn(&directory, streams, &SigSet::thread_get_mask()?)
            })
        });
        assert_eq!(text, expected(id));
        let (id, text) = output_of(|program, streams| program.spawn_shared(&directory, streams));
        assert_eq!(text, expected(id), "in a container that refuses a thread its own directory");
    }

    #[test]
    fn what_a_shell_cannot_start_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("file"), "").unwrap();
        let (_reader, writer) = io::pipe().unwrap();
        for (name, search_path, below, expected) in [
            ("no-such", "/usr/bin:/bin", "", io::ErrorKind::NotFound),
            ("./file", "/usr/bin", "", io::ErrorKind::PermissionDenied),
            ("sh", "/usr/bin:/bin", "none", io::ErrorKind::NotFound),
            ("sh", "/usr/bin:/bin", "file", io::ErrorKind::NotADirectory),
        ] {
            let streams = Streams::new(None::<&File>, &writer, &writer);
            let started = named(name, Some(search_path)).spawn_shared(&directory.path().join(below), streams);
            assert_eq!(started.unwrap_err().kind(), expected, "{name} in {below}");
        }
    }

    #[test]
    fn zero_bytes_are_refused() {
        let program = Program { arguments: vec!["a\0b".into()], ..named("echo", None) };
        assert_eq!(program.argument_list().unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}
