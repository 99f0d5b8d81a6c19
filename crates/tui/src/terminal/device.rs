//! The terminal itself: its modes, its input, and the signals that stop and continue the process.

use std::io::{self, IsTerminal as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::thread::JoinHandle;

use pintle_host::failure::{Failure, OrFailure as _};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Signal, getpgrp, getsid, kill_current_process_group};
use tokio::signal::unix::{Signal as Arrivals, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::keys::Input;
use crate::console::modes;

/// Maximum size of one read, in bytes.
const PIECE: usize = 64 << 10;

/// Maximum number of pieces that wait to be decoded. The reader blocks when it is reached.
const PIECES: usize = 16;

/// Input or signal for a conversation from its terminal.
#[derive(Debug)]
pub(super) enum DeviceInput {
    Bytes(Vec<u8>),
    /// The process is requested to stop, by a signal rather than a key.
    Stop,
    /// The process was continued, at this time.
    Continued(Instant),
}

/// Terminal in the modes of a conversation, until it is dropped.
#[derive(Debug)]
pub struct Device {
    input: mpsc::Receiver<Vec<u8>>,
    reader: Option<(OwnedFd, JoinHandle<()>)>,
    /// Job control signals. In plain mode they have their default effects.
    signals: mpsc::UnboundedReceiver<DeviceInput>,
    _listener: JoinSet<()>,
    /// Input that a conversation has left for the next conversation.
    pub(super) unread: Vec<Input>,
    /// The same in plain mode.
    pub(super) unread_lines: Vec<String>,
}

/// Returns whether standard input and standard output are a terminal.
pub(super) fn is_terminal() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

impl Device {
    /// Enters the modes of a conversation and starts to read.
    pub(super) fn enter() -> Result<Self, Failure> {
        modes::enter().or_failed("cannot use the terminal")?;
        let (sender, signals) = mpsc::unbounded_channel();
        let watched = "cannot watch for signals";
        let stops = signal(SignalKind::from_raw(Signal::TSTP.as_raw())).or_failed(watched)?;
        let continues = signal(SignalKind::from_raw(Signal::CONT.as_raw())).or_failed(watched)?;
        let mut device = Self::lines()?;
        device._listener.spawn(listen(stops, continues, sender));
        device.signals = signals;
        Ok(device)
    }

    /// Starts to read in the current modes, in which the terminal sends lines.
    pub(super) fn lines() -> Result<Self, Failure> {
        let (_, signals) = mpsc::unbounded_channel();
        let (_, input) = mpsc::channel(PIECES);
        let (unread, unread_lines) = (Vec::new(), Vec::new());
        let mut device =
            Self { input, reader: None, signals, _listener: JoinSet::new(), unread, unread_lines };
        device.read()?;
        Ok(device)
    }

    /// Creates a device whose input comes from a channel.
    #[cfg(test)]
    pub(super) fn scripted(input: mpsc::Receiver<Vec<u8>>) -> Self {
        let (_, signals) = mpsc::unbounded_channel();
        let (unread, unread_lines) = (Vec::new(), Vec::new());
        Self { input, reader: None, signals, _listener: JoinSet::new(), unread, unread_lines }
    }

    fn read(&mut self) -> Result<(), Failure> {
        let (sender, input) = mpsc::channel(PIECES);
        let (wake, woken) = pipe().or_failed("cannot read the terminal")?;
        let reader = std::thread::spawn(move || read(&woken, &sender));
        (self.input, self.reader) = (input, Some((wake, reader)));
        Ok(())
    }

    /// Leaves the modes of the conversation while `other` uses the terminal, and enters them again.
    pub(super) fn suspend(&mut self, other: impl FnOnce()) -> Result<(), Failure> {
        self.close();
        other();
        modes::enter().or_failed("cannot use the terminal")?;
        self.read()
    }

    fn close(&mut self) {
        self.input.close();
        // A closed device has nothing to restore.
        let Some((wake, reader)) = self.reader.take() else { return };
        // The reader waits for input, for room in the channel, or for this.
        drop(wake);
        while self.input.try_recv().is_ok() {}
        // The thread has no result.
        let _ = reader.join();
        modes::restore();
    }

    /// Returns the next input or signal, or `None` once the terminal is gone. Cancel safe.
    pub(super) async fn next(&mut self) -> Option<DeviceInput> {
        tokio::select! {
            biased;
            Some(sent) = self.signals.recv() => Some(sent),
            piece = self.input.recv() => piece.map(DeviceInput::Bytes),
        }
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        self.close();
    }
}

/// Returns whether a shell controls the job of this process. A process group that contains the session leader is not a job:
/// no process would continue it. The kernel therefore does not stop it either, except by SIGSTOP.
pub(super) fn has_shell() -> bool {
    getsid(None) != Ok(getpgrp())
}

/// Stops the whole job until the shell continues it, as Ctrl+Z does without raw mode. A process that catches SIGTSTP can
/// only be stopped by SIGSTOP, and its parents in the job must stop too, or the shell would not get the terminal.
pub(super) fn stop_job() {
    if has_shell() {
        // Fails only for an invalid signal.
        let _ = kill_current_process_group(Signal::STOP);
    }
}

/// Forwards job control signals. While another program such as an editor has the terminal, the conversation waits and
/// cannot handle them: the process then stops immediately.
async fn listen(mut stops: Arrivals, mut continues: Arrivals, sender: mpsc::UnboundedSender<DeviceInput>) {
    loop {
        let sent = tokio::select! {
            Some(()) = stops.recv() => DeviceInput::Stop,
            Some(()) = continues.recv() => DeviceInput::Continued(Instant::now()),
            else => return,
        };
        if matches!(sent, DeviceInput::Stop) && !modes::are_entered() {
            stop_job();
        } else if sender.send(sent).is_err() {
            return;
        }
    }
}

fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (reader, writer) = io::pipe()?;
    Ok((writer.into(), reader.into()))
}

/// Reads the terminal until it is gone, the receiver is dropped, or the other end of `woken` is closed.
fn read(woken: &OwnedFd, sender: &mpsc::Sender<Vec<u8>>) {
    let stdin = io::stdin();
    let mut piece = vec![0; PIECE];
    loop {
        let mut ready =
            [PollFd::new(&stdin, PollFlags::IN), PollFd::from_borrowed_fd(woken.as_fd(), PollFlags::IN)];
        match poll(&mut ready, None) {
            Err(Errno::INTR) => continue,
            Err(_) => return,
            Ok(_) => {}
        }
        let [_, wake] = &ready;
        if !wake.revents().is_empty() {
            return;
        }
        match rustix::io::read(&stdin, &mut piece) {
            Ok(0) => return,
            Ok(length) => {
                let sent = piece.get(..length).unwrap_or_default().to_vec();
                if sender.blocking_send(sent).is_err() {
                    return;
                }
            }
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(_) => return,
        }
    }
}
