//! Resume: a program is killed in the middle of a tool call, and another one goes on with its session.
//!
//! What keeps a session over the death of its program is its journal: a file with a line for each thing that happened,
//! written before anything follows from it. Whoever has the file can go on: calls that had ended are not made again, one
//! that had begun is answered with the truth, which is that nobody knows, and the model sees to the rest.

use std::fs::{File, OpenOptions};
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use pintle_agent::{EventKind, Outcome, ProviderProfile, Record, Session, SessionBuilder};
use pintle_env::LocalEnvironment;
use pintle_llm::Client;
use pintle_providers::Anthropic;
use pintle_testkit::{Dialect, Script, ScriptedServer, ServerOptions};

/// What the model is asked for.
const TASK: &str = "Measure, then report.";

/// A folder to work in, and the journal beside it.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) folder: PathBuf,
    pub(crate) journal: PathBuf,
}

impl Place {
    pub(crate) fn below(root: &Path) -> std::io::Result<Self> {
        let place = Self { folder: root.join("work"), journal: root.join("session.jsonl") };
        std::fs::create_dir_all(&place.folder)?;
        Ok(place)
    }

    /// What both programs begin with.
    fn builder(&self, url: &str) -> Result<SessionBuilder, Box<dyn std::error::Error>> {
        let client =
            Client::builder().provider(Anthropic::builder("any-key").base_url(url).build()?).build()?;
        let env = LocalEnvironment::with_host_env(&self.folder, std::env::vars_os())?;
        Ok(Session::builder(client, ProviderProfile::anthropic("claude-opus-4-6"), Arc::new(env)))
    }
}

/// The first program: it works, with a journal, until it is done or dies.
async fn host(place: &Place, url: &str) -> Result<(), Box<dyn std::error::Error>> {
    let session = place.builder(url)?.journal(File::create(&place.journal)?).build()?;
    session.submit(TASK).await?;
    session.close().await;
    Ok(())
}

/// That program as a process of its own.
pub(crate) fn start(program: &Path, root: &Path, url: &str) -> std::io::Result<Child> {
    let mut command = Command::new(program);
    command.args(["resume", "host"]).arg(root).arg(url);
    command.stdin(Stdio::null()).stdout(Stdio::null()).spawn()
}

/// The second program: it goes on from the journal. Gives the outcome of the run that was under way, if one was, and the
/// calls that the first program had begun and not ended.
pub(crate) async fn go_on(
    place: &Place,
    url: &str,
) -> Result<(Option<Outcome>, Vec<String>), Box<dyn std::error::Error>> {
    let record = Record::read(BufReader::new(File::open(&place.journal)?))?;
    // Death may have cut the last line. Written anew, the file ends with a whole one, and can be appended to.
    record.write(File::create(&place.journal)?)?;
    let journal = OpenOptions::new().append(true).open(&place.journal)?;
    let mut session = place.builder(url)?.resume(record).journal(journal).build()?;
    let mut events = session.events();
    let outcome = match session.resumed() {
        Some(run) => Some(run.await?),
        None => None,
    };
    session.close().await;
    let mut cut = Vec::new();
    while let Some(event) = events.next().await {
        if let EventKind::SessionResumed { interrupted, .. } = event.kind {
            cut = interrupted;
        }
    }
    Ok((outcome, cut))
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(2);
    if arguments.next().as_deref() == Some("host") {
        let (Some(root), Some(url)) = (arguments.next(), arguments.next()) else {
            return Err("expected a folder and an address".into());
        };
        return host(&Place::below(Path::new(&root))?, &url).await;
    }
    // The model is a script, so that this runs offline. Yours comes from `Client::from_env()`.
    let server = ScriptedServer::start(Script::parse(SCRIPT)?, ServerOptions::new()).await?;
    let url = server.base_url(Dialect::AnthropicMessages);
    let root = tempfile::tempdir()?;
    let place = Place::below(root.path())?;

    let mut first = start(&std::env::current_exe()?, root.path(), &url)?;
    while !place.folder.join("measured").exists() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // SIGKILL: it has not the time to say anything.
    first.kill()?;
    first.wait()?;
    println!("first: killed in the middle of a call");

    let (outcome, interrupted) = go_on(&place, &url).await?;
    println!("second: {} call was under way, and is not made again", interrupted.len());
    println!("second: {}", outcome.ok_or("a run was under way")?.text);
    let measured = std::fs::read_to_string(place.folder.join("measured"))?;
    println!("measured {} time", measured.lines().count());

    let record = Record::read(BufReader::new(File::open(&place.journal)?))?;
    println!("the journal of both: {} requests", record.replay()?.requests.len());
    server.shutdown().await;
    Ok(())
}

/// What the model says, and what it must have been told before it says it.
const SCRIPT: &str = r#"
name = "measure"

[[turn]]
call = [{ tool = "shell", arguments = { command = "echo 42 >>measured; sleep 1000", timeout_ms = 600000 } }]

[[turn]]
expect = [{ call = 0, is_error = true, contains = "Nobody knows whether it had its effect" }]
call = [{ tool = "read_file", arguments = { file_path = "measured" } }]

[[turn]]
expect = [{ call = 0, contains = "42" }]
text = "It had measured before it was cut off: 42."
"#;
