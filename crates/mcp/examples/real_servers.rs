//! Sessions with published servers, given by the paths of their programs: `real_servers NODE MODULES PYTHON SERVER`.
//! MODULES contains `server-everything` and `server-filesystem`. SERVER is the script for PYTHON, in the directory of
//! `loopback.cjs`.
#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "it is run by a check and prints what it has tried"
)]

use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pintle_env::{Command, ExecutionEnvironment, LocalEnvironment};
use pintle_llm::ToolCall;
use pintle_mcp::{HttpServer, McpServers, ServerName, ServerSpec, ServerTransport, StdioServer};
use pintle_tools::pipeline::{RunOptions, run};
use pintle_tools::{ToolContext, ToolRegistry};
use serde_json::{Value, json};

/// Time in which a server over HTTP must listen.
const START_TIME: Duration = Duration::from_secs(20);

type Failed = Box<dyn Error>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failed> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let mut next = || arguments.next().ok_or("expected four paths: NODE MODULES PYTHON SERVER");
    let (node, modules, python, script) = (next()?, next()?, next()?, next()?);
    let directory = tempfile::tempdir()?;
    std::fs::write(directory.path().join("notes.txt"), "remember\n")?;
    let env = LocalEnvironment::builder(directory.path()).with_host_env(std::env::vars_os()).build()?;
    let env: Arc<dyn ExecutionEnvironment> = Arc::new(env);
    env.initialize().await?;
    let module = |name: &str| modules.join(name).join("dist/index.js");
    let tried = async {
        everything(&Session::stdio(&env, &node, [module("server-everything")])).await?;
        println!("server-everything over stdio: ok");
        let loopback = script.with_file_name("loopback.cjs");
        everything_over_http(&env, &node, [&loopback, &module("server-everything")]).await?;
        println!("server-everything over HTTP: ok");
        filesystem(&Session::stdio(&env, &node, [module("server-filesystem"), directory.path().into()]))
            .await?;
        println!("server-filesystem: ok");
        python_sdk(&Session::stdio(&env, &python, [script])).await?;
        println!("a server of the Python SDK: ok");
        Ok(())
    };
    let tried = tried.await;
    env.cleanup().await?;
    tried
}

/// Session with one server.
struct Session {
    env: Arc<dyn ExecutionEnvironment>,
    servers: McpServers,
    name: ServerName,
}

impl Session {
    fn new(env: &Arc<dyn ExecutionEnvironment>, transport: ServerTransport) -> Result<Self, Failed> {
        let name: ServerName = "real".parse()?;
        let spec = ServerSpec::new(name.clone(), transport);
        Ok(Self { env: Arc::clone(env), servers: McpServers::new(Arc::clone(env), [spec]), name })
    }

    fn stdio(
        env: &Arc<dyn ExecutionEnvironment>,
        program: &Path,
        arguments: impl IntoIterator<Item = PathBuf>,
    ) -> Result<Self, Failed> {
        Self::new(env, ServerTransport::Stdio(StdioServer::new(program, arguments)))
    }

    /// Returns the tools that a model is offered.
    async fn tools(&self) -> Result<ToolRegistry, Failed> {
        self.servers.list(&self.name).await?;
        let mut registry = ToolRegistry::new();
        match self.servers.register(&mut registry, usize::MAX).pop() {
            Some(refused) => Err(refused.into()),
            None => Ok(registry),
        }
    }

    /// Requires that the result of a call has a text.
    async fn require(&self, tool: &str, arguments: Value, expected: &str) -> Result<(), Failed> {
        let call = ToolCall::from_raw("call", tool, arguments.to_string());
        let cx = ToolContext::new(Arc::clone(&self.env), "");
        let text = run(&self.tools().await?, &call, &cx, &RunOptions::new()).await.result.text();
        if text.contains(expected) {
            return Ok(());
        }
        Err(format!("{tool}: expected {expected:?} in the result: {text}").into())
    }
}

async fn everything(session: &Result<Session, Failed>) -> Result<(), Failed> {
    let session = session.as_ref().map_err(ToString::to_string)?;
    session.require("mcp__real__echo", json!({"message": "hello"}), "hello").await?;
    session.require("mcp__real__get_sum", json!({"a": 2, "b": 3}), "5").await?;
    session.require("list_mcp_resources", json!({"server": "real"}), "real: demo://").await?;
    let prompts = session.servers.prompts(&session.name).await?;
    let prompt = prompts.iter().find(|prompt| prompt.arguments.iter().any(|argument| argument.is_required));
    let prompt = prompt.ok_or("expected a prompt with an argument")?;
    let arguments: BTreeMap<String, String> =
        prompt.arguments.iter().map(|argument| (argument.name.clone(), "Berlin".to_owned())).collect();
    let messages = session.servers.prompt(&session.name, &prompt.name, arguments).await?;
    if !messages.iter().any(|message| message.text.contains("Berlin")) {
        return Err(format!("expected the argument in the messages of {}", prompt.name).into());
    }
    session.servers.close().await;
    Ok(())
}

/// Starts the server on a port of this machine and connects to its URL. The first module keeps it to this machine.
async fn everything_over_http(
    env: &Arc<dyn ExecutionEnvironment>,
    node: &Path,
    [loopback, module]: [&Path; 2],
) -> Result<(), Failed> {
    // Another program could take the port in the meantime. Then the server does not start.
    let port = std::net::TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
    let mut command = Command::argv(
        node,
        ["--require".as_ref(), loopback.as_os_str(), module.as_os_str(), "streamableHttp".as_ref()],
    );
    command.env.insert("PORT".into(), port.to_string().into());
    let mut server = env.spawn(command).await?;
    let listening = async {
        while tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(START_TIME, listening).await?;
    let url = format!("http://127.0.0.1:{port}/mcp");
    let tried = everything(&Session::new(env, ServerTransport::Http(HttpServer::new(&url)?))).await;
    server.terminate(Duration::ZERO).await?;
    tried
}

async fn filesystem(session: &Result<Session, Failed>) -> Result<(), Failed> {
    let session = session.as_ref().map_err(ToString::to_string)?;
    session.require("mcp__real__read_text_file", json!({"path": "notes.txt"}), "remember").await?;
    session.require("mcp__real__read_text_file", json!({"path": "/etc/passwd"}), "denied").await?;
    session.servers.close().await;
    Ok(())
}

async fn python_sdk(session: &Result<Session, Failed>) -> Result<(), Failed> {
    let session = session.as_ref().map_err(ToString::to_string)?;
    session.require("mcp__real__add", json!({"a": 2, "b": 3}), "5").await?;
    session.require("mcp__real__fail", json!({}), "Error executing tool fail").await?;
    session.require("read_mcp_resource", json!({"server": "real", "uri": "memo://ada"}), "Dear ada").await?;
    let prompts = session.servers.prompts(&session.name).await?;
    let commands: Vec<&str> = prompts.iter().map(|prompt| prompt.command.as_str()).collect();
    if commands != ["mcp__real__review"] {
        return Err(format!("expected one prompt, found {commands:?}").into());
    }
    session.servers.close().await;
    Ok(())
}
