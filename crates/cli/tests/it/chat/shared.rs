//! Scripts that run in a session of the same process and in a session of a server.

use super::*;
#[cfg(all(feature = "client", feature = "server"))]
use crate::attach::{self, Socket};

/// Keys of a user, and the expected screens.
struct Script {
    /// Turns of the model.
    turns: String,
    mode: &'static str,
    play: fn(&Harness, &mut Terminal),
}

impl Script {
    fn harness(&self) -> Harness {
        Harness::new(Dialect::AnthropicMessages, &self.turns)
    }

    fn in_this_process(&self) {
        let harness = self.harness();
        let mut terminal = begin(&harness, &["--mode", self.mode]);
        (self.play)(&harness, &mut terminal);
        leave(terminal);
    }

    #[cfg(all(feature = "client", feature = "server"))]
    fn on_a_server(&self) {
        let harness = self.harness();
        let server = Socket::start(&harness, self.mode);
        let mut terminal = server.begin(&["--new"]);
        (self.play)(&harness, &mut terminal);
        attach::leave(terminal);
    }
}

fn call(command: &str) -> String {
    format!("[[turn]]\n[[turn.call]]\ntool = \"shell\"\narguments = {{ command = \"{command}\" }}\n")
}

fn conversation() -> Script {
    let turns = "[[turn]]\ntext = \"I **look**.\"\n[[turn.call]]\ntool = \"shell\"\n\
                 arguments = { command = \"echo seen\" }\n[[turn]]\ntext = \"Found it.\"\n\
                 [[turn]]\ntext = \"You are welcome.\"\n";
    let play = |_: &Harness, terminal: &mut Terminal| {
        terminal.type_keys("find it\r");
        let screen = terminal.wait_for_text("Found it.");
        assert!(screen.contains("✓ shell echo seen"), "{screen}");
        terminal.type_keys("thank you\r");
        let screen = terminal.wait_for_text("You are welcome.");
        for line in ["› find it", "I look.", "Found it.", "› thank you", "You are welcome."] {
            assert_eq!(count(&screen, line), 1, "{line}: {screen}");
        }
        terminal.type_keys("/model\r");
        terminal.wait_for_text("model: ");
        terminal.type_keys("/mode\r");
        terminal.wait_for_text("mode: auto");
    };
    Script { turns: turns.to_owned(), mode: "auto", play }
}

fn decisions() -> Script {
    let turns = call("touch a") + &call("touch b") + "[[turn]]\ntext = \"Ready.\"\n";
    let play = |harness: &Harness, terminal: &mut Terminal| {
        let asks =
            |command: &'static str| move |screen: &str| screen.contains(command) && screen.contains("y once");
        terminal.type_keys("go\r");
        terminal.wait_for("a question", asks("touch a"));
        assert!(!harness.path("a").exists());
        terminal.type_keys("y");
        terminal.wait_for("another question", asks("touch b"));
        assert!(harness.path("a").exists());
        terminal.type_keys("wuse a file\r");
        let screen = terminal.wait_for_text("Ready.");
        assert!(screen.contains("✗ shell touch b denied") && screen.contains("use a file"), "{screen}");
        assert!(!harness.path("b").exists());
    };
    Script { turns, mode: "ask", play }
}

fn interruption() -> Script {
    let turns = "[[turn]]\ntext = \"I wait.\"\n[[turn.call]]\ntool = \"shell\"\n\
                 arguments = { command = \"sleep 600\", timeout_ms = 600000 }\n[[turn]]\ntext = \"Still here.\"\n";
    let play = |_: &Harness, terminal: &mut Terminal| {
        terminal.type_keys("go\r");
        terminal.wait_for("the turn", |screen| {
            screen.contains("shell sleep 600") && screen.contains("Esc interrupts")
        });
        terminal.type_keys("\u{1b}");
        terminal.wait_for_text("✗ shell sleep 600 cancelled");
        terminal.type_keys("and now?\r");
        terminal.wait_for_text("Still here.");
    };
    Script { turns: turns.to_owned(), mode: "auto", play }
}

#[test]
fn a_session_of_this_process_is_conversed_in() {
    conversation().in_this_process();
}

#[test]
fn calls_of_this_process_are_decided() {
    decisions().in_this_process();
}

#[test]
fn a_turn_of_this_process_is_interrupted() {
    interruption().in_this_process();
}

#[cfg(all(feature = "client", feature = "server"))]
#[test]
fn a_session_of_a_server_is_conversed_in() {
    conversation().on_a_server();
}

#[cfg(all(feature = "client", feature = "server"))]
#[test]
fn calls_of_a_server_are_decided() {
    decisions().on_a_server();
}

#[cfg(all(feature = "client", feature = "server"))]
#[test]
fn a_turn_of_a_server_is_interrupted() {
    interruption().on_a_server();
}
