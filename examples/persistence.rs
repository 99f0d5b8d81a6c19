//! Persistence: a program is killed during a call; another one resumes its session, rewinds it and forks it.
//!
//! A session survives its process through its journal in a store. Completed calls are not repeated. A call that was running gets
//! a result that says that its effect is unknown, and the model decides how to continue.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use pintle_agent::{ProviderProfile, Session, SessionId};
use pintle_env::LocalEnvironment;
use pintle_llm::Client;
use pintle_providers::Anthropic;
use pintle_store::{FileStore, SessionStore, StoredSession};
use pintle_testkit::{Dialect, Script, ScriptedServer, ServerOptions};

/// Opens the session of a directory, in any process.
async fn open(root: &Path, url: &str) -> Result<Session, Box<dyn std::error::Error>> {
    let client =
        Client::builder().provider(Anthropic::builder("any-key").with_base_url(url).build()?).build()?;
    let env = LocalEnvironment::with_host_env(root, std::env::vars_os())?;
    let store: Arc<dyn SessionStore> = Arc::new(FileStore::open(root.join("store"))?);
    let stored = StoredSession::open_or_create(&store, &SessionId::new("measure")).await?;
    let builder = Session::builder(client, ProviderProfile::anthropic("claude-opus-4-6"), env);
    Ok(stored.attach(builder).build()?)
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The first program, which is killed.
    let mut arguments = std::env::args().skip(2);
    if let (Some(root), Some(url)) = (arguments.next(), arguments.next()) {
        open(Path::new(&root), &url).await?.submit("Measure, then report.").await?;
        return Ok(());
    }
    // A scripted model, so that the example runs offline. Use `Client::from_env()` for a real one.
    let server = ScriptedServer::start(Script::parse(SCRIPT)?, ServerOptions::new()).await?;
    let url = server.base_url(Dialect::AnthropicMessages);
    let root = tempfile::tempdir()?;

    let mut first = Command::new(std::env::current_exe()?);
    first.arg("persistence").arg(root.path()).arg(&url).stdin(Stdio::null()).stdout(Stdio::null());
    let mut first = first.spawn()?;
    while !root.path().join("measured").exists() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    first.kill()?;
    first.wait()?;

    let mut session = open(root.path(), &url).await?;
    let resumed = session.resumed().ok_or("no run was interrupted")?;
    println!("resumed  {}", resumed.await?.text);

    // Both count the entries of the history that are kept.
    let entries = session.history().len();
    println!("then     {}", session.submit("Convert it to feet.").await?.text);
    session.handle().rewind(entries).await?;
    println!("rewound  {}", session.submit("Convert it to metres.").await?.text);
    let fork = session.fork(entries).await?.build()?;
    println!("forked   {}", fork.submit("Convert it to inches.").await?.text);
    fork.close().await;
    session.close().await;
    server.shutdown().await;
    Ok(())
}

/// Responses of the model, each with what the request must contain.
const SCRIPT: &str = include_str!("scripts/persistence.toml");
