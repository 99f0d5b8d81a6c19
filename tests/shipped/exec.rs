//! `pintle exec` in scripts.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use pintle_testkit::Dialect;

use super::user::User;

/// Writes a file.
const WRITING: &str = r#"
    [[turn]]
    [[turn.call]]
    tool = "Bash"
    arguments = { command = "echo made >made" }
    [[turn]]
    text = "It is made."
    "#;

/// Task of the user.
const TASK: &str = "Make the file of this test";

/// Returns `pintle exec` with the scripted model and otherwise with defaults.
fn exec(user: &User, flags: &[&str]) -> Command {
    let mut command = user.command(&["exec"]);
    command.args(flags).arg(TASK);
    command.env("PINTLE_PROVIDER", "anthropic");
    command.env("ANTHROPIC_BASE_URL", user.model.base_url(Dialect::AnthropicMessages));
    command
}

#[test]
fn the_help_names_the_subcommand_and_its_purpose() {
    let user = User::new(WRITING);
    assert!(user.pintle(&["--help"]).contains("see `pintle help exec`"));
    let help = user.pintle(&["help", "exec"]);
    assert!(help.contains("for programs that start `codex exec`") && help.contains("--ephemeral"), "{help}");
    assert_eq!(user.pintle(&["exec", "--help"]), help);
    for (arguments, hint) in [
        (&["man", "exec"][..], "`pintle help exec` lists its options"),
        (&["run", "--max-turns", "many", "x"], "see `pintle run --help`"),
        (&["sessions", "list", "--limit", "0"], "see `pintle sessions list --help`"),
    ] {
        let output = user.command(arguments).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
        assert!(error.contains(hint), "{arguments:?}: {error}");
    }
}

#[test]
fn a_misspelt_option_that_restricts_starts_nothing() {
    let user = User::new(WRITING);
    for (flags, meant) in [
        (["--full-auto", "--sandboxx", "read-only"], "--sandbox"),
        (["--full-auto", "--sandbx=read-only", "--ephemeral"], "--sandbox"),
        (["--full-auto", "--ask-for-aproval", "never"], "--ask-for-approval"),
        (["--full-auto", "-c", "aproval_policy=untrusted"], "approval_policy"),
        (["--full-auto", "--new-option", "read-only"], "--sandbox"),
        (["--full-auto", "--cdd", "../p2"], "--cd"),
        (["--full-auto", "--cwd", "../p2"], "--cd"),
        (["--full-auto", "--output-schem", "s.json"], "--output-schema"),
        (["--full-auto", "--output-last-mesage", "last.txt"], "--output-last-message"),
        (["--full-auto", "--modle", "m"], "--model"),
        (["--full-auto", "--resume", "01a"], "resume"),
    ] {
        let output = exec(&user, &flags).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{flags:?}: {error}");
        let end = format!("did you mean {meant}? See `pintle exec --help`");
        assert!(error.trim_end().ends_with(&end), "{flags:?}: {error}");
        assert!(output.stdout.is_empty(), "{flags:?}: {output:?}");
    }
    assert!(user.model.requests().is_empty());
    assert!(!user.project().join("made").exists());
}

#[test]
fn what_an_option_or_a_key_forbids_is_not_done() {
    if !pintle_test_conditions::BUBBLEWRAP.is_present() && !pintle_test_conditions::LANDLOCK.is_present() {
        return;
    }
    let cases: [(&[&str], &[&str]); 5] = [
        (&["--full-auto", "-c", "sandbox_mode=read-only"], &[]),
        (&["-c", "sandbox_mode=\"read-only\"", "--full-auto"], &[]),
        (&["--full-auto"], &["-c", "sandbox_mode=read-only"]),
        (&["--full-auto"], &["-c", "approval_policy=untrusted"]),
        (&["--full-auto"], &["-sread-only"]),
    ];
    for (before, after) in cases {
        let user = User::new(WRITING);
        let output = exec(&user, before).args(after).output().unwrap();
        assert!(matches!(output.status.code(), Some(0 | 5)), "{before:?} {after:?}: {output:?}");
        assert!(user.request(0).contains(TASK), "{before:?} {after:?}");
        assert!(!user.project().join("made").exists(), "{before:?} {after:?}: {output:?}");
    }
    let user = User::new(WRITING);
    for (flags, narrower) in [
        (["--yolo", "-c", "sandbox_mode=read-only"], "--config sandbox_mode=read-only"),
        (["-sread-only", "--full-auto", "--yolo"], "--full-auto"),
        (["-sworkspace-write", "-c", "sandbox_mode=read-only"], "--config sandbox_mode=read-only"),
    ] {
        let output = exec(&user, &flags).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{flags:?}: {error}");
        assert!(error.contains(narrower), "{flags:?}: {error}");
    }
    assert!(user.model.requests().is_empty());
}

