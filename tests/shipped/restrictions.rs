//! Restrictions of the user that a continued session and a project do not exceed.

use std::fs::File;
use std::net::TcpListener;

use pintle_testkit::Dialect;
use serde_json::json;

use super::acp::{Editor, session_of};
use super::server::{TestServer, session_path, token};
use super::terminal::{leave, start};
use super::user::User;
use super::worktrees::is_confined;

/// Line that a sandbox refuses.
const OUTSIDE: &str = "echo x >../outside && touch made";

/// Line that a rule names.
const TOUCH: &str = "touch made";

/// End of the notice about a value that exceeds the configuration of the user.
const LIMITED: &str = "config.toml:1, which applies instead";

/// Returns a script that runs a command line for each of its inputs.
fn inputs(line: &str, count: usize) -> String {
    let call = format!("tool = \"Bash\"\narguments = {{ command = '''{line}''' }}\n");
    format!("[[turn]]\n[[turn.call]]\n{call}[[turn]]\ntext = \"Done.\"\n").repeat(count)
}

/// Returns a line that needs the network, and the listener that it connects to.
fn connection() -> (String, TcpListener) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    (format!("bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}' && touch made"), listener)
}

/// One run of the command.
#[derive(Debug)]
struct Finished {
    /// Whether the line of the script has created the file `made`.
    made: bool,
    printed: String,
    /// The last request to the model.
    request: String,
}

fn run(user: &User, flags: &[&str]) -> Finished {
    let output = user.run_command("Go").args(flags).output().unwrap();
    let made = std::fs::remove_file(user.project().join("made")).is_ok();
    let printed = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
    let request = user.model.requests().last().map(|request| request.body.to_string()).unwrap_or_default();
    Finished { made, printed, request }
}

/// Writes a file below the home directory.
fn write(user: &User, name: &str, text: &str) {
    let file = user.at(name);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, text).unwrap();
}

/// Change of a file between the start of a session and its continuation.
struct Change<'a> {
    flags: &'a [&'a str],
    line: &'a str,
    /// File below the configuration directory.
    file: &'a str,
    before: &'a str,
    after: &'a str,
    /// Texts of the notices, or of the result for the model. Empty if the line runs again.
    expected: &'a [&'a str],
}

impl<'a> Change<'a> {
    /// Returns the change of a file that is empty before.
    fn new(
        flags: &'a [&'a str],
        line: &'a str,
        file: &'a str,
        after: &'a str,
        expected: &'a [&'a str],
    ) -> Self {
        Self { flags, line, file, before: "", after, expected }
    }
}

#[test]
fn a_continued_session_has_each_restriction_that_was_added() {
    if !is_confined() {
        return;
    }
    let (connect, _listener) = connection();
    for Change { flags, line, file, before, after, expected } in [
        Change::new(&[], TOUCH, "config.toml", "", &[]),
        Change::new(
            &[],
            TOUCH,
            "rules.toml",
            "deny = [\"shell(touch *)\"]",
            &["the rule `shell(touch *)` of ", "rules.toml"],
        ),
        Change::new(&[], TOUCH, "config.toml", "max_turns = 2", &["stopped: turn limit"]),
        Change::new(&[], TOUCH, "budget.toml", "[session]\ncalls = 1\n", &["stopped: budget exhausted"]),
        Change::new(
            &["--network", "on"],
            &connect,
            "config.toml",
            "network = \"off\"",
            &["kept session: `network` allows more than ", LIMITED],
        ),
        Change::new(
            &["--no-sandbox"],
            OUTSIDE,
            "config.toml",
            "sandbox = \"auto\"",
            &["kept session: `sandbox` allows more than ", LIMITED],
        ),
        // A permission that was removed does not come back.
        Change {
            flags: &["--mode", "ask"],
            line: TOUCH,
            file: "rules.toml",
            before: "allow = [\"shell(touch *)\"]",
            after: "",
            expected: &["it needs approval, but no terminal is available"],
        },
    ] {
        let user = User::new(&inputs(line, 2));
        let path = format!(".config/pintle/{file}");
        write(&user, &path, before);
        let started = run(&user, flags);
        assert!(started.made, "{flags:?} {file}: {started:?}");
        write(&user, &path, after);
        let continued = run(&user, &["--continue"]);
        assert_eq!(continued.made, expected.is_empty(), "{flags:?} {file} {after}: {continued:?}");
        for text in expected {
            let is_there = continued.printed.contains(text) || continued.request.contains(text);
            assert!(is_there, "{text}: {continued:?}");
        }
        assert_eq!(continued.printed.contains(LIMITED), expected.contains(&LIMITED), "{continued:?}");
    }
}

