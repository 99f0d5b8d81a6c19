//! The conversation on a real pseudo-terminal.

mod commands;
mod demo;
mod images;
mod pictures;
mod sessions;
mod shared;
mod tmux;

use std::process::{Command, Stdio};

use pintle_testkit::Dialect;

use crate::harness::{Harness, pintle, run};
use crate::terminal::Terminal;

/// Returns the command, on a terminal that does not reflow, with a state of its own.
pub(crate) fn chat(harness: &Harness, arguments: &[&str]) -> Command {
    let mut command = harness.command("chat", arguments);
    command.env("XTERM_VERSION", "XTerm(390)").env("PINTLE_STATE_DIR", harness.path(".state"));
    // Most of these tests are about something else than questions.
    command.env("PINTLE_MODE", "auto");
    command
}

pub(crate) fn begin(harness: &Harness, arguments: &[&str]) -> Terminal {
    let mut terminal = Terminal::start(&chat(harness, arguments));
    terminal.wait_for_text("say what to do");
    terminal
}

/// Ends the conversation, and returns the screen. The terminal must be as it was before.
pub(crate) fn leave(mut terminal: Terminal) -> String {
    terminal.type_keys("/quit\r");
    let (code, screen, output) = terminal.finish();
    assert_eq!(code, Some(0), "{screen}");
    assert!(output.contains("\u{1b}[?2004l") && output.ends_with("\u{1b}[0m"), "{:?}", output.lines().last());
    assert!(!screen.contains("say what to do"), "the region is gone: {screen}");
    screen
}

pub(crate) fn count(screen: &str, text: &str) -> usize {
    screen.matches(text).count()
}

#[test]
fn a_conversation_goes_on_until_the_user_leaves() {
    let turns = "[[turn]]\ntext = \"I **look**.\"\n[[turn.call]]\ntool = \"shell\"\n\
                 arguments = { command = \"echo seen\" }\n[[turn]]\ntext = \"Found it.\"\n\
                 [[turn]]\ntext = \"You are welcome.\"\n";
    let harness = Harness::new(Dialect::AnthropicMessages, turns);
    let mut terminal = begin(&harness, &["find it"]);
    let screen = terminal.wait_for_text("Found it.");
    assert!(screen.contains("› find it") && screen.contains("I look."), "{screen}");
    assert!(screen.contains("✓ shell echo seen") && screen.contains("    seen"), "{screen}");
    terminal.type_keys("thank you\r");
    terminal.wait_for_text("You are welcome.");
    let screen = leave(terminal);
    for line in ["› find it", "I look.", "Found it.", "› thank you", "You are welcome."] {
        assert_eq!(count(&screen, line), 1, "{line}: {screen}");
    }
    let mut list = pintle(&["sessions", "list", "--all"]);
    let listed = run(list.env("PINTLE_STATE_DIR", harness.path(".state")));
    assert_eq!(listed.stdout.lines().filter(|line| line.contains("find it")).count(), 1, "{listed:?}");
}

#[test]
fn a_turn_is_steered_and_interrupted() {
    let turns = "[[turn]]\ntext = \"I wait.\"\n[[turn.call]]\ntool = \"shell\"\n\
                 arguments = { command = \"until test -e go; do sleep 0.02; done\", timeout_ms = 600000 }\n\
                 [[turn]]\ntext = \"Steered.\"\n[[turn.call]]\ntool = \"shell\"\n\
                 arguments = { command = \"sleep 600\", timeout_ms = 600000 }\n\
                 [[turn]]\ntext = \"Still here.\"\n";
    let harness = Harness::new(Dialect::AnthropicMessages, turns);
    let mut terminal = begin(&harness, &[]);
    terminal.type_keys("go\r");
    terminal.wait_for_text("shell until test -e go");
    terminal.type_keys("look at b.txt");
    terminal.wait_for_text("Enter steers the turn");
    terminal.type_keys("\r");
    terminal.wait_for_text("1 queued");
    std::fs::write(harness.path("go"), "").unwrap();
    terminal.wait_for_text("› look at b.txt");
    terminal.wait_for_text("shell sleep 600");
    terminal.type_keys("half a thought\u{1b}");
    terminal.wait_for_text("✗ shell sleep 600 cancelled");
    let screen = terminal.wait_for_text("› half a thought");
    assert!(screen.contains("Steered."), "what was said stays: {screen}");
    terminal.type_keys(" and more\r");
    terminal.wait_for_text("Still here.");
    leave(terminal);
}

/// Deltas that arrive more often than a sequence may take do not postpone the key.
#[test]
fn escape_interrupts_a_model_that_streams() {
    let words = "word ".repeat(4_000);
    let turns = format!("[[turn]]\npause_ms = 10\ntext = \"{words}\"\n");
    let harness = Harness::new(Dialect::AnthropicMessages, &turns);
    let mut terminal = begin(&harness, &["go"]);
    terminal.wait_for_text("word word");
    terminal.type_keys("\u{1b}");
    terminal.wait_for_text("[interrupted]");
    leave(terminal);
}

