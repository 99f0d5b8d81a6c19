//! First steps: keys, the question whether a project is trusted, checks, manual pages and the version.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use pintle_testkit::Dialect;
use serde_json::Value;

use crate::harness::{CommandOutput, Harness, KEY, pintle, run, run_with_input};
use crate::terminal::Terminal;

const HELLO: &str = "[[turn]]\ntext = \"Hello.\"\n";

/// Gives the command a configuration and a state of its own, and no key in a variable.
fn at_home(harness: &Harness, mut command: Command) -> Command {
    command.env("PINTLE_CONFIG_DIR", harness.path(".config")).env("PINTLE_STATE_DIR", harness.path(".state"));
    command.env_remove("ANTHROPIC_API_KEY");
    command
}

fn with_stored_key(harness: &Harness) -> CommandOutput {
    let mut login = at_home(harness, pintle(&["login", "anthropic", "--stdin"]));
    run_with_input(&mut login, &format!("{KEY}\n"))
}

fn configure(harness: &Harness, name: &str, text: &str) {
    fs::create_dir_all(harness.path(".config")).unwrap();
    fs::write(harness.path(".config").join(name), text).unwrap();
}

#[test]
fn stored_key_is_used_until_it_is_removed() {
    let harness = Harness::new(Dialect::AnthropicMessages, HELLO);
    let output = with_stored_key(&harness);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(output.stdout.starts_with("stored the key for anthropic in "), "{output:?}");
    let file = harness.path(".config/credentials.toml");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);

    let list = run(&mut at_home(&harness, pintle(&["login", "--list"])));
    assert!(list.stdout.contains("anthropic          credentials.toml\n"), "{list:?}");
    assert!(list.stdout.contains("gemini             no key\n") && !list.stdout.contains(KEY), "{list:?}");
    let output = run(&mut at_home(&harness, harness.command("ask", &["Hi"])));
    assert_eq!((output.code, output.stdout.trim()), (Some(0), "Hello."), "{output:?}");

    // A variable comes before it.
    let mut login = at_home(&harness, pintle(&["login", "anthropic", "--stdin"]));
    let output = run_with_input(login.env("ANTHROPIC_API_KEY", KEY), KEY);
    assert!(output.stderr.contains("ANTHROPIC_API_KEY takes precedence over the stored key"), "{output:?}");

    let output = run(&mut at_home(&harness, pintle(&["logout", "anthropic"])));
    assert!(
        output.code == Some(0) && output.stdout.starts_with("removed the key for anthropic"),
        "{output:?}"
    );
    let output = run(&mut at_home(&harness, harness.command("ask", &["Hi"])));
    assert_eq!(output.code, Some(4), "{output:?}");
    assert!(output.stderr.contains("set ANTHROPIC_API_KEY, or `pintle login anthropic`"), "{output:?}");
    let output = run(&mut at_home(&harness, pintle(&["logout", "anthropic"])));
    assert!(output.stdout.contains("no key for anthropic is stored"), "{output:?}");
}

#[test]
fn text_that_is_no_key_is_not_stored() {
    let harness = Harness::new(Dialect::AnthropicMessages, HELLO);
    for (input, message) in [
        ("", "it is empty"),
        ("two words", "it contains a space"),
        ("sk-ant-oat01-0123456789", "it is a token of a subscription"),
    ] {
        let mut login = at_home(&harness, pintle(&["login", "anthropic", "--stdin"]));
        let output = run_with_input(&mut login, input);
        assert_eq!(output.code, Some(2), "{output:?}");
        assert!(output.stderr.contains(message) && !harness.path(".config").exists(), "{output:?}");
    }
    let output = run(&mut at_home(&harness, pintle(&["login", "anthropic"])));
    assert_eq!(output.code, Some(2), "{output:?}");
    assert!(output.stderr.contains("`pintle login PROVIDER --stdin`"), "{output:?}");
}

