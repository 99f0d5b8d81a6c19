//! Rules of the user, of a project and of the command line, and trust in projects.

use std::process::Command;

use pintle_testkit::Dialect;

use crate::harness::{CommandOutput, Harness, pintle, run};

const TURNS: &str = r#"
    [[turn]]
    [[turn.call]]
    tool = "shell"
    arguments = { command = "touch made" }
    [[turn]]
    text = "So be it."
    "#;

/// Project with its own state and configuration.
struct Fixture {
    harness: Harness,
    user: tempfile::TempDir,
}

impl Fixture {
    fn new() -> Self {
        Self { harness: Harness::new(Dialect::AnthropicMessages, TURNS), user: tempfile::tempdir().unwrap() }
    }

    fn with_user_rules(self, rules: &str) -> Self {
        std::fs::write(self.user.path().join("rules.toml"), rules).unwrap();
        self
    }

    fn with_user_hooks(self, hooks: &str) -> Self {
        std::fs::write(self.user.path().join("hooks.toml"), hooks).unwrap();
        self
    }

    fn with_project_rules(self, rules: &str) -> Self {
        std::fs::create_dir_all(self.harness.path(".pintle")).unwrap();
        std::fs::write(self.harness.path(".pintle/rules.toml"), rules).unwrap();
        self
    }

    fn at_home(&self, command: &mut Command) -> CommandOutput {
        command.env("PINTLE_CONFIG_DIR", self.user.path());
        command.env("PINTLE_STATE_DIR", self.user.path().join("state"));
        run(command)
    }

    /// Runs the task, and returns the output and whether the command ran.
    fn run(&self, flags: &[&str]) -> (CommandOutput, bool) {
        let mut command = self.harness.command("run", &["Go"]);
        let output = self.at_home(command.args(flags));
        let made = self.harness.path("made").exists();
        let _ = std::fs::remove_file(self.harness.path("made"));
        (output, made)
    }

    fn pintle(&self, arguments: &[&str]) -> CommandOutput {
        self.at_home(pintle(arguments).current_dir(self.harness.path("")))
    }
}

#[test]
fn rules_come_from_the_user_the_project_and_the_command_line() {
    let deny = "deny = [\"shell(touch *)\"]";
    let allow = "allow = [\"shell(touch *)\"]";
    let cases: [(Fixture, &[&str], bool); 8] = [
        (Fixture::new(), &["--mode", "edit"], false),
        (Fixture::new(), &["--mode", "edit", "--allow", "shell(touch *)"], true),
        (Fixture::new(), &["--mode", "edit", "--allow", "shell(ls *)"], false),
        (Fixture::new(), &["--deny", "@execute(touch *)"], false),
        (Fixture::new().with_user_rules(deny), &["--allow", "shell"], false),
        (Fixture::new().with_user_rules(allow), &["--mode", "ask"], true),
        (Fixture::new().with_project_rules(deny), &[], false),
        (Fixture::new().with_project_rules(allow), &["--mode", "ask"], false),
    ];
    for (fixture, flags, ran) in cases {
        let (output, made) = fixture.run(flags);
        assert_eq!(made, ran, "{flags:?}: {output:?}");
    }
}

#[test]
fn a_wrong_rule_stops_the_run_before_the_model_is_asked() {
    let cases: [(Fixture, &[&str], &str); 6] = [
        (Fixture::new(), &["--deny", "shell(git push"], "--deny is wrong"),
        (Fixture::new().with_user_rules("denny = []"), &[], "did you mean `deny`?"),
        (Fixture::new().with_user_rules("\n\nallow = [\"shell()\"]"), &[], "line 3"),
        (Fixture::new().with_project_rules("deny = [\"shel(rm *)\"]"), &[], "does not say what"),
        (Fixture::new().with_project_rules("deny = [\"read_fil\"]"), &[], "did you mean read_file"),
        (Fixture::new().with_user_hooks(&HOOKS.replace("shell", "shel")), &[], "did you mean shell"),
    ];
    for (fixture, flags, message) in cases {
        let (output, made) = fixture.run(flags);
        assert_eq!((output.code, made), (Some(2), false), "{message}: {output:?}");
        assert!(output.stderr.contains(message), "{message}: {output:?}");
        assert!(!output.stdout.contains("So be it."), "{output:?}");
    }
}

