//! Starts a command from a separate thread.
//!
//! Restrictions of Landlock and seccomp apply to a thread and the processes it starts, and cannot be removed: the
//! thread exits after one command, and the embedding process remains unrestricted. The thread also has its own table of
//! file descriptors. It closes every descriptor that the command must not have, and opens those that only the launcher
//! of the command inherits. At no moment can another command inherit them.
//!
//! Before that it blocks all signals. A signal handler may write to a descriptor by its number, as the runtime's
//! handler does, and here the number may belong to another file. The command gets the mask that the thread had.
//!
//! Nothing may be logged on this thread: the descriptor of the log is closed, and its number may
//! belong to another file.
#![expect(clippy::disallowed_methods, reason = "this module lists and closes descriptors")]

use std::{
    fs::{self, File},
    io::{self, PipeWriter, Seek, Write},
    os::fd::{AsRawFd, OwnedFd, RawFd},
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

use crate::local::{Invocation, LaunchedProcess, Program, StandardPipes, StartReport, on_own_thread};

/// Descriptors of this process as this thread has them.
const DESCRIPTORS: &str = "/proc/thread-self/fd";

/// Descriptors, and the working directory, from which the command inherits its own.
const OWN: CloneFlags = CloneFlags::CLONE_FILES.union(CloneFlags::CLONE_FS);

/// Last of the three standard descriptors.
const STANDARD: RawFd = 2;

/// Handling of the descriptors of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Inheritance {
    /// The command inherits none.
    Nothing,
    /// It inherits descriptors without a close-on-exec flag if the thread cannot have its own table.
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
pub(super) struct PreparedProgram {
    pub(super) program: Program,
    pub(super) inherited: Vec<OwnedFd>,
}

/// Returns true if a thread can have its own descriptors.
pub(super) fn has_own_descriptors() -> io::Result<bool> {
    on_own_thread(|| Ok(unshare(OWN).is_ok()))
}

/// Starts a command that `prepare` makes, with no descriptors but those that it returns.
pub(super) fn spawn(
    invocation: &Invocation,
    inheritance: Inheritance,
    prepare: impl FnOnce(&Descriptors<'_>) -> io::Result<PreparedProgram> + Send,
) -> io::Result<LaunchedProcess> {
    let pipes = StandardPipes::new(invocation.stdin)?;
    let (reader, writer) = (inheritance == Inheritance::Report).then(io::pipe).transpose()?.unzip();
    let program = invocation.program.to_string_lossy().into_owned();
    let report = reader.map(|reader| StartReport::new(OwnedFd::from(reader), program)).transpose()?;
    let process = on_own_thread(|| start(invocation, &pipes, writer.as_ref(), inheritance, prepare))?;
    // The report ends with its last writer.
    drop(writer);
    Ok(LaunchedProcess { start: report, ..pipes.into_launched(process)? })
}

fn start(
    invocation: &Invocation,
    pipes: &StandardPipes,
    report: Option<&PipeWriter>,
    inheritance: Inheritance,
    prepare: impl FnOnce(&Descriptors<'_>) -> io::Result<PreparedProgram>,
) -> io::Result<Pid> {
    let ends: Vec<RawFd> = pipes.descriptors().chain(report.map(AsRawFd::as_raw_fd)).collect();
    let mask = SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK)?;
    let shared = match unshare(OWN) {
        Ok(()) => keep_only(&ends).map(|()| false)?,
        Err(_) if inheritance == Inheritance::IfUnavoidable => {
            mask.thread_set_mask()?;
            true
        }
        Err(error) => return Err(error.into()),
    };
    let PreparedProgram { program, inherited } = prepare(&Descriptors { start: report })?;
    let process = match shared {
        true => program.spawn_shared(&invocation.directory, pipes.streams()),
        false => program.spawn(&invocation.directory, pipes.streams(), &mask),
    };
    drop(inherited);
    process
}

/// Closes all descriptors of this thread, which has its own, but the standard ones and `kept`.
///
/// Every command would inherit the descriptors that this process has inherited itself. Descriptors
/// that it opened are closed so that low numbers are free, since the shell of the launcher supports
/// only single digits.
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
