//! Starts a program in a separate session, from a thread with a separate working directory. Linux only.

#[cfg(any(test, feature = "sandbox"))]
use std::os::fd::{AsRawFd, RawFd};
use std::{
    io::{self, PipeReader, PipeWriter},
    os::fd::OwnedFd,
    thread,
};

use nix::{
    sched::{CloneFlags, unshare},
    sys::signal::SigSet,
    unistd::Pid,
};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};

use super::{
    adopted::AdoptedChild,
    launch::{Invocation, LaunchedProcess},
    program::{Program, Streams},
};
use crate::command::Stdin;

/// Pipes of a program: the ends that it inherits, and the ends of this process.
pub(crate) struct StandardPipes {
    stdin: Option<(PipeReader, ChildStdin)>,
    stdout: (ChildStdout, PipeWriter),
    stderr: (ChildStderr, PipeWriter),
}

impl StandardPipes {
    /// Creates the pipes of a program with this input.
    pub(crate) fn new(stdin: Stdin) -> io::Result<Self> {
        // The runtime gets its ends before the start: a program whose streams it refuses would run unsupervised.
        let stdin = match stdin {
            Stdin::Null => None,
            Stdin::Piped => {
                let (reader, writer) = io::pipe()?;
                Some((reader, ChildStdin::from_std(OwnedFd::from(writer).into())?))
            }
        };
        let ((stdout, stdout_of_program), (stderr, stderr_of_program)) = (io::pipe()?, io::pipe()?);
        let stdout = ChildStdout::from_std(OwnedFd::from(stdout).into())?;
        let stderr = ChildStderr::from_std(OwnedFd::from(stderr).into())?;
        Ok(Self { stdin, stdout: (stdout, stdout_of_program), stderr: (stderr, stderr_of_program) })
    }

    /// Returns the ends of the program.
    pub(crate) fn streams(&self) -> Streams<'_> {
        Streams::new(self.stdin.as_ref().map(|(end, _)| end), &self.stdout.1, &self.stderr.1)
    }

    /// Returns the descriptors of these ends.
    #[cfg(any(test, feature = "sandbox"))]
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = RawFd> {
        let stdin = self.stdin.as_ref().map(|(end, _)| end.as_raw_fd());
        [self.stdout.1.as_raw_fd(), self.stderr.1.as_raw_fd()].into_iter().chain(stdin)
    }

    /// Returns the started program with the other ends.
    ///
    /// # Errors
    ///
    /// No free descriptor. The program was killed.
    pub(crate) fn into_launched(self, process: Pid) -> io::Result<LaunchedProcess> {
        let Self { stdin, stdout: (stdout, stdout_of_program), stderr: (stderr, stderr_of_program) } = self;
        let stdin = stdin.map(|(_, stdin)| stdin);
        // Closed first: the program has copies, and awaiting it needs a descriptor.
        drop((stdout_of_program, stderr_of_program));
        Ok(LaunchedProcess {
            child: AdoptedChild::new(process.as_raw())?,
            stdin,
            stdout: Some(stdout),
            stderr: Some(stderr),
            #[cfg(any(test, feature = "sandbox"))]
            start: None,
        })
    }
}

/// Starts the program of an invocation.
pub(super) fn spawn(invocation: &Invocation) -> io::Result<LaunchedProcess> {
    let pipes = StandardPipes::new(invocation.stdin)?;
    let process = on_own_thread(|| {
        let program = Program::from_invocation(invocation);
        match unshare(CloneFlags::CLONE_FS) {
            Ok(()) => program.spawn(&invocation.directory, pipes.streams(), &SigSet::thread_get_mask()?),
            // Some containers refuse a thread its own directory.
            Err(_) => program.spawn_shared(&invocation.directory, pipes.streams()),
        }
    })?;
    pipes.into_launched(process)
}

/// Runs `work` on its own thread, so that per-thread state it changes ends with the thread.
pub(crate) fn on_own_thread<T: Send>(work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("pintle-start".to_owned()).spawn_scoped(scope, work)?;
        thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread that starts a command panicked")))
    })
}
