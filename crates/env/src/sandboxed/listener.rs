//! A listener in the network of a sandbox, which a helper opens there.
//!
//! The network of a sandbox has nothing but a loopback interface, and only a process in it can open a socket there. A process
//! enters the user namespace of a sandbox only if it has one thread, so this process cannot. It starts a helper, which
//! gets a descriptor of a process in the sandbox, joins its user and network namespaces, opens a listener and returns its
//! descriptor. Both descriptors pass over the standard input of the helper, a local socket (`SCM_RIGHTS`). The helper belongs to
//! the same user and needs no privileges, and it has exited before the command starts.
#![expect(clippy::disallowed_methods, reason = "this module starts the helper and waits for it")]

use std::{
    ffi::OsString,
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
    net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener},
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::net::UnixStream,
    },
    path::PathBuf,
    process::{Command, Stdio},
    time::Duration,
};

use rustix::{
    net::{
        RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
        SendFlags, recvmsg, sendmsg,
    },
    process::{Pid, PidfdFlags, pidfd_open},
    thread::{ThreadNameSpaceType, move_into_thread_name_spaces},
};

/// Address of the listener. Each sandbox has a separate network, so all of them have the same one.
pub(super) const ADDRESS: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 47_813));

/// Time that the helper may take.
const LIMIT: Duration = Duration::from_secs(10);

/// The program that opens listeners in sandboxes: it calls [`listen_in_sandbox`], first of all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerHelper {
    program: PathBuf,
    arguments: Vec<OsString>,
}

impl ListenerHelper {
    /// Returns the helper with this program, an absolute path, and these arguments. It gets no variables.
    ///
    /// An application can start itself as `/proc/self/exe`, with an argument that its main function recognizes.
    #[must_use]
    pub fn new(
        program: impl Into<PathBuf>,
        arguments: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Self {
        Self { program: program.into(), arguments: arguments.into_iter().map(Into::into).collect() }
    }

    /// Opens a listener in the network of the sandbox with this process; blocks.
    ///
    /// # Errors
    ///
    /// Errors of the helper, which are not distinguished, and [`TimedOut`](io::ErrorKind::TimedOut) or
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) after 10 seconds.
    pub(super) fn open(&self, process: i32) -> io::Result<TcpListener> {
        let process = Pid::from_raw(process).ok_or(io::ErrorKind::InvalidInput)?;
        let process = pidfd_open(process, PidfdFlags::empty())?;
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_read_timeout(Some(LIMIT))?;
        ours.set_write_timeout(Some(LIMIT))?;
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).env_clear().current_dir("/");
        command.stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).stderr(Stdio::null());
        let mut helper = command.spawn()?;
        // The other end is open in the command, too.
        drop(command);
        let opened = send(&ours, process.as_fd()).and_then(|()| receive(&ours));
        // It exits now, unless it is a program that does something else.
        let ended = helper.kill().and_then(|()| helper.wait());
        let listener = TcpListener::from(opened?);
        ended.map(|_| listener)
    }
}

/// Opens a listener in a sandbox for the process that has started this one as its [`ListenerHelper`].
///
/// Call it before there is another thread, and exit afterwards: this process has joined the user and network namespaces of the
/// sandbox. Blocks until the other process has sent its request, or is gone.
///
/// # Errors
///
/// Errors of the system: if the process has several threads, or was not started as a helper.
pub fn listen_in_sandbox() -> io::Result<()> {
    let socket = io::stdin();
    let process = receive(&socket)?;
    // At once: with the capabilities in the user namespace alone, the network namespace cannot be entered, since it may belong
    // to an outer one.
    let spaces = ThreadNameSpaceType::USER | ThreadNameSpaceType::NETWORK;
    move_into_thread_name_spaces(process.as_fd(), spaces)?;
    let listener = TcpListener::bind(ADDRESS)?;
    send(&socket, listener.as_fd())
}

/// Sends a descriptor.
fn send(socket: impl AsFd, descriptor: BorrowedFd<'_>) -> io::Result<()> {
    let descriptors = [descriptor];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut message = SendAncillaryBuffer::new(&mut space);
    if !message.push(SendAncillaryMessage::ScmRights(&descriptors)) {
        return Err(io::Error::other("no space for a descriptor"));
    }
    sendmsg(socket, &[IoSlice::new(&[0])], &mut message, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Receives a descriptor.
fn receive(socket: impl AsFd) -> io::Result<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut message = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let mut parts = [IoSliceMut::new(&mut byte)];
    let received = recvmsg(socket, &mut parts, &mut message, RecvFlags::CMSG_CLOEXEC)?;
    let mut descriptors = Vec::new();
    for part in message.drain() {
        if let RecvAncillaryMessage::ScmRights(found) = part {
            descriptors.extend(found);
        }
    }
    let descriptor = descriptors.pop().filter(|_| received.bytes == 1);
    descriptor.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};

    use super::*;

    #[test]
    fn descriptors_pass_over_a_socket() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (mut reader, writer) = io::pipe().unwrap();
        send(&ours, writer.as_fd()).unwrap();
        drop(writer);
        let mut received = std::fs::File::from(receive(&theirs).unwrap());
        received.write_all(b"x").unwrap();
        drop(received);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "x");
        // A message without a descriptor, and the end.
        (&ours).write_all(b"x").unwrap();
        assert_eq!(receive(&theirs).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        drop(ours);
        assert_eq!(receive(&theirs).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn a_helper_that_does_something_else_is_an_error() {
        let id = std::process::id().cast_signed();
        for helper in
            [ListenerHelper::new("/bin/sh", ["-c", "exit 0"]), ListenerHelper::new("/no/such", [""])]
        {
            assert!(helper.open(id).is_err(), "{helper:?}");
        }
        // No process has such an id.
        assert!(ListenerHelper::new("/bin/sh", ["-c", "exit 1"]).open(i32::MAX).is_err());
    }
}
