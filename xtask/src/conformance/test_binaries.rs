//! The test binaries of the workspace. Each test runs in a process of its own.
//!
//! Tests are named as by cargo-nextest: the package, then `::TARGET` for an integration test or
//! `::bin/TARGET` for a program, then `::` and the path of the test in its binary.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use serde::Deserialize;

use crate::{
    failure::{Context as _, Failure},
    metadata::Metadata,
    process,
    test_run::TestRun,
};

/// Time limit of one test.
const TIME_LIMIT: Duration = Duration::from_secs(120);
/// Interval at which a running test is polled.
const POLL: Duration = Duration::from_millis(5);
/// Number of last lines of output shown for a failed test.
const TAIL: usize = 12;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TestOutcome {
    Passed,
    /// The reason, with the last lines of output.
    Failed(String),
    Missing,
}

pub(crate) struct TestBinaries {
    binaries: Vec<TestBinary>,
    /// Directory for the output of tests.
    logs: PathBuf,
}

pub(crate) struct TestBinary {
    /// Prefix of the names of its tests.
    id: String,
    executable: PathBuf,
    package_directory: PathBuf,
}

/// One line of `cargo test --message-format=json`, with the fields that are used.
#[derive(Debug, Deserialize)]
struct Message {
    reason: String,
    package_id: Option<String>,
    target: Option<MessageTarget>,
    profile: Option<MessageProfile>,
    executable: Option<PathBuf>,
}

#[derive(Debug, Deserialize)]
struct MessageProfile {
    test: bool,
}

#[derive(Debug, Deserialize)]
struct MessageTarget {
    name: String,
    kind: Vec<String>,
}

impl TestBinaries {
    /// Argument with which cargo prints the messages of a build.
    pub(crate) const MESSAGES: &str = "--message-format=json-render-diagnostics";

    /// Builds all test binaries.
    pub(crate) fn build(metadata: &Metadata) -> Result<Self, Failure> {
        let mut build = process::cargo(&metadata.workspace_root);
        build.args(["test", "--no-run", "--quiet", Self::MESSAGES]);
        Self::from_messages(metadata, &process::capture(build.args(process::EVERYTHING))?)
    }

    /// Returns the test binaries that are named in the messages of a build.
    pub(crate) fn from_messages(metadata: &Metadata, json: &str) -> Result<Self, Failure> {
        let mut binaries = Vec::new();
        for line in json.lines() {
            let message: Message =
                serde_json::from_str(line).context("a message of cargo could not be parsed")?;
            binaries.extend(TestBinary::from_message(metadata, message));
        }
        let logs = metadata.target_directory.join("conformance");
        fs::create_dir_all(&logs).context("the directory for test output could not be created")?;
        Ok(Self { binaries, logs })
    }

    /// Runs the tests in `names` that have not passed in `earlier`. Those that do not exist are reported as missing.
    pub(crate) fn run(
        &self,
        names: &BTreeSet<&str>,
        earlier: &TestRun,
    ) -> Result<BTreeMap<String, TestOutcome>, Failure> {
        let mut runs = Vec::new();
        let mut outcomes = BTreeMap::new();
        let mut listed: BTreeMap<&str, Listing> = BTreeMap::new();
        for name in names {
            outcomes.insert((*name).to_owned(), TestOutcome::Missing);
            let Some((binary, test)) = self.find(name) else { continue };
            if binary.file_name().is_some_and(|file| earlier.has_passed(file, test)) {
                outcomes.insert((*name).to_owned(), TestOutcome::Passed);
                continue;
            }
            if !listed.contains_key(binary.id.as_str()) {
                listed.insert(&binary.id, binary.list()?);
            }
            match listed.get(binary.id.as_str()).and_then(|listing| listing.state(test)) {
                Some(State::Runs) => runs.push(Run { name, binary, test }),
                Some(State::Ignored) => {
                    outcomes.insert((*name).to_owned(), TestOutcome::Failed(String::from("it is ignored")));
                }
                None => {}
            }
        }
        outcomes.extend(run_all(&runs, &self.logs));
        Ok(outcomes)
    }

    /// Returns the binary whose tests have names that start with `id`.
    pub(crate) fn get(&self, id: &str) -> Result<&TestBinary, Failure> {
        let found = self.binaries.iter().find(|binary| binary.id == id);
        found.ok_or_else(|| Failure::new(format!("there is no test binary `{id}`")))
    }

