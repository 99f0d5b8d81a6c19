//! `pintle attach` and `pintle sessions --server`, on a real pseudo-terminal and against a real server.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use pintle_testkit::Dialect;
use rustix::process::{Pid, Signal, kill_process};

use crate::harness::{Harness, pintle, run};
use crate::serve::{command, first_line};
use crate::terminal::Terminal;

/// A server on a unix socket, which another one can take over at the same address.
pub(crate) struct Socket<'a> {
    harness: &'a Harness,
    mode: &'a str,
    child: Child,
}

impl<'a> Socket<'a> {
    pub(crate) fn start(harness: &'a Harness, mode: &'a str) -> Self {
        Self { harness, mode, child: serve(harness, mode) }
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    fn start_again(&mut self) {
        self.child = serve(self.harness, self.mode);
    }

    /// Returns the command, which attaches with these arguments after the address.
    pub(crate) fn attach(&self, arguments: &[&str]) -> Command {
        let mut command = pintle(&["attach", &address(self.harness)]);
        command.args(arguments).env("XTERM_VERSION", "XTerm(390)");
        command.env("PINTLE_STATE_DIR", self.harness.path(".client"));
        command
    }

    pub(crate) fn begin(&self, arguments: &[&str]) -> Terminal {
        let mut terminal = Terminal::start(&self.attach(arguments));
        terminal.wait_for_text("say what to do");
        terminal
    }
}

impl Drop for Socket<'_> {
    fn drop(&mut self) {
        // The next session must not find it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn address(harness: &Harness) -> String {
    format!("unix:{}", harness.path("server.sock").display())
}

fn serve(harness: &Harness, mode: &str) -> Child {
    let path = harness.path("server.sock");
    let mut command = command(harness, &["--socket", path.to_str().unwrap()]);
    let mut child = command.env("PINTLE_MODE", mode).stdout(Stdio::piped()).spawn().unwrap();
    assert!(first_line(&mut child).starts_with("listening on "));
    child
}

/// Leaves, and returns the screen. The terminal must be as it was before.
pub(crate) fn leave(mut terminal: Terminal) -> String {
    terminal.type_keys("/quit\r");
    let (code, screen, output) = terminal.finish();
    assert_eq!(code, Some(0), "{screen}");
    assert!(output.contains("\u{1b}[?2004l") && !screen.contains("say what to do"), "{screen}");
    screen
}

#[test]
fn a_session_of_a_server_is_conversed_in() {
    let turns = "[[turn]]\ntext = \"I **look**.\"\n[[turn.call]]\ntool = \"shell\"\n\
                 arguments = { command = \"echo seen\" }\n[[turn]]\ntext = \"Found it.\"\n\
                 [[turn]]\ntext = \"You are welcome.\"\n";
    let harness = Harness::new(Dialect::AnthropicMessages, turns);
    let server = Socket::start(&harness, "auto");
    let none = run(&mut server.attach(&[]));
    assert!(none.code == Some(2) && none.stderr.contains("needs a terminal"), "{none:?}");
    let (code, screen, _) = Terminal::start(&server.attach(&[])).finish();
    assert!(code == Some(2) && screen.contains("--new"), "there is no session: {screen}");

    let mut terminal = server.begin(&["--new"]);
    terminal.type_keys("find it\r");
    let screen = terminal.wait_for_text("Found it.");
    assert!(screen.contains("› find it") && screen.contains("✓ shell echo seen"), "{screen}");
    terminal.type_keys("/status\r");
    terminal.wait_for_text(&format!(
        "directory: {}",
        harness.path("").display().to_string().trim_end_matches('/')
    ));
    terminal.type_keys("!ls\r");
    terminal.wait_for_text("not available while attached to a server");
    terminal.type_keys("\u{15}/diff\r");
    terminal.wait_for_text("/diff is not available");
    terminal.type_keys("\u{15}\u{14}");
    terminal.wait_for_text("looking through the conversation is not available");
    leave(terminal);

    // The newest session, with what was said before.
    let mut terminal = server.begin(&[]);
    let screen = terminal.wait_for_text("Found it.");
    for line in ["› find it", "I look.", "✓ shell echo seen", "Found it."] {
        assert_eq!(screen.matches(line).count(), 1, "{line}: {screen}");
    }
    terminal.type_keys("thank you\r");
    terminal.wait_for_text("You are welcome.");
    leave(terminal);

    let list =
        run(pintle(&["sessions", "list", "--server", &address(&harness)]).env("HOME", harness.path("")));
    let line = list.stdout.lines().next().unwrap();
    assert!(
        list.stdout.lines().count() == 1 && line.contains("  idle  ") && line.contains("find it"),
        "{list:?}"
    );
    let id = line.split(' ').next().unwrap();
    let arguments = ["sessions", "export", id, "--format", "markdown", "--server", &address(&harness)];
    let exported = run(&mut pintle(&arguments));
    assert!(exported.stdout.contains("You are welcome."), "{exported:?}");
    let shown = run(&mut pintle(&["sessions", "show", id, "--server", &address(&harness)]));
    assert_eq!(shown.stdout, exported.stdout);
    let arguments = ["sessions", "show", id, "--output", "json", "--server", &address(&harness)];
    let json: serde_json::Value = serde_json::from_str(&run(&mut pintle(&arguments)).stdout).unwrap();
    assert_eq!(json.pointer("/history/0/kind"), Some(&"user".into()), "{json}");
    assert!(json.to_string().contains("You are welcome."), "{json}");
    let missing = run(&mut pintle(&["sessions", "export", "none", "--server", &address(&harness)]));
    assert!(missing.code == Some(2) && missing.stderr.contains("has no session `none`"), "{missing:?}");
}

#[test]
fn rules_are_not_offered_for_calls_at_a_server() {
    let turns = "[[turn]]\n[[turn.call]]\ntool = \"shell\"\narguments = { command = \"touch a\" }\n\
                 [[turn]]\ntext = \"Ready.\"\n";
    let harness = Harness::new(Dialect::AnthropicMessages, turns);
    let server = Socket::start(&harness, "ask");
    let mut terminal = server.begin(&["--new"]);
    terminal.type_keys("go\r");
    let screen =
        terminal.wait_for("a question", |screen| screen.contains("touch a") && screen.contains("y once"));
    assert!(!screen.contains("for this session"), "rules cannot be added: {screen}");
    terminal.type_keys("n");
    terminal.wait_for_text("Ready.");
    leave(terminal);
}

#[test]
fn a_turn_goes_on_after_its_user_has_left() {
    let turns = "[[turn]]\ntext = \"I wait.\"\n[[turn.call]]\ntool = \"shell\"\n\
                 arguments = { command = \"until test -e go; do sleep 0.02; done\", timeout_ms = 600000 }\n\
                 [[turn]]\ntext = \"Done waiting.\"\n[[turn.call]]\ntool = \"shell\"\n\
                 arguments = { command = \"sleep 600\", timeout_ms = 600000 }\n\
                 [[turn]]\ntext = \"Still here.\"\n";
    let harness = Harness::new(Dialect::AnthropicMessages, turns);
    let server = Socket::start(&harness, "auto");
    let mut terminal = server.begin(&["--new"]);
    terminal.type_keys("go\r");
    terminal.wait_for_text("shell until test -e go");
    terminal.type_keys("\u{3}");
    terminal.wait_for_text("press Ctrl+C again");
    terminal.type_keys("\u{3}");
    let (code, screen, _) = terminal.finish();
    assert_eq!(code, Some(0), "{screen}");

    let mut terminal = server.begin(&[]);
    terminal.wait_for("the turn", |screen| {
        ["I wait.", "shell until test -e go", "Esc interrupts"].iter().all(|text| screen.contains(text))
    });
    terminal.type_keys("look at b.txt\r");
    terminal.wait_for_text("1 queued");
    // The session looks into its inbox twice a second.
    let has_taken = || {
        let arguments = ["-rq", "--include=0*.jsonl", "look at b.txt"];
        Command::new("grep").args(arguments).arg(harness.path(".state/sessions")).status().unwrap().success()
    };
    let end = Instant::now() + Duration::from_secs(60);
    while !has_taken() {
        assert!(Instant::now() < end, "the session does not take the message");
        std::thread::sleep(Duration::from_millis(20));
    }
    std::fs::write(harness.path("go"), "").unwrap();
    terminal.wait_for_text("› look at b.txt");
    terminal.wait_for_text("shell sleep 600");
    terminal.type_keys("\u{1b}");
    terminal.wait_for_text("✗ shell sleep 600 cancelled");
    terminal.type_keys("and now?\r");
    let screen = terminal.wait_for_text("Still here.");
    assert_eq!(screen.matches("Done waiting.").count(), 1, "{screen}");
    leave(terminal);
}

#[test]
fn a_terminal_stays_attached_while_its_server_is_restarted() {
    let turns = "[[turn]]\ntext = \"One.\"\n[[turn]]\n[[turn.call]]\ntool = \"shell\"\n\
                 arguments = { command = \"touch made\" }\n[[turn]]\ntext = \"Two.\"\n";
    let harness = Harness::new(Dialect::AnthropicMessages, turns);
    let mut server = Socket::start(&harness, "ask");
    let mut terminal = server.begin(&["--new"]);
    terminal.type_keys("first\r");
    terminal.wait_for_text("One.");
    terminal.type_keys("second\r");
    terminal.wait_for("a question", |screen| screen.contains("touch made") && screen.contains("y once"));
    server.kill();
    terminal.wait_for_text("[server] disconnected");
    server.start_again();
    terminal.wait_for_text("[server] connected again");
    terminal.wait_for("the question", |screen| screen.contains("touch made") && screen.contains("y once"));
    terminal.type_keys("y");
    let screen = terminal.wait_for_text("Two.");
    assert!(harness.path("made").exists());
    for line in ["› first", "One.", "› second", "Two."] {
        assert_eq!(screen.matches(line).count(), 1, "{line}: {screen}");
    }
    leave(terminal);
}

#[test]
fn lines_converse_with_a_server_too() {
    let turns = "[[turn]]\n[[turn.call]]\ntool = \"shell\"\narguments = { command = \"touch a\" }\n\
                 [[turn]]\ntext = \"Ready then.\"\n";
    let harness = Harness::new(Dialect::AnthropicMessages, turns);
    let server = Socket::start(&harness, "ask");
    let mut terminal = Terminal::start(server.attach(&["--new", "--plain"]).env("TERM", "dumb"));
    terminal.wait_for_text("attached to session");
    terminal.type_keys("go\r");
    terminal.wait_for_text("answer yes");
    terminal.type_keys("no, use a file\r");
    let screen = terminal.wait_for_text("Ready then.");
    assert!(screen.contains("[shell] touch a (denied, ") && !harness.path("a").exists(), "{screen}");
    terminal.type_keys("\u{4}");
    let (code, screen, output) = terminal.finish();
    assert!(code == Some(0) && !output.contains('\u{1b}'), "{screen}");
}

#[test]
fn what_cannot_be_attached_to_is_said() {
    let harness = Harness::new(Dialect::AnthropicMessages, "[[turn]]\ntext = \"Done.\"\n");
    let mut served = command(&harness, &["--listen", "127.0.0.1:0"]).stdout(Stdio::piped()).spawn().unwrap();
    let line = first_line(&mut served);
    let (url, token) = line.trim().split_once("#token=").unwrap();
    for (url, token, words) in [
        (url, "pintle_wrong", "the server refused the token"),
        (url, "", "the server refused the token"),
        ("ftp://host", "", "is not an address of a server"),
    ] {
        let mut list = pintle(&["sessions", "list", "--server", url]);
        let output = run(list.env("PINTLE_TOKEN", token));
        assert!(output.code != Some(0) && output.stderr.contains(words), "{url}: {output:?}");
    }
    for (url, variable) in [(line.trim(), "pintle_wrong"), (url, token)] {
        let mut list = pintle(&["sessions", "list", "--server", url]);
        let output = run(list.env("PINTLE_TOKEN", variable));
        assert_eq!(
            (output.code, output.stdout.as_str()),
            (Some(0), "the server has no sessions\n"),
            "{output:?}"
        );
    }
    let pid = Pid::from_raw(i32::try_from(served.id()).unwrap()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    assert_eq!(served.wait().unwrap().code(), Some(0));
    let arguments = ["sessions", "list", "--server", line.trim()];
    let gone = run(&mut pintle(&arguments));
    assert!(gone.code == Some(1) && gone.stderr.contains("cannot connect to 127.0.0.1"), "{gone:?}");
    assert!(!gone.stderr.contains(token), "{gone:?}");
}
