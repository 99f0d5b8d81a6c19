//! Output of runners that are run for it: whatever they print, each test is found with what became of it.

use std::path::Path;
use std::time::Duration;

use pintle_env::{ExecRequest, ExecutionEnvironment as _, LocalEnvironment};
use pintle_test_conditions::{GO, NODE, PYTEST};

use super::{ResultsFormat, shown};

/// Time limit of a run, which takes seconds on an idle machine.
const LIMIT: Duration = Duration::from_secs(300);

/// A workspace of two packages, with programs of the same name.
const CRATE: [(&str, &str); 7] = [
    (
        "Cargo.toml",
        "[package]\nname = \"small-sums\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[workspace]\nmembers = [\"other\"]\n",
    ),
    ("src/main.rs", "fn main() {}\n\n#[test]\nfn starts() {}\n"),
    ("src/lib.rs", LIBRARY),
    ("tests/empty.rs", ""),
    (
        "tests/it.rs",
        "#[test]\nfn adds() {\n    assert_eq!(small_sums::add(2, 2), 4);\n}\n\nmod inner {\n    #[test]\n    fn subtracts() {\n        assert_eq!(small_sums::add(2, -2), 1);\n    }\n}\n",
    ),
    ("other/Cargo.toml", "[package]\nname = \"other\"\nversion = \"0.1.0\"\nedition = \"2024\"\n"),
    ("other/tests/it.rs", "#[test]\nfn adds() {}\n"),
];

const LIBRARY: &str = r##"//! ```
//! assert_eq!(small_sums::add(1, 2), 3);
//! ```

/// Adds.
///
/// ```
/// assert_eq!(small_sums::add(1, 2), 4);
/// ```
///
/// ```
/// assert_eq!(small_sums::add(2, 2), 4);
/// ```
///
/// ```should_panic
/// panic!();
/// ```
///
/// ```compile_fail
/// let x: u8 = "";
/// ```
///
/// ```no_run
/// loop {}
/// ```
///
/// ```ignore
/// nothing
/// ```
pub fn add(a: i32, b: i32) -> i32 {
    a + b
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes() {
        assert_eq!(add(1, 2), 3);
    }

    #[test]
    fn fails() {
        assert_eq!(add(1, 2), 4, "is it 4 ... ok?");
    }

    #[test]
    fn panics() {
        let none: Option<u8> = None;
        none.unwrap();
    }

    #[test]
    fn returns_an_error() -> Result<(), String> {
        Err("no".to_owned())
    }

    #[test]
    #[ignore]
    fn ignored() {}

    #[test]
    #[ignore = "takes minutes ... ok"]
    fn ignored_for_a_reason() {}

    #[test]
    #[should_panic]
    fn panics_as_it_should() {
        panic!();
    }

    #[test]
    #[should_panic(expected = "sum")]
    fn does_not_panic() {}

    #[test]
    #[should_panic(expected = "sum")]
    fn panics_otherwise() {
        panic!("other");
    }
}
"##;

const PYTHON: &str = r##"import pytest


def test_passes():
    assert 1 + 1 == 2


def test_fails():
    assert 1 + 1 == 3, "a - b [x] PASSED"


def test_raises():
    raise RuntimeError("no - reason")


@pytest.fixture
def broken():
    raise OSError("no such thing")


@pytest.fixture
def broken_later():
    yield 1
    raise OSError("clean-up")


def test_not_prepared(broken):
    assert broken


def test_not_cleaned(broken_later):
    assert broken_later == 1


def test_fails_and_is_not_cleaned(broken_later):
    assert broken_later == 2


@pytest.mark.skip(reason="not here - yet (or [never])")
def test_skipped():
    pass


def test_skips_itself():
    pytest.skip("later")


@pytest.mark.xfail(reason="known - [bug]")
def test_known():
    assert False


@pytest.mark.xfail(reason="mended (at last)")
def test_known_and_passes():
    assert True


@pytest.mark.xfail(strict=True)
def test_strict_and_passes():
    assert True


@pytest.mark.parametrize("text", ["", "a b", "a - b", "c - d", "[x]", "ä", "a::b", "x PASSED", "50%]", "a\nb", "= ="])
def test_odd(text):
    assert text != "a - b"


class TestSums:
    def test_in_class(self):
        assert True

    @pytest.mark.parametrize("number", [1, 2])
    def test_in_class_twice(self, number):
        assert number == 1
"##;

