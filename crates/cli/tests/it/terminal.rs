//! `pintle run` on a pseudo-terminal with a size, a keyboard and a controlling process.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::num::NonZeroU16;
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pintle_testkit::Dialect;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};
use vt100::Parser;

use crate::harness::{Harness, sandbox_levels, without_level_notice};
use crate::subagents::BOTH_WRITE;

/// Deadline for anything that normally happens at once.
const TIMEOUT: Duration = Duration::from_secs(60);

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

/// Rows that are kept of what has left the screen.
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

    /// Runs a program, such as a shell, with the arguments and the environment of the command.
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

    /// Returns what has left the screen, and the screen.
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
        // Terminals show an update at once: what is on the screen in the middle of one is none.
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

/// Scripts a shell call, such as one that waits for the file `go`.
fn shell_call(command: &str) -> String {
    format!(
        "[[turn]]\ntext = \"I wait.\"\n[[turn.call]]\ntool = \"shell\"\narguments = {{ command = \"{command}\", timeout_ms = 600000 }}\n[[turn]]\ntext = \"Done.\"\n"
    )
}

const UNTIL_GO: &str = "until test -e go; do sleep 0.02; done; echo went";

fn is_spinning(screen: &str) -> bool {
    screen.contains("⠋") || screen.chars().any(|character| ('\u{2801}'..='\u{28ff}').contains(&character))
}

#[test]
fn activity_is_shown_and_erased() {
    let turns =
        format!("[[turn]]\nfailure = [{{ stall_ms = 400, status = 503 }}]\n{}", &shell_call(UNTIL_GO)[9..]);
    let harness = Harness::new(Dialect::AnthropicMessages, &turns);
    let mut terminal = Terminal::start(&harness.command("run", &["Wait"]));
    terminal.wait_for_text("waiting for the model");
    terminal.wait_for("a call that runs", |screen| {
        screen.contains("shell until test -e go") && is_spinning(screen)
    });
    std::fs::write(harness.path("go"), "").unwrap();
    let (code, screen, _) = terminal.finish();
    let screen = without_level_notice(&screen);
    assert_eq!(code, Some(0), "{screen}");
    assert!(!is_spinning(&screen) && !screen.contains("waiting"), "{screen}");
    let lines: Vec<&str> =
        screen.lines().filter(|line| !line.starts_with("[warning]") && !line.is_empty()).collect();
    assert!(lines[0] == "I wait." && lines[1].starts_with("✓ shell until test -e go"), "{screen}");
    assert!(lines.contains(&"    went") && lines.contains(&"Done."), "{screen}");
    assert!(lines.last().unwrap().starts_with("[done] 2 model calls, 1 tool call"), "{screen}");
}

/// A program that opens the terminal would write over the display, and wait for a password that the user types to `pintle`.
#[test]
fn no_command_has_the_terminal_at_any_level() {
    let line = "if (: </dev/tty) 2>/dev/null; then echo yes; else echo no; fi >has-terminal";
    for level in sandbox_levels().into_iter().chain(["off"]) {
        let harness = Harness::new(Dialect::AnthropicMessages, &shell_call(line));
        let terminal = Terminal::start(&harness.command("run", &["--sandbox", level, "Look"]));
        let (code, screen, _) = terminal.finish();
        assert_eq!(code, Some(0), "{level}: {screen}");
        assert_eq!(harness.read("has-terminal"), "no\n", "{level}: {screen}");
    }
}

#[test]
fn typeahead_does_not_reach_the_shell() {
    let harness = Harness::new(Dialect::AnthropicMessages, &shell_call(UNTIL_GO));
    let command = harness.command("run", &["Wait"]);
    let mut shell = Command::new("setsid");
    let script = "\"$0\" \"$@\"; echo the shell reads; read -r line; echo \"the shell got: $line\"";
    shell.args(["--wait", "--ctty", "sh", "-c", script]).arg(command.get_program());
    let mut terminal = Terminal::run_as(shell, &command, 80, 24, |_| {});
    terminal.wait_for("a call that runs", is_spinning);
    terminal.type_keys("rm -rf important\n");
    std::fs::write(harness.path("go"), "").unwrap();
    terminal.wait_for_text("the shell reads");
    terminal.type_keys("true\n");
    let (code, screen, _) = terminal.finish();
    assert_eq!(code, Some(0), "{screen}");
    assert!(screen.contains("the shell got: true"), "{screen}");
}

