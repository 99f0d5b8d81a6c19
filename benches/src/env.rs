//! Environments compared with plain programs that do the same work without our guarantees.
//!
//! Both sides of a row start processes and wake threads, so a busy machine disturbs them more than
//! a computation. Prefix the command with `chrt -r 1` to avoid interference.

mod commands;
mod print;
mod remote;
mod search;
mod tree;

use std::path::Path;

use pintle_env::{LocalEnvironment, LocalEnvironmentBuilder};

use crate::{on_a_worker, report::Report, runtime};

/// Measures the rows whose names contain `wanted`.
pub(crate) fn run(wanted: &str) -> Report {
    let runtime = runtime();
    let mut rows = search::rows(&runtime, wanted);
    rows.extend(commands::rows(&runtime, wanted));
    rows.extend(print::rows(&runtime, wanted));
    rows.extend(remote::rows(&runtime, wanted));
    rows.into()
}

/// Returns a builder for a local environment in `directory` with the variables of this process.
fn local(directory: &Path) -> LocalEnvironmentBuilder {
    LocalEnvironment::builder(directory).with_host_env(std::env::vars_os())
}
