//! A pseudo-terminal with a program that runs in it.

use std::{
    fs::File,
    io::{Read as _, Write as _},
    os::fd::{AsFd as _, OwnedFd},
    process::{Child, Command},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use nix::{time::ClockId, unistd::Pid};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt},
    termios::{Winsize, tcsetwinsize},
};

/// Deadline for anything that normally happens at once.
const TIMEOUT: Duration = Duration::from_secs(60);

/// How long the reader waits for output before it checks whether to stop.
const POLL_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// Size of the window.
const SIZE: Winsize = Winsize { ws_row: 40, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 };

/// A terminal and the program, which ends when this is dropped.
pub(super) struct Terminal {
    keyboard: Option<File>,
    screen: Arc<Screen>,
    child: Child,
    reader: Option<JoinHandle<()>>,
    started: Instant,
}

/// Output of the program.
struct Screen {
    output: Mutex<Output>,
    changed: Condvar,
    is_closing: AtomicBool,
}

struct Output {
    bytes: Vec<u8>,
    /// When the newest bytes were read.
    at: Instant,
}

impl Terminal {
    /// Runs a program as the leader of a session on a new terminal, in the environment of `command` and no other.
    pub(super) fn start(command: &Command) -> Self {
        let (master, slave) = open();
        let mut in_session = Command::new("setsid");
        in_session.arg("--ctty").arg(command.get_program()).args(command.get_args()).env_clear();
        for (name, value) in command.get_envs() {
            if let Some(value) = value {
                in_session.env(name, value);
            }
        }
        if let Some(directory) = command.get_current_dir() {
            in_session.current_dir(directory);
        }
        let copy = || slave.try_clone().expect("there are descriptors");
        in_session.stdin(copy()).stdout(copy()).stderr(copy());
        let keyboard = File::from(master);
        let screen = Arc::new(Screen {
            output: Mutex::new(Output { bytes: Vec::new(), at: Instant::now() }),
            changed: Condvar::new(),
            is_closing: AtomicBool::new(false),
        });
        let (read, mut output) = (Arc::clone(&screen), keyboard.try_clone().expect("there are descriptors"));
        let reader = std::thread::spawn(move || read.read(&mut output));
        let started = Instant::now();
        let child = in_session.spawn().expect("setsid runs");
        Self { keyboard: Some(keyboard), screen, child, reader: Some(reader), started }
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns when the program was started.
    pub(super) fn started(&self) -> Instant {
        self.started
    }

    /// Returns the CPU time that the process has used, without that of its children.
    pub(super) fn cpu(&self) -> Duration {
        let pid = i32::try_from(self.child.id()).expect("a process id is small");
        let clock = ClockId::pid_cpu_clock_id(Pid::from_raw(pid)).expect("the process has a clock");
        Duration::from(clock.now().expect("the process is alive"))
    }

    /// Returns the number of bytes that were printed so far.
    pub(super) fn printed(&self) -> usize {
        self.screen.lock().bytes.len()
    }

    /// Types keys.
    pub(super) fn type_keys(&mut self, keys: &str) {
        let keyboard = self.keyboard.as_mut().expect("the terminal is open");
        keyboard.write_all(keys.as_bytes()).expect("the terminal takes keys");
    }

    /// Waits until the text is printed, beyond the first `from` bytes of output. Returns when it was read.
    pub(super) fn wait_for(&self, text: &str, from: usize) -> Instant {
        let is_missing = |output: &mut Output| !contains(output.bytes.get(from..), text.as_bytes());
        let waited = self.screen.changed.wait_timeout_while(self.screen.lock(), TIMEOUT, is_missing);
        let (output, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        let newest = output.bytes.get(output.bytes.len().saturating_sub(4_000)..).unwrap_or_default();
        assert!(!waited.timed_out(), "`{text}` is not printed: {}", String::from_utf8_lossy(newest));
        output.at
    }
}

impl Drop for Terminal {
    /// Closes the terminal, which ends the program.
    fn drop(&mut self) {
        self.screen.is_closing.store(true, Ordering::Relaxed);
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
        self.keyboard = None;
        let _ = self.child.wait();
    }
}

impl Screen {
    fn lock(&self) -> MutexGuard<'_, Output> {
        self.output.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads until the program has closed the terminal, or the terminal is to be closed.
    fn read(&self, master: &mut File) {
        let mut buffer = vec![0; 64 << 10];
        while !self.is_closing.load(Ordering::Relaxed) {
            let mut ready = [PollFd::new(master, PollFlags::IN)];
            if poll(&mut ready, Some(&POLL_INTERVAL)) == Ok(0) {
                continue;
            }
            let Ok(length @ 1..) = master.read(&mut buffer) else { return };
            let at = Instant::now();
            let mut output = self.lock();
            output.bytes.extend_from_slice(buffer.get(..length).unwrap_or_default());
            output.at = at;
            drop(output);
            self.changed.notify_all();
        }
    }
}

/// Opens a pseudo-terminal and returns its master and slave.
fn open() -> (OwnedFd, OwnedFd) {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let master = openpt(flags).expect("there are terminals");
    grantpt(&master).expect("it is ours");
    unlockpt(&master).expect("it is ours");
    let slave = ioctl_tiocgptpeer(&master, flags).expect("it has another end");
    tcsetwinsize(master.as_fd(), SIZE).expect("it has a size");
    (master, slave)
}

fn contains(bytes: Option<&[u8]>, wanted: &[u8]) -> bool {
    bytes.unwrap_or_default().windows(wanted.len()).any(|window| window == wanted)
}
