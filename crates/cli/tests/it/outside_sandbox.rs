//! Commands that ask to leave the sandbox, at both of its levels.

use std::path::PathBuf;
use std::process::Stdio;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{pintle, run, sandbox_levels};
use crate::inbox::{Fixture, finish};
use crate::terminal::Terminal;

/// A command that writes where the sandbox does not let it: first inside, then outside.
struct Outside {
    fixture: Fixture,
    directory: TempDir,
}

impl Outside {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("made").display().to_string();
        let turns = format!(
            r#"
            [[turn]]
            [[turn.call]]
            tool = "shell"
            arguments = {{ command = "touch {target}" }}
            [[turn]]
            [[turn.call]]
            tool = "shell"
            arguments = {{ command = "touch {target}", outside_sandbox = true }}
            [[turn]]
            text = "So be it."
            [[turn]]
            text = "Again."
            "#
        );
        Self { fixture: Fixture::with_turns(&turns), directory }
    }

    fn target(&self) -> PathBuf {
        self.directory.path().join("made")
    }
}

#[test]
fn a_person_allows_a_command_outside_inside_or_not_at_all() {
    for level in sandbox_levels() {
        for (answer, made, denied) in
            [("y", true, false), ("i", false, false), ("n", false, true), ("use the cache", false, true)]
        {
            let outside = Outside::new();
            let mut command = outside.fixture.harness.command("run", &["--sandbox", level, "Go"]);
            let mut terminal = Terminal::start(outside.fixture.with_state(&mut command));
            let screen = terminal.wait_for_text("[i]nside instead");
            assert!(screen.contains("it runs outside of the sandbox"), "{screen}");
            assert!(!outside.target().exists(), "the first call was held back: {screen}");
            terminal.type_keys(&format!("{answer}\n"));
            let (code, screen, output) = terminal.finish();
            assert_eq!((code, outside.target().exists()), (Some(0), made), "{level} {answer}: {screen}");
            assert_eq!(output.contains("The call of shell was denied"), denied, "{answer}: {screen}");
        }
    }
}

#[test]
fn another_terminal_decides_on_which_side_a_command_runs() {
    let cases: [(&[&str], bool); 3] =
        [(&["allow"], true), (&["allow", "--inside"], false), (&["deny", "--reason", "no"], false)];
    for (decide, made) in cases {
        let outside = Outside::new();
        let fixture = &outside.fixture;
        // What a rule allows by its words, it allows in the sandbox.
        let child =
            fixture.start(&["--wait-approval", "--allow", "shell(touch *)", "--allow", "shell", "Go"]);
        let row = fixture.waiting();
        assert_eq!((&row["sandbox"], &row["suggested_rules"]), (&json!("outside"), &json!([])));
        let session = row["session"].as_str().unwrap();
        let shown = fixture.approvals(&["show", session]);
        assert!(shown.stdout.contains("runs:    outside of the sandbox"), "{shown:?}");
        let (verb, rest) = decide.split_at(1);
        let decided = fixture.approvals(&[&["decide"], verb, &[session], rest].concat());
        assert_eq!(decided.code, Some(0), "{decided:?}");
        let output = finish(child);
        assert_eq!((output.code, outside.target().exists()), (Some(0), made), "{decide:?}: {output:?}");
        // The ticket is used up.
        let _ = std::fs::remove_file(outside.target());
        let late = fixture.approvals(&["decide", "allow", session, row["call_id"].as_str().unwrap()]);
        assert_eq!(late.code, Some(2), "{late:?}");
        let output = finish(fixture.start(&["--resume", session, "Again"]));
        assert!(!outside.target().exists(), "{output:?}");
        let questions = questions(fixture, session);
        assert_eq!(questions.first().map(String::as_str), Some("it runs outside of the sandbox"));
    }
}

/// Returns the reasons of the questions on record.
fn questions(fixture: &Fixture, session: &str) -> Vec<String> {
    let audit = run(fixture.with_state(&mut pintle(&["audit", session, "--output", "json"])));
    let audit: Value =
        serde_json::from_str(&audit.stdout).unwrap_or_else(|error| panic!("{error}: {audit:?}"));
    let mut reasons = Vec::new();
    collect_questions(&audit, &mut reasons);
    reasons
}

fn collect_questions(value: &Value, reasons: &mut Vec<String>) {
    if value["permission"] == "ask" {
        reasons.extend(value["reason"].as_str().map(str::to_owned));
    }
    if let Some(fields) = value.as_object() {
        fields.values().for_each(|value| collect_questions(value, reasons));
    }
    value.as_array().into_iter().flatten().for_each(|value| collect_questions(value, reasons));
}

#[test]
fn without_a_person_nothing_leaves_the_sandbox() {
    for flags in [&["--mode", "auto"][..], &["--mode", "plan"], &["--no-sandbox"]] {
        let outside = Outside::new();
        let fixture = &outside.fixture;
        let mut command = fixture.harness.command("run", flags);
        let output = run(fixture.with_state(&mut command).args(["--allow", "shell(touch *)", "Go"]));
        assert_eq!(output.code, Some(0), "{output:?}");
        let is_free = flags == ["--no-sandbox"];
        assert_eq!(outside.target().exists(), is_free, "{flags:?}: {output:?}");
        assert!(output.stdout.contains("Invalid arguments for tool: shell"), "{flags:?}: {output:?}");
    }
}

#[test]
fn only_a_call_that_asks_to_leave_the_sandbox_is_moved_inside() {
    let turns = r#"
        [[turn]]
        [[turn.call]]
        tool = "shell"
        arguments = { command = "true" }
        [[turn]]
        text = "Done."
        "#;
    let fixture = Fixture::with_turns(turns);
    let child = fixture.start(&["--mode", "edit", "--wait-approval", "Go"]);
    let row = fixture.waiting();
    assert_eq!(row["sandbox"], json!("inside"));
    let session = row["session"].as_str().unwrap();
    for (decision, message) in
        [("allow", "does not ask to leave the sandbox"), ("deny", "--inside goes with `approve`")]
    {
        let output = fixture.approvals(&["decide", decision, session, "--inside"]);
        assert_eq!(output.code, Some(2), "{output:?}");
        assert!(output.stderr.contains(message), "{output:?}");
    }
    fixture.approvals(&["decide", "allow", session]);
    assert_eq!(finish(child).code, Some(0));
}

#[test]
fn a_hook_does_not_let_a_command_leave_the_sandbox() {
    let outside = Outside::new();
    let fixture = &outside.fixture;
    let configuration = tempfile::tempdir().unwrap();
    let ran = configuration.path().join("ran");
    let hook = format!(
        "echo x >>{}; echo '{{\"hookSpecificOutput\":{{\"hookEventName\":\"PreToolUse\",\
         \"permissionDecision\":\"allow\"}}}}'\n",
        ran.display()
    );
    let script = configuration.path().join("allow.sh");
    std::fs::write(&script, hook).unwrap();
    let hooks = format!("[[PreToolUse]]\ncommand = \"sh {}\"\n", script.display());
    std::fs::write(configuration.path().join("hooks.toml"), hooks).unwrap();
    let mut command = fixture.harness.command("run", &["--wait-approval", "Go"]);
    let command = fixture.with_state(&mut command).env("PINTLE_CONFIG_DIR", configuration.path());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let row = fixture.waiting();
    assert_eq!(row["sandbox"], json!("outside"));
    assert!(ran.exists(), "the hook has answered");
    fixture.approvals(&["decide", "deny", row["session"].as_str().unwrap()]);
    let output = finish(child);
    assert!(!outside.target().exists(), "{output:?}");
}
