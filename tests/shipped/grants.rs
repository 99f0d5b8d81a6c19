//! Grants of sessions.

use std::path::PathBuf;
use std::process::Output;

use super::sessions::{listed, segments};
use super::user::User;

/// Creates a file, and answers again if the session is resumed.
const WRITING: &str = r#"
    [[turn]]
    [[turn.call]]
    tool = "Bash"
    arguments = { command = "echo made >made" }
    [[turn]]
    text = "Done."
    [[turn]]
    text = "Done again."
    "#;

/// Writes a grant with changes below a directory, and returns its file.
pub(super) fn grant(user: &User, name: &str, writes: &str, network: bool) -> PathBuf {
    let file = user.at(name);
    let text = format!(
        r#"{{"version": 1, "id": "{name}", "tools": ["*"], "reads": {{"roots": ["/"]}}, "writes": {{"roots": ["{writes}"]}},
            "effect": "execute", "network": {network}, "environments": ["local"]}}"#
    );
    std::fs::write(&file, text).unwrap();
    file
}

fn run(user: &User, flags: &[&str], grant: &std::path::Path) -> Output {
    user.run_command("Go").args(flags).arg("--grant").arg(grant).output().unwrap()
}

#[test]
fn a_grant_without_network_holds_commands_or_starts_nothing() {
    for flags in [&["--no-sandbox"][..], &["--network", "on"]] {
        let user = User::new(WRITING);
        let granted = grant(&user, "g.json", "/", false);
        let output = run(&user, flags, &granted);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{flags:?}: {said}");
        assert!(said.contains("commands but not the network, and no sandbox blocks it"), "{flags:?}: {said}");
        assert_eq!(user.model.requests().len(), 0, "{flags:?}");
        let with_network = grant(&user, "n.json", "/", true);
        assert!(run(&user, flags, &with_network).status.success(), "{flags:?}");
    }
    if pintle_test_conditions::BUBBLEWRAP.is_present() {
        let user = User::new(WRITING);
        let granted = grant(&user, "g.json", "/", false);
        assert!(run(&user, &[], &granted).status.success());
        assert!(user.project().join("made").exists());
    }
}

/// A flag allows more, but cannot exceed the grant.
#[test]
fn a_reached_budget_of_a_grant_is_named() {
    let call = "[[turn]]\n[[turn.call]]\ntool = \"Read\"\narguments = { file_path = \"file\" }\n";
    let user = User::new(&format!("{}[[turn]]\ntext = \"Done.\"\n", call.repeat(2)));
    let granted = grant(&user, "g.json", "/", true);
    let text = std::fs::read_to_string(&granted).unwrap();
    let text = text.replace("\"network\"", "\"budget\": { \"tool_calls\": 1 }, \"network\"");
    std::fs::write(&granted, text).unwrap();
    let output = run(&user, &["--max-calls", "9"], &granted);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{error}");
    assert!(error.contains("it is a limit of the grant, which flags cannot raise"), "{error}");
}

#[test]
fn what_goes_on_under_another_grant_can_only_narrow() {
    let user = User::new("[[turn]]\ntext = \"Done.\"\n".repeat(4).as_str());
    let narrow = grant(&user, "narrow.json", &user.project().join("src").to_string_lossy(), true);
    let narrower = grant(&user, "narrower.json", &user.project().join("src/a").to_string_lossy(), true);
    let wide = grant(&user, "wide.json", "/", true);
    assert!(run(&user, &[], &narrow).status.success());
    let listed = user.pintle(&["sessions", "list"]);
    let id = listed.split_whitespace().next().unwrap().to_owned();
    for flags in [&["--continue"][..], &["--fork", &id]] {
        let output = run(&user, flags, &wide);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{flags:?}: {said}");
        assert!(said.contains("allows more than the grant of the session: writes"), "{flags:?}: {said}");
        assert!(run(&user, flags, &narrower).status.success(), "{flags:?}");
    }
}

