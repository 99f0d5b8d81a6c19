//! Output of real runners, and output that no runner has.

mod real;
mod recognition;
mod runners;

use proptest::prelude::*;

use super::*;

/// Returns the tests with a letter for what became of each, then the problems.
fn shown(format: ResultsFormat, text: &str) -> String {
    let run = format.parse(text);
    let letter = |status| match status {
        TestStatus::Passed => '+',
        TestStatus::Failed => '-',
        TestStatus::Broken => '!',
        TestStatus::Skipped => '?',
    };
    let tests = run.tests.iter().map(|(name, status)| format!("{} {name}\n", letter(*status)));
    let problems = run.problems.iter().map(|problem| format!("problem: {problem}\n"));
    tests.chain(problems).collect()
}

const CARGO: &str = "
     Running unittests src/lib.rs (target/debug/deps/sums-0f2d6a1c2b3e4d5f)

running 4 tests
test tests::adds ... ok
test tests::rejects - should panic ... ok
test tests::slow ... ignored, takes minutes
test tests::subtracts ... FAILED

failures:

---- tests::subtracts stdout ----
test tests::fake ... okay
assertion `left == right` failed

failures:
    tests::subtracts

test result: FAILED. 2 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s

     Running tests/it.rs (target/debug/deps/it-aaaaaaaaaaaaaaaa)

running 1 test
test adds ... ok

test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s

   Doc-tests sums

running 1 test
test src/lib.rs - add (line 3) ... ok

test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.30s
";

