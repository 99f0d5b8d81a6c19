//! A person at a terminal: a real one, with a size, a keyboard and a controlling process.

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
use rustix::termios::{Winsize, tcsetwinsize};
use vt100::Parser;

use crate::lab::Model;
use crate::subagents::BOTH_WRITE;

/// How long something may take that usually takes a moment.
const PATIENCE: Duration = Duration::from_secs(60);

/// A terminal, and the process that runs in it.
pub(crate) struct Terminal {
    keyboard: File,
    screen: Arc<Screen>,
    child: Child,
    reader: Option<JoinHandle<()>>,
}

/// What the terminal shows, and all that it was sent.
struct Screen {
    shown: Mutex<(Parser, Vec<u8>)>,
    changed: Condvar,
    /// Whether it is closed before the process ends.
    closing: AtomicBool,
}

/// How long the reader looks for output before it looks whether to go on.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

impl Terminal {
    /// Runs the command as the leader of a session at a terminal of its own.
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

    fn run_as(
        mut in_session: Command,
        command: &Command,
        columns: u16,
        rows: u16,
        redirect: impl FnOnce(&mut Command),
    ) -> Self {
        let (master, slave) = pair();
        resize(&master, columns, rows);
        in_session.args(command.get_args()).env_clear().env("TERM", "xterm-256color");
        for (name, value) in command.get_envs() {
            if let Some(value) = value {
                in_session.env(name, value);
            }
        }
        in_session.stdin(slave.try_clone().unwrap()).stdout(slave.try_clone().unwrap()).stderr(slave);
        redirect(&mut in_session);
        let child = in_session.spawn().expect("setsid runs");
        // It holds the other end of the terminal open.
        drop(in_session);
        let keyboard = File::from(master);
        let parser = Parser::new(cells(rows), cells(columns), 1_000);
        let screen = Arc::new(Screen {
            shown: Mutex::new((parser, Vec::new())),
            changed: Condvar::new(),
            closing: AtomicBool::new(false),
        });
        let (shown, mut output) = (Arc::clone(&screen), keyboard.try_clone().unwrap());
        let reader = std::thread::spawn(move || shown.follow(&mut output));
        Self { keyboard, screen, child, reader: Some(reader) }
    }

    pub(crate) fn start(command: &Command) -> Self {
        Self::run(command, 80, 24, |_| {})
    }