#[test]
fn a_fork_of_a_damaged_session_keeps_its_grant() {
    // Whether the first, second and third run have a grant. The second and third one are damaged.
    for (runs, is_refused) in [
        ([false, false, false], false),
        ([false, true, false], true),
        ([false, false, true], true),
        ([true, false, false], true),
    ] {
        let user = User::new("[[turn]]\ntext = \"Done.\"\n".repeat(4).as_str());
        let narrow = grant(&user, "narrow.json", &user.project().join("src").to_string_lossy(), true);
        let run = |flags: &[&str], has_grant: bool| {
            let mut command = user.run_command("Go");
            command.args(flags);
            if has_grant {
                command.arg("--grant").arg(&narrow);
            }
            command.output().unwrap()
        };
        let mut id = String::new();
        for (number, has_grant) in runs.into_iter().enumerate() {
            let flags = if number == 0 { vec![] } else { vec!["--resume", id.as_str()] };
            let output = run(&flags, has_grant);
            assert!(output.status.success(), "{runs:?}: {output:?}");
            id = listed(&user, "project").remove(0);
        }
        // A crash of the machine leaves zeros.
        for file in segments(&user, &id).into_iter().skip(1) {
            let mut bytes = std::fs::read(&file).unwrap();
            bytes[..300].fill(0);
            std::fs::write(&file, bytes).unwrap();
        }
        let point = format!("{id}@2");
        let output = run(&["--fork", &point], false);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        let message = format!("the damaged part of session {id} may contain a grant");
        let expected = if is_refused { Some(2) } else { Some(0) };
        assert_eq!(
            (output.status.code(), error.contains(&message)),
            (expected, is_refused),
            "{runs:?}: {error}"
        );
        let output = run(&["--fork", &point], true);
        assert!(output.status.success(), "{runs:?}: {output:?}");
    }
}

/// Connects to the address in a file, which only something with the network can do.
const CONNECT: &str = "exec 3<>/dev/tcp/127.0.0.1/$(cat ../port) && echo reached >>../reached";

/// Starts a listener whose port a file in the home has.
fn listener(user: &User) -> std::net::TcpListener {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    std::fs::write(user.at("port"), listener.local_addr().unwrap().port().to_string()).unwrap();
    listener
}

#[test]
fn hooks_have_no_network_under_a_grant_without_it() {
    if !pintle_test_conditions::BUBBLEWRAP.is_present() {
        return;
    }
    for network in [true, false] {
        let user = User::new("[[turn]]\ntext = \"Done.\"\n");
        let _listener = listener(&user);
        let home = user.at("").display().to_string();
        let hook = format!("cd {home}project && bash -c '{CONNECT}'; echo ran >>../ran");
        std::fs::create_dir_all(user.at(".config/pintle")).unwrap();
        let hooks = format!("[[SessionStart]]\ncommand = \"\"\"{hook}\"\"\"\n");
        std::fs::write(user.at(".config/pintle/hooks.toml"), hooks).unwrap();
        let output = run(&user, &[], &grant(&user, "g.json", "/", network));
        assert!(output.status.success(), "{output:?}");
        assert!(user.at("ran").exists(), "the hook writes where its user can: {output:?}");
        assert_eq!(user.at("reached").exists(), network, "{output:?}");
    }
}

#[test]
fn servers_with_network_are_left_out_under_a_grant_without_it() {
    let user = User::new("[[turn]]\ntext = \"Done.\"\n".repeat(2).as_str());
    std::fs::create_dir_all(user.at(".config/pintle")).unwrap();
    let servers = r#"{"mcpServers": {
        "inside": {"command": "true"},
        "outside": {"command": "true", "sandbox": false},
        "remote": {"url": "http://127.0.0.1:9/mcp", "effect": "read"}}}"#;
    std::fs::write(user.at(".config/pintle/mcp.json"), servers).unwrap();
    let left_out = |flags: &[&str], granted: &std::path::Path| -> Vec<String> {
        let output = run(&user, flags, granted);
        assert!(output.status.success(), "{output:?}");
        let notices = String::from_utf8(output.stderr).unwrap();
        let names = ["inside", "outside", "remote"].into_iter();
        names
            .filter(|name| notices.contains(&format!("server `{name}` is left out")))
            .map(str::to_owned)
            .collect()
    };
    let reading = |name: &str, network: bool| {
        let file = grant(&user, name, "/", network);
        let text = std::fs::read_to_string(&file).unwrap().replace("\"execute\"", "\"read\"");
        std::fs::write(&file, text).unwrap();
        file
    };
    assert_eq!(left_out(&["--network", "on"], &reading("on.json", true)), Vec::<String>::new());
    let offline = reading("off.json", false);
    assert_eq!(left_out(&["--network", "on"], &offline), ["inside", "outside", "remote"]);
    if pintle_test_conditions::BUBBLEWRAP.is_present() {
        assert_eq!(left_out(&[], &offline), ["outside", "remote"]);
    }
}

/// A grant without commands starts also with the network on.
#[test]
fn web_tools_have_no_network_under_a_grant_without_it() {
    let call = "tool = \"WebFetch\"\narguments = { url = \"http://127.0.0.1:9/\", prompt = \"x\" }\n";
    for network in [true, false] {
        let user = User::new(&format!("[[turn]]\n[[turn.call]]\n{call}[[turn]]\ntext = \"Done.\"\n"));
        let file = grant(&user, "g.json", "/", network);
        let text = std::fs::read_to_string(&file).unwrap().replace("\"execute\"", "\"read\"");
        std::fs::write(&file, text).unwrap();
        let output = run(&user, &["--network", "on"], &file);
        let result = user.request(1);
        let is_denied = result.contains("grant g.json does not allow the network");
        assert_eq!(is_denied, !network, "{result} {output:?}");
    }
}

