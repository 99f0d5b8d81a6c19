//! `cargo xtask mutations`: whether the tests of both definitions of done fail when the code breaks.
//!
//! `xtask/mutations.toml` lists hand-picked changes of the code, each with the lines of `xtask/conformance.toml` that it
//! breaks. This command applies one change after the other to a copy of the sources and runs the tests of its lines. A
//! change survives if all tests of one of its lines pass.

mod list;
mod scratch;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use self::{
    list::{Mutation, MutationList},
    scratch::{Scratch, TestTarget},
};
use crate::{
    conformance::{self, TestOutcome},
    failure::Failure,
    metadata::Metadata,
};

/// Time limit of a run. A build that has started is completed.
const LIMIT: Duration = Duration::from_secs(3 * 60 * 60);

/// Tests by the identifier of their line.
type TestsByLine = BTreeMap<String, Vec<String>>;

#[derive(Debug, Default, PartialEq, Eq)]
struct Options {
    list: bool,
    /// The only line whose mutations are used.
    only: Option<String>,
}

/// Result of one mutation.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// A test of each line failed.
    Killed,
    /// The lines whose tests all passed.
    Survived(BTreeSet<String>),
    /// The mutation does not compile, or its tests could not be run.
    Invalid(String),
    /// The time of the run was over.
    NotRun,
}

/// Applies the mutations and prints the survivors.
///
/// `--list` prints the mutations without running anything; `--only LINE` selects those of one line.
/// Fails if a mutation survives, cannot be built, or was not run.
pub(crate) fn run(metadata: &Metadata, arguments: &[String]) -> Result<(), Failure> {
    let options = Options::parse(arguments)?;
    let root = &metadata.workspace_root;
    let tests = conformance::tests_by_line(root)?;
    let list = MutationList::load(root)?;
    list.check(root, &tests)?;
    let chosen = list.select(options.only.as_deref())?;
    if options.list {
        chosen.iter().for_each(|mutation| println!("{mutation}"));
        return Ok(());
    }
    let started = Instant::now();
    let scratch = Scratch::create(metadata)?;
    require_passing(&scratch, &tests_of(&chosen, &tests))?;
    let mut verdicts = Vec::new();
    for mutation in chosen {
        let verdict = match started.elapsed() < LIMIT {
            true => judge(&scratch, mutation, &tests),
            false => Verdict::NotRun,
        };
        println!("{mutation}: {verdict}");
        verdicts.push((mutation, verdict));
    }
    println!("{} mutations took {} s", verdicts.len(), started.elapsed().as_secs());
    summarize(&verdicts)
}

impl Options {
    fn parse(arguments: &[String]) -> Result<Self, Failure> {
        let mut options = Self::default();
        let mut words = arguments.iter().map(String::as_str);
        while let Some(word) = words.next() {
            match word {
                "--list" => options.list = true,
                "--only" => {
                    let line = words.next().ok_or_else(|| Failure::new("expected a line after --only"))?;
                    options.only = Some(line.to_owned());
                }
                other => {
                    return Err(Failure::new(format!(
                        "unknown option `{other}`; expected --list or --only LINE"
                    )));
                }
            }
        }
        Ok(options)
    }
}

/// Returns the tests of all lines of the mutations.
fn tests_of<'a>(mutations: &[&Mutation], tests: &'a TestsByLine) -> BTreeSet<&'a str> {
    let lines = mutations.iter().flat_map(|mutation| &mutation.lines);
    lines.filter_map(|line| tests.get(line)).flatten().map(String::as_str).collect()
}

/// Runs the tests on the unchanged sources. A test that fails there cannot judge a mutation.
fn require_passing(scratch: &Scratch, tests: &BTreeSet<&str>) -> Result<(), Failure> {
    let mut problems = Vec::new();
    for (target, names) in scratch.by_target(tests, None)? {
        for (name, outcome) in scratch.run(&target, &names)? {
            match outcome {
                TestOutcome::Passed => {}
                TestOutcome::Failed(why) => problems.push(format!("{name} failed: {why}")),
                TestOutcome::Missing => problems.push(format!("{name} does not exist")),
            }
        }
    }
    match problems.is_empty() {
        true => Ok(()),
        false => Err(Failure::new(format!("without a mutation, {}", problems.join("\n")))),
    }
}

