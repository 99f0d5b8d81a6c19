//! `pintle run` on a pseudo-terminal with a size, a keyboard and a controlling process.

mod pty;

use std::io::Read as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use pintle_testkit::Dialect;

use self::pty::TIMEOUT;
pub(crate) use self::pty::Terminal;
use crate::harness::{Harness, sandbox_levels, without_level_notice};
use crate::subagents::BOTH_WRITE;

/// Scripts a shell call, such as one that waits for the file `go`.
fn shell_call(command: &str) -> String {
    format!(
        "[[turn]]\ntext = \"I wait.\"\n[[turn.call]]\ntool = \"shell\"\narguments = {{ command = \"{command}\", timeout_ms = 600000 }}\n[[turn]]\ntext = \"Done.\"\n"
    )
}

const UNTIL_GO: &str = "until test -e go; do sleep 0.02; done; echo went";

fn is_spinning(screen: &str) -> bool {
    screen.contains("⠋") || screen.chars().any(|character| ('\u{2801}'..='\u{28ff}').contains(&character))
}

#[test]
fn activity_is_shown_and_erased() {
    let turns =
        format!("[[turn]]\nfailure = [{{ stall_ms = 400, status = 503 }}]\n{}", &shell_call(UNTIL_GO)[9..]);
    let harness = Harness::new(Dialect::AnthropicMessages, &turns);
    let mut terminal = Terminal::start(&harness.command("run", &["Wait"]));
    terminal.wait_for_text("waiting for the model");
    terminal.wait_for("a call that runs", |screen| {
        screen.contains("shell until test -e go") && is_spinning(screen)
    });
    std::fs::write(harness.path("go"), "").unwrap();
    let (code, screen, _) = terminal.finish();
    let screen = without_level_notice(&screen);
    assert_eq!(code, Some(0), "{screen}");
    assert!(!is_spinning(&screen) && !screen.contains("waiting"), "{screen}");
    let lines: Vec<&str> =
        screen.lines().filter(|line| !line.starts_with("[warning]") && !line.is_empty()).collect();
    assert!(lines[0] == "I wait." && lines[1].starts_with("✓ shell until test -e go"), "{screen}");
    assert!(lines.contains(&"    went") && lines.contains(&"Done."), "{screen}");
    assert!(lines.last().unwrap().starts_with("[done] 2 model calls, 1 tool call"), "{screen}");
}

/// A program that opens the terminal would write over the display, and wait for a password that the user types to `pintle`.
#[test]
fn no_command_has_the_terminal_at_any_level() {
    let line = "if (: </dev/tty) 2>/dev/null; then echo yes; else echo no; fi >has-terminal";
    for level in sandbox_levels().into_iter().chain(["off"]) {
        let harness = Harness::new(Dialect::AnthropicMessages, &shell_call(line));
        let terminal = Terminal::start(&harness.command("run", &["--sandbox", level, "Look"]));
        let (code, screen, _) = terminal.finish();
        assert_eq!(code, Some(0), "{level}: {screen}");
        assert_eq!(harness.read("has-terminal"), "no\n", "{level}: {screen}");
    }
}

#[test]
fn typeahead_does_not_reach_the_shell() {
    let harness = Harness::new(Dialect::AnthropicMessages, &shell_call(UNTIL_GO));
    let command = harness.command("run", &["Wait"]);
    let mut shell = Command::new("setsid");
    let script = "\"$0\" \"$@\"; echo the shell reads; read -r line; echo \"the shell got: $line\"";
    shell.args(["--wait", "--ctty", "sh", "-c", script]).arg(command.get_program());
    let mut terminal = Terminal::run_as(shell, &command, 80, 24, |_| {});
    terminal.wait_for("a call that runs", is_spinning);
    terminal.type_keys("rm -rf important\n");
    std::fs::write(harness.path("go"), "").unwrap();
    terminal.wait_for_text("the shell reads");
    terminal.type_keys("true\n");
    let (code, screen, _) = terminal.finish();
    assert_eq!(code, Some(0), "{screen}");
    assert!(screen.contains("the shell got: true"), "{screen}");
}

