//! A pseudo-terminal with a size, a keyboard and a process that it controls. The tests of `pintle-tests` include this file.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::num::NonZeroU16;
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};
use vt100::Parser;

/// Deadline for anything that normally happens at once.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// Time without output after which an update that has not ended is shown: a process may have been stopped in the middle of it.
const UPDATE_TIMEOUT: Duration = Duration::from_secs(5);

/// Pseudo-terminal with the process that runs in it.
pub(crate) struct Terminal {
    keyboard: File,
    screen: Arc<Screen>,
    child: Child,
    reader: Option<JoinHandle<()>>,
}

/// Contents of the terminal, and all bytes sent to it.
struct Screen {
    shown: Mutex<(Parser, Vec<u8>)>,
    changed: Condvar,
    /// Whether the terminal is to be closed before the process exits.
    closing: AtomicBool,
    /// Whether output is left unread meanwhile.
    held: AtomicBool,
}

/// Rows of the scrollback.
const SCROLLBACK: usize = 1_000;

/// How long the reader polls for output before it checks whether to stop.
const POLL_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

impl Terminal {
    /// Runs the command as a session leader on a new terminal.
    pub(crate) fn run(
        command: &Command,
        columns: u16,
        rows: u16,
        redirect: impl FnOnce(&mut Command),
    ) -> Self {
        let mut in_session = Command::new("setsid");
        in_session.arg("--ctty").arg(command.get_program());
        Self::run_as(in_session, command, columns, rows, redirect)
    }

    /// Runs a program, such as a shell, with the arguments, the environment and the working directory of the command.
    pub(crate) fn run_as(
        in_session: Command,
        command: &Command,
        columns: u16,
        rows: u16,
        redirect: impl FnOnce(&mut Command),
    ) -> Self {
        let parser = Parser::new(cells(rows), cells(columns), SCROLLBACK);
        Self::run_on(parser, in_session, command, redirect)
    }

    /// Runs the command as a session leader on a terminal that keeps so many rows that have left its screen.
    pub(crate) fn with_scrollback(command: &Command, columns: u16, rows: u16, kept: usize) -> Self {
        let mut in_session = Command::new("setsid");
        in_session.arg("--ctty").arg(command.get_program());
        Self::run_on(Parser::new(cells(rows), cells(columns), kept), in_session, command, |_| {})
    }

    fn run_on(
        parser: Parser,
        mut in_session: Command,
        command: &Command,
        redirect: impl FnOnce(&mut Command),
    ) -> Self {
        let (master, slave) = open_pty();
        let (rows, columns) = parser.screen().size();
        resize(&master, columns.get(), rows.get());
        in_session.args(command.get_args()).env_clear().env("TERM", "xterm-256color");
        for (name, value) in command.get_envs() {
            if let Some(value) = value {
                in_session.env(name, value);
            }
        }
        if let Some(directory) = command.get_current_dir() {
            in_session.current_dir(directory);
        }
        in_session.stdin(slave.try_clone().unwrap()).stdout(slave.try_clone().unwrap()).stderr(slave);
        redirect(&mut in_session);
        let child = in_session.spawn().expect("setsid runs");
        // Close the copies of the slave end that it holds.
        drop(in_session);
        let keyboard = File::from(master);
        let screen = Arc::new(Screen {
            shown: Mutex::new((parser, Vec::new())),
            changed: Condvar::new(),
            closing: AtomicBool::new(false),
            held: AtomicBool::new(false),
        });
        let (shown, mut output) = (Arc::clone(&screen), keyboard.try_clone().unwrap());
        let reader = std::thread::spawn(move || shown.read_output(&mut output));
        Self { keyboard, screen, child, reader: Some(reader) }
    }

    pub(crate) fn start(command: &Command) -> Self {
        Self::run(command, 80, 24, |_| {})
    }

    pub(crate) fn type_keys(&mut self, keys: &str) {
        self.type_bytes(keys.as_bytes());
    }

    /// Sends bytes that may be no text.
    pub(crate) fn type_bytes(&mut self, bytes: &[u8]) {
        self.keyboard.write_all(bytes).unwrap();
    }

    /// Leaves output unread from now on, or reads it again.
    pub(crate) fn hold(&self, held: bool) {
        self.screen.held.store(held, Ordering::Relaxed);
    }

    /// Returns the modes of the terminal.
    pub(crate) fn modes(&self) -> Termios {
        tcgetattr(&self.keyboard).unwrap()
    }

    /// Returns all output so far.
    pub(crate) fn output(&self) -> String {
        String::from_utf8_lossy(&self.screen.shown.lock().unwrap().1).into_owned()
    }

    /// Returns the scrollback and the screen.
    pub(crate) fn scrollback(&self) -> String {
        let mut shown = self.screen.shown.lock().unwrap();
        let screen = shown.0.screen_mut();
        let (rows, columns) = (usize::from(screen.size().0.get()), screen.size().1.get());
        screen.set_scrollback(usize::MAX);
        let mut text = String::new();
        loop {
            let left = screen.scrollback();
            if left == 0 {
                return text + &screen.contents();
            }
            for row in screen.rows(0, columns).take(left) {
                text.push_str(&row);
                text.push('\n');
            }
            screen.set_scrollback(left.saturating_sub(rows));
        }
    }

