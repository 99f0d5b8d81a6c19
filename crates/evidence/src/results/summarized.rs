//! Output of runners that print a line for each test and their sums at the end: `ctest`, `dotnet test` and `mix test`.

use super::{TestRun, TestStatus};

/// Output of `ctest`.
pub(super) fn parse_ctest(text: &str) -> TestRun {
    let mut run = TestRun::default();
    let mut summary = None;
    for line in text.lines().map(str::trim_end) {
        if let Some((name, status)) = ctest_line(line) {
            run.add(name.to_owned(), status);
        } else if let Some(counts) = ctest_summary(line)
            && summary.replace(counts).is_some()
        {
            run.problem("there are two summaries".to_owned());
        }
    }
    let failed = run.count(TestStatus::Failed) + run.count(TestStatus::Broken);
    // Disabled tests are listed, and are not counted.
    let total = run.tests.len();
    check_sums(&mut run, summary, |(listed, all)| listed == failed && (failed..=total).contains(&all));
    run
}

/// `2/3 Test #2: subtracts .......***Failed  0.01 sec`
fn ctest_line(line: &str) -> Option<(&str, TestStatus)> {
    let (progress, rest) = line.trim_start().split_once(" Test ")?;
    let (one, all) = progress.split_once('/')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(one.trim()) || !is_number(all.trim()) {
        return None;
    }
    let (_, rest) = rest.trim_start().strip_prefix('#')?.split_once(": ")?;
    let (name, result) = rest.trim_start().split_once(' ')?;
    let result = result.trim_start_matches(['.', ' ']);
    let status = match result {
        _ if result.starts_with("Passed") => TestStatus::Passed,
        _ if result.starts_with("***Failed") => TestStatus::Failed,
        _ if result.starts_with("***Skipped") => TestStatus::Skipped,
        _ if result.starts_with("***Not Run (Disabled)") => TestStatus::Skipped,
        _ if result.starts_with("***") => TestStatus::Broken,
        _ => return None,
    };
    Some((name, status))
}

/// Returns the numbers of failed and of all tests: `67% tests passed, 1 tests failed out of 3`.
fn ctest_summary(line: &str) -> Option<(usize, usize)> {
    let (_, rest) = line.split_once("% tests passed, ")?;
    let (failed, all) = rest.split_once(" failed out of ")?;
    Some((failed.split(' ').next()?.parse().ok()?, all.trim().parse().ok()?))
}

/// Output of `dotnet test` with the console logger at the verbosity `normal`.
pub(super) fn parse_dotnet(text: &str) -> TestRun {
    let mut run = TestRun::default();
    let (mut summed, mut has_failed) = (None::<usize>, None::<usize>);
    for line in text.lines().map(str::trim_end) {
        let content = line.trim_start();
        let sum = |name: &str| content.strip_prefix(name)?.trim().parse::<usize>().ok();
        if let Some((name, status)) = dotnet_line(line) {
            run.add(name.to_owned(), status);
        } else if let Some(total) = sum("Total tests:") {
            // Each project has its sums.
            summed = Some(summed.unwrap_or_default() + total);
        } else if let Some(failed) = sum("Failed:") {
            has_failed = Some(has_failed.unwrap_or_default() + failed);
        }
    }
    let (failed, total) = (run.count(TestStatus::Failed), run.tests.len());
    let summary = summed.map(|all| (has_failed.unwrap_or_default(), all));
    check_sums(&mut run, summary, |(listed, all)| listed == failed && all == total);
    run
}

/// `  Failed Sums.Tests.Subtracts [12 ms]`
fn dotnet_line(line: &str) -> Option<(&str, TestStatus)> {
    let content = line.strip_prefix("  ")?;
    let (word, rest) = content.split_once(' ')?;
    let status = match word {
        "Passed" => TestStatus::Passed,
        "Failed" => TestStatus::Failed,
        "Skipped" => TestStatus::Skipped,
        _ => return None,
    };
    let (name, time) = rest.rsplit_once(" [")?;
    time.ends_with("s]").then_some((name, status))
}

/// Output of `mix test --trace`.
pub(super) fn parse_mix(text: &str) -> TestRun {
    let mut run = TestRun::default();
    let (mut module, mut last) = (String::new(), None::<String>);
    let (mut summary, mut failed) = (None, Vec::new());
    for line in text.lines() {
        // A carriage return replaces the line that announces a test.
        let line = line.rsplit('\r').next().unwrap_or(line).trim_end();
        if let Some(name) = mix_module(line) {
            module = name.to_owned();
        } else if let Some((name, status)) = mix_line(line) {
            let name = format!("{module}: {name}");
            run.add(name.clone(), status);
            last = Some(name);
        } else if is_mix_failure(line) {
            // The details of a failed test follow its line.
            failed.extend(last.take());
        } else if let Some(counts) = mix_summary(line) {
            summary = Some(counts);
        }
    }
    for name in failed {
        run.tests.insert(name, TestStatus::Failed);
    }
    let (failures, total) = (run.count(TestStatus::Failed), run.tests.len());
    check_sums(&mut run, summary, |(listed, all)| listed == failures && all == total);
    run
}

/// `SumsTest [test/sums_test.exs]`
fn mix_module(line: &str) -> Option<&str> {
    let (name, file) = line.split_once(" [")?;
    let is_name = name.starts_with(char::is_uppercase) && !name.contains(' ');
    (is_name && file.ends_with(".exs]")).then_some(name)
}

/// `  * test adds (0.01ms) [L#5]`
fn mix_line(line: &str) -> Option<(&str, TestStatus)> {
    let content = line.strip_prefix("  * ")?;
    let content = content.rsplit_once(" [L#").map_or(content, |(content, _)| content);
    let (name, result) = content.rsplit_once(" (")?;
    let result = result.strip_suffix(')')?;
    let status = match result {
        "skipped" | "excluded" => TestStatus::Skipped,
        _ if result.ends_with("ms") => TestStatus::Passed,
        _ => return None,
    };
    Some((name, status))
}

/// `  1) test subtracts (SumsTest)`
fn is_mix_failure(line: &str) -> bool {
    let Some((number, rest)) = line.strip_prefix("  ").and_then(|line| line.split_once(") ")) else {
        return false;
    };
    number.trim().parse::<usize>().is_ok() && rest.ends_with(')')
}

/// Returns the numbers of failed and of all tests: `1 doctest, 3 tests, 1 failure, 1 skipped`.
fn mix_summary(line: &str) -> Option<(usize, usize)> {
    let (mut failed, mut all) = (None, None::<usize>);
    for part in line.split(", ") {
        let (count, what) = part.split_once(' ')?;
        let count: usize = count.parse().ok()?;
        match what {
            "failure" | "failures" => failed = Some(count),
            "test" | "tests" | "doctest" | "doctests" | "property" | "properties" => {
                all = Some(all.unwrap_or_default() + count);
            }
            "skipped" | "excluded" | "invalid" => {}
            _ => return None,
        }
    }
    Some((failed?, all?))
}

/// Adds a problem if there is no summary, or one that does not fit.
fn check_sums(run: &mut TestRun, summary: Option<(usize, usize)>, is_right: impl Fn((usize, usize)) -> bool) {
    match summary {
        None => run.problem("the run ended without a summary".to_owned()),
        Some(summary) if !is_right(summary) => {
            let (failed, all) = summary;
            run.problem(format!(
                "the summary has {all} tests of which {failed} failed, which are not those that are named"
            ));
        }
        Some(_) => {}
    }
}
