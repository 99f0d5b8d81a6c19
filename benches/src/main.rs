//! What Pintle costs, each time as a ratio of two things that are measured in one run.
//!
//! `cargo xtask bench [NAME [ROW]]` runs all suites, or the one with that name, in release; of its rows
//! those that have `ROW` in their name.
#![forbid(unsafe_code)]
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::expect_used,
    reason = "a developer's program that talks to a terminal; its own inputs are valid or it must stop"
)]

mod env;
mod measure;
mod patch;

use std::process::ExitCode;

use crate::measure::Row;

/// Some rows that belong together.
struct Suite {
    name: &'static str,
    /// Measures the rows whose names have this in them.
    run: fn(&str) -> Vec<Row>,
}

const SUITES: &[Suite] = &[Suite { name: "patch", run: patch::run }, Suite { name: "env", run: env::run }];

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let (name, row) = (arguments.next(), arguments.next().unwrap_or_default());
    let is_wanted = |suite: &&Suite| name.as_ref().is_none_or(|name| name == suite.name);
    let suites: Vec<&Suite> = SUITES.iter().filter(is_wanted).collect();
    if suites.is_empty() {
        let names: Vec<&str> = SUITES.iter().map(|suite| suite.name).collect();
        let name = name.unwrap_or_default();
        eprintln!("error: no suite is called `{name}`; the suites are: {}", names.join(", "));
        return ExitCode::FAILURE;
    }
    for suite in suites {
        println!("== {}", suite.name);
        measure::print(&(suite.run)(&row));
    }
    ExitCode::SUCCESS
}
