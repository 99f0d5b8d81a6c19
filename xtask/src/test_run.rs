//! The output of `cargo test`: which tests passed, how many, and how long they took.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    time::Duration,
};

use crate::failure::Failure;

/// Everything that one run of `cargo test` has printed about its tests.
#[derive(Debug, Default)]
pub(crate) struct TestRun {
    /// Passed tests by the file name of their binary.
    passed: BTreeMap<String, BTreeSet<String>>,
    /// The binary whose tests are running; `None` while examples in comments run.
    binary: Option<String>,
    tally: Tally,
    /// Times of test programs, by the file name of the program.
    programs: Vec<(String, ProgramTime)>,
    /// Times of tests, each with the file name of its program.
    tests: Vec<(Duration, String)>,
}

/// Sum over all test binaries.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    binaries: u64,
    passed: u64,
    failed: u64,
    ignored: u64,
}

/// Time of a test program with the processes that it waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProgramTime {
    pub(crate) wall: Duration,
    pub(crate) cpu: Duration,
}

impl TestRun {
    /// Adds a line of the output. Returns whether it sums up a binary.
    pub(crate) fn add(&mut self, line: &str) -> bool {
        let line = line.trim();
        if let Some(announced) = line.strip_prefix("Running ") {
            self.binary = binary(announced);
            self.tally.binaries += u64::from(self.binary.is_some());
        } else if line.starts_with("Doc-tests ") {
            self.binary = None;
            self.tally.binaries += 1;
        } else if let Some((name, time)) = passed(line) {
            self.add_passed(name, time);
        } else if let Some(time) = ProgramTime::parse(line) {
            self.programs.extend(self.binary.clone().map(|binary| (binary, time)));
        } else if line.starts_with("test result: ") {
            self.tally.add(line);
            return true;
        }
        false
    }

    fn add_passed(&mut self, name: &str, time: Option<Duration>) {
        let Some(binary) = &self.binary else { return };
        self.tests.extend(time.map(|time| (time, format!("{binary} {name}"))));
        self.passed.entry(binary.clone()).or_default().insert(name.to_owned());
    }

    /// Returns whether the test has passed in the binary with this file name.
    pub(crate) fn has_passed(&self, binary: &str, test: &str) -> bool {
        self.passed.get(binary).is_some_and(|tests| tests.contains(test))
    }

    /// Fails if no tests ran, if binaries are missing, or if tests were ignored.
    pub(crate) fn require(&self, binaries: u64) -> Result<(), Failure> {
        self.tally.require(binaries)
    }

    /// Returns the test programs that took at least `least`, the longest first.
    pub(crate) fn programs(&self, least: Duration) -> Vec<&(String, ProgramTime)> {
        let mut long: Vec<_> = self.programs.iter().filter(|(_, time)| time.wall >= least).collect();
        long.sort_by_key(|(_, time)| std::cmp::Reverse(time.wall));
        long
    }

    /// Returns the `count` tests that took longest, the longest first.
    pub(crate) fn slowest(&self, count: usize) -> Vec<&(Duration, String)> {
        let mut all: Vec<_> = self.tests.iter().collect();
        all.sort_by(|left, right| right.cmp(left));
        all.truncate(count);
        all
    }
}

impl fmt::Display for TestRun {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tally { binaries, passed, failed, ignored } = self.tally;
        write!(formatter, "all {binaries} test binaries: {passed} passed; {failed} failed; {ignored} ignored")
    }
}

/// Precedes the times in the line that a runner prints.
const TIMES: &str = "test program: ";

impl fmt::Display for ProgramTime {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { wall, cpu } = self;
        write!(formatter, "{TIMES}{:.2} s, CPU {:.2} s", wall.as_secs_f64(), cpu.as_secs_f64())
    }
}

impl ProgramTime {
    fn parse(line: &str) -> Option<Self> {
        let (wall, cpu) = line.strip_prefix(TIMES)?.strip_suffix(" s")?.split_once(" s, CPU ")?;
        Some(Self { wall: seconds(wall)?, cpu: seconds(cpu)? })
    }
}

/// Parses `unittests src/lib.rs (target/debug/deps/name-0123)`. Returns the file name.
fn binary(announced: &str) -> Option<String> {
    let (_, path) = announced.strip_suffix(')')?.rsplit_once('(')?;
    Some(path.rsplit('/').next().unwrap_or(path).to_owned())
}

/// Parses `test some::name ... ok`, for a test that has to panic `test some::name - should panic ... ok`, and both followed
/// by a time, as in `<0.012s>`.
fn passed(line: &str) -> Option<(&str, Option<Duration>)> {
    let (name, outcome) = line.strip_prefix("test ")?.rsplit_once(" ... ")?;
    let time = outcome.strip_prefix("ok")?;
    let time = time.strip_prefix(" <").and_then(|time| time.strip_suffix("s>"));
    Some((name.strip_suffix(" - should panic").unwrap_or(name), time.and_then(seconds)))
}

fn seconds(text: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(text.parse().ok()?).ok()
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
    use std::time::Duration;

    use super::{ProgramTime, Tally, TestRun};

    const OUTPUT: &str = "
     Running unittests src/lib.rs (target/debug/deps/pintle_agent-01ab)

running 3 tests
test turn::tests::good ... ok
test turn::tests::bad ... FAILED
test turn::tests::panics - should panic ... ok
test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s

     Running tests/it/main.rs (/elsewhere/deps/it-02cd)
test good ... ok <1.250s>
test quick ... ok <0.001s>
test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.25s
test program: 1.50 s, CPU 0.75 s

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
        assert_eq!(run.to_string(), "all 3 test binaries: 5 passed; 1 failed; 0 ignored");
        let long = (Duration::from_millis(1250), String::from("it-02cd good"));
        assert_eq!(run.slowest(1), [&long]);
        let time = ProgramTime { wall: Duration::from_millis(1500), cpu: Duration::from_millis(750) };
        assert_eq!(run.programs(Duration::from_secs(1)), [&(String::from("it-02cd"), time)]);
        assert!(run.programs(Duration::from_secs(2)).is_empty());
    }

    #[test]
    fn summary_lines_add_up() {
        let mut tally = Tally::default();
        tally.add(
            "test result: ok. 12 passed; 0 failed; 0 ignored; 0 measured; 3 filtered out; finished in 0.01s",
        );
        tally.add("test result: FAILED. 1 passed; 2 failed; 4 ignored; 0 measured; 0 filtered out; finished in 0.01s");
        assert_eq!(tally, Tally { binaries: 0, passed: 13, failed: 2, ignored: 4 });
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