#[test]
fn streamed_patch_is_shown_as_a_diff() {
    let lines: String = (0..40).map(|number| format!("+line {number}\n")).collect();
    let turns = format!(
        "[[turn]]\npause_ms = 100\n[[turn.call]]\ntool = \"apply_patch\"\narguments = {{ patch = '''\n*** Begin Patch\n*** Add File: a.txt\n{lines}*** End Patch\n''' }}\n[[turn]]\ntext = \"Done.\"\n"
    );
    let harness = Harness::new(Dialect::OpenAiResponses, &turns);
    let mut terminal = Terminal::start(&harness.command("run", &["Write"]));
    terminal.wait_for("a diff that grows", |screen| {
        is_spinning(screen) && screen.contains("apply_patch a.txt +") && screen.contains("    +line 1")
    });
    let (code, screen, _) = terminal.finish();
    assert_eq!(code, Some(0), "{screen}");
    assert!(!is_spinning(&screen) && screen.contains("    +line 39"), "{screen}");
    assert_eq!(harness.read("a.txt").lines().count(), 40);
}

const TWO_WRITES: &str = r#"
    [[turn]]
    text = "Two files."
    [[turn.call]]
    tool = "write_file"
    arguments = { file_path = "a.txt", content = "hello\n" }
    [[turn.call]]
    tool = "write_file"
    arguments = { file_path = "b.txt", content = "world\n" }
    [[turn]]
    text = "So be it."
    "#;

#[test]
fn approvals_are_answered_at_the_terminal() {
    let harness = Harness::new(Dialect::AnthropicMessages, TWO_WRITES);
    let mut terminal = Terminal::start(&harness.command("run", &["--mode", "ask", "Go"]));
    let question = "what to do instead: ";
    let screen = terminal.wait_for_text(question);
    // The calls are prepared in parallel, so either question may come first.
    let a_is_first = screen.contains("+hello");
    assert!(a_is_first != screen.contains("+world") && !is_spinning(&screen), "{screen}");
    assert!(!harness.path("a.txt").exists());
    terminal.type_keys(if a_is_first { "y\n" } else { "n\n" });
    let screen = terminal.wait_for("a second question", |screen| screen.matches(question).count() == 2);
    assert!(screen.contains("+hello") && screen.contains("+world") && !is_spinning(&screen), "{screen}");
    terminal.type_keys(if a_is_first { "n\n" } else { "y\n" });
    let (code, screen, _) = terminal.finish();
    assert_eq!(code, Some(0), "{screen}");
    assert!(harness.path("a.txt").exists() && !harness.path("b.txt").exists(), "{screen}");
    for answer in ["y", "n"] {
        assert!(screen.contains(&format!("{question}{answer}\n")), "{screen}");
    }
    assert!(
        screen.contains("✓ write_file a.txt") && screen.contains("✗ write_file b.txt denied"),
        "{screen}"
    );
    assert!(screen.contains("So be it."), "{screen}");
}

/// The calls of the session and of its subagent have the same ids.
#[test]
fn subagent_approvals_are_answered_at_the_terminal() {
    let harness = Harness::new(Dialect::AnthropicMessages, BOTH_WRITE);
    std::fs::create_dir(harness.path("sub")).unwrap();
    let mut terminal = Terminal::run(&harness.command("run", &["--mode", "ask", "Go"]), 100, 60, |_| {});
    let question = "what to do instead: ";
    terminal.wait_for_text(question);
    terminal.type_keys("y\n");
    terminal.wait_for("the other question", |screen| screen.matches(question).count() == 2);
    terminal.type_keys("y\n");
    let (code, screen, _) = terminal.finish();
    assert_eq!(code, Some(0), "{screen}");
    assert!(harness.path("a.txt").exists() && harness.path("sub/a.txt").exists(), "{screen}");
    assert!(screen.contains("\nagent_1: write_file (") && screen.contains("\nwrite_file ("), "{screen}");
    assert!(screen.contains("[agent_1] ✓ write_file a.txt"), "{screen}");
}