/// The mode of the user before and after the start of a session, its flags, the flags of its continuation, and whether the
/// line runs in it and a notice names the mode that applies.
#[test]
fn a_continued_session_has_its_mode_until_the_configuration_allows_less() {
    if !is_confined() {
        return;
    }
    let (auto, ask) = ("mode = \"auto\"", "mode = \"ask\"");
    let cases = [
        ("", ask, "", "--continue", false, true),
        (auto, ask, "", "--continue", false, true),
        (auto, auto, "", "--continue", true, false),
        // It was started with a mode that exceeds the configuration.
        (ask, ask, "--mode auto", "--continue", true, false),
        ("", ask, "", "--continue --mode auto", true, false),
        ("", "", "", "--continue --mode ask", false, false),
    ];
    for (before, after, flags, more, made, is_limited) in cases {
        let words = |text: &'static str| text.split_whitespace().collect::<Vec<_>>();
        let user = User::new(&inputs(TOUCH, 2));
        write(&user, ".config/pintle/config.toml", before);
        assert!(run(&user, &words(flags)).made, "{before} {flags}");
        write(&user, ".config/pintle/config.toml", after);
        let continued = run(&user, &words(more));
        assert_eq!(continued.made, made, "{before} {after} {more}: {continued:?}");
        let notice = "kept session: `mode` allows more than ";
        let has_notice = continued.printed.contains(notice) && continued.printed.contains(LIMITED);
        assert_eq!(has_notice, is_limited, "{before} {after} {more}: {continued:?}");
    }
}

/// A mode that the user chose in a session applies, although the configuration allows less since.
#[test]
fn a_mode_that_was_chosen_in_a_session_stays() {
    if !is_confined() {
        return;
    }
    let user = User::new(&inputs(TOUCH, 3));
    assert!(!run(&user, &["--mode", "ask"]).made);
    let mut conversation = start(&user, &["--continue"]);
    conversation.type_keys("/mode auto\r");
    conversation.wait_for_text("mode: auto");
    leave(conversation);
    write(&user, ".config/pintle/config.toml", "mode = \"ask\"");
    let continued = run(&user, &["--continue"]);
    assert!(continued.made && !continued.printed.contains("`mode` allows more"), "{continued:?}");
}

#[test]
fn a_continued_session_has_nothing_of_a_project_that_is_no_longer_trusted() {
    if !is_confined() {
        return;
    }
    let (connect, _listener) = connection();
    let cases: [(&str, &str, &[&str], &str, &str); 2] = [
        (
            "rules.toml",
            "allow = [\"shell(touch *)\"]",
            &["--mode", "ask"],
            TOUCH,
            "leaves out its rules that allow something (shell(touch *))",
        ),
        ("config.toml", "network = \"on\"", &[], &connect, "leaves out `network` of .pintle/config.toml"),
    ];
    for (file, text, flags, line, left_out) in cases {
        let user = User::new(&inputs(line, 3));
        write(&user, &format!("project/.pintle/{file}"), text);
        user.pintle(&["trust"]);
        let trusted = run(&user, flags);
        assert!(trusted.made && !trusted.printed.contains("not trusted"), "{file}: {trusted:?}");
        user.pintle(&["trust", "--revoke"]);
        let revoked = run(&user, &["--continue"]);
        assert!(!revoked.made && revoked.printed.contains(left_out), "{file}: {revoked:?}");
        user.pintle(&["trust"]);
        let trusted = run(&user, &["--continue"]);
        assert!(trusted.made, "{file}: {trusted:?}");
    }
}

#[test]
fn a_trusted_project_gets_less_than_its_user_allows_and_never_more() {
    if !is_confined() {
        return;
    }
    let (connect, _listener) = connection();
    for (key, wide, narrow, line) in [
        ("mode", "auto", "ask", TOUCH),
        ("network", "on", "off", connect.as_str()),
        ("sandbox", "off", "auto", OUTSIDE),
    ] {
        let user = User::new(&inputs(line, 1));
        for (of_user, of_project, made, is_bounded) in
            [(wide, wide, true, false), (narrow, wide, false, true), (wide, narrow, false, false)]
        {
            write(&user, ".config/pintle/config.toml", &format!("{key} = \"{of_user}\""));
            write(&user, "project/.pintle/config.toml", &format!("{key} = \"{of_project}\""));
            user.pintle(&["trust"]);
            let finished = run(&user, &[]);
            assert_eq!(finished.made, made, "{key} {of_user} {of_project}: {finished:?}");
            let notice = format!(".pintle/config.toml:1: `{key}` allows more than ");
            assert_eq!(finished.printed.contains(&notice), is_bounded, "{key}: {finished:?}");
        }
    }
}

