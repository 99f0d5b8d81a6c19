//! Output of `pytest` with `-v` or `-rA`.

use std::collections::BTreeMap;

use super::{TestRun, TestStatus};

pub(super) fn parse(text: &str) -> TestRun {
    let mut run = TestRun::default();
    // Both forms may be printed, and an error in the teardown of a passed test is a second line.
    let mut found: BTreeMap<String, TestStatus> = BTreeMap::new();
    let (mut summed, mut plain) = (None, None);
    let mut in_summary = false;
    for line in text.lines().map(str::trim_end) {
        if is_rule(line) {
            in_summary = line.contains(" short test summary info ");
            if let Some(counts) = counts(line)
                && summed.replace(counts).is_some()
            {
                run.problem("there are two summaries".to_owned());
            }
            continue;
        }
        plain = plain_counts(line).or(plain);
        let named = if in_summary { short(line) } else { verbose(line) };
        if let Some((test, status)) = named {
            let known = found.entry(test.to_owned()).or_insert(status);
            *known = worse(*known, status);
        }
    }
    for (test, status) in found {
        run.add(test, status);
    }
    // With `-q`, the last line has no frame.
    match summed.or(plain) {
        Some(counts) => check(&counts, &mut run),
        None => run.problem("the run ended without a summary".to_owned()),
    }
    run
}

/// Returns whether a line is a heading or the end: `==== text ====`. A long text leaves room for one `=` at each end.
fn is_rule(line: &str) -> bool {
    let is_framed = line.starts_with("==") && line.ends_with("==") && line.len() > 4;
    is_framed || line.starts_with("= ") && line.ends_with(" =")
}

/// `tests/test_a.py::test_b PASSED  [ 50%]`
fn verbose(line: &str) -> Option<(&str, TestStatus)> {
    let line = match line.rsplit_once('[') {
        Some((rest, progress)) if progress.ends_with("%]") => rest.trim_end(),
        _ => line,
    };
    // The reason of a skip or of an expected failure follows in brackets.
    let with_reason = ["SKIPPED", "XFAIL", "XPASS"].into_iter().find_map(|word| {
        let (test, _) = line.strip_suffix(')')?.split_once(&format!(" {word} ("))?;
        Some((test, word))
    });
    let (test, word) = with_reason.or_else(|| line.rsplit_once(' '))?;
    test.contains("::").then_some(())?;
    Some((test.trim_end(), status(word)?))
}

/// `FAILED tests/test_a.py::test_b - assert 1 == 2`
fn short(line: &str) -> Option<(&str, TestStatus)> {
    let (word, rest) = line.split_once(' ')?;
    // The summary does not name skipped tests, and an error of a module has no test.
    let test = without_message(rest);
    // Before version 8, nothing separates the reason of an unexpected pass.
    let test = if word == "XPASS" { without_words(test) } else { test };
    (test.contains("::") || word == "ERROR").then_some(())?;
    Some((test, status(word)?))
}

/// Returns the test at the start of a line. Its parameters may contain the separator of the message.
fn without_message(line: &str) -> &str {
    let test = line.split(" - ").next().unwrap_or(line);
    if !test.contains('[') || test.ends_with(']') {
        return test;
    }
    match line.find("] - ") {
        Some(end) => line.get(..=end).unwrap_or(line),
        None => line,
    }
}

/// Returns the test at the start of a line, without the text that follows.
fn without_words(line: &str) -> &str {
    let end = if line.contains('[') { line.find("] ").map(|end| end + 1) } else { line.find(' ') };
    end.and_then(|end| line.get(..end)).unwrap_or(line)
}

fn status(word: &str) -> Option<TestStatus> {
    Some(match word {
        "PASSED" | "XPASS" => TestStatus::Passed,
        "FAILED" => TestStatus::Failed,
        "ERROR" => TestStatus::Broken,
        "SKIPPED" | "XFAIL" => TestStatus::Skipped,
        _ => return None,
    })
}

/// A passed test whose teardown failed is broken.
fn worse(one: TestStatus, other: TestStatus) -> TestStatus {
    let weight = |status| match status {
        TestStatus::Passed => 0,
        TestStatus::Skipped => 1,
        TestStatus::Broken => 2,
        TestStatus::Failed => 3,
    };
    if weight(other) > weight(one) { other } else { one }
}

/// Returns the counts of the last line: `== 1 failed, 2 passed, 1 error in 0.12s ==`.
fn counts(line: &str) -> Option<BTreeMap<&str, usize>> {
    let (counts, _) = line.trim_matches(['=', ' ']).rsplit_once(" in ")?;
    if counts == "no tests ran" {
        return Some(BTreeMap::new());
    }
    let count = |part: &'_ str| -> Option<(usize, usize)> {
        let end = part.find(' ')?;
        Some((part.get(..end)?.parse().ok()?, end + 1))
    };
    counts.split(", ").map(|part| count(part).map(|(number, at)| (&part[at..], number))).collect()
}

/// Returns the counts of a last line without a frame: `1 failed, 2 passed in 0.12s`.
fn plain_counts(line: &str) -> Option<BTreeMap<&str, usize>> {
    const KNOWN: [&str; 11] = [
        "passed",
        "failed",
        "error",
        "errors",
        "skipped",
        "xfailed",
        "xpassed",
        "deselected",
        "warning",
        "warnings",
        "rerun",
    ];
    if !line.starts_with(|character: char| character.is_ascii_digit()) || !line.ends_with(['s', ')']) {
        return None;
    }
    counts(line).filter(|counts| counts.keys().all(|name| KNOWN.contains(name)))
}

fn check(counts: &BTreeMap<&str, usize>, run: &mut TestRun) {
    let count = |names: &[&str]| names.iter().filter_map(|name| counts.get(name)).sum::<usize>();
    let (passed, failed) = (count(&["passed", "xpassed"]), count(&["failed"]));
    // Without `-v`, passed tests are not named, and prove nothing.
    for (what, named, summed) in
        [("passed", run.count(TestStatus::Passed), passed), ("failed", run.count(TestStatus::Failed), failed)]
    {
        // A test whose teardown failed is counted twice.
        let errors = count(&["error", "errors"]);
        if named > summed || named + errors < summed {
            run.problem(format!("{named} {what} tests are named, and the summary has {summed}"));
        }
    }
    if count(&["error", "errors"]) > 0 && run.count(TestStatus::Broken) == 0 {
        run.add("(collection)".to_owned(), TestStatus::Broken);
    }
}