#[test]
fn key_open_to_others_is_refused() {
    let harness = Harness::new(Dialect::AnthropicMessages, HELLO);
    with_stored_key(&harness);
    let file = harness.path(".config/credentials.toml");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let output = run(&mut at_home(&harness, harness.command("ask", &["Hi"])));
    assert_eq!(output.code, Some(2), "{output:?}");
    assert!(output.stderr.contains("is open to others (mode 0644)"), "{output:?}");
    assert!(output.stderr.contains("`chmod 600 ") && !output.stderr.contains(KEY), "{output:?}");
    // It is not needed with a variable.
    let mut command = at_home(&harness, harness.command("ask", &["Hi"]));
    let output = run(command.env("ANTHROPIC_API_KEY", KEY));
    assert_eq!(output.code, Some(0), "{output:?}");
}

#[test]
fn key_is_typed_without_being_shown() {
    let harness = Harness::new(Dialect::AnthropicMessages, HELLO);
    let mut terminal = Terminal::start(&at_home(&harness, pintle(&["login"])));
    terminal.wait_for_text("Provider (openai, anthropic, gemini, openai-compatible): ");
    terminal.type_keys("anthropic\n");
    terminal.wait_for_text("Key of anthropic (not shown): ");
    // Neither ends the command while nothing is shown.
    terminal.type_keys("\u{1a}\u{1c}\u{15}");
    terminal.type_keys(&format!("{KEY}\n"));
    let (code, screen, output) = terminal.finish();
    assert_eq!(code, Some(0), "{screen}");
    assert!(screen.contains("stored the key for anthropic in "), "{screen}");
    assert!(screen.contains("vendor subscriptions") && screen.contains("are not supported"), "{screen}");
    assert!(!output.contains(KEY), "{output}");
    let output = run(&mut at_home(&harness, harness.command("ask", &["Hi"])));
    assert_eq!(output.code, Some(0), "{output:?}");
}

#[test]
fn interrupted_login_leaves_the_terminal_as_before() {
    let harness = Harness::new(Dialect::AnthropicMessages, HELLO);
    let login = at_home(&harness, pintle(&["login", "gemini"]));
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap : INT TERM; \"$0\" \"$@\"; echo code $?; stty -a"]).arg(login.get_program());
    shell.args(login.get_args()).env_clear();
    shell.envs(login.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let mut terminal = Terminal::start(&shell);
    terminal.wait_for_text("(not shown): ");
    terminal.type_keys("half-a-key\u{3}");
    let (_, screen, _) = terminal.finish();
    assert!(screen.contains("code 130") && screen.contains("susp = ^Z"), "{screen}");
    let flags: Vec<&str> = screen.split([' ', ';', '\n']).collect();
    assert!(flags.contains(&"echo") && !flags.contains(&"-echo"), "{screen}");
    assert!(!harness.path(".config").exists() && !screen.contains("half-a-key"), "{screen}");
}

/// Runs a command of a model that prints a file with the key, and checks that nobody else gets it.
fn is_redacted(harness: &Harness) {
    let output = run(&mut at_home(harness, harness.command("run", &["--no-sandbox", "Look"])));
    assert_eq!(output.code, Some(0), "{output:?}");
    let request = harness.server.requests().last().unwrap().body.to_string();
    assert!(request.contains("[redacted]") && !request.contains(KEY), "{request}");
    assert!(!output.stdout.contains(KEY) && !output.stderr.contains(KEY), "{output:?}");
    let id = output.stdout.rsplit("session ").next().unwrap().split_whitespace().next().unwrap();
    let export = run(&mut at_home(harness, pintle(&["sessions", "export", id, "--format", "jsonl"])));
    assert!(export.code == Some(0) && export.stdout.contains("[redacted]"), "{export:?}");
    assert!(!export.stdout.contains(KEY), "{export:?}");
}

fn prints(file: &str) -> String {
    format!(
        "[[turn]]\n[[turn.call]]\ntool = \"shell\"\narguments = {{ command = \"cat {file}\" }}\n[[turn]]\ntext = \"Done.\"\n"
    )
}

