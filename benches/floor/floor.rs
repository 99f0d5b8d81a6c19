//! What the same work costs by hand: hyper, tokio and `serde_json`, and no code of the crates that are measured.
#![expect(
    clippy::disallowed_methods,
    reason = "a floor is a program of its own: it spawns its tasks and its shells"
)]

mod connection;
mod conversation;
mod events;

pub(crate) use self::connection::Connection;
pub(crate) use self::conversation::Conversation;
pub(crate) use self::events::{parse_payloads, payloads};

use std::process::Stdio;

use tokio::process::Command;

/// Runs `/bin/sh -c true` and reads both of its streams.
pub(crate) async fn run_true() -> String {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", "true"]).stdin(Stdio::null());
    let output = command.output().await.expect("the shell runs");
    let text = String::from_utf8_lossy(&output.stdout);
    // As long as what the tool says of it, so that both sides send as much.
    format!("{text}[exit code: {}]\n[duration: 1 ms]", output.status.code().unwrap_or(-1))
}
