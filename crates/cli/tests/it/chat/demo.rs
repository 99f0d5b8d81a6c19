//! `pintle demo --interactive`.

use super::*;

#[test]
fn a_scripted_model_converses_without_a_key() {
    let directory = tempfile::TempDir::new().unwrap();
    let project = directory.path().join("project");
    let mut command = pintle(&["demo", "--interactive", "--dir"]);
    command.arg(&project).env("XTERM_VERSION", "XTerm(390)").env("TMPDIR", directory.path());
    let mut terminal = Terminal::start(&command);
    terminal.wait_for_text("say what to do");
    terminal.type_keys("hello\r");
    terminal.wait_for("a question", |screen| screen.contains("NOTES.md") && screen.contains("y once"));
    terminal.type_keys("y");
    terminal.wait_for("a command", |screen| screen.contains("step $i") && screen.contains("y once"));
    assert!(project.join("NOTES.md").exists());
    terminal.type_keys("n");
    terminal.wait_for_text("code is coloured");
    terminal.type_keys("and now?\r");
    terminal.wait_for("the end of the turn", |screen| {
        screen.contains("with what it changed.") && !screen.contains("Esc interrupts")
    });
    terminal.type_keys("/undo\r");
    terminal.wait_for_text("the conversation was rewound to");
    terminal.type_keys("\u{15}");
    leave(terminal);
}

#[test]
fn a_demonstration_in_a_full_directory_is_refused() {
    let harness = Harness::new(Dialect::AnthropicMessages, "[[turn]]\ntext = \"Done.\"\n");
    let mut command = pintle(&["demo", "--interactive", "--dir"]);
    command.arg(harness.path("")).env("TMPDIR", harness.path(""));
    std::fs::write(harness.path("something"), "").unwrap();
    let (code, screen, _) = Terminal::start(&command).finish();
    assert_eq!(code, Some(2), "{screen}");
    assert!(screen.contains("is not empty"), "{screen}");
}
