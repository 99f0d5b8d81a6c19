//! The question whether a project is trusted, and `pintle trust`.

use pintle_testkit::Dialect;

use super::pty::Terminal;
use super::terminal::leave;
use super::user::User;

const QUESTION: &str = "Trust its current state?";

/// Creates a file.
const WRITES: &str = r#"
    [[turn]]
    [[turn.call]]
    tool = "Write"
    arguments = { file_path = "made", content = "x" }
    [[turn]]
    text = "Done."
    "#;

/// Creates a user whose project has these files.
fn user_with(files: &[(&str, &str)]) -> User {
    let user = User::new(WRITES);
    for (name, text) in files {
        write(&user, name, text);
    }
    user
}

/// Writes a file of the project.
fn write(user: &User, name: &str, text: &str) {
    let file = user.project().join(name);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, text).unwrap();
}

/// Starts a conversation.
fn start(user: &User) -> Terminal {
    let url = user.model.base_url(Dialect::AnthropicMessages);
    let mut command = user.command(&["chat", "--provider", "anthropic", "--base-url", &url]);
    command.env("XTERM_VERSION", "XTerm(390)");
    Terminal::run(&command, 120, 60, |_| {})
}

/// Runs the command, and returns its exit code and its output.
fn run(user: &User, arguments: &[&str]) -> (Option<i32>, String) {
    let output = user.command(arguments).output().unwrap();
    let printed = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
    (output.status.code(), printed)
}

#[test]
fn trust_shows_each_grant_with_its_value() {
    let files = [
        (".pintle/config.toml", "sandbox = \"off\"\nnetwork = \"on\"\nmode = \"auto\"\ntimeout = \"7m\"\n"),
        (".pintle/rules.toml", "allow = [\"shell(ls)\"]\n"),
        (".pintle/hooks.toml", "[[Stop]]\ncommand = \"true\"\n"),
        (".mcp.json", r#"{"mcpServers": {"s": {"command": "true"}}}"#),
    ];
    let granted = [
        "setting: sandbox = \"off\"",
        "setting: network = \"on\"",
        "setting: mode = \"auto\"",
        "allowed without asking: shell(ls)",
        "hook: true",
        "server: s (true)",
    ];
    let (code, printed) = run(&user_with(&files), &["trust"]);
    assert_eq!(code, Some(0), "{printed}");
    let user = user_with(&files);
    let mut terminal = start(&user);
    let screen = terminal.wait_for_text(QUESTION);
    for text in [&printed, &screen] {
        for part in granted {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("setting: timeout"), "it needs no trust: {text}");
    }
    terminal.type_keys("y\n");
    // The settings apply to the conversation that asks.
    terminal.wait_for_text("auto · local, off");
    leave(terminal);
}

/// A configuration alone is asked about, and applies from the first message.
#[test]
fn a_configuration_applies_to_the_conversation_that_asks_about_it() {
    let user = user_with(&[(".pintle/config.toml", "mode = \"ask\"\nmax_turns = 2\n")]);
    let mut terminal = start(&user);
    let screen = terminal.wait_for_text(QUESTION);
    assert!(screen.contains("setting: max_turns = 2"), "{screen}");
    terminal.type_keys("y\n");
    terminal.wait_for_text("say what to do");
    terminal.type_keys("go\r");
    terminal.wait_for_text("y once");
    assert!(!user.project().join("made").exists());
    terminal.type_keys("y");
    terminal.wait_for("the end of the turn", |screen| {
        screen.contains("Done.") && !screen.contains("Esc interrupts")
    });
    assert!(user.project().join("made").exists());
    leave(terminal);

    let mut terminal = start(&user);
    let screen = terminal.wait_for_text("say what to do");
    assert!(!screen.contains(QUESTION), "{screen}");
    leave(terminal);
}

#[test]
fn a_refused_configuration_does_not_apply_and_is_not_asked_about_again() {
    let user = user_with(&[(".pintle/config.toml", "mode = \"auto\"\n")]);
    for answer in [Some("n\n"), None] {
        let mut terminal = start(&user);
        if let Some(answer) = answer {
            terminal.wait_for_text(QUESTION);
            terminal.type_keys(answer);
        }
        terminal.wait_for_text("edit · local");
        leave(terminal);
    }
    assert_eq!(user.pintle(&["trust", "--list"]), "");
}

#[test]
fn a_project_with_which_no_session_starts_is_not_trusted() {
    for (file, text, expected) in [
        (
            ".pintle/hooks.toml",
            "[[PreToolUse]]\nmatcher = \"shel\"\ncommand = \"true\"\n",
            "names the unknown tool `shel`; did you mean shell",
        ),
        (".pintle/config.toml", "mode = \"aut\"\n", "`mode`: found \"aut\""),
        (".pintle/budget.toml", "[session]\ncals = 1\n", "unknown field `cals`"),
    ] {
        let user = user_with(&[(file, text)]);
        let (code, printed) = run(&user, &["trust"]);
        assert!(code == Some(2) && printed.contains(expected), "{file}: {printed}");
        assert_eq!(user.pintle(&["trust", "--list"]), "", "{file}");
    }
    let user =
        user_with(&[(".pintle/hooks.toml", "[[PreToolUse]]\nmatcher = \"shel\"\ncommand = \"true\"\n")]);
    let mut terminal = start(&user);
    terminal.wait_for_text(QUESTION);
    terminal.type_keys("y\n");
    let (code, screen, _) = terminal.finish();
    assert!(code == Some(2) && screen.contains("unknown tool `shel`"), "{screen}");
    assert_eq!(user.pintle(&["trust", "--list"]), "");
}

#[test]
fn a_trust_that_has_ended_is_marked() {
    let user = user_with(&[(".pintle/hooks.toml", "[[Stop]]\ncommand = \"sh check.sh\"\n")]);
    let (code, printed) = run(&user, &["trust"]);
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("check.sh, which a hook or an MCP server names, is missing"), "{printed}");
    assert!(!user.pintle(&["trust", "--list"]).contains("no longer trusted"));
    write(&user, "check.sh", "exit 0\n");
    let listed = user.pintle(&["trust", "--list"]);
    assert!(listed.contains("no longer trusted: its files have changed"), "{listed}");
    let (_, printed) = run(&user, &["rules", "list"]);
    assert!(printed.contains("the project is no longer trusted"), "{printed}");
    let (_, printed) = run(&user, &["trust"]);
    assert!(!printed.contains("is missing"), "{printed}");
    assert!(!user.pintle(&["trust", "--list"]).contains("no longer trusted"));
}

#[test]
fn the_files_that_can_be_trusted_are_named() {
    let (code, printed) = run(&user_with(&[]), &["trust"]);
    assert_eq!(code, Some(2), "{printed}");
    for file in [".pintle/rules.toml", ".pintle/hooks.toml", ".pintle/config.toml", ".mcp.json"] {
        assert!(printed.contains(file), "{file}: {printed}");
    }
}