/// Writes files.
#[expect(clippy::disallowed_methods, reason = "fixtures are written before the environment is used")]
fn write(directory: &Path, files: &[(&str, &str)]) {
    for (path, text) in files {
        let path = directory.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}

/// Runs a command as a task does, and returns its exit code and its output.
async fn run(directory: &Path, line: &str) -> (i32, String) {
    run_as(ResultsFormat::Cargo, directory, line).await
}

/// Runs a command as a task does that has results of this format.
async fn run_as(format: ResultsFormat, directory: &Path, line: &str) -> (i32, String) {
    let env = LocalEnvironment::with_host_env(directory, std::env::vars_os()).unwrap();
    let request = ExecRequest::new(format.command(line, None))
        .with_timeout(LIMIT)
        // As for a task; that of the project would be used otherwise.
        .with_env("CARGO_TARGET_DIR", directory.join("target").display().to_string());
    let result = env.exec_command(request).await.unwrap();
    assert!(!result.timed_out, "{line}");
    (result.exit_code, result.output.to_text_lossy().unwrap())
}

#[tokio::test]
async fn each_test_of_cargo_is_found() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), &CRATE);
    let (code, output) = run(directory.path(), "cargo test --offline --workspace --no-fail-fast").await;
    assert_eq!(code, 101, "{output}");
    insta::assert_snapshot!(shown(ResultsFormat::Cargo, &output), @"
    + it (2)::adds
    - it (2)::inner::subtracts
    + it::adds
    + small_sums (2)::starts
    + small_sums (documentation)::src/lib.rs -
    - small_sums (documentation)::src/lib.rs - add
    + small_sums (documentation)::src/lib.rs - add (2)
    + small_sums (documentation)::src/lib.rs - add (3)
    ? small_sums (documentation)::src/lib.rs - add (4)
    + small_sums (documentation)::src/lib.rs - add - compile
    + small_sums (documentation)::src/lib.rs - add - compile fail
    - small_sums::tests::does_not_panic
    - small_sums::tests::fails
    ? small_sums::tests::ignored
    ? small_sums::tests::ignored_for_a_reason
    - small_sums::tests::panics
    + small_sums::tests::panics_as_it_should
    - small_sums::tests::panics_otherwise
    + small_sums::tests::passes
    - small_sums::tests::returns_an_error
    ");
}

/// Changes further up in a file move the lines of examples. They are the same tests still.
#[tokio::test]
async fn examples_keep_their_names_when_their_lines_move() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), &CRATE);
    let (_, before) = run(directory.path(), "cargo test --offline --doc").await;
    write(directory.path(), &[("src/lib.rs", &format!("//! Sums.\n//!\n{LIBRARY}"))]);
    let (_, after) = run(directory.path(), "cargo test --offline --doc").await;
    assert!(before.contains("(line 7)") && after.contains("(line 9)"), "{before}{after}");
    let [before, after] = [before, after].map(|text| ResultsFormat::Cargo.parse(&text));
    assert!(before.tests.len() == 7 && before.problems.is_empty(), "{before:?}");
    assert_eq!(before, after);
}

#[tokio::test]
async fn runs_of_cargo_that_prove_nothing_are_told() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), &CRATE);
    write(directory.path(), &[("tests/it.rs", "#[test]\nfn adds() {\n    let x: u8 = \"\";\n}\n")]);
    let (code, output) = run(directory.path(), "cargo test --offline").await;
    assert_eq!(code, 101, "{output}");
    insta::assert_snapshot!(shown(ResultsFormat::Cargo, &output), @"problem: there are no results");
    // The code under test ends the process, and cargo is content.
    write(directory.path(), &[("tests/it.rs", "#[test]\nfn adds() {\n    std::process::exit(0);\n}\n")]);
    let (code, output) = run(directory.path(), "cargo test --offline --test it").await;
    assert_eq!(code, 0, "{output}");
    insta::assert_snapshot!(shown(ResultsFormat::Cargo, &output), @"problem: it ended without a summary");
}

#[tokio::test]
async fn each_test_of_pytest_is_found() {
    if !PYTEST.is_present() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), &[("tests/test_sums.py", PYTHON)]);
    let (code, verbose) = run(directory.path(), "pytest -v -p no:cacheprovider").await;
    assert_eq!(code, 1, "{verbose}");
    insta::assert_snapshot!(shown(ResultsFormat::Pytest, &verbose), @r"
    + tests/test_sums.py::TestSums::test_in_class
    + tests/test_sums.py::TestSums::test_in_class_twice[1]
    - tests/test_sums.py::TestSums::test_in_class_twice[2]
    - tests/test_sums.py::test_fails
    - tests/test_sums.py::test_fails_and_is_not_cleaned
    ? tests/test_sums.py::test_known
    + tests/test_sums.py::test_known_and_passes
    ! tests/test_sums.py::test_not_cleaned
    ! tests/test_sums.py::test_not_prepared
    + tests/test_sums.py::test_odd[50%]]
    + tests/test_sums.py::test_odd[= =]
    + tests/test_sums.py::test_odd[[x]]
    + tests/test_sums.py::test_odd[\xe4]
    + tests/test_sums.py::test_odd[]
    - tests/test_sums.py::test_odd[a - b]
    + tests/test_sums.py::test_odd[a b]
    + tests/test_sums.py::test_odd[a::b]
    + tests/test_sums.py::test_odd[a\nb]
    + tests/test_sums.py::test_odd[c - d]
    + tests/test_sums.py::test_odd[x PASSED]
    + tests/test_sums.py::test_passes
    - tests/test_sums.py::test_raises
    ? tests/test_sums.py::test_skipped
    ? tests/test_sums.py::test_skips_itself
    - tests/test_sums.py::test_strict_and_passes
    ");
    // Tests that were skipped have no names there.
    let (_, summary) = run(directory.path(), "pytest -rA -p no:cacheprovider").await;
    let is_named = |line: &&str| !line.contains("::test_skip");
    let named: Vec<String> =
        shown(ResultsFormat::Pytest, &verbose).lines().filter(is_named).map(str::to_owned).collect();
    let both = run(directory.path(), "pytest -v -rA -p no:cacheprovider").await.1;
    assert_eq!(shown(ResultsFormat::Pytest, &summary).lines().collect::<Vec<_>>(), named, "{summary}");
    assert_eq!(shown(ResultsFormat::Pytest, &both), shown(ResultsFormat::Pytest, &verbose), "{both}");
}

