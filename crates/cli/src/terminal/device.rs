//! The terminal itself: its modes, what it sends, and its size.

use std::io::{self, IsTerminal as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use tokio::sync::mpsc;

use super::keys::Input;
use crate::console::modes;
use crate::failure::{Failure, OrFailure as _};

/// Largest piece that is read at once.
const PIECE: usize = 64 << 10;

/// Pieces that wait to be decoded. Whoever pastes more waits.
const PIECES: usize = 16;

/// Terminal in the modes of a conversation, until it is dropped.
#[derive(Debug)]
pub(crate) struct Device {
    input: mpsc::Receiver<Vec<u8>>,
    reader: Option<(OwnedFd, JoinHandle<()>)>,
    /// Input that a conversation has left for the next one.
    pub(super) unread: Vec<Input>,
    /// The same in a conversation in lines.
    pub(super) unread_lines: Vec<String>,
}

/// Returns whether standard input and standard output are a terminal.
pub(super) fn is_terminal() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

impl Device {
    /// Enters the modes of a conversation and begins to read.
    ///
    /// # Errors
    ///
    /// A failure if standard input is no terminal, or gone.
    pub(super) fn enter() -> Result<Self, Failure> {
        modes::enter().or_failed("cannot use the terminal")?;
        Self::lines()
    }

    /// Begins to read, in the modes that the terminal has: it sends lines.
    ///
    /// # Errors
    ///
    /// A failure if there are no more pipes.
    pub(super) fn lines() -> Result<Self, Failure> {
        let (sender, input) = mpsc::channel(PIECES);
        let (wake, woken) = pipe().or_failed("cannot read the terminal")?;
        let reader = std::thread::spawn(move || read(&woken, &sender));
        Ok(Self { input, reader: Some((wake, reader)), unread: Vec::new(), unread_lines: Vec::new() })
    }

    /// Leaves the modes of the conversation while something else uses the terminal, and enters them again.
    ///
    /// # Errors
    ///
    /// As [`enter`](Self::enter).
    pub(super) fn suspend(&mut self, other: impl FnOnce()) -> Result<(), Failure> {
        self.close();
        other();
        *self = Self::enter()?;
        Ok(())
    }

    fn close(&mut self) {
        self.input.close();
        // A device that is closed has nothing to restore.
        let Some((wake, reader)) = self.reader.take() else { return };
        // The reader waits for input, for room, or for this.
        drop(wake);
        while self.input.try_recv().is_ok() {}
        // It has nothing to report.
        let _ = reader.join();
        modes::restore();
    }

    /// Returns the next piece; `None` once the terminal is gone. Cancel safe.
    pub(super) async fn next(&mut self) -> Option<Vec<u8>> {
        self.input.recv().await
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        self.close();
    }
}

fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (reader, writer) = io::pipe()?;
    Ok((writer.into(), reader.into()))
}

/// Reads the terminal until it is gone, nobody takes what it sends, or the other end of `woken` is closed.
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