    /// Returns the binary with the longest identifier that is a prefix of `name`, and the rest of the name.
    fn find<'a>(&'a self, name: &'a str) -> Option<(&'a TestBinary, &'a str)> {
        self.binaries
            .iter()
            .filter_map(|binary| Some((binary, name.strip_prefix(&binary.id)?.strip_prefix("::")?)))
            .max_by_key(|(binary, _)| binary.id.len())
    }
}

impl TestBinary {
    fn from_message(metadata: &Metadata, message: Message) -> Option<Self> {
        // Programs that integration tests run are built as well, but contain no tests.
        let is_test = message.profile.is_some_and(|profile| profile.test);
        if message.reason != "compiler-artifact" || !is_test {
            return None;
        }
        let (package_id, target) = (message.package_id?, message.target?);
        let package = metadata.packages.iter().find(|package| package.id == package_id)?;
        let id = match target.kind.first().map(String::as_str)? {
            "test" => format!("{}::{}", package.name, target.name),
            kind @ ("bin" | "example" | "bench") => format!("{}::{kind}/{}", package.name, target.name),
            _ => package.name.clone(),
        };
        let package_directory = package.directory().to_owned();
        Some(Self { id, executable: message.executable?, package_directory })
    }

    fn file_name(&self) -> Option<&str> {
        self.executable.file_name()?.to_str()
    }

    fn list(&self) -> Result<Listing, Failure> {
        let names = |arguments: &[&str]| -> Result<BTreeSet<String>, Failure> {
            let text = process::capture(self.command().args(["--list", "--format=terse"]).args(arguments))?;
            Ok(text.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
        };
        Ok(Listing { all: names(&[])?, ignored: names(&["--ignored"])? })
    }

    /// Creates a command with the environment that `cargo test` sets.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.executable);
        command
            .current_dir(&self.package_directory)
            .env("CARGO_MANIFEST_DIR", &self.package_directory)
            // A backtrace would displace the message from the lines that are shown.
            .env("RUST_BACKTRACE", "0")
            .stdin(Stdio::null());
        command
    }
}

struct Listing {
    all: BTreeSet<String>,
    ignored: BTreeSet<String>,
}

enum State {
    Runs,
    Ignored,
}

impl Listing {
    fn state(&self, test: &str) -> Option<State> {
        let known = self.all.contains(test);
        known.then(|| if self.ignored.contains(test) { State::Ignored } else { State::Runs })
    }
}

struct Run<'a> {
    name: &'a str,
    binary: &'a TestBinary,
    test: &'a str,
}

/// Runs the tests, one thread per core.
fn run_all(runs: &[Run<'_>], logs: &Path) -> Vec<(String, TestOutcome)> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    let work = || {
        while let Some(run) = runs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let log = logs.join(format!("{}.log", run.name.replace([':', '/'], "_")));
            let outcome = run
                .execute(&log)
                .map_or_else(|failure| TestOutcome::Failed(failure.chain()), |()| TestOutcome::Passed);
            if let Ok(mut done) = done.lock() {
                done.push((run.name.to_owned(), outcome));
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(work);
        }
    });
    done.into_inner().unwrap_or_default()
}

impl Run<'_> {
    fn execute(&self, log: &Path) -> Result<(), Failure> {
        let trouble = |cause: std::io::Error| Failure::new("it could not be run").with_source(cause);
        let output = File::create(log).map_err(trouble)?;
        let errors = output.try_clone().map_err(trouble)?;
        let mut child = self
            .binary
            .command()
            .args(["--exact", self.test, "--nocapture"])
            .stdout(output)
            .stderr(errors)
            .spawn()
            .map_err(trouble)?;
        let started = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().map_err(trouble)? {
                break status;
            }
            if started.elapsed() > TIME_LIMIT {
                child.kill().map_err(trouble)?;
                child.wait().map_err(trouble)?;
                return Err(Failure::new(format!("it took longer than {} s", TIME_LIMIT.as_secs())));
            }
            thread::sleep(POLL);
        };
        if status.success() {
            return Ok(());
        }
        Err(Failure::new(format!("{status}{}", tail(log))))
    }
}

