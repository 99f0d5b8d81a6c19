//! Processes that a separate thread started. Linux only.

use std::{
    io,
    os::{fd::OwnedFd, unix::process::ExitStatusExt},
    process::ExitStatus,
    time::Duration,
};

use rustix::{
    io::Errno,
    process::{Pid, PidfdFlags, Signal, WaitOptions, kill_process, pidfd_open, waitpid},
};
use tokio::{
    io::{Interest, unix::AsyncFd},
    time::sleep,
};

/// Poll interval of a kernel without descriptors of processes.
const POLL: Duration = Duration::from_millis(10);

/// A process whose exit is awaited through a descriptor: the runtime can only await those that it
/// started itself.
#[derive(Debug)]
pub(crate) struct AdoptedChild {
    process: Pid,
    /// `None` if the kernel, or a filter of a container, has no descriptors of processes.
    exited: Option<AsyncFd<OwnedFd>>,
    /// Set once the exit was read: from then on the id may belong to another process.
    status: Option<ExitStatus>,
}

/// Registers the descriptor of a process with the runtime. It is readable once the process has exited.
///
/// # Errors
///
/// Those of the runtime's `epoll`.
#[expect(deprecated, reason = "the new constructor is unsafe, and an owned descriptor keeps its contract")]
pub(super) fn watch_exit(process: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(process, Interest::READABLE)
}

impl AdoptedChild {
    /// Takes over a child of this process by its id. Kills it if it cannot be awaited.
    ///
    /// # Errors
    ///
    /// No free descriptor.
    pub(crate) fn new(id: i32) -> io::Result<Self> {
        let process = Pid::from_raw(id).ok_or(io::ErrorKind::InvalidInput)?;
        let exited = || -> io::Result<Option<AsyncFd<OwnedFd>>> {
            match pidfd_open(process, PidfdFlags::NONBLOCK) {
                Ok(exited) => watch_exit(exited).map(Some),
                Err(Errno::NOSYS | Errno::PERM | Errno::INVAL) => Ok(None),
                Err(error) => Err(error.into()),
            }
        };
        match exited() {
            Ok(exited) => Ok(Self { process, exited, status: None }),
            Err(error) => {
                kill_process(process, Signal::KILL)?;
                waitpid(Some(process), WaitOptions::empty())?;
                Err(error)
            }
        }
    }

    /// Returns the process id, as a child of the runtime does.
    pub(super) fn id(&self) -> Option<u32> {
        Some(self.process.as_raw_nonzero().get().unsigned_abs())
    }

    /// Waits for the exit. Cancel safe.
    pub(crate) async fn wait(&mut self) -> io::Result<ExitStatus> {
        loop {
            if let Some(status) = self.try_wait()? {
                return Ok(status);
            }
            match &self.exited {
                Some(exited) => exited.readable().await?.clear_ready(),
                None => sleep(POLL).await,
            }
        }
    }

    /// Returns the exit status if the process has exited.
    pub(super) fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        if self.status.is_none() {
            let exited = waitpid(Some(self.process), WaitOptions::NOHANG)?;
            self.status = exited.map(|(_, status)| ExitStatus::from_raw(status.as_raw()));
        }
        Ok(self.status)
    }
}
