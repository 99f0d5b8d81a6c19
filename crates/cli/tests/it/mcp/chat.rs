//! Servers in a conversation on a pseudo-terminal.

use pintle_testkit::Dialect;
use serde_json::json;

use super::{Home, server_in};
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
    let servers = json!({"mcpServers": {"test": {"command": "python3", "args": [server_in(harness)]}}});
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

    // A line that is being written keeps its keys.
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
    let servers = json!({"mcpServers": {"test": {"command": "python3", "args": [server_in(&harness)]}}});
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

#[test]
fn prompts_of_servers_are_commands_and_start_them_when_they_are_called() {
    let turns = "[[turn]]\ntext = \"Reviewed.\"\n";
    let (home, harness) = (Home::new(), Harness::new(Dialect::AnthropicMessages, turns));
    let log = format!("SERVER_LOG={}", harness.path("log").display());
    let server = server_in(&harness);
    let add = ["add", "test", "--env", &log, "--", "python3", &server, "offers"];
    assert_eq!(home.mcp(&harness, &add).code, Some(0));
    // From here on its prompts are known.
    assert_eq!(home.mcp(&harness, &["tools"]).code, Some(0));
    std::fs::remove_file(harness.path("log")).unwrap();
    let mut command = crate::chat::chat(&harness, &[]);
    let mut terminal = Terminal::start(home.apply(command.current_dir(harness.path(""))));
    terminal.wait_for_text("say what to do");
    terminal.type_keys("/mcp__test__rev");
    terminal.wait_for_text("/mcp__test__review  file [tone]: Reviews.");
    terminal.type_keys("\t\r");
    terminal.wait_for_text("`file` is missing; expected file [tone]");
    assert!(!harness.path("log").exists(), "it is not started for its list");
    terminal.type_keys("'src/a b.rs'\r");
    let screen = terminal.wait_for_text("Reviewed.");
    assert!(screen.contains("› Review src/a b.rs."), "{screen}");
    assert!(harness.read("log").contains("prompts/get"));
    let request = newest_request(&harness);
    assert!(request.contains("Review src/a b.rs.") && request.contains("Assistant: Gladly."), "{request}");
    assert!(request.contains("iVBORw0KGgpyZXN0"), "{request}");
    leave(terminal);
}