#[test]
fn tools_are_not_served_with_network_under_a_grant_without_it() {
    for flags in [&["--no-sandbox"][..], &["--network", "on"]] {
        for network in [true, false] {
            let user = User::new("[[turn]]\ntext = \"Done.\"\n");
            let file = grant(&user, "g.json", "/", network);
            let mut command = user.command(&["mcp", "serve"]);
            let output = command.args(flags).arg("--grant").arg(&file).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            let is_refused = said.contains("commands but not the network, and no sandbox blocks it");
            assert_eq!(is_refused, !network, "{flags:?}: {said}");
            assert_eq!(output.status.code() == Some(2), !network, "{flags:?}: {output:?}");
        }
    }
}

/// The tool for commands of this model is `Bash`.
#[test]
fn a_grant_for_a_tool_of_another_model_names_that_of_this_one() {
    for (tool, is_noted) in [("shell", true), ("exec_command", true), ("Bash", false), ("sh*", false)] {
        let user = User::new("[[turn]]\ntext = \"Done.\"\n");
        let granted = grant(&user, "g.json", "/", true);
        let text = std::fs::read_to_string(&granted).unwrap();
        let tools = format!(r#""tools": ["{tool}", "Read"]"#);
        std::fs::write(&granted, text.replace(r#""tools": ["*"]"#, &tools)).unwrap();
        let output = run(&user, &[], &granted);
        let said = String::from_utf8(output.stderr).unwrap();
        let notice = format!("`tools` of the grant has `{tool}`; the tool of this session is `Bash`");
        assert_eq!(said.contains(&notice), is_noted, "{tool}: {said}");
    }
}

/// Calls a tool, waits for the user to revoke the grant, and calls it again.
const WAITING: &str = r#"
    [[turn]]
    [[turn.call]]
    tool = "Bash"
    arguments = { command = "touch started; while [ ! -e revoked ]; do sleep 0.05; done" }
    [[turn]]
    [[turn.call]]
    tool = "Bash"
    arguments = { command = "touch after" }
    [[turn]]
    text = "Done."
    "#;

#[test]
fn a_revocation_reaches_a_running_session() {
    for revocation in [&["g.json"][..], &["--before", "1"]] {
        let user = User::new(WAITING);
        let granted = grant(&user, "g.json", "/", true);
        let mut command = user.run_command("Go");
        let running = command.arg("--grant").arg(&granted);
        let running = running.stderr(std::process::Stdio::piped()).stdout(std::process::Stdio::null());
        let running = running.spawn().unwrap();
        user.wait_for_file("started");
        let mut arguments = vec!["grants", "revoke"];
        arguments.extend(revocation);
        user.pintle(&arguments);
        std::fs::write(user.project().join("revoked"), "").unwrap();
        let output = running.wait_with_output().unwrap();
        assert!(!user.project().join("after").exists(), "{revocation:?}: {output:?}");
        let result = user.request(2);
        assert!(result.contains("grant g.json was revoked"), "{revocation:?}: {result}");
        let listed = user.pintle(&["grants", "list"]);
        assert!(listed.contains("g.json") || listed.contains("below 1"), "{listed}");
        let resumed = run(&user, &["--continue"], &granted);
        assert_eq!(resumed.status.code(), Some(2), "{revocation:?}: {resumed:?}");
    }
}

/// The tool for commands of this model is `Bash`; the limit names its kind.
#[test]
fn a_limit_on_arguments_holds_for_the_tools_of_a_kind() {
    let calls = ["ls", "cat ../secret", "ls; cat ../secret"]
        .map(|line| format!("[[turn.call]]\ntool = \"Bash\"\narguments = {{ command = '''{line}''' }}\n"));
    let user = User::new(&format!("[[turn]]\n{}[[turn]]\ntext = \"Done.\"\n", calls.concat()));
    std::fs::write(user.at("secret"), "content-of-the-secret").unwrap();
    let granted = grant(&user, "g.json", "/", true);
    let text = std::fs::read_to_string(&granted).unwrap();
    let limits =
        r#""tools": ["*"], "arguments": [{"tool": "shell", "pointer": "/command", "allowed": ["ls*"]}]"#;
    std::fs::write(&granted, text.replace(r#""tools": ["*"]"#, limits)).unwrap();
    let output = run(&user, &[], &granted);
    let result = user.request(1);
    assert!(!result.contains("content-of-the-secret"), "{result} {output:?}");
    assert_eq!(result.matches("it allows only `ls*`").count(), 2, "{result}");
    assert!(!result.contains("does not allow this tool"), "{result}");
}