    pub(crate) fn resize(&self, columns: u16, rows: u16) {
        self.screen.shown.lock().unwrap().0.screen_mut().set_size(cells(rows), cells(columns));
        resize(&self.keyboard, columns, rows);
    }

    /// Waits until the screen satisfies the condition, and returns it.
    pub(crate) fn wait_for(&mut self, what: &str, condition: impl Fn(&str) -> bool) -> String {
        let deadline = Instant::now() + TIMEOUT;
        let (mut shown, mut is_stalled) = (self.screen.shown.lock().unwrap(), false);
        // Terminals show an update at once, so a screen in the middle of an update does not count.
        while is_updating(&shown.1) && !is_stalled || !condition(&shown.0.screen().contents()) {
            if Instant::now() > deadline {
                let contents = shown.0.screen().contents();
                drop(shown);
                let _ = self.child.kill();
                panic!("{what} did not appear:\n{contents}");
            }
            let waited;
            (shown, waited) = self.screen.changed.wait_timeout(shown, UPDATE_TIMEOUT).unwrap();
            is_stalled = waited.timed_out();
        }
        shown.0.screen().contents()
    }

    pub(crate) fn wait_for_text(&mut self, text: &str) -> String {
        self.wait_for(text, |screen| screen.contains(text))
    }

    /// Looks at the screen as it is now, with colours.
    pub(crate) fn with_screen<T>(&self, look: impl FnOnce(&vt100::Screen) -> T) -> T {
        look(self.screen.shown.lock().unwrap().0.screen())
    }

    /// Returns the number of the process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Runs the command on a new terminal that does not control it.
    pub(crate) fn start_without_control(command: &Command) -> Self {
        Self::run_as(Command::new(command.get_program()), command, 80, 24, |_| {})
    }

    /// Closes the terminal, and returns the exit code of the process.
    pub(crate) fn hang_up(self) -> Option<i32> {
        let Self { keyboard, screen, mut child, reader } = self;
        screen.closing.store(true, Ordering::Relaxed);
        reader.unwrap().join().unwrap();
        drop(keyboard);
        wait_for_exit(&mut child, &screen)
    }

    /// Waits for the process to exit, and returns the exit code, the screen and all output.
    pub(crate) fn finish(mut self) -> (Option<i32>, String, String) {
        let code = wait_for_exit(&mut self.child, &self.screen);
        self.reader.take().unwrap().join().unwrap();
        let shown = self.screen.shown.lock().unwrap();
        (code, shown.0.screen().contents(), String::from_utf8_lossy(&shown.1).into_owned())
    }
}

impl Screen {
    /// Reads output until the last process has closed the terminal, or [`Screen::closing`] is set.
    fn read_output(&self, output: &mut File) {
        let mut buffer = [0; 4096];
        while !self.closing.load(Ordering::Relaxed) {
            if self.held.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(20));
                continue;
            }
            let mut ready = [PollFd::new(output, PollFlags::IN)];
            if poll(&mut ready, Some(&POLL_INTERVAL)).unwrap() == 0 {
                continue;
            }
            // Once the last process is gone, reading fails.
            let Ok(count @ 1..) = output.read(&mut buffer) else { return };
            let read = buffer.get(..count).unwrap();
            let mut shown = self.shown.lock().unwrap();
            let (parser, bytes) = &mut *shown;
            parser.process(read);
            bytes.extend_from_slice(read);
            self.changed.notify_all();
        }
    }
}

/// Waits for the end of the process, and returns its exit code.
fn wait_for_exit(child: &mut Child, screen: &Screen) -> Option<i32> {
    let end = Instant::now() + 3 * TIMEOUT;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        if Instant::now() > end {
            let _ = child.kill();
            panic!("the process did not exit:\n{}", screen.shown.lock().unwrap().0.screen().contents());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Returns whether output ends within an update.
fn is_updating(output: &[u8]) -> bool {
    let tail = output.get(output.len().saturating_sub(1 << 14)..).unwrap_or_default();
    let last = |mark: &[u8]| tail.windows(mark.len()).rposition(|window| window == mark);
    last(b"\x1b[?2026h") > last(b"\x1b[?2026l")
}

/// Opens a pseudo-terminal and returns its master and slave.
fn open_pty() -> (OwnedFd, OwnedFd) {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let master = openpt(flags).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let slave = ioctl_tiocgptpeer(&master, flags).unwrap();
    (master, slave)
}

fn resize(terminal: &impl AsFd, columns: u16, rows: u16) {
    let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(terminal.as_fd(), size).unwrap();
}

fn cells(count: u16) -> NonZeroU16 {
    NonZeroU16::new(count).unwrap()
}
