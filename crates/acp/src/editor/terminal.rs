//! Commands in a terminal of the client.

use std::path::Path;
use std::time::Duration;

use pintle_env::{
    EnvError, ExecRequest, ExecResult, OutputChunk, OutputCollector, OutputLimits, OutputStream,
    TERMINATE_GRACE, shell_arguments,
};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::client::Client;
use crate::error::ClientError;

/// Shell that runs the commands.
const SHELL: &str = "/bin/sh";

/// Maximum bytes of output that the client keeps. It drops the oldest bytes.
const OUTPUT_LIMIT: u64 = 1 << 20;

/// Exit code of a command that was killed (128 plus the number of the signal).
const KILLED: i32 = 137;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CreatedTerminal {
    terminal_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TerminalExit {
    exit_code: Option<i64>,
    signal: Option<String>,
}

#[derive(Deserialize)]
struct TerminalOutput {
    output: String,
}

/// Terminal of the client. Dropping it kills the command and releases the terminal.
struct EditorTerminal<'a> {
    client: &'a Client,
    session: &'a str,
    id: String,
    is_over: bool,
}

impl EditorTerminal<'_> {
    fn params(&self) -> Value {
        json!({"sessionId": self.session, "terminalId": self.id})
    }

    async fn exit(&self) -> Result<TerminalExit, ClientError> {
        self.client.request("terminal/wait_for_exit", &self.params()).await
    }

    /// Waits for the command, and kills it at the time-out. Returns the exit code and whether the command was killed.
    async fn wait(&self, timeout: Duration) -> Result<(i32, bool), ClientError> {
        if let Ok(exit) = tokio::time::timeout(timeout, self.exit()).await {
            return Ok((code(&exit?), false));
        }
        self.client.request::<Value>("terminal/kill", &self.params()).await?;
        // A client that lost the command never reports its exit.
        let killed = tokio::time::timeout(TERMINATE_GRACE, self.exit()).await;
        Ok((killed.ok().and_then(Result::ok).map_or(KILLED, |exit| code(&exit)), true))
    }
}

impl Drop for EditorTerminal<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.client.request_now("terminal/kill", &self.params());
            self.client.request_now("terminal/release", &self.params());
        }
    }
}

fn code(exit: &TerminalExit) -> i32 {
    match exit {
        TerminalExit { exit_code: Some(code), .. } => i32::try_from(*code).unwrap_or(i32::MAX),
        TerminalExit { exit_code: None, signal: Some(_) } => KILLED,
        TerminalExit { exit_code: None, signal: None } => 0,
    }
}

/// Runs a command until it exits. The output is available only then. The user watches the terminal meanwhile.
pub(super) async fn run(
    client: &Client,
    session: &str,
    request: ExecRequest,
    directory: &Path,
    limits: OutputLimits,
) -> Result<ExecResult, EnvError> {
    let started = Instant::now();
    let lost = |error: ClientError| EnvError::EnvironmentLost {
        environment: "the terminal of the client".to_owned(),
        source: Some(Box::new(error)),
    };
    let mut terminal = create(client, session, &request, directory).await?;
    client.runs_for_call(session, &request.command, Some(&terminal.id)).await;
    let (exit_code, timed_out) = terminal.wait(request.timeout).await.map_err(lost)?;
    let params = terminal.params();
    let printed: TerminalOutput = client.request("terminal/output", &params).await.map_err(lost)?;
    client.request::<Value>("terminal/release", &params).await.map_err(lost)?;
    terminal.is_over = true;
    if let Some(sink) = request.on_output.as_ref().filter(|_| !printed.output.is_empty()) {
        sink(OutputChunk::new(OutputStream::Stdout, printed.output.as_bytes()));
    }
    let mut collector = OutputCollector::new(limits);
    collector.push(printed.output.as_bytes());
    let output = collector.finish();
    // A terminal merges standard output and standard error.
    Ok(ExecResult::new(exit_code)
        .with_outputs(output.clone(), pintle_env::Output::default(), output)
        .with_timed_out(timed_out)
        .with_duration(started.elapsed()))
}

async fn create<'a>(
    client: &'a Client,
    session: &'a str,
    request: &ExecRequest,
    directory: &Path,
) -> Result<EditorTerminal<'a>, EnvError> {
    let variables: Vec<Value> =
        request.env.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
    let params = json!({
        "sessionId": session,
        "command": SHELL,
        "args": shell_arguments(SHELL, &request.command),
        "env": variables,
        "cwd": directory,
        "outputByteLimit": OUTPUT_LIMIT,
    });
    let CreatedTerminal { terminal_id } =
        client.request("terminal/create", &params).await.map_err(|error| EnvError::Spawn {
            program: request.command.clone(),
            source: std::io::Error::other(error),
        })?;
    Ok(EditorTerminal { client, session, id: terminal_id, is_over: false })
}