#[test]
fn stored_key_is_redacted() {
    let harness = Harness::new(Dialect::AnthropicMessages, &prints(".config/credentials.toml"));
    with_stored_key(&harness);
    is_redacted(&harness);
}

#[test]
fn key_of_a_command_is_redacted() {
    let harness = Harness::new(Dialect::AnthropicMessages, &prints("key"));
    fs::write(harness.path("key"), format!("{KEY}\nlogin: me\n")).unwrap();
    let text = format!("[key_command]\nanthropic = [\"cat\", {:?}]\n", harness.path("key"));
    configure(&harness, "config.toml", &text);
    is_redacted(&harness);
}

#[test]
fn key_command_runs_only_if_it_is_needed() {
    let harness = Harness::new(Dialect::AnthropicMessages, &HELLO.repeat(2));
    let mark = harness.path("ran");
    let line = format!("touch {}; echo no such entry >&2; exit 3", mark.display());
    configure(&harness, "config.toml", &format!("[key_command]\nanthropic = [\"sh\", \"-c\", {line:?}]\n"));
    // Of the project, none runs.
    fs::create_dir(harness.path(".pintle")).unwrap();
    fs::write(harness.path(".pintle/config.toml"), "[key_command]\nopenai = [\"touch\", \"of-project\"]\n")
        .unwrap();
    let mut command = at_home(&harness, harness.command("run", &["Hi"]));
    let output = run(command.env("ANTHROPIC_API_KEY", KEY));
    assert!(output.code == Some(0) && !mark.exists(), "{output:?}");
    let list = run(&mut at_home(&harness, pintle(&["login", "--list", "--output", "json"])));
    let rows: Value = serde_json::from_str(&list.stdout).unwrap();
    assert_eq!((&rows[1]["source"], &rows[0]["source"]), (&"key_command".into(), &Value::Null), "{rows}");
    assert!(!mark.exists());

    let output = run(&mut at_home(&harness, harness.command("run", &["Hi"])));
    assert_eq!(output.code, Some(4), "{output:?}");
    assert!(
        output.stderr.contains("key_command of anthropic failed with exit code 3: no such entry"),
        "{output:?}"
    );
    assert!(mark.exists() && !harness.path("of-project").exists());
}

#[test]
fn command_without_a_key_says_what_to_do() {
    let harness = Harness::new(Dialect::AnthropicMessages, HELLO);
    let output = run(&mut at_home(&harness, pintle(&["run", "x"])));
    assert_eq!(output.code, Some(4), "{output:?}");
    let lines: Vec<&str> = output.stderr.lines().collect();
    assert_eq!(lines.len(), 4, "{output:?}");
    assert_eq!(lines[0], "pintle: no API key found");
    for (line, part) in
        lines[1..].iter().zip(["pintle login", "pintle --provider openai-compatible", "pintle demo"])
    {
        assert!(line.contains(part), "{output:?}");
    }
    let output = run(&mut at_home(&harness, pintle(&["run", "--output", "json", "x"])));
    let error: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(error["error"]["kind"], "authentication", "{output:?}");
    assert!(error["error"]["hint"].as_str().unwrap().contains("pintle login"), "{output:?}");
}

fn project(harness: &Harness) {
    fs::create_dir(harness.path(".pintle")).unwrap();
    fs::write(harness.path(".pintle/rules.toml"), "allow = [\"shell(make *)\"]\n").unwrap();
}

fn converse(harness: &Harness, arguments: &[&str]) -> Terminal {
    let mut command = at_home(harness, harness.command("chat", arguments));
    command.env("ANTHROPIC_API_KEY", KEY).env("XTERM_VERSION", "XTerm(390)");
    Terminal::start(&command)
}

fn leave(mut terminal: Terminal) -> String {
    terminal.wait_for_text("say what to do");
    terminal.type_keys("/quit\r");
    let (code, screen, output) = terminal.finish();
    assert_eq!(code, Some(0), "{screen}");
    output
}

