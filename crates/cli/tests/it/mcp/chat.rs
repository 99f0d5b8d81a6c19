//! Servers in a conversation on a pseudo-terminal.

use pintle_testkit::Dialect;
use serde_json::json;

use super::SERVER;
use crate::chat::{begin, leave};
use crate::harness::Harness;
use crate::terminal::Terminal;

/// Has the server ask twice, each time after a file has appeared, and says what it got.
const ASKING: &str = r#"
    [[turn]]
    [[turn.call]]
    tool = "search_tools"
    arguments = { query = "ask" }
    [[turn]]
    [[turn.call]]
    tool = "shell"
    arguments = { command = "until test -e first; do sleep 0.02; done", timeout_ms = 600000 }
    [[turn]]
    [[turn.call]]
    tool = "call_tool"
    arguments = { name = "mcp__test__ask", arguments = {} }
    [[turn]]
    text = "Once."
    [[turn.call]]
    tool = "shell"
    arguments = { command = "until test -e second; do sleep 0.02; done", timeout_ms = 600000 }
    [[turn]]
    [[turn.call]]
    tool = "call_tool"
    arguments = { name = "mcp__test__ask", arguments = {} }
    [[turn]]
    text = "Twice."
    "#;

/// Begins a conversation with the server `test`.
fn converse(harness: &Harness, flags: &[&str]) -> Terminal {
    let file = harness.path("servers.json");
    let servers = json!({"mcpServers": {"test": {"command": "python3", "args": [SERVER]}}});
    std::fs::write(&file, servers.to_string()).unwrap();
    begin(harness, &[&["--mcp-config", file.to_str().unwrap()], flags].concat())
}

fn go_on(harness: &Harness, file: &str) {
    std::fs::write(harness.path(file), "").unwrap();
}

/// Returns the newest request, as it was sent.
fn newest_request(harness: &Harness) -> String {
    harness.server.requests().last().unwrap().body.to_string()
}

#[test]
fn questions_of_servers_are_answered_and_refused_in_place() {
    let harness = Harness::new(Dialect::AnthropicMessages, ASKING);
    let mut terminal = converse(&harness, &[]);
    terminal.type_keys("go\r");
    terminal.wait_for_text("until test -e first");
    go_on(&harness, "first");
    let screen = terminal.wait_for_text("Esc refuses");
    assert!(screen.contains("? server `test` asks: Who?") && screen.contains("    name"), "{screen}");
    terminal.type_keys("Ann Lee\r");
    let screen = terminal.wait_for_text("Once.");
    assert!(screen.contains("answered: server `test` asks: Who?"), "{screen}");
    let request = newest_request(&harness);
    assert!(request.contains("accept") && request.contains("Ann Lee"), "{request}");

    // What is being written goes on being written.
    terminal.type_keys("half a tho");
    terminal.wait_for_text("› half a tho");
    go_on(&harness, "second");
    terminal.wait_for_text("Alt+A answers");
    terminal.type_keys("ught");
    let screen = terminal.wait_for_text("› half a thought");
    assert!(screen.contains("Alt+A answers"), "{screen}");
    terminal.type_keys("\u{1b}a");
    terminal.wait_for_text("Esc refuses");
    terminal.type_keys("\u{1b}");
    let screen = terminal.wait_for_text("Twice.");
    assert!(screen.contains("refused: server `test` asks: Who?"), "{screen}");
    assert!(screen.contains("› half a thought"), "{screen}");
    let request = newest_request(&harness);
    assert!(request.contains("decline"), "{request}");
    terminal.type_keys("\u{15}");
    leave(terminal);
}

#[test]
fn a_question_goes_away_with_the_turn_that_is_interrupted() {
    let harness = Harness::new(Dialect::AnthropicMessages, ASKING);
    let mut terminal = converse(&harness, &[]);
    terminal.type_keys("go\r");
    terminal.wait_for_text("until test -e first");
    terminal.type_keys("wait");
    terminal.wait_for_text("› wait");
    go_on(&harness, "first");
    terminal.wait_for_text("Alt+A answers");
    terminal.type_keys("\u{1b}");
    terminal.wait_for("the end of the turn", |screen| {
        !screen.contains("Alt+A answers") && !screen.contains("Esc interrupts")
    });
    terminal.type_keys("\u{15}");
    leave(terminal);
}

#[test]
fn questions_of_servers_are_answered_in_lines() {
    let harness = Harness::new(Dialect::AnthropicMessages, ASKING);
    let file = harness.path("servers.json");
    let servers = json!({"mcpServers": {"test": {"command": "python3", "args": [SERVER]}}});
    std::fs::write(&file, servers.to_string()).unwrap();
    go_on(&harness, "first");
    let arguments = ["--plain", "--mcp-config", file.to_str().unwrap(), "go"];
    let mut terminal = Terminal::start(&crate::chat::chat(&harness, &arguments));
    terminal.wait_for_text("`answer VALUE` answers, `answer !` refuses");
    terminal.type_keys("answer Ann Lee\r");
    let screen = terminal.wait_for_text("Once.");
    assert!(screen.contains("answered: server `test` asks: Who?"), "{screen}");
    assert!(newest_request(&harness).contains("Ann Lee"));
    go_on(&harness, "second");
    terminal.wait_for("another question", |screen| screen.matches("`answer VALUE` answers").count() == 2);
    terminal.type_keys("answer !\r");
    terminal.wait_for_text("Twice.");
    assert!(newest_request(&harness).contains("decline"));
    terminal.type_keys("/quit\r");
    assert_eq!(terminal.finish().0, Some(0));
}
