//! Benchmarks of Pintle, each the ratio of two measurements in one run.
//!
//! `cargo xtask bench [NAME [ROW]] [--write]` runs all suites, or the one with that name, in release; with `ROW`, only
//! the rows whose names contain it. With `--write` the results replace those on the page. With `--figures` the headline
//! figures are also printed, one per line.
#![forbid(unsafe_code)]
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::expect_used,
    reason = "a developer's program with a terminal; its own inputs are valid, or it must stop"
)]

#[path = "../baseline/baseline.rs"]
mod baseline;
mod curve;
mod dialect;
#[cfg(feature = "durable")]
mod durable;
mod env;
mod goals;
mod governance;
mod growth;
mod measure;
mod memory;
mod model;
mod page;
mod patch;
mod plan;
#[cfg(feature = "protocols")]
mod protocols;
mod report;
mod round;
#[cfg(feature = "server")]
mod server;
mod sessions;
mod shipped;
mod start;
mod status;
mod store;
mod stream;
mod terminal;

use std::{future::Future, path::PathBuf, process::ExitCode};

use tokio::runtime::Runtime;

use crate::report::Report;

/// A group of rows.
struct Suite {
    name: &'static str,
    /// Measures the rows whose names contain this text.
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
    Suite { name: "store", run: store::run },
    Suite { name: "governance", run: governance::run },
    #[cfg(feature = "protocols")]
    Suite { name: "protocols", run: protocols::run },
    #[cfg(feature = "server")]
    Suite { name: "server", run: server::run },
    #[cfg(feature = "durable")]
    Suite { name: "durable", run: durable::run },
    Suite { name: "terminal", run: terminal::run },
];

fn main() -> ExitCode {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    status::open_many_files();
    // This program is also its own helper, in a separate process.
    if let Some((first, rest)) = words.split_first() {
        let helped = match first.as_str() {
            model::SERVE => Some(model::serve(rest.first().map(PathBuf::from))),
            start::WATCH => Some(start::watch(rest)),
            memory::HOLD => Some(memory::print_growth(rest)),
            #[cfg(feature = "protocols")]
            protocols::SERVE => Some(protocols::serve()),
            #[cfg(feature = "server")]
            server::SERVE => Some(server::serve(rest)),
            #[cfg(feature = "server")]
            server::BARE => Some(server::bare(rest)),
            #[cfg(feature = "server")]
            server::PLAIN => Some(baseline::serve_streams()),
            #[cfg(feature = "server")]
            server::SUBSCRIBE => Some(server::subscribe(rest)),
            store::READ => Some(store::print_memory(rest)),
            _ => None,
        };
        if let Some(helped) = helped {
            return exit_code(helped);
        }
    }
    let has_flag = |flag: &str| words.iter().any(|word| word == flag);
    let (write, print_figures) = (has_flag("--write"), has_flag("--figures"));
    words.retain(|word| !["--write", "--figures"].contains(&word.as_str()));
    let (name, row) = (words.first(), words.get(1).map_or("", String::as_str));
    let is_wanted = |suite: &&Suite| name.is_none_or(|name| name == suite.name);
    let suites: Vec<&Suite> = SUITES.iter().filter(is_wanted).collect();
    if suites.is_empty() {
        let names: Vec<&str> = SUITES.iter().map(|suite| suite.name).collect();
        let name = name.map_or("", String::as_str);
        eprintln!("error: unknown suite `{name}`; the suites are: {}", names.join(", "));
        return ExitCode::FAILURE;
    }
    if write && !row.is_empty() {
        eprintln!("error: `--write` needs complete suites; it cannot be combined with a row");
        return ExitCode::FAILURE;
    }
    for suite in suites {
        println!("== {}", suite.name);
        let report = (suite.run)(row);
        print!("{}", report.markdown());
        if print_figures {
            print!("{}", report.figure_lines());
        }
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

/// Returns the runtime that both sides use.
fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime starts")
}

/// Runs a future on a worker thread, like the tasks of an application.
fn on_a_worker<T: Send + 'static>(runtime: &Runtime, future: impl Future<Output = T> + Send + 'static) -> T {
    runtime.block_on(runtime.spawn(future)).expect("it does not panic")
}
