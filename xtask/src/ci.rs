//! `cargo xtask ci`: everything that must pass before a change is merged, cheap checks first.

use std::time::{Duration, Instant};

use nix::sys::resource::UsageWho;

use crate::{
    callgrind, clients, conformance, consumers, deny, failure::Failure, features, load, metadata::Metadata,
    package, process, protocols, test_run::TestRun, tidy, weight, wire,
};

/// A step of the run.
struct Step {
    name: &'static str,
    run: fn(&Metadata, &mut Notes) -> Result<StepOutcome, Failure>,
}

/// Results that outlive a step.
#[derive(Default)]
struct Notes {
    /// Lines that are repeated at the end of the run.
    summary: Vec<String>,
    /// Run of the `test` step, from which `conformance` takes the results of its tests.
    tests: TestRun,
}

/// Outcome of a step that did not fail.
enum StepOutcome {
    Checked,
    /// It did not run, for this reason.
    Skipped(&'static str),
}

/// Clippy and the tests each build the tree once; later steps reuse the build of the tests. The checks of `weight` are
/// cold by design, and `consumers` reuses them; `callgrind` needs an optimized build.
const STEPS: &[Step] = &[
    Step { name: "fmt", run: |metadata, _| into_outcome(cargo(metadata, &["fmt", "--all", "--check"])) },
    Step { name: "tidy", run: |metadata, _| into_outcome(tidy::run(metadata, &[])) },
    Step { name: "weight", run: |metadata, _| into_outcome(weight::run(metadata, &[])) },
    Step { name: "deny", run: |metadata, _| deny(metadata) },
    Step { name: "clippy", run: |metadata, _| into_outcome(clippy(metadata)) },
    Step { name: "features", run: |metadata, _| into_outcome(features::run(metadata, &[])) },
    Step { name: "test", run: |metadata, notes| into_outcome(test(metadata, notes)) },
    Step { name: "load", run: |metadata, _| into_outcome(load::run_once(metadata)) },
    Step {
        name: "conformance",
        run: |metadata, notes| into_outcome(conformance::compare(metadata, &notes.tests)),
    },
    Step { name: "wire", run: |metadata, _| wire(metadata) },
    Step { name: "protocols", run: |metadata, _| into_outcome(protocols::run_with_built_programs(metadata)) },
    Step { name: "clients", run: |metadata, _| into_outcome(clients::run_with_built_programs(metadata)) },
    Step { name: "package", run: |metadata, _| into_outcome(package::run(metadata, &[])) },
    Step { name: "consumers", run: |metadata, _| into_outcome(consumers::check_all(metadata)) },
    Step { name: "doc", run: |metadata, _| into_outcome(doc(metadata)) },
    Step { name: "callgrind", run: |metadata, _| callgrind(metadata) },
];

/// Runs every step. Stops at the first failure.
pub(crate) fn run(metadata: &Metadata, arguments: &[String]) -> Result<(), Failure> {
    crate::require_no_arguments("ci", arguments)?;
    let started = Instant::now();
    let mut notes = Notes::default();
    let mut durations = Vec::new();
    let mut skipped = 0;
    for step in STEPS {
        println!("== {}", step.name);
        let (step_started, used_before) = (Instant::now(), cpu_time()?);
        let outcome = (step.run)(metadata, &mut notes);
        let took = step_started.elapsed();
        durations.push((step.name, took, cpu_time()?.saturating_sub(used_before)));
        match outcome {
            Ok(StepOutcome::Checked) => println!("== {}: ok in {}", step.name, seconds(took)),
            Ok(StepOutcome::Skipped(why)) => {
                skipped += 1;
                notes.summary.push(format!("SKIPPED {}: {why}", step.name));
                println!("== {}: SKIPPED: {why}", step.name);
            }
            Err(failure) => {
                println!("error: {}", failure.chain());
                print_lines(&notes.summary);
                return Err(Failure::new(format!(
                    "ci FAILED at `{}` after {}",
                    step.name,
                    seconds(started.elapsed())
                )));
            }
        }
    }
    println!("{:<12} {:>9} {:>9}", "== step", "time", "CPU time");
    for (name, took, used) in &durations {
        println!("{name:<12} {:>9} {:>9}", seconds(*took), seconds(*used));
    }
    print_lines(&notes.summary);
    println!("{} in {}", verdict(STEPS.len(), skipped), seconds(started.elapsed()));
    Ok(())
}

/// Returns the names of the steps, for the invariants whose check is a step.
pub(crate) fn step_names() -> impl Iterator<Item = &'static str> {
    STEPS.iter().map(|step| step.name)
}