#[test]
fn the_network_key_gives_a_read_only_session_no_network() {
    if !pintle_test_conditions::BUBBLEWRAP.is_present() {
        return;
    }
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let connecting = format!(
        "[[turn]]\n[[turn.call]]\ntool = \"Bash\"\narguments = {{ command = \"bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}'; \
         echo exit-$?\" }}\n[[turn]]\ntext = \"Done.\"\n"
    );
    let key = |value: bool| format!("sandbox_workspace_write.network_access={value}");
    for (mode, value, is_connected) in [
        ("workspace-write", true, true),
        ("workspace-write", false, false),
        ("read-only", true, false),
        ("danger-full-access", false, true),
    ] {
        let user = User::new(&connecting);
        let output = exec(&user, &["-s", mode, "-c", &key(value)]).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{mode} {value}: {error}");
        assert_eq!(user.request(1).contains("exit-0"), is_connected, "{mode} {value}: {}", user.request(1));
        assert_eq!(user.request(1).contains("exit-1"), !is_connected, "{mode} {value}: {}", user.request(1));
        assert_eq!(error.contains("has no effect"), mode != "workspace-write", "{mode} {value}: {error}");
    }
}

#[test]
fn an_unknown_option_does_not_take_the_task() {
    for (flags, warning) in [
        (&["--search"][..], "option --search is ignored"),
        (&["--no-alt-screen"], "option --no-alt-screen is ignored"),
        (&["--new-option"], "option --new-option is ignored: it is unknown"),
        (&["--user", "never"], "option --user is ignored with its value `never`"),
        (&["--colour", "never"], "option --colour is ignored with its value `never`"),
    ] {
        let user = User::new("[[turn]]\ntext = \"Done.\"\n");
        let last = user.project().join("last.txt");
        let file = format!("-o{}", last.display());
        let output = exec(&user, &[&[file.as_str(), "-s=read-only"][..], flags].concat()).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{flags:?}: {error}");
        assert!(error.contains(warning), "{flags:?}: {error}");
        assert!(user.request(0).contains(TASK), "{flags:?}");
        assert_eq!(std::fs::read_to_string(last).unwrap(), "Done.", "{flags:?}");
    }
}

#[test]
fn the_last_message_is_in_the_named_file() {
    if !pintle_test_conditions::BUBBLEWRAP.is_present() && !pintle_test_conditions::LANDLOCK.is_present() {
        return;
    }
    let user = User::new(WRITING);
    let last = user.project().join("last.txt");
    std::fs::write(&last, "An earlier and longer message.").unwrap();
    let output = exec(&user, &["--full-auto", "-o", "last.txt"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(std::fs::read_to_string(last).unwrap(), "It is made.");
    assert!(user.project().join("made").exists(), "{output:?}");
}

/// No process reads the pipe before the run has asked the model.
#[test]
fn the_last_message_goes_to_a_reader_of_a_named_pipe() {
    let user = User::new("[[turn]]\ntext = \"To a pipe.\"\n");
    let pipe = user.project().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut run = exec(&user, &["-o", "pipe"]).stdout(Stdio::null()).spawn().unwrap();
    let started = Instant::now();
    while user.model.requests().is_empty() {
        assert!(run.try_wait().unwrap().is_none(), "the run ended without a request");
        assert!(started.elapsed() < Duration::from_secs(120), "there is no request");
        std::thread::sleep(Duration::from_millis(20));
    }
    let mut reader = Command::new("cat").arg(&pipe).stdout(Stdio::piped()).spawn().unwrap();
    let status = run.wait().unwrap();
    if !status.success() {
        reader.kill().unwrap();
    }
    let read = reader.wait_with_output().unwrap();
    assert!(status.success(), "{status}");
    assert_eq!(String::from_utf8_lossy(&read.stdout), "To a pipe.");
}
