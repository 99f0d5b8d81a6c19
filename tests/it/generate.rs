//! The high-level functions of the client specification (sections 4.3 to 5), over real HTTP: the real adapters with the
//! scripted server, which checks every request against the provider's documented rules.

mod default_client;
mod limits;
mod object;
mod retry;
mod text;
mod tools;

use std::time::Duration;

use pintle_llm::{
    Client, ClientTool, Error, GenerateOptions, GenerateResult, RetryPolicy, ToolDefinition, generate, stream,
};
use pintle_testkit::{Dialect, RecordedRequest, Script, ScriptedServer, ServerOptions, Turn};
use serde_json::json;

use crate::harness::{self, KEY};

/// A real adapter, and the server that plays the provider.
struct GenerateHarness {
    dialect: Dialect,
    client: Client,
    server: ScriptedServer,
}

impl GenerateHarness {
    /// Starts a server with these turns.
    async fn new(dialect: Dialect, turns: impl IntoIterator<Item = Turn>) -> Self {
        let script = turns.into_iter().fold(Script::new("generate"), Script::with_turn);
        let server = ScriptedServer::start(script, ServerOptions::new().with_api_key(KEY)).await.unwrap();
        let client = harness::client(&server, dialect, KEY);
        Self { dialect, client, server }
    }

    /// Returns options without a prompt, with very short delays between attempts.
    fn bare(&self) -> GenerateOptions {
        let quick = RetryPolicy::default().with_base_delay(Duration::from_millis(1));
        GenerateOptions::new(model(self.dialect)).with_client(self.client.clone()).with_retry(quick)
    }

    fn options(&self) -> GenerateOptions {
        self.bare().with_prompt("What is there?")
    }

    /// Returns the requests, none of which violates a rule of its dialect.
    fn requests(&self) -> Vec<RecordedRequest> {
        let requests = self.server.requests();
        for request in &requests {
            assert_eq!(request.violations, [], "{:?}: {}", self.dialect, request.body);
        }
        requests
    }

    fn statuses(&self) -> Vec<Option<u16>> {
        self.requests().iter().map(|request| request.status).collect()
    }
}

/// Complete or streamed; the result is the same.
#[derive(Clone, Copy, Debug)]
enum Mode {
    Whole,
    Streamed,
}

impl Mode {
    const BOTH: [Self; 2] = [Self::Whole, Self::Streamed];

    async fn run(self, options: GenerateOptions) -> Result<GenerateResult, Error> {
        match self {
            Self::Whole => generate(options).await,
            Self::Streamed => stream(options)?.result().await,
        }
    }
}

/// Returns a current model of the provider. That of Anthropic has a thinking budget, so that the server insists on
/// getting its thinking back.
fn model(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::OpenAiResponses => "gpt-5.2",
        Dialect::AnthropicMessages => "claude-sonnet-4-5",
        Dialect::Gemini => "gemini-3.1-pro-preview",
        Dialect::ChatCompletions => "local-model",
    }
}

fn definition() -> ToolDefinition {
    let path = json!({"type": "string", "description": "The file."});
    let schema = json!({"type": "object", "properties": {"file_path": path}, "required": ["file_path"]});
    ToolDefinition::new("read_file", "Reads a file.", schema).unwrap()
}

/// Returns a tool that echoes the requested file name, and fails for names that start with `no`.
fn read_file() -> ClientTool {
    ClientTool::active(definition(), |arguments, _| async move {
        let path = arguments["file_path"].as_str().unwrap();
        if path.starts_with("no") {
            Err(format!("{path} does not exist"))
        } else {
            Ok(format!("content of {path}"))
        }
    })
}
