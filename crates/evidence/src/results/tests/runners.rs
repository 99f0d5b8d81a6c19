//! Recorded output of runners.

use super::*;

const GO_EVENTS: &str = r##"# sums/bad [sums/bad.test]
bad/b_test.go:3:28: undefined: undefined
{"Action":"run","Package":"sums","Test":"TestOk"}
{"Action":"output","Package":"sums","Test":"TestOk","Output":"=== RUN   TestOk\n"}
{"Action":"pass","Package":"sums","Test":"TestOk","Elapsed":0}
{"Action":"run","Package":"sums","Test":"TestSkip"}
{"Action":"skip","Package":"sums","Test":"TestSkip","Elapsed":0}
{"Action":"run","Package":"sums","Test":"TestSub"}
{"Action":"run","Package":"sums","Test":"TestSub/a_b"}
{"Action":"run","Package":"sums","Test":"TestSub/c"}
{"Action":"output","Package":"sums","Test":"TestSub/c","Output":"    s_test.go:6: c\n"}
{"Action":"pass","Package":"sums","Test":"TestSub/a_b","Elapsed":0}
{"Action":"fail","Package":"sums","Test":"TestSub/c","Elapsed":0}
{"Action":"fail","Package":"sums","Test":"TestSub","Elapsed":0}
{"Action":"output","Package":"sums","Output":"FAIL\n"}
{"Action":"fail","Package":"sums","Elapsed":0.004}
FAIL<tab>sums/bad [build failed]
{"Action":"output","Package":"sums/none","Output":"?   \tsums/none\t[no test files]\n"}
{"Action":"skip","Package":"sums/none","Elapsed":0}
"##;