const QUESTION: &str = "Trust its current state?";

#[test]
fn first_conversation_asks_about_trust_once() {
    let harness = Harness::new(Dialect::AnthropicMessages, HELLO);
    project(&harness);
    let trusted = || run(&mut at_home(&harness, pintle(&["trust", "--list"]))).stdout;
    // Whoever quits is asked again.
    let mut terminal = converse(&harness, &[]);
    let screen = terminal.wait_for_text(QUESTION);
    assert!(screen.contains("allowed without asking: shell(make *)"), "{screen}");
    terminal.type_keys("perhaps\n");
    terminal.wait_for("a second question", |screen| screen.matches(QUESTION).count() == 2);
    terminal.type_keys("q\n");
    let (code, screen, _) = terminal.finish();
    assert_eq!((code, trusted().as_str()), (Some(0), ""), "{screen}");
    assert!(!harness.path(".state/sessions").exists(), "nothing has begun");

    let mut terminal = converse(&harness, &[]);
    terminal.wait_for_text(QUESTION);
    terminal.type_keys("n\n");
    leave(terminal);
    assert_eq!(trusted(), "");
    assert!(!leave(converse(&harness, &[])).contains(QUESTION), "a refusal is remembered");

    // Other content is another question.
    fs::write(harness.path(".pintle/rules.toml"), "allow = [\"shell(just *)\"]\n").unwrap();
    let mut terminal = converse(&harness, &[]);
    terminal.wait_for_text(QUESTION);
    terminal.type_keys("y\n");
    leave(terminal);
    assert_eq!(trusted().lines().count(), 1);
    assert!(!leave(converse(&harness, &[])).contains(QUESTION), "trust is remembered");
}

#[test]
fn interrupted_question_decides_nothing() {
    let harness = Harness::new(Dialect::AnthropicMessages, HELLO);
    project(&harness);
    let mut terminal = converse(&harness, &[]);
    terminal.wait_for_text(QUESTION);
    terminal.type_keys("\u{3}");
    let (code, screen, _) = terminal.finish();
    assert_eq!(code, Some(130), "{screen}");
    assert!(!harness.path(".state/trust.json").exists(), "{screen}");
}

