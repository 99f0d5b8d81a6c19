//! The surface of Claude Code's `stream-json`, as its SDK drives it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdout, Command, Stdio};

use pintle_testkit::Dialect;
use serde_json::{Value, json};

use crate::harness::{CommandOutput, Harness, pintle, run, run_with_input};

const STREAM: [&str; 4] = ["--output-format", "stream-json", "--verbose", "--input-format=stream-json"];

const TURNS: &str = r#"
    [[turn]]
    text = "I write it."
    [[turn.call]]
    tool = "shell"
    arguments = { command = "echo made >made" }
    [[turn]]
    text = "It is written."
    "#;

/// Program that drives the command.
struct Host {
    child: Child,
    output: BufReader<ChildStdout>,
    /// Lines so far.
    lines: Vec<Value>,
    number: u64,
}

fn command(harness: &Harness, flags: &[&str]) -> Command {
    let mut command = pintle(&STREAM);
    command.args(flags).current_dir(harness.path(""));
    command.env("ANTHROPIC_API_KEY", crate::harness::KEY);
    command.env("ANTHROPIC_BASE_URL", harness.server.base_url(harness.dialect));
    command.env("PINTLE_PROVIDER", "anthropic").env("PINTLE_TOOLSET", "spec");
    command.env("PINTLE_STATE_DIR", harness.path(".state"));
    command
}

fn said(text: &str) -> Value {
    json!({"type": "user", "message": {"role": "user", "content": text}, "parent_tool_use_id": null, "session_id": ""})
}

impl Host {
    fn start(harness: &Harness, flags: &[&str]) -> Self {
        Self::spawn(&mut command(harness, flags))
    }

    fn spawn(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, output, lines: Vec::new(), number: 0 }
    }

    fn send(&mut self, line: &Value) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    /// Reads lines up to one that `is_wanted`.
    fn wait(&mut self, is_wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let mut line = String::new();
            assert_ne!(self.output.read_line(&mut line).unwrap(), 0, "the output ended: {:?}", self.lines);
            let line: Value = serde_json::from_str(&line).unwrap();
            self.lines.push(line.clone());
            if is_wanted(&line) {
                return line;
            }
        }
    }

    fn request(&mut self, request: &Value) -> Value {
        self.number += 1;
        let id = format!("r{}", self.number);
        self.send(&json!({"type": "control_request", "request_id": id, "request": request}));
        self.wait(|line| line.pointer("/response/request_id") == Some(&json!(id)))
    }

    fn asked(&mut self, subtype: &str) -> Value {
        self.wait(|line| line.pointer("/request/subtype") == Some(&json!(subtype)))
    }

    fn answer(&mut self, request: &Value, response: &Value) {
        let id = &request["request_id"];
        let response = json!({"subtype": "success", "request_id": id, "response": response});
        self.send(&json!({"type": "control_response", "response": response}));
    }

    fn result(&mut self) -> Value {
        self.wait(|line| line["type"] == "result")
    }

    /// Closes the input, and returns the exit code.
    fn end(mut self) -> Option<i32> {
        drop(self.child.stdin.take());
        self.child.wait().unwrap().code()
    }
}

