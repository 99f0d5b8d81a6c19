//! End-to-end tests of the binary with a real directory and a scripted model in another process.
#![expect(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests use files and processes, and fail by panicking"
)]

#[cfg(feature = "acp")]
mod acp;
mod approvals;
#[cfg(all(feature = "client", feature = "server"))]
mod attach;
mod attacks;
mod audit;
mod bad_input;
mod basics;
mod budget;
mod chat;
#[cfg(feature = "compat")]
mod claude;
mod config;
mod confinement;
mod demo;
mod environments;
#[cfg(feature = "compat")]
mod exec;
mod faults;
mod first_contact;
mod github_action;
mod hangup;
mod hardening;
mod harness;
mod inbox;
mod kills;
#[cfg(feature = "mcp")]
mod mcp;
mod mock_serve;
mod models;
mod output;
mod outside_sandbox;
mod patch;
mod plain;
mod plan;
mod profiles;
mod prompt;
mod protected;
mod questions;
mod rendering;
mod rewind;
mod rules;
#[cfg(feature = "server")]
mod serve;
mod sessions;
mod signals;
mod stress;
mod subagents;
#[cfg(feature = "task")]
mod task;
mod terminal;
mod timeouts;
mod tools;
mod wire;
mod word_wrap;
mod worktree;
