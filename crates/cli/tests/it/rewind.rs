//! Checkpoints of a session's directory: `sessions diff` and `sessions rewind`.

use std::path::Path;
use std::process::Command;

use pintle_testkit::Dialect;
use serde_json::{Value, json};

use crate::harness::{CommandOutput, Harness, pintle, run};
use crate::terminal::Terminal;

/// Two inputs: the first adds and changes files with a tool and with a command, the second changes more.
const WORK: &str = r#"
    [[turn]]
    [[turn.call]]
    tool = "write_file"
    arguments = { file_path = "made/new.txt", content = "one\n" }
    [[turn]]
    [[turn.call]]
    tool = "shell"
    arguments = { command = "echo more >> kept.txt; rm gone.txt; echo x > build.log; chmod 755 tool.sh" }
    [[turn]]
    text = "First."
    [[turn]]
    [[turn.call]]
    tool = "edit_file"
    arguments = { file_path = "made/new.txt", old_string = "one", new_string = "two" }
    [[turn]]
    text = "Second."
"#;

struct Kept {
    harness: Harness,
    state: tempfile::TempDir,
}

impl Kept {
    /// Runs both inputs in a directory with some files, in a git repository or outside of one.
    fn new(is_repository: bool) -> Self {
        let kept = Self {
            harness: Harness::new(Dialect::AnthropicMessages, WORK),
            state: tempfile::tempdir().unwrap(),
        };
        let files = [("kept.txt", "kept\n"), ("gone.txt", "gone\n"), ("tool.sh", "#!/bin/sh\n")];
        for (name, content) in files.into_iter().chain([(".ignore", "*.log\n"), ("build.log", "mine\n")]) {
            std::fs::write(kept.path(name), content).unwrap();
        }
        if is_repository {
            kept.git(&["init", "--quiet"]);
            kept.git(&["add", "kept.txt"]);
        }
        for prompt in ["Begin.", "Go on."] {
            let more = if prompt == "Begin." { vec![prompt] } else { vec!["--continue", prompt] };
            let mut command = kept.harness.command("run", &more);
            let output = run(command.env("PINTLE_STATE_DIR", kept.state.path()));
            assert_eq!(output.code, Some(0), "{output:?}");
        }
        kept
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.harness.path(name)
    }

    fn git(&self, arguments: &[&str]) {
        let status = Command::new("git").args(arguments).current_dir(self.harness.directory.path()).status();
        assert!(status.unwrap().success());
    }

    fn sessions(&self, arguments: &[&str]) -> CommandOutput {
        let mut command = pintle(&["sessions"]);
        command.args(arguments).env("PINTLE_STATE_DIR", self.state.path());
        run(command.current_dir(self.harness.directory.path()))
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let output = self.sessions(&[arguments, &["--output", "json"]].concat());
        assert_eq!(output.code, Some(0), "{output:?}");
        serde_json::from_str(&output.stdout).unwrap()
    }

    fn id(&self) -> String {
        self.json(&["list"]).pointer("/0/id").and_then(Value::as_str).unwrap().to_owned()
    }

    fn entries(&self) -> usize {
        self.json(&["show", &self.id()]).get("history").and_then(Value::as_array).unwrap().len()
    }

    /// Returns all files that matter, with their contents, and whether the script is executable.
    fn state(&self) -> Vec<(String, Option<String>)> {
        let names = ["kept.txt", "gone.txt", "tool.sh", "build.log", "made/new.txt"];
        let mut state: Vec<(String, Option<String>)> = names
            .iter()
            .map(|name| ((*name).to_owned(), std::fs::read_to_string(self.path(name)).ok()))
            .collect();
        let mode = std::fs::metadata(self.path("tool.sh")).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::mode(&mode.permissions()) & 0o111;
        state.push(("executable".to_owned(), Some((mode != 0).to_string())));
        state
    }
}

fn text(state: &[(String, Option<String>)], name: &str) -> Option<String> {
    state.iter().find(|(known, _)| known == name).and_then(|(_, content)| content.clone())
}

