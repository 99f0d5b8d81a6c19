//! Test runners of commands, and the flags that make them report single tests.

use pintle_env::shell_word;

use super::ResultsFormat;
use super::recognition::RecognizedResults;
use crate::shell::split_plain_commands;

/// File with results that a runner writes because of our flags, in the root of the clone.
const REPORT: &str = ".pintle-results";

/// Merges both streams of the following commands.
const MERGE: &str = "exec 2>&1\n";

/// Lets `pytest` name all tests. Skipped tests are named with `-v` only, which `-q` cancels.
const PYTEST: &str = "export PYTEST_ADDOPTS=\"${PYTEST_ADDOPTS:+$PYTEST_ADDOPTS }-v -rA\"\n";

/// Lets the runner of Node that a script starts write TAP.
const NODE: &str = "export NODE_OPTIONS=\"${NODE_OPTIONS:+$NODE_OPTIONS }--test-reporter=tap\"\n";

/// Lets `RSpec` write a report.
const RSPEC: &str =
    "export SPEC_OPTS=\"${SPEC_OPTS:+$SPEC_OPTS }--format progress --format json --out '$pintle_results'\"\n";

/// A test runner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TestRunner<'a> {
    Bats,
    Cargo,
    Ctest,
    Dotnet,
    Go,
    Gradle,
    Jest,
    Maven,
    Mix,
    Node,
    Phpunit,
    Pytest,
    Rspec,
    Unittest,
    Vitest,
    /// A script of `package.json`, by its name.
    Script(&'a str),
}

/// Call of a test runner.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunnerCall<'a> {
    pub(super) runner: TestRunner<'a>,
    /// Index of the word that flags of the runner may follow.
    at: usize,
}

impl TestRunner<'_> {
    pub(super) fn results(self) -> RecognizedResults {
        let json = || Some(format!("{REPORT}.json"));
        let (format, report) = match self {
            Self::Bats | Self::Node | Self::Script(_) => (ResultsFormat::Tap, None),
            Self::Cargo => (ResultsFormat::Cargo, None),
            Self::Ctest => (ResultsFormat::Ctest, None),
            Self::Dotnet => (ResultsFormat::Dotnet, None),
            Self::Go => (ResultsFormat::Go, None),
            Self::Gradle => (ResultsFormat::Junit, Some("**/build/test-results/test".to_owned())),
            Self::Jest => (ResultsFormat::Jest, json()),
            Self::Maven => (ResultsFormat::Junit, Some("**/target/surefire-reports".to_owned())),
            Self::Mix => (ResultsFormat::Mix, None),
            Self::Phpunit => (ResultsFormat::Junit, Some(format!("{REPORT}.xml"))),
            Self::Pytest => (ResultsFormat::Pytest, None),
            Self::Rspec => (ResultsFormat::Rspec, json()),
            Self::Unittest => (ResultsFormat::Unittest, None),
            Self::Vitest => (ResultsFormat::Vitest, json()),
        };
        RecognizedResults { format, report }
    }
}

