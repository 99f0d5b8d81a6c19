//! The two smoke tests: section 9.13 of the loop specification and section 8.10 of the client specification.
//!
//! `smoke` runs both against every provider whose key is in the environment and says SKIPPED for the others.
//! `smoke --offline` runs the same steps with the same checks against the scripted server, in each dialect.
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
mod stage;

use std::process::ExitCode;

use pintle_testkit::Dialect;

use crate::check::Checked;
use crate::stage::Stage;

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

/// Whether every step that was run holds.
fn run(offline: bool) -> Result<bool, String> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start the runtime: {error}"))?;
    runtime.block_on(async {
        let mut passed = true;
        for stage in stages(offline) {
            match stage {
                Ok(stage) => {
                    passed &= told(&stage, "client", &calls::run(&stage).await);
                    passed &= told(&stage, "session", &session::run(&stage).await);
                }
                Err(provider) => println!("{provider:<18} SKIPPED: its key is not in the environment"),
            }
        }
        Ok(passed)
    })
}

/// Where it is run; the name of a provider without a key.
fn stages(offline: bool) -> Vec<Result<Stage, &'static str>> {
    if offline {
        return Dialect::ALL.map(|dialect| Ok(Stage::offline(dialect))).into();
    }
    [Dialect::OpenAiResponses, Dialect::AnthropicMessages, Dialect::Gemini]
        .map(|dialect| Stage::online(dialect).ok_or(dialect.name()))
        .into()
}

fn told(stage: &Stage, what: &str, checked: &Checked<Vec<&str>>) -> bool {
    let name = stage.dialect.name();
    match checked {
        Ok(steps) => println!("{name:<18} {what:<8} ok: {}", steps.join(", ")),
        Err(message) => println!("{name:<18} {what:<8} FAILED: {message}"),
    }
    checked.is_ok()
}