#[test]
fn each_surface_reports_a_value_that_does_not_apply_on_standard_error() {
    if !is_confined() {
        return;
    }
    let user = User::new("[[turn]]\ntext = \"Done.\"\n");
    write(&user, ".config/pintle/config.toml", "max_turns = 9");
    write(&user, "project/.pintle/config.toml", "max_turns = 0");
    user.pintle(&["trust"]);
    let url = user.model.base_url(Dialect::AnthropicMessages);
    let log = |name: &str| File::create(user.at(name)).unwrap();

    let mut exec = user.command(&["exec", "--full-auto", "Go"]);
    exec.env("PINTLE_PROVIDER", "anthropic").env("ANTHROPIC_BASE_URL", &url).stderr(log("exec"));
    assert!(exec.status().unwrap().success());

    let mut agent = user.command(&["acp", "--provider", "anthropic", "--base-url", &url]);
    let mut editor = Editor::start(agent.stderr(log("acp")), &json!({}));
    session_of(&editor.open("session/new", &user.project(), None));
    editor.end();

    let secret = token(&user, "ann", &["--scope", "read,run"]);
    let server = TestServer::start_with_log(&user, &[], log("serve").into());
    let (status, body) = server.request(&secret, "POST", "/v1/sessions", &json!({}));
    assert_eq!(status, 201, "{body}");

    for surface in ["exec", "acp", "serve"] {
        let printed = std::fs::read_to_string(user.at(surface)).unwrap();
        let notice = ".pintle/config.toml:1: `max_turns` allows more than ";
        assert!(printed.contains(notice) && printed.contains(LIMITED), "{surface}: {printed}");
    }
}

#[test]
fn a_fork_whose_mode_the_configuration_limits_needs_no_approval() {
    let user = User::new("[[turn]]\ntext = \"Done.\"\n");
    let runner = token(&user, "ann", &["--scope", "read,run"]);
    let approver = token(&user, "eve", &["--scope", "read,run,approve"]);
    let create = |served: &TestServer, mode: &str| {
        let (status, body) = served.request(&approver, "POST", "/v1/sessions", &json!({"mode": mode}));
        assert_eq!(status, 201, "{body}");
        session_path(&body)
    };
    let fork = |served: &TestServer, path: &str| {
        served.request(&runner, "POST", &format!("{path}/fork"), &json!({"turns": 0}))
    };
    let served = TestServer::start(&user, &[]);
    let earlier = create(&served, "edit");
    drop(served);
    write(&user, ".config/pintle/config.toml", "mode = \"ask\"\n");
    let served = TestServer::start(&user, &[]);
    let (status, body) = fork(&served, &earlier);
    assert_eq!(status, 201, "{body}");
    let (_, body) = served.request(&runner, "GET", &session_path(&body), &json!({}));
    assert!(body.contains("\"mode\":\"ask\""), "{body}");
    // This mode exceeds the present configuration by a decision, so the configuration does not limit it.
    let wider = create(&served, "edit");
    let (status, body) = fork(&served, &wider);
    assert!(status == 403 && body.contains("the fork inherits mode edit"), "{status} {body}");
}

#[test]
fn a_limit_on_cost_without_a_price_starts_no_session() {
    let user = User::new("[[turn]]\ntext = \"Done.\"\n");
    let run = |flags: &[&str]| user.run_command("Go").args(flags).output().unwrap();
    let refused = run(&["--model", "claude-of-tomorrow", "--max-cost", "1"]);
    let error = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{error}");
    assert!(error.contains("the price of `claude-of-tomorrow` is unknown"), "{error}");
    assert!(error.contains("limit tokens instead"), "{error}");
    assert!(user.model.requests().is_empty());
    assert_eq!(user.pintle(&["sessions", "list", "--all"]), "");
    let limited = run(&["--model", "claude-of-tomorrow", "--max-tokens", "1000000"]);
    assert!(limited.status.success(), "{limited:?}");
}
