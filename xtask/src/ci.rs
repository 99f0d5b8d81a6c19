//! `cargo xtask ci`: what must hold before a change is taken, cheap checks first.

use std::time::{Duration, Instant};

use crate::{
    callgrind, conformance, consumers, deny, failure::Failure, load, metadata::Metadata, process, tidy,
    weight, wire,
};

/// One step of the run.
struct Step {
    name: &'static str,
    /// Runs the step; what it pushes is printed again at the very end.
    run: fn(&Metadata, &mut Vec<String>) -> Result<Done, Failure>,
}

/// How a step ended that did not fail.
enum Done {
    Checked,
    /// It did not run, and why.
    Skipped(&'static str),
}

/// Clippy and the tests each build the tree once; what follows reuses the tests' build. The checks of `weight` are cold
/// by their nature, and what counts instructions is optimised.
const STEPS: &[Step] = &[
    Step { name: "fmt", run: |metadata, _| checked(cargo(metadata, &["fmt", "--all", "--check"])) },
    Step { name: "tidy", run: |metadata, _| checked(tidy::run(metadata, &[])) },
    Step { name: "weight", run: |metadata, _| checked(weight::run(metadata, &[])) },
    Step { name: "deny", run: |metadata, _| deny(metadata) },
    Step { name: "clippy", run: |metadata, _| checked(clippy(metadata)) },
    Step { name: "features", run: |metadata, _| checked(features(metadata)) },
    Step { name: "test", run: |metadata, closing| checked(test(metadata, closing)) },
    Step { name: "load", run: |metadata, _| checked(load::once(metadata)) },
    Step { name: "conformance", run: |metadata, _| checked(conformance::run(metadata, &[])) },
    Step { name: "wire", run: |metadata, _| wire(metadata) },
    Step { name: "consumers", run: |metadata, _| checked(consumers::run(metadata, &[])) },
    Step { name: "doc", run: |metadata, _| checked(doc(metadata)) },
    Step { name: "callgrind", run: |metadata, _| callgrind(metadata) },
];

/// Runs every step; stops at the first that fails.
pub(crate) fn run(metadata: &Metadata, _arguments: &[String]) -> Result<(), Failure> {
    let started = Instant::now();
    let mut closing = Vec::new();
    let mut durations = Vec::new();
    let mut skipped = 0;
    for step in STEPS {
        println!("== {}", step.name);
        let step_started = Instant::now();
        let outcome = (step.run)(metadata, &mut closing);
        let took = step_started.elapsed();
        durations.push((step.name, took));
        match outcome {
            Ok(Done::Checked) => println!("== {}: ok in {}", step.name, seconds(took)),
            Ok(Done::Skipped(why)) => {
                skipped += 1;
                closing.push(format!("SKIPPED {}: {why}", step.name));
                println!("== {}: SKIPPED: {why}", step.name);
            }
            Err(failure) => {
                println!("error: {}", failure.chain());
                repeat(&closing);
                return Err(Failure::new(format!(
                    "ci FAILED at `{}` after {}",
                    step.name,
                    seconds(started.elapsed())
                )));
            }
        }
    }
    println!("== durations");
    for (name, took) in &durations {
        println!("{name:<12} {:>9}", seconds(*took));
    }
    repeat(&closing);
    println!("{} in {}", verdict(STEPS.len(), skipped), seconds(started.elapsed()));
    Ok(())
}

/// The names of the steps, for the invariants that name one as their check.
pub(crate) fn step_names() -> impl Iterator<Item = &'static str> {
    STEPS.iter().map(|step| step.name)
}

/// A developer's machine may lack the tool and is told so at the end; in CI that is a failure.
fn deny(metadata: &Metadata) -> Result<Done, Failure> {
    if !deny::is_installed() && std::env::var_os("CI").is_none() {
        return Ok(Done::Skipped(deny::ADVICE));
    }
    checked(deny::run(metadata, &[]))
}

/// Likewise.
fn callgrind(metadata: &Metadata) -> Result<Done, Failure> {
    if !callgrind::is_installed() && std::env::var_os("CI").is_none() {
        return Ok(Done::Skipped(callgrind::ADVICE));
    }
    checked(callgrind::run(metadata, &[]))
}

/// The corpus is no part of the repository, so a clone that stands alone has none.
fn wire(metadata: &Metadata) -> Result<Done, Failure> {
    match wire::corpus(metadata) {
        Some(folder) => checked(wire::play(metadata, &folder, &[])),
        None => Ok(Done::Skipped("no corpus of recordings beside the workspace")),
    }
}

