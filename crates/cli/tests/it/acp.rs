//! `pintle acp`: a conversation in an editor, with the sessions of the store.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdout, Stdio};

use pintle_testkit::Dialect;
use serde_json::{Value, json};

use crate::harness::{Harness, pintle, run};

/// Client of `pintle acp`.
struct Editor {
    child: Child,
    output: BufReader<ChildStdout>,
    number: u64,
    /// Updates since the newest request.
    updates: Vec<Value>,
    /// Option that is chosen when the agent asks.
    choice: &'static str,
}

impl Editor {
    fn start(harness: &Harness, flags: &[&str]) -> Self {
        let mut command = pintle(&["acp", "--provider", harness.dialect.name(), "--toolset", "spec"]);
        command.args(["--base-url", &harness.server.base_url(harness.dialect)]).args(flags);
        command.env("ANTHROPIC_API_KEY", crate::harness::KEY);
        command.env("PINTLE_STATE_DIR", harness.path(".state"));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut editor = Self { child, output, number: 0, updates: Vec::new(), choice: "allow_once" };
        let answer = editor.request("initialize", &json!({"protocolVersion": 1, "clientCapabilities": {}}));
        assert_eq!(answer.pointer("/result/agentCapabilities/loadSession"), Some(&json!(true)), "{answer}");
        editor
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{message}").unwrap();
    }

    fn request(&mut self, method: &str, params: &Value) -> Value {
        self.number += 1;
        let number = self.number;
        self.updates.clear();
        self.send(&json!({"jsonrpc": "2.0", "id": number, "method": method, "params": params}));
        loop {
            let mut line = String::new();
            assert_ne!(self.output.read_line(&mut line).unwrap(), 0, "the agent has ended");
            let message: Value = serde_json::from_str(&line).unwrap();
            match message.get("method").and_then(Value::as_str) {
                None if message.get("id") == Some(&json!(number)) => return message,
                Some("session/update") => self.updates.push(message),
                Some("session/request_permission") => {
                    let options = message.pointer("/params/options").and_then(Value::as_array).unwrap();
                    let kind = |option: &&Value| option.get("kind") == Some(&json!(self.choice));
                    let chosen = options.iter().find(kind).and_then(|option| option.get("optionId")).unwrap();
                    let outcome = json!({"outcome": {"outcome": "selected", "optionId": chosen}});
                    let id = message.get("id").cloned();
                    self.send(&json!({"jsonrpc": "2.0", "id": id, "result": outcome}));
                }
                _ => {}
            }
        }
    }

    fn open(&mut self, method: &str, harness: &Harness, id: Option<&str>) -> Value {
        let mut params = json!({"cwd": harness.path(""), "mcpServers": []});
        if let (Some(id), Some(params)) = (id, params.as_object_mut()) {
            params.insert("sessionId".to_owned(), json!(id));
        }
        self.request(method, &params)
    }

    fn prompt(&mut self, id: &str, text: &str) -> Value {
        let prompt = json!([{"type": "text", "text": text}]);
        self.request("session/prompt", &json!({"sessionId": id, "prompt": prompt}))
    }

    /// Returns the text of the model, which arrives in pieces.
    fn said(&self) -> String {
        let texts = self.updates.iter().filter_map(|update| update.pointer("/params/update/content/text"));
        texts.filter_map(Value::as_str).collect()
    }

    fn kinds(&self) -> Vec<&str> {
        let kinds = self.updates.iter().filter_map(|update| update.pointer("/params/update/sessionUpdate"));
        kinds.filter_map(Value::as_str).collect()
    }

    fn end(mut self) {
        drop(self.child.stdin.take());
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
    }
}

fn session_of(answer: &Value) -> String {
    answer
        .pointer("/result/sessionId")
        .and_then(Value::as_str)
        .unwrap_or_else(|| panic!("{answer}"))
        .to_owned()
}

const TURNS: &str = r#"
    [[turn]]
    text = "I write it."
    [[turn.call]]
    tool = "shell"
    arguments = { command = "echo made >made" }
    [[turn]]
    text = "It is written."
    [[turn]]
    text = "Hello again, in the terminal."
    [[turn]]
    text = "And in the editor."
    "#;

