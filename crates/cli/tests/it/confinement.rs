//! `--sandbox`, `--network`, `--confine`, `--read-before-write`, and the protection of `.git`.

use pintle_testkit::Dialect;

use crate::harness::{Harness, pintle, run};

/// Scripts one tool call, whose result the test checks.
fn one_call(tool: &str, arguments: &str) -> Harness {
    let turns = format!(
        "[[turn]]\n[[turn.call]]\ntool = \"{tool}\"\narguments = {{ {arguments} }}\n[[turn]]\ntext = \"Done.\"\n"
    );
    Harness::new(Dialect::AnthropicMessages, &turns)
}

fn shell_call(line: &str) -> Harness {
    one_call("shell", &format!("command = '({line}) >seen 2>&1 || ({line}) 2>&1'"))
}

#[test]
fn sandboxed_commands_write_only_in_the_workspace() {
    let outside = tempfile::tempdir().unwrap();
    let target = outside.path().join("file").display().to_string();
    let line = format!(
        "echo x >inside; echo x >\"$TMPDIR/file\" && echo temporary; echo x >{target} || echo refused"
    );
    let harness = shell_call(&line);
    let output = run(&mut harness.command("run", &["--sandbox", "workspace", "Go"]));
    assert_eq!(output.code, Some(0), "{output:?}");
    let seen = harness.read("seen");
    assert!(seen.contains("temporary") && seen.contains("refused"), "{seen}");
    assert_eq!(harness.read("inside"), "x\n");
    assert!(!outside.path().join("file").exists());
}

#[test]
fn read_only_sandbox_prevents_all_writes() {
    for (tool, arguments) in
        [("shell", "command = 'echo x >file'"), ("write_file", "file_path = \"file\", content = \"x\"")]
    {
        let harness = one_call(tool, arguments);
        let output = run(&mut harness.command("run", &["--sandbox", "read-only", "Go"]));
        assert!(output.stdout.contains("Done."), "{output:?}");
        assert!(!harness.path("file").exists(), "{tool}");
    }
}

#[test]
fn file_tools_respect_the_sandbox() {
    let outside = tempfile::tempdir().unwrap();
    let target = outside.path().join("file");
    let arguments = format!("file_path = \"{}\", content = \"x\"", target.display());
    let harness = one_call("write_file", &arguments);
    let output = run(&mut harness.command("run", &["--sandbox", "workspace", "Go"]));
    assert!(output.stdout.contains("it changes files outside of the workspace"), "{output:?}");
    assert!(!target.exists());
}

#[test]
fn sandbox_network_follows_the_flag() {
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    for (flags, reached) in [
        (&["--sandbox", "workspace"][..], false),
        (&["--sandbox", "workspace", "--network", "off"], false),
        (&["--sandbox", "workspace", "--network", "on"], true),
    ] {
        let line = format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo reached");
        let harness = shell_call(&line);
        let output = run(harness.command("run", &["Go"]).args(flags));
        assert_eq!(output.code, Some(0), "{output:?}");
        assert_eq!(harness.read("seen").contains("reached"), reached, "{flags:?}");
    }
}

#[test]
fn confined_file_tools_stay_in_the_working_directory() {
    for (tool, arguments) in [
        ("read_file", "file_path = \"../secret\""),
        ("write_file", "file_path = \"../secret\", content = \"x\""),
        ("grep", "pattern = \"x\", path = \"..\""),
    ] {
        let harness = one_call(tool, arguments);
        let output = run(&mut harness.command("run", &["--confine", "Go"]));
        let held = ["refused", "outside of the workspace"].iter().any(|text| output.stdout.contains(text));
        assert!(held && output.stdout.contains("Done."), "{tool}: {output:?}");
    }
}

#[test]
fn read_before_write_rejects_unread_files() {
    let harness = one_call("write_file", "file_path = \"file\", content = \"new\"");
    std::fs::write(harness.path("file"), "old").unwrap();
    let output = run(&mut harness.command("run", &["--read-before-write", "Go"]));
    assert!(output.stdout.contains("Done."), "{output:?}");
    assert_eq!(harness.read("file"), "old");
}

#[test]
fn files_that_run_programs_later_are_protected_in_every_mode() {
    for mode in ["ask", "edit", "auto"] {
        for path in [".git/hooks/pre-commit", ".git/config", ".pintle/rules.toml"] {
            let harness = one_call("write_file", &format!("file_path = \"{path}\", content = \"x\""));
            let flags = ["--mode", mode, "--allow", "@write", "--verbose", "Go"];
            let output = run(&mut harness.command("run", &flags));
            assert_eq!(output.code, Some(0), "{mode}: {output:?}");
            assert!(!harness.path(path).exists(), "{mode} {path}");
            assert!(output.stdout.contains("is protected"), "{mode} {path}: {output:?}");
        }
    }
}

#[test]
fn unenforceable_limits_are_rejected() {
    for (flags, message) in [
        (&["--sandbox", "workspace", "--env", "docker:box"][..], "--sandbox requires --env local"),
        (&["--network", "off"], "--network off requires --sandbox workspace"),
    ] {
        let output =
            run(pintle(&["run", "--provider", "scripted", "--script", "none.toml", "Go"]).args(flags));
        assert_eq!(output.code, Some(2), "{output:?}");
        assert!(output.stderr.contains(message), "{output:?}");
    }
}
