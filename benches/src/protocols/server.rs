//! A server that answers at once, and three clients of it.
#![expect(clippy::disallowed_methods, reason = "the bare clients start the server themselves")]

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;

use pintle_env::ExecutionEnvironment;
use pintle_llm::ToolCall;
use pintle_mcp::{McpServers, ServerName, ServerSpec, ServerTransport, StdioServer};
use pintle_tools::pipeline::{RunOptions, run};
use pintle_tools::{ToolContext, ToolRegistry};
use rmcp::ServiceExt as _;
use rmcp::model::CallToolRequestParams;
use rmcp::service::{RoleClient, RunningService};
use serde_json::{Map, Value, json};
use tempfile::TempDir;

/// The argument that makes this program the server.
pub(crate) const SERVE: &str = "serve-mcp";

/// Name of the only tool.
const TOOL: &str = "echo";

/// Argument and result of each call.
const TEXT: &str = "hello";

/// Serves until standard input is closed.
pub(crate) fn serve() -> io::Result<()> {
    let (input, mut output) = (io::stdin().lock(), io::stdout().lock());
    for line in input.lines() {
        let request: Value = serde_json::from_str(&line?)?;
        // A notification has no id and no answer.
        if let Some(id) = request.get("id") {
            let mut answer = answer(id, &request).to_string();
            answer.push('\n');
            output.write_all(answer.as_bytes())?;
            output.flush()?;
        }
    }
    Ok(())
}

fn answer(id: &Value, request: &Value) -> Value {
    let result = match request.get("method").and_then(Value::as_str).unwrap_or_default() {
        "initialize" => json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "bench", "version": "1"},
        }),
        "tools/list" => {
            let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
            json!({"tools": [{"name": TOOL, "description": "Returns its text.", "inputSchema": schema}]})
        }
        "tools/call" => {
            let text = request.pointer("/params/arguments/text").and_then(Value::as_str);
            json!({"content": [{"type": "text", "text": text.unwrap_or_default()}]})
        }
        method => {
            let error = json!({"code": -32601, "message": format!("unknown method: {method}")});
            return json!({"jsonrpc": "2.0", "id": id, "error": error});
        }
    };
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

fn command() -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this program has a file"));
    command.arg(SERVE).stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

fn arguments() -> Map<String, Value> {
    Map::from_iter([("text".to_owned(), TEXT.into())])
}

/// A client that writes the same line for each call and reads one line, without looking at it.
pub(super) struct Pipes {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    request: Vec<u8>,
    line: Vec<u8>,
}

impl Pipes {
    pub(super) fn start() -> Self {
        let mut child = command().spawn().expect("this program runs");
        let (input, output) = (child.stdin.take(), child.stdout.take().expect("it has an output"));
        let params = json!({"name": TOOL, "arguments": arguments()});
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let request = format!("{request}\n").into_bytes();
        Self { child, input, output: BufReader::new(output), request, line: Vec::new() }
    }

    pub(super) fn call(&mut self) {
        let input = self.input.as_mut().expect("it is open");
        input.write_all(&self.request).expect("the server reads");
        self.line.clear();
        self.output.read_until(b'\n', &mut self.line).expect("the server answers");
        assert!(!self.line.is_empty(), "the server has ended");
    }
}

impl Drop for Pipes {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.wait();
    }
}

/// A client of the SDK that `pintle-mcp` has, over the streams of a child process.
pub(super) struct BareClient {
    service: RunningService<RoleClient, ()>,
    /// Killed when this is dropped.
    _child: tokio::process::Child,
}

impl BareClient {
    pub(super) async fn start() -> Self {
        let mut command = tokio::process::Command::from(command());
        let mut child = command.kill_on_drop(true).spawn().expect("this program runs");
        let streams = child.stdout.take().zip(child.stdin.take()).expect("it has both");
        let service = ().serve(streams).await.expect("the server completes the handshake");
        Self { service, _child: child }
    }

    pub(super) async fn calls(&self, number: u32) {
        for _ in 0..number {
            let call = CallToolRequestParams::new(TOOL).with_arguments(arguments());
            let result = self.service.call_tool(call).await.expect("the server answers");
            let text = result.content.first().and_then(|content| content.as_text());
            assert_eq!(text.map(|text| text.text.as_str()), Some(TEXT));
        }
    }
}

/// Calls as a session makes them: checked against the schema, with limits, time-outs and cancellation.
pub(super) struct Session {
    env: Arc<dyn ExecutionEnvironment>,
    servers: McpServers,
    registry: ToolRegistry,
    cx: ToolContext,
    _directory: TempDir,
}

impl Session {
    pub(super) async fn start() -> Self {
        let directory = TempDir::new().expect("there is room for a directory");
        let env: Arc<dyn ExecutionEnvironment> = crate::sessions::environment(directory.path());
        env.initialize().await.expect("the environment is available");
        let name: ServerName = "bench".parse().expect("the name is valid");
        let program = std::env::current_exe().expect("this program has a file");
        let server = StdioServer::new(program, [SERVE]);
        let spec = ServerSpec::new(name.clone(), ServerTransport::Stdio(server));
        let servers = McpServers::new(Arc::clone(&env), [spec]);
        servers.list(&name).await.expect("the server lists its tools");
        let mut registry = ToolRegistry::new();
        assert!(servers.register(&mut registry, usize::MAX).is_empty(), "the tool is accepted");
        let cx = ToolContext::new(Arc::clone(&env), "");
        Self { env, servers, registry, cx, _directory: directory }
    }

    pub(super) async fn calls(&self, number: u32) {
        let arguments = Value::Object(arguments()).to_string();
        for _ in 0..number {
            let call = ToolCall::from_raw("call", format!("mcp__bench__{TOOL}"), arguments.as_str());
            let execution = run(&self.registry, &call, &self.cx, &RunOptions::new()).await;
            assert_eq!(execution.result.text(), TEXT);
        }
    }

    pub(super) async fn close(self) {
        self.servers.close().await;
        self.env.cleanup().await.expect("nothing is left");
    }
}