#[test]
fn diff_shows_changes_since_any_point() {
    for is_repository in [true, false] {
        let kept = Kept::new(is_repository);
        let id = kept.id();
        let changes = kept.json(&["diff", &id])["changes"].clone();
        let expected = json!([
            {"path": "gone.txt", "kind": "removed"},
            {"path": "kept.txt", "kind": "modified"},
            {"path": "made", "kind": "added"},
            {"path": "made/new.txt", "kind": "added"},
            {"path": "tool.sh", "kind": "mode_changed"},
        ]);
        assert_eq!(changes, expected, "in a repository: {is_repository}");
        let diff = kept.sessions(&["diff", &id]).stdout;
        assert!(diff.contains("-gone\n") && diff.contains("+more\n") && diff.contains("+two\n"), "{diff}");
        assert!(!diff.contains("build.log"), "ignored files are no part of it: {diff}");
        // After the first input only the second one's change is left.
        let since = kept.json(&["diff", &format!("{id}@6")])["changes"].clone();
        assert_eq!(since, json!([{"path": "made/new.txt", "kind": "modified"}]));
        assert_eq!(kept.json(&["diff", &format!("{id}@{}", kept.entries())])["changes"], json!([]));
        let beyond = kept.sessions(&["diff", &format!("{id}@99")]);
        assert_eq!(beyond.code, Some(2), "{beyond:?}");
    }
}

#[test]
fn rewind_restores_files_and_conversation_and_can_be_undone() {
    for is_repository in [true, false] {
        let kept = Kept::new(is_repository);
        let index = std::fs::read(kept.path(".git/index")).ok();
        let (id, after) = (kept.id(), kept.state());
        let planned = kept.json(&["rewind", &format!("{id}@0"), "--dry-run"]);
        assert_eq!(
            (planned["files"].as_array().unwrap().len(), &planned["undo"]),
            (5, &Value::Null),
            "{planned}"
        );
        assert_eq!((kept.state(), kept.entries()), (after.clone(), 10), "nothing was changed");

        let done = kept.json(&["rewind", &format!("{id}@0")]);
        assert_eq!((kept.entries(), &done["changed_by_others"]), (0, &json!([])), "{done}");
        let before = kept.state();
        assert_eq!(text(&before, "kept.txt").as_deref(), Some("kept\n"));
        assert_eq!(text(&before, "gone.txt").as_deref(), Some("gone\n"));
        assert_eq!(
            (text(&before, "made/new.txt"), text(&before, "executable")),
            (None, Some("false".into()))
        );
        assert_eq!(
            text(&before, "build.log").as_deref(),
            Some("x\n"),
            "an ignored file is nobody's business"
        );
        assert!(!kept.path("made").exists(), "a directory that becomes empty goes as well");
        assert_eq!(std::fs::read(kept.path(".git/index")).ok(), index, "the index is the user's");
        assert_eq!(kept.sessions(&["verify", &id]).code, Some(0));

        let undo = done["undo"].as_str().unwrap();
        kept.json(&["rewind", &id, "--checkpoint", undo]);
        assert_eq!((kept.state(), kept.entries()), (after, 0));
        assert_eq!(done["turns_before"], 10);
        let text = kept.sessions(&["rewind", &format!("{id}@10"), "--conversation"]).stdout;
        assert_eq!((text.as_str(), kept.entries()), ("the conversation was restored to 10 entries\n", 10));
    }
}