#[test]
fn ctrl_c_ends_the_run_and_clears_the_live_region() {
    let command = format!("touch began; {UNTIL_GO}");
    let harness = Harness::new(Dialect::AnthropicMessages, &shell_call(&command));
    let mut terminal = Terminal::start(&harness.command("run", &["Wait"]));
    terminal.wait_for("a call", |screen| screen.contains("shell touch began") && is_spinning(screen));
    // The row is the same while the model writes the call.
    harness.wait_for_file("began");
    terminal.type_keys("\u{3}");
    let (code, screen, _) = terminal.finish();
    assert_eq!(code, Some(130), "{screen}");
    assert!(!is_spinning(&screen), "{screen}");
    assert!(screen.lines().any(|line| line.starts_with("pintle: interrupted")), "{screen}");
    assert!(screen.lines().any(|line| line.starts_with("✗ shell") && line.contains("cancelled")), "{screen}");
}

#[test]
fn the_key_of_an_interrupt_is_not_left_before_its_notice() {
    let command = format!("touch began; {UNTIL_GO}");
    let harness = Harness::new(Dialect::AnthropicMessages, &shell_call(&command));
    // Without a live region, the cursor is on an empty line.
    let mut terminal = Terminal::start(harness.command("run", &["Wait"]).env("TERM", "dumb"));
    harness.wait_for_file("began");
    terminal.type_keys("\u{3}");
    let (code, screen, _) = terminal.finish();
    assert_eq!(code, Some(130), "{screen}");
    assert!(screen.lines().any(|line| line.starts_with("pintle: interrupted")), "{screen}");
}

#[test]
fn ctrl_c_at_an_approval_ends_its_line() {
    let harness = Harness::new(Dialect::AnthropicMessages, TWO_WRITES);
    let mut terminal = Terminal::start(&harness.command("run", &["--mode", "ask", "Go"]));
    terminal.wait_for_text("what to do instead: ");
    terminal.type_keys("\u{3}");
    let (code, screen, _) = terminal.finish();
    assert_eq!(code, Some(130), "{screen}");
    assert!(screen.lines().any(|line| line.starts_with("pintle: interrupted")), "{screen}");
    assert!(!harness.path("a.txt").exists());
}

/// Script that asks a question with a tool and uses the answer.
const ONE_QUESTION: &str = "[[turn]]\n[[turn.call]]\ntool = \"ask_user\"\narguments = { question = \"Which port?\", options = [\"80\", \"8080\"] }\n[[turn]]\ntext = \"It is done.\"\n[[turn.expect]]\nrequest_contains = \"port 8080, please\"\n";

#[test]
fn tool_question_is_answered_at_the_terminal() {
    let harness = Harness::new(Dialect::ChatCompletions, ONE_QUESTION);
    let mut terminal = Terminal::start(&harness.command("run", &["Go"]));
    let screen = terminal.wait_for_text("\n> ");
    assert!(screen.contains("Which port?\n1. 80\n2. 8080\n") && !is_spinning(&screen), "{screen}");
    terminal.type_keys("port 8080, please\n");
    let (code, screen, _) = terminal.finish();
    assert_eq!(code, Some(0), "{screen}");
    assert!(screen.contains("> port 8080, please\n") && screen.contains("It is done."), "{screen}");
}

/// Script whose text ends with a question and that uses the answer.
const FINAL_QUESTION: &str = "[[turn]]\ntext = \"Shall I take port 80 or 8080?\"\n[[turn]]\ntext = \"It is done.\"\n[[turn.expect]]\nrequest_contains = \"port 8080, please\"\n";

