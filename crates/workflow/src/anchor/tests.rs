//! Which proposals are anchors.

use super::*;
use crate::contract::TaskScope;
use crate::tests::facts::{added, modified, plain, run};

fn facts(runs: Vec<CommandRun>) -> AnchorFacts {
    AnchorFacts {
        command: "make test".to_owned(),
        results: None,
        report: None,
        session: None,
        patch: None,
        control: None,
        controls: Vec::new(),
        review: None,
        regression: Vec::new(),
        notes: Vec::new(),
        hidden: None,
        files: vec![added("tests/test_new.py", 8)],
        runs,
        failing_before: BTreeSet::from(["old".to_owned()]),
    }
}

fn judged(facts: &AnchorFacts) -> String {
    let rules = PathRules::new(&TaskScope::default()).unwrap();
    match facts.judge(&AnchorPlan::Test, &rules) {
        Ok(anchor) => format!("anchor: {:?}", anchor.tests()),
        Err(problems) => problems.iter().map(|problem| format!("{problem}\n")).collect(),
    }
}

#[test]
fn a_test_that_fails_by_what_it_asserts_is_an_anchor() {
    let thrice = |code, words| vec![run(code, words), run(code, words), run(code, words)];
    for (runs, expected) in [
        (thrice(1, "+a -new -old"), r#"anchor: {"new"}"#),
        // As `die` of Perl does.
        (thrice(255, "+a -new"), r#"anchor: {"new"}"#),
        (thrice(101, "+a -new"), r#"anchor: {"new"}"#),
        (vec![plain(1), plain(1), plain(1)], "anchor: {}"),
    ] {
        assert_eq!(judged(&facts(runs)), expected);
    }
}

#[test]
fn what_fails_for_another_reason_is_none() {
    let ends = |end: CommandEnd| {
        vec![CommandRun::new(end.clone()), CommandRun::new(end.clone()), CommandRun::new(end)]
    };
    let thrice = |code, words| vec![run(code, words), run(code, words), run(code, words)];
    let mut forged = thrice(1, "-new");
    forged[1].tests.as_mut().unwrap().problems.push("`new` is reported twice".to_owned());
    let said: Vec<String> = [
        thrice(0, "+new"),
        thrice(1, "+a !new"),
        thrice(1, "+a -old"),
        thrice(1, "+a"),
        vec![run(1, "-new"), run(1, "-new"), run(1, "+new -old")],
        vec![run(1, "-new"), run(0, "+new"), run(1, "-new")],
        vec![plain(1), plain(2), plain(1)],
        vec![plain(1), plain(1)],
        ends(CommandEnd::TimedOut),
        ends(CommandEnd::Killed(11)),
        ends(CommandEnd::Exited(127)),
        ends(CommandEnd::NotRun("there is no shell".to_owned())),
        forged,
    ]
    .into_iter()
    .map(|runs| judged(&facts(runs)))
    .collect();
    insta::assert_snapshot!(said.concat(), @r"
    it passes before anything was done; expected that it fails
    it breaks `new`; expected that it runs, and fails by what it asserts
    only tests fail that failed before: `old`; expected one more
    only tests fail that failed before: ; expected one more
    its runs differ: `new`, `old`; expected that it fails in the same way each time
    its runs differ: it exited with 1, and exited with 0; expected that it fails in the same way each time
    its runs differ: it exited with 1, and exited with 2; expected that it fails in the same way each time
    it was run 2 times; expected 3
    it did not end in its time; expected that it runs, and fails by what it asserts
    it was killed by signal 11; expected that it runs, and fails by what it asserts
    it exited with 127; expected that it runs, and fails by what it asserts
    it could not be run: there is no shell; expected that it runs, and fails by what it asserts
    its results are wrong: `new` is reported twice
    ");
}

#[test]
fn a_failed_assertion_of_c_is_a_failure() {
    let thrice = |end: CommandEnd| {
        vec![CommandRun::new(end.clone()), CommandRun::new(end.clone()), CommandRun::new(end)]
    };
    assert_eq!(facts(thrice(CommandEnd::Killed(6))).judge_runs(), Ok(BTreeSet::new()));
    let with_tests =
        vec![CommandRun::new(CommandEnd::Killed(6)).with_tests(crate::tests::facts::results("-new")); 3];
    facts(with_tests).judge_runs().unwrap_err();
}

#[test]
fn only_additions_to_test_files_are_taken() {
    let failing = || vec![run(1, "-new"), run(1, "-new"), run(1, "-new")];
    let with = |files: Vec<ChangedFile>| AnchorFacts { files, ..facts(failing()) };
    let said: String = [
        with(vec![]),
        with(vec![added("src/lib.py", 3), added("tests/test_new.py", 3)]),
        with(vec![modified("tests/test_old.py", 5, 2)]),
        with(vec![added("tests/conftest.py", 5), added("tests/test_new.py", 3)]),
        AnchorFacts {
            review: Some(AnchorReview {
                session: "r".to_owned(),
                findings: vec!["it tests a file".to_owned()],
            }),
            ..facts(failing())
        },
        with(vec![modified("tests/test_old.py", 5, 0)]),
    ]
    .iter()
    .map(|facts| judged(facts).trim_end().to_owned() + "\n")
    .collect();
    insta::assert_snapshot!(said, @r#"
    it changes no file; expected a new test
    it changes `src/lib.py`; expected changes of test files only
    it changes `tests/test_old.py`, which was there before; expected new test files, or additions to them
    it changes `tests/conftest.py`; expected tests, and no configuration of tests
    its reviewer found: it tests a file
    anchor: {"new"}
    "#);
}
