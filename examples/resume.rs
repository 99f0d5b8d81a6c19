//! Resume: a program is killed during a tool call, and another one resumes its session.
//!
//! A session survives its process through its journal: a file with one line per input, written before the session acts on
//! it. Any process with the file can resume. Completed calls are not repeated. A call that was running gets a result
//! that says that its effect is unknown, and the model decides how to continue.

use std::fs::{File, OpenOptions};
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use pintle_agent::{EventKind, JsonLines, Outcome, ProviderProfile, Record, Session, SessionBuilder};
use pintle_env::LocalEnvironment;
use pintle_llm::Client;
use pintle_providers::Anthropic;
use pintle_testkit::{Dialect, Script, ScriptedServer, ServerOptions};

/// Prompt.
const TASK: &str = "Measure, then report.";

/// Working directory with the journal next to it.
#[derive(Clone, Debug)]
pub(crate) struct Workspace {
    pub(crate) directory: PathBuf,
    pub(crate) journal: PathBuf,
}

impl Workspace {
    pub(crate) fn create(root: &Path) -> std::io::Result<Self> {
        let workspace = Self { directory: root.join("work"), journal: root.join("session.jsonl") };
        std::fs::create_dir_all(&workspace.directory)?;
        Ok(workspace)
    }

    /// Returns the builder that both programs start with.
    fn builder(&self, url: &str) -> Result<SessionBuilder, Box<dyn std::error::Error>> {
        let client =
            Client::builder().provider(Anthropic::builder("any-key").with_base_url(url).build()?).build()?;
        let env = LocalEnvironment::with_host_env(&self.directory, std::env::vars_os())?;
        Ok(Session::builder(client, ProviderProfile::anthropic("claude-opus-4-6"), env))
    }
}

/// First program: runs the session with a journal until it is done or killed.
async fn run_first(workspace: &Workspace, url: &str) -> Result<(), Box<dyn std::error::Error>> {
    let session =
        workspace.builder(url)?.journal(JsonLines::new(File::create(&workspace.journal)?)).build()?;
    session.submit(TASK).await?;
    session.close().await;
    Ok(())
}

/// Starts the first program as a separate process.
pub(crate) fn start(program: &Path, root: &Path, url: &str) -> std::io::Result<Child> {
    let mut command = Command::new(program);
    command.args(["resume", "first"]).arg(root).arg(url);
    command.stdin(Stdio::null()).stdout(Stdio::null()).spawn()
}

/// Second program: resumes from the journal. Returns the outcome of the interrupted run, if any, and the calls that were
/// running.
pub(crate) async fn resume(
    workspace: &Workspace,
    url: &str,
) -> Result<(Option<Outcome>, Vec<String>), Box<dyn std::error::Error>> {
    let record = Record::read(BufReader::new(File::open(&workspace.journal)?))?;
    // The last line may be incomplete. Rewriting the file leaves only complete lines to append to.
    record.write(File::create(&workspace.journal)?)?;
    let journal = OpenOptions::new().append(true).open(&workspace.journal)?;
    let mut session = workspace.builder(url)?.resume(record).journal(JsonLines::new(journal)).build()?;
    let mut events = session.events();
    let outcome = match session.resumed() {
        Some(run) => Some(run.await?),
        None => None,
    };
    session.close().await;
    let mut running = Vec::new();
    while let Some(event) = events.next().await {
        if let EventKind::SessionResumed { interrupted, .. } = event.kind {
            running = interrupted;
        }
    }
    Ok((outcome, running))
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(2);
    if arguments.next().as_deref() == Some("first") {
        let (Some(root), Some(url)) = (arguments.next(), arguments.next()) else {
            return Err("expected a directory and a URL".into());
        };
        return run_first(&Workspace::create(Path::new(&root))?, &url).await;
    }
    // A scripted model, so that the example runs offline. Use `Client::from_env()` for a real one.
    let server = ScriptedServer::start(Script::parse(SCRIPT)?, ServerOptions::new()).await?;
    let url = server.base_url(Dialect::AnthropicMessages);
    let root = tempfile::tempdir()?;
    let workspace = Workspace::create(root.path())?;

    let mut first = start(&std::env::current_exe()?, root.path(), &url)?;
    while !workspace.directory.join("measured").exists() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // SIGKILL leaves the process no time to react.
    first.kill()?;
    first.wait()?;
    println!("first: killed during a call");

    let (outcome, interrupted) = resume(&workspace, &url).await?;
    println!("second: {} call was running and is not repeated", interrupted.len());
    println!("second: {}", outcome.ok_or("a run was interrupted")?.text);
    let measured = std::fs::read_to_string(workspace.directory.join("measured"))?;
    println!("measured {} time", measured.lines().count());

    let record = Record::read(BufReader::new(File::open(&workspace.journal)?))?;
    println!("journal: {} requests in total", record.replay()?.requests.len());
    server.shutdown().await;
    Ok(())
}

/// Responses of the model, each with what the request must contain.
const SCRIPT: &str = include_str!("scripts/resume.toml");
