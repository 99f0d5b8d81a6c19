//! Replays a corpus of recorded provider responses to the real adapters, over HTTP on loopback, and compares the
//! results with the manifest of the corpus.
//!
//! `wire DIR [FILTER] [--seed N]`: `DIR` contains `manifest.json` and the recordings, `FILTER` is a part of the names
//! of those to replay. Every response arrives in random pieces; a stream is also replayed with every transport mutation
//! in the manifest. The seed is printed, and the same seed repeats the same pieces.
#![forbid(unsafe_code)]
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a developer's program: it reads the corpus and talks to a terminal"
)]

mod adapter;
mod arguments;
mod events;
mod judge;
mod manifest;
mod mutation;
mod next_turn;
mod outcome;
mod random;
mod recording;
mod report;
mod server;
mod sha256;
mod trial;

use std::process::ExitCode;
use std::sync::Arc;

use tokio::task::JoinSet;

use crate::arguments::Arguments;
use crate::manifest::{Entry, Manifest};
use crate::random::Random;
use crate::recording::Recording;
use crate::report::Report;

/// Number of recordings replayed concurrently.
const AT_A_TIME: usize = 4;

fn main() -> ExitCode {
    let passed = Arguments::parse(std::env::args().skip(1)).and_then(|arguments| run(&arguments));
    match passed {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Returns whether every recording that counts passed.
fn run(arguments: &Arguments) -> Result<bool, String> {
    let manifest = Manifest::read(&arguments.directory)?;
    let entries = manifest.matching(arguments.filter.as_deref())?;
    let seed = arguments.seed.unwrap_or_else(random::fresh_seed);
    println!("{} of {} recordings, seed {seed}", entries.len(), manifest.files.len());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start the runtime: {error}"))?;
    let report = runtime.block_on(play_all(arguments, entries, seed));
    print!("{report}");
    Ok(report.passed())
}

async fn play_all(arguments: &Arguments, entries: Vec<Arc<Entry>>, seed: u64) -> Report {
    let mut report = Report::default();
    let mut running = JoinSet::new();
    let mut waiting = entries.into_iter();
    loop {
        while running.len() < AT_A_TIME {
            let Some(entry) = waiting.next() else { break };
            let recording = Recording::read(&arguments.directory, &entry);
            let random = Random::of(seed, &entry.file);
            // A separate task, so that a panic fails one recording rather than the run.
            let name = Arc::clone(&entry);
            running.spawn(async move { (name, trial::judge(&entry, recording, random).await) });
        }
        match running.join_next().await {
            Some(Ok((entry, verdict))) => report.add(&entry, verdict),
            Some(Err(error)) => report.lost(&error.to_string()),
            None => return report,
        }
    }
}
