//! Whether a session leaves something behind in the long run, and what many of them cost.
//!
//! `soak [--turns N] [--seed N]` plays inputs with tools, failures, steering, interrupts and aborts, drawn from a seed
//! that it prints, and compares memory, descriptors, tasks and processes at the end with those after the warm-up.
//! `soak --sessions N` has so many sessions at work at once in this process, against a server in another one.
#![forbid(unsafe_code)]
#![expect(
    clippy::disallowed_methods,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::wildcard_enum_match_arm,
    reason = "a developer's program: it is a host, starts itself as a server, talks to a terminal and looks at few events"
)]

mod arguments;
#[path = "../wire/chance.rs"]
mod chance;
mod crowd;
mod figures;
mod lane;
#[path = "../it/events/law.rs"]
mod law;
mod model;
mod plot;
mod tally;

use std::process::ExitCode;
use std::time::Instant;

use tempfile::TempDir;
use tokio::task::JoinSet;

use crate::arguments::{Arguments, Mode};
use crate::figures::Figures;
use crate::lane::Lane;
use crate::tally::Tally;

/// Sessions that are played side by side.
const LANES: usize = 4;

/// How often the figures are taken; the first time is the end of the warm-up.
const STAGES: usize = 5;

fn main() -> ExitCode {
    match Arguments::parse(std::env::args().skip(1)).and_then(|arguments| run(&arguments)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start the runtime: {error}"))?;
    runtime.block_on(async {
        match arguments.mode {
            Mode::Turns(turns) => soak(turns, arguments.seed.unwrap_or_else(chance::fresh_seed)).await,
            Mode::Sessions(sessions) => crowd::gather(sessions).await,
            Mode::Serve => crowd::serve().await,
        }
    })
}

/// Plays so many inputs, in stages; nothing may be left between them.
async fn soak(turns: usize, seed: u64) -> Result<(), String> {
    println!("seed {seed}, {turns} inputs in {LANES} lanes");
    let began = Instant::now();
    let server = model::server(seed).await?;
    let root = TempDir::new().map_err(|error| format!("no folder can be made: {error}"))?;
    let mut lanes: Vec<Lane> = (0..LANES).map(|number| Lane::new(number, seed, root.path())).collect();
    let mut tally = Tally::default();
    let mut first = None;
    println!("{}", Figures::HEAD);
    for stage in 1..=STAGES {
        let until = turns * stage / STAGES;
        lanes = play(lanes, &server, until / LANES, &mut tally).await?;
        let figures = Figures::settled(root.path(), first.as_ref()).await;
        println!("{:>8} {figures}", tally.inputs);
        let first = first.get_or_insert_with(|| figures.clone());
        figures.compare(first)?;
    }
    println!("{tally}{:>8.1} s", began.elapsed().as_secs_f64());
    server.shutdown().await;
    Ok(())
}

/// Has every lane play until it has played so many inputs, and end its session.
async fn play(
    lanes: Vec<Lane>,
    server: &pintle_testkit::ScriptedServer,
    until: usize,
    tally: &mut Tally,
) -> Result<Vec<Lane>, String> {
    let mut tasks = JoinSet::new();
    for mut lane in lanes {
        let urls = model::urls(server);
        tasks.spawn(async move {
            let tally = lane.play(&urls, until).await?;
            Ok::<_, String>((lane, tally))
        });
    }
    let mut lanes = Vec::new();
    while let Some(played) = tasks.join_next().await {
        let (lane, played) = played.map_err(|error| format!("a lane broke: {error}"))??;
        lanes.push(lane);
        tally.add(&played);
    }
    Ok(lanes)
}