impl<'a> RunnerCall<'a> {
    /// Finds the runner that a simple command starts, also by a program that starts another one, such as `npx`.
    pub(super) fn find(words: &[&'a str]) -> Option<Self> {
        let mut at = 0;
        loop {
            let skipped = wrapper(words.get(at..)?);
            if skipped == 0 {
                break;
            }
            at += skipped;
        }
        let program = *words.get(at)?;
        let program = program.rsplit('/').next().unwrap_or(program);
        let rest = words.get(at + 1..).unwrap_or_default();
        let has = |flags: &[&str]| rest.iter().any(|word| flags.contains(word));
        let goal =
            |goals: &[&str]| rest.iter().position(|word| goals.contains(word)).map(|found| at + 1 + found);
        let call = |runner: TestRunner<'a>, at: usize| Some(Self { runner, at });
        match program {
            "cargo" => {
                let first = rest.iter().position(|word| !word.starts_with('+'))?;
                let is_test = matches!(rest.get(first), Some(&"test" | &"t"));
                let is_quiet = has(&["-q", "--quiet", "--no-run", "--list", "-Z"]);
                (is_test && !is_quiet).then_some(Self { runner: TestRunner::Cargo, at: at + 1 + first })
            }
            "go" if !has(&["-c", "-list"]) => call(TestRunner::Go, goal(&["test"])?),
            "pytest" | "py.test" if !has(&["--collect-only", "--co"]) => call(TestRunner::Pytest, at),
            _ if is_python(program) => {
                let module = at + 1 + rest.iter().position(|word| *word == "-m")? + 1;
                match *words.get(module)? {
                    "pytest" => call(TestRunner::Pytest, module),
                    "unittest" if !has(&["-q", "--quiet"]) => {
                        let is_discover = words.get(module + 1) == Some(&"discover");
                        call(TestRunner::Unittest, module + usize::from(is_discover))
                    }
                    _ => None,
                }
            }
            "node" => call(TestRunner::Node, goal(&["--test"])?),
            "jest" => call(TestRunner::Jest, at),
            "vitest" if !has(&["bench", "watch", "list"]) => call(TestRunner::Vitest, at),
            "ctest" if !has(&["-N", "--show-only", "-Q", "--quiet"]) => call(TestRunner::Ctest, at),
            "bats" => call(TestRunner::Bats, at),
            "mvn" | "mvnw" => call(TestRunner::Maven, goal(&["test", "package", "verify", "install"])?),
            "gradle" | "gradlew" => call(TestRunner::Gradle, goal(&["test", "check", "build"])?),
            "rspec" => call(TestRunner::Rspec, at),
            "phpunit" => call(TestRunner::Phpunit, at),
            "dotnet" if rest.first() == Some(&"test") => call(TestRunner::Dotnet, at + 1),
            "mix" if rest.first() == Some(&"test") => call(TestRunner::Mix, at + 1),
            "npm" | "pnpm" | "yarn" => match *rest {
                ["test" | "t", ..] => call(TestRunner::Script("test"), at + 1),
                ["run" | "run-script", name, ..] => call(TestRunner::Script(name), at + 2),
                _ => None,
            },
            _ => None,
        }
    }
}

/// Returns the number of words at the start that lead to another program.
fn wrapper(words: &[&str]) -> usize {
    let is_assignment = |word: &str| {
        word.split_once('=').is_some_and(|(name, _)| {
            !name.is_empty() && name.chars().all(|character| character.is_alphanumeric() || character == '_')
        })
    };
    match words {
        [word, ..] if is_assignment(word) => 1,
        ["env" | "time" | "nice" | "exec" | "command" | "npx" | "bunx" | "xvfb-run", next, ..]
            if !next.starts_with('-') =>
        {
            1
        }
        ["npx", "-y" | "--yes" | "--no-install", ..] => 2,
        ["timeout", limit, ..] if !limit.starts_with('-') => 2,
        ["uv" | "poetry" | "pipenv" | "pdm" | "hatch" | "rye", "run", ..] => 2,
        ["bundle" | "pnpm" | "yarn", "exec", ..] => 2,
        ["yarn" | "pnpm", "jest" | "vitest", ..] => 1,
        _ => 0,
    }
}

/// `python`, `python3`, `python3.12`
fn is_python(program: &str) -> bool {
    let version = program.strip_prefix("python");
    version.is_some_and(|version| {
        version.chars().all(|character| character.is_ascii_digit() || character == '.')
    })
}

/// Returns a command whose runner reports single tests in this format.
pub(super) fn adapt(format: ResultsFormat, line: &str, report: Option<&str>) -> String {
    let (mut added, mut has_script) = (Vec::new(), false);
    for simple in split_plain_commands(line).unwrap_or_default() {
        let words = simple.words();
        let Some(call) = RunnerCall::find(&words) else { continue };
        has_script |= matches!(call.runner, TestRunner::Script(_));
        let is_given = |flags: &[&str]| {
            let is = |word: &&str, flag: &str| word.split('=').next() == Some(flag);
            words.iter().any(|word| flags.iter().any(|flag| is(word, flag)))
        };
        let Some((flags, is_last)) = missing_flags(format, call.runner, is_given) else { continue };
        // A script of npm receives the words after `--`.
        let separator = if words.contains(&"npm") && !is_given(&["--"]) { " --" } else { "" };
        let place = if is_last { simple.ends.last() } else { simple.ends.get(call.at) };
        added.extend(place.map(|place| (*place, format!("{separator} {flags}"))));
    }
    let mut adapted = line.to_owned();
    for (place, flags) in added.iter().rev() {
        adapted.insert_str(*place, flags);
    }
    let mut head = String::new();
    if !format.is_file() {
        head.push_str(MERGE);
    }
    if let Some(report) = report.filter(|_| !added.is_empty() || format == ResultsFormat::Rspec) {
        head.push_str(&format!("pintle_results=\"$PWD\"/{}\n", shell_word(report)));
    }
    if format == ResultsFormat::Pytest {
        head.push_str(PYTEST);
    } else if format == ResultsFormat::Rspec && report.is_some() && !line.contains("--out") {
        head.push_str(RSPEC);
    } else if format == ResultsFormat::Tap && has_script {
        head.push_str(NODE);
    }
    head + &adapted
}

/// Returns a command whose results can be recognized in its output.
pub(super) fn adapt_unknown(line: &str) -> String {
    format!("{MERGE}{PYTEST}{line}")
}

/// Returns the flags that a runner lacks, and whether they have to be the last ones.
fn missing_flags(
    format: ResultsFormat,
    runner: TestRunner<'_>,
    is_given: impl Fn(&[&str]) -> bool,
) -> Option<(&'static str, bool)> {
    const JEST: &str = "--json --outputFile=\"$pintle_results\"";
    const VITEST: &str = "--reporter=default --reporter=json --outputFile.json=\"$pintle_results\"";
    match (format, runner) {
        (ResultsFormat::Go, TestRunner::Go) if !is_given(&["-json", "-v"]) => Some(("-json", false)),
        (ResultsFormat::Unittest, TestRunner::Unittest) if !is_given(&["-v", "--verbose"]) => {
            Some(("-v", false))
        }
        (ResultsFormat::Tap, TestRunner::Node) if !is_given(&["--test-reporter"]) => {
            Some(("--test-reporter=tap", false))
        }
        (ResultsFormat::Tap, TestRunner::Bats)
            if !is_given(&["-t", "--tap", "-F", "--formatter", "-p", "--pretty"]) =>
        {
            Some(("--tap", false))
        }
        (ResultsFormat::Jest, TestRunner::Jest | TestRunner::Script(_)) if !is_given(&["--outputFile"]) => {
            Some((JEST, true))
        }
        (ResultsFormat::Vitest, TestRunner::Vitest | TestRunner::Script(_))
            if !is_given(&["--outputFile", "--outputFile.json"]) =>
        {
            Some((VITEST, true))
        }
        (ResultsFormat::Junit, TestRunner::Phpunit) if !is_given(&["--log-junit"]) => {
            Some(("--log-junit \"$pintle_results\"", false))
        }
        (ResultsFormat::Dotnet, TestRunner::Dotnet) if !is_given(&["--logger", "-l"]) => {
            Some(("--logger \"console;verbosity=normal\"", false))
        }
        (ResultsFormat::Mix, TestRunner::Mix) if !is_given(&["--trace"]) => Some(("--trace", false)),
        _ => None,
    }
}
