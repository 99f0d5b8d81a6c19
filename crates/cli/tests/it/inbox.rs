//! Approvals from another terminal: a run without one waits, and any process decides.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use pintle_testkit::Dialect;
use serde_json::Value;

use crate::harness::{CommandOutput, Harness, pintle, run};
use crate::signals::signal;

const TURNS: &str = r#"
    [[turn]]
    [[turn.call]]
    tool = "write_file"
    arguments = { file_path = "a.txt", content = "hello\n" }
    [[turn]]
    text = "So be it."
    "#;

/// A project, and a directory for the state of all commands of the test.
pub(crate) struct Fixture {
    pub(crate) harness: Harness,
    state: tempfile::TempDir,
}

impl Fixture {
    fn new() -> Self {
        Self::with_turns(TURNS)
    }

    pub(crate) fn with_turns(turns: &str) -> Self {
        Self { harness: Harness::new(Dialect::AnthropicMessages, turns), state: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn with_state<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        command.env("PINTLE_STATE_DIR", self.state.path()).env("USER", "jan")
    }

    pub(crate) fn start(&self, arguments: &[&str]) -> Child {
        let mut command = self.harness.command("run", arguments);
        let command = self.with_state(&mut command);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    pub(crate) fn approvals(&self, arguments: &[&str]) -> CommandOutput {
        run(self.with_state(&mut pintle(&[&["approvals"], arguments].concat())))
    }

    /// Waits until a call waits, and returns it.
    pub(crate) fn waiting(&self) -> Value {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let listed = self.approvals(&["list", "--output", "json"]);
            let rows: Vec<Value> = serde_json::from_str(&listed.stdout).unwrap();
            if let Some(row) = rows.into_iter().next() {
                return row;
            }
            assert!(Instant::now() < deadline, "{listed:?}");
        }
    }
}

pub(crate) fn finish(child: Child) -> CommandOutput {
    child.wait_with_output().unwrap().into()
}

#[test]
fn another_terminal_decides_on_a_call_that_waits() {
    let cases: [(&[&str], &str, Option<&str>); 4] = [
        (&["decide", "approve"], "allowed by jan@", Some("hello\n")),
        // Another word for it.
        (&["decide", "allow"], "allowed by jan@", Some("hello\n")),
        (&["decide", "deny"], "denied by jan@", None),
        (
            &["decide", "allow", "--arguments", r#"{"file_path": "a.txt", "content": "changed\n"}"#],
            "superseded by jan@",
            Some("changed\n"),
        ),
    ];
    for (decide, ending, content) in cases {
        let fixture = Fixture::new();
        let child = fixture.start(&["--mode", "ask", "--wait-approval", "Go"]);
        let row = fixture.waiting();
        assert_eq!(
            (row["tool_name"].as_str(), row["suggested_rules"][0].as_str()),
            (Some("write_file"), Some("write_file(a.txt)"))
        );
        let listed = fixture.approvals(&["list"]);
        assert!(listed.stdout.contains("  write_file a.txt: "), "{listed:?}");
        let session = row["session"].as_str().unwrap();
        let shown = fixture.approvals(&["show", session]);
        for part in ["tool:    write_file", "\"content\": \"hello\\n\"", "mode ask asks about that"] {
            assert!(shown.stdout.contains(part), "{part}: {shown:?}");
        }
        let (verb, rest) = decide.split_at(2);
        let decided = fixture.approvals(&[verb, &[session], rest].concat());
        assert!(decided.stdout.contains(ending), "{decided:?}");
        let output = finish(child);
        assert_eq!(output.code, Some(0), "{output:?}");
        let written = std::fs::read_to_string(fixture.harness.path("a.txt")).ok();
        assert_eq!(written.as_deref(), content, "{output:?}");
        assert_eq!(fixture.approvals(&["list"]).stdout, "no calls are pending\n");
        let call = row["call_id"].as_str().unwrap();
        let late = fixture.approvals(&["decide", "allow", session, call]);
        assert_eq!(late.code, Some(2), "{late:?}");
        assert!(late.stderr.contains(&format!("has already been decided: {ending}")), "{late:?}");
    }
}

#[test]
fn a_decision_outlives_the_process_that_asked() {
    for (decision, wrote) in [("allow", true), ("deny", false)] {
        let fixture = Fixture::new();
        let mut child = fixture.start(&["--mode", "ask", "--wait-approval", "Go"]);
        let before = fixture.waiting();
        let session = before["session"].as_str().unwrap();
        signal(&child, "KILL");
        child.wait().unwrap();
        let after = fixture.waiting();
        assert_eq!(after["ticket"], before["ticket"], "the same request");
        let decided = fixture.approvals(&["decide", decision, session]);
        assert!(decided.stdout.contains("it applies when the session resumes"), "{decided:?}");
        let output = finish(fixture.start(&["--resume", session]));
        assert_eq!(output.code, Some(0), "{output:?}");
        assert_eq!(fixture.harness.path("a.txt").exists(), wrote, "{decision}: {output:?}");
    }
}

#[test]
fn wrong_decisions_say_what_was_expected() {
    let fixture = Fixture::new();
    let output = run(fixture.with_state(&mut fixture.harness.command("run", &["Go"])));
    assert_eq!(output.code, Some(0), "{output:?}");
    let listed = run(fixture.with_state(&mut pintle(&["sessions", "list", "--all", "--output", "json"])));
    let rows: Value = serde_json::from_str(&listed.stdout).unwrap();
    let session = rows[0]["id"].as_str().unwrap();
    for (arguments, message) in [
        (&["show", session][..], "has no pending call"),
        (&["decide", "allow", session, "call_9"], "has no pending call call_9"),
        (&["decide", "allow", "nothing"], "there is no session `nothing`"),
        (&["decide", "allow", session, "--reason", "x"], "--reason goes with `deny`"),
        (&["decide", "allow", session, "--arguments", "[]"], "--arguments is not a JSON object"),
        (&["decide", "perhaps", session], "[possible values: approve, deny]"),
    ] {
        let output = fixture.approvals(arguments);
        assert_eq!(output.code, Some(2), "{arguments:?}: {output:?}");
        assert!(output.stderr.contains(message), "{arguments:?}: {output:?}");
    }
}
