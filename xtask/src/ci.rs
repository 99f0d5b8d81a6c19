//! `cargo xtask ci`: everything that must pass before a change is merged, cheap checks first.
//!
//! With `--full`, also runs measurements, checks of documentation, features and packages, and all cases of the long suites. With names of steps, runs only
//! those steps.

mod background;
mod build;
pub(crate) mod linker;
mod report;
pub(crate) mod runner;

use std::{
    path::PathBuf,
    time::{Duration, Instant, SystemTime},
};

use nix::sys::resource::UsageWho;

use self::{
    background::{BUILT, BackgroundSteps, FinishedStep},
    build::Build,
    report::Report,
};
use crate::{
    api, callgrind, cheats, clients, conformance, consumers, deny,
    failure::{Context as _, Failure},
    features, figures, load,
    metadata::Metadata,
    package, process, protocols,
    test_run::TestRun,
    tidy, weight, wire,
};

/// A step of the run.
struct Step {
    name: &'static str,
    /// Whether it runs only with `--full`.
    is_long: bool,
    /// Whether it runs in the background of `test`. Such a step needs only the output of `build`.
    is_background: bool,
    run: fn(&Metadata, &mut Notes) -> Result<StepOutcome, Failure>,
}

/// Results that outlive a step.
struct Notes {
    /// A copy of this program, as the linker of the build and the runner of test programs: the build replaces the original.
    program: PathBuf,
    /// Whether all cases of the long suites run.
    is_full: bool,
    /// Lines that are repeated at the end of the run.
    summary: Vec<String>,
    /// Number of steps that did not run.
    skipped: usize,
    /// Result of the `build` step.
    build: Option<Build>,
    /// Run of the `test` step, from which `conformance` takes the results of its tests.
    tests: TestRun,
}