    pub(crate) fn types(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    fn resize(&self, columns: u16, rows: u16) {
        self.screen.shown.lock().unwrap().0.screen_mut().set_size(cells(rows), cells(columns));
        resize(&self.keyboard, columns, rows);
    }

    /// Waits until the screen is as it is wanted, and gives it.
    pub(crate) fn wait_for(&mut self, what: &str, is_there: impl Fn(&str) -> bool) -> String {
        let shown = self.screen.shown.lock().unwrap();
        let waiting = |shown: &mut (Parser, Vec<u8>)| !is_there(&shown.0.screen().contents());
        let (shown, waited) = self.screen.changed.wait_timeout_while(shown, PATIENCE, waiting).unwrap();
        let contents = shown.0.screen().contents();
        drop(shown);
        if waited.timed_out() {
            let _ = self.child.kill();
            panic!("no {what}:\n{contents}");
        }
        contents
    }

    pub(crate) fn wait_for_text(&mut self, text: &str) -> String {
        self.wait_for(text, |screen| screen.contains(text))
    }

    /// Waits for the end; gives the exit code, the screen, and all bytes.
    pub(crate) fn ends(mut self) -> (Option<i32>, String, String) {
        let code = self.child.wait().unwrap().code();
        self.reader.take().unwrap().join().unwrap();
        let shown = self.screen.shown.lock().unwrap();
        (code, shown.0.screen().contents(), String::from_utf8_lossy(&shown.1).into_owned())
    }
}

impl Screen {
    /// Until the last process has closed the terminal, or it is to be closed.
    fn follow(&self, output: &mut File) {
        let mut buffer = [0; 4096];
        while !self.closing.load(Ordering::Relaxed) {
            let mut ready = [PollFd::new(output, PollFlags::IN)];
            if poll(&mut ready, Some(&LOOK)).unwrap() == 0 {
                continue;
            }
            // What is read when nobody is left is an error.
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

/// The two ends of a terminal.
fn pair() -> (OwnedFd, OwnedFd) {
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

/// A call that runs until the file `go` is there.
fn waiting_call(command: &str) -> String {
    format!(
        "[[turn]]\ntext = \"I wait.\"\n[[turn.call]]\ntool = \"shell\"\narguments = {{ command = \"{command}\", timeout_ms = 600000 }}\n[[turn]]\ntext = \"Done.\"\n"
    )
}

const UNTIL_GO: &str = "until test -e go; do sleep 0.02; done; echo went";

fn is_spinning(screen: &str) -> bool {
    screen.contains("⠋") || screen.chars().any(|character| ('\u{2801}'..='\u{28ff}').contains(&character))
}

#[test]
fn what_waits_is_shown_and_erased() {
    let turns =
        format!("[[turn]]\nfailure = [{{ stall_ms = 400, status = 503 }}]\n{}", &waiting_call(UNTIL_GO)[9..]);
    let model = Model::new(Dialect::AnthropicMessages, &turns);
    let mut terminal = Terminal::start(&model.command("run", &["Wait"]));
    terminal.wait_for_text("waiting for the model");
    terminal.wait_for("a call that runs", |screen| {
        screen.contains("shell until test -e go") && is_spinning(screen)
    });
    std::fs::write(model.path("go"), "").unwrap();
    let (code, screen, _) = terminal.ends();
    assert_eq!(code, Some(0), "{screen}");
    assert!(!is_spinning(&screen) && !screen.contains("waiting"), "{screen}");
    let lines: Vec<&str> =
        screen.lines().filter(|line| !line.starts_with("[warning]") && !line.is_empty()).collect();
    assert!(lines[0] == "I wait." && lines[1].starts_with("✓ shell until test -e go"), "{screen}");
    assert!(lines.contains(&"    went") && lines.contains(&"Done."), "{screen}");
    assert!(lines.last().unwrap().starts_with("[done] 2 model calls, 1 tool call"), "{screen}");
}

#[test]
fn what_is_typed_while_it_works_does_not_reach_the_shell() {
    let model = Model::new(Dialect::AnthropicMessages, &waiting_call(UNTIL_GO));
    let command = model.command("run", &["Wait"]);
    let mut shell = Command::new("setsid");
    let script = "\"$0\" \"$@\"; read -r line; echo \"the shell got: $line\"";
    shell.args(["--wait", "--ctty", "sh", "-c", script]).arg(command.get_program());
    let mut terminal = Terminal::run_as(shell, &command, 80, 24, |_| {});
    terminal.wait_for("a call that runs", is_spinning);
    terminal.types("rm -rf important\n");
    std::fs::write(model.path("go"), "").unwrap();
    terminal.wait_for_text("[done]");
    // The shell may read only once the command has ended.
    std::thread::sleep(Duration::from_secs(1));
    terminal.types("true\n");
    let (code, screen, _) = terminal.ends();
    assert_eq!(code, Some(0), "{screen}");
    assert!(screen.contains("the shell got: true"), "{screen}");
}

#[test]
fn a_patch_is_seen_while_the_model_writes_it() {
    let lines: String = (0..40).map(|number| format!("+line {number}\n")).collect();
    let turns = format!(
        "[[turn]]\npause_ms = 100\n[[turn.call]]\ntool = \"apply_patch\"\narguments = {{ patch = '''\n*** Begin Patch\n*** Add File: a.txt\n{lines}*** End Patch\n''' }}\n[[turn]]\ntext = \"Done.\"\n"
    );
    let model = Model::new(Dialect::OpenAiResponses, &turns);
    let mut terminal = Terminal::start(&model.command("run", &["Write"]));
    terminal.wait_for("a diff that grows", |screen| {
        is_spinning(screen) && screen.contains("apply_patch a.txt +") && screen.contains("    +line 1")
    });
    let (code, screen, _) = terminal.ends();
    assert_eq!(code, Some(0), "{screen}");
    assert!(!is_spinning(&screen) && screen.contains("    +line 39"), "{screen}");
    assert_eq!(model.read("a.txt").lines().count(), 40);
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
fn a_person_says_yes_and_no() {
    let model = Model::new(Dialect::AnthropicMessages, TWO_WRITES);
    let mut terminal = Terminal::start(&model.command("run", &["--approve", "writes", "Go"]));
    let question = "what to do instead: ";
    let screen = terminal.wait_for_text(question);
    // Both calls are prepared at the same time, so either may be asked about first.
    let a_is_first = screen.contains("+hello");
    assert!(a_is_first != screen.contains("+world") && !is_spinning(&screen), "{screen}");
    assert!(!model.path("a.txt").exists());
    terminal.types(if a_is_first { "y\n" } else { "n\n" });
    let screen = terminal.wait_for("a second question", |screen| screen.matches(question).count() == 2);
    assert!(screen.contains("+hello") && screen.contains("+world") && !is_spinning(&screen), "{screen}");
    terminal.types(if a_is_first { "n\n" } else { "y\n" });
    let (code, screen, _) = terminal.ends();
    assert_eq!(code, Some(0), "{screen}");
    assert!(model.path("a.txt").exists() && !model.path("b.txt").exists(), "{screen}");
    for answer in ["y", "n"] {
        assert!(screen.contains(&format!("{question}{answer}\n")), "{screen}");
    }
    assert!(
        screen.contains("✓ write_file a.txt") && screen.contains("✗ write_file b.txt denied"),
        "{screen}"
    );
    assert!(screen.contains("So be it."), "{screen}");
}

/// The session and its subagent both ask, and the calls of both have the same ids.
#[test]
fn a_person_is_asked_about_the_calls_of_subagents_too() {
    let model = Model::new(Dialect::AnthropicMessages, BOTH_WRITE);
    std::fs::create_dir(model.path("sub")).unwrap();
    let mut terminal = Terminal::run(&model.command("run", &["--approve", "writes", "Go"]), 100, 60, |_| {});
    let question = "what to do instead: ";
    terminal.wait_for_text(question);
    terminal.types("y\n");
    terminal.wait_for("the other question", |screen| screen.matches(question).count() == 2);
    terminal.types("y\n");
    let (code, screen, _) = terminal.ends();
    assert_eq!(code, Some(0), "{screen}");
    assert!(model.path("a.txt").exists() && model.path("sub/a.txt").exists(), "{screen}");
    assert!(screen.contains("\nagent_1: write_file (") && screen.contains("\nwrite_file ("), "{screen}");
    assert!(screen.contains("[agent_1] ✓ write_file a.txt"), "{screen}");
}

#[test]
fn ctrl_c_ends_the_run_and_leaves_the_screen_in_order() {
    let model = Model::new(Dialect::AnthropicMessages, &waiting_call(UNTIL_GO));
    let mut terminal = Terminal::start(&model.command("run", &["Wait"]));
    terminal.wait_for("a call that runs", |screen| {
        screen.contains("shell until test -e go") && is_spinning(screen)
    });
    terminal.types("\u{3}");
    let (code, screen, _) = terminal.ends();
    assert_eq!(code, Some(130), "{screen}");
    assert!(!is_spinning(&screen), "{screen}");
    assert!(screen.lines().any(|line| line.starts_with("pintle: interrupted")), "{screen}");
    assert!(screen.lines().any(|line| line.starts_with("✗ shell") && line.contains("cancelled")), "{screen}");
}

#[test]
fn ctrl_c_at_a_question_ends_its_line() {
    let model = Model::new(Dialect::AnthropicMessages, TWO_WRITES);
    let mut terminal = Terminal::start(&model.command("run", &["--approve", "writes", "Go"]));
    terminal.wait_for_text("what to do instead: ");
    terminal.types("\u{3}");
    let (code, screen, _) = terminal.ends();
    assert_eq!(code, Some(130), "{screen}");
    assert!(screen.lines().any(|line| line.starts_with("pintle: interrupted")), "{screen}");
    assert!(!model.path("a.txt").exists());
}

/// A model that asks, and goes on with the answer.
const ONE_QUESTION: &str = "[[turn]]\n[[turn.call]]\ntool = \"ask_user\"\narguments = { question = \"Which port?\", options = [\"80\", \"8080\"] }\n[[turn]]\ntext = \"It is done.\"\n[[turn.expect]]\nrequest_contains = \"port 8080, please\"\n";

#[test]
fn a_question_of_the_model_is_answered_at_the_terminal() {
    let model = Model::new(Dialect::ChatCompletions, ONE_QUESTION);
    let mut terminal = Terminal::start(&model.command("run", &["Go"]));
    let screen = terminal.wait_for_text("\n> ");
    assert!(screen.contains("Which port?\n1. 80\n2. 8080\n") && !is_spinning(&screen), "{screen}");
    terminal.types("port 8080, please\n");
    let (code, screen, _) = terminal.ends();
    assert_eq!(code, Some(0), "{screen}");
    assert!(screen.contains("> port 8080, please\n") && screen.contains("It is done."), "{screen}");
}

/// A model whose last sentence asks, and that goes on with the answer.
const FINAL_QUESTION: &str = "[[turn]]\ntext = \"Shall I take port 80 or 8080?\"\n[[turn]]\ntext = \"It is done.\"\n[[turn.expect]]\nrequest_contains = \"port 8080, please\"\n";

#[test]
fn a_final_question_is_answered_at_the_terminal() {
    for (output, times) in [("text", 1), ("json", 1)] {
        let model = Model::new(Dialect::ChatCompletions, FINAL_QUESTION);
        let mut terminal = Terminal::start(&model.command("run", &["--output", output, "Go"]));
        let screen = terminal.wait_for_text("\n> ");
        assert_eq!(screen.matches("Shall I take port 80 or 8080?").count(), times, "{screen}");
        terminal.types("port 8080, please\n");
        let (code, screen, _) = terminal.ends();
        assert_eq!(code, Some(0), "{screen}");
        assert!(screen.contains("It is done."), "{screen}");
    }
}

#[test]
fn a_final_question_may_stay_without_an_answer() {
    let model = Model::new(Dialect::ChatCompletions, FINAL_QUESTION);
    let mut terminal = Terminal::start(&model.command("run", &["Go"]));
    terminal.wait_for_text("(an answer, or an empty line to end)\n> ");
    terminal.types("\n");
    let (code, screen, _) = terminal.ends();
    assert_eq!(code, Some(0), "{screen}");
    assert!(screen.contains("[done, with a question]"), "{screen}");
}

#[test]
fn ctrl_c_at_a_question_of_the_model_ends_the_run() {
    let model = Model::new(Dialect::ChatCompletions, ONE_QUESTION);
    let mut terminal = Terminal::start(&model.command("run", &["Go"]));
    terminal.wait_for_text("\n> ");
    terminal.types("\u{3}");
    let (code, screen, _) = terminal.ends();
    assert_eq!(code, Some(130), "{screen}");
    assert!(screen.contains("pintle: interrupted") && !screen.contains("It is done."), "{screen}");
}

#[test]
fn a_second_ctrl_c_leaves_nothing_that_changes_behind() {
    let model = Model::new(
        Dialect::AnthropicMessages,
        &waiting_call("trap '' TERM; until test -e go; do sleep 0.02; done"),
    );
    let mut terminal = Terminal::start(&model.command("run", &["Wait"]));
    terminal.wait_for("a call that runs", |screen| screen.contains("shell trap") && is_spinning(screen));
    terminal.types("\u{3}");
    terminal.wait_for_text("once more");
    terminal.types("\u{3}");
    let (code, screen, _) = terminal.ends();
    assert_eq!(code, Some(130), "{screen}");
    assert!(!is_spinning(&screen), "{screen}");
}

#[test]
fn a_window_may_be_narrow_and_change() {
    let command = "until test -e go; do sleep 0.02; done; echo a long command that is cut in a narrow window";
    let model = Model::new(Dialect::AnthropicMessages, &waiting_call(command));
    let mut terminal = Terminal::run(&model.command("run", &["Wait"]), 40, 12, |_| {});
    let cut = |columns: usize| {
        move |screen: &str| {
            let line = screen.lines().find(|line| is_spinning(line) && line.contains("shell"));
            line.is_some_and(|line| {
                line.contains('…') && (columns - 8..columns).contains(&line.chars().count())
            })
        }
    };
    terminal.wait_for("a line that is cut at 40 columns", cut(40));
    terminal.resize(60, 8);
    terminal.wait_for("a line that is cut at 60 columns", cut(60));
    terminal.resize(30, 20);
    let screen = terminal.wait_for("a line that is cut at 30 columns", cut(30));
    assert_eq!(screen.lines().filter(|line| is_spinning(line)).count(), 1, "{screen}");
    std::fs::write(model.path("go"), "").unwrap();
    terminal.resize(100, 20);
    let (code, screen, _) = terminal.ends();
    assert_eq!(code, Some(0), "{screen}");
    assert!(!is_spinning(&screen) && screen.contains("✓ shell until test"), "{screen}");
}

#[test]
fn without_colour_and_on_a_dumb_terminal_it_is_plainer() {
    let rows = [("LANG", "C", true, true), ("NO_COLOR", "1", true, false), ("TERM", "dumb", false, false)];
    for (name, value, moves, colours) in rows {
        let model = Model::new(Dialect::AnthropicMessages, &waiting_call("sleep 0.4; echo went"));
        let mut command = model.command("run", &["Wait"]);
        command.env(name, value);
        let (code, screen, bytes) = Terminal::start(&command).ends();
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
fn standard_output_that_is_piped_has_nothing_that_changes() {
    let model = Model::new(Dialect::AnthropicMessages, &waiting_call("sleep 0.4; echo went"));
    let mut out = tempfile::tempfile().unwrap();
    let file = out.try_clone().unwrap();
    let terminal = Terminal::run(&model.command("run", &["Wait"]), 80, 24, |command| {
        command.stdout(Stdio::from(file));
    });
    let (code, screen, bytes) = terminal.ends();
    let mut piped = String::new();
    std::io::Seek::rewind(&mut out).unwrap();
    out.read_to_string(&mut piped).unwrap();
    assert_eq!((code, screen.trim(), bytes.as_str()), (Some(0), "", ""));
    assert!(
        piped.starts_with("I wait.\n\n[shell] sleep 0.4; echo went (ok, ") && !piped.contains('\u{1b}'),
        "{piped:?}"
    );
}

#[test]
fn a_terminal_that_takes_nothing_does_not_hold_up_the_work() {
    let turns = waiting_call(UNTIL_GO).replace(
        "[[turn]]\ntext = \"Done.\"",
        "[[turn]]\n[[turn.call]]\ntool = \"shell\"\narguments = { command = \"touch came\" }\n[[turn]]\ntext = \"Done.\"",
    );
    let model = Model::new(Dialect::AnthropicMessages, &turns);
    let mut terminal = Terminal::start(&model.command("run", &["Wait"]));
    terminal.wait_for("a call that runs", |screen| {
        screen.contains("shell until test -e go") && is_spinning(screen)
    });
    // Ctrl-S, and later Ctrl-Q.
    terminal.types("\u{13}");
    std::fs::write(model.path("go"), "").unwrap();
    let give_up = Instant::now() + PATIENCE;
    while !model.path("came").exists() {
        assert!(Instant::now() < give_up, "the session stands still");
        std::thread::sleep(Duration::from_millis(10));
    }
    terminal.types("\u{11}");
    let (code, screen, _) = terminal.ends();
    assert_eq!(code, Some(0), "{screen}");
    assert!(!is_spinning(&screen) && screen.contains("✓ shell touch came"), "{screen}");
}

#[test]
fn a_terminal_that_goes_away_ends_the_run() {
    // The leader of its session gets a signal, any other process only an error when it writes.
    for is_leader in [true, false] {
        let turns = waiting_call("echo $$ > pid; until test -e go; do sleep 0.02; done");
        let model = Model::new(Dialect::AnthropicMessages, &turns);
        let command = model.command("run", &["Wait"]);
        let mut terminal = if is_leader {
            Terminal::start(&command)
        } else {
            Terminal::run_as(Command::new(command.get_program()), &command, 80, 24, |_| {})
        };
        terminal.wait_for("a call that runs", |screen| {
            screen.contains("shell echo") && is_spinning(screen) && model.path("pid").exists()
        });
        let Terminal { keyboard, screen, mut child, reader } = terminal;
        screen.closing.store(true, Ordering::Relaxed);
        reader.unwrap().join().unwrap();
        drop(keyboard);
        assert_eq!(child.wait().unwrap().code(), Some(130), "{is_leader}");
        let pid = model.read("pid");
        assert!(!std::path::Path::new("/proc").join(pid.trim()).exists(), "the command is gone, too");
    }
}