fn judge(scratch: &Scratch, mutation: &Mutation, tests: &TestsByLine) -> Verdict {
    let survivors = scratch.with_mutation(mutation, || survivors(scratch, mutation, tests));
    match survivors {
        Ok(lines) if lines.is_empty() => Verdict::Killed,
        Ok(lines) => Verdict::Survived(lines),
        Err(failure) => Verdict::Invalid(failure.chain()),
    }
}

/// Returns the lines whose tests all pass. Builds one test program after the other, those of the changed package first, and
/// only as long as there are such lines.
fn survivors(
    scratch: &Scratch,
    mutation: &Mutation,
    tests: &TestsByLine,
) -> Result<BTreeSet<String>, Failure> {
    let mut lines: BTreeSet<String> = mutation.lines.iter().cloned().collect();
    let targets: Vec<TestTarget> =
        scratch.by_target(&tests_of(&[mutation], tests), Some(mutation.file.as_str()))?.into_keys().collect();
    for target in targets {
        let left = lines.iter().filter_map(|line| tests.get(line)).flatten().map(String::as_str);
        let names = scratch.tests_in(&target, left)?;
        if names.is_empty() {
            continue;
        }
        let outcomes = scratch.run(&target, &names)?;
        lines.retain(|line| tests.get(line).is_none_or(|tests| !has_failure(tests, &outcomes)));
    }
    Ok(lines)
}

fn has_failure(tests: &[String], outcomes: &BTreeMap<String, TestOutcome>) -> bool {
    tests.iter().any(|test| matches!(outcomes.get(test), Some(TestOutcome::Failed(_))))
}

/// Prints every mutation that was not killed, and fails if there is one.
fn summarize(verdicts: &[(&Mutation, Verdict)]) -> Result<(), Failure> {
    let left: Vec<_> = verdicts.iter().filter(|(_, verdict)| *verdict != Verdict::Killed).collect();
    if left.is_empty() {
        return Ok(());
    }
    println!("\nnot killed:");
    for (mutation, verdict) in &left {
        println!("  {mutation}: {verdict}");
    }
    Err(Failure::new(format!("{} of {} mutations were not killed", left.len(), verdicts.len())))
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Killed => formatter.write_str("killed"),
            Self::Survived(lines) => {
                let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
                write!(formatter, "SURVIVED the tests of {}", lines.join(", "))
            }
            Self::Invalid(why) => write!(formatter, "INVALID: {why}"),
            Self::NotRun => formatter.write_str("NOT RUN, the time is over"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{Options, TestOutcome, has_failure};

    #[test]
    fn options_are_parsed() {
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let options = |list, only: Option<&str>| Some(Options { list, only: only.map(str::to_owned) });
        for (text, expected) in [
            ("", options(false, None)),
            ("--list", options(true, None)),
            ("--only L-9.1-1 --list", options(true, Some("L-9.1-1"))),
            ("--only", None),
            ("--all", None),
        ] {
            assert_eq!(Options::parse(&words(text)).ok(), expected, "{text:?}");
        }
    }

    #[test]
    fn one_failed_test_kills_a_mutation() {
        let outcomes = BTreeMap::from([
            (String::from("a::good"), TestOutcome::Passed),
            (String::from("a::bad"), TestOutcome::Failed(String::from("exit status 101"))),
            (String::from("a::gone"), TestOutcome::Missing),
        ]);
        let killed = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            has_failure(&names, &outcomes)
        };
        assert!(killed(&["a::good", "a::bad"]));
        assert!(!killed(&["a::good", "a::gone", "b::in_another_program"]));
    }
}
