//! MCP servers, and `pintle mcp serve`.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;

use serde_json::{Value, json};

use super::repository::{add_history, git};
use super::user::User;
use super::worktrees::is_confined;

const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/mcp/src/tests/server.py");

/// Looks for the tools of a server.
const SEARCHING: &str = r#"
    [[turn]]
    [[turn.call]]
    tool = "search_tools"
    arguments = { query = "echo" }
    [[turn]]
    text = "Done."
    "#;

#[test]
fn a_server_that_the_sandbox_hides_is_explained() {
    if !pintle_test_conditions::BUBBLEWRAP.is_present() {
        return;
    }
    let user = User::new(SEARCHING);
    let downloads = tempfile::tempdir_in("/tmp").unwrap();
    let server = downloads.path().join("server.py");
    std::fs::copy(SERVER, &server).unwrap();
    let server = server.display().to_string();
    user.pintle(&["mcp", "add", "test", "--", "python3", &server]);
    user.run("Find a tool");
    let reason = format!("`{server}` exists, but the sandbox hides it: move it to another directory");
    assert!(user.request(1).contains(&reason), "{}", user.request(1));
}

/// A server starts before the first command, and passes no gate.
#[test]
fn a_history_that_a_server_removes_is_restored() {
    if !is_confined() {
        return;
    }
    let user = User::new(SEARCHING);
    user.pintle(&["mcp", "add", "test", "--", "sh", "-c", "rm -rf .git/objects; touch removed"]);
    add_history(&user);
    let output = user.run_command("Find a tool").output().unwrap();
    assert!(user.project().join("removed").exists(), "{output:?}");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("removed part of the git history"), "{errors}");
    assert_eq!(git(&user, &["log", "--format=%s"]), "two\none\n", "{errors}");
}

/// Changes a script of a server, or makes another one with its name in the directory of the session, and then uses the server.
const CHANGING: &str = r#"
    [[turn]]
    [[turn.call]]
    tool = "Bash"
    arguments = { command = "mkdir -p srv; echo 'echo $K' >srv/a.sh; chmod +x srv/a.sh" }
    [[turn]]
    [[turn.call]]
    tool = "search_tools"
    arguments = { query = "anything" }
    [[turn]]
    text = "Done."
    "#;

