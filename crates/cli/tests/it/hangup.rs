//! The terminal goes away while a call waits for approval.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::inbox::{Fixture, finish};
use crate::signals::signal;
use crate::terminal::Terminal;

/// Starts a command in the background, then asks about a file.
const TURNS: &str = r#"
    [[turn]]
    [[turn.call]]
    tool = "shell_start"
    arguments = { command = "echo $$ > pid; exec sleep 600" }
    [[turn]]
    [[turn.call]]
    tool = "write_file"
    arguments = { file_path = "a.txt", content = "hello\n" }
    [[turn]]
    text = "So be it."
    "#;

const FLAGS: [&str; 6] = ["--no-sandbox", "--mode", "ask", "--allow", "shell_start", "Go"];

fn command(fixture: &Fixture, flags: &[&str]) -> Command {
    let mut command = fixture.harness.command("run", &[&FLAGS[..], flags].concat());
    fixture.with_state(&mut command);
    command
}

fn sleeps(fixture: &Fixture) -> bool {
    let pid = fixture.harness.read("pid");
    let command = std::fs::read_to_string(Path::new("/proc").join(pid.trim()).join("cmdline"));
    command.is_ok_and(|command| command.starts_with("sleep"))
}

fn waiting(fixture: &Fixture) -> Vec<Value> {
    let listed = fixture.approvals(&["list", "--output", "json"]);
    serde_json::from_str(&listed.stdout).unwrap()
}

#[test]
fn a_request_outlives_the_terminal_it_was_shown_on() {
    // A session leader receives SIGHUP; other processes only get an error when they read or write.
    for (is_leader, decision, wrote) in [(true, "allow", true), (false, "allow", true), (true, "deny", false)]
    {
        let fixture = Fixture::with_turns(TURNS);
        let command = command(&fixture, &[]);
        let mut terminal = match is_leader {
            true => Terminal::start(&command),
            false => Terminal::start_without_control(&command),
        };
        terminal.wait_for_text("Run it?");
        // The list has it some time after the question.
        fixture.waiting();
        let before = waiting(&fixture);
        assert_eq!(before.len(), 1, "{before:?}");
        fixture.harness.wait_for_file("pid");
        while !sleeps(&fixture) {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        assert_eq!(terminal.hang_up(), Some(130), "{is_leader}");
        assert!(!sleeps(&fixture), "the command is still running");
        assert!(!fixture.harness.path("a.txt").exists());
        assert_eq!(waiting(&fixture), before, "{is_leader}: it is the same request");
        let session = before[0]["session"].as_str().unwrap();
        let decided = fixture.approvals(&["decide", decision, session]);
        assert!(decided.stdout.contains("it applies when the session resumes"), "{decided:?}");
        let output = finish(fixture.start(&["--wait-approval", "--resume", session]));
        assert_eq!(output.code, Some(0), "{output:?}");
        assert_eq!(fixture.harness.path("a.txt").exists(), wrote, "{decision}: {output:?}");
        assert_eq!(waiting(&fixture), Vec::<Value>::new());
    }
}

#[test]
fn a_run_without_a_terminal_leaves_its_request_when_it_is_hung_up() {
    for (name, stays) in [("HUP", true), ("TERM", false)] {
        let fixture = Fixture::with_turns(TURNS);
        let mut command = command(&fixture, &["--wait-approval"]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let before = fixture.waiting();
        signal(&child, name);
        let output = finish(child);
        assert_eq!(output.code, Some(130), "{name}: {output:?}");
        assert!(!sleeps(&fixture), "{name}: the command is still running");
        let expected = if stays { vec![before] } else { Vec::new() };
        assert_eq!(waiting(&fixture), expected, "{name}: {output:?}");
        assert!(!fixture.harness.path("a.txt").exists());
    }
}

#[test]
fn without_a_record_nobody_decides_later_and_nothing_runs() {
    let fixture = Fixture::with_turns(TURNS);
    let mut terminal = Terminal::start(&command(&fixture, &["--no-session"]));
    terminal.wait_for_text("Run it?");
    assert_eq!(terminal.hang_up(), Some(130));
    assert!(!sleeps(&fixture) && !fixture.harness.path("a.txt").exists());
    assert_eq!(waiting(&fixture), Vec::<Value>::new());
}

/// Ctrl-C at a question is an answer: nobody is asked again.
#[test]
fn an_interrupted_request_does_not_stay() {
    let fixture = Fixture::with_turns(TURNS);
    let mut terminal = Terminal::start(&command(&fixture, &[]));
    terminal.wait_for_text("Run it?");
    terminal.type_keys("\u{3}");
    let (code, screen, _) = terminal.finish();
    assert_eq!(code, Some(130), "{screen}");
    assert_eq!(waiting(&fixture), Vec::<Value>::new(), "{screen}");
}
