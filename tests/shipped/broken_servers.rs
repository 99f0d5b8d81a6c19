//! Servers that answer with a page or with text instead of an event stream.

use std::process::Stdio;

use pintle_testkit::{FaultScript, FaultServer};
use serde_json::Value;
use tokio::runtime::Runtime;

use super::user::{KEY, User};

/// Requests of a run whose model calls fail: the first one and two retries.
const REQUESTS: usize = 3;

/// Content type and body of a response, and the problem that is reported.
struct Answer {
    content_type: &'static str,
    body: &'static str,
    problem: &'static str,
}

static ANSWERS: [Answer; 2] = [
    Answer {
        content_type: "text/html; charset=utf-8",
        body: "<title>Log in to the portal</title>",
        problem: "expected an event stream instead of text/html, found \"<title>Log in to the portal</title>\"",
    },
    Answer {
        content_type: "text/plain",
        body: "The service moved",
        problem: "the stream ended inside an event",
    },
];

/// A server that gives one answer to each request, and its user.
struct Broken {
    server: FaultServer,
    user: User,
    // Dropped last: the server's tasks must end before their runtime.
    _runtime: Runtime,
}

impl Broken {
    fn start(answer: &Answer) -> Self {
        let Answer { content_type, body, .. } = answer;
        let length = body.len();
        let response = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
        );
        let runtime = Runtime::new().unwrap();
        let script = FaultScript::new().read_request().write(response);
        let server = runtime.block_on(FaultServer::start([script])).unwrap();
        Self { server, user: User::new("[[turn]]\ntext = \"Done.\"\n"), _runtime: runtime }
    }
}

#[test]
fn an_answer_that_is_no_event_stream_fails_the_run_of_each_provider() {
    let providers = [
        ("anthropic", "ANTHROPIC_API_KEY", ""),
        ("openai", "OPENAI_API_KEY", "/v1"),
        ("gemini", "GEMINI_API_KEY", ""),
        ("openai-compatible", "OPENAI_API_KEY", "/v1"),
    ];
    // They run at the same time, since each waits before its retries.
    let mut running = Vec::new();
    for answer in &ANSWERS {
        for (provider, key, path) in providers {
            let broken = Broken::start(answer);
            let url = format!("{}{path}", broken.server.url());
            let arguments = ["run", "--provider", provider, "--model", "m", "--base-url", &url, "Go"];
            let mut command = broken.user.command(&arguments);
            command.env(key, KEY).stdout(Stdio::piped()).stderr(Stdio::piped());
            running.push((answer, provider, command.spawn().unwrap(), broken));
        }
    }
    for (answer, provider, child, broken) in running {
        let output = child.wait_with_output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        let expected = format!("broken response stream ({provider}): {}", answer.problem);
        assert_eq!(output.status.code(), Some(1), "{provider}: {errors}");
        assert!(errors.contains(&expected), "{provider}: {errors}");
        assert_eq!(broken.server.records().len(), REQUESTS, "{provider}");
    }
}

#[test]
fn an_answer_that_is_no_event_stream_is_in_the_lines_of_codex() {
    for answer in &ANSWERS {
        let broken = Broken::start(answer);
        let mut command = broken.user.command(&["exec", "--json", "Go"]);
        command.env("PINTLE_PROVIDER", "anthropic").env("ANTHROPIC_BASE_URL", broken.server.url());
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let printed = String::from_utf8(output.stdout).unwrap();
        let lines: Vec<Value> = printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines[0]["type"], "thread.started", "{printed}");
        let last = lines.last().unwrap();
        assert_eq!(last["type"], "turn.failed", "{printed}");
        assert_eq!(last["error"]["message"], answer.problem, "{printed}");
        let is_retry = |line: &&Value| line["item"]["message"].to_string().contains(", retry ");
        let retries = lines.iter().filter(is_retry).count();
        assert_eq!(retries, REQUESTS - 1, "{printed}");
    }
}
