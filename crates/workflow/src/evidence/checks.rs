//! Checks of a candidate, compared with the base.

use super::PassedCheck;
use crate::command_run::{CommandRun, End, Observation, Stability};
use crate::contract::{Check, Pass};
use crate::names::named;

/// Judges a check by its runs before and now.
///
/// # Errors
///
/// The problems, as text.
pub(super) fn judge(
    check: &Check,
    before: &[CommandRun],
    now: &[CommandRun],
) -> Result<PassedCheck, Vec<String>> {
    if now.is_empty() {
        return Err(vec!["it was not run".to_owned()]);
    }
    let (before, now) = (Observation::of(before), Observation::of(now));
    let mut problems: Vec<String> =
        now.problems.iter().map(|problem| format!("its results are wrong: {problem}")).collect();
    let cut_short = now.ends.iter().filter(|end| end.is_cut_short() || matches!(end, End::Exited(126 | 127)));
    problems.extend(cut_short.map(|end| format!("it {}", end.describe())));
    if check.results.is_some() && !now.has_tests {
        problems.push("it has no results of tests".to_owned());
    }
    compare(check, &before, &now, &mut problems);
    if problems.is_empty() {
        judge_ends(check, &before, &now, &mut problems);
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let was = |test: &str, stability: Stability| before.tests.get(test) == Some(&stability);
    let of = |stability: Stability| before.having(stability).map(str::to_owned).collect::<Vec<_>>();
    let still_failing = now.tests.iter().filter(|(test, found)| {
        matches!(found, Stability::Fails | Stability::Breaks)
            && (was(test, Stability::Fails) || was(test, Stability::Breaks))
    });
    Ok(PassedCheck {
        name: check.name.clone(),
        command: check.command.clone(),
        passed: now.having(Stability::Passes).count(),
        flaky: of(Stability::Flaky),
        failing_before: still_failing.map(|(test, _)| test.clone()).collect(),
    })
}

/// Returns the reason why runs on the base are insufficient for a check that compares with them, as text.
pub(crate) fn incomparable(check: &Check, before: &[CommandRun]) -> Option<String> {
    if check.pass != Pass::NoWorse {
        return None;
    }
    let cut_short = before.iter().find(|run| run.end.is_cut_short());
    cut_short.map(|run| format!("it {}", run.end.describe()))
}

/// Compares single tests.
fn compare(check: &Check, before: &Observation, now: &Observation, problems: &mut Vec<String>) {
    let passed_before = |test: &&str| before.tests.get(*test) == Some(&Stability::Passes);
    let tell = |what: &str, tests: Vec<String>, problems: &mut Vec<String>| {
        if !tests.is_empty() {
            problems.push(format!("{} {what}", named(&tests)));
        }
    };
    let missing = before.having(Stability::Passes).filter(|test| !now.tests.contains_key(*test));
    tell("passed before and does not run any more", missing.map(str::to_owned).collect(), problems);
    for (what, stability) in [
        ("passed before and fails", Stability::Fails),
        ("passed before and breaks", Stability::Breaks),
        ("passed before and is skipped", Stability::Skipped),
        ("passed before and passes only sometimes", Stability::Flaky),
    ] {
        let tests = now.having(stability).filter(passed_before).map(str::to_owned).collect();
        tell(what, tests, problems);
    }
    let is_new = |test: &&str| !before.tests.contains_key(*test);
    for (what, stability) in [
        ("is new and fails", Stability::Fails),
        ("is new and breaks", Stability::Breaks),
        ("is new and passes only sometimes", Stability::Flaky),
    ] {
        let tests = now.having(stability).filter(is_new).map(str::to_owned).collect();
        tell(what, tests, problems);
    }
    if check.pass == Pass::Success {
        let failed_before = |test: &&str| {
            matches!(before.tests.get(*test), Some(Stability::Fails | Stability::Breaks | Stability::Skipped))
        };
        let failing = now.having(Stability::Fails).chain(now.having(Stability::Breaks));
        tell("fails still", failing.filter(failed_before).map(str::to_owned).collect(), problems);
    }
}

/// Checks that the exit code agrees with the tests.
fn judge_ends(check: &Check, before: &Observation, now: &Observation, problems: &mut Vec<String>) {
    let fails = now.tests.values().any(|found| matches!(found, Stability::Fails | Stability::Breaks));
    if fails && now.ends.contains(&End::Exited(0)) {
        problems.push("it exited with 0 although tests fail".to_owned());
    }
    // Tests that were flaky before may fail in some of the runs.
    let may_fail = fails
        || now.tests.iter().any(|(test, found)| {
            *found == Stability::Flaky && before.tests.get(test) == Some(&Stability::Flaky)
        });
    let fails_as_before = check.pass == Pass::NoWorse && now.ends.iter().all(|end| before.ends.contains(end));
    if !(now.always_succeeds() || may_fail && check.results.is_some() || fails_as_before) {
        let ends = now.ends.iter().filter(|end| **end != End::Exited(0)).map(End::describe);
        problems.push(format!("it {}", ends.collect::<Vec<_>>().join(", and ")));
    }
}
