//! The project's own commands: everything that continuous integration runs, and the rules that no compiler checks.
//!
//! `cargo xtask NAME` runs one command. Without a known name it lists them.
#![forbid(unsafe_code)]
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a developer's program: it runs cargo, reads the tree and writes to a terminal"
)]

mod api;
mod bench;
mod callgrind;
mod cheats;
mod ci;
mod clients;
mod conformance;
mod consumers;
mod delays;
mod deny;
mod failure;
mod features;
mod figures;
mod fuzz;
mod generate;
mod load;
mod metadata;
mod msrv;
mod mutations;
mod package;
mod page;
mod process;
mod protocols;
mod services;
mod smoke;
mod soak;
mod test_homes;
mod test_run;
mod tidy;
mod weight;
mod wire;

use std::{path::Path, process::ExitCode};

use crate::{failure::Failure, metadata::Metadata};

/// A command of this program.
struct Command {
    name: &'static str,
    summary: &'static str,
    run: fn(&Metadata, &[String]) -> Result<(), Failure>,
}

const COMMANDS: &[Command] = &[
    Command {
        name: "ci",
        summary: "the checks required for a merge; --full adds the slow ones; [--full] [STEP..]",
        run: ci::run,
    },
    Command {
        name: "tidy",
        summary: "rules of the tree: crate dependencies, module cycles, manifests, sources, invariants, words, links",
        run: tidy::run,
    },
    Command {
        name: "lines",
        summary: "product code lines of each crate, and idioms in its comments and strings; [--idioms CRATE]",
        run: tidy::lines::run,
    },
    Command {
        name: "generate",
        summary: "the committed files that are generated from code: schemas, OpenAPI, and the table of configuration keys",
        run: generate::run,
    },
    Command {
        name: "api",
        summary: "the public API of each library, against the listings in docs/reference/api; --write",
        run: api::run,
    },
    Command {
        name: "conformance",
        summary: "checkboxes of both definitions of done, with their tests; --list, --write",
        run: conformance::run,
    },
    Command {
        name: "mutations",
        summary: "whether the tests of the definitions of done fail when the code breaks; --list, --only LINE",
        run: mutations::run,
    },
    Command {
        name: "consumers",
        summary: "each library packaged, unpacked and used outside the workspace; [--check] [CRATE..]",
        run: consumers::run,
    },
    Command {
        name: "package",
        summary: "the contents of each published crate's package, and a check of the packaged command",
        run: package::run,
    },
    Command {
        name: "msrv",
        summary: "a check of the workspace with the oldest supported Rust, from rustup",
        run: msrv::run,
    },
    Command {
        name: "features",
        summary: "each provider and each environment compiled without the others",
        run: features::run,
    },
    Command {
        name: "weight",
        summary: "crates and cold check time of each layer alone and of sets of features, against xtask/weight.toml; --write",
        run: weight::run,
    },
    Command {
        name: "figures",
        summary: "the headline figures of the command, against the goals in xtask/figures.toml; [NAME] [--check] [--write] | --sizes",
        run: figures::run,
    },
    Command {
        name: "wire",
        summary: "recorded provider responses through the real adapters; DIR [FILTER] [--seed N]",
        run: wire::run,
    },
    Command {
        name: "clients",
        summary: "the console, the TypeScript client and generated requests against the command; installs with npm and pip",
        run: clients::run,
    },
    Command {
        name: "protocols",
        summary: "suites, clients and servers of others against ours; installs them with npm and pip",
        run: protocols::run,
    },
    Command {
        name: "bench",
        summary: "benchmarks, as ratios of two measurements in one run; [NAME [ROW]] [--write]",
        run: bench::run,
    },
    Command {
        name: "callgrind",
        summary: "instruction counts of hot paths, against benches/callgrind.toml; --write",
        run: callgrind::run,
    },
    Command {
        name: "smoke",
        summary: "both smoke tests against the providers whose keys are in the environment; [--offline]",
        run: smoke::run,
    },
    Command {
        name: "soak",
        summary: "thousands of random inputs, or many sessions at once; [--turns N] [--seed N] | --sessions N",
        run: soak::run,
    },
    Command {
        name: "cheats",
        summary: "cheats and their honest twins as tasks, of the repository and of more directories; [DIR..]",
        run: cheats::run,
    },
    Command {
        name: "load",
        summary: "the tests of signals, and the command's whole test suite, under load; [--signals N] [--whole N]",
        run: load::run,
    },
    Command {
        name: "delays",
        summary: "the test suite with random delays of system calls; [--runs N] [--rate N] [--milliseconds N] [-- ARGS]",
        run: delays::run,
    },
    Command {
        name: "fuzz",
        summary: "fuzzing of the patch engine, with cargo-fuzz; [TARGET] [SECONDS]",
        run: fuzz::run,
    },
    Command {
        name: "deny",
        summary: "licences, bans and sources of dependencies, with cargo-deny",
        run: deny::run,
    },
    Command {
        name: "services",
        summary: "the container engine, the database and the ssh servers for tests; up|down [docker|postgres|ssh]",
        run: services::run,
    },
];

fn main() -> ExitCode {
    let in_another_role = ci::linker::run_as_linker()
        .or_else(weight::wrapper::run_as_wrapper)
        .or_else(ci::runner::run_as_runner)
        .or_else(api::rustdoc::run_as_rustdoc);
    match in_another_role {
        Some(Ok(code)) => code,
        Some(Err(failure)) => report_failure(&failure),
        None => run_command(),
    }
}

fn run_command() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_default();
    let rest: Vec<String> = arguments.collect();
    match dispatch(&name, &rest) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => report_failure(&failure),
    }
}

fn report_failure(failure: &Failure) -> ExitCode {
    eprintln!("error: {}", failure.chain());
    ExitCode::FAILURE
}

fn dispatch(name: &str, arguments: &[String]) -> Result<(), Failure> {
    let Some(command) = COMMANDS.iter().find(|command| command.name == name) else {
        return Err(Failure::new(usage(name)));
    };
    if arguments.iter().any(|argument| argument == "--help") {
        println!("{}: {}", command.name, command.summary);
        return Ok(());
    }
    let metadata = Metadata::load(Path::new("."))?;
    (command.run)(&metadata, arguments)
}

fn usage(found: &str) -> String {
    let mut text = if found.is_empty() {
        String::from("no command given; the commands are:")
    } else {
        format!("unknown command `{found}`; the commands are:")
    };
    for command in COMMANDS {
        text.push_str(&format!("\n  {:<12} {}", command.name, command.summary));
    }
    text
}

/// Refuses arguments of a command that has none.
///
/// # Errors
///
/// The first of `arguments`.
fn require_no_arguments(command: &str, arguments: &[String]) -> Result<(), Failure> {
    match arguments.first() {
        Some(first) => Err(Failure::new(format!("{command} takes no arguments, found `{first}`"))),
        None => Ok(()),
    }
}

/// Returns the names of all commands, for the invariants whose check is a command.
fn command_names() -> impl Iterator<Item = &'static str> {
    COMMANDS.iter().map(|command| command.name)
}
