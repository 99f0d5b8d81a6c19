//! The command as a person runs it: the real binary, a real folder, a scripted model in another process.
#![expect(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test is a host, and fails by panicking"
)]

mod approvals;
mod bad_input;
mod confinement;
mod demo;
mod environments;
mod hard;
mod hardening;
mod lab;
mod models;
mod output;
mod patch;
mod profiles;
mod prompt;
mod prose;
mod questions;
mod serving;
mod spending;
mod stopping;
mod subagents;
mod terminal;
mod timeouts;
mod tools;
mod wire;
mod work;
