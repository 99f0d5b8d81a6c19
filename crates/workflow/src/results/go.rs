//! Output of `go test`, with `-json` or as text.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{TestRun, TestStatus};

/// An event of `go test -json`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct GoEvent {
    action: String,
    #[serde(default)]
    package: Option<String>,
    #[serde(default)]
    test: Option<String>,
    #[serde(default)]
    output: Option<String>,
}

/// Tests of a package.
#[derive(Debug, Default)]
struct GoPackage {
    /// Tests with their results; `None` for a test that has not ended.
    tests: BTreeMap<String, Option<TestStatus>>,
    /// Result of the package.
    end: Option<TestStatus>,
}

pub(super) fn parse(text: &str) -> TestRun {
    if text.lines().any(|line| event(line).is_some()) { parse_events(text) } else { parse_text(text) }
}

/// Returns the text that the events of `go test -json` contain.
pub(super) fn readable(text: &str) -> String {
    let mut readable = String::with_capacity(text.len() / 2);
    for line in text.lines() {
        match event(line) {
            Some(event) => readable.push_str(event.output.as_deref().unwrap_or_default()),
            None => {
                readable.push_str(line);
                readable.push('\n');
            }
        }
    }
    readable
}

fn event(line: &str) -> Option<GoEvent> {
    line.starts_with('{').then(|| serde_json::from_str(line).ok())?
}

fn parse_events(text: &str) -> TestRun {
    let (mut run, mut packages) = (TestRun::default(), BTreeMap::<String, GoPackage>::new());
    for line in text.lines() {
        let Some(GoEvent { action, package: Some(package), test, .. }) = event(line) else {
            // A package that cannot be built is reported as text by older versions.
            if let Some((package, TestStatus::Failed)) = package_line(line) {
                packages.entry(package.to_owned()).or_default().end = Some(TestStatus::Failed);
            }
            continue;
        };
        let status = match action.as_str() {
            "pass" => Some(TestStatus::Passed),
            "fail" => Some(TestStatus::Failed),
            "skip" => Some(TestStatus::Skipped),
            "run" | "start" => None,
            _ => continue,
        };
        let package = packages.entry(package).or_default();
        match test {
            None => package.end = status,
            Some(test) => {
                let is_ended = package.tests.get(&test).is_some_and(Option::is_some);
                if is_ended && status.is_some() {
                    run.problem(format!("`{test}` is reported twice"));
                }
                package.tests.insert(test, status);
            }
        }
    }
    for (name, package) in packages {
        add_package(&name, package, &mut run);
    }
    run
}

fn add_package(name: &str, package: GoPackage, run: &mut TestRun) {
    let is_failed = |status: &Option<TestStatus>| *status == Some(TestStatus::Failed);
    let has_cause = package.tests.values().any(is_failed);
    for (test, status) in package.tests {
        // A panic ends the package, and with it the tests that run at the same time.
        let ended_early = package.end == Some(TestStatus::Failed);
        match status {
            Some(status) => run.add(format!("{name}::{test}"), status),
            None if ended_early => run.add(format!("{name}::{test}"), TestStatus::Broken),
            None => run.problem(format!("{name}::{test} has not ended")),
        }
    }
    match package.end {
        Some(TestStatus::Failed) if !has_cause => run.add(name.to_owned(), TestStatus::Broken),
        Some(_) => {}
        None => run.problem(format!("{name} ended without a result")),
    }
}

/// Without `-v`, the text names failed tests and packages only.
fn parse_text(text: &str) -> TestRun {
    let mut run = TestRun::default();
    let mut tests = Vec::new();
    for line in text.lines() {
        if let Some(result) = test_line(line) {
            tests.push(result);
        } else if let Some((package, status)) = package_line(line) {
            let has_cause = tests.iter().any(|(_, status)| *status == TestStatus::Failed);
            for (test, status) in tests.drain(..) {
                run.add(format!("{package}::{test}"), status);
            }
            let status = if status == TestStatus::Failed && !has_cause { TestStatus::Broken } else { status };
            run.add(package.to_owned(), status);
        }
    }
    if !tests.is_empty() {
        run.problem("the last package ended without a result".to_owned());
    }
    run
}

/// `    --- FAIL: TestSub/c (0.00s)`
fn test_line(line: &str) -> Option<(&str, TestStatus)> {
    let (status, rest) = line.trim_start().strip_prefix("--- ")?.split_once(": ")?;
    let status = match status {
        "PASS" => TestStatus::Passed,
        "FAIL" => TestStatus::Failed,
        "SKIP" => TestStatus::Skipped,
        _ => return None,
    };
    let (test, time) = rest.rsplit_once(" (")?;
    time.ends_with("s)").then_some((test, status))
}

/// `ok   sums 0.003s`, `FAIL sums 0.004s`, `FAIL sums/bad [build failed]`, `?    sums/none [no test files]`
fn package_line(line: &str) -> Option<(&str, TestStatus)> {
    let (status, rest) = line.split_once('\t')?;
    let status = match status.trim_end() {
        "ok" => TestStatus::Passed,
        "FAIL" => TestStatus::Failed,
        "?" => TestStatus::Skipped,
        _ => return None,
    };
    let package = rest.split(['\t', ' ']).next().filter(|package| !package.is_empty())?;
    Some((package, status))
}