#[test]
fn whoever_quits_leaves_no_worktree() {
    let harness = Harness::new(Dialect::AnthropicMessages, HELLO);
    project(&harness);
    for arguments in ["init --quiet", "add .pintle", "commit --quiet --message=first"] {
        let identity = ["-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "commit.gpgSign=false"];
        let mut git = Command::new("git");
        git.args(identity).args(arguments.split(' ')).current_dir(harness.directory.path());
        assert_eq!(run(&mut git).code, Some(0), "{arguments}");
    }
    let mut terminal = converse(&harness, &["--worktree"]);
    terminal.wait_for_text(QUESTION);
    terminal.type_keys("q\n");
    let (code, screen, _) = terminal.finish();
    assert!(code == Some(0) && screen.contains("working in "), "{screen}");
    let worktrees =
        Command::new("git").args(["worktree", "list"]).current_dir(harness.directory.path()).output();
    let listed = CommandOutput::from(worktrees.unwrap()).stdout;
    assert_eq!(listed.lines().count(), 1, "{listed}");
}

#[test]
fn rules_that_only_deny_need_no_trust() {
    let harness = Harness::new(Dialect::AnthropicMessages, HELLO);
    fs::create_dir(harness.path(".pintle")).unwrap();
    fs::write(harness.path(".pintle/rules.toml"), "deny = [\"shell(git push *)\"]\n").unwrap();
    assert!(!leave(converse(&harness, &[])).contains(QUESTION));
}

#[test]
fn doctor_reports_each_check() {
    let harness = Harness::new(Dialect::AnthropicMessages, HELLO);
    let mut doctor = at_home(&harness, pintle(&["doctor"]));
    doctor.env("ANTHROPIC_API_KEY", KEY).env("ANTHROPIC_BASE_URL", harness.server.base_url(harness.dialect));
    let output = run(&mut doctor);
    assert_eq!(output.code, Some(0), "{output:?}");
    for part in [
        "anthropic (ANTHROPIC_API_KEY)",
        " answers\n",
        "git version",
        "sandbox",
        "containers",
        "ssh",
        "store",
    ] {
        assert!(output.stdout.contains(part), "{part}: {output:?}");
    }
    assert!(!output.stdout.contains(KEY) && !harness.path(".state").exists(), "{output:?}");

    let output = run(&mut at_home(&harness, pintle(&["doctor", "--offline", "--output", "json"])));
    let report: Value = serde_json::from_str(&output.stdout).unwrap();
    let names: Vec<&str> =
        report["checks"].as_array().unwrap().iter().map(|check| check["name"].as_str().unwrap()).collect();
    let expected = [
        "version",
        "configuration",
        "keys",
        "network",
        "git",
        "sandbox",
        "containers",
        "ssh",
        "terminal",
        "store",
        "state",
    ];
    assert_eq!((output.code, names.as_slice()), (Some(0), &expected[..]), "{report}");
    assert_eq!(
        (&report["status"], &report["checks"][2]["status"]),
        (&"warning".into(), &"warning".into()),
        "{report}"
    );

    configure(&harness, "config.toml", "[key_command\n");
    let output = run(&mut at_home(&harness, pintle(&["doctor", "--offline"])));
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(output.stdout.contains("config.toml: line 1"), "{output:?}");
}

#[test]
fn help_that_cannot_be_written_is_a_failure() {
    for arguments in [&["--help"][..], &["run", "--help"], &["--version"]] {
        let full = File::create("/dev/full").unwrap();
        let output = pintle(arguments).stdout(full).stderr(Stdio::piped()).output().unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        let expected = "pintle: cannot write to standard output: No space left on device (os error 28)\n";
        assert_eq!((output.status.code(), errors.as_str()), (Some(1), expected), "{arguments:?}");
    }
}

#[test]
fn version_names_the_commit() {
    let output = run(&mut pintle(&["--version"]));
    let version = output.stdout.strip_prefix(concat!("pintle ", env!("CARGO_PKG_VERSION"))).unwrap();
    let git = |arguments: &[&str]| run(Command::new("git").args(arguments)).stdout.trim().to_owned();
    if git(&["rev-parse", "--show-prefix"]) != "crates/cli/" {
        assert_eq!(version, "\n", "nobody knows the commit");
        return;
    }
    let commit = version.trim().strip_prefix('(').and_then(|commit| commit.strip_suffix(')')).unwrap();
    let (hash, _date) = commit.split_once(' ').unwrap();
    // It may be an earlier one than now: a commit during the tests changes no binary.
    assert_eq!(git(&["log", "-1", "--format=%h %cs", "--abbrev=8", hash]), commit);
}

#[test]
fn manual_and_completions_know_the_subcommands() {
    let output = run(&mut pintle(&["man"]));
    assert!(output.code == Some(0) && output.stdout.contains(".TH pintle 1"), "{output:?}");
    let output = run(&mut pintle(&["man", "sessions", "rewind"]));
    assert!(output.stdout.contains(".TH pintle-sessions-rewind 1"), "{output:?}");
    let output = run(&mut pintle(&["man", "fly"]));
    assert_eq!(output.code, Some(2), "{output:?}");
    let directory = tempfile::tempdir().unwrap();
    let output = run(pintle(&["man", "--dir"]).arg(directory.path()));
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(fs::read_to_string(directory.path().join("pintle-doctor.1")).unwrap().contains("offline"));
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = run(&mut pintle(&["completions", shell]));
        for name in ["doctor", "login", "logout", "man"] {
            assert!(output.stdout.contains(name), "{shell}: {name}");
        }
    }
}
