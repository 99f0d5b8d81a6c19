//! The same work written by hand: hyper, tokio and `serde_json`, without code of the measured crates.
#![expect(
    clippy::disallowed_methods,
    reason = "a baseline is a separate program that spawns its own tasks and shells"
)]

mod connection;
mod conversation;
mod events;
#[cfg(feature = "server")]
mod streams;

pub(crate) use self::connection::Connection;
pub(crate) use self::conversation::Conversation;
pub(crate) use self::events::{parse_payloads, payloads};
#[cfg(feature = "server")]
pub(crate) use self::streams::serve_streams;

use std::process::Stdio;

use tokio::process::Command;

/// Runs `/bin/sh -c true` and reads both of its streams.
pub(crate) async fn run_true() -> String {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", "true"]).stdin(Stdio::null());
    let output = command.output().await.expect("the shell runs");
    let text = String::from_utf8_lossy(&output.stdout);
    // As long as the output of the tool, so that both sides send as much.
    format!("{text}[exit code: {}]\n[duration: 1 ms]", output.status.code().unwrap_or(-1))
}
