//! Replay: a test checks a recorded session without a model and without its files.
//!
//! A session is a function of its inputs: messages of the application, model responses and tool results. A record contains
//! all of them. Replaying it reproduces every event, request and outcome in milliseconds, and reports the first input that
//! leads to a different request.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use pintle_agent::{EventKind, OutcomeStatus, ProviderProfile, Record, ReplayError, Session};
use pintle_env::LocalEnvironment;
use pintle_llm::Client;
use pintle_providers::Anthropic;
use pintle_testkit::{Dialect, Script, ScriptedServer, ServerOptions};

/// Runs a session and writes its record to a file, one line per input.
async fn record_session(record: &Path) -> Result<(), Box<dyn std::error::Error>> {
    // A scripted model, so that the example runs offline. Use `Client::from_env()` for a real one.
    let server = ScriptedServer::start(Script::parse(SCRIPT)?, ServerOptions::new()).await?;
    let provider =
        Anthropic::builder("any-key").with_base_url(server.base_url(Dialect::AnthropicMessages)).build()?;
    let client = Client::builder().provider(provider).build()?;
    let directory = tempfile::tempdir()?;
    std::fs::write(directory.path().join("port"), "8080\n")?;
    let env = LocalEnvironment::with_host_env(directory.path(), std::env::vars_os())?;
    let profile = ProviderProfile::anthropic("claude-opus-4-6");
    let session = Session::builder(client, profile, env).record(true).build()?;

    println!("session: {:?}", session.submit("Move the server to port 9090.").await?.status);
    let handle = session.handle();
    session.close().await;
    handle.record()?.write(File::create(record)?)?;
    server.shutdown().await;
    Ok(())
}

/// Checks the record as a test would. The model, the server and the directory no longer exist.
fn check(record: &Record) -> Result<(), Box<dyn std::error::Error>> {
    let replay = record.replay()?;
    println!("replay: {} requests, state {:?}", replay.requests.len(), replay.state);

    let statuses: Vec<OutcomeStatus> = replay.outcomes.iter().map(|(_, outcome)| outcome.status).collect();
    assert_eq!(statuses, [OutcomeStatus::Completed]);

    // The rule under test: the agent reads a file before it changes it.
    let mut calls = replay.events.iter().filter_map(|event| match &event.kind {
        EventKind::ToolCallStart { tool_name, .. } => Some(tool_name.as_str()),
        _ => None,
    });
    assert!(calls.any(|tool| tool == "read_file") && calls.any(|tool| tool == "edit_file"));
    println!("replay: the file was read before it was changed");
    Ok(())
}

/// Finds the first request that another prompt would have changed.
fn check_changed_prompt(record: &Record) -> Result<(), Box<dyn std::error::Error>> {
    match record.replay_with(|context| context.system_prompt.push_str("\nAnswer in verse.")) {
        Ok(_) => println!("new prompt: every request is unchanged"),
        // Also has the fingerprints of both requests.
        Err(ReplayError::Diverged(at)) => {
            println!("new prompt: requests differ from input {}, {}", at.input, at.kind);
        }
        Err(other) => return Err(other.into()),
    }
    Ok(())
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let records = tempfile::tempdir()?;
    let path = records.path().join("session.jsonl");
    record_session(&path).await?;
    let record = Record::read(BufReader::new(File::open(&path)?))?;
    check(&record)?;
    check_changed_prompt(&record)?;
    Ok(())
}

/// Responses of the model, each with what the request must contain.
const SCRIPT: &str = include_str!("scripts/replay.toml");