/// As the default of a conversation: somebody is there to be asked.
#[test]
fn commands_are_asked_about_and_edits_are_not() {
    let turns = "[[turn]]\n[[turn.call]]\ntool = \"write_file\"\n\
                 arguments = { file_path = \"made.txt\", content = \"one\" }\n\
                 [[turn]]\n[[turn.call]]\ntool = \"shell\"\narguments = { command = \"touch ran\" }\n\
                 [[turn]]\ntext = \"Ready.\"\n";
    let harness = Harness::new(Dialect::AnthropicMessages, turns);
    let mut terminal = Terminal::start(chat(&harness, &["go"]).env_remove("PINTLE_MODE"));
    terminal.wait_for("a question", |screen| screen.contains("touch ran") && screen.contains("y once"));
    assert!(harness.path("made.txt").exists() && !harness.path("ran").exists());
    terminal.type_keys("y");
    terminal.wait_for("the end", |screen| screen.contains("Ready.") && screen.contains("· edit ·"));
    assert!(harness.path("ran").exists());
    leave(terminal);
}

#[test]
fn a_question_of_the_model_is_answered_by_the_next_input() {
    let turns = "[[turn]]\n[[turn.call]]\ntool = \"ask_user\"\n\
                 arguments = { question = \"Which port?\", options = [\"80\", \"8080\"] }\n\
                 [[turn]]\ntext = \"It is done.\"\n[[turn.expect]]\nrequest_contains = \"port 8080, please\"\n";
    let harness = Harness::new(Dialect::AnthropicMessages, turns);
    let mut terminal = begin(&harness, &["go"]);
    terminal.wait_for("the question", |screen| {
        screen.contains("    Which port?\n    1. 80\n    2. 8080\n") && !screen.contains("Esc interrupts")
    });
    terminal.type_keys("port 8080, please\r");
    terminal.wait_for_text("It is done.");
    leave(terminal);
}

#[test]
fn calls_are_approved_with_keys_and_rules() {
    let call = |command: &str| {
        format!("[[turn]]\n[[turn.call]]\ntool = \"shell\"\narguments = {{ command = \"{command}\" }}\n")
    };
    let turns = [
        call("touch a"),
        call("touch b"),
        call("touch b"),
        call("touch c"),
        "[[turn]]\ntext = \"Ready.\"\n".into(),
    ];
    let harness = Harness::new(Dialect::AnthropicMessages, &turns.concat());
    let mut terminal = begin(&harness, &["--mode", "ask", "go"]);
    terminal.wait_for("a question", |screen| screen.contains("touch a") && screen.contains("y once"));
    assert!(!harness.path("a").exists());
    terminal.type_keys("y");
    terminal.wait_for("another question", |screen| screen.contains("shell(touch b)"));
    assert!(harness.path("a").exists());
    // The second time it is not asked about.
    terminal.type_keys("s");
    terminal.wait_for("the last question", |screen| screen.contains("shell(touch c)"));
    terminal.type_keys("wuse a file\r");
    let screen = terminal.wait_for_text("Ready.");
    assert_eq!(count(&screen, "✓ shell touch b"), 2, "{screen}");
    assert!(screen.contains("✗ shell touch c denied") && screen.contains("use a file"), "{screen}");
    assert!(harness.path("b").exists() && !harness.path("c").exists());
    leave(terminal);
}

#[test]
fn inputs_and_the_conversation_are_there_the_next_time() {
    let turns = "[[turn]]\ntext = \"Noted.\"\n[[turn]]\ntext = \"I remember.\"\n";
    let harness = Harness::new(Dialect::AnthropicMessages, turns);
    let mut terminal = begin(&harness, &[]);
    terminal.type_keys("remember 42\r");
    terminal.wait_for_text("Noted.");
    leave(terminal);
    let mut terminal = begin(&harness, &["--continue"]);
    terminal.type_keys("\u{1b}[A");
    terminal.wait_for_text("› remember 42");
    terminal.type_keys("\u{15}what was it?\r");
    terminal.wait_for_text("I remember.");
    leave(terminal);
}

#[test]
fn a_change_of_the_windows_size_neither_doubles_nor_loses_lines() {
    let lines: String = (0..30).map(|number| format!("line {number} of the answer\\n\\n")).collect();
    let harness = Harness::new(Dialect::AnthropicMessages, &format!("[[turn]]\ntext = \"{lines}\"\n"));
    let mut terminal = begin(&harness, &["go"]);
    terminal.wait_for_text("line 29 of the answer");
    for (columns, rows) in [(60, 20), (100, 30), (41, 12), (80, 24)] {
        terminal.resize(columns, rows);
        terminal.type_keys("x");
        let xs = |screen: &str| screen.lines().filter(|line| line.starts_with("› x")).count();
        terminal.wait_for("the input, once", |screen| xs(screen) == 1);
    }
    terminal.type_keys("\u{15}");
    terminal.wait_for_text("say what to do");
    let screen = leave(terminal);
    assert_eq!(count(&screen, "line 29 of the answer"), 1, "{screen}");
}

