//! Many sessions at once in one process, against a server in another.

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

/// How long a session may wait for its turn among the others.
const PATIENCE: Duration = Duration::from_secs(120);

/// How often the memory is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// What the sessions of one dialect share, as those of a host would.
type Host = (Client, ProviderProfile);

/// There is no folder to look at: the sessions work in memory.
const NOWHERE: &str = "/nonexistent";

/// The server, which ends when its standard input does.
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
        // It ends by itself; should it not, the end of this process ends its input.
        let _ = self.child.wait();
    }
}

/// Serves until standard input ends.
pub(crate) async fn serve() -> Result<(), String> {
    let server = model::start(script()).await?;
    for (_, url) in model::urls(&server) {
        println!("{url}");
    }
    let ended = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new())).await;
    server.shutdown().await;
    ended.map_err(|error| error.to_string())?.map(|_| ()).map_err(|error| error.to_string())
}

/// Slow enough that all of them are at it at once.
fn script() -> Script {
    let text = "one word after the other, and now and then a file to be read. ".repeat(8);
    let look = Turn::text(text.clone()).with_call(Call::new("read_file", json!({ "file_path": "a.txt" })));
    Script::new("crowd")
        .with_turn(look.clone().with_pause_ms(20))
        .with_turn(look.with_pause_ms(20))
        .with_turn(Turn::text(text).with_pause_ms(20))
}

/// Has so many sessions at work at once, and prints what they take.
pub(crate) async fn gather(sessions: usize) -> Result<(), String> {
    let server = Server::start()?;
    let hosts: Vec<Host> = server
        .urls
        .iter()
        .map(|(dialect, url)| Ok((model::client(*dialect, url)?, model::profile(*dialect))))
        .collect::<Result<_, String>>()?;
    // What every session shares is made before anything is measured.
    for number in 0..hosts.len() {
        one(session(number, &hosts)?, number).await?.1.close().await;
    }
    let before = Figures::now(NOWHERE);
    // The second wave shows what of the first one's memory is kept by the allocator only.
    for number in 1..=2 {
        println!("wave {number}");
        wave(sessions, &hosts, &before).await?;
    }
    drop(hosts);
    let after = Figures::settled(NOWHERE, Some(&before)).await;
    println!("{}\n  before {before}\n   after {after}", Figures::HEAD);
    Ok(())
}

/// So many sessions at once, to the end of them all.
async fn wave(sessions: usize, hosts: &[Host], before: &Figures) -> Result<(), String> {
    let began = Instant::now();
    let open: Vec<Session> = (1..=sessions).map(|number| session(number, hosts)).collect::<Result<_, _>>()?;
    let built = Figures::now(NOWHERE);
    let mut running = JoinSet::new();
    for (number, session) in open.into_iter().enumerate() {
        running.spawn(one(session, number + 1));
    }
    let (mut waits, mut done, mut peak) = (Vec::new(), Vec::new(), built.rss_kib);
    let mut look = tokio::time::interval(LOOK);
    while !running.is_empty() {
        tokio::select! {
            _ = look.tick() => peak = peak.max(Figures::now(NOWHERE).rss_kib),
            Some(ended) = running.join_next() => {
                let (wait, session) = ended.map_err(|error| format!("a session broke: {error}"))??;
                waits.push(wait);
                done.push(session);
            }
        }
    }
    let wall = began.elapsed();
    let at_rest = Figures::now(NOWHERE);
    futures_util::future::join_all(done.into_iter().map(Session::close)).await;
    let after = Figures::now(NOWHERE);

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

fn session(number: usize, hosts: &[Host]) -> Result<Session, String> {
    let (client, profile) = hosts.get(number % hosts.len().max(1)).ok_or("there is no client")?;
    let env = MemoryEnvironment::new("/project").with_file("/project/a.txt", "a\n".repeat(50));
    Session::builder(client.clone(), profile.clone(), Arc::new(env))
        .build()
        .map_err(|error| format!("no session can be built: {error}"))
}

/// Gives a session its input and waits for the end.
async fn one(session: Session, number: usize) -> Result<(Duration, Session), String> {
    let began = Instant::now();
    let run = tokio::time::timeout(PATIENCE, session.submit(format!("Task {number}")).outcome()).await;
    let outcome = run.map_err(|_| format!("session {number} starves"))?.map_err(|error| error.to_string())?;
    match outcome {
        Outcome { status: OutcomeStatus::Completed, tool_calls: 2, .. } => Ok((began.elapsed(), session)),
        other => Err(format!("session {number} ended otherwise: {other:?}")),
    }
}
