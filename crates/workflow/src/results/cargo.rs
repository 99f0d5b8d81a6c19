//! Output of `cargo test`.

use super::{TestRun, TestStatus};

/// Tests of one program.
#[derive(Debug, Default)]
struct Suite {
    name: String,
    /// Number of tests that it announced.
    planned: Option<usize>,
    passed: usize,
    failed: usize,
    ignored: usize,
}

pub(super) fn parse(text: &str) -> TestRun {
    let mut run = TestRun::default();
    let (mut suite, mut name, mut suites) = (None::<Suite>, None::<String>, 0_usize);
    for line in text.lines() {
        let line = line.trim_end();
        if let Some(named) = program(line) {
            name = Some(named);
        } else if let Some(planned) = planned(line) {
            if let Some(open) = suite.take() {
                run.problem(format!("{} ended without a summary", open.name));
            }
            suites += 1;
            let name = name.take().unwrap_or_else(|| suites.to_string());
            suite = Some(Suite { name, planned: Some(planned), ..Suite::default() });
        } else if let Some(counts) = summary(line) {
            match suite.take() {
                Some(open) => check(&open, &counts, &mut run),
                None => run.problem("a summary belongs to no tests".to_owned()),
            }
        } else if let (Some(open), Some((test, status))) = (suite.as_mut(), result(line)) {
            match status {
                TestStatus::Passed => open.passed += 1,
                TestStatus::Skipped => open.ignored += 1,
                TestStatus::Failed | TestStatus::Broken => open.failed += 1,
            }
            run.add(format!("{}::{test}", open.name), status);
        }
    }
    if let Some(open) = suite {
        run.problem(format!("{} ended without a summary", open.name));
    }
    run
}

/// Returns the program whose tests follow: `Running unittests src/lib.rs (target/debug/deps/name-0123456789abcdef)`.
fn program(line: &str) -> Option<String> {
    let line = line.trim_start();
    if let Some(package) = line.strip_prefix("Doc-tests ") {
        return Some(format!("{package} (documentation)"));
    }
    let path = line.strip_prefix("Running ")?.rsplit_once('(')?.1.strip_suffix(')')?;
    let file = path.rsplit(['/', '\\']).next()?;
    let stem = file.strip_suffix(".exe").unwrap_or(file);
    // The hash differs from build to build.
    Some(stem.rsplit_once('-').map_or(stem, |(name, _)| name).to_owned())
}

fn planned(line: &str) -> Option<usize> {
    let count = line.strip_prefix("running ")?;
    count.strip_suffix(" tests").or_else(|| count.strip_suffix(" test"))?.parse().ok()
}

/// Returns a test and what became of it: `test name ... ok`.
fn result(line: &str) -> Option<(&str, TestStatus)> {
    let (test, status) = line.strip_prefix("test ")?.rsplit_once(" ... ")?;
    let status = match status {
        "ok" => TestStatus::Passed,
        "FAILED" => TestStatus::Failed,
        _ if status == "ignored" || status.starts_with("ignored, ") => TestStatus::Skipped,
        _ if status.starts_with("FAILED (") => TestStatus::Failed,
        _ => return None,
    };
    Some((test.strip_suffix(" - should panic").unwrap_or(test), status))
}

/// Returns how many tests passed, failed and were ignored, of a summary.
fn summary(line: &str) -> Option<[usize; 3]> {
    let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let count = |name: &str| {
        counts.split("; ").find_map(|part| part.strip_suffix(name)?.trim().parse::<usize>().ok())
    };
    Some([count("passed")?, count("failed")?, count("ignored")?])
}

fn check(suite: &Suite, summed: &[usize; 3], run: &mut TestRun) {
    let Suite { name, planned, passed, failed, ignored } = suite;
    if [*passed, *failed, *ignored] != *summed {
        run.problem(format!(
            "{name} names {passed} passed, {failed} failed and {ignored} ignored tests, and its summary has {}, {} and {}",
            summed[0], summed[1], summed[2]
        ));
    }
    let ran = passed + failed + ignored;
    if planned.is_some_and(|planned| planned != ran) {
        run.problem(format!("{name} announced {} tests and reported {ran}", planned.unwrap_or_default()));
    }
}
