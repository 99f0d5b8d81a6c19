//! Replay in a test: what a session did yesterday is checked today, without a model and without its files.
//!
//! A session is a function of its inputs: what the host said, what the models answered, what tools gave. A record has
//! them all. Replaying it gives every event, request and outcome again, in milliseconds, and tells the first input that
//! leads to another request than it did.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;

use pintle_agent::{EventKind, OutcomeStatus, ProviderProfile, Record, ReplayError, Session};
use pintle_env::LocalEnvironment;
use pintle_llm::Client;
use pintle_providers::Anthropic;
use pintle_testkit::{Dialect, Script, ScriptedServer, ServerOptions};

/// Yesterday: a session does something, and its record goes to a file, one line for each input.
async fn work(record: &Path) -> Result<(), Box<dyn std::error::Error>> {
    // The model is a script, so that this runs offline. Yours comes from `Client::from_env()`.
    let server = ScriptedServer::start(Script::parse(SCRIPT)?, ServerOptions::new()).await?;
    let provider =
        Anthropic::builder("any-key").base_url(server.base_url(Dialect::AnthropicMessages)).build()?;
    let client = Client::builder().provider(provider).build()?;
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("port"), "8080\n")?;
    let env = LocalEnvironment::with_host_env(folder.path(), std::env::vars_os())?;
    let profile = ProviderProfile::anthropic("claude-opus-4-6");
    let session = Session::builder(client, profile, Arc::new(env)).record(true).build()?;

    println!("work: {:?}", session.submit("Move the server to port 9090.").await?.status);
    let handle = session.handle();
    session.close().await;
    handle.record()?.write(File::create(record)?)?;
    server.shutdown().await;
    Ok(())
}

/// Today: what a test of yours would ask of the record. The model, the server and the folder are gone.
fn check(record: &Record) -> Result<(), Box<dyn std::error::Error>> {
    let replay = record.replay()?;
    println!("replay: {} requests, state {:?}", replay.requests.len(), replay.state);

    let statuses: Vec<OutcomeStatus> = replay.outcomes.iter().map(|(_, outcome)| outcome.status).collect();
    assert_eq!(statuses, [OutcomeStatus::Completed]);

    // The rule of this product: no file is changed that the agent has not looked at.
    let mut calls = replay.events.iter().filter_map(|event| match &event.kind {
        EventKind::ToolCallStart { tool_name, .. } => Some(tool_name.as_str()),
        _ => None,
    });
    assert!(calls.any(|tool| tool == "read_file") && calls.any(|tool| tool == "edit_file"));
    println!("replay: the file was read before it was changed");
    Ok(())
}

/// Would another prompt, or another tool, have changed what the model was sent? It would, and from here on.
fn check_a_new_prompt(record: &Record) -> Result<(), Box<dyn std::error::Error>> {
    match record.replay_with(|context| context.system_prompt.push_str("\nAnswer in verse.")) {
        Ok(_) => println!("new prompt: every request is as it was"),
        // It holds the fingerprints of both requests as well.
        Err(ReplayError::Diverged(at)) => {
            println!("new prompt: another request follows from input {}, {}", at.input, at.kind);
        }
        Err(other) => return Err(other.into()),
    }
    Ok(())
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let records = tempfile::tempdir()?;
    let path = records.path().join("session.jsonl");
    work(&path).await?;
    let record = Record::read(BufReader::new(File::open(&path)?))?;
    check(&record)?;
    check_a_new_prompt(&record)?;
    Ok(())
}

/// What the model says, and what it must have been told before it says it.
const SCRIPT: &str = r#"
name = "port"

[[turn]]
call = [{ tool = "read_file", arguments = { file_path = "port" } }]

[[turn]]
expect = [{ call = 0, contains = "8080" }]
call = [{ tool = "edit_file", arguments = { file_path = "port", old_string = "8080", new_string = "9090" } }]

[[turn]]
expect = [{ call = 0, is_error = false }]
text = "The server listens on 9090 now."
"#;