/// Runs `cargo xtask deny`. A missing tool skips the step on a developer's machine and fails it in CI.
fn deny(metadata: &Metadata) -> Result<StepOutcome, Failure> {
    if !deny::is_installed() && std::env::var_os("CI").is_none() {
        return Ok(StepOutcome::Skipped(deny::ADVICE));
    }
    into_outcome(deny::run(metadata, &[]))
}

/// Runs `cargo xtask callgrind`. A missing tool skips or fails the step in the same way.
fn callgrind(metadata: &Metadata) -> Result<StepOutcome, Failure> {
    if !callgrind::is_installed() && std::env::var_os("CI").is_none() {
        return Ok(StepOutcome::Skipped(callgrind::ADVICE));
    }
    into_outcome(callgrind::run(metadata, &[]))
}

/// Runs `cargo xtask wire`. The corpus is not part of the repository, so a plain clone has none.
fn wire(metadata: &Metadata) -> Result<StepOutcome, Failure> {
    match wire::corpus(metadata) {
        Some(directory) => into_outcome(wire::play_with_built_program(metadata, &directory)),
        None => Ok(StepOutcome::Skipped("there is no corpus of recordings beside the workspace")),
    }
}

fn clippy(metadata: &Metadata) -> Result<(), Failure> {
    // `--locked` reports an outdated lock file. Flags after `--` apply to the workspace's own crates
    // only, so the dependencies are not rebuilt.
    let mut clippy = process::cargo(&metadata.workspace_root);
    clippy.args(["clippy", "--locked", "--all-targets"]).args(process::EVERYTHING);
    process::run(clippy.args(["--", "-D", "warnings"]))
}

/// Runs the README's test command. The summary lines of the test runner are repeated at the end of the run.
fn test(metadata: &Metadata, notes: &mut Notes) -> Result<(), Failure> {
    let Notes { summary, tests } = notes;
    summary.push(format!("== cargo test {}", process::EVERYTHING.join(" ")));
    let mut command = process::cargo(&metadata.workspace_root);
    command.arg("test").args(process::EVERYTHING);
    if std::env::var_os("RUST_TEST_THREADS").is_none() {
        // Tests of processes wait more than they compute.
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        command.env("RUST_TEST_THREADS", (cores + cores.div_ceil(2)).to_string());
    }
    let outcome = process::run_with_lines(&mut command, |line| {
        if tests.add(line) {
            summary.push(line.to_owned());
        }
    });
    summary.push(tests.to_string());
    outcome?;
    tests.require(metadata.test_binaries())
}

fn doc(metadata: &Metadata) -> Result<(), Failure> {
    process::run(
        process::cargo(&metadata.workspace_root)
            .args(["doc", "--no-deps", "--features", "pintle-env/sandbox,pintle-env/testing"])
            .args(process::EVERYTHING)
            .env("RUSTDOCFLAGS", "-D warnings"),
    )
}

fn into_outcome(outcome: Result<(), Failure>) -> Result<StepOutcome, Failure> {
    outcome.map(|()| StepOutcome::Checked)
}

fn verdict(steps: usize, skipped: usize) -> String {
    match skipped {
        0 => format!("ci passed: {steps} steps"),
        _ => format!("ci passed: {} of {steps} steps, {skipped} SKIPPED", steps - skipped),
    }
}

fn cargo(metadata: &Metadata, arguments: &[&str]) -> Result<(), Failure> {
    process::run(process::cargo(&metadata.workspace_root).args(arguments))
}

fn print_lines(summary: &[String]) {
    for line in summary {
        println!("{line}");
    }
}

/// Returns the CPU time of this process and of all child processes that were waited for.
fn cpu_time() -> Result<Duration, Failure> {
    let children = process::cpu_time(UsageWho::RUSAGE_CHILDREN)?;
    Ok(process::cpu_time(UsageWho::RUSAGE_SELF)? + children)
}

fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::verdict;

    #[test]
    fn a_skipped_step_does_not_count_as_passed() {
        assert_eq!(verdict(9, 0), "ci passed: 9 steps");
        assert_eq!(verdict(9, 1), "ci passed: 8 of 9 steps, 1 SKIPPED");
    }
}
