//! The end of the PID namespace of a command. Linux only.

use std::os::fd::OwnedFd;

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    process::{Pid, PidfdFlags, pidfd_open},
};
use tokio::io::unix::AsyncFd;

use super::adopted::watch_exit;

/// The PID namespace of a command.
///
/// The kernel kills the other processes of a namespace when its first process exits, and reports that exit when all of them are
/// gone. No process leaves its namespace. The exit of the first process therefore is the end of the command with everything that
/// it started, and no process has to be searched for.
#[derive(Debug)]
pub(super) struct PidNamespace {
    /// Readable once the first process has exited; `None` if it had exited before.
    exit: Option<AsyncFd<OwnedFd>>,
}

impl PidNamespace {
    /// Opens the namespace whose first process had this id. `None` if its end cannot be observed: the kernel, or a filter of a
    /// container, has no descriptors of processes, or no descriptor is free.
    ///
    /// If another process has the id already, the namespace has ended, and its end is reported at the exit of that process.
    pub(super) fn from_init(id: i32) -> Option<Self> {
        match pidfd_open(Pid::from_raw(id)?, PidfdFlags::empty()) {
            Ok(exit) => watch_exit(exit).ok().map(|exit| Self { exit: Some(exit) }),
            Err(Errno::SRCH) => Some(Self { exit: None }),
            Err(_) => None,
        }
    }

    /// Returns true if no process of the namespace is left.
    pub(super) fn has_ended(&self) -> bool {
        let Some(exit) = &self.exit else { return true };
        let mut exit = [PollFd::new(exit.get_ref(), PollFlags::IN)];
        poll(&mut exit, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
    }

    /// Waits until no process of the namespace is left, or until the runtime is shut down. Cancel safe.
    pub(super) async fn ended(&self) {
        let Some(exit) = &self.exit else { return };
        while !self.has_ended() {
            match exit.readable().await {
                Ok(mut guard) => guard.clear_ready(),
                Err(_) => return,
            }
        }
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the test starts a process directly")]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[tokio::test]
    async fn the_exit_of_the_first_process_is_the_end() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let id = child.id().cast_signed();
        let namespace = PidNamespace::from_init(id).unwrap();
        assert!(!namespace.has_ended());
        drop(child.stdin.take());
        namespace.ended().await;
        assert!(namespace.has_ended());
        child.wait().unwrap();
        assert!(namespace.has_ended());
        // No process has such an id.
        assert!(PidNamespace::from_init(i32::MAX).unwrap().has_ended());
    }
}
