//! `--sandbox`, `--network`, `--confine`, `--read-before-write`, and what is asked about in every mode.

use pintle_testkit::Dialect;

use crate::lab::{Model, pintle, say};

/// One call of a tool, and the end. The call's result is judged by the test.
fn one_call(tool: &str, arguments: &str) -> Model {
    let turns = format!(
        "[[turn]]\n[[turn.call]]\ntool = \"{tool}\"\narguments = {{ {arguments} }}\n[[turn]]\ntext = \"Done.\"\n"
    );
    Model::new(Dialect::AnthropicMessages, &turns)
}

fn command(line: &str) -> Model {
    one_call("shell", &format!("command = '({line}) >seen 2>&1 || ({line}) 2>&1'"))
}

#[test]
fn a_sandboxed_command_writes_in_the_workspace_and_its_temporary_directory_only() {
    let outside = tempfile::tempdir().unwrap();
    let target = outside.path().join("file").display().to_string();
    let line = format!(
        "echo x >inside; echo x >\"$TMPDIR/file\" && echo temporary; echo x >{target} || echo refused"
    );
    let model = command(&line);
    let said = say(&mut model.command("run", &["--sandbox", "workspace", "Go"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    let seen = model.read("seen");
    assert!(seen.contains("temporary") && seen.contains("refused"), "{seen}");
    assert_eq!(model.read("inside"), "x\n");
    assert!(!outside.path().join("file").exists());
}

#[test]
fn in_a_read_only_sandbox_neither_commands_nor_file_tools_write() {
    for (tool, arguments) in
        [("shell", "command = 'echo x >file'"), ("write_file", "file_path = \"file\", content = \"x\"")]
    {
        let model = one_call(tool, arguments);
        let said = say(&mut model.command("run", &["--sandbox", "read-only", "Go"]));
        assert!(said.out.contains("Done."), "{said:?}");
        assert!(!model.path("file").exists(), "{tool}");
    }
}

#[test]
fn file_tools_write_where_sandboxed_commands_may() {
    let outside = tempfile::tempdir().unwrap();
    let target = outside.path().join("file");
    let arguments = format!("file_path = \"{}\", content = \"x\"", target.display());
    let model = one_call("write_file", &arguments);
    let said = say(&mut model.command("run", &["--sandbox", "workspace", "Go"]));
    assert!(said.out.contains("is outside of"), "{said:?}");
    assert!(!target.exists());
}

#[test]
fn a_sandboxed_command_has_a_network_if_it_is_given_one() {
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    for (flags, reached) in [
        (&["--sandbox", "workspace"][..], false),
        (&["--sandbox", "workspace", "--network", "off"], false),
        (&["--sandbox", "workspace", "--network", "on"], true),
    ] {
        let line = format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo reached");
        let model = command(&line);
        let said = say(model.command("run", &["Go"]).args(flags));
        assert_eq!(said.code, Some(0), "{said:?}");
        assert_eq!(model.read("seen").contains("reached"), reached, "{flags:?}");
    }
}

#[test]
fn confined_file_tools_stay_in_the_working_directory() {
    for (tool, arguments) in [
        ("read_file", "file_path = \"../secret\""),
        ("write_file", "file_path = \"../secret\", content = \"x\""),
        ("grep", "pattern = \"x\", path = \"..\""),
    ] {
        let model = one_call(tool, arguments);
        let said = say(&mut model.command("run", &["--confine", "Go"]));
        assert!(said.out.contains("refused") && said.out.contains("Done."), "{tool}: {said:?}");
    }
}

#[test]
fn a_file_is_read_before_it_is_changed_if_that_is_wanted() {
    let model = one_call("write_file", "file_path = \"file\", content = \"new\"");
    std::fs::write(model.path("file"), "old").unwrap();
    let said = say(&mut model.command("run", &["--read-before-write", "Go"]));
    assert!(said.out.contains("Done."), "{said:?}");
    assert_eq!(model.read("file"), "old");
}

/// Without a terminal what is asked about is denied.
#[test]
fn changes_below_a_git_directory_are_asked_about_unless_nothing_is() {
    for (approve, is_asked) in [("never", false), ("commands", true), ("writes", true), ("all", true)] {
        let model = one_call("write_file", "file_path = \".git/hooks/pre-commit\", content = \"x\"");
        let said = say(&mut model.command("run", &["--approve", approve, "Go"]));
        assert_eq!(said.code, Some(if is_asked { 5 } else { 0 }), "{approve}: {said:?}");
        assert_eq!(model.path(".git/hooks/pre-commit").exists(), !is_asked, "{approve}");
    }
}

#[test]
fn limits_that_cannot_hold_are_refused() {
    for (flags, sentence) in [
        (
            &["--sandbox", "workspace", "--env", "docker:box"][..],
            "--sandbox holds commands of this machine only",
        ),
        (&["--network", "off"], "--network off needs --sandbox workspace or read-only"),
    ] {
        let said = say(pintle(&["run", "--provider", "scripted", "--script", "none.toml", "Go"]).args(flags));
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(said.err.contains(sentence), "{said:?}");
    }
}
