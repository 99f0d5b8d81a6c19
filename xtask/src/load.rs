//! `cargo xtask load`: the tests of signals and kills, and the whole test program of the command, on a busy machine.
//!
//! Two threads for each core do nothing but turn, so that every window between two steps of a program grows. Half of the
//! runs begin with SIGINT and SIGQUIT ignored, as in the background of a script.

use std::{
    hint,
    num::NonZero,
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Instant,
};

use crate::{failure::Failure, metadata::Metadata, process};

/// Busy threads for each core.
const THREADS_PER_CORE: usize = 2;

/// The modules of the command's test program that send signals, kill, and close pipes.
const SIGNAL_TESTS: [&str; 2] = ["stress::", "signals::"];

/// What runs, and how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Plan {
    /// Runs of the tests of signals and kills.
    signals: u32,
    /// Runs of the whole test program.
    whole: u32,
}

/// Runs what the arguments say: `--signals N`, by default 200, and `--whole N`, by default 3.
pub(crate) fn run(metadata: &Metadata, arguments: &[String]) -> Result<(), Failure> {
    perform(metadata, plan(arguments)?)
}

/// One run of the tests of signals and kills in either way.
pub(crate) fn once(metadata: &Metadata) -> Result<(), Failure> {
    perform(metadata, Plan { signals: 2, whole: 0 })
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

fn perform(metadata: &Metadata, plan: Plan) -> Result<(), Failure> {
    let began = Instant::now();
    // Built before the load begins.
    process::capture(&mut test_program(metadata, false, &["--list"]))?;
    under_load(|| {
        for number in 0..plan.signals {
            let mut filters = SIGNAL_TESTS.to_vec();
            filters.push("--quiet");
            process::run(&mut test_program(metadata, is_odd(number), &filters))?;
        }
        for number in 0..plan.whole {
            process::run(&mut test_program(metadata, is_odd(number), &["--quiet"]))?;
        }
        Ok(())
    })?;
    let Plan { signals, whole } = plan;
    println!(
        "load: {signals} runs of {} and {whole} of the whole test program without a failure in {:.0} s",
        SIGNAL_TESTS.join(", "),
        began.elapsed().as_secs_f64()
    );
    Ok(())
}

fn is_odd(number: u32) -> bool {
    number % 2 == 1
}

/// The test programs called `it` as the build of the whole workspace has them; another selection of packages would
/// select other features and build everything again.
fn test_program(metadata: &Metadata, ignores_signals: bool, arguments: &[&str]) -> Command {
    let trap = if ignores_signals { "trap '' INT QUIT" } else { ":" };
    let mut command = Command::new("/bin/sh");
    command.current_dir(&metadata.workspace_root);
    command.args(["-c", &format!("{trap}; exec \"$0\" \"$@\"")]);
    command.arg(process::cargo(&metadata.workspace_root).get_program());
    command.args(["test", "--workspace", "--test", "it", "--"]).args(arguments);
    command
}

/// Does `work` while every core is busy with something else.
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
