//! Checks of a candidate, compared with the base.

use super::PassedCheck;
use crate::command_run::{CommandEnd, CommandRun, RunComparison, TestStability};
use crate::contract::{PassCondition, TaskCheck};
use crate::names::list_names;

/// Judges a check by its runs before and now. `is_recognized` is whether results of single tests were recognized on the base.
///
/// # Errors
///
/// The problems, as text.
pub(super) fn judge(
    check: &TaskCheck,
    is_recognized: bool,
    before: &[CommandRun],
    now: &[CommandRun],
) -> Result<PassedCheck, Vec<String>> {
    if now.is_empty() {
        return Err(vec!["it was not run".to_owned()]);
    }
    let (before, now) = (RunComparison::compare(before), RunComparison::compare(now));
    let mut problems: Vec<String> =
        now.problems.iter().map(|problem| format!("its results are wrong: {problem}")).collect();
    let cut_short =
        now.ends.iter().filter(|end| end.is_cut_short() || matches!(end, CommandEnd::Exited(126 | 127)));
    problems.extend(cut_short.map(|end| format!("it {}", end.describe())));
    let needs_tests = check.results.is_some() || is_recognized;
    if needs_tests && !now.has_tests {
        problems.push("it has no results of tests".to_owned());
    }
    compare(check, &before, &now, &mut problems);
    if problems.is_empty() {
        judge_ends(check, needs_tests, &before, &now, &mut problems);
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let was = |test: &str, stability: TestStability| before.tests.get(test) == Some(&stability);
    let of = |stability: TestStability| before.tests_with(stability).map(str::to_owned).collect::<Vec<_>>();
    let still_failing = now.tests.iter().filter(|(test, found)| {
        matches!(found, TestStability::Fails | TestStability::Breaks)
            && (was(test, TestStability::Fails) || was(test, TestStability::Breaks))
    });
    Ok(PassedCheck {
        name: check.name.clone(),
        command: check.command.clone(),
        has_tests: now.has_tests,
        passed: now.tests_with(TestStability::Passes).count(),
        flaky: of(TestStability::Flaky),
        failing_before: still_failing.map(|(test, _)| test.clone()).collect(),
    })
}

/// Returns the reason why runs on the base are insufficient for a check that compares with them, as text.
pub(crate) fn explain_incomparable(check: &TaskCheck, before: &[CommandRun]) -> Option<String> {
    if check.pass != PassCondition::NoWorse {
        return None;
    }
    let cut_short = before.iter().find(|run| run.end.is_cut_short());
    cut_short.map(|run| format!("it {}", run.end.describe()))
}

/// Returns the problems of a check that passed before, as text. Tests that are new or failed before may fail.
pub(crate) fn find_regressions(before: &[CommandRun], now: &[CommandRun]) -> Vec<String> {
    if now.is_empty() {
        return vec!["it was not run".to_owned()];
    }
    let (before, now) = (RunComparison::compare(before), RunComparison::compare(now));
    let mut problems = Vec::new();
    compare_passed(&before, &now, &mut problems);
    if problems.is_empty() && before.is_always_successful() && !now.is_always_successful() {
        let failed = now.ends.iter().filter(|end| **end != CommandEnd::Exited(0));
        problems.extend(failed.map(|end| format!("it passed before, and {}", end.describe())));
    }
    problems
}

fn list_tests(what: &str, tests: &[String], problems: &mut Vec<String>) {
    if !tests.is_empty() {
        problems.push(format!("{} {what}", list_names(tests)));
    }
}

/// Compares tests that passed before.
fn compare_passed(before: &RunComparison, now: &RunComparison, problems: &mut Vec<String>) {
    let passed_before = |test: &&str| before.tests.get(*test) == Some(&TestStability::Passes);
    let missing = before.tests_with(TestStability::Passes).filter(|test| !now.tests.contains_key(*test));
    let missing: Vec<String> = missing.map(str::to_owned).collect();
    list_tests("passed before and does not run any more", &missing, problems);
    for (what, stability) in [
        ("passed before and fails", TestStability::Fails),
        ("passed before and breaks", TestStability::Breaks),
        ("passed before and is skipped", TestStability::Skipped),
        ("passed before and passes only sometimes", TestStability::Flaky),
    ] {
        let tests: Vec<String> = now.tests_with(stability).filter(passed_before).map(str::to_owned).collect();
        list_tests(what, &tests, problems);
    }
}

/// Compares single tests.
fn compare(check: &TaskCheck, before: &RunComparison, now: &RunComparison, problems: &mut Vec<String>) {
    compare_passed(before, now, problems);
    let is_new = |test: &&str| !before.tests.contains_key(*test);
    for (what, stability) in [
        ("is new and fails", TestStability::Fails),
        ("is new and breaks", TestStability::Breaks),
        ("is new and passes only sometimes", TestStability::Flaky),
    ] {
        let tests: Vec<String> = now.tests_with(stability).filter(is_new).map(str::to_owned).collect();
        list_tests(what, &tests, problems);
    }
    if check.pass == PassCondition::Success {
        let failed_before = |test: &&str| {
            matches!(
                before.tests.get(*test),
                Some(TestStability::Fails | TestStability::Breaks | TestStability::Skipped)
            )
        };
        let failing = now.tests_with(TestStability::Fails).chain(now.tests_with(TestStability::Breaks));
        let failing: Vec<String> = failing.filter(failed_before).map(str::to_owned).collect();
        list_tests("fails still", &failing, problems);
    }
}

/// Checks that the exit code agrees with the tests.
fn judge_ends(
    check: &TaskCheck,
    needs_tests: bool,
    before: &RunComparison,
    now: &RunComparison,
    problems: &mut Vec<String>,
) {
    let fails = now.tests.values().any(|found| matches!(found, TestStability::Fails | TestStability::Breaks));
    if fails && now.ends.contains(&CommandEnd::Exited(0)) {
        problems.push("it exited with 0 although tests fail".to_owned());
    }
    // Tests that were flaky before may fail in some of the runs.
    let may_fail = fails
        || now.tests.iter().any(|(test, found)| {
            *found == TestStability::Flaky && before.tests.get(test) == Some(&TestStability::Flaky)
        });
    let fails_as_before =
        check.pass == PassCondition::NoWorse && now.ends.iter().all(|end| before.ends.contains(end));
    if !(now.is_always_successful() || may_fail && needs_tests || fails_as_before) {
        let ends = now.ends.iter().filter(|end| **end != CommandEnd::Exited(0)).map(CommandEnd::describe);
        problems.push(format!("it {}", ends.collect::<Vec<_>>().join(", and ")));
    }
}