/// Outcome of a step that did not fail.
enum StepOutcome {
    Checked,
    /// It did not run, for this reason.
    Skipped(&'static str),
}

const fn short(name: &'static str, run: fn(&Metadata, &mut Notes) -> Result<StepOutcome, Failure>) -> Step {
    Step { name, is_long: false, is_background: false, run }
}

const fn background(
    name: &'static str,
    run: fn(&Metadata, &mut Notes) -> Result<StepOutcome, Failure>,
) -> Step {
    Step { name, is_long: false, is_background: true, run }
}

const fn long(name: &'static str, run: fn(&Metadata, &mut Notes) -> Result<StepOutcome, Failure>) -> Step {
    Step { name, is_long: true, is_background: false, run }
}

/// `build` compiles the tree once, with the lints of clippy; later steps use what it has compiled. `doc`, `api`,
/// `features` and `package` check it. The checks of `weight` are cold by design, and `consumers` reuses them; `figures` and
/// `callgrind` need optimized builds.
const STEPS: &[Step] = &[
    short("fmt", |metadata, _| into_outcome(cargo(metadata, &["fmt", "--all", "--check"]))),
    short("tidy", |metadata, _| into_outcome(tidy::run(metadata, &[]))),
    short("deny", |metadata, _| deny(metadata)),
    short("build", |metadata, notes| into_outcome(build(metadata, notes))),
    short("test", |metadata, notes| into_outcome(test(metadata, notes))),
    short("conformance", |metadata, notes| {
        into_outcome(conformance::compare(metadata, &notes.built()?.binaries, &notes.tests))
    }),
    background("wire", |metadata, _| wire(metadata)),
    background("protocols", |metadata, notes| {
        into_outcome(protocols::run_with_built_programs(metadata, notes.is_full))
    }),
    background("clients", |metadata, notes| {
        into_outcome(clients::run_with_built_programs(metadata, notes.is_full))
    }),
    long("doc", |metadata, _| into_outcome(doc(metadata))),
    long("api", |metadata, _| into_outcome(api::run(metadata, &[]))),
    long("features", |metadata, _| into_outcome(features::run(metadata, &[]))),
    long("load", |_, notes| into_outcome(load::run_once(&notes.built()?.binaries))),
    long("cheats", |metadata, _| into_outcome(cheats::run_with_built_program(metadata))),
    long("weight", |metadata, _| into_outcome(weight::run(metadata, &[]))),
    long("figures", |metadata, _| into_outcome(figures::check(metadata))),
    long("package", |metadata, _| into_outcome(package::run(metadata, &[]))),
    long("consumers", |metadata, _| into_outcome(consumers::check_all(metadata))),
    long("callgrind", |metadata, _| callgrind(metadata)),
];

/// Variable with the time at which `.ci/run` started, in seconds since 1970.
const STARTED: &str = "PINTLE_CI_STARTED";

/// Time limit of a run that `.ci/run` has started. The machines that run it give it 90 minutes, and print no table.
const LIMIT: Duration = Duration::from_secs(80 * 60);
/// The same with `--full`, which the hosted workflow gives two hours.
const FULL_LIMIT: Duration = Duration::from_secs(110 * 60);

/// Steps that use the programs of the step `build`.
const AFTER_BUILD: &[&str] = &["test", "conformance", "wire", "protocols", "clients", "load", "cheats"];

/// Runs every step. Stops at the first failure, and when the time of the run is over.
pub(crate) fn run(metadata: &Metadata, arguments: &[String]) -> Result<(), Failure> {
    let Selection { is_full, is_built, steps } = choose(arguments)?;
    let mut notes = Notes {
        program: copy_of_this_program(metadata)?,
        is_full,
        summary: Vec::new(),
        skipped: 0,
        build: None,
        tests: TestRun::default(),
    };
    let limit = if is_full { FULL_LIMIT } else { LIMIT };
    let report = match started() {
        Some(started) => Report::start(started, Some(limit)),
        None => Report::start(Instant::now(), None),
    };
    let has_tests = steps.iter().any(|step| step.name == "test");
    let (background, in_order): (Vec<&Step>, Vec<&Step>) =
        steps.iter().copied().partition(|step| has_tests && step.is_background);
    for step in in_order {
        let others = match step.name {
            "test" if !background.is_empty() => {
                Some(BackgroundSteps::start(&notes.program, &background, is_full)?)
            }
            _ => None,
        };
        if let Some(others) = &others {
            report.watch(others);
        }
        let own = run_step(step, metadata, &mut notes, &report);
        let of_others = others.map_or(Ok(()), |others| finish(others, &mut notes, &report));
        let failed = if own.is_err() { step.name } else { "background" };
        let failures: Vec<Failure> = [own, of_others].into_iter().filter_map(Result::err).collect();
        if failures.is_empty() {
            continue;
        }
        for failure in failures {
            println!("error: {}", failure.chain());
        }
        if !is_built {
            print_times(&notes, &report);
        }
        return Err(Failure::new(format!("ci FAILED at `{failed}` after {}", report.total())));
    }
    if is_built {
        // The parent prints the table.
        return Ok(());
    }
    print_times(&notes, &report);
    println!("{} in {}", verdict(steps.len(), notes.skipped), report.total());
    Ok(())
}

/// Waits for the steps in the background.
fn finish(steps: BackgroundSteps, notes: &mut Notes, report: &Report) -> Result<(), Failure> {
    report.begin("background");
    let (finished, outcome) = steps.finish();
    report.unwatch();
    let wall = report.end();
    for one in &finished {
        notes.add(one, report);
    }
    report.add(FinishedStep { step: "(waiting)".to_owned(), wall, cpu: Duration::ZERO, skipped: None });
    outcome
}

fn run_step(step: &Step, metadata: &Metadata, notes: &mut Notes, report: &Report) -> Result<(), Failure> {
    println!("== {}", step.name);
    let used_before = cpu_time()?;
    report.begin(step.name);
    let outcome = (step.run)(metadata, notes);
    let (wall, cpu) = (report.end(), cpu_time()?.saturating_sub(used_before));
    let skipped = match &outcome {
        Ok(StepOutcome::Skipped(why)) => Some((*why).to_owned()),
        _ => None,
    };
    let end = FinishedStep { step: step.name.to_owned(), wall, cpu, skipped };
    notes.add(&end, report);
    outcome?;
    println!("{end}");
    Ok(())
}

/// Parsed arguments.
struct Selection {
    /// Whether the long suites run all of their cases.
    is_full: bool,
    /// Whether the step `build` has run, in the process that started this one.
    is_built: bool,
    steps: Vec<&'static Step>,
}

fn choose(arguments: &[String]) -> Result<Selection, Failure> {
    let has = |flag: &str| arguments.iter().any(|word| word == flag);
    let (is_full, is_built) = (has("--full"), has(BUILT));
    let names: Vec<&String> =
        arguments.iter().filter(|word| !["--full", BUILT].contains(&word.as_str())).collect();
    if names.is_empty() {
        let steps = STEPS.iter().filter(|step| is_full || !step.is_long).collect();
        return Ok(Selection { is_full, is_built, steps });
    }
    let find = |name: &&String| {
        STEPS.iter().find(|step| step.name == name.as_str()).ok_or_else(|| {
            let known: Vec<&str> = step_names().collect();
            Failure::new(format!("unknown step `{name}`; expected --full or one of {}", known.join(", ")))
        })
    };
    let mut steps = names.iter().map(find).collect::<Result<Vec<_>, _>>()?;
    let has_build = is_built || steps.iter().any(|step| step.name == "build");
    if !has_build && steps.iter().any(|step| AFTER_BUILD.contains(&step.name)) {
        steps.splice(0..0, STEPS.iter().filter(|step| step.name == "build"));
    }
    Ok(Selection { is_full, is_built, steps })
}

impl Notes {
    /// Adds the end of a step to the report of the run.
    fn add(&mut self, end: &FinishedStep, report: &Report) {
        report.add(end.clone());
        if let Some(why) = &end.skipped {
            self.skipped += 1;
            self.summary.push(format!("SKIPPED {}: {why}", end.step));
        }
    }