#[test]
fn modes_and_others_are_changed_by_commands() {
    let harness = Harness::new(Dialect::AnthropicMessages, "[[turn]]\ntext = \"Done.\"\n");
    let mut terminal = begin(&harness, &[]);
    terminal.wait_for_text("· auto ·");
    terminal.type_keys("/mode edit\r");
    terminal.wait_for_text("· edit ·");
    terminal.type_keys("/mode fast\r");
    terminal.wait_for_text("expected plan, ask, edit or auto");
    terminal.type_keys("\u{3}/effort high\r");
    terminal.wait_for_text("· high ·");
    terminal.type_keys("/status\r");
    terminal.wait_for_text("directory: ");
    terminal.type_keys("/help\r");
    terminal.wait_for_text("list the rules of this session");
    leave(terminal);
}

#[test]
fn the_configuration_applies_to_a_conversation() {
    let harness = Harness::new(Dialect::AnthropicMessages, "[[turn]]\ntext = \"Done.\"\n");
    std::fs::create_dir(harness.path("configuration")).unwrap();
    std::fs::write(
        harness.path("configuration/config.toml"),
        "mode = \"ask\"\nreasoning_effort = \"xhigh\"\n",
    )
    .unwrap();
    let mut command = chat(&harness, &[]);
    command.env_remove("PINTLE_MODE");
    let mut terminal = Terminal::start(command.env("PINTLE_CONFIG_DIR", harness.path("configuration")));
    terminal.wait_for_text("say what to do");
    terminal.wait_for_text("· xhigh · ask ·");
    leave(terminal);
}

#[test]
fn commands_of_the_user_run_where_the_tools_work() {
    let harness = Harness::new(Dialect::AnthropicMessages, "[[turn]]\ntext = \"Seen.\"\n");
    std::fs::write(harness.path("here"), "").unwrap();
    let mut terminal = begin(&harness, &[]);
    terminal.type_keys("!ls; exit 3\r");
    terminal.wait_for("the command and its output", |screen| {
        screen.contains("! ls; exit 3 exit 3") && screen.contains("    here")
    });
    terminal.type_keys("look\r");
    let screen = terminal.wait_for_text("Seen.");
    assert!(screen.contains("› I ran `ls; exit 3` (exit 3):"), "{screen}");
    leave(terminal);
}

#[test]
fn the_whole_conversation_can_be_looked_through() {
    let lines: String = (0..60).map(|number| format!("- line {number}\\n")).collect();
    let turns = format!(
        "[[turn]]\ntext = \"{lines}\"\n[[turn.call]]\ntool = \"shell\"\narguments = {{ command = \"seq 100 130\" }}\n\
         [[turn]]\ntext = \"The end.\"\n"
    );
    let harness = Harness::new(Dialect::AnthropicMessages, &turns);
    let mut terminal = begin(&harness, &["go"]);
    let before = terminal.wait_for_text("The end.");
    terminal.type_keys("half\u{14}");
    terminal.wait_for_text("q closes");
    terminal.type_keys("/seq 100\r");
    terminal.wait_for("the call with its output", |screen| {
        screen.starts_with("      \"command\": \"seq 100 130\"")
            && screen.contains("    100")
            && screen.contains("    115")
    });
    terminal.type_keys("g");
    terminal.wait_for("the beginning", |screen| screen.starts_with("› go") && screen.contains("• line 3"));
    terminal.resize(60, 24);
    terminal.type_keys("q");
    let after = terminal.wait_for_text("› half");
    assert!(after.contains("The end.") && !after.contains("q closes"), "{before}\n{after}");
    terminal.type_keys("\u{15}");
    leave(terminal);
}

#[test]
fn a_failed_turn_is_explained_and_the_conversation_goes_on() {
    let turns = "[[turn]]\nfailure = [{ status = 400 }]\ntext = \"Done.\"\n";
    let harness = Harness::new(Dialect::AnthropicMessages, turns);
    let mut terminal = begin(&harness, &["go"]);
    terminal.wait_for_text("✗ invalid request");
    terminal.type_keys("again\r");
    // The server fails on the first turn of each conversation.
    terminal.wait_for("the next failure", |screen| count(screen, "✗ invalid request") == 2);
    leave(terminal);
}

