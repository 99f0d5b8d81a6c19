//! What Pintle costs, each time as a ratio of two things that are measured in one run.
//!
//! `cargo xtask bench [NAME [ROW]] [--write]` runs all suites, or the one with that name, in release; of its rows
//! those that have `ROW` in their name. With `--write`, what is found replaces what the page said of these suites.
#![forbid(unsafe_code)]
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::expect_used,
    reason = "a developer's program that talks to a terminal; its own inputs are valid or it must stop"
)]

mod curve;
mod dialect;
mod env;
#[path = "../floor/floor.rs"]
mod floor;
mod growth;
mod lab;
mod measure;
mod memory;
mod model;
mod page;
mod patch;
mod plan;
mod report;
mod round;
mod start;
mod status;
mod stream;

use std::{future::Future, path::PathBuf, process::ExitCode};

use tokio::runtime::Runtime;

use crate::report::Report;

/// Some rows that belong together.
struct Suite {
    name: &'static str,
    /// Measures the rows whose names have this in them.
    run: fn(&str) -> Report,
}

const SUITES: &[Suite] = &[
    Suite { name: "round", run: round::run },
    Suite { name: "start", run: start::run },
    Suite { name: "stream", run: stream::run },
    Suite { name: "memory", run: memory::run },
    Suite { name: "growth", run: growth::run },
    Suite { name: "env", run: env::run },
    Suite { name: "patch", run: patch::run },
];

fn main() -> ExitCode {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    status::open_many_files();
    // This program is its own helper, in a process apart.
    if let Some((first, rest)) = words.split_first() {
        let helped = match first.as_str() {
            model::SERVE => Some(model::serve(rest.first().map(PathBuf::from))),
            start::WATCH => Some(start::watch(rest)),
            memory::HOLD => Some(memory::tell(rest)),
            _ => None,
        };
        if let Some(helped) = helped {
            return exit_code(helped);
        }
    }
    let given = words.len();
    words.retain(|word| word != "--write");
    let write = words.len() < given;
    let (name, row) = (words.first(), words.get(1).map_or("", String::as_str));
    let is_wanted = |suite: &&Suite| name.is_none_or(|name| name == suite.name);
    let suites: Vec<&Suite> = SUITES.iter().filter(is_wanted).collect();
    if suites.is_empty() {
        let names: Vec<&str> = SUITES.iter().map(|suite| suite.name).collect();
        let name = name.map_or("", String::as_str);
        eprintln!("error: no suite is called `{name}`; the suites are: {}", names.join(", "));
        return ExitCode::FAILURE;
    }
    if write && !row.is_empty() {
        eprintln!(
            "error: the page has whole suites: `--write` goes with a suite's name, and not with a row's"
        );
        return ExitCode::FAILURE;
    }
    for suite in suites {
        println!("== {}", suite.name);
        let report = (suite.run)(row);
        print!("{}", report.markdown());
        if write && let Err(error) = page::write(suite.name, &report) {
            eprintln!("error: the page cannot be written: {error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn exit_code(result: std::io::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The runtime that both sides use.
fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime starts")
}

/// Runs a future where a host runs its tasks: on a thread that also waits for pipes and processes.
fn on_a_worker<T: Send + 'static>(runtime: &Runtime, future: impl Future<Output = T> + Send + 'static) -> T {
    runtime.block_on(runtime.spawn(future)).expect("it does not panic")
}