fn lines(output: &CommandOutput) -> Vec<Value> {
    output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_turn_is_told_in_order_and_the_session_continues_elsewhere() {
    let more = "[[turn]]\ntext = \"Resumed.\"\n[[turn]]\ntext = \"In the terminal.\"\n";
    let harness = Harness::new(Dialect::AnthropicMessages, &format!("{TURNS}{more}"));
    let input = format!("not JSON\n{}\n", said("Write it"));
    let output = run_with_input(&mut command(&harness, &["--allowedTools", "Bash"]), &input);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(output.stderr.contains("a line of the input is skipped"), "{output:?}");
    let told = lines(&output);
    let types: Vec<&str> = told.iter().filter_map(|line| line["type"].as_str()).collect();
    assert_eq!(types, ["system", "assistant", "assistant", "user", "assistant", "result"], "{output:?}");
    assert_eq!((&told[0]["subtype"], &told[0]["permissionMode"]), (&json!("init"), &json!("default")));
    let end = told.last().unwrap();
    assert_eq!((&end["subtype"], &end["result"]), (&json!("success"), &json!("It is written.")), "{end}");
    assert_eq!(harness.read("made"), "made\n");

    let id = end["session_id"].as_str().unwrap().to_owned();
    let output =
        run_with_input(&mut command(&harness, &["--resume", &id]), &format!("{}\n", said("And now?")));
    let told = lines(&output);
    let end = told.last().unwrap();
    assert_eq!((end["session_id"].as_str(), &end["result"]), (Some(id.as_str()), &json!("Resumed.")));
    let mut terminal = pintle(&["run", "--resume", &id, "Here?"]);
    terminal.env("ANTHROPIC_API_KEY", crate::harness::KEY).env("PINTLE_STATE_DIR", harness.path(".state"));
    let output = run(&mut terminal);
    assert!(output.stdout.contains("In the terminal."), "{output:?}");
}

#[test]
fn the_host_decides_on_calls_and_can_change_them() {
    let harness = Harness::new(Dialect::AnthropicMessages, TURNS);
    let mut host = Host::start(&harness, &["--permission-prompt-tool", "stdio"]);
    let answer = host.request(&json!({"subtype": "initialize"}));
    assert_eq!(answer["response"]["subtype"], "success", "{answer}");
    host.send(&said("Write it"));
    let asked = host.asked("can_use_tool");
    assert_eq!(asked["request"]["tool_name"], "Bash", "{asked}");
    let changed = json!({"behavior": "allow", "updatedInput": {"command": "echo changed >changed"}});
    host.answer(&asked, &changed);
    let end = host.wait(|line| line["type"] == "result" || line["request"]["subtype"] == "can_use_tool");
    // The changed call is a new one, which may be asked about again.
    if end["type"] != "result" {
        assert_eq!(end["request"]["input"]["command"], "echo changed >changed", "{end}");
        host.answer(&end, &json!({"behavior": "allow", "updatedInput": end["request"]["input"]}));
        host.result();
    }
    assert_eq!(harness.read("changed"), "changed\n");
    assert!(!harness.path("made").exists());
    assert_eq!(host.end(), Some(0));
}

#[test]
fn calls_are_denied_when_nobody_can_be_asked_or_a_rule_denies() {
    for flags in [&[][..], &["--permission-mode", "acceptEdits", "--disallowedTools", "Bash"]] {
        let harness = Harness::new(Dialect::AnthropicMessages, TURNS);
        let output = run_with_input(&mut command(&harness, flags), &format!("{}\n", said("Write it")));
        assert_eq!(output.code, Some(0), "{output:?}");
        let told = lines(&output);
        assert_eq!(told.last().unwrap()["permission_denials"][0]["tool_name"], "Bash", "{output:?}");
        assert!(!harness.path("made").exists(), "{flags:?}");
    }
}

#[test]
fn tools_that_the_host_leaves_out_are_not_offered() {
    let harness = Harness::new(Dialect::AnthropicMessages, TURNS);
    let flags = [
        "--tools",
        "Read,Grep",
        "--permission-mode",
        "bypassPermissions",
        "--allow-dangerously-skip-permissions",
    ];
    let output = run_with_input(&mut command(&harness, &flags), &format!("{}\n", said("Write it")));
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(!harness.path("made").exists(), "{output:?}");
    let request = &harness.server.requests()[0].body;
    let names: Vec<&str> =
        request["tools"].as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert!(names.contains(&"read_file") && names.contains(&"grep"), "{names:?}");
    assert!(!names.iter().any(|name| ["shell", "write_file", "edit_file"].contains(name)), "{names:?}");
}

#[test]
fn an_interrupt_stops_the_run_and_the_session_goes_on() {
    let turns = r#"
        [[turn]]
        text = "I wait."
        [[turn.call]]
        tool = "shell"
        arguments = { command = "sleep 600" }
        [[turn]]
        text = "Still here."
        "#;
    let harness = Harness::new(Dialect::AnthropicMessages, turns);
    let mut host = Host::start(&harness, &["--allowedTools", "Bash"]);
    host.request(&json!({"subtype": "initialize"}));
    host.send(&said("Wait"));
    host.wait(|line| line["type"] == "assistant");
    let answer = host.request(&json!({"subtype": "interrupt"}));
    assert_eq!(answer["response"]["subtype"], "success", "{answer}");
    if !host.lines.iter().any(|line| line["type"] == "result") {
        host.result();
    }
    host.send(&said("Are you there?"));
    let end = host.result();
    assert_eq!(end["result"], "Still here.", "{end}");
    assert_eq!(host.end(), Some(0));
}

#[test]
fn a_hook_of_the_host_denies_and_its_permission_does_not_widen() {
    for decision in ["deny", "allow"] {
        let harness = Harness::new(Dialect::AnthropicMessages, TURNS);
        let mut host = Host::start(&harness, &[]);
        let hooks = json!({"PreToolUse": [{"matcher": "Bash", "hookCallbackIds": ["h1"]}]});
        host.request(&json!({"subtype": "initialize", "hooks": hooks}));
        host.send(&said("Write it"));
        let asked = host.asked("hook_callback");
        assert_eq!(asked["request"]["input"]["tool_name"], "Bash", "{asked}");
        let output = json!({"hookEventName": "PreToolUse", "permissionDecision": decision});
        host.answer(&asked, &json!({"hookSpecificOutput": output}));
        let end = host.result();
        assert_eq!(end["permission_denials"][0]["tool_name"], "Bash", "{end}");
        assert!(!harness.path("made").exists(), "{decision}");
        assert_eq!(host.end(), Some(0));
    }
}

#[test]
fn hooks_of_the_user_come_before_those_of_the_host() {
    let user = tempfile::tempdir().unwrap();
    let script = user.path().join("change.sh");
    std::fs::write(
        user.path().join("hooks.toml"),
        format!("[[PreToolUse]]\ncommand = \"sh {}\"\n", script.display()),
    )
    .unwrap();
    let changed =
        |command: &str| json!({"hookEventName": "PreToolUse", "updatedInput": {"command": command}});
    let denied = json!({"hookEventName": "PreToolUse", "permissionDecision": "deny"});
    let rows = [
        (changed("echo user >made"), Some(changed("echo host >made")), Some("user\n")),
        (changed("echo user >made"), Some(json!({"hookEventName": "PreToolUse"})), Some("user\n")),
        (changed("echo user >made"), Some(denied.clone()), None),
        // The host is not asked about a call that is denied already.
        (denied, None, None),
    ];
    for (of_user, of_host, made) in rows {
        let answer = json!({"hookSpecificOutput": of_user});
        std::fs::write(&script, format!("cat <<'E'\n{answer}\nE\n")).unwrap();
        let harness = Harness::new(Dialect::AnthropicMessages, TURNS);
        let mut command = command(&harness, &["--allowedTools", "Bash"]);
        let mut host = Host::spawn(command.env("PINTLE_CONFIG_DIR", user.path()));
        let hooks = json!({"PreToolUse": [{"matcher": "Bash", "hookCallbackIds": ["h1"]}]});
        host.request(&json!({"subtype": "initialize", "hooks": hooks}));
        host.send(&said("Write it"));
        if let Some(of_host) = &of_host {
            let asked = host.asked("hook_callback");
            host.answer(&asked, &json!({"hookSpecificOutput": of_host}));
        }
        let end = host.result();
        assert_eq!(end["subtype"], "success", "{end}");
        let is_asked = host.lines.iter().any(|line| line["request"]["subtype"] == "hook_callback");
        assert_eq!(is_asked, of_host.is_some(), "{of_user}");
        assert_eq!(
            std::fs::read_to_string(harness.path("made")).ok().as_deref(),
            made,
            "{of_user} {of_host:?}"
        );
        assert_eq!(host.end(), Some(0));
    }
}

/// Some SDKs declare such a server in the handshake, others on the command line alone.
#[test]
fn a_tool_of_the_host_runs_in_the_host() {
    let turns = r#"
        [[turn]]
        text = "I add."
        [[turn.call]]
        tool = "mcp__calculator__add"
        arguments = { a = 2, b = 3 }
        [[turn]]
        text = "Five."
        [[turn.expect]]
        call = 0
        contains = "sum: 5"
        "#;
    let config = r#"{"mcpServers": {"calculator": {"type": "sdk", "name": "calculator"}}}"#;
    let declared = ["--mcp-config", config, "--allowedTools", "mcp__calculator__add"];
    let with_servers = json!({"subtype": "initialize", "sdkMcpServers": ["calculator"]});
    let without = json!({"subtype": "initialize", "hooks": null});
    let cases = [(&declared[..], &with_servers), (&declared[2..], &with_servers), (&declared[..], &without)];
    for (flags, handshake) in cases {
        let harness = Harness::new(Dialect::AnthropicMessages, turns);
        let mut host = Host::start(&harness, flags);
        host.request(handshake);
        host.send(&said("Add"));
        loop {
            let line =
                host.wait(|line| line["type"] == "result" || line["request"]["subtype"] == "mcp_message");
            if line["type"] == "result" {
                assert_eq!(line["result"], "Five.", "{handshake}: {line}");
                break;
            }
            let message = &line["request"]["message"];
            let result = match message["method"].as_str().unwrap() {
                "initialize" => json!({"protocolVersion": "2025-06-18", "capabilities": {}}),
                "tools/list" => {
                    json!({"tools": [{"name": "add", "description": "Adds", "inputSchema": {"type": "object"}}]})
                }
                "tools/call" => json!({"content": [{"type": "text", "text": "sum: 5"}]}),
                _ => json!({}),
            };
            let response = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
            host.answer(&line, &json!({"mcp_response": response}));
        }
        let init = host.lines.iter().find(|line| line["subtype"] == "init").unwrap();
        let servers = json!([{"name": "calculator", "status": "connected"}]);
        assert_eq!(init["mcp_servers"], servers, "{handshake}: {init}");
        assert_eq!(host.end(), Some(0));
    }
}

#[test]
fn an_answer_is_repaired_until_it_matches_the_schema() {
    let turns = "[[turn]]\ntext = \"Seven.\"\n[[turn]]\ntext = '{\"files\": 7}'\n";
    let harness = Harness::new(Dialect::AnthropicMessages, turns);
    let schema = r#"{"type": "object", "required": ["files"]}"#;
    let output =
        run_with_input(&mut command(&harness, &["--json-schema", schema]), &format!("{}\n", said("Count")));
    let told = lines(&output);
    assert_eq!(told.last().unwrap()["structured_output"], json!({"files": 7}), "{output:?}");
}

#[test]
fn options_and_handshakes_that_restrict_and_are_unknown_end_the_process() {
    let harness = Harness::new(Dialect::AnthropicMessages, TURNS);
    for (flags, problem) in [
        (&["--managed-settings", "{}"][..], "--managed-settings"),
        (
            &["--settings", r#"{"permissions": {"defaultMode": "bypassPermissions"}}"#],
            "--allow-dangerously-skip-permissions",
        ),
        (
            &["--mcp-config", r#"{"mcpServers": {"c": {"type": "sdk", "tools": []}}}"#],
            "tool policies are not supported",
        ),
        (&["--resume", "none"], "no session `none`"),
        (&["--session-id", "x"], "expected a UUID"),
        (&["--permission-prompt-tool", "mcp__a__b"], "stdio"),
    ] {
        let output = run_with_input(&mut command(&harness, flags), &format!("{}\n", said("Go")));
        assert_eq!(output.code, Some(2), "{flags:?}: {output:?}");
        assert!(output.stdout.is_empty() && output.stderr.contains(problem), "{flags:?}: {output:?}");
    }
    let request = json!({"subtype": "initialize", "toolPolicy": "strict"});
    let request = json!({"type": "control_request", "request_id": "1", "request": request});
    let output = run_with_input(&mut command(&harness, &[]), &format!("{request}\n{}\n", said("Go")));
    assert_eq!(output.code, Some(2), "{output:?}");
    assert!(output.stderr.contains("the handshake is refused"), "{output:?}");
    let flags = ["--disallowedTools", "Read(.env)"];
    let output = run_with_input(&mut command(&harness, &flags), &format!("{}\n", said("Go")));
    assert_eq!(output.code, Some(2), "{output:?}");
    assert!(output.stderr.contains("`Read(.env)` is not supported"), "{output:?}");
    assert!(harness.server.requests().is_empty());
}
