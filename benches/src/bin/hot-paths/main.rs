//! Hot paths with a fixed amount of work, one per argument: `cargo xtask callgrind` counts their instructions.
//!
//! A path talks to no other process, so that the count of a build is almost constant.
#![forbid(unsafe_code)]
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::expect_used,
    reason = "a developer's program with a terminal; its own inputs are valid, or it must stop"
)]

mod patch;
mod response;
mod session;
mod truncate;

use std::process::ExitCode;

/// Paths by name.
const PATHS: &[(&str, fn())] = &[
    ("accumulate", response::accumulate),
    ("encode-responses", response::encode_responses),
    ("decode-responses", response::decode_responses),
    ("decode-anthropic", response::decode_anthropic),
    ("decode-chat", response::decode_chat),
    ("decode-gemini", response::decode_gemini),
    ("patch", patch::plan_hunks),
    ("rounds-short", session::short),
    ("rounds-long", session::long),
    ("truncate", truncate::long_output),
];

fn main() -> ExitCode {
    let wanted = std::env::args().nth(1);
    match wanted.as_deref() {
        None => PATHS.iter().for_each(|(name, _)| println!("{name}")),
        Some(wanted) => match PATHS.iter().find(|(name, _)| *name == wanted) {
            Some((_, path)) => path(),
            None => {
                eprintln!("error: unknown path `{wanted}`; run without an argument to list them");
                return ExitCode::FAILURE;
            }
        },
    }
    ExitCode::SUCCESS
}

/// Runs a future on the current thread.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime starts").block_on(future)
}
