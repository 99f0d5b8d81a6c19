//! `--mode plan`: a plan is presented, and its acceptance changes the mode.

use serde_json::Value;

use crate::harness::run;
use crate::inbox::{Fixture, finish};
use crate::signals::signal;
use crate::terminal::Terminal;

/// Tries to change files, presents a plan, and tries again.
const TURNS: &str = r#"
    [[turn]]
    [[turn.call]]
    tool = "shell"
    arguments = { command = "touch before.txt" }
    [[turn]]
    [[turn.call]]
    tool = "present_plan"
    arguments = { plan = "1. Make a file.\n2. Test it." }
    [[turn]]
    [[turn.call]]
    tool = "write_file"
    arguments = { file_path = "written.txt", content = "x" }
    [[turn]]
    [[turn.call]]
    tool = "shell"
    arguments = { command = "touch after.txt" }
    [[turn]]
    text = "So be it."
    [[turn]]
    text = "Again."
    "#;

/// Returns which of the files there are: the one of the command before, of the file tool, and of the command after.
fn files(fixture: &Fixture) -> [bool; 3] {
    ["before.txt", "written.txt", "after.txt"].map(|name| fixture.harness.path(name).exists())
}

fn in_terminal(fixture: &Fixture, arguments: &[&str]) -> Terminal {
    let mut command = fixture.harness.command("run", arguments);
    Terminal::start(fixture.with_state(&mut command))
}

#[test]
fn whoever_reads_the_plan_decides_on_it_and_on_the_mode() {
    let auto = ["--after-plan", "auto"].as_slice();
    for (flags, answer, mode, expected) in [
        (auto, "y", "auto", [false, true, true]),
        (&[], "auto", "auto", [false, true, true]),
        (auto, "test it first", "plan", [false, false, false]),
        (auto, "n", "plan", [false, false, false]),
    ] {
        let fixture = Fixture::with_turns(TURNS);
        let mut terminal = in_terminal(&fixture, &[&["--mode", "plan"], flags, &["Go"]].concat());
        let screen = terminal.wait_for_text("Accept it?");
        assert!(screen.contains("1. Make a file.") && screen.contains("2. Test it."), "{screen}");
        assert_eq!(files(&fixture), [false; 3]);
        terminal.type_keys(&format!("{answer}\n"));
        let (code, screen, _) = terminal.finish();
        assert_eq!((code, files(&fixture)), (Some(0), expected), "{answer}: {screen}");
        let accepted = screen.contains("✓ present_plan");
        assert_eq!(accepted, mode != "plan", "{answer}: {screen}");
    }
}

/// In mode edit the command after the plan is asked about, and it may write.
#[test]
fn after_a_plan_is_accepted_files_change_and_commands_are_asked_about() {
    let fixture = Fixture::with_turns(TURNS);
    let mut terminal = in_terminal(&fixture, &["--mode", "plan", "Go"]);
    terminal.wait_for_text("Accept it?");
    terminal.type_keys("y\n");
    terminal.wait_for_text("Run it in the sandbox?");
    assert_eq!(files(&fixture), [false, true, false]);
    terminal.type_keys("y\n");
    let (code, screen, _) = terminal.finish();
    assert_eq!((code, files(&fixture)), (Some(0), [false, true, true]), "{screen}");
}

#[test]
fn another_terminal_accepts_a_plan_also_after_the_process_has_died() {
    for dies in [false, true] {
        let fixture = Fixture::with_turns(TURNS);
        let child = fixture.start(&["--mode", "plan", "--after-plan", "auto", "--wait-approval", "Go"]);
        let row = fixture.waiting();
        assert_eq!(row["tool_name"], Value::from("present_plan"));
        assert_eq!(row["reason"], Value::from("accepting the plan changes the mode from plan to auto"));
        let session = row["session"].as_str().unwrap();
        let child = if dies {
            signal(&child, "KILL");
            finish(child);
            None
        } else {
            Some(child)
        };
        let decided = fixture.approvals(&["decide", "allow", session]);
        assert_eq!(decided.code, Some(0), "{decided:?}");
        let output = finish(child.unwrap_or_else(|| fixture.start(&["--resume", session])));
        assert_eq!((output.code, files(&fixture)), (Some(0), [false, true, true]), "{output:?}");
        // The session goes on in the mode that followed, although it began in another one.
        let output = finish(fixture.start(&["--resume", session, "Again"]));
        assert_eq!(output.code, Some(0), "{output:?}");
        let audit =
            run(fixture.with_state(&mut crate::harness::pintle(&["audit", session, "--output", "json"])));
        let last = audit.stdout.rfind(r#""mode":"#).map(|at| &audit.stdout[at..at + 14]);
        assert!(last.is_some_and(|last| last.contains("auto")), "{last:?} of {audit:?}");
    }
}

#[test]
fn where_nobody_can_accept_a_plan_it_is_the_answer() {
    let fixture = Fixture::with_turns(TURNS);
    let output = run(fixture.with_state(&mut fixture.harness.command("run", &["--mode", "plan", "Go"])));
    assert_eq!((output.code, files(&fixture)), (Some(0), [false; 3]), "{output:?}");
    assert!(output.stdout.contains("Unknown tool: present_plan"), "{output:?}");
    assert!(output.stdout.contains("So be it."), "{output:?}");
}

#[test]
fn a_plan_is_not_carried_out_in_mode_plan() {
    let fixture = Fixture::with_turns(TURNS);
    let mut command = fixture.harness.command("run", &["--mode", "plan", "--after-plan", "plan", "Go"]);
    let output = run(fixture.with_state(&mut command));
    assert_eq!(output.code, Some(2), "{output:?}");
    assert!(output.stderr.contains("a plan is carried out in mode `ask`, `edit` or `auto`"), "{output:?}");
}
