//! Output of `python -m unittest -v`.

use super::{TestRun, TestStatus};

/// Counts of the last line: `FAILED (failures=1, errors=2, skipped=1)`.
#[derive(Debug, Default)]
struct UnittestCounts {
    failures: usize,
    errors: usize,
}

pub(super) fn parse(text: &str) -> TestRun {
    let mut run = TestRun::default();
    // Test whose result has not been printed yet, and whether one of its subtests has failed.
    let mut open: Option<(String, Option<TestStatus>)> = None;
    let (mut ran, mut counts) = (None::<usize>, None::<UnittestCounts>);
    for line in text.lines().map(str::trim_end) {
        if line.starts_with("======") || line.starts_with("------") {
            // Details and the summary follow, which name the tests again.
            close(open.take(), &mut run);
        }
        if let Some(count) = ran_line(line) {
            if ran.replace(count).is_some() {
                run.problem("there are two summaries".to_owned());
            }
        } else if ran.is_some() {
            counts = counts.or_else(|| end_line(line));
        } else if let Some((name, rest)) = test_line(line) {
            let is_subtest = line.starts_with("  ");
            if is_subtest && let Some(parent) = open.as_mut().filter(|parent| parent.0 == name) {
                parent.1 = parent.1.or(status(rest));
                continue;
            }
            close(open.take(), &mut run);
            match status(rest) {
                Some(status) => run.add(name, status),
                None => open = Some((name, None)),
            }
        } else if let Some((name, failure)) = open.take() {
            // The first line of a docstring, or output of the test, precedes the result.
            let rest = line.rsplit_once(" ... ").map_or(line, |(_, rest)| rest);
            match status(rest).filter(|_| failure.is_none()) {
                Some(status) => run.add(name, status),
                None => open = Some((name, failure)),
            }
        }
    }
    close(open, &mut run);
    match (ran, counts) {
        (Some(ran), Some(counts)) => check(ran, &counts, &mut run),
        _ => run.problem("the run ended without a summary".to_owned()),
    }
    run
}

/// Adds a test that has only the results of its subtests.
fn close(open: Option<(String, Option<TestStatus>)>, run: &mut TestRun) {
    match open {
        Some((name, Some(failure))) => run.add(name, failure),
        Some((name, None)) => run.problem(format!("`{name}` has no result")),
        None => {}
    }
}

/// Returns the name of a test and the text after it: `test_adds (tests.test_sums.Sums.test_adds) ... ok`.
fn test_line(line: &str) -> Option<(String, &str)> {
    let (method, rest) = line.trim_start().split_once(" (")?;
    let is_name = |text: &str| {
        !text.is_empty()
            && text.chars().all(|character| character.is_alphanumeric() || "_.-<>".contains(character))
    };
    let (path, rest) = rest.split_once(')')?;
    if !is_name(method) || !is_name(path) || !path.contains('.') && method != "setUpModule" {
        return None;
    }
    // Before version 3.11, the path ends with the class.
    let name =
        if path.ends_with(&format!(".{method}")) { path.to_owned() } else { format!("{path}.{method}") };
    // The parameters of a subtest precede its result.
    let after = rest.strip_prefix(" ... ").or_else(|| Some(rest.rsplit_once(" ... ")?.1));
    let rest = after.unwrap_or(rest);
    Some((name, rest.strip_suffix(" ...").unwrap_or(rest)))
}

fn status(rest: &str) -> Option<TestStatus> {
    Some(match rest.trim() {
        "ok" | "unexpected success" => TestStatus::Passed,
        "FAIL" => TestStatus::Failed,
        "ERROR" => TestStatus::Broken,
        "expected failure" => TestStatus::Skipped,
        rest if rest == "skipped" || rest.starts_with("skipped '") || rest.starts_with("skipped \"") => {
            TestStatus::Skipped
        }
        _ => return None,
    })
}

/// `Ran 9 tests in 0.001s`
fn ran_line(line: &str) -> Option<usize> {
    let (count, rest) = line.strip_prefix("Ran ")?.split_once(' ')?;
    (rest.starts_with("test in ") || rest.starts_with("tests in ")).then(|| count.parse().ok())?
}

fn end_line(line: &str) -> Option<UnittestCounts> {
    let rest = ["OK", "FAILED", "NO TESTS RAN"].into_iter().find_map(|word| line.strip_prefix(word))?;
    let mut counts = UnittestCounts::default();
    let listed = rest.trim().trim_start_matches('(').trim_end_matches(')');
    for (name, count) in listed.split(", ").filter_map(|part| part.split_once('=')) {
        let count = count.parse().ok()?;
        match name {
            "failures" => counts.failures = count,
            "errors" => counts.errors = count,
            _ => {}
        }
    }
    Some(counts)
}

fn check(ran: usize, counts: &UnittestCounts, run: &mut TestRun) {
    let of = |status: TestStatus| run.count(status);
    // Each failed subtest counts, and a failed set-up of a class is no test.
    let (failed, broken) = (of(TestStatus::Failed), of(TestStatus::Broken));
    let (named, listed) = (run.tests.len(), counts.failures + counts.errors);
    let has_cause = failed + broken > 0;
    if failed + broken > listed || listed > 0 && !has_cause {
        let problem = format!("{} failed tests are named, and the summary has {listed}", failed + broken);
        run.problem(problem);
    }
    if named < ran {
        run.problem(format!("{named} tests are named, and {ran} ran"));
    }
}
