//! The conversation in a terminal multiplexer, as users have it: keys by name, and the screen as it shows it.

use std::time::{Duration, Instant};

use super::*;

/// Deadline for anything that normally happens at once.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Server of its own, which ends with the test.
struct Tmux {
    socket: std::path::PathBuf,
}

impl Tmux {
    /// Runs a command in a window of this size.
    fn start(harness: &Harness, command: &Command, columns: u16, rows: u16) -> Self {
        let tmux = Self { socket: harness.path("tmux.socket") };
        let mut start = tmux.command(&["new-session", "-d"]);
        start.args(["-x", &columns.to_string(), "-y", &rows.to_string(), "env"]);
        // The terminal is what the multiplexer says that it is.
        let variables = command.get_envs().filter(|(name, _)| *name != "XTERM_VERSION");
        for (name, value) in variables.filter_map(|(name, value)| Some((name, value?))) {
            start.arg(format!("{}={}", name.to_str().unwrap(), value.to_str().unwrap()));
        }
        let started = start.arg(command.get_program()).args(command.get_args()).status().unwrap();
        assert!(started.success(), "{started}");
        tmux
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(&self.socket).args(["-f", "/dev/null"]).args(arguments);
        command
    }

    fn keys(&self, keys: &[&str]) {
        assert!(self.command(&["send-keys"]).args(keys).status().unwrap().success(), "{keys:?}");
    }

    fn screen(&self) -> String {
        let output = self.command(&["capture-pane", "-p"]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    fn wait_for(&self, what: &str, is_shown: impl Fn(&str) -> bool) -> String {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let screen = self.screen();
            if is_shown(&screen) {
                return screen;
            }
            assert!(Instant::now() < deadline, "{what} did not appear:\n{screen}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn wait_for_text(&self, text: &str) -> String {
        self.wait_for(text, |screen| screen.contains(text))
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        // It has ended already if its only command has.
        let _ = self.command(&["kill-server"]).output();
    }
}

/// Process that has the session.
#[derive(Clone, Copy, PartialEq)]
enum Side {
    ThisProcess,
    #[cfg(all(feature = "client", feature = "server"))]
    Server,
}

fn converses(side: Side, columns: u16, rows: u16) {
    if !pintle_test_conditions::TMUX.is_present() {
        return;
    }
    let turns = "[[turn]]\ntext = \"I **look**.\"\n[[turn.call]]\ntool = \"shell\"\n\
                 arguments = { command = \"touch made\" }\n[[turn]]\ntext = \"Made it.\"\n\
                 [[turn]]\ntext = \"You are welcome.\"\n";
    let harness = Harness::new(Dialect::AnthropicMessages, turns);
    #[cfg(all(feature = "client", feature = "server"))]
    let server = (side == Side::Server).then(|| crate::attach::Socket::start(&harness, "ask"));
    let command = match side {
        Side::ThisProcess => chat(&harness, &["--mode", "ask"]),
        #[cfg(all(feature = "client", feature = "server"))]
        Side::Server => server.as_ref().unwrap().attach(&["--new"]),
    };
    let tmux = Tmux::start(&harness, &command, columns, rows);
    tmux.wait_for_text("say what to do");
    tmux.keys(&["-l", "make it"]);
    tmux.keys(&["Enter"]);
    let screen = tmux.wait_for("a question", |screen| screen.contains("y once") && screen.contains("n no"));
    assert!(!harness.path("made").exists(), "{screen}");
    tmux.keys(&["y"]);
    tmux.wait_for("the end of the turn", |screen| {
        screen.contains("Made it.") && screen.contains("say what to do")
    });
    assert!(harness.path("made").exists());
    // Escape alone, arrows, and keys with modifiers.
    tmux.keys(&["-l", "thank"]);
    tmux.keys(&["C-j"]);
    tmux.keys(&["-l", "you"]);
    tmux.wait_for("two rows", |screen| screen.contains("› thank\n  you"));
    tmux.keys(&["Enter"]);
    tmux.wait_for_text("You are welcome.");
    tmux.keys(&["Up"]);
    tmux.wait_for("the input of before", |screen| screen.matches("› thank").count() == 2);
    tmux.keys(&["C-c"]);
    tmux.wait_for_text("say what to do");
    tmux.keys(&["C-t"]);
    match side {
        Side::ThisProcess => {
            tmux.wait_for_text("q closes");
            tmux.keys(&["q"]);
        }
        #[cfg(all(feature = "client", feature = "server"))]
        Side::Server => drop(tmux.wait_for_text("looking through the conversation")),
    }
    let screen = tmux.wait_for_text("say what to do");
    assert!(screen.lines().all(|line| line.chars().count() <= columns.into()), "{screen}");
    tmux.keys(&["-l", "/quit"]);
    tmux.keys(&["Enter"]);
    let gone = Instant::now() + TIMEOUT;
    while tmux.command(&["has-session"]).output().unwrap().status.success() {
        assert!(Instant::now() < gone, "the conversation goes on:\n{}", tmux.screen());
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn conversation_in_a_window_of_80_by_24() {
    converses(Side::ThisProcess, 80, 24);
}

#[test]
fn conversation_in_a_window_of_40_by_12() {
    converses(Side::ThisProcess, 40, 12);
}

#[cfg(all(feature = "client", feature = "server"))]
#[test]
fn conversation_with_a_server_in_a_window_of_80_by_24() {
    converses(Side::Server, 80, 24);
}

#[cfg(all(feature = "client", feature = "server"))]
#[test]
fn conversation_with_a_server_in_a_window_of_40_by_12() {
    converses(Side::Server, 40, 12);
}
