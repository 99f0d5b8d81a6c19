//! Compares two runs of a check.

use pintle_evidence::command_run::{CommandEnd, CommandRun, RunComparison, TestStability};
use pintle_evidence::judging::{PathRules, TaskScope};
use pintle_evidence::results::ResultsFormat;

fn main() {
    let run =
        |output: &str| CommandRun::new(CommandEnd::Exited(1)).with_tests(ResultsFormat::Tap.parse(output));
    let runs = [run("1..1\nok 1 - adds\n"), run("1..1\nnot ok 1 - adds\n")];
    let observed = RunComparison::compare(&runs);
    assert_eq!(observed.tests_with(TestStability::Flaky).collect::<Vec<_>>(), ["adds"]);
    let rules = PathRules::new(&TaskScope::default()).expect("a scope without patterns");
    assert!(rules.is_protected("tests/test_sums.py"));
}