#[test]
fn streamed_patch_is_shown_as_a_diff() {
    let lines: String = (0..40).map(|number| format!("+line {number}\n")).collect();
    let turns = format!(
        "[[turn]]\npause_ms = 100\n[[turn.call]]\ntool = \"apply_patch\"\narguments = {{ patch = '''\n*** Begin Patch\n*** Add File: a.txt\n{lines}*** End Patch\n''' }}\n[[turn]]\ntext = \"Done.\"\n"
    );
    let harness = Harness::new(Dialect::OpenAiResponses, &turns);
    let mut terminal = Terminal::start(&harness.command("run", &["Write"]));
    terminal.wait_for("a diff that grows", |screen| {
        is_spinning(screen) && screen.contains("apply_patch a.txt +") && screen.contains("    +line 1")
    });
    let (code, screen, _) = terminal.finish();
    assert_eq!(code, Some(0), "{screen}");
    assert!(!is_spinning(&screen) && screen.contains("    +line 39"), "{screen}");
    assert_eq!(harness.read("a.txt").lines().count(), 40);
}

const TWO_WRITES: &str = r#"
    [[turn]]
    text = "Two files."
    [[turn.call]]
    tool = "write_file"
    arguments = { file_path = "a.txt", content = "hello\n" }
    [[turn.call]]
    tool = "write_file"
    arguments = { file_path = "b.txt", content = "world\n" }
    [[turn]]
    text = "So be it."
    "#;

#[test]
fn approvals_are_answered_at_the_terminal() {
    let harness = Harness::new(Dialect::AnthropicMessages, TWO_WRITES);
    let mut terminal = Terminal::start(&harness.command("run", &["--mode", "ask", "Go"]));
    let question = "what to do instead: ";
    let screen = terminal.wait_for_text(question);
    // The calls are prepared in parallel, so either question may come first.
    let a_is_first = screen.contains("+hello");
    assert!(a_is_first != screen.contains("+world") && !is_spinning(&screen), "{screen}");
    assert!(!harness.path("a.txt").exists());
    terminal.type_keys(if a_is_first { "y\n" } else { "n\n" });
    let screen = terminal.wait_for("a second question", |screen| screen.matches(question).count() == 2);
    assert!(screen.contains("+hello") && screen.contains("+world") && !is_spinning(&screen), "{screen}");
    terminal.type_keys(if a_is_first { "n\n" } else { "y\n" });
    let (code, screen, _) = terminal.finish();
    assert_eq!(code, Some(0), "{screen}");
    assert!(harness.path("a.txt").exists() && !harness.path("b.txt").exists(), "{screen}");
    for answer in ["y", "n"] {
        assert!(screen.contains(&format!("{question}{answer}\n")), "{screen}");
    }
    assert!(
        screen.contains("✓ write_file a.txt") && screen.contains("✗ write_file b.txt denied"),
        "{screen}"
    );
    assert!(screen.contains("So be it."), "{screen}");
}

/// The calls of the session and of its subagent have the same ids.
#[test]
fn subagent_approvals_are_answered_at_the_terminal() {
    let harness = Harness::new(Dialect::AnthropicMessages, BOTH_WRITE);
    std::fs::create_dir(harness.path("sub")).unwrap();
    let mut terminal = Terminal::run(&harness.command("run", &["--mode", "ask", "Go"]), 100, 60, |_| {});
    let question = "what to do instead: ";
    terminal.wait_for_text(question);
    terminal.type_keys("y\n");
    terminal.wait_for("the other question", |screen| screen.matches(question).count() == 2);
    terminal.type_keys("y\n");
    let (code, screen, _) = terminal.finish();
    assert_eq!(code, Some(0), "{screen}");
    assert!(harness.path("a.txt").exists() && harness.path("sub/a.txt").exists(), "{screen}");
    assert!(screen.contains("\nagent_1: write_file (") && screen.contains("\nwrite_file ("), "{screen}");
    assert!(screen.contains("[agent_1] ✓ write_file a.txt"), "{screen}");
}

