//! The project's own chores: what continuous integration runs, and the rules that no compiler checks.
//!
//! `cargo xtask NAME` runs one command; without a known name it lists them.
#![forbid(unsafe_code)]
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a developer's program: it starts cargo, reads the tree and talks to a terminal"
)]

mod bench;
mod callgrind;
mod ci;
mod conformance;
mod consumers;
mod deny;
mod failure;
mod fuzz;
mod load;
mod metadata;
mod process;
mod services;
mod smoke;
mod soak;
mod tidy;
mod weight;
mod wire;

use std::process::ExitCode;

use crate::{failure::Failure, metadata::Metadata};

/// A chore with a name.
struct Command {
    name: &'static str,
    summary: &'static str,
    run: fn(&Metadata, &[String]) -> Result<(), Failure>,
}

const COMMANDS: &[Command] = &[
    Command {
        name: "ci",
        summary: "everything below, with formatting, lints, tests and documentation, as CI runs it",
        run: ci::run,
    },
    Command {
        name: "tidy",
        summary: "the rules of the tree: crate arrows, manifests, sources, invariants, links",
        run: tidy::run,
    },
    Command {
        name: "conformance",
        summary: "each checkbox of both definitions of done, with its tests; --list, --write",
        run: conformance::run,
    },
    Command {
        name: "consumers",
        summary: "each library packaged, unpacked and used alone, outside the workspace; [CRATE..]",
        run: consumers::run,
    },
    Command {
        name: "weight",
        summary: "crates and cold check of each layer alone, against xtask/weight.toml; --write",
        run: weight::run,
    },
    Command {
        name: "wire",
        summary: "recorded provider answers through the real adapters; DIR [FILTER] [--seed N]",
        run: wire::run,
    },
    Command {
        name: "bench",
        summary: "what things cost, as ratios of two measured in one run; [NAME [ROW]] [--write]",
        run: bench::run,
    },
    Command {
        name: "callgrind",
        summary: "instructions of fixed work on hot paths, against benches/callgrind.toml; --write",
        run: callgrind::run,
    },
    Command {
        name: "smoke",
        summary: "both smoke tests at the providers whose keys are in the environment; [--offline]",
        run: smoke::run,
    },
    Command {
        name: "soak",
        summary: "thousands of inputs drawn from a seed, or many sessions at once; [--turns N] [--seed N] | --sessions N",
        run: soak::run,
    },
    Command {
        name: "load",
        summary: "the tests of signals and kills, and the command's whole test program, on a busy machine; [--signals N] [--whole N]",
        run: load::run,
    },
    Command {
        name: "fuzz",
        summary: "garbage for the patch engine, with cargo-fuzz; [TARGET] [SECONDS]",
        run: fuzz::run,
    },
    Command {
        name: "deny",
        summary: "licences, bans and sources of the dependencies, by cargo-deny",
        run: deny::run,
    },
    Command {
        name: "services",
        summary: "the engine and the ssh servers that tests of environments need; up|down [docker|ssh]",
        run: services::run,
    },
];

fn main() -> ExitCode {
    match weight::wrapper::wrapped() {
        Some(Ok(code)) => code,
        Some(Err(failure)) => refused(&failure),
        None => chore(),
    }
}

fn chore() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_default();
    let rest: Vec<String> = arguments.collect();
    match dispatch(&name, &rest) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => refused(&failure),
    }
}

fn refused(failure: &Failure) -> ExitCode {
    eprintln!("error: {}", failure.chain());
    ExitCode::FAILURE
}

fn dispatch(name: &str, arguments: &[String]) -> Result<(), Failure> {
    let Some(command) = COMMANDS.iter().find(|command| command.name == name) else {
        return Err(Failure::new(usage(name)));
    };
    let metadata = Metadata::load()?;
    (command.run)(&metadata, arguments)
}

fn usage(found: &str) -> String {
    let mut text = if found.is_empty() {
        String::from("no command given; the commands are:")
    } else {
        format!("no command is called `{found}`; the commands are:")
    };
    for command in COMMANDS {
        text.push_str(&format!("\n  {:<12} {}", command.name, command.summary));
    }
    text
}

/// The names of all commands, for the invariants that name one as their check.
fn command_names() -> impl Iterator<Item = &'static str> {
    COMMANDS.iter().map(|command| command.name)
}