#[test]
fn final_question_is_answered_at_the_terminal() {
    for (output, times) in [("text", 1), ("json", 1)] {
        let harness = Harness::new(Dialect::ChatCompletions, FINAL_QUESTION);
        let mut terminal = Terminal::start(&harness.command("run", &["--output", output, "Go"]));
        let screen = terminal.wait_for_text("\n> ");
        assert_eq!(screen.matches("Shall I take port 80 or 8080?").count(), times, "{screen}");
        terminal.type_keys("port 8080, please\n");
        let (code, screen, _) = terminal.finish();
        assert_eq!(code, Some(0), "{screen}");
        assert!(screen.contains("It is done."), "{screen}");
    }
}

#[test]
fn final_question_may_be_left_unanswered() {
    let harness = Harness::new(Dialect::ChatCompletions, FINAL_QUESTION);
    let mut terminal = Terminal::start(&harness.command("run", &["Go"]));
    terminal.wait_for_text("(type an answer, or press Enter to end)\n> ");
    terminal.type_keys("\n");
    let (code, screen, _) = terminal.finish();
    assert_eq!(code, Some(0), "{screen}");
    assert!(screen.contains("[done, with a question]"), "{screen}");
}

#[test]
fn ctrl_c_at_a_model_question_ends_the_run() {
    let harness = Harness::new(Dialect::ChatCompletions, ONE_QUESTION);
    let mut terminal = Terminal::start(&harness.command("run", &["Go"]));
    terminal.wait_for_text("\n> ");
    terminal.type_keys("\u{3}");
    let (code, screen, _) = terminal.finish();
    assert_eq!(code, Some(130), "{screen}");
    assert!(screen.contains("pintle: interrupted") && !screen.contains("It is done."), "{screen}");
}

#[test]
fn second_ctrl_c_clears_the_live_region() {
    let harness = Harness::new(
        Dialect::AnthropicMessages,
        &shell_call("trap '' TERM; touch began; until test -e go; do sleep 0.02; done"),
    );
    let mut terminal = Terminal::start(&harness.command("run", &["Wait"]));
    terminal.wait_for("a call", |screen| screen.contains("shell trap") && is_spinning(screen));
    harness.wait_for_file("began");
    terminal.type_keys("\u{3}");
    terminal.wait_for_text("interrupt again");
    terminal.type_keys("\u{3}");
    let (code, screen, _) = terminal.finish();
    assert_eq!(code, Some(130), "{screen}");
    assert!(!is_spinning(&screen), "{screen}");
}

#[test]
fn live_region_follows_the_window_size() {
    let command = "until test -e go; do sleep 0.02; done; echo a long command that is cut in a narrow window";
    let harness = Harness::new(Dialect::AnthropicMessages, &shell_call(command));
    let mut terminal = Terminal::run(&harness.command("run", &["Wait"]), 40, 12, |_| {});
    let is_truncated = |columns: usize| {
        move |screen: &str| {
            let line = screen.lines().find(|line| is_spinning(line) && line.contains("shell"));
            line.is_some_and(|line| {
                line.contains('…') && (columns - 8..columns).contains(&line.chars().count())
            })
        }
    };
    terminal.wait_for("a line truncated at 40 columns", is_truncated(40));
    terminal.resize(60, 8);
    terminal.wait_for("a line truncated at 60 columns", is_truncated(60));
    terminal.resize(30, 20);
    let screen = terminal.wait_for("a line truncated at 30 columns", is_truncated(30));
    assert_eq!(screen.lines().filter(|line| is_spinning(line)).count(), 1, "{screen}");
    std::fs::write(harness.path("go"), "").unwrap();
    terminal.resize(100, 20);
    let (code, screen, _) = terminal.finish();
    assert_eq!(code, Some(0), "{screen}");
    assert!(!is_spinning(&screen) && screen.contains("✓ shell until test"), "{screen}");
}