#[test]
fn ctrl_c_ends_the_run_and_clears_the_live_region() {
    let command = format!("touch began; {UNTIL_GO}");
    let harness = Harness::new(Dialect::AnthropicMessages, &shell_call(&command));
    let mut terminal = Terminal::start(&harness.command("run", &["Wait"]));
    terminal.wait_for("a call", |screen| screen.contains("shell touch began") && is_spinning(screen));
    // The row is the same while the model writes the call.
    harness.wait_for_file("began");
    terminal.type_keys("\u{3}");
    let (code, screen, _) = terminal.finish();
    assert_eq!(code, Some(130), "{screen}");
    assert!(!is_spinning(&screen), "{screen}");
    assert!(screen.lines().any(|line| line.starts_with("pintle: interrupted")), "{screen}");
    assert!(screen.lines().any(|line| line.starts_with("✗ shell") && line.contains("cancelled")), "{screen}");
}

#[test]
fn the_key_of_an_interrupt_is_not_left_before_its_notice() {
    let command = format!("touch began; {UNTIL_GO}");
    let harness = Harness::new(Dialect::AnthropicMessages, &shell_call(&command));
    // Without a live region, the cursor is on an empty line.
    let mut terminal = Terminal::start(harness.command("run", &["Wait"]).env("TERM", "dumb"));
    harness.wait_for_file("began");
    terminal.type_keys("\u{3}");
    let (code, screen, _) = terminal.finish();
    assert_eq!(code, Some(130), "{screen}");
    assert!(screen.lines().any(|line| line.starts_with("pintle: interrupted")), "{screen}");
}

#[test]
fn ctrl_c_at_an_approval_ends_its_line() {
    let harness = Harness::new(Dialect::AnthropicMessages, TWO_WRITES);
    let mut terminal = Terminal::start(&harness.command("run", &["--mode", "ask", "Go"]));
    terminal.wait_for_text("what to do instead: ");
    terminal.type_keys("\u{3}");
    let (code, screen, _) = terminal.finish();
    assert_eq!(code, Some(130), "{screen}");
    assert!(screen.lines().any(|line| line.starts_with("pintle: interrupted")), "{screen}");
    assert!(!harness.path("a.txt").exists());
}

/// Script that asks a question with a tool and uses the answer.
const ONE_QUESTION: &str = "[[turn]]\n[[turn.call]]\ntool = \"ask_user\"\narguments = { question = \"Which port?\", options = [\"80\", \"8080\"] }\n[[turn]]\ntext = \"It is done.\"\n[[turn.expect]]\nrequest_contains = \"port 8080, please\"\n";

#[test]
fn tool_question_is_answered_at_the_terminal() {
    let harness = Harness::new(Dialect::ChatCompletions, ONE_QUESTION);
    let mut terminal = Terminal::start(&harness.command("run", &["Go"]));
    let screen = terminal.wait_for_text("\n> ");
    assert!(screen.contains("Which port?\n1. 80\n2. 8080\n") && !is_spinning(&screen), "{screen}");
    terminal.type_keys("port 8080, please\n");
    let (code, screen, _) = terminal.finish();
    assert_eq!(code, Some(0), "{screen}");
    assert!(screen.contains("> port 8080, please\n") && screen.contains("It is done."), "{screen}");
}

/// Script whose text ends with a question and that uses the answer.
const FINAL_QUESTION: &str = "[[turn]]\ntext = \"Shall I take port 80 or 8080?\"\n[[turn]]\ntext = \"It is done.\"\n[[turn.expect]]\nrequest_contains = \"port 8080, please\"\n";

