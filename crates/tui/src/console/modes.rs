//! Enters the terminal modes of a conversation and restores the previous modes.

use std::io::{self, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::Duration;

use rustix::termios::{OptionalActions, OutputModes, Termios, tcgetattr, tcsetattr};

/// Switches on bracketed paste and reports of modified keys, in the protocols of kitty and xterm.
const ENTER: &str = "\x1b[?2004h\x1b[>1u\x1b[>4;1m";

/// Switches these off, shows the cursor and resets the text attributes.
const LEAVE: &str = "\x1b[>4;0m\x1b[<1u\x1b[?2004l\x1b[?25h\x1b[0m";

/// Pops one entry from kitty's stack of keyboard modes.
const POP_KEYS: &str = "\x1b[<1u";

/// Enters and leaves the alternate screen of the terminal.
const OTHER_SCREEN: &str = "\x1b[?1049h\x1b[?25l";
const FIRST_SCREEN: &str = "\x1b[?1049l\x1b[?25h";

/// How long a terminal may take to accept the last output of a process before it exits.
pub(crate) const HANG_TIME: Duration = Duration::from_secs(1);

/// Saves the title of the window, and restores it.
const SAVE_TITLE: &str = "\x1b[22;0t";
const RESTORE_TITLE: &str = "\x1b[23;0t";

/// Whether entering the modes of a conversation saves the title.
static SAVES_TITLE: AtomicBool = AtomicBool::new(false);

/// Whether the alternate screen is shown.
static IS_OTHER_SHOWN: AtomicBool = AtomicBool::new(false);

/// Whether a panic has restored the previous modes. A caught panic does not end the process.
static IS_LEFT_BY_PANIC: AtomicBool = AtomicBool::new(false);

/// Previous modes of the terminal, while a conversation uses other modes.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// Enters the modes of a conversation: keys arrive one by one and are not echoed.
pub(crate) fn enter() -> io::Result<()> {
    let before = tcgetattr(io::stdin())?;
    let raw = raw(&before);
    *lock() = Some(before);
    tcsetattr(io::stdin(), OptionalActions::Flush, &raw)?;
    if SAVES_TITLE.load(Ordering::Relaxed) {
        write(SAVE_TITLE);
    }
    write(ENTER);
    Ok(())
}

/// Re-enters the modes. While the process was stopped, the shell has set others. Input typed since then is kept.
pub(crate) fn reenter() -> io::Result<()> {
    let Some(before) = lock().clone() else { return enter() };
    tcsetattr(io::stdin(), OptionalActions::Now, &raw(&before))?;
    write(POP_KEYS);
    write(ENTER);
    if IS_OTHER_SHOWN.load(Ordering::Relaxed) {
        write(OTHER_SCREEN);
    }
    Ok(())
}

/// Returns whether the terminal is in the modes of a conversation.
pub(crate) fn are_entered() -> bool {
    lock().is_some()
}

/// Returns whether a panic has restored the previous modes, and clears this flag.
pub(crate) fn were_left_by_panic() -> bool {
    IS_LEFT_BY_PANIC.swap(false, Ordering::Relaxed)
}

/// Makes `enter` save the title of the window and `restore` restore it.
pub(crate) fn save_title() {
    SAVES_TITLE.store(true, Ordering::Relaxed);
}

/// Returns the output that shows the alternate screen or the main screen.
pub(crate) fn show_other_screen(shown: bool) -> &'static str {
    IS_OTHER_SHOWN.store(shown, Ordering::Relaxed);
    if shown { OTHER_SCREEN } else { FIRST_SCREEN }
}

/// Restores the previous modes of the terminal if they were changed. Panics and signals call it as well.
pub(crate) fn restore() {
    let Some(before) = lock().take() else { return };
    // Fails only if the terminal is gone.
    let _ = tcsetattr(io::stdin(), OptionalActions::Now, &before);
    let mut last = String::new();
    if IS_OTHER_SHOWN.load(Ordering::Relaxed) {
        last.push_str(show_other_screen(false));
    }
    if SAVES_TITLE.load(Ordering::Relaxed) {
        last.push_str(RESTORE_TITLE);
    }
    last.push_str(LEAVE);
    // Earlier output may still block on a terminal that hangs.
    let (sender, written) = mpsc::channel();
    std::thread::spawn(move || {
        write(&last);
        let _ = sender.send(());
    });
    let _ = written.recv_timeout(HANG_TIME);
}

/// Installs a panic hook that restores the terminal before the panic is reported.
pub(crate) fn restore_on_panic() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        IS_LEFT_BY_PANIC.store(are_entered(), Ordering::Relaxed);
        restore();
        report(info);
    }));
}

/// Returns the modes of a conversation, derived from the previous modes.
fn raw(before: &Termios) -> Termios {
    let mut raw = before.clone();
    raw.make_raw();
    // Output of other code, such as a panic message, stays readable.
    raw.output_modes |= before.output_modes & (OutputModes::OPOST | OutputModes::ONLCR);
    raw
}

fn lock() -> std::sync::MutexGuard<'static, Option<Termios>> {
    BEFORE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn write(text: &str) {
    let mut stdout = io::stdout().lock();
    // If the terminal is gone, the next read fails as well.
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read as _;
    use std::process::{Command, Stdio};

    use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};

    use super::*;

    /// Set in the process that panics, which is this test again.
    const CHILD: &str = "PINTLE_TEST_PANICS";

    const NAME: &str = "console::modes::tests::a_panic_leaves_the_terminal_as_it_was";

    fn read_until(terminal: &mut File, text: &str) -> String {
        let mut output = Vec::new();
        let mut piece = [0; 4096];
        // Once the process is gone, reading fails.
        while let Ok(length @ 1..) = terminal.read(&mut piece) {
            output.extend_from_slice(piece.get(..length).unwrap_or_default());
            if !text.is_empty() && String::from_utf8_lossy(&output).contains(text) {
                break;
            }
        }
        String::from_utf8_lossy(&output).into_owned()
    }

    fn flags(terminal: &File) -> String {
        let Termios { input_modes, output_modes, local_modes, .. } = tcgetattr(terminal).unwrap();
        format!("{input_modes:?} {output_modes:?} {local_modes:?}")
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the process that panics is another one")]
    fn a_panic_leaves_the_terminal_as_it_was() {
        if std::env::var_os(CHILD).is_some() {
            restore_on_panic();
            enter().unwrap();
            write(show_other_screen(true));
            write("entered");
            io::stdin().read_exact(&mut [0]).unwrap();
            panic!("something broke");
        }
        let options = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let terminal = openpt(options).unwrap();
        grantpt(&terminal).unwrap();
        unlockpt(&terminal).unwrap();
        let other_end = || Stdio::from(ioctl_tiocgptpeer(&terminal, options).unwrap());
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", NAME, "--nocapture"]).env(CHILD, "1");
        command.stdin(other_end()).stdout(other_end()).stderr(other_end());
        let mut child = command.spawn().unwrap();
        drop(command);
        let mut terminal = File::from(terminal);
        let before = flags(&terminal);
        let entered = read_until(&mut terminal, "entered");
        assert!(entered.contains(ENTER), "{entered:?}");
        assert_ne!(flags(&terminal), before);
        terminal.write_all(b"x").unwrap();
        let output = read_until(&mut terminal, "");
        assert!(!child.wait().unwrap().success(), "{output:?}");
        let (left, report) = output.split_once(LEAVE).expect(&output);
        assert!(left.contains(FIRST_SCREEN), "{output:?}");
        assert!(report.contains("something broke\r\n"), "{output:?}");
        assert_eq!(flags(&terminal), before);
    }
}
