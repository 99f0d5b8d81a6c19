//! The two smoke tests: section 9.13 of the loop specification and section 8.10 of the client specification.
//!
//! `smoke` runs both against every provider whose key is in the environment and prints SKIPPED for the others. `smoke
//! --offline` runs the same steps and checks with the scripted server, in each dialect.
#![forbid(unsafe_code)]
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::wildcard_enum_match_arm,
    reason = "a developer's program: it is a host, talks to a terminal and looks at few events"
)]

mod calls;
mod check;
mod scripts;
mod session;
mod target;

use std::process::ExitCode;

use pintle_testkit::Dialect;

use crate::check::Checked;
use crate::target::Target;

const USAGE: &str = "usage: smoke [--offline]";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let offline = match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] => false,
        ["--offline"] => true,
        other => {
            eprintln!("error: `{}` is not understood; {USAGE}", other.join(" "));
            return ExitCode::FAILURE;
        }
    };
    match run(offline) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the tests. Returns whether every step passed.
fn run(offline: bool) -> Result<bool, String> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start the runtime: {error}"))?;
    runtime.block_on(async {
        let mut passed = true;
        for target in stages(offline) {
            match target {
                Ok(target) => {
                    passed &= print_result(&target, "client", &calls::run(&target).await);
                    passed &= print_result(&target, "session", &session::run(&target).await);
                }
                Err(provider) => println!("{provider:<18} SKIPPED: its key is not in the environment"),
            }
        }
        Ok(passed)
    })
}

/// Returns the targets, or the name of a provider without a key.
fn stages(offline: bool) -> Vec<Result<Target, &'static str>> {
    if offline {
        return Dialect::ALL.map(|dialect| Ok(Target::offline(dialect))).into();
    }
    [Dialect::OpenAiResponses, Dialect::AnthropicMessages, Dialect::Gemini]
        .map(|dialect| Target::online(dialect).ok_or(dialect.name()))
        .into()
}

fn print_result(target: &Target, what: &str, checked: &Checked<Vec<&str>>) -> bool {
    let name = target.dialect.name();
    match checked {
        Ok(steps) => println!("{name:<18} {what:<8} ok: {}", steps.join(", ")),
        Err(message) => println!("{name:<18} {what:<8} FAILED: {message}"),
    }
    checked.is_ok()
}