#[test]
fn a_project_widens_nothing_until_it_is_trusted_and_not_after_a_change() {
    let fixture = Fixture::new().with_project_rules("allow = [\"shell(touch *)\"]");
    let (output, made) = fixture.run(&["--mode", "edit"]);
    assert!(!made && output.stderr.contains("the project is not trusted"), "{output:?}");
    let output = fixture.pintle(&["trust"]);
    assert!(output.code == Some(0) && output.stdout.starts_with("trusted "), "{output:?}");
    let (output, made) = fixture.run(&["--mode", "edit"]);
    assert!(made && !output.stderr.contains("not trusted"), "{output:?}");
    let fixture = fixture.with_project_rules("allow = [\"shell\"]");
    let (output, made) = fixture.run(&["--mode", "edit"]);
    assert!(!made && output.stderr.contains("is no longer trusted"), "{output:?}");
    assert_eq!(fixture.pintle(&["trust", "--list"]).stdout.lines().count(), 1);
    let output = fixture.pintle(&["trust", "--revoke"]);
    assert!(output.stdout.contains("is no longer trusted"), "{output:?}");
    assert_eq!(fixture.pintle(&["trust", "--list"]).stdout, "");
}

#[test]
fn a_directory_without_files_cannot_be_trusted() {
    let output = Fixture::new().pintle(&["trust"]);
    assert_eq!(output.code, Some(2), "{output:?}");
    assert!(output.stderr.contains("has nothing to trust"), "{output:?}");
}