    fn built(&self) -> Result<&Build, Failure> {
        self.build.as_ref().ok_or_else(|| Failure::new("the step `build` has not run"))
    }
}

fn copy_of_this_program(metadata: &Metadata) -> Result<PathBuf, Failure> {
    let directory = metadata.target_directory.join("ci");
    std::fs::create_dir_all(&directory)
        .with_context(|| format!("{} could not be created", directory.display()))?;
    let copy = directory.join("xtask");
    process::copy_own_program(&copy)?;
    Ok(copy)
}

/// Returns when `.ci/run` started. Returns `None` if it did not start this program.
fn started() -> Option<Instant> {
    let now = Instant::now();
    let seconds = std::env::var(STARTED).ok().and_then(|text| text.parse().ok()).map(Duration::from_secs);
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok().zip(seconds);
    since.and_then(|(current, start)| now.checked_sub(current.checked_sub(start)?))
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

fn build(metadata: &Metadata, notes: &mut Notes) -> Result<(), Failure> {
    notes.build = Some(Build::run(metadata, &notes.program)?);
    Ok(())
}

/// Runs the README's test command. The summary lines of the test runner are repeated at the end of the run.
fn test(metadata: &Metadata, notes: &mut Notes) -> Result<(), Failure> {
    let Notes { program, is_full, summary, tests, .. } = notes;
    summary.push(format!("== cargo test {}", process::EVERYTHING.join(" ")));
    let mut command = build::test_command(metadata)?;
    // A run takes long enough that it should report all that fails.
    command.arg("--no-fail-fast");
    if *is_full {
        command.env(process::FULL, "1");
    }
    let outcome = process::run_with_lines(runner::set_runner(&mut command, program)?, |line| {
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

/// Prints the table of steps, the times of the tests, and the summary.
fn print_times(notes: &Notes, report: &Report) {
    print!("{}", report::render_test_times(notes.build.as_ref(), &notes.tests));
    print!("{}", report.table());
    for line in &notes.summary {
        println!("{line}");
    }
}

/// Returns the CPU time of this process and of all child processes that were waited for.
fn cpu_time() -> Result<Duration, Failure> {
    let children = process::cpu_time(UsageWho::RUSAGE_CHILDREN)?;
    Ok(process::cpu_time(UsageWho::RUSAGE_SELF)? + children)
}

#[cfg(test)]
mod tests {
    use super::{Selection, choose, verdict};

    #[test]
    fn steps_are_chosen_by_name() {
        let names = |line: &str| {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            let Selection { is_full, is_built: _, steps } =
                choose(&words).map_err(|failure| failure.to_string())?;
            Ok::<_, String>((is_full, steps.iter().map(|step| step.name).collect::<Vec<_>>()))
        };
        assert_eq!(names("fmt deny"), Ok((false, vec!["fmt", "deny"])));
        assert_eq!(names("--full weight"), Ok((true, vec!["weight"])));
        assert_eq!(names("wire"), Ok((false, vec!["build", "wire"])));
        assert_eq!(names("--built wire"), Ok((false, vec!["wire"])));
        let (default, full) = (names("").unwrap().1, names("--full").unwrap().1);
        assert!(default.contains(&"test") && !default.contains(&"weight"), "{default:?}");
        assert!(full.contains(&"test") && full.contains(&"weight"), "{full:?}");
        assert!(
            names("none").unwrap_err().starts_with("unknown step `none`; expected --full or one of fmt, ")
        );
    }

    #[test]
    fn a_skipped_step_does_not_count_as_passed() {
        assert_eq!(verdict(9, 0), "ci passed: 9 steps");
        assert_eq!(verdict(9, 1), "ci passed: 8 of 9 steps, 1 SKIPPED");
    }
}
