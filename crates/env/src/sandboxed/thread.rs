//! Starts a command from a thread of its own.
//!
//! Restrictions of Landlock and seccomp apply to a thread and what it starts, and cannot be removed:
//! the thread exits after one command, and the embedding process remains unrestricted. The thread
//! also has its own table of file descriptors. It closes everything that the command is not meant
//! to have, and opens what only the launcher of the command is to inherit, without a moment in
//! which another command could inherit it too.
//!
//! Before that it blocks all signals. A signal handler writes to a descriptor by its number, as that
//! of the runtime does, and here the number may belong to another file. The command gets the mask
//! that the thread had.
//!
//! Nothing may be logged on this thread: the descriptor of the log is closed, and its number may
//! belong to another file.
#![expect(clippy::disallowed_methods, reason = "this module lists and closes descriptors")]

use std::{
    fs::{self, File},
    io::{self, PipeReader, PipeWriter, Seek, Write},
    os::fd::{AsRawFd, OwnedFd, RawFd},
    thread,
};

use nix::{
    errno::Errno,
    sched::{CloneFlags, unshare},
    sys::{
        memfd::{MFdFlags, memfd_create},
        signal::{SigSet, SigmaskHow},
    },
    unistd::{self, Pid},
};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};

use super::program::{Program, Streams};
use crate::{
    command::Stdin,
    local::{AdoptedChild, Child, Invocation, Launched, StartReport},
};

/// Descriptors of this process as this thread has them.
const DESCRIPTORS: &str = "/proc/thread-self/fd";

/// Descriptors, and the working directory, from which the command inherits its own.
const OWN: CloneFlags = CloneFlags::CLONE_FILES.union(CloneFlags::CLONE_FS);

/// Last of the three standard descriptors.
const STANDARD: RawFd = 2;

/// Pipes of a command: its own ends, which it inherits, and the others.
struct Pipes {
    stdin: Option<(PipeReader, PipeWriter)>,
    stdout: (PipeReader, PipeWriter),
    stderr: (PipeReader, PipeWriter),
    /// For the report of a launcher.
    start: Option<(PipeReader, PipeWriter)>,
}

/// What is done with the descriptors of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Inheritance {
    /// The command inherits none.
    Nothing,
    /// It inherits what has no close-on-exec flag if the thread cannot have descriptors of its own.
    IfUnavoidable,
    /// As nothing, and a launcher writes a [`StartReport`].
    Report,
}

/// The private descriptors of the thread, while it prepares a command.
pub(super) struct Descriptors<'a> {
    start: Option<&'a PipeWriter>,
}

impl Descriptors<'_> {
    /// Returns a descriptor for the report of the launcher, which it inherits.
    pub(super) fn report(&self) -> io::Result<OwnedFd> {
        let start = self.start.ok_or_else(|| io::Error::other("the launcher reports nothing"))?;
        Ok(unistd::dup(start)?)
    }

    /// Returns a descriptor of a file in memory with this content, which the launcher inherits.
    pub(super) fn file(&self, content: &[u8]) -> io::Result<OwnedFd> {
        let mut file = File::from(memfd_create("pintle-sandbox", MFdFlags::empty())?);
        file.write_all(content)?;
        file.rewind()?;
        Ok(file.into())
    }
}

/// A program, and the descriptors that it inherits besides its pipes.
pub(super) struct Prepared {
    pub(super) program: Program,
    pub(super) inherited: Vec<OwnedFd>,
}

/// Runs `work` on its own thread, so that all restrictions end with it.
pub(super) fn on_own_thread<T: Send>(work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("pintle-sandbox".to_owned()).spawn_scoped(scope, work)?;
        thread.join().unwrap_or_else(|_| Err(io::Error::other("the sandbox thread panicked")))
    })
}

/// Returns true if a thread can have its own descriptors.
pub(super) fn has_own_descriptors() -> io::Result<bool> {
    on_own_thread(|| Ok(unshare(OWN).is_ok()))
}

/// Starts a command that `prepare` makes, with no descriptors but those that it returns.
pub(super) fn spawn(
    invocation: &Invocation,
    inheritance: Inheritance,
    prepare: impl FnOnce(&Descriptors<'_>) -> io::Result<Prepared> + Send,
) -> io::Result<Launched> {
    let pipes = Pipes {
        stdin: match invocation.stdin {
            Stdin::Null => None,
            Stdin::Piped => Some(io::pipe()?),
        },
        stdout: io::pipe()?,
        stderr: io::pipe()?,
        start: (inheritance == Inheritance::Report).then(io::pipe).transpose()?,
    };
    let process = on_own_thread(|| start(invocation, &pipes, inheritance, prepare))?;
    let child = Child::Adopted(AdoptedChild::new(process.as_raw())?);
    let program = invocation.program.to_string_lossy().into_owned();
    let [stdout, stderr] = [pipes.stdout.0, pipes.stderr.0].map(OwnedFd::from);
    Ok(Launched {
        child,
        stdin: pipes.stdin.map(|(_, end)| ChildStdin::from_std(OwnedFd::from(end).into())).transpose()?,
        stdout: Some(ChildStdout::from_std(stdout.into())?),
        stderr: Some(ChildStderr::from_std(stderr.into())?),
        start: pipes.start.map(|(end, _)| StartReport::new(end.into(), program)).transpose()?,
    })
}

fn start(
    invocation: &Invocation,
    pipes: &Pipes,
    inheritance: Inheritance,
    prepare: impl FnOnce(&Descriptors<'_>) -> io::Result<Prepared>,
) -> io::Result<Pid> {
    let start = pipes.start.as_ref().map(|(_, end)| end);
    let stdin = pipes.stdin.as_ref().map(|(end, _)| end);
    let streams = Streams::new(stdin, &pipes.stdout.1, &pipes.stderr.1);
    let ends = [Some(pipes.stdout.1.as_raw_fd()), Some(pipes.stderr.1.as_raw_fd())];
    let ends = ends.into_iter().chain([stdin.map(AsRawFd::as_raw_fd), start.map(AsRawFd::as_raw_fd)]);
    let mask = SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK)?;
    let shared = match unshare(OWN) {
        Ok(()) => keep_only(&ends.flatten().collect::<Vec<_>>()).map(|()| false)?,
        Err(_) if inheritance == Inheritance::IfUnavoidable => {
            mask.thread_set_mask()?;
            true
        }
        Err(error) => return Err(error.into()),
    };
    let Prepared { program, inherited } = prepare(&Descriptors { start })?;
    let process = match shared {
        true => program.spawn_shared(&invocation.directory, streams),
        false => program.spawn(&invocation.directory, streams, &mask),
    };
    drop(inherited);
    process
}

/// Closes all descriptors of this thread, which has its own, but the standard ones and `kept`.
///
/// What this process has inherited itself would be inherited by
/// every command; what it opened is closed so that low numbers are free, since the shell of the
/// launcher knows only those of one digit.
fn keep_only(kept: &[RawFd]) -> io::Result<()> {
    let mut open = Vec::new();
    for entry in fs::read_dir(DESCRIPTORS)? {
        open.extend(entry?.file_name().to_str().and_then(|name| name.parse::<RawFd>().ok()));
    }
    for descriptor in open.into_iter().filter(|one| *one > STANDARD && !kept.contains(one)) {
        // The directory was listed too, and is closed by now.
        match unistd::close(descriptor) {
            Ok(()) | Err(Errno::EBADF) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
