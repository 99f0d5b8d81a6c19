//! Output of `cargo test`.

use std::collections::BTreeMap;

use super::{TestRun, TestStatus};

/// Examples in documentation by their programs and items, each with its line.
type DocExamples = BTreeMap<String, Vec<(usize, TestStatus)>>;

/// Tests of one program.
#[derive(Debug, Default)]
struct CargoSuite {
    name: String,
    /// Number of tests that it announced.
    planned: Option<usize>,
    passed: usize,
    failed: usize,
    ignored: usize,
}

pub(super) fn parse(text: &str) -> TestRun {
    let mut run = TestRun::default();
    let (mut suite, mut name, mut suites) = (None::<CargoSuite>, None::<String>, 0_usize);
    let (mut programs, mut examples) = (BTreeMap::<String, usize>::new(), DocExamples::new());
    for line in text.lines() {
        let line = line.trim_end();
        if let Some(named) = program(line) {
            // Packages of one workspace may have programs of the same name, such as `tests/it.rs`.
            let count = programs.entry(named.clone()).or_default();
            *count += 1;
            name = Some(numbered(named, *count));
        } else if let Some(planned) = planned(line) {
            if let Some(open) = suite.take() {
                run.problem(format!("{} ended without a summary", open.name));
            }
            suites += 1;
            // Documentation has two suites: examples that are compiled together, and all other examples.
            let name = name.clone().unwrap_or_else(|| suites.to_string());
            suite = Some(CargoSuite { name, planned: Some(planned), ..CargoSuite::default() });
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
            let test = format!("{}::{test}", open.name);
            match example(&test) {
                Some((item, line)) => examples.entry(item).or_default().push((line, status)),
                None => run.add(test, status),
            }
        }
    }
    add_examples(examples, &mut run);
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

/// Returns a test and its outcome: `test name ... ok`.
fn result(line: &str) -> Option<(&str, TestStatus)> {
    // The reason of an ignored test may have these dots as well.
    let (test, status) = line.strip_prefix("test ")?.split_once(" ... ")?;
    let status = match status {
        "ok" => TestStatus::Passed,
        "FAILED" => TestStatus::Failed,
        _ if status == "ignored" || status.starts_with("ignored, ") => TestStatus::Skipped,
        _ if status.starts_with("FAILED (") => TestStatus::Failed,
        _ => return None,
    };
    Some((test.strip_suffix(" - should panic").unwrap_or(test), status))
}

/// Returns the item of an example in documentation without its line, and the line: `src/lib.rs - add (line 3)`.
fn example(test: &str) -> Option<(String, usize)> {
    let (before, after) = test.rsplit_once(" (line ")?;
    let (line, kind) = after.split_once(')')?;
    Some((format!("{before}{kind}"), line.parse().ok()?))
}

/// Names the examples of an item by their order, because a change further up moves their lines.
fn add_examples(examples: DocExamples, run: &mut TestRun) {
    for (item, mut found) in examples {
        found.sort_by_key(|(line, _)| *line);
        let (mut number, mut last) = (0, None);
        for (line, status) in found {
            // An example that is reported twice gets the same number twice, which is a problem.
            if last != Some(line) {
                number += 1;
            }
            last = Some(line);
            run.add(numbered(item.clone(), number), status);
        }
    }
}

/// Returns a name with its number, unless the number is 1.
fn numbered(name: String, number: usize) -> String {
    if number > 1 { format!("{name} ({number})") } else { name }
}

/// Returns the numbers of passed, failed and ignored tests in a summary.
fn summary(line: &str) -> Option<[usize; 3]> {
    let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let count = |name: &str| {
        counts.split("; ").find_map(|part| part.strip_suffix(name)?.trim().parse::<usize>().ok())
    };
    Some([count("passed")?, count("failed")?, count("ignored")?])
}

fn check(suite: &CargoSuite, summed: &[usize; 3], run: &mut TestRun) {
    let CargoSuite { name, planned, passed, failed, ignored } = suite;
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
