//! Pictures of the screen in the guide. `WRITE_PICTURES=1` writes those that are missing or whose text has changed;
//! otherwise what they show must be on the screen.

mod svg;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::*;

/// Deadline for a screen that normally is there at once.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Compares a picture of the guide with the screen, or writes it if its text is not that of the screen.
fn picture(terminal: &mut Terminal, name: &str, title: &str, is_there: impl Fn(&str) -> bool) {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs/guide/pictures")
        .join(format!("{name}.svg"));
    let known = std::fs::read_to_string(&file).unwrap_or_default();
    terminal.wait_for(name, is_there);
    if std::env::var_os("WRITE_PICTURES").is_some() {
        // What follows the text that was waited for, such as the last status.
        std::thread::sleep(Duration::from_secs(1));
        let drawn = terminal.with_screen(|screen| svg::draw(screen, title));
        if svg::rows(&drawn) != svg::rows(&known) {
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, drawn).unwrap();
        }
        return;
    }
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let shown = terminal.with_screen(|screen| svg::rows(&svg::draw(screen, title)));
        if shown == svg::rows(&known) {
            return;
        }
        assert!(
            Instant::now() < deadline,
            "docs/guide/pictures/{name}.svg shows something else; write it with\n\
             WRITE_PICTURES=1 cargo test -p pintle-cli --test it chat::pictures\n\n{}\n\nthe picture:\n\n{}",
            shown.join("\n"),
            svg::rows(&known).join("\n")
        );
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Returns a conversation whose status does not depend on the machine.
fn begin_picture(harness: &Harness, rows: u16, arguments: &[&str]) -> Terminal {
    let mut arguments = arguments.to_vec();
    arguments.extend(["--no-sandbox", "--theme", "dark"]);
    let mut terminal = Terminal::run(&chat(harness, &arguments), 90, rows, |_| {});
    terminal.wait_for_text("say what to do");
    terminal
}

const ANSWER: &str = r#"
    [[turn]]
    text = """
    The port comes from `--port`, from `PORT`, or is **8080**:

    ```rust
    fn port(flag: Option<u16>) -> u16 {
        // The flag comes first.
        flag.or_else(from_env).unwrap_or(8080)
    }
    ```

    | source | example |
    |---|---|
    | flag | `serve --port 80` |
    | environment | `PORT=80 serve` |
    """
    "#;

#[test]
fn prompt_menu_answer_and_pager_are_as_in_their_pictures() {
    let harness = Harness::new(Dialect::AnthropicMessages, &unindented(ANSWER));
    let mut terminal = begin_picture(&harness, 24, &[]);
    picture(&mut terminal, "prompt", "The first prompt: an empty editor above the line of status", |_| true);
    terminal.type_keys("/re");
    let title = "Completion: the commands that begin with /re, below the editor";
    picture(&mut terminal, "completion", title, |screen| screen.contains("/resume"));
    terminal.type_keys("\u{15}Which port does the server take?\r");
    let title = "An answer with coloured code and a table, above the editor";
    let is_ready = |screen: &str| screen.contains("PORT=80 serve") && screen.contains("say what to do");
    picture(&mut terminal, "answer", title, is_ready);
    terminal.type_keys("\u{14}");
    let title = "The pager, which shows the whole conversation on a screen of its own";
    picture(&mut terminal, "pager", title, |screen| screen.contains("q closes"));
    terminal.type_keys("q");
    terminal.wait_for_text("say what to do");
    leave(terminal);
}

#[test]
fn approval_is_as_in_its_picture() {
    let turns = "[[turn]]\ntext = \"The default is wrong; I change it.\"\n[[turn.call]]\ntool = \"edit_file\"\n\
                 arguments = { file_path = \"src/port.rs\", old_string = \"unwrap_or(80)\", \
                 new_string = \"unwrap_or(8080)\" }\n[[turn]]\ntext = \"As you like.\"\n";
    let harness = Harness::new(Dialect::AnthropicMessages, turns);
    std::fs::create_dir(harness.path("src")).unwrap();
    let code = "fn port(flag: Option<u16>) -> u16 {\n    // The flag comes first.\n    \
                flag.or_else(from_env).unwrap_or(80)\n}\n";
    std::fs::write(harness.path("src/port.rs"), code).unwrap();
    let mut terminal = begin_picture(&harness, 34, &["--mode", "ask"]);
    terminal.type_keys("Fix the default port.\r");
    let title =
        "A call that waits for approval, with the diff of what it would change and the keys that decide";
    picture(&mut terminal, "approval", title, |screen| screen.contains("y once"));
    terminal.type_keys("n");
    terminal.wait_for_text("As you like.");
    leave(terminal);
}

/// The model says the same to a subagent as to the session, so the commands of the script do different things in their
/// directories. The pauses are for the subagent, whose text is to come after the end of the call that has started it.
const RUNNING: &str = r#"
    [[turn]]
    text = "I run the tests."
    pause_ms = 100
    [[turn.call]]
    tool = "shell"
    arguments = { command = "sh tests.sh" }
    [[turn]]
    text = "The client fails. Another agent finds out why, while I test the server."
    [[turn.call]]
    tool = "update_plan"
    arguments = { plan = [{ step = "run the tests", status = "completed" }, { step = "find the cause", status = "in_progress" }, { step = "describe the change", status = "pending" }] }
    [[turn.call]]
    tool = "spawn_agent"
    arguments = { task = "Find out why the client fails.", working_dir = "client" }
    [[turn]]
    [[turn.call]]
    tool = "shell"
    arguments = { command = "sh tests.sh server", timeout_ms = 600000 }
    [[turn]]
    text = "Ready."
    "#;

#[test]
fn running_turn_is_as_in_its_picture() {
    let harness = Harness::new(Dialect::AnthropicMessages, &unindented(RUNNING));
    let until_go = |go: &str| format!("until test -e {go}; do sleep 0.02; done\n");
    let tests =
        format!("test \"$1\" || {{ echo 'client: 1 of 12 tests failed'; exit 1; }}\n{}", until_go("go"));
    std::fs::write(harness.path("tests.sh"), tests).unwrap();
    std::fs::create_dir(harness.path("client")).unwrap();
    std::fs::write(harness.path("client/tests.sh"), until_go("../go")).unwrap();
    let mut terminal = begin_picture(&harness, 28, &[]);
    terminal.type_keys("Why do the tests fail?\r");
    let title =
        "A running turn: commands of the session and of a subagent, the steps of the plan, and the editor";
    let both_run =
        |screen: &str| screen.contains("agent_1 shell sh") && screen.contains("shell sh tests.sh server");
    picture(&mut terminal, "running", title, both_run);
    std::fs::write(harness.path("go"), "").unwrap();
    terminal.wait_for("the end", |screen| screen.contains("Ready.") && !screen.contains("Esc interrupts"));
    leave(terminal);
}

/// Removes the indentation of a script.
fn unindented(script: &str) -> String {
    script.lines().map(|line| format!("{}\n", line.strip_prefix("    ").unwrap_or(line))).collect()
}