#[test]
fn files_and_conversation_are_rewound_apart() {
    let kept = Kept::new(false);
    let (id, after) = (kept.id(), kept.state());
    kept.json(&["rewind", &format!("{id}@6"), "--conversation"]);
    assert_eq!((kept.entries(), kept.state()), (6, after));
    // The session goes on from there.
    let mut command = kept.harness.command("run", &["--continue", "Again."]);
    let output = run(command.env("PINTLE_STATE_DIR", kept.state.path()));
    assert_eq!(output.code, Some(0), "{output:?}");
    let sent = kept.harness.server.requests().last().unwrap().body.to_string();
    assert!(sent.contains("Again.") && sent.contains("First.") && !sent.contains("Go on."), "{sent}");

    let kept = Kept::new(false);
    let id = kept.id();
    kept.json(&["rewind", &format!("{id}@6"), "--files"]);
    assert_eq!(kept.entries(), 10);
    assert_eq!(text(&kept.state(), "made/new.txt").as_deref(), Some("one\n"));
    assert_eq!(text(&kept.state(), "kept.txt").as_deref(), Some("kept\nmore\n"), "changes before stay");
}

#[test]
fn what_somebody_else_changed_is_restored_by_force_only() {
    let kept = Kept::new(false);
    let id = kept.id();
    std::fs::write(kept.path("kept.txt"), "mine\n").unwrap();
    let (state, point) = (kept.state(), format!("{id}@0"));
    let planned = kept.json(&["rewind", &point, "--dry-run"]);
    assert_eq!(planned["changed_by_others"], json!(["kept.txt"]));
    let refused = kept.sessions(&["rewind", &point]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("another process may have changed kept.txt"), "{refused:?}");
    assert_eq!((kept.state(), kept.entries()), (state.clone(), 10), "neither files nor conversation");
    let done = kept.json(&["rewind", &point, "--force"]);
    assert_eq!(text(&kept.state(), "kept.txt").as_deref(), Some("kept\n"));
    kept.json(&["rewind", &id, "--checkpoint", done["undo"].as_str().unwrap()]);
    assert_eq!(kept.state(), state);
}

#[test]
fn a_diff_is_a_patch_and_is_escaped_on_a_terminal() {
    let kept = Kept::new(true);
    let id = kept.id();
    std::fs::write(kept.path("kept.txt"), "\u{feff}kept\u{1b}[1m\n").unwrap();
    let diff = kept.sessions(&["diff", &id]).stdout;
    assert!(diff.contains("+\u{feff}kept\u{1b}[1m\n"), "{diff:?}");

    let mut command = pintle(&["sessions", "diff", &id]);
    command.env("PINTLE_STATE_DIR", kept.state.path()).current_dir(kept.harness.directory.path());
    let (code, _, output) = Terminal::start(&command).finish();
    assert_eq!(code, Some(0), "{output:?}");
    assert!(output.contains("+\\u{feff}kept") && !output.contains("\u{1b}[1m"), "{output:?}");

    let patch = kept.state.path().join("changes.patch");
    std::fs::write(&patch, diff).unwrap();
    kept.git(&["apply", "--reverse", patch.to_str().unwrap()]);
    assert_eq!(std::fs::read_to_string(kept.path("kept.txt")).unwrap(), "kept\n");
}

#[test]
fn rewind_needs_a_point_and_an_idle_session() {
    let kept = Kept::new(false);
    let id = kept.id();
    for (arguments, message) in [
        (vec!["rewind", &id], "expected ID@N"),
        (vec!["rewind", "nope@1"], "there is no session `nope`"),
        (vec!["rewind", &id, "--checkpoint", "xyz"], "expected the id of a checkpoint"),
    ] {
        let output = kept.sessions(&arguments);
        assert_eq!(output.code, Some(2), "{output:?}");
        assert!(output.stderr.contains(message), "{output:?}");
    }
    let far = format!("{id}@11");
    assert_eq!(kept.sessions(&["rewind", &far]).code, Some(2));
    // The directory is gone.
    let moved = kept.state.path().join("moved");
    std::fs::rename(kept.harness.directory.path(), &moved).unwrap();
    let mut command = pintle(&["sessions", "diff", &id]);
    let output = run(command.env("PINTLE_STATE_DIR", kept.state.path()).current_dir(Path::new("/")));
    assert_eq!(output.code, Some(2), "{output:?}");
    std::fs::rename(&moved, kept.harness.directory.path()).unwrap();
}
