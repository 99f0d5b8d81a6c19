//! `--sandbox`, `--network`, `--confine`, `--read-before-write`, and the protection of `.git`.

use pintle_test_conditions::BUBBLEWRAP;
use pintle_testkit::Dialect;

use crate::harness::{Harness, pintle, run, sandbox_levels};

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
    let of_levels = sandbox_levels().into_iter().map(|level| vec!["--sandbox", level]);
    for flags in [vec![], vec!["--no-sandbox"]].into_iter().chain(of_levels) {
        let harness = shell_call(&line);
        let output = run(harness.command("run", &["Go"]).args(&flags));
        assert_eq!(output.code, Some(0), "{output:?}");
        let is_free = flags == ["--no-sandbox"];
        assert_eq!(harness.read("inside"), "x\n");
        assert_eq!(outside.path().join("file").exists(), is_free, "{flags:?}: {}", harness.read("seen"));
        if !is_free {
            assert!(harness.read("seen").contains("temporary"), "{flags:?}: {}", harness.read("seen"));
        }
        let _ = std::fs::remove_file(outside.path().join("file"));
    }
}

/// The home directory of the test has a key.
#[test]
fn secret_files_are_hidden_from_commands_and_git_settings_are_protected() {
    let line = "cat $HOME/.ssh/id_test; echo \"[alias] x = !id\" >>.git/config; \
                echo x >.git/hooks/post-commit; git commit -q --allow-empty -m m && echo committed";
    for level in sandbox_levels() {
        let holds = level == "full";
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join(".ssh")).unwrap();
        std::fs::write(home.path().join(".ssh/id_test"), "KEY").unwrap();
        let harness = one_call("shell", &format!("command = '''({line}) >seen 2>&1; true'''"));
        for arguments in [
            &["-c", "init.defaultBranch=main", "init", "-q"][..],
            &["config", "user.name", "a"],
            &["config", "user.email", "a@b.c"],
        ] {
            let mut git = std::process::Command::new("git");
            assert!(git.args(arguments).current_dir(harness.path("")).status().unwrap().success());
        }
        let before = harness.read(".git/config");
        let mut command = harness.command("run", &["--sandbox", level, "Go"]);
        let output = run(command.env("HOME", home.path()));
        // What is not held is found, and ends the run.
        assert_eq!(output.code, Some(if holds { 0 } else { 1 }), "{output:?}");
        let found = ["a command changed the protected file", "+[alias] x = !id", "hooks/post-commit"];
        assert!(found.iter().all(|text| output.stderr.contains(text) != holds), "{level}: {output:?}");
        let seen = harness.read("seen");
        assert_eq!(!seen.contains("KEY"), holds, "{level}: {seen}");
        assert_eq!(harness.read(".git/config") == before, holds, "{level}: {seen}");
        assert_eq!(!harness.path(".git/hooks/post-commit").exists(), holds, "{level}: {seen}");
        assert!(seen.contains("committed"), "{level}: {seen}");
        let told = output.stderr.contains("commands can read all that you can");
        assert_eq!(told, !holds, "{level}: {output:?}");
    }
}

#[test]
fn without_the_sandbox_that_is_asked_for_nothing_starts() {
    let empty = tempfile::tempdir().unwrap();
    for (flags, code) in [
        (&["--sandbox", "full"][..], 2),
        (&["--sandbox", "full", "--mode", "edit"], 2),
        (&["--no-sandbox"], 0),
        (&["--sandbox", "auto"], 0),
    ] {
        // There is no bubblewrap on this path.
        let harness = one_call("write_file", "file_path = \"made\", content = \"x\"");
        let mut command = harness.command("run", &["Go"]);
        let output = run(command.args(flags).env("PATH", empty.path()));
        assert_eq!(output.code, Some(code), "{flags:?}: {output:?}");
        assert_eq!(harness.path("made").exists(), code == 0, "{flags:?}");
        if code == 2 {
            assert!(output.stderr.contains("level full: "), "{output:?}");
            assert!(output.stderr.contains("--no-sandbox"), "{output:?}");
        }
    }
}