#[test]
fn check_says_what_would_happen_and_why() {
    let fixture = Fixture::new()
        .with_user_rules("deny = [\"shell(git push *)\"]\nask = [\"@write(Cargo.toml)\"]")
        .with_project_rules("deny = [\"web_fetch(evil.example)\"]");
    let user = fixture.user.path().join("rules.toml");
    let user = user.to_str().unwrap();
    let cases: [(&[&str], String); 8] = [
        (&["shell(git push origin)"], format!("deny: deny shell(git push *) ({user}:1): ")),
        (&["shell(ls && git push)"], format!("deny: deny shell(git push *) ({user}:1): ")),
        (&["shell(ls)"], "allow: mode auto\ndecided by the mode: no rule names the call\n".to_owned()),
        (
            &["shell(ls)", "--mode", "edit"],
            "ask: mode edit: it runs a command, and mode edit asks".to_owned(),
        ),
        (&["write_file(Cargo.toml)"], format!("ask: ask @write(Cargo.toml) ({user}:2): ")),
        (
            &["write_file(/etc/passwd)"],
            "ask: mode auto: it changes files outside of the workspace".to_owned(),
        ),
        (
            &["web_fetch(evil.example)"],
            "deny: deny web_fetch(evil.example) (.pintle/rules.toml:1): ".to_owned(),
        ),
        (&["read_file(a)", "--mode", "plan"], "allow: mode plan\n".to_owned()),
    ];
    for (arguments, expected) in cases {
        let output = fixture.pintle(&[&["rules", "check"], arguments].concat());
        assert!(output.code == Some(0) && output.stdout.starts_with(&expected), "{arguments:?}: {output:?}");
    }
    let listed = fixture.pintle(&["rules", "list", "--deny", "shell(rm *)"]);
    insta::assert_snapshot!(listed.stdout.replace(user, "USER"), @r"
    ask   @write(Cargo.toml)  (USER:2)
    deny  shell(git push *)  (USER:1)
    deny  web_fetch(evil.example)  (.pintle/rules.toml:1)
    deny  shell(rm *)  (--deny)
    mode auto for all other calls
    ");
    for (call, message) in [
        ("shell", "has no target"),
        ("sh*(ls)", "names several tools"),
        ("shell(ls", "has no `)` at its end"),
        ("mytool(x)", "does not say what `x` is"),
        ("foo(x)", "unknown tool `foo`: "),
    ] {
        let output = fixture.pintle(&["rules", "check", call]);
        assert_eq!(output.code, Some(2), "{output:?}");
        assert!(output.stderr.contains(message), "{call}: {output:?}");
    }
}

#[test]
fn check_judges_by_all_steps_of_a_run() {
    let fixture = Fixture::new().with_user_rules(
        "deny = [\"@write(src/**)\", \"shell(git push *)\", \"@read(keys/**)\", \"Write(path:out/**)\"]",
    );
    let home = tempfile::tempdir().unwrap();
    for directory in ["src", "bin", "keys"] {
        std::fs::create_dir(fixture.harness.path(directory)).unwrap();
    }
    for name in ["bin/id", "keys/a"] {
        std::fs::write(fixture.harness.path(name), "x").unwrap();
    }
    std::os::unix::fs::symlink("../bin/id", fixture.harness.path("src/id")).unwrap();
    let key = format!("read_file({}/.ssh/id)", home.path().display());
    let cases: [(&[&str], &str, &str); 11] = [
        (&["write_file(.git/config)"], "deny: protected .git/config", "protected_paths"),
        (&["edit_file(.pintle/rules.toml)"], "deny: protected .pintle", "protected_paths"),
        (&["apply_patch(.git/hooks/x)"], "deny: protected .git/hooks", "protected_paths"),
        (&[&key], "deny: hidden path", "hidden_paths"),
        (&["shell(ls)", "--mode", "plan"], "allow: mode plan", "the mode: no rule names the call"),
        (&["write_file(src/id)"], "deny: deny @write(src/**)", "rules"),
        (&["Bash(command:git push)"], "deny: deny shell(git push *)", "rules"),
        (&["Bash(git push)"], "deny: deny shell(git push *)", "rules"),
        (&["Write(out/a)"], "deny: deny Write(path:out/**)", "rules"),
        (&["read_many_files(k*/*)"], "deny: deny @read(keys/**)", "rules"),
        (&["read_many_files(b*/*)", "--dir", "bin"], "allow: mode auto", "the mode: no rule names the call"),
    ];
    for (arguments, expected, step) in cases {
        let mut command = pintle(&[&["rules", "check"], arguments].concat());
        let output = fixture.at_home(command.current_dir(fixture.harness.path("")).env("HOME", home.path()));
        assert!(output.code == Some(0) && output.stdout.starts_with(expected), "{arguments:?}: {output:?}");
        assert!(output.stdout.ends_with(&format!("decided by {step}\n")), "{arguments:?}: {output:?}");
    }
}

#[test]
fn a_nearer_directory_takes_no_denial_away() {
    let deny = "deny = [\"shell(touch *)\"]";
    for (file, content) in [
        ("sub/.pintle/budget.toml", "[run]\ncalls = 9\n"),
        ("sub/.pintle/rules.toml", "allow = [\"shell\"]\n"),
        ("sub/.git/HEAD", "ref: refs/heads/main\n"),
    ] {
        let fixture = Fixture::new().with_project_rules(deny);
        std::fs::create_dir_all(fixture.harness.path(".git")).unwrap();
        std::fs::create_dir_all(fixture.harness.path("sub")).unwrap();
        let check = || fixture.pintle(&["rules", "check", "shell(touch made)", "--dir", "sub"]);
        let denied = "deny: deny shell(touch *) (../.pintle/rules.toml:1)";
        assert!(check().stdout.starts_with(denied), "{:?}", check());
        let path = fixture.harness.path(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
        assert!(check().stdout.starts_with(denied), "{file}: {:?}", check());
        // Trust in the nearer one does not help either.
        let trusted = fixture.pintle(&["trust", "sub"]);
        assert_eq!(trusted.code, Some(0), "{trusted:?}");
        assert!(check().stdout.starts_with(denied), "{file}: {:?}", check());
    }
}

#[test]
fn budgets_of_all_projects_count() {
    let fixture = Fixture::new();
    for (directory, tokens) in [("", 1), ("sub/", 9_000_000)] {
        let path = fixture.harness.path(&format!("{directory}.pintle"));
        std::fs::create_dir_all(&path).unwrap();
        std::fs::write(path.join("budget.toml"), format!("[run]\ntokens = {tokens}\n")).unwrap();
    }
    std::fs::create_dir_all(fixture.harness.path(".git")).unwrap();
    let mut command = pintle(&["run", "--provider", "anthropic", "--toolset", "spec"]);
    command.args(["--base-url", &fixture.harness.server.base_url(Dialect::AnthropicMessages)]);
    command
        .arg("--dir")
        .arg(fixture.harness.path("sub"))
        .arg("Go")
        .env("ANTHROPIC_API_KEY", crate::harness::KEY);
    let output = fixture.at_home(&mut command);
    assert_eq!(output.code, Some(3), "{output:?}");
    assert!(!fixture.harness.path("sub/made").exists(), "{output:?}");
}

#[test]
fn mode_and_accepted_rules_come_back_with_the_session() {
    let fixture = Fixture::new();
    let (output, made) = fixture.run(&["--mode", "edit", "--allow", "shell(touch *)"]);
    assert!(made, "{output:?}");
    let exported = fixture.pintle(&["sessions", "list", "--all", "--output", "json"]);
    let rows: serde_json::Value = serde_json::from_str(&exported.stdout).unwrap();
    let id = rows[0]["id"].as_str().unwrap();
    let record = fixture.pintle(&["sessions", "export", id]).stdout;
    let changes: Vec<&str> = record.lines().filter(|line| line.contains("policy_changed")).collect();
    let [change] = changes.as_slice() else { panic!("{changes:?}") };
    for part in ["\"mode\":\"edit\"", "shell(touch *)", "--allow"] {
        assert!(change.contains(part), "{part} in {change}");
    }
}

/// Hook that asks a script about commands.
const HOOKS: &str = r#"
[[PreToolUse]]
matcher = "shell"
command = "sh check.sh"
required = true
"#;

#[test]
fn hooks_of_the_user_run_and_those_of_a_project_once_it_is_trusted() {
    let fixture = Fixture::new();
    std::fs::write(
        fixture.user.path().join("hooks.toml"),
        "[[SessionStart]]\ncommand = \"touch $PINTLE_PROJECT_DIR/started\"\n",
    )
    .unwrap();
    std::fs::create_dir_all(fixture.harness.path(".pintle")).unwrap();
    std::fs::write(fixture.harness.path(".pintle/hooks.toml"), HOOKS).unwrap();
    let script = fixture.harness.path("check.sh");
    std::fs::write(&script, "echo not on a Sunday >&2; exit 2\n").unwrap();

    let (output, made) = fixture.run(&[]);
    assert!(made && fixture.harness.path("started").exists(), "{output:?}");
    assert!(output.stderr.contains("leaves out its hooks (sh check.sh)"), "{output:?}");

    assert_eq!(fixture.pintle(&["trust"]).code, Some(0));
    let (output, made) = fixture.run(&[]);
    assert!(!made && output.stdout.contains("not on a Sunday"), "{output:?}");

    // Another script is another hook.
    std::fs::write(&script, "exit 0\n").unwrap();
    let (output, made) = fixture.run(&[]);
    assert!(made && output.stderr.contains("is no longer trusted"), "{output:?}");
    let output = fixture.pintle(&["trust"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(fixture.run(&[]).1);
}

#[test]
fn file_tools_do_not_change_the_scripts_of_trusted_hooks() {
    let turns = TURNS.replace("tool = \"shell\"", "tool = \"write_file\"");
    let turns = turns.replace("command = \"touch made\"", "file_path = \"check.sh\", content = \"exit 0\"");
    let fixture = Fixture { harness: Harness::new(Dialect::AnthropicMessages, &turns), ..Fixture::new() };
    std::fs::create_dir_all(fixture.harness.path(".pintle")).unwrap();
    std::fs::write(fixture.harness.path(".pintle/hooks.toml"), HOOKS).unwrap();
    std::fs::write(fixture.harness.path("check.sh"), "exit 2\n").unwrap();
    assert_eq!(fixture.pintle(&["trust"]).code, Some(0));
    let (output, _) = fixture.run(&["--allow", "@write"]);
    assert!(output.stdout.contains("programs of hooks"), "{output:?}");
    assert_eq!(fixture.harness.read("check.sh"), "exit 2\n");
}

/// A command can change what file tools cannot.
#[test]
fn a_script_of_a_trusted_hook_that_a_command_changes_does_not_run() {
    const CHANGES: &str = r#"
    [[turn]]
    [[turn.call]]
    tool = "shell"
    arguments = { command = "echo 'touch forged' > check.sh" }
    "#;
    let turns = format!("{CHANGES}{TURNS}");
    let fixture = Fixture { harness: Harness::new(Dialect::AnthropicMessages, &turns), ..Fixture::new() };
    std::fs::create_dir_all(fixture.harness.path(".pintle")).unwrap();
    std::fs::write(fixture.harness.path(".pintle/hooks.toml"), HOOKS).unwrap();
    std::fs::write(fixture.harness.path("check.sh"), "exit 0\n").unwrap();
    assert_eq!(fixture.pintle(&["trust"]).code, Some(0));
    let (output, made) = fixture.run(&[]);
    assert_eq!(fixture.harness.read("check.sh"), "touch forged\n");
    assert!(!made && !fixture.harness.path("forged").exists(), "{output:?}");
    assert!(output.stderr.contains("its program has changed since it was trusted"), "{output:?}");
}

#[test]
fn a_wrong_hooks_file_stops_the_run() {
    let fixture = Fixture::new();
    let path = fixture.user.path().join("hooks.toml");
    std::fs::write(&path, "\n[[PreToolUse]]\ncomand = \"true\"\n").unwrap();
    let (output, made) = fixture.run(&[]);
    assert_eq!((output.code, made), (Some(2), false), "{output:?}");
    assert!(output.stderr.contains("line 3") && output.stderr.contains("`command`"), "{output:?}");
}

/// A grant under which commands run nothing, and files change only in `src`.
fn grant(fixture: &Fixture, change: &str) -> String {
    let root = fixture.harness.path("").canonicalize().unwrap();
    let root = root.to_str().unwrap().trim_end_matches('/');
    let grant = format!(
        r#"{{"version": 1, "id": "g", "tools": ["*"], "reads": {{"roots": ["/"]}},
            "writes": {{"roots": ["{root}/src"]}}, "effect": "write", "network": false,
            "environments": ["local"], "budget": {{"tool_calls": 5}}{change}}}"#
    );
    let path = fixture.user.path().join("grant.json");
    std::fs::write(&path, grant).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn grant_holds_whatever_rules_and_modes_say() {
    let fixture = Fixture::new();
    let grant = grant(&fixture, "");
    let (output, made) = fixture.run(&["--grant", &grant, "--allow", "shell", "--no-sandbox"]);
    assert!(!made && output.code == Some(0), "{output:?}");
    assert!(output.stdout.contains("grant g does not allow commands"), "{output:?}");
    // It stays with the session, also in a fork.
    for flag in ["--continue", "--fork"] {
        let mut flags = vec![flag];
        let sessions = fixture.pintle(&["sessions", "list", "--output", "json"]);
        let listed: serde_json::Value =
            serde_json::from_str(sessions.stdout.lines().next().unwrap()).unwrap();
        let id = listed["id"].as_str().or_else(|| listed[0]["id"].as_str()).unwrap().to_owned();
        if flag == "--fork" {
            flags.push(&id);
        }
        flags.extend(["--no-sandbox", "--verbose"]);
        let (output, made) = fixture.run(&flags);
        assert!(!made, "{flag}: {output:?}");
        let audit = fixture.pintle(&["audit", &id, "--output", "json"]);
        assert!(audit.stdout.contains("\"g\""), "{flag}: {audit:?}");
    }
}

#[test]
fn grant_that_does_not_hold_or_is_not_understood_starts_nothing() {
    for (change, expected) in [
        (", \"window\": {\"not_after\": \"2001-01-01T00:00:00Z\"}", "grant g has expired"),
        (", \"window\": {\"not_before\": \"2901-01-01T00:00:00Z\"}", "grant g does not hold yet"),
        (", \"session\": \"another\"", "grant g is for another session"),
        (", \"until\": \"2901-01-01\"", "unknown field `until`"),
        (", \"version\": 2", "duplicate field `version`"),
    ] {
        let fixture = Fixture::new();
        let grant = grant(&fixture, change);
        let (output, _) = fixture.run(&["--grant", &grant]);
        assert_eq!(output.code, Some(2), "{change}: {output:?}");
        assert!(output.stderr.contains(expected), "{change}: {output:?}");
        assert_eq!(fixture.harness.server.requests().len(), 0);
    }
    let fixture = Fixture::new();
    let (output, _) = fixture.run(&["--grant", "no such file"]);
    assert_eq!(output.code, Some(2), "{output:?}");
}