#[tokio::test]
async fn runs_of_pytest_that_prove_nothing_are_told() {
    if !PYTEST.is_present() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let mut said = String::new();
    for text in [
        "import nothing_like_this\n",
        "def test_a(:\n",
        "",
        "def test_a():\n    print('== 3 passed in 0.01s ==')\n    assert False\n",
        "import os\n\n\ndef test_a():\n    os._exit(0)\n",
    ] {
        write(directory.path(), &[("tests/test_sums.py", text)]);
        for option in ["-v", "-rA"] {
            let (code, output) = run(directory.path(), &format!("pytest {option} -p no:cacheprovider")).await;
            let found = shown(ResultsFormat::Pytest, &output).trim_end().replace('\n', "; ");
            said.push_str(&format!("{option} exits with {code}: {found}\n"));
        }
    }
    insta::assert_snapshot!(said, @"
    -v exits with 2: ! tests/test_sums.py
    -rA exits with 2: ! tests/test_sums.py
    -v exits with 2: ! tests/test_sums.py
    -rA exits with 2: ! tests/test_sums.py
    -v exits with 5: problem: there are no results
    -rA exits with 5: problem: there are no results
    -v exits with 1: - tests/test_sums.py::test_a; problem: there are two summaries
    -rA exits with 1: - tests/test_sums.py::test_a; problem: there are two summaries
    -v exits with 0: problem: the run ended without a summary
    -rA exits with 0: problem: the run ended without a summary
    ");
}

/// Commands without flags for their results.
#[tokio::test]
async fn each_test_of_other_runners_is_found() {
    let directory = tempfile::tempdir().unwrap();
    write(
        directory.path(),
        &[
            ("go.mod", "module sums\n\ngo 1.18\n"),
            (
                "sums_test.go",
                "package sums\n\nimport \"testing\"\n\nfunc TestPasses(t *testing.T) {}\n\n\
                 func TestFails(t *testing.T) { t.Fatal(\"no\") }\n\nfunc TestSkips(t *testing.T) { t.Skip(\"later\") }\n",
            ),
            (
                "sums.test.js",
                "const test = require('node:test');\ntest('passes', () => {});\n\
                 test('fails', () => { throw new Error('no'); });\ntest('skips', { skip: true }, () => {});\n",
            ),
            (
                "test_sums.py",
                "import unittest\n\n\nclass Sums(unittest.TestCase):\n    def test_passes(self):\n        print('noise')\n\n    \
                 def test_fails(self):\n        self.assertEqual(1, 2)\n\n    @unittest.skip('later ... ok')\n    \
                 def test_skips(self):\n        pass\n",
            ),
            ("Makefile", "test:\n\t@python3 -m unittest -v\n"),
        ],
    );
    let mut found = String::new();
    for (is_present, format, line) in [
        (true, ResultsFormat::Unittest, "python3 -m unittest"),
        (true, ResultsFormat::Unittest, "make test"),
        (GO.is_present(), ResultsFormat::Go, "go test ./..."),
        (NODE.is_present(), ResultsFormat::Tap, "node --test sums.test.js"),
    ] {
        if !is_present {
            return;
        }
        let (code, output) = run_as(format, directory.path(), line).await;
        assert_ne!(code, 0, "{line}: {output}");
        let shown = shown(format, &output);
        assert!(shown.lines().count() >= 3, "{line}: {output}");
        found.push_str(&format!("{line}:\n{shown}"));
        let recognized = super::super::recognize(line, None).map(|results| results.format);
        assert_eq!(recognized, (line != "make test").then_some(format), "{line}");
        let of_output = ResultsFormat::recognize_output(&output).and_then(|run| run.format);
        // The events of `go test -json` are asked for by their name only.
        assert_eq!(of_output, (format != ResultsFormat::Go).then_some(format), "{line}: {output}");
    }
    insta::assert_snapshot!(found, @"
    python3 -m unittest:
    - test_sums.Sums.test_fails
    + test_sums.Sums.test_passes
    ? test_sums.Sums.test_skips
    make test:
    - test_sums.Sums.test_fails
    + test_sums.Sums.test_passes
    ? test_sums.Sums.test_skips
    go test ./...:
    - sums::TestFails
    + sums::TestPasses
    ? sums::TestSkips
    node --test sums.test.js:
    - fails
    + passes
    ? skips
    ");
}
