//! Environments against the plain programs that do the same without any of our promises.
//!
//! Both sides of a row start processes and wake threads, so that a busy machine disturbs them more than it disturbs
//! a computation. `chrt -r 1` before the command keeps others out of the way.

mod commands;
mod print;
mod remote;
mod search;
mod tree;

use std::path::Path;

use pintle_env::{LocalEnvironment, LocalEnvironmentBuilder};

use crate::{on_a_worker, report::Report, runtime};

/// Measures the rows whose names have `wanted` in them.
pub(crate) fn run(wanted: &str) -> Report {
    let runtime = runtime();
    let mut rows = search::rows(&runtime, wanted);
    rows.extend(commands::rows(&runtime, wanted));
    rows.extend(print::rows(&runtime, wanted));
    rows.extend(remote::rows(&runtime, wanted));
    rows.into()
}

/// A local environment with the variables of this process, in `directory`.
fn local(directory: &Path) -> LocalEnvironmentBuilder {
    LocalEnvironment::builder(directory).host_env(std::env::vars_os())
}
