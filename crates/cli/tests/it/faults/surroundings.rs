//! Terminals that cannot move their cursor, directories that cannot be written, and broken configuration.

use super::*;

const ANSWERS: &str = "[[turn]]\ntext = \"First answer.\"\n[[turn]]\ntext = \"Second answer.\"\n";

#[test]
fn without_a_cursor_a_conversation_is_in_lines_or_not_at_all() {
    for term in [None, Some(""), Some("dumb")] {
        let harness = Harness::new(Dialect::AnthropicMessages, ANSWERS);
        let start = |arguments: &[&str]| {
            Terminal::run(&chat(&harness, arguments), 80, 24, |command| {
                match term {
                    Some(term) => command.env("TERM", term),
                    None => command.env_remove("TERM"),
                };
            })
        };
        let (code, screen, output) = start(&["hello"]).finish();
        assert_eq!(code, Some(2), "{term:?}: {screen}");
        assert!(
            screen.contains("a conversation needs a terminal that can move its cursor"),
            "{term:?}: {screen}"
        );
        assert!(screen.contains("`pintle --plain`") && !output.contains('\u{1b}'), "{term:?}: {output:?}");
        let mut terminal = start(&["--plain", "hello"]);
        terminal.wait_for_text("First answer.");
        terminal.wait_for_text("— ready");
        terminal.type_keys("more\r");
        terminal.wait_for_text("Second answer.");
        terminal.type_keys("/quit\r");
        let (code, screen, output) = terminal.finish();
        assert_eq!(code, Some(0), "{term:?}: {screen}");
        assert!(!output.contains('\u{1b}'), "{term:?}: {output:?}");
    }
}

#[test]
fn what_cannot_be_kept_is_said_once() {
    let harness = Harness::new(Dialect::AnthropicMessages, ANSWERS);
    std::fs::write(harness.path("file"), "").unwrap();
    let below_file = harness.path("file/state");
    for state in [below_file.as_path(), Path::new("/proc/nonexistent/state")] {
        for plain in [false, true] {
            let mut command = chat(&harness, if plain { &["--plain"] } else { &[] });
            command.env("PINTLE_STATE_DIR", state).env("HOME", state.parent().unwrap());
            command.env("PINTLE_CONFIG_DIR", state.with_file_name("config"));
            let mut terminal = Terminal::start(&command);
            terminal.wait_for_text(if plain { "— ready" } else { "say what to do" });
            for (said, answer) in [("hello", "First answer."), ("more", "Second answer.")] {
                terminal.type_keys(&format!("{said}\r"));
                terminal.wait_for_text(answer);
            }
            terminal.type_keys("/quit\r");
            let (code, screen, output) = terminal.finish();
            assert_eq!(code, Some(0), "{screen}");
            assert_eq!(count(&output, "not kept"), 1, "{screen}");
            assert!(!screen.contains("history: "), "{screen}");
        }
    }
}

#[test]
fn a_broken_configuration_is_explained() {
    let harness = Harness::new(Dialect::AnthropicMessages, ANSWERS);
    std::fs::create_dir(harness.path("configuration")).unwrap();
    std::fs::write(
        harness.path("configuration/config.toml"),
        "mode = \"ask\"\n\nreasoning_efort = \"high\"\n",
    )
    .unwrap();
    let configured = |arguments: &[&str]| {
        let mut command = chat(&harness, arguments);
        command.env_remove("PINTLE_MODE").env("PINTLE_CONFIG_DIR", harness.path("configuration"));
        command
    };
    let mistake =
        "config.toml: line 3, column 1: unknown key `reasoning_efort`; did you mean `reasoning_effort`?";
    let (code, screen, _) = Terminal::run(&configured(&["hello"]), 200, 24, |_| {}).finish();
    assert_eq!(code, Some(2), "{screen}");
    assert!(screen.contains(mistake) && screen.contains("--ignore-config-errors"), "{screen}");
    assert!(harness.server.requests().is_empty());
    let mut terminal = Terminal::run(&configured(&["--ignore-config-errors", "hello"]), 200, 24, |_| {});
    let screen = terminal.wait_for_text("First answer.");
    assert!(screen.contains(mistake) && screen.contains("ignored"), "{screen}");
    // The rest of the file counts.
    terminal.wait_for_text("· ask ·");
    leave(terminal);
}
