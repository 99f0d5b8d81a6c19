//! Hot paths, one per argument, each with a fixed amount of work: `cargo xtask callgrind` counts their instructions.
//!
//! A path runs on one thread and speaks to no other process, so that the same build counts nearly the same every time.
#![forbid(unsafe_code)]
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::expect_used,
    reason = "a developer's program that talks to a terminal; its own inputs are valid or it must stop"
)]

mod answer;
mod patch;
mod session;
mod truncate;

use std::process::ExitCode;

/// What is counted, by name.
const PATHS: &[(&str, fn())] = &[
    ("accumulate", answer::accumulate),
    ("encode-responses", answer::encode_responses),
    ("decode-responses", answer::decode_responses),
    ("decode-anthropic", answer::decode_anthropic),
    ("decode-chat", answer::decode_chat),
    ("decode-gemini", answer::decode_gemini),
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
                eprintln!("error: no path is called `{wanted}`; without an argument they are listed");
                return ExitCode::FAILURE;
            }
        },
    }
    ExitCode::SUCCESS
}

/// A runtime on this thread.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime starts").block_on(future)
}
