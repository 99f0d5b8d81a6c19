//! Client of `pintle acp`. The tests of `pintle-tests` include this file.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

/// Name of the files whose writes are rejected.
const REJECTED: &str = "rejected";

/// An editor, with the process of its agent.
pub(crate) struct Editor {
    child: Child,
    output: BufReader<ChildStdout>,
    number: u64,
    /// Requests and notifications of the agent since the newest request.
    pub(crate) received: Vec<Value>,
    /// Kind of the option that is chosen when the agent asks.
    pub(crate) choice: &'static str,
}

impl Editor {
    /// Starts the agent and initializes the connection with these capabilities.
    pub(crate) fn start(command: &mut Command, capabilities: &Value) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut editor = Self { child, output, number: 0, received: Vec::new(), choice: "allow_once" };
        let params = json!({"protocolVersion": 1, "clientCapabilities": capabilities});
        let answer = editor.request("initialize", &params);
        assert_eq!(answer.pointer("/result/agentCapabilities/loadSession"), Some(&json!(true)), "{answer}");
        editor
    }

    pub(crate) fn send(&mut self, message: &Value) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{message}").unwrap();
    }

    /// Sends a request and returns its answer.
    pub(crate) fn request(&mut self, method: &str, params: &Value) -> Value {
        let number = self.send_request(method, params);
        self.answer_to(number)
    }

    /// Sends a request and returns its number.
    fn send_request(&mut self, method: &str, params: &Value) -> u64 {
        self.number += 1;
        self.received.clear();
        self.send(&json!({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}));
        self.number
    }

    /// Waits for the answer to the request with this number.
    pub(crate) fn answer_to(&mut self, number: u64) -> Value {
        self.wait_for(|message| message.get("method").is_none() && message.get("id") == Some(&json!(number)))
    }

    /// Handles messages of the agent until one satisfies the condition, and returns that one.
    pub(crate) fn wait_for(&mut self, condition: impl Fn(&Value) -> bool) -> Value {
        loop {
            let mut line = String::new();
            assert_ne!(self.output.read_line(&mut line).unwrap(), 0, "the agent has ended");
            let message: Value = serde_json::from_str(&line).unwrap();
            self.handle(&message);
            if condition(&message) {
                return message;
            }
        }
    }

    /// Answers a request of the agent.
    fn handle(&mut self, message: &Value) {
        let Some(method) = message.get("method").and_then(Value::as_str) else { return };
        self.received.push(message.clone());
        let parameter = |name: &str| message.pointer(&format!("/params/{name}")).and_then(Value::as_str);
        let path = Path::new(parameter("path").unwrap_or_default());
        let result = match method {
            "session/request_permission" => {
                let options = message.pointer("/params/options").and_then(Value::as_array).unwrap();
                let kind = |option: &&Value| option.get("kind") == Some(&json!(self.choice));
                let chosen = options.iter().find(kind).and_then(|option| option.get("optionId")).unwrap();
                Ok(json!({"outcome": {"outcome": "selected", "optionId": chosen}}))
            }
            "fs/read_text_file" => std::fs::read_to_string(path)
                .map(|content| json!({"content": content}))
                .map_err(|cause| cause.to_string()),
            "fs/write_text_file" if path.ends_with(REJECTED) => Err("rejected by the user".to_owned()),
            "fs/write_text_file" => std::fs::write(path, parameter("content").unwrap())
                .map(|()| json!({}))
                .map_err(|cause| cause.to_string()),
            _ => return,
        };
        let mut answer = json!({"jsonrpc": "2.0", "id": message.get("id")});
        let (name, value) = match result {
            Ok(result) => ("result", result),
            Err(problem) => ("error", json!({"code": -32603, "message": problem})),
        };
        answer.as_object_mut().unwrap().insert(name.to_owned(), value);
        self.send(&answer);
    }

    /// Opens a session in a directory: a new one, or the one with this id.
    pub(crate) fn open(&mut self, method: &str, directory: &Path, id: Option<&str>) -> Value {
        let mut params = json!({"cwd": directory, "mcpServers": []});
        if let (Some(id), Some(params)) = (id, params.as_object_mut()) {
            params.insert("sessionId".to_owned(), json!(id));
        }
        self.request(method, &params)
    }

    pub(crate) fn prompt(&mut self, id: &str, text: &str) -> Value {
        let number = self.send_prompt(id, text);
        self.answer_to(number)
    }

    /// Sends a prompt and returns the number of the request.
    pub(crate) fn send_prompt(&mut self, id: &str, text: &str) -> u64 {
        let prompt = json!([{"type": "text", "text": text}]);
        self.send_request("session/prompt", &json!({"sessionId": id, "prompt": prompt}))
    }

    /// Returns the text of the messages, which arrives in pieces.
    pub(crate) fn said(&self) -> String {
        let texts = self.received.iter().filter_map(|update| update.pointer("/params/update/content/text"));
        texts.filter_map(Value::as_str).collect()
    }

    pub(crate) fn kinds(&self) -> Vec<&str> {
        let kinds = self.received.iter().filter_map(|update| update.pointer("/params/update/sessionUpdate"));
        kinds.filter_map(Value::as_str).collect()
    }

    /// Closes the connection. The agent must exit with 0.
    pub(crate) fn end(mut self) {
        drop(self.child.stdin.take());
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
    }
}

/// Returns the id of the session that an answer names.
pub(crate) fn session_of(answer: &Value) -> String {
    answer
        .pointer("/result/sessionId")
        .and_then(Value::as_str)
        .unwrap_or_else(|| panic!("{answer}"))
        .to_owned()
}
