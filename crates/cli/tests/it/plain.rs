//! The conversation in lines, on a real pseudo-terminal.

use std::process::Command;

use pintle_testkit::Dialect;

use crate::harness::{Harness, run};
use crate::terminal::Terminal;

/// Returns the command on a terminal of this name, with a state of its own.
fn chat(harness: &Harness, term: &str, arguments: &[&str]) -> Command {
    let mut command = harness.command("chat", arguments);
    command.arg("--plain").env("TERM", term).env("PINTLE_STATE_DIR", harness.path(".state"));
    command.env("PINTLE_MODE", "auto");
    command
}

/// Waits for the command to end by itself, and returns the screen. Nothing but text was written.
fn finish(terminal: Terminal) -> String {
    let (code, screen, output) = terminal.finish();
    assert_eq!(code, Some(0), "{screen}");
    assert!(!output.contains('\u{1b}'), "{output:?}");
    screen
}

fn shell(command: &str) -> String {
    format!(
        "[[turn]]\ntext = \"I look.\"\n[[turn.call]]\ntool = \"shell\"\n\
         arguments = {{ command = \"{command}\", timeout_ms = 600000 }}\n"
    )
}

fn ready_times(count: usize) -> impl Fn(&str) -> bool {
    move |screen| screen.matches("— ready").count() == count
}

#[test]
fn a_conversation_in_lines_writes_text_only() {
    for term in ["xterm-256color", "dumb", ""] {
        let turns = shell("echo seen")
            + "[[turn]]\ntext = \"Found **it**.\"\n[[turn]]\ntext = \"You are welcome.\"\n";
        let harness = Harness::new(Dialect::AnthropicMessages, &turns);
        let mut terminal = Terminal::start(&chat(&harness, term, &[]));
        terminal.wait_for("the beginning", ready_times(1));
        terminal.type_keys("find it \\\rsoon\r");
        let screen = terminal.wait_for("the end of the turn", ready_times(2));
        assert!(screen.contains("[shell] echo seen (ok, ") && screen.contains("    seen"), "{screen}");
        assert!(screen.contains("I look.\n") && screen.contains("Found **it**.\n"), "{screen}");
        assert!(!screen.contains("› find it"), "what was typed is not repeated: {screen}");
        terminal.type_keys("thank you\r");
        terminal.wait_for("the end of the next turn", ready_times(3));
        terminal.type_keys("/status\r!echo mine\r");
        terminal.wait_for("the command and its output", |screen| {
            ["directory: ", "! echo mine exit 0", "    mine"].iter().all(|text| screen.contains(text))
        });
        // The end of the input.
        terminal.type_keys("\u{4}");
        finish(terminal);
    }
}

#[test]
fn lines_steer_and_ctrl_c_interrupts() {
    let turns = shell("until test -e go; do sleep 0.02; done") + &shell("touch began; exec sleep 600");
    let harness = Harness::new(Dialect::AnthropicMessages, &turns);
    let mut terminal = Terminal::start(&chat(&harness, "dumb", &["go"]));
    terminal.wait_for_text("I look.");
    terminal.type_keys("look at b.txt\r/status\r");
    // Lines are taken in order.
    terminal.wait_for_text("environment: ");
    std::fs::write(harness.path("go"), "").unwrap();
    harness.wait_for_file("began");
    terminal.type_keys("\u{3}");
    let screen = terminal.wait_for("the end of the turn", ready_times(1));
    assert!(screen.contains("[shell] touch began; exec sleep 600 (cancelled, "), "{screen}");
    assert!(screen.contains("press Ctrl+C again to leave"), "{screen}");
    terminal.type_keys("\u{4}");
    finish(terminal);
}

