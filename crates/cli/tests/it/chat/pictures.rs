//! Pictures of the conversation for its guide: each test draws a state and compares it with the picture that is there.
//!
//! `WRITE_PICTURES=1 cargo test -p pintle-cli --test it chat::pictures` draws them anew.

mod drawing;

use std::path::Path;
use std::time::{Duration, Instant};

use super::*;

const DIRECTORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/pictures");

/// Beginning of a program, for diffs.
const PROGRAM: &str = "def to_roman(number):\n    numerals = [(10, \"X\"), (9, \"IX\"), (5, \"V\"), (1, \"I\")]\n    \
                       text = \"\"\n    for value, numeral in numerals:\n        while number > value:\n            \
                       text += numeral\n            number -= value\n    return text\n";

/// Begins a conversation in which nothing differs from machine to machine.
fn begin_picture(harness: &Harness, rows: u16, arguments: &[&str]) -> Terminal {
    let mut command = chat(harness, arguments);
    command.args(["--theme", "dark", "--no-sandbox"]).env("PINTLE_MODE", "edit");
    let mut terminal = Terminal::run(&command, 80, rows, |_| {});
    terminal.wait_for_text("claude");
    terminal
}

/// Compares the screen with its picture in the guide once it is complete, or draws that anew.
fn compare(terminal: &Terminal, name: &str, title: &str) {
    let draw = || terminal.with_screen(|screen| drawing::svg(screen, title));
    let path = Path::new(DIRECTORY).join(name).with_extension("svg");
    if std::env::var_os("WRITE_PICTURES").is_some() {
        // The newest frame may still be on its way.
        std::thread::sleep(Duration::from_secs(1));
        std::fs::create_dir_all(DIRECTORY).unwrap();
        std::fs::write(&path, draw()).unwrap();
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    let until = Instant::now() + Duration::from_secs(10);
    while draw() != there && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(20));
    }
    let drawn = draw();
    assert!(
        there == drawn,
        "the picture {name} is not what is shown; draw it anew by \
         WRITE_PICTURES=1 cargo test -p pintle-cli --test it chat::pictures\n{drawn}"
    );
}

fn edit() -> String {
    "[[turn]]\ntext = \"The comparison leaves out the value itself.\"\n[[turn.call]]\ntool = \"edit_file\"\n\
     arguments = { file_path = \"roman.py\", old_string = \"number > value\", new_string = \"number >= value\" }\n"
        .to_owned()
}

#[test]
fn beginning() {
    let harness = Harness::new(Dialect::AnthropicMessages, "[[turn]]\ntext = \"Done.\"\n");
    let terminal = begin_picture(&harness, 24, &[]);
    compare(&terminal, "beginning", "A conversation before the first message");
    leave(terminal);
}

#[test]
fn answer() {
    let text = "The **loop** was off by one: `>` left out the value itself.\\n\\n\
                ```python\\nwhile number >= value:\\n    text += numeral  # one letter for each step\\n```\\n\\n\
                | number | before | now |\\n|---|---|---|\\n| 1 | | I |\\n| 9 | VIIII | IX |\\n\\n\
                - `roman.py` is mended\\n- all *12* tests pass\\n";
    let turns = format!("{}[[turn]]\ntext = \"{text}\"\n", edit());
    let harness = Harness::new(Dialect::AnthropicMessages, &turns);
    std::fs::write(harness.path("roman.py"), PROGRAM).unwrap();
    let mut terminal = begin_picture(&harness, 36, &["Why is 1 no numeral?"]);
    terminal.wait_for("the end", |screen| screen.contains("tests pass") && screen.contains("say what to do"));
    compare(&terminal, "answer", "An edit as a diff, and an answer with code, a table and a list");
    leave(terminal);
}

#[test]
fn approval() {
    let turns = format!("{}[[turn]]\ntext = \"So be it.\"\n", edit());
    let harness = Harness::new(Dialect::AnthropicMessages, &turns);
    std::fs::write(harness.path("roman.py"), PROGRAM).unwrap();
    let mut terminal = begin_picture(&harness, 40, &["--mode", "ask", "Why is 1 no numeral?"]);
    terminal.wait_for_text("y once");
    compare(&terminal, "approval", "An edit waits for approval, with its diff and the keys that decide");
    terminal.type_keys("y");
    terminal.wait_for_text("So be it.");
    leave(terminal);
}

#[test]
fn completion() {
    let harness = Harness::new(Dialect::AnthropicMessages, "[[turn]]\ntext = \"Done.\"\n");
    let mut terminal = begin_picture(&harness, 24, &[]);
    terminal.type_keys("/co");
    terminal.wait_for_text("/compact");
    compare(&terminal, "completion", "Commands that begin with what was typed");
    terminal.type_keys("\u{1b}");
    terminal.wait_for("no menu", |screen| !screen.contains("/compact"));
    terminal.type_keys("\u{15}");
    leave(terminal);
}

#[test]
fn work() {
    let turns = "[[turn]]\n[[turn.call]]\ntool = \"update_plan\"\narguments = { plan = [\
                 { step = \"Find the fault\", status = \"completed\" }, \
                 { step = \"Mend it\", status = \"in_progress\" }, \
                 { step = \"Run all tests\", status = \"pending\" }] }\n\
                 [[turn]]\ntext = \"I watch the tests while I mend it.\"\n[[turn.call]]\ntool = \"shell\"\n\
                 arguments = { command = \"until test -e go; do sleep 0.02; done\", timeout_ms = 600000 }\n\
                 [[turn]]\ntext = \"Done.\"\n";
    let harness = Harness::new(Dialect::AnthropicMessages, turns);
    let mut terminal = begin_picture(&harness, 24, &["--allow", "shell", "Mend the conversion."]);
    terminal.wait_for_text("shell until test");
    terminal.type_keys("then say which files changed");
    terminal.wait_for_text("Enter steers the turn");
    compare(&terminal, "work", "A turn with a plan and a command, and the next message that will steer it");
    std::fs::write(harness.path("go"), "").unwrap();
    terminal.type_keys("\u{15}");
    terminal.wait_for("the end", |screen| screen.contains("Done.") && !screen.contains("Esc interrupts"));
    leave(terminal);
}

#[test]
fn pager() {
    let turns = "[[turn]]\ntext = \"I look at it.\"\n[[turn.call]]\ntool = \"shell\"\n\
                 arguments = { command = \"seq 1 40\" }\n[[turn]]\ntext = \"Forty lines.\"\n";
    let harness = Harness::new(Dialect::AnthropicMessages, turns);
    let mut terminal = begin_picture(&harness, 20, &["--allow", "shell", "How long is it?"]);
    terminal.wait_for_text("Forty lines.");
    terminal.type_keys("\u{14}");
    terminal.wait_for_text("q closes");
    terminal.type_keys("g");
    terminal.wait_for("the beginning", |screen| screen.starts_with("› How long is it?"));
    compare(&terminal, "pager", "The whole conversation in the pager, with complete calls and results");
    terminal.type_keys("q");
    terminal.wait_for_text("say what to do");
    leave(terminal);
}