#[test]
fn no_color_and_dumb_terminals_are_respected() {
    let cases = [("LANG", "C", true, true), ("NO_COLOR", "1", true, false), ("TERM", "dumb", false, false)];
    for (name, value, moves, colours) in cases {
        let harness = Harness::new(Dialect::AnthropicMessages, &shell_call("sleep 0.4; echo went"));
        let mut command = harness.command("run", &["Wait"]);
        command.env(name, value);
        let (code, screen, bytes) = Terminal::start(&command).finish();
        assert_eq!(code, Some(0), "{screen}");
        assert_eq!(
            (bytes.contains("\u{1b}[J"), bytes.contains("\u{1b}[32m")),
            (moves, colours),
            "{name} {bytes:?}"
        );
        if !moves {
            assert!(!bytes.contains('\u{1b}') && screen.contains("[shell] sleep 0.4"), "{bytes:?}");
        }
    }
}

#[test]
fn piped_output_has_no_live_region() {
    let harness = Harness::new(Dialect::AnthropicMessages, &shell_call("sleep 0.4; echo went"));
    let mut out = tempfile::tempfile().unwrap();
    let file = out.try_clone().unwrap();
    let terminal = Terminal::run(&harness.command("run", &["Wait"]), 80, 24, |command| {
        command.stdout(Stdio::from(file));
    });
    let (code, screen, bytes) = terminal.finish();
    let mut piped = String::new();
    std::io::Seek::rewind(&mut out).unwrap();
    out.read_to_string(&mut piped).unwrap();
    let [screen, bytes] = [screen, bytes].map(|text| without_level_notice(&text));
    assert_eq!((code, screen.trim(), bytes.as_str()), (Some(0), "", ""));
    assert!(
        piped.starts_with("I wait.\n\n[shell] sleep 0.4; echo went (ok, ") && !piped.contains('\u{1b}'),
        "{piped:?}"
    );
}

#[test]
fn stopped_terminal_does_not_block_the_session() {
    let turns = shell_call(UNTIL_GO).replace(
        "[[turn]]\ntext = \"Done.\"",
        "[[turn]]\n[[turn.call]]\ntool = \"shell\"\narguments = { command = \"touch came\" }\n[[turn]]\ntext = \"Done.\"",
    );
    let harness = Harness::new(Dialect::AnthropicMessages, &turns);
    let mut terminal = Terminal::start(&harness.command("run", &["Wait"]));
    terminal.wait_for("a call that runs", |screen| {
        screen.contains("shell until test -e go") && is_spinning(screen)
    });
    // Ctrl-S, and later Ctrl-Q.
    terminal.type_keys("\u{13}");
    std::fs::write(harness.path("go"), "").unwrap();
    let deadline = Instant::now() + TIMEOUT;
    while !harness.path("came").exists() {
        assert!(Instant::now() < deadline, "the session is blocked");
        std::thread::sleep(Duration::from_millis(10));
    }
    terminal.type_keys("\u{11}");
    let (code, screen, _) = terminal.finish();
    assert_eq!(code, Some(0), "{screen}");
    assert!(!is_spinning(&screen) && screen.contains("✓ shell touch came"), "{screen}");
}

#[test]
fn closed_terminal_ends_the_run() {
    // A session leader receives SIGHUP; other processes only get an error when they write.
    for is_leader in [true, false] {
        let turns = shell_call("echo $$ > pid; until test -e go; do sleep 0.02; done");
        let harness = Harness::new(Dialect::AnthropicMessages, &turns);
        let command = harness.command("run", &["--no-sandbox", "Wait"]);
        let mut terminal =
            if is_leader { Terminal::start(&command) } else { Terminal::start_without_control(&command) };
        terminal.wait_for("a call that runs", |screen| {
            screen.contains("shell echo") && is_spinning(screen) && harness.path("pid").exists()
        });
        assert_eq!(terminal.hang_up(), Some(130), "{is_leader}");
        let pid = harness.read("pid");
        assert!(!std::path::Path::new("/proc").join(pid.trim()).exists(), "the command is still running");
    }
}
