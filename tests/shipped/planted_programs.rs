//! Programs that commands of a sandbox leave behind, which what runs outside must not find.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::acp::Editor;
use super::user::User;

/// A program that notes what ran it, where, and with which cache. Asked for a key, it has one.
const HELPER: &str = "#!/bin/sh\necho \"$1 WHO $PWD ${CARGO_HOME-none} ${TOOL_OPTIONS-none}\" >>\"$HOME/ran\"\n[ \"$1\" != key ] || echo sk-of-a-user\n";

/// Plants a program in the caches and in the project, as far as the mode allows it, and uses the servers.
const PLANTING: &str = r#"
    [[turn]]
    [[turn.call]]
    tool = "Bash"
    arguments = { command = "mkdir -p $CARGO_HOME/bin; cp planted $CARGO_HOME/bin/helper; cp planted bin/helper; true" }
    [[turn.call]]
    tool = "search_tools"
    arguments = { query = "anything" }
    [[turn]]
    text = "Done."
    "#;

fn write_program(path: &Path, who: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, HELPER.replace("WHO", who)).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// Returns all files with this name below a directory.
fn named(directory: &Path, name: &str) -> usize {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let count = |entry: std::fs::DirEntry| {
        let below = if entry.file_type().unwrap().is_dir() { named(&entry.path(), name) } else { 0 };
        below + usize::from(entry.file_name() == *name)
    };
    entries.map(count).sum()
}

#[test]
fn nothing_that_a_command_wrote_runs_outside_of_the_sandbox() {
    if !pintle_test_conditions::BUBBLEWRAP.is_present() {
        return;
    }
    let user = User::new(PLANTING);
    write_program(&user.at("bin/helper"), "real");
    write_program(&user.project().join("planted"), "planted");
    std::fs::create_dir(user.project().join("bin")).unwrap();
    let configuration = user.at(".config/pintle");
    std::fs::create_dir_all(&configuration).unwrap();
    let write = |name: &str, text: &str| std::fs::write(configuration.join(name), text).unwrap();
    write("config.toml", "[key_command]\nanthropic = [\"helper\", \"key\"]\n");
    write("hooks.toml", "[[SessionStart]]\ncommand = \"helper hook\"\n");
    write(
        "mcp.json",
        r#"{"mcpServers": {"mine": {"command": "helper", "args": ["server"], "sandbox": false}}}"#,
    );
    // The user works with programs of the project, as with an activated virtual environment.
    let inherited = std::env::var("PATH").unwrap();
    let paths = [user.project().join("bin"), "bin".into(), user.at("bin")];
    let paths = paths.iter().map(|path| path.display().to_string()).chain([inherited]);
    let search_path = paths.collect::<Vec<_>>().join(":");
    let with_programs = |mut command: std::process::Command| {
        command.env("PATH", &search_path).env_remove("ANTHROPIC_API_KEY").env("EDITOR", "helper editor");
        command.env("TOOL_OPTIONS", format!("--require {}", user.project().join("hook.js").display()));
        command
    };
    for flags in [&["--no-mcp"][..], &[]] {
        let output = with_programs(user.run_command("Go")).args(flags).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    let output = with_programs(user.command(&["config", "edit"])).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let state = user.at(".local/state/pintle");
    assert_eq!(
        named(&state.join("caches"), "helper"),
        1,
        "it was planted, where commands of the project find it"
    );
    assert!(user.project().join("bin/helper").exists());
    let ran = std::fs::read_to_string(user.at("ran")).unwrap();
    let home = user.at("").display().to_string();
    let home = home.trim_end_matches('/');
    for what in ["key", "hook", "server", "editor"] {
        let mut lines = ran.lines().filter(|line| line.starts_with(what)).peekable();
        assert!(lines.peek().is_some(), "{what} did not run: {ran}");
        for line in lines {
            let directory = if what == "key" { "/" } else { home };
            assert_eq!(line, format!("{what} real {directory} none none"));
        }
    }
}

#[test]
fn nothing_of_a_project_runs_for_a_session_that_is_started_elsewhere() {
    if !pintle_test_conditions::BUBBLEWRAP.is_present() {
        return;
    }
    let user = User::new(&"[[turn]]\ntext = \"Done.\"\n".repeat(2));
    write_program(&user.at("bin/helper"), "real");
    write_program(&user.project().join("bin/helper"), "planted");
    std::fs::create_dir_all(user.at(".config/pintle")).unwrap();
    std::fs::create_dir(user.at("elsewhere")).unwrap();
    let configuration = "[key_command]\nanthropic = [\"helper\", \"key\"]\n";
    std::fs::write(user.at(".config/pintle/config.toml"), configuration).unwrap();
    let inherited = std::env::var("PATH").unwrap();
    let paths = [user.project().join("bin"), user.at("bin")].map(|path| path.display().to_string());
    let search_path = format!("{}:{inherited}", paths.join(":"));
    let prepare = |command: &mut std::process::Command| {
        command.env("PATH", &search_path).env_remove("ANTHROPIC_API_KEY");
    };
    let assert_only_real = |surface: &str| {
        let ran = std::fs::read_to_string(user.at("ran")).unwrap();
        assert!(ran.lines().all(|line| line.starts_with("key real ")), "{surface}: {ran}");
        std::fs::remove_file(user.at("ran")).unwrap();
    };

    let mut first = user.run_command("Go");
    prepare(first.args(["--output", "json"]));
    let output = first.output().unwrap();
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let id = result["session_id"].as_str().unwrap_or_else(|| panic!("{output:?}"));
    assert_only_real("a session in the current directory");

    let mut resumed = user.run_command("Again");
    prepare(resumed.args(["--resume", id]).current_dir(user.at("elsewhere")));
    let output = resumed.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_only_real("a resumed session");

    let url = user.model.base_url(pintle_testkit::Dialect::AnthropicMessages);
    let mut agent = user.command(&["acp", "--provider", "anthropic", "--base-url", &url]);
    prepare(agent.current_dir(user.at("elsewhere")));
    let mut editor = Editor::start(&mut agent, &serde_json::json!({}));
    let opened = editor.open("session/new", &user.project(), None);
    assert!(opened["error"].is_null(), "{opened}");
    editor.end();
    assert_only_real("a session of an editor");
}

#[test]
fn a_command_in_mode_plan_leaves_nothing_for_later_ones() {
    if !pintle_test_conditions::BUBBLEWRAP.is_present() {
        return;
    }
    let user = User::new(PLANTING);
    write_program(&user.project().join("planted"), "planted");
    std::fs::create_dir(user.project().join("bin")).unwrap();
    let output = user.run_command("Go").args(["--mode", "plan"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(!user.project().join("bin/helper").exists());
    assert_eq!(named(&user.at(".local/state/pintle"), "helper"), 0);
}