#[test]
fn a_conversation_goes_on_between_an_editor_and_a_terminal() {
    let harness = Harness::new(Dialect::AnthropicMessages, TURNS);
    let mut editor = Editor::start(&harness, &[]);
    let opened = editor.open("session/new", &harness, None);
    let id = session_of(&opened);
    assert_eq!(opened.pointer("/result/modes/currentModeId"), Some(&json!("edit")), "{opened}");
    let answer = editor.prompt(&id, "Write it");
    assert_eq!(answer.pointer("/result/stopReason"), Some(&json!("end_turn")), "{answer}");
    let (said, kinds) = (editor.said(), editor.kinds());
    assert!(said.contains("I write it.") && kinds.contains(&"tool_call"), "{said}: {kinds:?}");
    assert_eq!(harness.read("made"), "made\n");
    editor.end();

    let mut command = pintle(&["run", "--resume", &id, "And now?"]);
    command.env("ANTHROPIC_API_KEY", crate::harness::KEY).env("PINTLE_STATE_DIR", harness.path(".state"));
    let output = run(&mut command);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(output.stdout.contains("Hello again, in the terminal."), "{output:?}");

    let mut editor = Editor::start(&harness, &[]);
    let listed = editor.request("session/list", &json!({"cwd": harness.path("")}));
    assert_eq!(listed.pointer("/result/sessions/0/sessionId"), Some(&json!(id)), "{listed}");
    let loaded = editor.open("session/load", &harness, Some(&id));
    assert!(loaded.get("error").is_none(), "{loaded}");
    let replayed = editor.said();
    assert!(replayed.contains("Hello again, in the terminal."), "{replayed}");
    editor.prompt(&id, "And here?");
    assert!(editor.said().contains("And in the editor."));
    editor.end();
    assert_eq!(harness.server.requests().len(), 4);
}

#[test]
fn denials_modes_and_wrong_sessions_are_told() {
    let harness = Harness::new(Dialect::AnthropicMessages, TURNS);
    let mut editor = Editor::start(&harness, &[]);
    let id = session_of(&editor.open("session/new", &harness, None));
    editor.choice = "reject_once";
    let answer = editor.prompt(&id, "Write it");
    assert_eq!(answer.pointer("/result/stopReason"), Some(&json!("end_turn")), "{answer}");
    assert!(!harness.path("made").exists());
    let set = editor.request("session/set_mode", &json!({"sessionId": id, "modeId": "plan"}));
    assert!(set.get("error").is_none(), "{set}");
    for (method, params, problem) in [
        ("session/set_mode", json!({"sessionId": id, "modeId": "fast"}), "there is no mode `fast`"),
        (
            "session/load",
            json!({"sessionId": "none", "cwd": harness.path(""), "mcpServers": []}),
            "no session `none`",
        ),
        ("session/new", json!({"cwd": "/no/such/directory", "mcpServers": []}), "/no/such/directory"),
    ] {
        let answer = editor.request(method, &params);
        let message = answer.pointer("/error/message").and_then(Value::as_str).unwrap_or_default();
        assert!(message.contains(problem), "{method} {params}: {answer}");
    }
    // A second editor does not get a session that the first one has.
    let mut other = Editor::start(&harness, &[]);
    let answer = other.open("session/load", &harness, Some(&id));
    let message = answer.pointer("/error/message").and_then(Value::as_str).unwrap_or_default();
    assert!(message.contains("is in use by pintle with process id"), "{answer}");
    other.end();
    editor.end();
}

#[test]
fn flags_about_one_task_are_refused() {
    for flags in [&["a prompt"][..], &["--continue"], &["--dir", "/"], &["--env", "docker:x"]] {
        let output = run(pintle(&["acp"]).args(flags));
        assert_eq!(output.code, Some(2), "{flags:?}: {output:?}");
        assert!(output.stderr.contains("the editor decides on that"), "{flags:?}: {output:?}");
    }
}
