//! Tests of the HTTP server example with another client.

use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use pintle_env::{ExecutionEnvironment as _, LocalEnvironment};
use pintle_llm::Client;
use pintle_providers::{Anthropic, OpenAi};
use pintle_testkit::{Dialect, Script, ScriptedServer, ServerOptions};
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use self::http_host::{Shared, serve};

#[path = "../http_host.rs"]
#[expect(dead_code, clippy::print_stdout, reason = "its `main` and its client are only used by the program")]
mod http_host;

/// Running server with scripted models.
struct Harness {
    address: SocketAddr,
    directory: TempDir,
    env: Arc<LocalEnvironment>,
    server: ScriptedServer,
    stop: oneshot::Sender<()>,
    serving: JoinSet<std::io::Result<()>>,
}

impl Harness {
    async fn new(turns: &str) -> Self {
        let script = Script::parse(&format!("name = \"host\"\n{turns}")).unwrap();
        let server = ScriptedServer::start(script, ServerOptions::new()).await.unwrap();
        let url = |dialect| server.base_url(dialect);
        let anthropic =
            Anthropic::builder("key").with_base_url(url(Dialect::AnthropicMessages)).build().unwrap();
        let openai = OpenAi::builder("key").with_base_url(url(Dialect::OpenAiResponses)).build().unwrap();
        let client = Client::builder().provider(anthropic).provider(openai).build().unwrap();
        let directory = tempfile::tempdir().unwrap();
        let env = Arc::new(LocalEnvironment::with_host_env(directory.path(), std::env::vars_os()).unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let mut serving = JoinSet::new();
        serving.spawn(serve(listener, Arc::new(Shared { client, env: env.clone() }), stopped));
        Self { address, directory, env, server, stop, serving }
    }

    async fn send(&self, method: &str, path: &str, body: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: host\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        // The server may reject the request before it has read the body.
        let _ = stream.write_all(body).await;
        stream
    }

    /// Sends a request and returns the complete response, including its head.
    async fn ask(&self, method: &str, path: &str, body: &[u8]) -> String {
        let mut response = Vec::new();
        // A server that rejects the request may close early, which causes a reset after the response.
        let _ = self.send(method, path, body).await.read_to_end(&mut response).await;
        String::from_utf8(response).unwrap()
    }

    /// Stops the server after its last client is served.
    async fn finish(mut self) {
        drop(self.stop);
        let served = tokio::time::timeout(Duration::from_secs(20), self.serving.join_next()).await;
        served.expect("no client is left").unwrap().unwrap().unwrap();
        self.env.cleanup().await.unwrap();
        self.server.shutdown().await;
    }
}

/// Name and data of each event.
fn events(answer: &str) -> Vec<(String, Value)> {
    let mut lines = answer.lines();
    let mut found = Vec::new();
    while let Some(line) = lines.next() {
        if let Some(name) = line.strip_prefix("event: ") {
            let data = lines.next().and_then(|line| line.strip_prefix("data: ")).unwrap();
            found.push((name.to_owned(), serde_json::from_str(data).unwrap()));
        }
    }
    found
}

fn is_alive(process: &str) -> bool {
    let kill = Command::new("kill").args(["-0", process]).stderr(Stdio::null()).status();
    kill.unwrap().success()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_client_gets_its_own_events_and_outcome() {
    let harness = Harness::new("[[turn]]\ntext = \"Hello there, all of you.\"\n").await;
    let (first, second) =
        tokio::join!(harness.ask("POST", "/anthropic", b"Hello."), harness.ask("POST", "/openai", b"Hi."));
    let mut sessions = Vec::new();
    for (answer, task) in [(first, "Hello."), (second, "Hi.")] {
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert!(answer.contains("content-type: text/event-stream\r\n"), "{answer}");
        let events = events(&answer);
        let (last, outcome) = events.last().unwrap();
        assert_eq!((last.as_str(), &outcome["status"]), ("OUTCOME", &"completed".into()));
        assert_eq!(outcome["text"], "Hello there, all of you.");
        let of_session = events.get(..events.len() - 1).unwrap();
        for (name, event) in of_session {
            assert_eq!(event["kind"], name.as_str());
            assert_eq!(event["session_id"], of_session.first().unwrap().1["session_id"]);
        }
        let (name, input) = of_session.first().unwrap();
        assert_eq!((name.as_str(), &input["data"]["content"]), ("USER_INPUT", &task.into()));
        let delta = |(_, event): &(String, Value)| event["data"]["delta"].as_str().map(str::to_owned);
        let text: String = of_session.iter().filter_map(delta).collect();
        assert_eq!(text, "Hello there, all of you.");
        sessions.push(input["session_id"].clone());
    }
    assert_ne!(sessions.first(), sessions.last());
    harness.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn disconnecting_terminates_the_session() {
    let command = "echo $$ > pid; echo at work; sleep 600";
    let call =
        format!("{{ tool = \"shell\", arguments = {{ command = \"{command}\", timeout_ms = 120000 }} }}");
    let harness = Harness::new(&format!("[[turn]]\ncall = [{call}]\n")).await;
    let mut lines = BufReader::new(harness.send("POST", "/openai", b"Work.").await).lines();
    while lines.next_line().await.unwrap().expect("the session works") != "event: TOOL_CALL_OUTPUT_DELTA" {}
    let process = std::fs::read_to_string(harness.directory.path().join("pid")).unwrap();
    let process = process.trim();
    assert!(is_alive(process));
    drop(lines);
    let gone = async {
        while is_alive(process) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    // The server keeps running: only the disconnect can have terminated the command.
    tokio::time::timeout(Duration::from_secs(20), gone).await.expect("the command is terminated");
    assert!(harness.ask("GET", "/openai", b"").await.starts_with("HTTP/1.1 405 "));
    harness.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invalid_requests_are_rejected() {
    let harness = Harness::new("[[turn]]\ntext = \"Never said.\"\n").await;
    let long = vec![b'x'; (64 << 10) + 1];
    let cases: [(&str, &str, &[u8], &str, &str); 4] = [
        ("POST", "/", b"Hello.", "404", "expected /anthropic or /openai"),
        ("GET", "/openai", b"", "405", "expected POST"),
        ("POST", "/openai", &long, "413", "expected a task of at most 64 KiB"),
        ("POST", "/openai", b"\xff", "400", "expected a task in UTF-8"),
    ];
    for (method, path, body, status, expected) in cases {
        let answer = harness.ask(method, path, body).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{method} {path}: {answer}");
        assert!(answer.ends_with(expected), "{method} {path}: {answer}");
    }
    assert_eq!(harness.server.requests().len(), 0);
    harness.finish().await;
}