#[test]
fn go_has_events_and_text() {
    let events = GO_EVENTS.replace("<tab>", "\t");
    insta::assert_snapshot!(shown(ResultsFormat::Go, &events), @r"
    ! sums/bad
    + sums::TestOk
    ? sums::TestSkip
    - sums::TestSub
    + sums::TestSub/a_b
    - sums::TestSub/c
    ");
    let readable = ResultsFormat::Go.readable(&events);
    assert!(readable.contains("=== RUN   TestOk\n    s_test.go:6: c\nFAIL\nFAIL\tsums/bad"), "{readable}");
    let text = "--- FAIL: TestSub (0.00s)\n    --- FAIL: TestSub/c (0.00s)\n        s_test.go:6: c\nFAIL\n\
                FAIL\tsums\t0.004s\nFAIL\tsums/bad [build failed]\n?   \tsums/none\t[no test files]\n\
                ok  \tsums/other\t(cached)\nFAIL\n";
    insta::assert_snapshot!(shown(ResultsFormat::Go, text), @r"
    - sums
    ! sums/bad
    ? sums/none
    + sums/other
    - sums::TestSub
    - sums::TestSub/c
    ");
}

#[test]
fn a_run_of_go_that_was_cut_off_is_reported() {
    let run = |test: &str| format!("{{\"Action\":\"run\",\"Package\":\"sums\",\"Test\":\"{test}\"}}\n");
    let end = |action: &str| format!("{{\"Action\":\"{action}\",\"Package\":\"sums\"}}\n");
    insta::assert_snapshot!(shown(ResultsFormat::Go, &run("TestA")), @r"
    problem: sums::TestA has not ended
    problem: sums ended without a result
    ");
    insta::assert_snapshot!(shown(ResultsFormat::Go, &(run("TestA") + &end("pass"))), @"problem: sums::TestA has not ended");
    // A panic.
    insta::assert_snapshot!(shown(ResultsFormat::Go, &(run("TestA") + &end("fail"))), @r"
    ! sums
    ! sums::TestA
    ");
    insta::assert_snapshot!(shown(ResultsFormat::Go, "--- PASS: TestA (0.00s)\n"), @"problem: the last package ended without a result");
}

const UNITTEST: &str = "setUpClass (test_x.Bad) ... ERROR
test_adds (test_x.Sums.test_adds) ... noise
ok
test_doc (test_x.Sums.test_doc)
First line. ... ok
test_err (test_x.Sums.test_err) ... ERROR
test_fail (test_x.Sums) ... FAIL
test_skip (test_x.Sums.test_skip) ... skipped 'later ... ok'
test_sub (test_x.Sums.test_sub) ...\x20
  test_sub (test_x.Sums.test_sub) (i=1) ... FAIL
test_sub_ok (test_x.Sums.test_sub_ok) ... ok
test_xf (test_x.Sums.test_xf) ... expected failure

======================================================================
ERROR: setUpClass (test_x.Bad)
----------------------------------------------------------------------
OSError: no

----------------------------------------------------------------------
Ran 8 tests in 0.001s

FAILED (failures=2, errors=2, skipped=1, expected failures=1)
";

#[test]
fn unittest_names_each_test() {
    insta::assert_snapshot!(shown(ResultsFormat::Unittest, UNITTEST), @r"
    ! test_x.Bad.setUpClass
    + test_x.Sums.test_adds
    + test_x.Sums.test_doc
    ! test_x.Sums.test_err
    - test_x.Sums.test_fail
    ? test_x.Sums.test_skip
    - test_x.Sums.test_sub
    + test_x.Sums.test_sub_ok
    ? test_x.Sums.test_xf
    ");
    let ended = "test_adds (test_x.Sums.test_adds) ... ok\ntest_ends (test_x.Sums.test_ends) ... ";
    insta::assert_snapshot!(shown(ResultsFormat::Unittest, ended), @r"
    + test_x.Sums.test_adds
    problem: `test_x.Sums.test_ends` has no result
    problem: the run ended without a summary
    ");
    let quiet = "..\n----------------------------------------------------------------------\nRan 2 tests in 0.000s\n\nOK\n";
    insta::assert_snapshot!(shown(ResultsFormat::Unittest, quiet), @"problem: 0 tests are named, and 2 ran");
}

#[test]
fn pytest_is_read_without_a_frame() {
    let quiet = "..\n=========================== short test summary info ============================\n\
                 PASSED tests/test_a.py::test_a\nPASSED tests/test_a.py::test_b\n2 passed, 1 warning in 0.01s\n";
    insta::assert_snapshot!(shown(ResultsFormat::Pytest, quiet), @r"
    + tests/test_a.py::test_a
    + tests/test_a.py::test_b
    ");
    let ended = "PASSED tests/test_a.py::test_a\n2 apples in 0.01s\n";
    insta::assert_snapshot!(shown(ResultsFormat::Pytest, ended), @"problem: the run ended without a summary");
}

#[test]
fn jest_and_vitest_write_the_same_report() {
    let report = |tests: usize| {
        format!(
            r#"{{"numTotalTests":{tests},"numFailedTests":1,"wasInterrupted":false,"testResults":[
            {{"name":"tests/sums.test.js","status":"failed","message":"","assertionResults":[
              {{"ancestorTitles":["sums"],"fullName":"sums adds","title":"adds","status":"passed"}},
              {{"ancestorTitles":["sums"],"fullName":"sums subtracts","title":"subtracts","status":"failed"}},
              {{"ancestorTitles":["",""],"fullName":"later","title":"later","status":"pending"}}]}},
            {{"name":"tests/bad.test.js","status":"failed","message":"SyntaxError","assertionResults":[]}}]}}"#
        )
    };
    for format in [ResultsFormat::Jest, ResultsFormat::Vitest] {
        insta::allow_duplicates! {
            insta::assert_snapshot!(shown(format, &report(3)), @r"
            ! tests/bad.test.js
            ? tests/sums.test.js > later
            + tests/sums.test.js > sums > adds
            - tests/sums.test.js > sums > subtracts
            ");
        }
    }
    let less = shown(ResultsFormat::Jest, &report(4));
    assert!(less.contains("the report has 3 tests of which 1 failed, and its sums are 4 and 1"), "{less}");
    let cut_off = shown(ResultsFormat::Vitest, report(3).get(..100).unwrap());
    assert!(cut_off.starts_with("problem: the report cannot be parsed"), "{cut_off}");
}

#[test]
fn rspec_tells_expectations_from_errors() {
    let report = |outside: usize| {
        format!(
            r#"{{"version":"3.13.0","examples":[
            {{"id":"./spec/a_spec.rb[1:1]","full_description":"Sums adds","status":"passed","file_path":"./spec/a_spec.rb"}},
            {{"full_description":"Sums subtracts","status":"failed","file_path":"./spec/a_spec.rb",
              "exception":{{"class":"RSpec::Expectations::ExpectationNotMetError","message":"no"}}}},
            {{"full_description":"Sums raises","status":"failed","file_path":"./spec/a_spec.rb",
              "exception":{{"class":"NoMethodError","message":"no"}}}},
            {{"full_description":"Sums waits","status":"pending","file_path":"./spec/a_spec.rb"}}],
            "summary":{{"duration":0.01,"example_count":4,"failure_count":2,"pending_count":1,
              "errors_outside_of_examples_count":{outside}}}}}"#
        )
    };
    insta::assert_snapshot!(shown(ResultsFormat::Rspec, &report(0)), @r"
    + ./spec/a_spec.rb: Sums adds
    ! ./spec/a_spec.rb: Sums raises
    - ./spec/a_spec.rb: Sums subtracts
    ? ./spec/a_spec.rb: Sums waits
    ");
    assert!(shown(ResultsFormat::Rspec, &report(1)).starts_with("! (load)\n"));
}

#[test]
fn ctest_names_each_test() {
    let text = "Test project /tmp/build
    Start 1: adds
1/5 Test #1: adds .............................   Passed    0.00 sec
    Start 2: subtracts
2/5 Test #2: subtracts ........................***Failed    0.01 sec
    Start 3: crashes
3/5 Test #3: crashes ..........................***Exception: SegFault  0.10 sec
    Start 4: waits
4/5 Test #4: waits ............................***Skipped   0.00 sec
    Start 5: later
5/5 Test #5: later ............................***Not Run (Disabled)   0.00 sec

50% tests passed, 2 tests failed out of 4

Total Test time (real) =   0.12 sec
";
    insta::assert_snapshot!(shown(ResultsFormat::Ctest, text), @r"
    + adds
    ! crashes
    ? later
    - subtracts
    ? waits
    ");
    let ended = "1/2 Test #1: adds ...   Passed    0.00 sec\n";
    insta::assert_snapshot!(shown(ResultsFormat::Ctest, ended), @r"
    + adds
    problem: the run ended without a summary
    ");
}

#[test]
fn dotnet_names_each_test() {
    let text = "  Determining projects to restore...
  Passed Sums.Tests.Adds [3 ms]
  Failed Sums.Tests.Subtracts(a: 1, b: 2) [< 1 ms]
  Error Message:
   Assert.Equal() Failure: Values differ
  Skipped Sums.Tests.Later [1 ms]

Test Run Failed.
Total tests: 3
     Passed: 1
     Failed: 1
    Skipped: 1
 Total time: 0.6 Seconds
";
    insta::assert_snapshot!(shown(ResultsFormat::Dotnet, text), @r"
    + Sums.Tests.Adds
    ? Sums.Tests.Later
    - Sums.Tests.Subtracts(a: 1, b: 2)
    ");
    let (ended, _) = text.split_once("Test Run").unwrap();
    assert!(shown(ResultsFormat::Dotnet, ended).ends_with("problem: the run ended without a summary\n"));
}

#[test]
fn mix_names_each_test() {
    let text = "Running ExUnit with seed: 1, max_cases: 1

SumsTest [test/sums_test.exs]
  * test adds [L#5]\r  * test adds (0.01ms) [L#5]
  * test subtracts [L#9]\r  * test subtracts (1.2ms) [L#9]

  1) test subtracts (SumsTest)
     test/sums_test.exs:9
     Assertion with == failed

  * test later (skipped) [L#13]

Finished in 0.03 seconds (0.00s async, 0.03s sync)
3 tests, 1 failure, 1 skipped
";
    insta::assert_snapshot!(shown(ResultsFormat::Mix, text), @r"
    + SumsTest: test adds
    ? SumsTest: test later
    - SumsTest: test subtracts
    ");
    let (ended, _) = text.split_once("Finished").unwrap();
    assert!(shown(ResultsFormat::Mix, ended).ends_with("problem: the run ended without a summary\n"));
}

#[test]
fn bats_prints_tap() {
    let text = "1..3\nok 1 adds\nnot ok 2 subtracts\n# (in test file sums.bats, line 6)\n#   `[ 3 -eq 1 ]' failed\nok 3 later # skip not here\n";
    insta::assert_snapshot!(shown(ResultsFormat::Tap, text), @r"
    + adds
    ? later
    - subtracts
    ");
}
