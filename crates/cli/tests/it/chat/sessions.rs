//! Commands that show, leave, fork and rewind the session of a conversation.

use std::fs;

use tempfile::TempDir;

use super::*;

/// A first turn that writes a file, and a second one.
const WRITES: &str = "[[turn]]\n[[turn.call]]\ntool = \"write_file\"\n\
                      arguments = { file_path = \"made.txt\", content = \"one\\n\" }\n\
                      [[turn]]\ntext = \"Made it.\"\n[[turn]]\ntext = \"Second answer.\"\n";

fn writing() -> Harness {
    Harness::new(Dialect::AnthropicMessages, WRITES)
}

/// Begins a conversation with this state.
fn begin_writing(harness: &Harness, state: &TempDir) -> Terminal {
    let mut command = chat(harness, &["--toolset", "spec", "make it"]);
    let mut terminal = Terminal::start(command.env("PINTLE_STATE_DIR", state.path()));
    ended_with(&mut terminal, "Made it.");
    terminal
}

/// Waits for the end of a turn that ends with this text: commands about the session are refused before.
fn ended_with(terminal: &mut Terminal, text: &str) {
    terminal.wait_for("the end of the turn", |screen| {
        screen.contains(text) && !screen.contains("Esc interrupts")
    });
}

/// Returns the ids of all sessions, the newest first.
fn ids(state: &TempDir) -> Vec<String> {
    let mut list = pintle(&["sessions", "list", "--all", "--output", "json"]);
    let listed = run(list.env("PINTLE_STATE_DIR", state.path()));
    let rows: Vec<serde_json::Value> = serde_json::from_str(&listed.stdout).unwrap();
    rows.iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn an_input_is_taken_back_with_its_files() {
    let (harness, state) = (writing(), TempDir::new().unwrap());
    let mut terminal = begin_writing(&harness, &state);
    assert!(harness.path("made.txt").exists());
    terminal.type_keys("/undo\r");
    let screen = terminal.wait_for_text("the conversation was rewound to 0 entries");
    assert!(screen.contains("remove    made.txt"), "{screen}");
    terminal.wait_for("the draft", |screen| count(screen, "› make it") == 2);
    assert!(!harness.path("made.txt").exists());
    terminal.type_keys("\u{15}");
    leave(terminal);
    assert_eq!(ids(&state).len(), 1, "it is the same session");
}

#[test]
fn a_refused_rewind_names_commands_of_the_conversation() {
    let (harness, state) = (writing(), TempDir::new().unwrap());
    let mut command = chat(&harness, &["--toolset", "spec", "make it"]);
    let mut terminal = Terminal::run(command.env("PINTLE_STATE_DIR", state.path()), 300, 60, |_| {});
    ended_with(&mut terminal, "Made it.");
    fs::write(harness.path("made.txt"), "by another process").unwrap();
    terminal.type_keys("/undo\r");
    let screen = terminal.wait_for_text("/rewind N force");
    assert!(screen.contains("another process may have changed made.txt"), "{screen}");
    assert!(!screen.contains("--force") && !screen.contains("--dry-run"), "{screen}");
    terminal.type_keys("/rewind 1 force\r");
    let screen = terminal.wait_for_text("the conversation was rewound to 0 entries");
    assert!(screen.contains("/quit, then pintle sessions rewind"), "{screen}");
    assert!(!harness.path("made.txt").exists());
    terminal.type_keys("\u{15}/rewind\r");
    terminal.wait_for_text("nothing to rewind: the conversation has no input yet");
    terminal.type_keys("\u{3}");
    leave(terminal);
}

/// As for whoever starts it in their home.
#[test]
fn a_rewind_leaves_state_within_the_directory_alone() {
    let harness = writing();
    let mut terminal = Terminal::run(&chat(&harness, &["make it"]), 80, 60, |_| {});
    ended_with(&mut terminal, "Made it.");
    terminal.type_keys("/undo\r");
    let screen = terminal.wait_for_text("the conversation was rewound to 0 entries");
    assert!(screen.contains("remove    made.txt") && !screen.contains(".state"), "{screen}");
    terminal.type_keys("\r");
    terminal.wait_for("the file again", |screen| count(screen, "Made it.") == 2);
    leave(terminal);
    let mut terminal = begin(&harness, &["--continue", "and more"]);
    terminal.wait_for_text("Second answer.");
    leave(terminal);
}

#[test]
fn a_rewind_is_shown_before_it_is_done() {
    let (harness, state) = (writing(), TempDir::new().unwrap());
    let mut terminal = begin_writing(&harness, &state);
    terminal.type_keys("and more\r");
    ended_with(&mut terminal, "Second answer.");
    terminal.type_keys("/rewind\r");
    let screen = terminal.wait_for_text("/rewind N shows");
    assert!(screen.contains("   1 make it") && screen.contains("   2 and more"), "{screen}");
    terminal.type_keys("/rewind 3\r");
    terminal.wait_for_text("expected the number of an input, 1 to 2, found 3");
    terminal.type_keys("\u{3}/rewind 1\r");
    let screen = terminal.wait_for_text("the conversation would be rewound to 0 entries");
    assert!(screen.contains("remove    made.txt") && harness.path("made.txt").exists(), "{screen}");
    terminal.type_keys("/rewind 2 now\r");
    terminal.wait_for_text("the conversation was rewound to 4 entries");
    assert!(harness.path("made.txt").exists(), "it was made before that input");
    terminal.wait_for_text("› and more");
    terminal.type_keys("\r");
    terminal.wait_for("the answer again", |screen| count(screen, "Second answer.") == 2);
    leave(terminal);
}

#[test]
fn sessions_are_begun_forked_and_resumed() {
    let (harness, state) = (writing(), TempDir::new().unwrap());
    let mut terminal = begin_writing(&harness, &state);
    terminal.type_keys("/effort high\r");
    terminal.wait_for_text("· high ·");
    // What follows is for the new session.
    terminal.type_keys("/new\rmake it again\r");
    terminal.wait_for("the first turn again", |screen| {
        count(screen, "Made it.") == 2 && !screen.contains("Esc interrupts")
    });
    // It is what the session had at the end that counts, not how it began.
    terminal.type_keys("/effort low\r");
    terminal.wait_for_text("· low ·");
    let [newer, older] = ids(&state).try_into().unwrap();
    assert_ne!(newer, older);
    terminal.type_keys("/sessions\r");
    let screen = terminal.wait_for_text("/resume ID resumes one");
    assert!(screen.contains(&older[..18]) && !screen.contains("  running"), "both are idle: {screen}");
    terminal.type_keys(&format!("/resume {older}\r"));
    terminal.wait_for_text("continued after 4 messages");
    terminal.type_keys("go on\r");
    ended_with(&mut terminal, "Second answer.");
    terminal.type_keys("/fork 4\r");
    terminal.wait_for("the fork", |screen| count(screen, "continued after 4 messages") == 2);
    terminal.type_keys("on in the fork\r");
    terminal.wait_for("its answer", |screen| count(screen, "Second answer.") == 2);
    terminal.type_keys("/resume nothing\r");
    terminal.wait_for_text("no session");
    terminal.wait_for_text("· high ·");
    terminal.type_keys("\u{3}");
    leave(terminal);
    assert_eq!(ids(&state).len(), 3);
}

#[test]
fn a_turn_that_runs_is_not_left_for_another_session() {
    let turns = "[[turn]]\n[[turn.call]]\ntool = \"shell\"\narguments = { command = \"sleep 600\" }\n";
    let harness = Harness::new(Dialect::AnthropicMessages, turns);
    let mut terminal = begin(&harness, &["go"]);
    terminal.wait_for_text("shell sleep 600");
    terminal.type_keys("/new\r");
    terminal.wait_for_text("a turn is running");
    terminal.type_keys("\u{1b}");
    terminal.wait_for_text("✗ shell sleep 600 cancelled");
    leave(terminal);
}

#[test]
fn changes_and_the_conversation_are_shown_written_and_copied() {
    let (harness, state) = (writing(), TempDir::new().unwrap());
    let mut terminal = begin_writing(&harness, &state);
    terminal.type_keys("/diff\r");
    terminal.wait_for_text("diff --git a/made.txt b/made.txt");
    terminal.type_keys("/tools\r");
    terminal.wait_for_text("  close_agent ");
    terminal.type_keys("/export talk.txt\r");
    terminal.wait_for_text("expected a name that ends in .md, .html or .jsonl");
    let export = format!("/export {}\r", harness.path("talk.md").display());
    terminal.type_keys(&format!("\u{3}{export}"));
    terminal.wait_for_text("export: ");
    let written = fs::read_to_string(harness.path("talk.md")).unwrap();
    assert!(written.contains("make it") && written.contains("Made it."), "{written}");
    terminal.type_keys(&export);
    terminal.wait_for_text("cannot write");
    terminal.type_keys("\u{3}/copy\r");
    terminal.wait_for_text("was sent to the clipboard");
    terminal.type_keys("/quit\r");
    let (_, _, output) = terminal.finish();
    assert!(output.contains("\u{1b}]52;c;TWFkZSBpdC4=\u{7}"), "the base64 of the last response");
}

#[test]
fn nothing_is_asked_of_a_store_without_a_session() {
    let harness = writing();
    let mut terminal = begin(&harness, &["--toolset", "spec", "--no-session", "make it"]);
    terminal.wait_for_text("Made it.");
    for command in ["/diff", "/undo", "/sessions", "/export", "/fork"] {
        terminal.type_keys(&format!("\u{3}{command}\r"));
        terminal.wait_for_text("this session is not kept");
    }
    leave(terminal);
}

#[test]
fn a_plan_is_made_before_anything_changes() {
    let turns = "[[turn]]\n[[turn.call]]\ntool = \"present_plan\"\narguments = { plan = \"First this.\" }\n\
                 [[turn]]\ntext = \"Planned.\"\n";
    let harness = Harness::new(Dialect::AnthropicMessages, turns);
    let mut terminal = begin(&harness, &[]);
    terminal.type_keys("/plan tidy up\r");
    let is_asked = |screen: &str| screen.contains("y once") && screen.contains("First this.");
    terminal.wait_for("the plan", |screen| is_asked(screen) && screen.contains("· plan ·"));
    terminal.type_keys("y");
    terminal.wait_for_text("Planned.");
    terminal.wait_for_text("· edit ·");
    leave(terminal);
}

/// Flags of the command line are about the first session, as it began.
#[test]
fn sessions_keep_the_mode_that_they_were_left_in() {
    let (harness, state) = (writing(), TempDir::new().unwrap());
    let mut command = chat(&harness, &["--toolset", "spec", "--mode", "auto", "make it"]);
    let mut terminal = Terminal::run(command.env("PINTLE_STATE_DIR", state.path()), 80, 60, |_| {});
    terminal.wait_for("the end", |screen| screen.contains("Made it.") && screen.contains("· auto ·"));
    terminal.type_keys("/mode ask\r");
    terminal.wait_for_text("· ask ·");
    terminal.type_keys("/undo\r");
    terminal.wait_for_text("the conversation was rewound to 0 entries");
    terminal.type_keys("\u{15}/mode\r");
    terminal.wait_for("the mode", |screen| count(screen, "mode: ask") == 2);
    let [first] = ids(&state).try_into().unwrap();
    terminal.type_keys("/new\r/mode edit\r");
    terminal.wait_for_text("mode: edit");
    // What follows is for the other session.
    terminal.type_keys(&format!("/resume {first}\r/mode\r"));
    terminal.wait_for("the mode again", |screen| count(screen, "mode: ask") == 3);
    leave(terminal);
}

#[test]
fn a_worktree_stays_that_of_its_session() {
    let (harness, state) = (writing(), TempDir::new().unwrap());
    let script =
        "git init -q && git -c user.name=t -c user.email=t@localhost commit -q --allow-empty -m first";
    let made = Command::new("sh").args(["-c", script]).current_dir(harness.path("")).status().unwrap();
    assert!(made.success());
    let mut command = chat(&harness, &["--toolset", "spec", "--worktree", "make it"]);
    command.env("PINTLE_STATE_DIR", state.path());
    let mut terminal = Terminal::run(&command, 80, 60, |_| {});
    ended_with(&mut terminal, "Made it.");
    terminal.type_keys("/undo\r");
    terminal.wait_for_text("the conversation was rewound to 0 entries");
    terminal.type_keys("\r");
    let screen = terminal.wait_for("the answer again", |screen| count(screen, "Made it.") == 2);
    assert!(!screen.contains("another place"), "{screen}");
    leave(terminal);
    let mut list = pintle(&["worktree", "list", "--output", "json"]);
    let listed = run(list.env("PINTLE_STATE_DIR", state.path()).current_dir(harness.path("")));
    let worktrees: Vec<serde_json::Value> = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(worktrees.len(), 1, "{listed:?}");
    assert!(!harness.path("made.txt").exists());
}
