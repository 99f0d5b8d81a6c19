//! Processes that were started on a thread with its own file descriptors. Linux only.

use std::{
    io,
    os::{fd::OwnedFd, unix::process::ExitStatusExt},
    process::ExitStatus,
    time::Duration,
};

use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, kill_process, pidfd_open, waitpid};
use tokio::{
    io::{AsyncReadExt, Interest, unix::AsyncFd},
    net::unix::pipe::Receiver,
    time::timeout,
};

/// Time that a launcher may take to start its program.
const START_LIMIT: Duration = Duration::from_secs(30);

/// Maximum size of a report; the launcher writes some hundred bytes.
const MAX_REPORT: usize = 4 << 10;

/// A process whose exit is awaited through a descriptor: the runtime can only await those that it
/// started itself.
#[derive(Debug)]
pub(crate) struct AdoptedChild {
    process: Pid,
    exited: AsyncFd<OwnedFd>,
    /// Set once the exit was read: from then on the id may belong to another process.
    status: Option<ExitStatus>,
}

impl AdoptedChild {
    /// Takes over a child of this process by its id. Kills it if it cannot be awaited.
    ///
    /// # Errors
    ///
    /// No free descriptor.
    #[expect(
        deprecated,
        reason = "the new constructor is unsafe, and an owned descriptor keeps its contract"
    )]
    pub(crate) fn new(id: i32) -> io::Result<Self> {
        let process = Pid::from_raw(id).ok_or(io::ErrorKind::InvalidInput)?;
        let exited = || -> io::Result<AsyncFd<OwnedFd>> {
            let exited = pidfd_open(process, PidfdFlags::NONBLOCK)?;
            AsyncFd::with_interest(exited, Interest::READABLE)
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

    pub(super) fn id(&self) -> u32 {
        self.process.as_raw_nonzero().get().unsigned_abs()
    }

    pub(super) async fn wait(&mut self) -> io::Result<ExitStatus> {
        loop {
            if let Some(status) = self.try_wait()? {
                return Ok(status);
            }
            self.exited.readable().await?.clear_ready();
        }
    }

    pub(super) fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        if self.status.is_none() {
            let exited = waitpid(Some(self.process), WaitOptions::NOHANG)?;
            self.status = exited.map(|(_, status)| ExitStatus::from_raw(status.as_raw()));
        }
        Ok(self.status)
    }
}

/// The pipe on which a launcher reports the start of its program: the id of the first process that
/// it starts, as JSON; a line `s` when it is about to execute the program; a line `f` and the exit
/// code if that fails. The end without an `f` is the success.
#[derive(Debug)]
pub(crate) struct StartReport {
    pipe: Receiver,
    program: String,
}

/// How a launch ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// The program runs. The id is that of the first process of its namespace.
    Running(i32),
    /// The program could not be executed.
    Failed(io::ErrorKind),
    /// The launcher itself failed before.
    Launcher,
}

impl StartReport {
    /// Reads the report about `program` from this end of a pipe.
    pub(crate) fn new(pipe: OwnedFd, program: String) -> io::Result<Self> {
        Ok(Self { pipe: Receiver::from_owned_fd(pipe)?, program })
    }

    /// Returns the name of the program.
    pub(super) fn into_program(self) -> String {
        self.program
    }

    /// Reads until the program runs or cannot.
    ///
    /// # Errors
    ///
    /// [`TimedOut`](io::ErrorKind::TimedOut) after [`START_LIMIT`].
    pub(super) async fn read(&mut self) -> io::Result<Start> {
        let mut report = Vec::new();
        let mut pipe = (&mut self.pipe).take(MAX_REPORT as u64);
        timeout(START_LIMIT, pipe.read_to_end(&mut report)).await.map_err(io::Error::from)??;
        Ok(parse(&String::from_utf8_lossy(&report)))
    }
}

fn parse(report: &str) -> Start {
    let lines = || report.lines().map(str::trim);
    if !lines().any(|line| line == "s") {
        return Start::Launcher;
    }
    match lines().find_map(|line| line.strip_prefix('f')) {
        Some("127") => return Start::Failed(io::ErrorKind::NotFound),
        Some("126") => return Start::Failed(io::ErrorKind::PermissionDenied),
        Some(_) => return Start::Failed(io::ErrorKind::Other),
        None => {}
    }
    let id = lines().find_map(|line| line.strip_prefix("\"child-pid\":"));
    id.and_then(|id| id.trim_matches([' ', ',']).parse().ok()).map_or(Start::Launcher, Start::Running)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_parsed() {
        let info = "{\n    \"child-pid\": 4711,\n    \"net-namespace\": 4026531840\n}\n";
        for (report, start) in [
            (format!("{info}s\n"), Start::Running(4711)),
            (format!("{info}s\nf127\n"), Start::Failed(io::ErrorKind::NotFound)),
            (format!("{info}s\nf126\n"), Start::Failed(io::ErrorKind::PermissionDenied)),
            (info.to_owned(), Start::Launcher),
            ("s\n".to_owned(), Start::Launcher),
            (String::new(), Start::Launcher),
        ] {
            assert_eq!(parse(&report), start, "{report}");
        }
    }
}