#[test]
fn a_server_of_a_project_starts_only_as_it_was_trusted() {
    if !pintle_test_conditions::BUBBLEWRAP.is_present() {
        return;
    }
    const CHANGED: &str = "srv/a.sh has changed since the project was trusted";
    const UNKNOWN: &str = "is started by `make`, which runs files that trust does not cover";
    // It prints no message of the protocol.
    const STARTED: &str = "the first: as trusted";
    for (directory, server, expected) in [
        (".", r#""command": "sh", "args": ["srv/a.sh"]"#, CHANGED),
        (".", r#""command": "sh", "args": ["a.sh"], "cwd": "srv""#, CHANGED),
        (".", r#""command": "./a.sh", "cwd": "below/../srv""#, CHANGED),
        (".", r#""command": "env", "args": ["-C", "srv", "make", "serve"]"#, UNKNOWN),
        // Trust covers the root of the project, not the session's directory.
        ("below", r#""command": "sh", "args": ["srv/a.sh"]"#, STARTED),
        ("below", r#""command": "sh", "args": ["a.sh"], "cwd": "srv""#, STARTED),
    ] {
        let user = User::new(CHANGING);
        for name in ["srv", "below"] {
            std::fs::create_dir(user.project().join(name)).unwrap();
        }
        std::fs::write(user.project().join("srv/a.sh"), "#!/bin/sh\nread -r request\necho as trusted\n")
            .unwrap();
        let file = format!(r#"{{"mcpServers": {{"s": {{{server}, "env": {{"K": "canary"}}}}}}}}"#);
        std::fs::write(user.project().join(".mcp.json"), file).unwrap();
        let trusted = user.pintle(&["trust"]);
        assert_eq!(trusted.contains("not covered by trust: the files that `make` runs"), expected == UNKNOWN);
        let output = user.run_command("Go").current_dir(user.project().join(directory)).output().unwrap();
        assert!(output.status.success(), "{server}: {output:?}");
        let answered = user.request(2);
        assert!(answered.contains(expected) && !answered.contains("canary"), "{directory}: {server}");
    }
}

#[test]
fn a_server_is_not_added_under_a_name_that_shares_its_tools() {
    let user = User::new("[[turn]]\ntext = \"Done.\"\n");
    let add = |name: &str, more: &[&str]| {
        let mut command = user.command(&["mcp", "add", name]);
        command.args(more).args(["--", "true"]).output().unwrap()
    };
    assert!(add("my-server", &[]).status.success());
    let file = std::fs::read(user.at(".config/pintle/mcp.json")).unwrap();
    let output = add("my_server", &[]);
    let printed = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{printed}");
    assert!(printed.contains("the same names as the tools of `my-server`"), "{printed}");
    assert_eq!(std::fs::read(user.at(".config/pintle/mcp.json")).unwrap(), file);
    assert!(add("my-server", &["--replace"]).status.success());
    assert!(user.pintle(&["mcp", "list"]).contains("my-server"));
}

/// Looks for a tool of a server, and calls it.
const CALLING: &str = r#"
    [[turn]]
    [[turn.call]]
    tool = "search_tools"
    arguments = { query = "echo" }
    [[turn]]
    [[turn.call]]
    tool = "call_tool"
    arguments = { name = "mcp__test__echo", arguments = { text = "hello there" } }
    [[turn]]
    text = "Done."
    "#;

#[test]
fn a_tool_of_a_server_is_called_in_a_run() {
    if !is_confined() {
        return;
    }
    let user = User::new(CALLING);
    let server = user.project().join("server.py");
    std::fs::copy(SERVER, &server).unwrap();
    user.pintle(&["mcp", "add", "test", "--", "python3", &server.display().to_string()]);
    assert!(user.run("Call a tool").contains("Done."));
    let found = user.request(1);
    assert!(found.contains("mcp__test__echo: Does echo."), "{found}");
    let requests = user.model.requests();
    let messages = requests[2].body["messages"].as_array().unwrap();
    let answered = messages.last().unwrap().to_string();
    assert!(answered.contains("tool_result") && answered.contains("hello there"), "{answered}");
}

/// Lets a client of `pintle mcp serve` make calls, one after another, and returns the results and the standard error.
pub(super) fn served_calls(user: &User, flags: &[&str], calls: &[(&str, Value)]) -> (Vec<String>, String) {
    let mut command = user.command(&["mcp", "serve"]);
    let command = command.args(flags).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut request = |id: usize, method: &str, params: &Value| {
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        writeln!(input, "{message}").unwrap();
        loop {
            let line = lines.next().expect("an answer").unwrap();
            let answer: Value = serde_json::from_str(&line).unwrap();
            if answer["id"] != json!(id) {
                continue;
            }
            if method == "initialize" {
                let notification = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
                writeln!(input, "{notification}").unwrap();
            }
            return answer["result"].to_string();
        }
    };
    let client = json!({"name": "t", "version": "1"});
    request(
        0,
        "initialize",
        &json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}),
    );
    let numbered = calls.iter().enumerate();
    let results = numbered
        .map(|(number, (tool, arguments))| {
            request(number + 1, "tools/call", &json!({"name": tool, "arguments": arguments}))
        })
        .collect();
    drop(input);
    let output = child.wait_with_output().unwrap();
    (results, String::from_utf8(output.stderr).unwrap())
}

#[test]
fn a_client_changes_no_file_that_it_has_not_read() {
    if !pintle_test_conditions::BUBBLEWRAP.is_present() {
        return;
    }
    let user = User::new("[[turn]]\ntext = \"Done.\"\n");
    let write = || ("write_file", json!({"file_path": "a.txt", "content": "two"}));
    let read = || ("read_file", json!({"file_path": "a.txt"}));
    let text = || std::fs::read_to_string(user.project().join("a.txt")).unwrap();
    for (flags, expected) in [(&["--read-before-write"][..], "one"), (&[], "two")] {
        std::fs::write(user.project().join("a.txt"), "one").unwrap();
        let (results, _) = served_calls(&user, flags, &[write()]);
        assert_eq!(text(), expected, "{flags:?}: {results:?}");
    }
    std::fs::write(user.project().join("a.txt"), "one").unwrap();
    let (results, _) = served_calls(&user, &["--read-before-write"], &[read(), write()]);
    assert_eq!(text(), "two", "{results:?}");
}

#[test]
fn tools_are_not_served_without_a_required_hook() {
    let user = User::new("[[turn]]\ntext = \"Done.\"\n");
    std::fs::create_dir_all(user.at(".config/pintle")).unwrap();
    let declare = |more: &str| {
        let hooks = format!("[[PreToolUse]]\ncommand = \"touch ran\"\n{more}");
        std::fs::write(user.at(".config/pintle/hooks.toml"), hooks).unwrap();
    };
    declare("required = true\n");
    let output = user.command(&["mcp", "serve"]).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("is required, but hooks do not run in `pintle mcp serve`"), "{error}");
    assert!(error.contains("remove `required`") && !error.contains("another directory"), "{error}");
    declare("");
    let (_, error) = served_calls(&user, &[], &[("read_file", json!({"file_path": "a.txt"}))]);
    assert!(error.contains("hooks do not run in `pintle mcp serve`"), "{error}");
}

#[test]
fn a_server_behind_a_url_needs_the_network_and_names_the_failure_of_its_connection() {
    let user = User::new("[[turn]]\ntext = \"Done.\"\n");
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    user.pintle(&["mcp", "add", "web", &format!("http://{address}/mcp?key=secret")]);
    let refused = user.command(&["mcp", "tools", "web"]).output().unwrap();
    let error = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(2), "{error}");
    assert!(error.contains("server `web` is left out: it needs --network on"), "{error}");
    let failed = user.command(&["mcp", "tools", "web", "--network", "on"]).output().unwrap();
    let error = String::from_utf8(failed.stderr).unwrap();
    assert_eq!(failed.status.code(), Some(1), "{error}");
    let reason =
        format!("MCP server `web` cannot be reached: cannot connect to http://{address}: Connection refused");
    assert!(error.contains(&reason), "{error}");
    assert!(!error.contains("Transport") && !error.contains("secret"), "{error}");
}