fn tail(log: &Path) -> String {
    let text = fs::read(log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let skipped = lines.len().saturating_sub(TAIL);
    lines.iter().skip(skipped).map(|line| format!("\n        {line}")).collect()
}

#[cfg(test)]
mod tests {
    use std::{
        collections::{BTreeMap, BTreeSet},
        path::PathBuf,
    };

    use super::{Metadata, TestBinaries, TestBinary, TestOutcome, TestRun};

    /// Uses this test binary instead of those of the workspace.
    fn this_binary() -> TestBinaries {
        let binary = TestBinary {
            id: String::from("xtask::bin/xtask"),
            executable: std::env::current_exe().expect("a test is a program"),
            package_directory: PathBuf::from("."),
        };
        let logs = std::env::temp_dir().join(format!("pintle-xtask-{}", std::process::id()));
        std::fs::create_dir_all(&logs).expect("a directory for the output");
        TestBinaries { binaries: vec![binary], logs }
    }

    #[test]
    fn named_tests_run_and_missing_ones_are_reported() {
        let binaries = this_binary();
        let good = "xtask::bin/xtask::test_run::tests::summary_lines_add_up";
        let gone = "xtask::bin/xtask::test_run::tests::no_such_test";
        let unknown = "pintle-unknown::tests::a";
        let found = binaries
            .run(&BTreeSet::from([good, gone, unknown]), &TestRun::default())
            .expect("the tests are run");
        std::fs::remove_dir_all(&binaries.logs).expect("the directory goes");
        assert_eq!(
            found,
            BTreeMap::from([
                (good.to_owned(), TestOutcome::Passed),
                (gone.to_owned(), TestOutcome::Missing),
                (unknown.to_owned(), TestOutcome::Missing),
            ])
        );
    }

    #[test]
    fn a_test_that_has_passed_before_does_not_run_again() {
        let mut binaries = this_binary();
        let mut earlier = TestRun::default();
        earlier.add("Running unittests src/main.rs (target/debug/deps/xtask-0123)");
        earlier.add("test ci::tests::passed_before ... ok");
        // Running anything would fail: there is no such program.
        binaries.binaries[0].executable = PathBuf::from("/nonexistent/xtask-0123");
        let name = "xtask::bin/xtask::ci::tests::passed_before";
        let found = binaries.run(&BTreeSet::from([name]), &earlier).expect("nothing is run");
        assert_eq!(found, BTreeMap::from([(name.to_owned(), TestOutcome::Passed)]));
    }

    #[test]
    fn binaries_are_named_as_in_nextest() {
        let metadata: Metadata = serde_json::from_str(
            r#"{"packages": [{"id": "path#p@1", "name": "p", "version": "1.0.0", "manifest_path": "/x/p/Cargo.toml",
                "dependencies": [], "targets": [], "publish": null}], "workspace_root": "/x", "target_directory": "/x/t"}"#,
        )
        .expect("metadata");
        let id = |kind: &str, test: bool| {
            let line = format!(
                r#"{{"reason": "compiler-artifact", "package_id": "path#p@1", "executable": "/x/t/e",
                    "target": {{"name": "n", "kind": ["{kind}"]}}, "profile": {{"test": {test}}}}}"#
            );
            let message = serde_json::from_str(&line).expect("a message");
            TestBinary::from_message(&metadata, message).map(|binary| binary.id)
        };
        let ids = ["lib", "test", "bin", "example"].map(|kind| id(kind, true).expect("a test binary"));
        assert_eq!(ids, ["p", "p::n", "p::bin/n", "p::example/n"]);
        assert_eq!(id("bin", false), None);
    }

    #[test]
    fn a_name_matches_the_longest_identifier() {
        let binary = |id: &str| TestBinary {
            id: id.to_owned(),
            executable: PathBuf::new(),
            package_directory: PathBuf::new(),
        };
        let binaries = TestBinaries {
            binaries: vec![binary("pintle-tests"), binary("pintle-tests::it"), binary("pintle-cli")],
            logs: PathBuf::new(),
        };
        let found = |name| binaries.find(name).map(|(binary, test)| (binary.id.clone(), test.to_owned()));
        assert_eq!(
            found("pintle-tests::it::steering::once"),
            Some((String::from("pintle-tests::it"), String::from("steering::once")))
        );
        assert_eq!(found("pintle-testkit::script::tests::a"), None);
    }
}
