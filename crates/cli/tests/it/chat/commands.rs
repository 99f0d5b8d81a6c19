//! Commands of the user, files of instructions, and the editor of the user.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use tempfile::TempDir;

use super::*;
use crate::harness::KEY;

fn with_home(harness: &Harness, home: &TempDir, arguments: &[&str]) -> Command {
    let mut command = chat(harness, arguments);
    command.env("HOME", home.path()).env("PINTLE_CONFIG_DIR", home.path().join(".config/pintle"));
    command
}

fn write(base: &std::path::Path, path: &str, text: &str) {
    let path = base.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

#[test]
fn commands_of_the_user_are_completed_and_said() {
    let turns = "[[turn]]\ntext = \"Reviewed.\"\n[[turn]]\ntext = \"Reviewed again.\"\n";
    let harness = Harness::new(Dialect::AnthropicMessages, turns);
    let home = TempDir::new().unwrap();
    let command = "---\ndescription: Look at one file\n---\nReview $1 for $2.\n";
    write(home.path(), ".claude/commands/review.md", command);
    let mut terminal = Terminal::start(&with_home(&harness, &home, &[]));
    terminal.wait_for_text("say what to do");
    terminal.type_keys("/rev");
    terminal.wait_for_text("/review  Look at one file");
    terminal.type_keys("\tmain.rs errors\r");
    let screen = terminal.wait_for_text("Reviewed.");
    assert!(screen.contains("› Review main.rs for errors."), "{screen}");
    // The only command that begins like this.
    terminal.type_keys("/rev\r");
    terminal.wait_for_text("Reviewed again.");
    terminal.type_keys("exit\r");
    let (code, screen, _) = terminal.finish();
    assert_eq!(code, Some(0), "{screen}");
}

/// The session keeps its provider, so a model of another one cannot be used.
#[test]
fn models_of_other_providers_are_refused() {
    let turns = "[[turn]]\ntext = \"Hello.\"\n[[turn]]\ntext = \"Good day.\"\n";
    let harness = Harness::new(Dialect::AnthropicMessages, turns);
    // No provider is named, so the base URL belongs to no gateway.
    let mut command = pintle(&["chat", "--toolset", "spec", "--dir"]);
    command.arg(harness.directory.path()).env("ANTHROPIC_API_KEY", KEY).env("PINTLE_MODE", "auto");
    command.env("ANTHROPIC_BASE_URL", harness.server.base_url(harness.dialect));
    command.env("XTERM_VERSION", "XTerm(390)").env("PINTLE_STATE_DIR", harness.path(".state"));
    let mut terminal = Terminal::start(&command);
    terminal.wait_for_text("say what to do");
    terminal.type_keys("/model gpt-5.2\r");
    terminal.wait_for_text("OPENAI_API_KEY");
    terminal.type_keys("hi\r");
    terminal.wait_for_text("Hello.");
    terminal.type_keys("/model haiku\r");
    terminal.wait_for_text("claude-haiku-5-5, from the next request on");
    terminal.type_keys("again\r");
    terminal.wait_for_text("Good day.");
    leave(terminal);
    let requests = harness.server.requests();
    let models: Vec<_> = requests.iter().map(|request| request.body["model"].clone()).collect();
    assert_eq!(models, ["claude-opus-5-5", "claude-haiku-5-5"]);
}

#[test]
fn a_model_that_the_catalog_does_not_have_is_a_warning() {
    let harness = Harness::new(Dialect::AnthropicMessages, "[[turn]]\ntext = \"Hello.\"\n");
    let mut command = pintle(&["chat", "--toolset", "spec", "--dir"]);
    command.arg(harness.directory.path()).env("ANTHROPIC_API_KEY", KEY).env("PINTLE_MODE", "auto");
    command.env("XTERM_VERSION", "XTerm(390)").env("PINTLE_STATE_DIR", harness.path(".state"));
    let mut terminal = Terminal::start(&command);
    terminal.wait_for_text("say what to do");
    terminal.type_keys("/model foo-9\r");
    terminal.wait_for_text("foo-9, from the next request on");
    terminal.wait_for_text("`foo-9` is not in the catalog");
    terminal.type_keys("/model haiku\r");
    terminal.wait_for_text("claude-haiku-5-5, from the next request on");
    leave(terminal);
}

#[test]
fn a_gateway_serves_models_of_other_providers() {
    let harness = Harness::new(Dialect::AnthropicMessages, "[[turn]]\ntext = \"Hello.\"\n");
    let mut terminal = begin(&harness, &[]);
    terminal.type_keys("/model gpt-5.2\r");
    terminal.wait_for_text("gpt-5.2, from the next request on");
    terminal.type_keys("hi\r");
    terminal.wait_for_text("Hello.");
    leave(terminal);
    assert_eq!(harness.server.requests()[0].body["model"], "gpt-5.2");
}

#[test]
fn lines_are_added_to_the_file_of_choice() {
    let harness = Harness::new(Dialect::AnthropicMessages, "[[turn]]\ntext = \"Hello.\"\n");
    let home = TempDir::new().unwrap();
    write(harness.path(".").as_path(), "AGENTS.md", "# Rules\n");
    let mut terminal = Terminal::start(&with_home(&harness, &home, &[]));
    terminal.wait_for_text("say what to do");
    terminal.type_keys("# use tabs\r");
    terminal.wait_for_text("p instructions of the project");
    terminal.type_keys("p");
    terminal.wait_for_text("memory: added to AGENTS.md");
    assert_eq!(fs::read_to_string(harness.path("AGENTS.md")).unwrap(), "# Rules\n\n- use tabs\n");
    terminal.type_keys("# be brief\r");
    terminal.wait_for_text("u yours");
    terminal.type_keys("\u{1b}");
    terminal.wait_for_text("› # be brief");
    terminal.type_keys("\r");
    terminal.wait_for_text("u yours");
    terminal.type_keys("u");
    terminal.wait_for("the other file", |screen| count(screen, "memory: added to") == 2);
    let own = home.path().join(".config/pintle/AGENTS.md");
    assert_eq!(fs::read_to_string(&own).unwrap(), "- be brief\n");
    terminal.type_keys("hello\r");
    terminal.wait_for_text("Hello.");
    terminal.type_keys("/memory\r");
    let screen = terminal.wait_for_text("yours: ");
    assert!(screen.contains("project: ") && screen.contains("19 bytes"), "{screen}");
    leave(terminal);
}

#[test]
fn the_editor_of_the_user_has_the_text_and_the_terminal() {
    let harness = Harness::new(Dialect::AnthropicMessages, "[[turn]]\ntext = \"Done.\"\n");
    let editor = harness.path("editor");
    fs::write(&editor, "#!/bin/sh\ntest -t 0 && echo edited >>\"$2\"\nexit \"$1\"\n").unwrap();
    fs::set_permissions(&editor, fs::Permissions::from_mode(0o755)).unwrap();
    for (exit, expected) in [(0, "  edited"), (3, "the editor failed (exit status: 3)")] {
        let mut command = chat(&harness, &[]);
        command.env("VISUAL", format!("{} {exit}", editor.display()));
        let mut terminal = Terminal::start(&command);
        terminal.wait_for_text("say what to do");
        terminal.type_keys("written\u{a}\u{7}");
        let screen = terminal.wait_for_text(expected);
        assert!(screen.contains("› written"), "{screen}");
        terminal.type_keys("\u{15}\u{15}\u{3}");
        leave(terminal);
    }
}

#[test]
fn instructions_and_skills_of_the_user_are_in_the_prompt() {
    let home = TempDir::new().unwrap();
    write(home.path(), ".config/pintle/AGENTS.md", "Speak like a pirate.\n");
    let skill = "---\nname: tidy\ndescription: Tidies up.\n---\nTidy.\n";
    write(home.path(), ".agents/skills/tidy/SKILL.md", skill);
    let directory = TempDir::new().unwrap();
    let mut command = pintle(&["prompt", "--provider", "anthropic", "--dir"]);
    let own = home.path().join(".config/pintle");
    let prompt = run(command.arg(directory.path()).env("HOME", home.path()).env("PINTLE_CONFIG_DIR", own));
    let has = |text| prompt.stdout.contains(text);
    assert!(has("Speak like a pirate.") && has("Tidies up."), "{}", prompt.stdout);
}

#[test]
fn work_beside_the_conversation_and_settings_are_shown() {
    let turns = "[[turn]]\n[[turn.call]]\ntool = \"shell_start\"\narguments = { command = \"sleep 600\" }\n\
                 [[turn]]\ntext = \"Started.\"\n";
    let harness = Harness::new(Dialect::AnthropicMessages, turns);
    let mut terminal = begin(&harness, &["go"]);
    terminal.wait_for_text("Started.");
    for (command, shown) in [
        ("/jobs", "1: sleep 600 ("),
        ("/agents", "agents: none was started"),
        ("/theme blue", "expected light or dark"),
        ("\u{3}/theme light", "theme: light"),
        ("/login", "`pintle login` in another terminal"),
        ("/config", "`pintle config edit` changes it"),
    ] {
        terminal.type_keys(&format!("{command}\r"));
        terminal.wait_for_text(shown);
    }
    leave(terminal);
}

#[test]
fn a_compaction_of_the_user_reports_its_end() {
    let turns =
        "[[turn]]\ntext = \"Hello.\"\n[[turn]]\ntext = \"A summary that is longer than the conversation.\"\n";
    let harness = Harness::new(Dialect::AnthropicMessages, turns);
    let mut terminal = begin(&harness, &[]);
    terminal.type_keys("/compact\r");
    terminal.wait_for_text("there is nothing to summarize");
    terminal.type_keys("hi\r");
    terminal.wait_for_text("Hello.");
    terminal.wait_for("the end of the turn", |screen| !screen.contains("Esc interrupts"));
    terminal.type_keys("/compact\r");
    terminal.wait_for("the end of the compaction", |screen| {
        screen.contains("[compacted]") && !screen.contains("waiting for the model")
    });
    leave(terminal);
}
