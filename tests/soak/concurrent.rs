//! Many concurrent sessions in one process, with a server in another one.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use pintle_agent::{Outcome, OutcomeStatus, ProviderProfile, Session};
use pintle_env::MemoryEnvironment;
use pintle_llm::Client;
use pintle_testkit::{Call, Dialect, Script, Turn};
use serde_json::json;
use tokio::task::JoinSet;

use crate::figures::Figures;
use crate::model;

/// Time limit of a session.
const TIME_LIMIT: Duration = Duration::from_secs(120);

/// Interval at which memory is sampled.
const LOOK: Duration = Duration::from_millis(50);

/// The client and profile of one dialect, shared by its sessions as in an application.
type SharedSetup = (Client, ProviderProfile);

/// There are no files to count: the sessions work in memory.
const NO_DIRECTORY: &str = "/nonexistent";

/// The server process, which exits when its standard input is closed.
struct Server {
    child: Child,
    input: Option<ChildStdin>,
    urls: Vec<(Dialect, String)>,
}

impl Server {
    fn start() -> Result<Self, String> {
        let program =
            std::env::current_exe().map_err(|error| format!("this program is not found: {error}"))?;
        let mut child = Command::new(program)
            .arg("serve")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("the server cannot start: {error}"))?;
        let input = child.stdin.take();
        let output = child.stdout.take().ok_or("the server has no output")?;
        let mut urls = Vec::new();
        for (dialect, line) in Dialect::ALL.into_iter().zip(BufReader::new(output).lines()) {
            urls.push((
                dialect,
                line.map_err(|error| format!("the server does not say where it is: {error}"))?,
            ));
        }
        Ok(Self { child, input, urls })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.input.take());
        // It exits on its own; if not, the end of this process closes its input.
        let _ = self.child.wait();
    }
}

/// Serves until standard input is closed.
pub(crate) async fn serve() -> Result<(), String> {
    let server = model::start(script()).await?;
    for (_, url) in model::urls(&server) {
        println!("{url}");
    }
    let ended = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new())).await;
    server.shutdown().await;
    ended.map_err(|error| error.to_string())?.map(|_| ()).map_err(|error| error.to_string())
}

/// Slow enough for all sessions to be active at the same time.
fn script() -> Script {
    let text = "one word after the other, and now and then a file to be read. ".repeat(8);
    let look = Turn::text(text.clone()).with_call(Call::new("read_file", json!({ "file_path": "a.txt" })));
    Script::new("concurrent")
        .with_turn(look.clone().with_pause_ms(20))
        .with_turn(look.with_pause_ms(20))
        .with_turn(Turn::text(text).with_pause_ms(20))
}

/// Runs concurrent sessions and prints their cost.
pub(crate) async fn run_sessions(sessions: usize) -> Result<(), String> {
    let server = Server::start()?;
    let setups: Vec<SharedSetup> = server
        .urls
        .iter()
        .map(|(dialect, url)| Ok((model::client(*dialect, url)?, model::profile(*dialect))))
        .collect::<Result<_, String>>()?;
    // Initialize everything that sessions share before measuring.
    for number in 0..setups.len() {
        one(session(number, &setups)?, number).await?.1.close().await;
    }
    let before = Figures::now(NO_DIRECTORY);
    // The second wave shows how much memory of the first one was only kept by the allocator.
    for number in 1..=2 {
        println!("wave {number}");
        wave(sessions, &setups, &before).await?;
    }
    drop(setups);
    let after = Figures::settled(NO_DIRECTORY, Some(&before)).await;
    println!("{}\n  before {before}\n   after {after}", Figures::HEAD);
    Ok(())
}

/// Runs one wave of concurrent sessions.
async fn wave(sessions: usize, setups: &[SharedSetup], before: &Figures) -> Result<(), String> {
    let began = Instant::now();
    let open: Vec<Session> =
        (1..=sessions).map(|number| session(number, setups)).collect::<Result<_, _>>()?;
    let built = Figures::now(NO_DIRECTORY);
    let mut running = JoinSet::new();
    for (number, session) in open.into_iter().enumerate() {
        running.spawn(one(session, number + 1));
    }
    let (mut waits, mut done, mut peak) = (Vec::new(), Vec::new(), built.rss_kib);
    let mut look = tokio::time::interval(LOOK);
    while !running.is_empty() {
        tokio::select! {
            _ = look.tick() => peak = peak.max(Figures::now(NO_DIRECTORY).rss_kib),
            Some(ended) = running.join_next() => {
                let (wait, session) = ended.map_err(|error| format!("a session broke: {error}"))??;
                waits.push(wait);
                done.push(session);
            }
        }
    }
    let wall = began.elapsed();
    let at_rest = Figures::now(NO_DIRECTORY);
    futures_util::future::join_all(done.into_iter().map(Session::close)).await;
    let after = Figures::now(NO_DIRECTORY);

    waits.sort_unstable();
    let each = |kib: u64| kib.saturating_sub(before.rss_kib) / sessions.max(1) as u64;
    println!("{sessions} sessions at once, 3 model calls and 2 tool calls each, all completed");
    println!("{:>9.1} s wall", wall.as_secs_f64());
    for (name, share) in [("first", 0), ("median", 50), ("last", 100)] {
        let wait = waits.get((waits.len().saturating_sub(1)) * share / 100).copied().unwrap_or_default();
        println!("{:>9.1} s {name}", wait.as_secs_f64());
    }
    println!("{:>9} KiB before", before.rss_kib);
    for (name, kib) in [("built", built.rss_kib), ("most", peak), ("at rest, open", at_rest.rss_kib)] {
        println!("{kib:>9} KiB {name}: {} KiB each", each(kib));
    }
    println!("{:>9} KiB when all are closed", after.rss_kib);
    Ok(())
}

fn session(number: usize, setups: &[SharedSetup]) -> Result<Session, String> {
    let (client, profile) = setups.get(number % setups.len().max(1)).ok_or("there is no client")?;
    let env = MemoryEnvironment::new("/project").with_file("/project/a.txt", "a\n".repeat(50));
    Session::builder(client.clone(), profile.clone(), Arc::new(env))
        .build()
        .map_err(|error| format!("no session can be built: {error}"))
}

/// Submits an input and waits for the outcome.
async fn one(session: Session, number: usize) -> Result<(Duration, Session), String> {
    let began = Instant::now();
    let run = tokio::time::timeout(TIME_LIMIT, session.submit(format!("Task {number}")).outcome()).await;
    let outcome = run.map_err(|_| format!("session {number} starves"))?.map_err(|error| error.to_string())?;
    match outcome {
        Outcome { status: OutcomeStatus::Completed, tool_calls: 2, .. } => Ok((began.elapsed(), session)),
        other => Err(format!("session {number} ended otherwise: {other:?}")),
    }
}
