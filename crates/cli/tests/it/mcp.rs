//! Servers of tools: declared, trusted, started on first use, and ended in every way a run can end.

mod chat;
mod login;

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use pintle_testkit::Dialect;
use serde_json::{Value, json};

use crate::harness::{CommandOutput, Harness, pintle, run};

/// A server with faults, in Python.
const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../mcp/src/tests/server.py");

/// Searches for a tool of the server, calls it, and ends.
const SEARCHING: &str = r#"
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

/// Calls a tool of the server by its name.
const CALLING: &str = r#"
    [[turn]]
    [[turn.call]]
    tool = "mcp__test__echo"
    arguments = { text = "hello there" }
    [[turn]]
    text = "Done."
    "#;

/// Copies the server into the directory of the harness. The sandbox has a temporary directory of its own, which hides a
/// checkout in the system's.
pub(crate) fn server_in(harness: &Harness) -> String {
    let copy = harness.path("server.py");
    std::fs::copy(SERVER, &copy).unwrap();
    copy.display().to_string()
}

const IDLE: &str = "[[turn]]\ntext = \"Nothing to do.\"\n";

/// Configuration and state of a user.
struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn log(&self) -> PathBuf {
        self.0.path().join("log")
    }

    fn of(&self, command: &mut Command) -> CommandOutput {
        run(self.apply(command))
    }

    fn apply<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command
            .env("PINTLE_CONFIG_DIR", self.0.path().join("config"))
            .env("PINTLE_STATE_DIR", self.0.path().join("state"))
    }

    /// Runs `pintle mcp` in the directory of the harness.
    fn mcp(&self, harness: &Harness, arguments: &[&str]) -> CommandOutput {
        let mut command = pintle(&["mcp"]);
        self.of(command.args(arguments).current_dir(harness.path("")))
    }

    /// Declares the server `test`, whose starts are logged in the directory of the harness.
    fn declare(&self, harness: &Harness, more: &[&str]) {
        let log = format!("SERVER_LOG={}", harness.path("log").display());
        let mut arguments = vec!["add", "test", "--env", &log];
        arguments.extend_from_slice(more);
        let server = server_in(harness);
        arguments.extend(["--", "python3", &server]);
        let output = self.mcp(harness, &arguments);
        assert_eq!(output.code, Some(0), "{output:?}");
    }

    fn run(&self, turns: &str, declares: impl Fn(&Harness), flags: &[&str]) -> (CommandOutput, Harness) {
        let harness = Harness::new(Dialect::AnthropicMessages, turns);
        declares(&harness);
        let mut command = harness.command("run", &["Go"]);
        let output = self.of(command.args(flags).current_dir(harness.path("")));
        (output, harness)
    }
}

fn tools_of(request: &Value) -> Vec<&str> {
    request["tools"].as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str()).collect()
}

#[test]
fn a_server_starts_when_it_is_used_and_its_tools_are_known_from_then_on() {
    let home = Home::new();
    let (output, harness) = home.run(SEARCHING, |harness| home.declare(harness, &[]), &[]);
    assert_eq!(output.code, Some(0), "{output:?}");
    let requests = harness.server.requests();
    let names = tools_of(&requests[0].body);
    assert!(names.contains(&"search_tools") && names.contains(&"call_tool"), "{names:?}");
    let found = requests[1].body.to_string();
    assert!(found.contains("mcp__test__echo: Does echo."), "{found}");
    assert!(requests[2].body.to_string().contains("hello there"), "{}", requests[2].body);
    assert!(harness.read("log").contains("started"));

    // In another place it is another server. There, it is asked by hand.
    let harness = Harness::new(Dialect::AnthropicMessages, CALLING);
    home.declare(&harness, &["--replace"]);
    let listed = home.mcp(&harness, &["list"]);
    assert!(
        listed.stdout.contains("test  python3 ") && listed.stdout.contains("not started yet"),
        "{listed:?}"
    );
    let tools = home.mcp(&harness, &["tools", "test"]);
    assert!(tools.stdout.contains("test  8 tools\n    ask\n"), "{tools:?}");
    let listed = home.mcp(&harness, &["list", "--output", "json"]);
    let rows: Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(rows["servers"][0]["tools"], 8, "{rows}");
    let output = home.of(harness.command("run", &["Go"]).current_dir(harness.path("")));
    assert_eq!(output.code, Some(0), "{output:?}");
    let requests = harness.server.requests();
    let names = tools_of(&requests[0].body);
    assert!(names.contains(&"mcp__test__echo") && !names.contains(&"search_tools"), "{names:?}");
    assert!(requests[1].body.to_string().contains("hello there"), "{}", requests[1].body);
}

