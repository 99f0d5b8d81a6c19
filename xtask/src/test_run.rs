//! The output of `cargo test`: which tests passed, and how many.

use std::collections::{BTreeMap, BTreeSet};

use crate::failure::Failure;

/// Everything that one run of `cargo test` has printed about its tests.
#[derive(Debug, Default)]
pub(crate) struct TestRun {
    /// Passed tests by the file name of their binary.
    passed: BTreeMap<String, BTreeSet<String>>,
    /// The binary whose tests are running; `None` while examples in comments run.
    binary: Option<String>,
    tally: Tally,
}

/// Sum over all test binaries.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    binaries: u64,
    passed: u64,
    failed: u64,
    ignored: u64,
}

impl TestRun {
    /// Adds a line of the output. Returns whether it sums up a binary.
    pub(crate) fn add(&mut self, line: &str) -> bool {
        let line = line.trim();
        if let Some(announced) = line.strip_prefix("Running ") {
            self.binary = binary(announced);
        } else if line.starts_with("Doc-tests ") {
            self.binary = None;
        } else if let Some(name) = passed(line) {
            if let Some(binary) = &self.binary {
                self.passed.entry(binary.clone()).or_default().insert(name.to_owned());
            }
        } else if line.starts_with("test result: ") {
            self.tally.add(line);
            return true;
        }
        false
    }

    /// Returns whether the test has passed in the binary with this file name.
    pub(crate) fn has_passed(&self, binary: &str, test: &str) -> bool {
        self.passed.get(binary).is_some_and(|tests| tests.contains(test))
    }

    /// Fails if no tests ran, if binaries are missing, or if tests were ignored.
    pub(crate) fn require(&self, binaries: u64) -> Result<(), Failure> {
        self.tally.require(binaries)
    }
}

impl std::fmt::Display for TestRun {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Tally { binaries, passed, failed, ignored } = self.tally;
        write!(formatter, "all {binaries} test binaries: {passed} passed; {failed} failed; {ignored} ignored")
    }
}

/// Parses `unittests src/lib.rs (target/debug/deps/name-0123)`. Returns the file name.
fn binary(announced: &str) -> Option<String> {
    let (_, path) = announced.strip_suffix(')')?.rsplit_once('(')?;
    Some(path.rsplit('/').next().unwrap_or(path).to_owned())
}

/// Parses `test some::name ... ok` and, for a test that has to panic, `test some::name - should panic ... ok`.
fn passed(line: &str) -> Option<&str> {
    let name = line.strip_prefix("test ")?.strip_suffix(" ... ok")?;
    Some(name.strip_suffix(" - should panic").unwrap_or(name))
}

impl Tally {
    /// Adds `test result: ok. 3 passed; 0 failed; 0 ignored; ...`.
    fn add(&mut self, line: &str) {
        let count = |what: &str| -> u64 {
            line.split(['.', ';'])
                .filter_map(|part| part.trim().split_once(' '))
                .find(|(_, name)| *name == what)
                .and_then(|(number, _)| number.parse().ok())
                .unwrap_or(0)
        };
        self.binaries += 1;
        self.passed += count("passed");
        self.failed += count("failed");
        self.ignored += count("ignored");
    }

    fn require(&self, binaries: u64) -> Result<(), Failure> {
        if self.ignored > 0 {
            return Err(Failure::new(format!("{} tests are ignored, which is not allowed", self.ignored)));
        }
        if self.binaries < binaries || self.passed == 0 {
            return Err(Failure::new(format!(
                "{} test binaries ran {} tests; expected {binaries} binaries and their tests",
                self.binaries, self.passed
            )));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Tally, TestRun};

    const OUTPUT: &str = "
     Running unittests src/lib.rs (target/debug/deps/pintle_agent-01ab)

running 3 tests
test turn::tests::good ... ok
test turn::tests::bad ... FAILED
test turn::tests::panics - should panic ... ok
test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s

     Running tests/it/main.rs (/elsewhere/deps/it-02cd)
test good ... ok
test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s

   Doc-tests pintle_agent
test crates/agent/src/lib.rs - (line 7) ... ok
test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s
";

    #[test]
    fn passed_tests_are_known_by_their_binary() {
        let mut run = TestRun::default();
        let sums = OUTPUT.lines().filter(|line| run.add(line)).count();
        assert_eq!(sums, 3);
        for (binary, test, expected) in [
            ("pintle_agent-01ab", "turn::tests::good", true),
            ("pintle_agent-01ab", "turn::tests::panics", true),
            ("pintle_agent-01ab", "turn::tests::bad", false),
            ("pintle_agent-01ab", "good", false),
            ("it-02cd", "good", true),
            ("it-02cd", "crates/agent/src/lib.rs - (line 7)", false),
        ] {
            assert_eq!(run.has_passed(binary, test), expected, "{binary} {test}");
        }
        assert_eq!(run.to_string(), "all 3 test binaries: 4 passed; 1 failed; 0 ignored");
    }

    #[test]
    fn summary_lines_add_up() {
        let mut tally = Tally::default();
        tally.add(
            "test result: ok. 12 passed; 0 failed; 0 ignored; 0 measured; 3 filtered out; finished in 0.01s",
        );
        tally.add("test result: FAILED. 1 passed; 2 failed; 4 ignored; 0 measured; 0 filtered out; finished in 0.01s");
        assert_eq!(tally, Tally { binaries: 2, passed: 13, failed: 2, ignored: 4 });
    }

    #[test]
    fn a_run_without_tests_is_a_failure() {
        let tally = |binaries, passed, ignored| Tally { binaries, passed, failed: 0, ignored };
        assert!(tally(3, 10, 0).require(3).is_ok());
        for bad in [tally(0, 0, 0), tally(3, 0, 0), tally(2, 10, 0), tally(3, 10, 1)] {
            assert!(bad.require(3).is_err(), "{bad:?}");
        }
    }
}
