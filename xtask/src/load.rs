//! `cargo xtask load`: the tests of signals, and the whole test suite of the command, under load.
//!
//! Two threads per core spin, which widens every race window. Half of the runs start with SIGINT and SIGQUIT ignored, as
//! in a background job of a script.

use std::{
    hint,
    num::NonZero,
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Instant,
};

use crate::{
    conformance::{TestBinaries, TestBinary},
    failure::Failure,
    metadata::Metadata,
    process,
};

/// Busy threads per core.
const THREADS_PER_CORE: usize = 2;

/// Modules of the command's test suite that send signals and close pipes.
const SIGNAL_TESTS: [&str; 2] = ["stress::", "signals::"];

/// Number of runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Plan {
    /// Runs of the tests of signals.
    signals: u32,
    /// Runs of the whole test suite.
    whole: u32,
}

/// Runs the tests: `--signals N`, 200 by default, and `--whole N`, 3 by default.
pub(crate) fn run(metadata: &Metadata, arguments: &[String]) -> Result<(), Failure> {
    perform(&TestBinaries::build(metadata)?, plan(arguments)?)
}

/// Runs the tests of signals once with and once without ignored signals.
pub(crate) fn run_once(binaries: &TestBinaries) -> Result<(), Failure> {
    perform(binaries, Plan { signals: 2, whole: 0 })
}

fn plan(arguments: &[String]) -> Result<Plan, Failure> {
    let mut plan = Plan { signals: 200, whole: 3 };
    let mut words = arguments.iter().map(String::as_str);
    while let Some(word) = words.next() {
        let count = match word {
            "--signals" => &mut plan.signals,
            "--whole" => &mut plan.whole,
            other => {
                return Err(Failure::new(format!(
                    "unknown option `{other}`; expected --signals N or --whole N"
                )));
            }
        };
        let number = words.next().and_then(|word| word.parse().ok());
        *count = number.ok_or_else(|| Failure::new(format!("expected a number after {word}")))?;
    }
    Ok(plan)
}

fn perform(binaries: &TestBinaries, plan: Plan) -> Result<(), Failure> {
    let program = binaries.get("pintle-cli::it")?;
    let began = Instant::now();
    under_load(|| {
        for number in 0..plan.signals {
            let mut filters = SIGNAL_TESTS.to_vec();
            filters.push("--quiet");
            process::run(&mut test_run(program, is_odd(number), &filters))?;
        }
        for number in 0..plan.whole {
            process::run(&mut test_run(program, is_odd(number), &["--quiet"]))?;
        }
        Ok(())
    })?;
    let Plan { signals, whole } = plan;
    println!(
        "load: {signals} runs of {} and {whole} of the whole test suite without a failure in {:.0} s",
        SIGNAL_TESTS.join(", "),
        began.elapsed().as_secs_f64()
    );
    Ok(())
}

fn is_odd(number: u32) -> bool {
    number % 2 == 1
}

/// Returns a run of the test suite of the command.
fn test_run(program: &TestBinary, ignores_signals: bool, arguments: &[&str]) -> Command {
    let program = program.command();
    let trap = if ignores_signals { "trap '' INT QUIT" } else { ":" };
    let mut command = Command::new("/bin/sh");
    command.args(["-c", &format!("{trap}; exec \"$0\" \"$@\"")]).arg(program.get_program()).args(arguments);
    command.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    if let Some(directory) = program.get_current_dir() {
        command.current_dir(directory);
    }
    command
}

/// Runs `work` while every core is busy.
fn under_load<T>(work: impl FnOnce() -> T) -> T {
    let is_over = AtomicBool::new(false);
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| {
        for _ in 0..cores * THREADS_PER_CORE {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    hint::spin_loop();
                }
            });
        }
        let done = work();
        is_over.store(true, Ordering::Relaxed);
        done
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_read() {
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        for (text, expected) in [
            ("", Some(Plan { signals: 200, whole: 3 })),
            ("--signals 5", Some(Plan { signals: 5, whole: 3 })),
            ("--whole 0 --signals 1", Some(Plan { signals: 1, whole: 0 })),
            ("--signals", None),
            ("--signals x", None),
            ("--all", None),
        ] {
            assert_eq!(plan(&words(text)).ok(), expected, "{text:?}");
        }
    }
}
