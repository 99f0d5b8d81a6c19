//! Soak test: resource leaks of sessions over time, and the cost of many sessions.
//!
//! `soak [--turns N] [--seed N]` runs inputs with tools, failures, steering, interrupts and aborts, derived from a seed
//! that it prints. It compares memory, descriptors, tasks and processes at the end with those after the warm-up. `soak
//! --sessions N` runs N concurrent sessions in this process, with a server in another one.
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
mod concurrent;
#[path = "../it/events/event_order.rs"]
mod event_order;
mod figures;
mod model;
#[path = "../wire/random.rs"]
mod random;
mod script;
mod tally;
mod worker;

use std::process::ExitCode;
use std::time::Instant;

use tempfile::TempDir;
use tokio::task::JoinSet;

use crate::arguments::{Arguments, Mode};
use crate::figures::Figures;
use crate::tally::Tally;
use crate::worker::Worker;

/// Number of concurrent sessions.
const WORKERS: usize = 4;

/// Number of measurements; the first one is the end of the warm-up.
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
            Mode::Turns(turns) => soak(turns, arguments.seed.unwrap_or_else(random::fresh_seed)).await,
            Mode::Sessions(sessions) => concurrent::run_sessions(sessions).await,
            Mode::Serve => concurrent::serve().await,
        }
    })
}

/// Runs the inputs in stages. Nothing may be left between them.
async fn soak(turns: usize, seed: u64) -> Result<(), String> {
    println!("seed {seed}, {turns} inputs in {WORKERS} workers");
    let began = Instant::now();
    let server = model::server(seed).await?;
    let root = TempDir::new().map_err(|error| format!("no directory can be made: {error}"))?;
    let mut workers: Vec<Worker> =
        (0..WORKERS).map(|number| Worker::new(number, seed, root.path())).collect();
    let mut tally = Tally::default();
    let mut first = None;
    println!("{}", Figures::HEAD);
    for stage in 1..=STAGES {
        let until = turns * stage / STAGES;
        workers = play(workers, &server, until / WORKERS, &mut tally).await?;
        let figures = Figures::settled(root.path(), first.as_ref()).await;
        println!("{:>8} {figures}", tally.inputs);
        let first = first.get_or_insert_with(|| figures.clone());
        figures.compare(first)?;
    }
    println!("{tally}{:>8.1} s", began.elapsed().as_secs_f64());
    server.shutdown().await;
    Ok(())
}

/// Runs every worker until it has played its number of inputs, then ends its session.
async fn play(
    workers: Vec<Worker>,
    server: &pintle_testkit::ScriptedServer,
    until: usize,
    tally: &mut Tally,
) -> Result<Vec<Worker>, String> {
    let mut tasks = JoinSet::new();
    for mut worker in workers {
        let urls = model::urls(server);
        tasks.spawn(async move {
            let tally = worker.play(&urls, until).await?;
            Ok::<_, String>((worker, tally))
        });
    }
    let mut workers = Vec::new();
    while let Some(played) = tasks.join_next().await {
        let (worker, played) = played.map_err(|error| format!("a worker broke: {error}"))??;
        workers.push(worker);
        tally.add(&played);
    }
    Ok(workers)
}
