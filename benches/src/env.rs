//! Environments against the plain programs that do the same without any of our promises.
//!
//! Both sides of a row start processes and wake threads, so that a busy machine disturbs them more than it disturbs
//! a computation. `chrt -r 1` before the command keeps others out of the way.

mod commands;
mod print;
mod remote;
mod search;
mod tree;

use std::{future::Future, path::Path};

use pintle_env::{LocalEnvironment, LocalEnvironmentBuilder};
use tokio::runtime::Runtime;

use crate::measure::Row;

/// Measures the rows whose names have `wanted` in them.
pub(crate) fn run(wanted: &str) -> Vec<Row> {
    let runtime = runtime();
    let mut rows = search::rows(&runtime, wanted);
    rows.extend(commands::rows(&runtime, wanted));
    rows.extend(print::rows(&runtime, wanted));
    rows.extend(remote::rows(&runtime, wanted));
    rows
}

/// The runtime that both sides use.
fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime starts")
}

/// Runs a future where a host runs its tasks: on a thread that also waits for pipes and processes.
fn on_a_worker<T: Send + 'static>(runtime: &Runtime, future: impl Future<Output = T> + Send + 'static) -> T {
    runtime.block_on(runtime.spawn(future)).expect("it does not panic")
}

/// A local environment with the variables of this process, in `directory`.
fn local(directory: &Path) -> LocalEnvironmentBuilder {
    LocalEnvironment::builder(directory).host_env(std::env::vars_os())
}