#[test]
fn calls_are_approved_with_words() {
    let turns = shell("touch a") + &shell("touch b") + "[[turn]]\ntext = \"Done.\"\n";
    let harness = Harness::new(Dialect::AnthropicMessages, &turns);
    let mut terminal = Terminal::start(&chat(&harness, "dumb", &["--mode", "ask", "go"]));
    let screen = terminal.wait_for_text("answer yes");
    assert!(screen.contains("approval: shell (") && screen.contains("    touch a\n"), "{screen}");
    assert!(!harness.path("a").exists());
    terminal.type_keys("yes\r");
    terminal.wait_for("the next question", |screen| screen.contains("    touch b\n"));
    assert!(harness.path("a").exists());
    terminal.type_keys("no, use a file\r");
    let screen = terminal.wait_for_text("Done.");
    assert!(screen.contains("[shell] touch b (denied, ") && screen.contains("use a file"), "{screen}");
    assert!(!harness.path("b").exists());
    terminal.type_keys("/quit\r");
    finish(terminal);
}

#[test]
fn escape_sequences_on_request_are_refused_in_lines() {
    let harness = Harness::new(Dialect::AnthropicMessages, "[[turn]]\ntext = \"Done.\"\n");
    for flags in [["--notify", "osc9"], ["--title", "on"]] {
        let output = run(&mut chat(&harness, "xterm", &flags));
        assert!(output.code == Some(2) && output.stderr.contains("--plain writes none"), "{output:?}");
        let output = run(&mut harness.command("run", &[flags[0], flags[1], "go"]));
        assert!(output.code == Some(2) && output.stderr.contains("is for conversations"), "{output:?}");
    }
}

#[test]
fn lines_are_for_conversations_at_a_terminal() {
    let harness = Harness::new(Dialect::AnthropicMessages, "[[turn]]\ntext = \"Done.\"\n");
    let output = run(&mut chat(&harness, "dumb", &["go"]));
    assert!(output.code == Some(2) && output.stderr.contains("needs a terminal"), "{output:?}");
    let output = run(&mut harness.command("run", &["--plain", "go"]));
    assert!(output.code == Some(2) && output.stderr.contains("--plain is for conversations"), "{output:?}");
    let mut command = harness.command("chat", &[]);
    command.env("TERM", "dumb").env("PINTLE_STATE_DIR", harness.path(".state"));
    let (code, screen, _) = Terminal::start(&command).finish();
    assert!(code == Some(2) && screen.contains("`pintle --plain`"), "{screen}");
}

#[test]
fn lines_of_instructions_and_earlier_turns_are_said_once() {
    let turns = "[[turn]]\ntext = \"Noted.\"\n[[turn]]\ntext = \"Again.\"\n";
    let harness = Harness::new(Dialect::AnthropicMessages, turns);
    let mut terminal = Terminal::start(&chat(&harness, "dumb", &[]));
    terminal.wait_for("the beginning", ready_times(1));
    terminal.type_keys("hello\r");
    terminal.wait_for("the end of the turn", ready_times(2));
    terminal.type_keys("/copy\r");
    terminal.wait_for_text("cannot copy");
    for (answer, shown) in [("neither", "nothing was added"), ("project", "added to AGENTS.md")] {
        terminal.type_keys("# use tabs\r");
        terminal.wait_for_text("project or user?");
        terminal.type_keys(&format!("{answer}\r"));
        terminal.wait_for_text(shown);
    }
    assert_eq!(std::fs::read_to_string(harness.path("AGENTS.md")).unwrap(), "- use tabs\n");
    terminal.type_keys("\u{4}");
    finish(terminal);
    let mut terminal = Terminal::start(&chat(&harness, "dumb", &["--continue"]));
    let screen = terminal.wait_for("the beginning", ready_times(1));
    assert!(screen.contains("Noted."), "{screen}");
    terminal.type_keys("once more\r");
    terminal.wait_for("the end of the next turn", ready_times(2));
    // What follows is for the new session.
    terminal.type_keys("/new\rhello again\r");
    terminal.wait_for("the end of its turn", |screen| screen.matches("Noted.").count() == 2);
    terminal.type_keys("\u{4}");
    finish(terminal);
}