/// No input would succeed without another key.
#[test]
fn a_wrong_key_ends_the_conversation() {
    let harness = Harness::new(Dialect::AnthropicMessages, "[[turn]]\ntext = \"Done.\"\n");
    let mut command = chat(&harness, &["go"]);
    command.env("ANTHROPIC_API_KEY", "sk-wrong");
    let (code, screen, output) = Terminal::start(&command).finish();
    assert_eq!(code, Some(4), "{screen}");
    assert!(screen.contains("check the key in ANTHROPIC_API_KEY"), "{screen}");
    assert!(output.contains("\u{1b}[?2004l") && !screen.contains("say what to do"), "{screen}");
}

#[test]
fn a_signal_leaves_the_terminal_as_it_was() {
    let turns = "[[turn]]\n[[turn.call]]\ntool = \"shell\"\narguments = { command = \"sleep 600\" }\n";
    let harness = Harness::new(Dialect::AnthropicMessages, turns);
    let mut terminal = begin(&harness, &["go"]);
    terminal.wait_for_text("shell sleep 600");
    let pid = rustix::process::Pid::from_raw(terminal.pid().try_into().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let (code, screen, output) = terminal.finish();
    assert_eq!(code, Some(130), "{screen}");
    assert!(output.contains("\u{1b}[?2004l") && !screen.contains("say what to do"), "{screen}");
}

#[test]
fn a_conversation_needs_a_terminal() {
    let harness = Harness::new(Dialect::AnthropicMessages, "[[turn]]\ntext = \"Done.\"\n");
    let output = run(chat(&harness, &["go"]).stdin(Stdio::null()));
    assert_eq!(output.code, Some(2), "{output:?}");
    assert!(
        output.stderr.contains("needs a terminal") && output.stderr.contains("`pintle run`"),
        "{output:?}"
    );
    // Without a subcommand it is the same.
    let bare = run(&mut pintle(&["say something"]));
    assert!(bare.code == Some(2) && bare.stderr.contains("needs a terminal"), "{bare:?}");
    let mistyped = run(&mut pintle(&["sesions"]));
    assert!(mistyped.code == Some(2) && mistyped.stderr.contains("sessions"), "{mistyped:?}");
}

#[test]
fn title_and_notifications_follow_the_turn() {
    let turns = "[[turn]]\n[[turn.call]]\ntool = \"shell\"\n\
                 arguments = { command = \"until test -e go; do sleep 0.02; done\", timeout_ms = 600000 }\n\
                 [[turn]]\ntext = \"Done.\"\n";
    let harness = Harness::new(Dialect::AnthropicMessages, turns);
    let name = harness.directory.path().file_name().unwrap().to_str().unwrap().to_owned();
    let title = |state: &str| format!("\u{1b}]2;{name}: {state}\u{7}");
    let mut terminal = Terminal::start(&chat(&harness, &["--notify", "osc9", "go"]));
    terminal.wait_for_text("shell until test -e go");
    // Whoever has not typed for so long looks elsewhere.
    terminal.wait_for("six seconds", |screen| {
        let seconds = screen.split("done ").filter_map(|rest| rest.split(" s").next()?.parse::<u64>().ok());
        seconds.max().is_some_and(|seconds| seconds >= 6)
    });
    std::fs::write(harness.path("go"), "").unwrap();
    terminal.wait_for_text("Done.");
    terminal.wait_for("the end of the turn", |screen| !screen.contains("Esc interrupts"));
    terminal.type_keys("/quit\r");
    let (code, screen, output) = terminal.finish();
    assert_eq!(code, Some(0), "{screen}");
    let mut rest = output.as_str();
    let notified = "\u{1b}]9;pintle: ready\u{7}".to_owned();
    for expected in ["\u{1b}[22;0t".to_owned(), title("ready"), title("works"), title("ready"), notified] {
        rest = rest.split_once(&expected).unwrap_or_else(|| panic!("{expected:?} is missing: {output:?}")).1;
    }
    assert_eq!(output.matches("\u{1b}]9;").count(), 1, "{output:?}");
    assert_eq!(output.matches("\u{1b}[23;0t").count(), 1, "{output:?}");
}

#[test]
fn multiplexers_get_neither_title_nor_notifications() {
    for (variable, value) in
        [("TMUX", "/tmp/tmux-0/default,1,0"), ("STY", "1.pts"), ("TERM", "screen-256color")]
    {
        let harness = Harness::new(Dialect::AnthropicMessages, "[[turn]]\ntext = \"Done.\"\n");
        let mut terminal = Terminal::start(chat(&harness, &["go"]).env(variable, value));
        terminal.wait_for_text("Done.");
        terminal.type_keys("/quit\r");
        let (code, screen, output) = terminal.finish();
        assert_eq!(code, Some(0), "{screen}");
        assert!(
            !output.contains("\u{1b}]") && !output.contains(";0t") && !output.contains('\u{7}'),
            "{output:?}"
        );
    }
}