fn clippy(metadata: &Metadata) -> Result<(), Failure> {
    // A lock file that does not fit is said here. Flags after `--` reach the workspace's own crates
    // only, so the dependencies are not built again.
    cargo(metadata, &["clippy", "--locked", "--workspace", "--all-targets", "--", "-D", "warnings"])
}

/// What the workspace's own build leaves out: the command asks for the sandbox, a host need not.
fn features(metadata: &Metadata) -> Result<(), Failure> {
    cargo(metadata, &["clippy", "--locked", "--package", "pintle-env", "--", "-D", "warnings"])
}

/// The README's test command; the runner's closing lines are kept for the end of the whole run.
fn test(metadata: &Metadata, closing: &mut Vec<String>) -> Result<(), Failure> {
    closing.push(String::from("== cargo test --workspace"));
    let mut tally = Tally::default();
    let mut command = process::cargo(&metadata.workspace_root);
    command.args(["test", "--workspace"]);
    let outcome = process::run_seen(&mut command, |line| {
        if line.starts_with("test result: ") {
            closing.push(line.to_owned());
            tally.add(line);
        }
    });
    closing.push(tally.to_string());
    outcome?;
    tally.require(metadata.test_binaries())
}

fn doc(metadata: &Metadata) -> Result<(), Failure> {
    process::run(
        process::cargo(&metadata.workspace_root)
            .args(["doc", "--workspace", "--no-deps", "--features", "pintle-env/sandbox,pintle-env/testing"])
            .env("RUSTDOCFLAGS", "-D warnings"),
    )
}

fn checked(outcome: Result<(), Failure>) -> Result<Done, Failure> {
    outcome.map(|()| Done::Checked)
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

fn repeat(closing: &[String]) {
    for line in closing {
        println!("{line}");
    }
}

fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

/// The sum over all test binaries.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    binaries: u64,
    passed: u64,
    failed: u64,
    ignored: u64,
}

impl Tally {
    /// Adds `test result: ok. 3 passed; 0 failed; 0 ignored; ...`.
    fn add(&mut self, line: &str) {
        let count = |what: &str| -> u64 {
            line.split(['.', ';'])
                .filter_map(|part| part.trim().split_once(' '))
                .find(|(_, name)| *name == what)
                .and_then(|(number, _)| number.parse().ok())
                .unwrap_or(0)
        };
        self.binaries += 1;
        self.passed += count("passed");
        self.failed += count("failed");
        self.ignored += count("ignored");
    }

    /// A success of no tests, of fewer binaries than there are, or with tests left out, is none.
    fn require(&self, binaries: u64) -> Result<(), Failure> {
        if self.ignored > 0 {
            return Err(Failure::new(format!("{} tests are ignored; none may be", self.ignored)));
        }
        if self.binaries < binaries || self.passed == 0 {
            return Err(Failure::new(format!(
                "{} test binaries ran {} tests; expected {binaries} binaries and their tests",
                self.binaries, self.passed
            )));
        }
        Ok(())
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            formatter,
            "all {} test binaries: {} passed; {} failed; {} ignored",
            self.binaries, self.passed, self.failed, self.ignored
        )
    }
}

#[cfg(test)]
mod tests {
    use super::{Tally, verdict};

    #[test]
    fn closing_lines_add_up() {
        let mut tally = Tally::default();
        tally.add(
            "test result: ok. 12 passed; 0 failed; 0 ignored; 0 measured; 3 filtered out; finished in 0.01s",
        );
        tally.add("test result: FAILED. 1 passed; 2 failed; 4 ignored; 0 measured; 0 filtered out; finished in 0.01s");
        assert_eq!(tally, Tally { binaries: 2, passed: 13, failed: 2, ignored: 4 });
    }

    #[test]
    fn a_test_run_that_runs_nothing_is_no_success() {
        let tally = |binaries, passed, ignored| Tally { binaries, passed, failed: 0, ignored };
        assert!(tally(3, 10, 0).require(3).is_ok());
        for bad in [tally(0, 0, 0), tally(3, 0, 0), tally(2, 10, 0), tally(3, 10, 1)] {
            assert!(bad.require(3).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_skipped_step_is_not_counted_as_passed() {
        assert_eq!(verdict(9, 0), "ci passed: 9 steps");
        assert_eq!(verdict(9, 1), "ci passed: 8 of 9 steps, 1 SKIPPED");
    }
}