#[test]
fn cargo_names_tests_by_their_programs() {
    insta::assert_snapshot!(shown(ResultsFormat::Cargo, CARGO), @r"
    + it::adds
    + sums (documentation)::src/lib.rs - add
    + sums::tests::adds
    + sums::tests::rejects
    ? sums::tests::slow
    - sums::tests::subtracts
    ");
}

#[test]
fn a_run_of_cargo_that_was_cut_off_is_told() {
    // The code under test has ended the process, with 0.
    let ended = "running 2 tests\ntest a ... ok\n";
    insta::assert_snapshot!(shown(ResultsFormat::Cargo, ended), @r"
    + 1::a
    problem: 1 ended without a summary
    ");
    let printed = "running 2 tests\ntest a ... ok\ntest b ... ok\ntest b ... FAILED\n\
                   test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n";
    insta::assert_snapshot!(shown(ResultsFormat::Cargo, printed), @r"
    + 1::a
    + 1::b
    problem: `1::b` is reported twice
    problem: 1 names 2 passed, 1 failed and 0 ignored tests, and its summary has 2, 0 and 0
    problem: 1 announced 2 tests and reported 3
    ");
    let twice = "running 2 tests\ntest a.rs - f (line 3) ... FAILED\ntest a.rs - f (line 3) ... ok\n\
                 test result: ok. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n";
    insta::assert_snapshot!(shown(ResultsFormat::Cargo, twice), @r"
    - 1::a.rs - f
    problem: `1::a.rs - f` is reported twice
    ");
    insta::assert_snapshot!(shown(ResultsFormat::Cargo, "error: could not compile `sums`"), @"problem: there are no results");
    insta::assert_snapshot!(shown(ResultsFormat::Cargo, "all tests passed"), @"problem: there are no results");
}

#[test]
fn pytest_is_read_in_both_forms() {
    let text = "============================= test session starts ==============================
collected 6 items

tests/test_sums.py::test_adds PASSED                                     [ 16%]
tests/test_sums.py::test_skipped SKIPPED (not here)                      [ 33%]
tests/test_sums.py::test_subtracts FAILED                                [ 50%]
tests/test_sums.py::test_pairs[1-a b] PASSED                             [ 66%]
tests/test_sums.py::test_known XFAIL                                     [ 83%]
tests/test_sums.py::test_prepared ERROR                                  [100%]

=================================== FAILURES ===================================
=========================== short test summary info ============================
FAILED tests/test_sums.py::test_subtracts - assert 3 == -1
ERROR tests/test_sums.py::test_prepared - RuntimeError: no
==== 1 failed, 2 passed, 1 skipped, 1 xfailed, 1 error in 0.12s ====
";
    insta::assert_snapshot!(shown(ResultsFormat::Pytest, text), @r"
    + tests/test_sums.py::test_adds
    ? tests/test_sums.py::test_known
    + tests/test_sums.py::test_pairs[1-a b]
    ! tests/test_sums.py::test_prepared
    ? tests/test_sums.py::test_skipped
    - tests/test_sums.py::test_subtracts
    ");
    let short = "=========================== short test summary info ============================
PASSED tests/test_sums.py::test_adds
PASSED tests/test_sums.py::test_pairs[1-a b]
============================== 2 passed in 0.01s ===============================
";
    insta::assert_snapshot!(shown(ResultsFormat::Pytest, short), @r"
    + tests/test_sums.py::test_adds
    + tests/test_sums.py::test_pairs[1-a b]
    ");
}

#[test]
fn a_run_of_pytest_that_proves_nothing_is_told() {
    let collection = "=========================== short test summary info ============================
ERROR tests/test_sums.py - SyntaxError: invalid syntax
!!!!!!!!!!!!!!!!!!!! Interrupted: 1 error during collection !!!!!!!!!!!!!!!!!!!!
=============================== 1 error in 0.08s ===============================
";
    insta::assert_snapshot!(shown(ResultsFormat::Pytest, collection), @"! tests/test_sums.py");
    let quiet = "tests/test_sums.py ..                                                   [100%]
============================== 2 passed in 0.01s ===============================
";
    insta::assert_snapshot!(shown(ResultsFormat::Pytest, quiet), @"problem: 0 passed tests are named, and the summary has 2");
    let ended = "tests/test_sums.py::test_adds PASSED                                     [ 50%]\n";
    insta::assert_snapshot!(shown(ResultsFormat::Pytest, ended), @r"
    + tests/test_sums.py::test_adds
    problem: the run ended without a summary
    ");
}

#[test]
fn junit_tells_failures_from_errors() {
    let text = r#"<?xml version="1.0" encoding="utf-8"?>
<testsuites><testsuite name="sums" tests="4" failures="1" errors="1" skipped="1">
<testcase classname="sums.Adds" name="small"/>
<testcase classname="sums.Adds" name="large"><skipped message="later"/></testcase>
<testcase classname="sums.Subtracts" name="negative"><failure message="3 is not -1">trace</failure></testcase>
<testcase name="alone"><error>no</error></testcase>
</testsuite></testsuites>"#;
    insta::assert_snapshot!(shown(ResultsFormat::Junit, text), @r"
    ! alone
    ? sums.Adds::large
    + sums.Adds::small
    - sums.Subtracts::negative
    ");
    let less = r#"<testsuite name="sums" tests="3" failures="1"><testcase name="a"/></testsuite>"#;
    insta::assert_snapshot!(shown(ResultsFormat::Junit, less), @r"
    + a
    problem: sums says 3 tests and has 1
    problem: sums says 1 failures and has 0
    ");
    let entities = "<!DOCTYPE x [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;\">]><testsuite name=\"&b;\"/>";
    insta::assert_snapshot!(shown(ResultsFormat::Junit, entities), @"problem: the file is not XML: XML with DTD detected");
    insta::assert_snapshot!(shown(ResultsFormat::Junit, "<html/>"), @"problem: the file has `html` where JUnit XML has `testsuites`");
}

/// Every suite around a test counts it. A walk through each suite would take hours for these.
#[test]
fn nested_suites_of_junit_are_counted_at_once() {
    let nested = |suites: usize, tests: usize| {
        let open = format!("<testsuite tests=\"{tests}\" failures=\"1\">").repeat(suites);
        let close = "</testsuite>".repeat(suites);
        format!("{open}<testcase name=\"a\"><failure/></testcase>{close}")
    };
    insta::assert_snapshot!(shown(ResultsFormat::Junit, &nested(100_000, 1)), @"- a");
    insta::assert_snapshot!(shown(ResultsFormat::Junit, &nested(100_000, 2)), @r"
    - a
    problem: a suite says 2 tests and has 1
    ");
    let beside = r#"<testsuites>
<testsuite name="outer" tests="3" failures="1">
<testsuite name="first" tests="1" failures="0"><testcase name="a"/></testsuite>
<testcase name="b"/>
<testsuite name="second" tests="1" failures="1"><testcase name="c"><error/></testcase></testsuite>
</testsuite>
<testsuite name="none" tests="0" failures="0"/>
<testsuite name="last" tests="2" failures="1"><testcase name="d"/></testsuite>
</testsuites>"#;
    insta::assert_snapshot!(shown(ResultsFormat::Junit, beside), @r"
    + a
    + b
    ! c
    + d
    problem: last says 2 tests and has 1
    problem: last says 1 failures and has 0
    ");
}

/// Each of these files is small, and would keep the parser busy for minutes or hours.
#[test]
fn junit_that_is_slow_to_parse_is_told() {
    let attributes = |count: usize| (0..count).map(|i| format!(" a{i}='>'")).collect::<String>();
    let test = |count: usize| format!("<testsuite><testcase name=\"a\"{}/></testsuite>", attributes(count));
    insta::assert_snapshot!(shown(ResultsFormat::Junit, &test(99)), @"+ a");
    insta::assert_snapshot!(shown(ResultsFormat::Junit, &test(500_000)), @"problem: an element has more than 100 attributes");
    let namespaces = |count: usize| {
        let open: String = (0..count).map(|i| format!("<testsuite xmlns:n{i}=\"x\">")).collect();
        format!("{open}<testcase name=\"a\"/>{}", "</testsuite>".repeat(count))
    };
    insta::assert_snapshot!(shown(ResultsFormat::Junit, &namespaces(20)), @"+ a");
    insta::assert_snapshot!(shown(ResultsFormat::Junit, &namespaces(20_000)), @"problem: more than 20 namespaces are declared around an element");
    // Suites side by side declare the same one, and neither comments nor output do.
    let suite = |i: usize| {
        format!(
            "<testsuite xmlns:xsi=\"x\"><!-- <a xmlns:a='> --><?a <b xmlns:b='?><testcase name=\"{i}\">\
             <system-out><![CDATA[<c xmlns:c='>]]></system-out></testcase></testsuite>"
        )
    };
    let beside = format!("<testsuites>{}</testsuites>", (0..30).map(suite).collect::<String>());
    let run = ResultsFormat::Junit.parse(&beside);
    assert_eq!((run.tests.len(), run.problems), (30, vec![]));
}

#[test]
fn tap_has_subtests() {
    let text = "TAP version 14
# Subtest: sums
    # Subtest: small
    ok 1 - small
      ---
      duration_ms: 0.3
      ok 9 - this is no test
      ...
    # Subtest: negative
    not ok 2 - negative
      ---
      error: '3 !== -1'
      ...
    1..2
not ok 1 - sums
ok 2 - later # SKIP not here
not ok 3 - to be written # TODO
ok
1..4
# pass 1
";
    insta::assert_snapshot!(shown(ResultsFormat::Tap, text), @r"
    + 4
    ? later
    - sums
    - sums > negative
    + sums > small
    ? to be written
    ");
    insta::assert_snapshot!(shown(ResultsFormat::Tap, "1..3\nok 1 - a\n"), @r"
    + a
    problem: 3 tests were planned and 1 ran
    ");
    insta::assert_snapshot!(shown(ResultsFormat::Tap, "ok 1 - a\n"), @r"
    + a
    problem: there is no plan
    ");
    insta::assert_snapshot!(shown(ResultsFormat::Tap, "1..2\nok 1 - a\nBail out! no database\n"), @r"
    + a
    problem: the run was given up: no database
    ");
}

proptest! {
    #[test]
    fn whatever_is_printed_is_read(
        text in "([ a-z.:#=<>/\"\\[\\]%\n]{0,40}|test | \\.\\.\\. ok|running 2 tests|ok 1|1\\.\\.2|    |---|==){0,30}"
    ) {
        for format in [
            ResultsFormat::Cargo,
            ResultsFormat::Pytest,
            ResultsFormat::Junit,
            ResultsFormat::Tap,
            ResultsFormat::Go,
            ResultsFormat::Unittest,
            ResultsFormat::Jest,
            ResultsFormat::Vitest,
            ResultsFormat::Ctest,
            ResultsFormat::Rspec,
            ResultsFormat::Dotnet,
            ResultsFormat::Mix,
        ] {
            let run = format.parse(&text);
            prop_assert!(!run.tests.is_empty() || !run.problems.is_empty());
            prop_assert!(run.problems.len() <= MAX_PROBLEMS);
        }
    }
}