#[test]
fn plan_mode_prevents_all_writes() {
    for (tool, arguments) in
        [("shell", "command = 'echo x >file'"), ("write_file", "file_path = \"file\", content = \"x\"")]
    {
        let harness = one_call(tool, arguments);
        let output = run(&mut harness.command("run", &["--mode", "plan", "Go"]));
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
    let output = run(&mut harness.command("run", &["Go"]));
    assert!(output.stdout.contains("it changes files outside of the workspace"), "{output:?}");
    assert!(!target.exists());
}

#[test]
fn sandbox_network_follows_the_flag() {
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    for (flags, reached) in [
        (&[][..], false),
        (&["--sandbox", "writes"], false),
        (&["--network", "off"], false),
        (&["--network", "on"], true),
        (&["--sandbox", "writes", "--network", "on"], true),
        (&["--no-sandbox"], true),
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
        // The parent directory may be one with files that are hidden.
        let held = ["refused", "outside of the workspace", "is hidden"]
            .iter()
            .any(|text| output.stdout.contains(text));
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
        (
            &["--sandbox", "full", "--env", "docker:box"][..],
            "sandbox full: expected the environment local, not docker:box",
        ),
        (
            &["--no-sandbox", "--network", "off"],
            "network off: expected a sandbox, which blocks the network; `--network` sets it",
        ),
        (&["--sandbox", "full", "--no-sandbox"], "cannot be used with"),
    ] {
        let output =
            run(pintle(&["run", "--provider", "scripted", "--script", "none.toml", "Go"]).args(flags));
        assert_eq!(output.code, Some(2), "{output:?}");
        assert!(output.stderr.contains(message), "{output:?}");
    }
}

/// The result of a probe is cached. A run in which it no longer holds ends, and discards it.
#[test]
fn what_the_machine_can_do_is_remembered_until_it_cannot() {
    if !BUBBLEWRAP.is_present() {
        return;
    }
    let programs = tempfile::tempdir().unwrap();
    let state = tempfile::tempdir().unwrap();
    let (calls, broken) = (programs.path().join("calls"), programs.path().join("broken"));
    let wrapper = format!(
        "#!/bin/sh\necho \"$1\" >>{}\n[ -e {} ] && {{ echo broken >&2; exit 1; }}\nexec /usr/bin/bwrap \"$@\"\n",
        calls.display(),
        broken.display(),
    );
    let source = programs.path().join("wrapper");
    std::fs::write(&source, wrapper).unwrap();
    // Written by another process: one that this process starts meanwhile cannot hold it open.
    let mut install = std::process::Command::new("install");
    assert!(install.arg("-m755").arg(&source).arg(programs.path().join("bwrap")).status().unwrap().success());
    let path = format!("{}:/usr/bin:/bin", programs.path().display());
    let run_until = |code: i32, flags: &[&str]| {
        let _ = std::fs::remove_file(&calls);
        let harness = shell_call("echo x >/usr/made");
        let mut command = harness.command("run", &["Go"]);
        let output = run(command.args(flags).env("PATH", &path).env("PINTLE_STATE_DIR", state.path()));
        assert_eq!(output.code, Some(code), "{output:?}");
        let has_run = harness.path("seen").exists() && !harness.read("seen").is_empty();
        assert_eq!(has_run, code == 0, "{output:?}");
        (std::fs::read_to_string(&calls).unwrap(), output.stderr)
    };
    let run_once = |flags: &[&str]| run_until(0, flags);
    let tries = |calls: &str| calls.lines().filter(|line| *line == "--version").count();

    let (first, _) = run_once(&[]);
    assert_eq!(tries(&first), 1, "{first}");
    let (second, said) = run_once(&[]);
    assert_eq!(tries(&second), 0, "{second}");
    assert!(!said.contains("limits writes only"), "{said}");
    std::fs::write(&broken, "").unwrap();
    let (third, said) = run_until(2, &[]);
    assert_eq!(tries(&third), 1, "{third}");
    assert!(said.contains("the sandbox cannot be set up any more") && said.contains("broken"), "{said}");
    // It was forgotten, so the next run knows at its start.
    let (fourth, said) = run_once(&[]);
    assert_eq!(tries(&fourth), 1, "{fourth}");
    assert!(said.contains("the sandbox limits writes only") && said.contains("broken"), "{said}");
    std::fs::remove_file(&broken).unwrap();
    assert_eq!(tries(&run_once(&["--no-session"]).0), 1);
    assert_eq!(tries(&run_once(&[]).0), 1, "a run that is not kept writes no record");
    assert_eq!(tries(&run_once(&[]).0), 0);
}

#[test]
fn the_model_reads_what_holds_commands_and_that_one_may_have_been_held() {
    let harness = one_call("shell", "command = 'echo x >/usr/made'");
    let output = run(&mut harness.command("run", &["Go"]));
    assert_eq!(output.code, Some(0), "{output:?}");
    let requests = harness.server.requests();
    let limits = "they run in a sandbox: they can write only below";
    assert!(requests[0].body.to_string().contains(&format!("Commands: {limits}")));
    let told = format!("This may be due to what holds commands here: {limits}");
    assert!(requests[1].body.to_string().contains(&told), "{}", requests[1].body);

    let harness = one_call("shell", "command = 'echo permission denied; exit 1'");
    let output = run(&mut harness.command("run", &["--no-sandbox", "Go"]));
    assert_eq!(output.code, Some(0), "{output:?}");
    let requests = harness.server.requests();
    assert!(!requests[1].body.to_string().contains("what holds commands here"));
}