#[test]
fn final_question_is_answered_at_the_terminal() {
    for (output, times) in [("text", 1), ("json", 1)] {
        let harness = Harness::new(Dialect::ChatCompletions, FINAL_QUESTION);
        let mut terminal = Terminal::start(&harness.command("run", &["--output", output, "Go"]));
        let screen = terminal.wait_for_text("\n> ");
        assert_eq!(screen.matches("Shall I take port 80 or 8080?").count(), times, "{screen}");
        terminal.type_keys("port 8080, please\n");
        let (code, screen, _) = terminal.finish();
        assert_eq!(code, Some(0), "{screen}");
        assert!(screen.contains("It is done."), "{screen}");
    }
}

#[test]
fn final_question_may_be_left_unanswered() {
    let harness = Harness::new(Dialect::ChatCompletions, FINAL_QUESTION);
    let mut terminal = Terminal::start(&harness.command("run", &["Go"]));
    terminal.wait_for_text("(type an answer, or press Enter to end)\n> ");
    terminal.type_keys("\n");
    let (code, screen, _) = terminal.finish();
    assert_eq!(code, Some(0), "{screen}");
    assert!(screen.contains("[done, with a question]"), "{screen}");
}

#[test]
fn ctrl_c_at_a_model_question_ends_the_run() {
    let harness = Harness::new(Dialect::ChatCompletions, ONE_QUESTION);
    let mut terminal = Terminal::start(&harness.command("run", &["Go"]));
    terminal.wait_for_text("\n> ");
    terminal.type_keys("\u{3}");
    let (code, screen, _) = terminal.finish();
    assert_eq!(code, Some(130), "{screen}");
    assert!(screen.contains("pintle: interrupted") && !screen.contains("It is done."), "{screen}");
}

#[test]
fn second_ctrl_c_clears_the_live_region() {
    let harness = Harness::new(
        Dialect::AnthropicMessages,
        &shell_call("trap '' TERM; touch began; until test -e go; do sleep 0.02; done"),
    );
    let mut terminal = Terminal::start(&harness.command("run", &["Wait"]));
    terminal.wait_for("a call", |screen| screen.contains("shell trap") && is_spinning(screen));
    harness.wait_for_file("began");
    terminal.type_keys("\u{3}");
    terminal.wait_for_text("interrupt again");
    terminal.type_keys("\u{3}");
    let (code, screen, _) = terminal.finish();
    assert_eq!(code, Some(130), "{screen}");
    assert!(!is_spinning(&screen), "{screen}");
}

#[test]
fn live_region_follows_the_window_size() {
    let command = "until test -e go; do sleep 0.02; done; echo a long command that is cut in a narrow window";
    let harness = Harness::new(Dialect::AnthropicMessages, &shell_call(command));
    let mut terminal = Terminal::run(&harness.command("run", &["Wait"]), 40, 12, |_| {});
    let is_truncated = |columns: usize| {
        move |screen: &str| {
            let line = screen.lines().find(|line| is_spinning(line) && line.contains("shell"));
            line.is_some_and(|line| {
                line.contains('…') && (columns - 8..columns).contains(&line.chars().count())
            })
        }
    };
    terminal.wait_for("a line truncated at 40 columns", is_truncated(40));
    terminal.resize(60, 8);
    terminal.wait_for("a line truncated at 60 columns", is_truncated(60));
    terminal.resize(30, 20);
    let screen = terminal.wait_for("a line truncated at 30 columns", is_truncated(30));
    assert_eq!(screen.lines().filter(|line| is_spinning(line)).count(), 1, "{screen}");
    std::fs::write(harness.path("go"), "").unwrap();
    terminal.resize(100, 20);
    let (code, screen, _) = terminal.finish();
    assert_eq!(code, Some(0), "{screen}");
    assert!(!is_spinning(&screen) && screen.contains("✓ shell until test"), "{screen}");
}