#[test]
fn a_declared_server_that_is_not_used_is_not_started() {
    let home = Home::new();
    for flags in [&[][..], &["--no-mcp"]] {
        let (output, harness) = home.run(IDLE, |harness| home.declare(harness, &["--replace"]), flags);
        assert_eq!(output.code, Some(0), "{output:?}");
        assert!(!harness.path("log").exists());
        let names = harness.server.requests()[0].body.clone();
        assert_eq!(tools_of(&names).contains(&"search_tools"), flags.is_empty());
    }
}

#[test]
fn declarations_are_checked_shown_and_removed() {
    let home = Home::new();
    let harness = Harness::new(Dialect::AnthropicMessages, IDLE);
    let mcp = |arguments: &[&str]| home.mcp(&harness, arguments);
    let header = "Authorization: Bearer ${TOKEN}";
    let output =
        mcp(&["add", "web", "https://example.com/mcp?key=s3cret", "-H", header, "--deny", "write_*"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    let listed = mcp(&["list"]);
    // The variable is not set here.
    assert!(
        listed.stdout.contains("left out: ") && listed.stdout.contains("`TOKEN` is not set"),
        "{listed:?}"
    );
    let mut command = pintle(&["mcp", "list"]);
    let listed = home.of(command.env("TOKEN", "t0ken").current_dir(harness.path("")));
    assert!(listed.stdout.contains("web  https://example.com/mcp  (not started yet"), "{listed:?}");
    assert!(!listed.stdout.contains("s3cret") && !listed.stdout.contains("t0ken"), "{listed:?}");

    for (arguments, problem) in [
        (&["add", "web", "https://example.com"][..], "is already declared"),
        (&["add", "a__b", "https://example.com"], "invalid server name"),
        (&["add", "x", "ftp://example.com"], "invalid URL of a server"),
        (&["add", "x"], "required arguments were not provided"),
        (&["add", "x", "--env", "A", "--", "true"], "expected NAME=VALUE"),
        (&["add", "x", "--effect", "all", "--", "true"], "expected read, write, network or execute"),
        (&["add", "x", "--allow", "[", "--", "true"], "invalid pattern"),
        (&["remove", "x"], "declares no server `x`"),
        (&["tools", "x"], "no server `x` is declared"),
    ] {
        let output = mcp(arguments);
        assert_eq!(output.code, Some(2), "{arguments:?}: {output:?}");
        assert!(output.stderr.contains(problem), "{arguments:?}: {output:?}");
    }
    assert_eq!(mcp(&["remove", "web"]).code, Some(0));
    assert!(mcp(&["list"]).stdout.contains("no servers are declared"));
    let output = mcp(&["add", "gone", "--", "no-such-program"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    let output = mcp(&["tools"]);
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(output.stderr.contains("MCP server `gone` could not be started"), "{output:?}");
    assert!(output.stderr.to_lowercase().contains("no such file or directory"), "{output:?}");
}

#[test]
fn servers_of_a_project_need_trust() {
    let home = Home::new();
    let declares = |harness: &Harness| {
        server_in(harness);
        let servers = json!({"mcpServers": {"test": {"command": "python3", "args": ["server.py"]}}});
        std::fs::write(harness.path(".mcp.json"), servers.to_string()).unwrap();
    };
    let names_of = |harness: &Harness| {
        let requests = harness.server.requests();
        tools_of(&requests[0].body).contains(&"search_tools")
    };
    let (output, harness) = home.run(IDLE, declares, &[]);
    assert!(!names_of(&harness));
    assert!(output.stderr.contains("leaves out its servers (test (python3 server.py))"), "{output:?}");
    let listed = home.mcp(&harness, &["list"]);
    let left_out = "left out: server `test` (python3 server.py): the project is not trusted";
    assert!(listed.stdout.contains(left_out) && !listed.stdout.contains("no servers"), "{listed:?}");
    let tools = home.mcp(&harness, &["tools", "test"]);
    assert!(tools.code == Some(2) && tools.stderr.contains("server `test` (python3 server.py)"), "{tools:?}");

    let trusting = |harness: &Harness| {
        declares(harness);
        let mut trust = pintle(&["trust"]);
        let trusted = home.of(trust.current_dir(harness.path("")));
        assert_eq!(trusted.code, Some(0), "{trusted:?}");
    };
    let (output, harness) = home.run(SEARCHING, trusting, &[]);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(names_of(&harness));
    assert!(harness.server.requests()[2].body.to_string().contains("hello there"));

    // Its program has changed.
    let (output, harness) = home.run(
        IDLE,
        |harness| {
            trusting(harness);
            std::fs::write(harness.path("server.py"), "import os\n").unwrap();
        },
        &[],
    );
    assert!(!names_of(&harness));
    assert!(output.stderr.contains("is no longer trusted"), "{output:?}");
}

#[test]
fn calls_of_servers_pass_rules_and_modes() {
    let home = Home::new();
    let declares = |harness: &Harness| {
        home.declare(harness, &["--replace"]);
        assert_eq!(home.mcp(harness, &["tools"]).code, Some(0));
    };
    for (flags, code, result) in [
        (&["--mode", "edit"][..], 5, "it needs approval"),
        (&["--mode", "edit", "--allow", "mcp__test__*"], 0, "hello there"),
        (&["--mode", "plan"], 0, "mode plan only reads"),
        (&["--deny", "mcp__test__echo"], 0, "the rule `mcp__test__echo`"),
    ] {
        let (output, harness) = home.run(CALLING, declares, flags);
        assert_eq!(output.code, Some(code), "{flags:?}: {output:?}");
        let answered = harness.server.requests()[1].body["messages"].to_string();
        assert!(answered.contains(result), "{flags:?}: {answered}");
    }
}

#[test]
fn servers_behind_a_url_need_the_network_and_files_of_the_command_line_count() {
    let home = Home::new();
    let file = home.0.path().join("servers.json");
    let servers = json!({"mcpServers": {"web": {"url": "http://127.0.0.1:9/mcp"}}});
    std::fs::write(&file, servers.to_string()).unwrap();
    let file = file.to_str().unwrap();
    let (output, harness) = home.run(IDLE, |_| {}, &["--mcp-config", file]);
    assert!(output.stderr.contains("server `web` is left out: it needs --network on"), "{output:?}");
    assert!(!tools_of(&harness.server.requests()[0].body).contains(&"search_tools"));
    let (output, harness) = home.run(SEARCHING, |_| {}, &["--mcp-config", file, "--network", "on"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    let requests = harness.server.requests();
    let answered = requests[1].body["messages"].to_string();
    let reason = "Not searched: MCP server `web` cannot be reached: cannot connect to http://127.0.0.1:9: ";
    assert!(answered.contains(reason) && !answered.contains("Transport"), "{answered}");
    std::fs::write(file, "{}").unwrap();
    let (output, _) = home.run(IDLE, |_| {}, &["--mcp-config", file]);
    assert_eq!(output.code, Some(2), "{output:?}");
    assert!(output.stderr.contains("expected an object `mcpServers`"), "{output:?}");
}

/// A server that runs outside of the sandbox does so only because the user's own file says it.
#[test]
fn a_server_may_run_outside_of_the_sandbox_if_the_user_says_so() {
    if !pintle_test_conditions::BUBBLEWRAP.is_present() {
        return;
    }
    let home = Home::new();
    for (flags, is_outside) in [(&["--replace"][..], false), (&["--replace", "--outside-sandbox"], true)] {
        let outside = home.log();
        let _ = std::fs::remove_file(&outside);
        let log = format!("SERVER_LOG={}", outside.display());
        let declares = |harness: &Harness| {
            let mut arguments = vec!["add", "test", "--env", &log];
            arguments.extend_from_slice(flags);
            let server = server_in(harness);
            arguments.extend(["--", "python3", &server]);
            let output = home.mcp(harness, &arguments);
            assert_eq!(output.code, Some(0), "{output:?}");
        };
        let (output, _harness) = home.run(SEARCHING, declares, &["--sandbox", "full"]);
        assert_eq!(output.code, Some(0), "{output:?}");
        assert_eq!(outside.exists(), is_outside, "{flags:?}");
    }
}

/// Five servers, each behind a wrapper and with a child that has a session of its own.
#[test]
fn nothing_is_left_of_servers_when_the_run_is_killed() {
    let home = Home::new();
    let names = ["one", "two", "three", "four", "five"];
    let mut turns = String::from(
        "[[turn]]\n[[turn.call]]\ntool = \"search_tools\"\narguments = { query = \"pid\" }\n[[turn]]\n",
    );
    for name in names {
        turns.push_str(&format!(
            "[[turn.call]]\ntool = \"call_tool\"\narguments = {{ name = \"mcp__{name}__pid\" }}\n"
        ));
    }
    turns.push_str(
        "[[turn]]\n[[turn.call]]\ntool = \"call_tool\"\narguments = { name = \"mcp__one__wait\" }\n",
    );
    let harness = Harness::new(Dialect::AnthropicMessages, &turns);
    let line = format!("python3 '{SERVER}' stays; true");
    for name in names {
        let log = format!("SERVER_LOG={}", harness.path("log").display());
        let output = home.mcp(&harness, &["add", name, "--env", &log, "--", "sh", "-c", &line]);
        assert_eq!(output.code, Some(0), "{output:?}");
    }
    // Without a namespace of processes that ends with the sandbox.
    let mut command = harness.command("run", &["--no-sandbox", "Go"]);
    let mut child = home.apply(command.current_dir(harness.path(""))).stderr(Stdio::null()).spawn().unwrap();
    let waiting = || harness.path("log").exists() && harness.read("log").contains("waiting");
    wait(waiting, "the last call");
    let requests = harness.server.requests();
    let answers = requests.last().unwrap().body["messages"].to_string();
    let pids: Vec<u32> = answers
        .split(|c: char| !(c.is_ascii_digit() || c == ' '))
        .filter_map(|text| text.trim().split_once(' '))
        .filter_map(|(one, other)| Some([one.parse().ok()?, other.parse().ok()?]))
        .flatten()
        .collect();
    assert_eq!(pids.len(), 10, "{answers}");
    assert!(pids.iter().all(|pid| is_alive(*pid)), "{pids:?}");
    child.kill().unwrap();
    child.wait().unwrap();
    wait(|| pids.iter().all(|pid| !is_alive(*pid)), "the end of the servers");
}

fn is_alive(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // A zombie has ended.
    status.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

fn wait(mut until: impl FnMut() -> bool, what: &str) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !until() {
        assert!(Instant::now() < deadline, "no sign of {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Client of `pintle mcp serve`.
struct Client {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
    number: u64,
}

impl Client {
    fn start(home: &Home, harness: &Harness, flags: &[&str]) -> Self {
        let mut command = pintle(&["mcp", "serve", "--dir"]);
        command.arg(harness.directory.path()).args(flags);
        let mut child =
            home.apply(&mut command).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut client = Self { child, output, number: 0 };
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        let answer = client.request("initialize", &params);
        assert_eq!(answer.pointer("/result/serverInfo/name"), Some(&json!("pintle")), "{answer}");
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    fn send(&mut self, message: &Value) {
        let stdin = self.child.stdin.as_mut().unwrap();
        writeln!(stdin, "{message}").unwrap();
    }

    fn request(&mut self, method: &str, params: &Value) -> Value {
        self.number += 1;
        let number = self.number;
        self.send(&json!({"jsonrpc": "2.0", "id": number, "method": method, "params": params}));
        loop {
            let mut line = String::new();
            assert_ne!(self.output.read_line(&mut line).unwrap(), 0, "the server has ended");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message.get("id") == Some(&json!(number)) {
                return message;
            }
        }
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> (bool, String) {
        let answer = self.request("tools/call", &json!({"name": tool, "arguments": arguments}));
        let text = answer.pointer("/result/content").map(Value::to_string).unwrap_or_default();
        (answer.pointer("/result/isError") == Some(&json!(true)), text)
    }

    fn end(mut self) {
        drop(self.child.stdin.take());
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
    }
}

#[test]
fn a_client_is_served_our_tools_in_the_sandbox() {
    let home = Home::new();
    let harness = Harness::new(Dialect::AnthropicMessages, IDLE);
    std::fs::write(harness.path("a.txt"), "one\ntwo\n").unwrap();
    let outside = home.0.path().join("outside");
    let mut client = Client::start(&home, &harness, &[]);
    let answer = client.request("tools/list", &json!({}));
    let names: Vec<&str> = answer["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|tool| tool["name"].as_str())
        .collect();
    for name in ["read_file", "apply_patch", "shell", "grep", "glob"] {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    let (failed, text) = client.call("grep", &json!({"pattern": "tw.", "path": "."}));
    assert!(!failed && text.contains("a.txt"), "{text}");
    let patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-two\n+three\n*** End Patch\n";
    let (failed, text) = client.call("apply_patch", &json!({"patch": patch}));
    assert!(!failed, "{text}");
    assert_eq!(harness.read("a.txt"), "one\nthree\n");
    let line = format!("cat a.txt; echo x >{}", outside.display());
    let (_, text) = client.call("shell", &json!({"command": line}));
    assert!(text.contains("three"), "{text}");
    assert!(!outside.exists());
    let unknown = client.request("tools/call", &json!({"name": "fly", "arguments": {}}));
    assert!(unknown["error"]["message"].as_str().unwrap().contains("fly"), "{unknown}");
    client.end();
}

#[test]
fn a_served_client_is_held_to_mode_rules_and_grant() {
    let home = Home::new();
    let harness = Harness::new(Dialect::AnthropicMessages, IDLE);
    std::fs::write(harness.path("a.txt"), "one\n").unwrap();
    let write = json!({"file_path": "made", "content": "x"});
    for (flags, reason) in [
        (&["--mode", "plan"][..], "no files are changed in mode plan"),
        (&["--mode", "ask"], "it changes files, and mode ask asks about that"),
        (&["--deny", "@write(made)"], "the rule"),
    ] {
        let mut client = Client::start(&home, &harness, flags);
        let (failed, text) = client.call("write_file", &write);
        assert!(failed && text.contains(reason), "{flags:?}: {text}");
        let (failed, text) = client.call("read_file", &json!({"file_path": "a.txt"}));
        assert!(!failed && text.contains("one"), "{flags:?}: {text}");
        client.end();
        assert!(!harness.path("made").exists(), "{flags:?}");
    }
    let grant = home.0.path().join("grant.json");
    let mut form = json!({
        "version": 1, "id": "g", "tools": ["read_file", "write_file"], "reads": {"roots": ["/"]}, "writes": {"roots": []},
        "effect": "read", "network": false, "environments": ["local"],
    });
    std::fs::write(&grant, form.to_string()).unwrap();
    let mut client = Client::start(&home, &harness, &["--grant", grant.to_str().unwrap()]);
    let (failed, text) = client.call("write_file", &write);
    assert!(failed && text.contains("grant g"), "{text}");
    client.end();
    form["budget"] = json!({"tool_calls": 5});
    std::fs::write(&grant, form.to_string()).unwrap();
    let output = home.mcp(&harness, &["serve", "--grant", grant.to_str().unwrap()]);
    assert_eq!(output.code, Some(2), "{output:?}");
    assert!(output.stderr.contains("a grant with a budget is not supported"), "{output:?}");
}