#[test]
fn no_color_and_dumb_terminals_are_respected() {
    let cases = [("LANG", "C", true, true), ("NO_COLOR", "1", true, false), ("TERM", "dumb", false, false)];
    for (name, value, moves, colours) in cases {
        let harness = Harness::new(Dialect::AnthropicMessages, &shell_call("sleep 0.4; echo went"));
        let mut command = harness.command("run", &["Wait"]);
        command.env(name, value);
        let (code, screen, bytes) = Terminal::start(&command).finish();
        assert_eq!(code, Some(0), "{screen}");
        assert_eq!(
            (bytes.contains("\u{1b}[J"), bytes.contains("\u{1b}[32m")),
            (moves, colours),
            "{name} {bytes:?}"
        );
        if !moves {
            assert!(!bytes.contains('\u{1b}') && screen.contains("[shell] sleep 0.4"), "{bytes:?}");
        }
    }
}

#[test]
fn piped_output_has_no_live_region() {
    let harness = Harness::new(Dialect::AnthropicMessages, &shell_call("sleep 0.4; echo went"));
    let mut out = tempfile::tempfile().unwrap();
    let file = out.try_clone().unwrap();
    let terminal = Terminal::run(&harness.command("run", &["Wait"]), 80, 24, |command| {
        command.stdout(Stdio::from(file));
    });
    let (code, screen, bytes) = terminal.finish();
    let mut piped = String::new();
    std::io::Seek::rewind(&mut out).unwrap();
    out.read_to_string(&mut piped).unwrap();
    let [screen, bytes] = [screen, bytes].map(|text| without_level_notice(&text));
    assert_eq!((code, screen.trim(), bytes.as_str()), (Some(0), "", ""));
    assert!(
        piped.starts_with("I wait.\n\n[shell] sleep 0.4; echo went (ok, ") && !piped.contains('\u{1b}'),
        "{piped:?}"
    );
}

#[test]
fn stopped_terminal_does_not_block_the_session() {
    let turns = shell_call(UNTIL_GO).replace(
        "[[turn]]\ntext = \"Done.\"",
        "[[turn]]\n[[turn.call]]\ntool = \"shell\"\narguments = { command = \"touch came\" }\n[[turn]]\ntext = \"Done.\"",
    );
    let harness = Harness::new(Dialect::AnthropicMessages, &turns);
    let mut terminal = Terminal::start(&harness.command("run", &["Wait"]));
    terminal.wait_for("a call that runs", |screen| {
        screen.contains("shell until test -e go") && is_spinning(screen)
    });
    // Ctrl-S, and later Ctrl-Q.
    terminal.type_keys("\u{13}");
    std::fs::write(harness.path("go"), "").unwrap();
    let deadline = Instant::now() + TIMEOUT;
    while !harness.path("came").exists() {
        assert!(Instant::now() < deadline, "the session is blocked");
        std::thread::sleep(Duration::from_millis(10));
    }
    terminal.type_keys("\u{11}");
    let (code, screen, _) = terminal.finish();
    assert_eq!(code, Some(0), "{screen}");
    assert!(!is_spinning(&screen) && screen.contains("✓ shell touch came"), "{screen}");
}

#[test]
fn closed_terminal_ends_the_run() {
    // A session leader receives SIGHUP; other processes only get an error when they write.
    for is_leader in [true, false] {
        let turns = shell_call("echo $$ > pid; until test -e go; do sleep 0.02; done");
        let harness = Harness::new(Dialect::AnthropicMessages, &turns);
        let command = harness.command("run", &["--no-sandbox", "Wait"]);
        let mut terminal =
            if is_leader { Terminal::start(&command) } else { Terminal::start_without_control(&command) };
        terminal.wait_for("a call that runs", |screen| {
            screen.contains("shell echo") && is_spinning(screen) && harness.path("pid").exists()
        });
        assert_eq!(terminal.hang_up(), Some(130), "{is_leader}");
        let pid = harness.read("pid");
        assert!(!std::path::Path::new("/proc").join(pid.trim()).exists(), "the command is still running");
    }
}
